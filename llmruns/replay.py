"""The only writer of replies that were recorded elsewhere: they become an experiment that is marked imported.

Nothing is ever sent for it: its configurations answer from no server, its runs have ended when they come in.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePath
from typing import Any, BinaryIO
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Max, Value
from django.utils import timezone
from django.utils.translation import gettext as _

from corpus.bulk import GivenAnswer, GivenSitting, runs_import
from corpus.checks import finding_text
from corpus.models import Instrument, Respondent, Sitting
from corpus.services import (
    MAX_ANSWER_CHARACTERS,
    InstrumentIncompleteError,
    instrument_check,
    sittings_set_standing,
)
from corpus.storing import storable_text
from llmruns.importers.plan import Item, Plan, PlannedModel, PlannedRun, plan_replies
from llmruns.importers.records import MAX_BYTES, Problem, read_lines
from llmruns.models import Call, Experiment, ModelConfig, Prompt, Provider, ReplyImport, Run, RunStimulus
from llmruns.storing import is_storable_json
from studies.models import Study, User
from studies.services import audit_record

# An expression among the values keeps Django from sending columns as arrays, inside which psycopg quotes bodies slowly:
# an import of 3,600 replies of 2.7 KB took 5.1 s of CPU with arrays and takes 3.2 s without.
NOT_UNNESTED = Value("")
BATCH = 200  # calls with their bodies that are in memory at once
OWN_LOOKED_AT = 500  # calls of a log that are compared with the study's own
IMPORTED_PROMPT, UNKNOWN_PROMPT = "imported", "unknown"
NAMED_PROBLEMS = 5  # of an instrument that is not complete; its own page has them all


class ReplayStaleError(Exception):
    """What would happen now is not what the person has seen, or the file is no longer the one that was read."""


class NotSetAsideError(Exception):
    """There is nothing to put aside, or to count again. `reason`: already, no_reason, came_again."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class Source:
    """A file, read as a stream, twice where it is imported."""

    name: str
    size: int
    open: Callable[[], BinaryIO]


@dataclass(frozen=True)
class Target:
    """What the file does not say. No `prompt`: that of its requests, or unknown. No `max_attempts`: as in the file."""

    title: str = ""
    prompt: Prompt | None = None
    max_attempts: int | None = None


@dataclass
class ReplayReport:
    """What the import did or would do."""

    source: Source
    plan: Plan
    labels: dict[str, str] = field(default_factory=dict)  # by name in the file: as it will be called
    known: dict[str, ModelConfig] = field(default_factory=dict)  # of them those that are here from an earlier import
    prompt: str = ""  # as it is called, or will be
    already: ReplyImport | None = None
    digest: str = ""  # of all that would happen
    made: ReplyImport | None = None

    @property
    def problems(self) -> list[Problem]:
        return self.plan.problems

    @property
    def notes(self) -> list[Problem]:
        return self.plan.notes

    def as_json(self) -> dict[str, Any]:
        return {
            "counts": self.plan.counts,
            "max_attempts": self.plan.max_attempts,
            "runs_planned": self.plan.runs_planned,
            "models": self.labels,
            "prompt": self.prompt,
            "problems": [[one.code, one.line, one.detail] for one in self.problems],
            "notes": [[one.code, one.line, one.detail] for one in self.notes],
        }


@transaction.atomic
def replies_import(
    *,
    instrument: Instrument,
    source: Source,
    target: Target,
    actor: User | None,
    dry_run: bool = False,
    shown: str | None = None,
    draft_key: UUID | None = None,
) -> ReplayReport:
    """Import a file of recorded replies, or (`dry_run`) say what would happen. One problem in it stores nothing.

    The same records come in once: a second time is the problem `already`, until the first import is put aside.
    `shown` is the digest of the dry run that the person has seen. Raises ReplayStaleError.

    A dozen queries, two for each model, and one insert per 200 calls.
    """
    report = ReplayReport(source, _planned(instrument, source, target))  # long, and nobody need wait for it
    study = Study.objects.get(pk=instrument.study_id)
    if not dry_run:  # two imports of one file come in a row
        Study.objects.select_for_update().get(pk=study.pk)
    _look_around(report, study, instrument, target)
    report.digest = hashlib.sha256(
        json.dumps([report.as_json(), report.plan.digest, target.title], default=str).encode()
    ).hexdigest()
    if shown is not None and shown != report.digest:
        raise ReplayStaleError
    if dry_run or report.problems:
        return report
    report.made = _store(report, study, instrument, target, actor, draft_key)
    return report


def _planned(instrument: Instrument, source: Source, target: Target) -> Plan:
    if source.size > MAX_BYTES:
        return Plan(problems=[Problem("too_large", 0, str(MAX_BYTES // 1024**2))])
    items = [Item(one.position, one.text, one.is_practice) for one in instrument.stimuli.order_by("position")]
    with source.open() as file:
        return plan_replies(
            read_lines(file),
            items=items,
            instrument=(instrument.slug, instrument.version),
            max_attempts=target.max_attempts,
            longest_answer=MAX_ANSWER_CHARACTERS,
        )


def _look_around(report: ReplayReport, study: Study, instrument: Instrument, target: Target) -> None:
    """What the study says to the file: is it here already, are these its own calls, how will the models be called."""
    plan = report.plan
    problems = plan.problems
    report.already = ReplyImport.objects.filter(study=study, digest=plan.digest, set_aside_at=None).first()
    if report.already is not None:
        problems.insert(0, Problem("already", 0, report.already.name))
    if instrument.state != Instrument.State.FROZEN:
        try:  # locked, so that nobody takes something out of it before it is frozen
            instrument_check(Instrument.objects.select_for_update().get(pk=instrument.pk))
        except InstrumentIncompleteError as error:
            detail = "; ".join(map(finding_text, error.problems[:NAMED_PROBLEMS]))
            problems.insert(0, Problem("instrument_incomplete", 0, detail))
    if _is_own_log(study, plan):
        problems.insert(0, Problem("own_log", 0))
    for model in plan.models.values():
        known = _config_known(study, model)
        report.labels[model.label] = known.label if known else _label_free(study, model.label, report.labels)
        if known:
            report.known[model.label] = known
        if report.labels[model.label] != model.label:
            plan.notes.append(Problem("label_taken", 0, f"{model.label} → {report.labels[model.label]}"))
    prompt = target.prompt or _prompt_known(study, plan.template)
    report.prompt = str(prompt) if prompt else (IMPORTED_PROMPT if plan.template else UNKNOWN_PROMPT)
    if target.prompt is None and not plan.template:
        plan.notes.append(Problem("prompt_unknown", 0))
    elif not prompt:
        plan.notes.append(Problem("prompt_new", 0))
    elif target.prompt and plan.template and target.prompt.text != plan.template:
        plan.notes.append(Problem("prompt_other", 0, str(prompt)))


def _is_own_log(study: Study, plan: Plan) -> bool:
    """Whether the file is this study's own log of calls: imported again, every answer would be there twice."""
    rows = Call.objects.filter(pk__in=plan.log_calls, config__study=study, purpose=Call.Purpose.ANSWER)
    columns = ("pk", "config__label", "stimulus__position", "run__ordinal", "raw_reply")
    return any(plan.log_calls[pk] == tuple(own) for pk, *own in rows.values_list(*columns))


def _parameters(model: PlannedModel) -> dict[str, Any]:
    asked = model.asked or {}
    tokens = asked.get("max_output_tokens")
    return {
        "temperature": asked.get("temperature"),
        "top_p": asked.get("top_p"),
        "max_output_tokens": None if tokens is None else int(tokens),
    }


def _config_known(study: Study, model: PlannedModel) -> ModelConfig | None:
    """The configuration of an earlier import that is this very model with these parameters."""
    configs = ModelConfig.objects.filter(
        study=study, provider=Provider.REPLAYED, model=model.requested or model.label, **_parameters(model)
    )
    mine = [
        one
        for one in configs.order_by("pk")
        if one.label == model.label or one.label.startswith(model.label[:80] + " (")
    ]
    return mine[0] if mine else None


def _label_free(study: Study, label: str, taken: dict[str, str]) -> str:
    known = {*ModelConfig.objects.filter(study=study).values_list("label", flat=True), *taken.values()}
    name, number = label, 1
    while name in known:
        word = _("imported") if number == 1 else f"{_('imported')} {number}"
        name, number = f"{label[:80]} ({word})", number + 1
    return name


def _prompt_known(study: Study, template: str) -> Prompt | None:
    prompts = Prompt.objects.filter(study=study, purpose=Prompt.Purpose.ANSWER).order_by("pk")
    return prompts.filter(text=template).first() if template else prompts.filter(slug=UNKNOWN_PROMPT).first()


def _prompt_ensure(study: Study, plan: Plan, target: Target, name: str) -> Prompt:
    prompt = target.prompt or _prompt_known(study, plan.template)
    if prompt is not None:
        return prompt
    slug = IMPORTED_PROMPT if plan.template else UNKNOWN_PROMPT
    last = Prompt.objects.filter(study=study, slug=slug).order_by("-version").first()
    return Prompt.objects.create(
        study=study,
        slug=slug,
        version=last.version + 1 if last else 1,
        text=plan.template or "{words}",
        note=name[:300],
    )


def _store(
    report: ReplayReport,
    study: Study,
    instrument: Instrument,
    target: Target,
    actor: User | None,
    draft_key: UUID | None,
) -> ReplyImport:
    plan, now, name = report.plan, timezone.now(), storable_text(report.source.name)[0][:200]
    experiment = Experiment.objects.create(
        study=study,
        instrument=instrument,
        prompt=_prompt_ensure(study, plan, target, name),
        title=(target.title.strip() or PurePath(name).stem or instrument.title)[:200],
        runs_planned=plan.runs_planned,
        max_attempts=plan.max_attempts,
        state=Experiment.State.FINISHED,
        imported=True,
        launched_by=actor,
        ended_at=now,
    )
    configs = {
        model.label: report.known.get(model.label) or _config_create(study, model, report)
        for model in plan.models.values()
    }
    stimuli = dict(instrument.stimuli.values_list("position", "pk"))
    times = _Times()
    runs = _runs_create(experiment, configs, plan, stimuli, now)
    made = _calls_create(report, runs, stimuli, times)
    for key, run in runs.items():
        first, last = times.of(key)
        if first is not None:  # else the time of the import stands in
            finished = last if run.sitting.state == Sitting.State.FINISHED else None
            Sitting.objects.filter(pk=run.sitting_id).update(started_at=first, finished_at=finished)
    found = ReplyImport.objects.create(
        study=study,
        experiment=experiment,
        name=name,
        size=report.source.size,
        sha256=made,
        digest=plan.digest,
        counts=plan.counts,
        notes=[[one.code, one.line, storable_text(one.detail)[0]] for one in plan.notes],
        draft_key=draft_key,
        actor=actor,
    )
    audit_record(
        actor=actor,
        study=study,
        action="replies_import",
        target=experiment,
        detail={"file": name, "sha256": made, "models": list(report.labels.values()), **plan.counts},
    )
    return found


def _config_create(study: Study, model: PlannedModel, report: ReplayReport) -> ModelConfig:
    """A respondent that can never be asked: no address, no key."""
    return ModelConfig.objects.create(
        study=study,
        respondent=Respondent.objects.create(study=study, kind=Respondent.Kind.MODEL),
        label=report.labels[model.label],
        provider=Provider.REPLAYED,
        base_url="",
        model=model.requested or model.label,
        **_parameters(model),
    )


def _runs_create(
    experiment: Experiment, configs: dict[str, ModelConfig], plan: Plan, stimuli: dict[int, int], now: datetime
) -> dict[tuple[str, int], Run]:
    """The runs with their sittings, answers and what became of every stimulus."""
    last: dict[str, int] = {}
    # In one order everywhere: two writers of the same respondents must not wait for each other.
    for label, config in sorted(configs.items(), key=lambda item: item[1].respondent_id):
        Respondent.objects.select_for_update().get(pk=config.respondent_id)
        of_config = Sitting.objects.filter(respondent=config.respondent_id, instrument=experiment.instrument)
        last[label] = of_config.aggregate(last=Max("ordinal"))["last"] or 0
    given = []
    for run in plan.runs.values():
        last[run.model] += 1
        config = configs[run.model]
        given.append(
            GivenSitting(
                config.respondent,
                [
                    GivenAnswer(stimuli[position], one.text, one.outcome)
                    for position, one in run.stimuli.items()
                    if one.outcome
                ],
                now,
                now,
                ordinal=last[run.model],
                source_label=f"{config.label} · run {run.ordinal}",
            )
        )
    sittings = runs_import(instrument=experiment.instrument, sittings=given)
    runs = Run.objects.bulk_create(
        [
            _run(experiment, configs[planned.model], planned, sitting)
            for planned, sitting in zip(plan.runs.values(), sittings, strict=True)
        ]
    )
    RunStimulus.objects.bulk_create(
        [
            RunStimulus(
                run=run,
                stimulus_id=stimuli[position],
                state=RunStimulus.State.DONE if one.outcome else RunStimulus.State.GIVEN_UP,
                attempts=one.attempts,
                failures=0 if one.outcome else one.failures,
                due_at=now,
                problem=one.problem,
            )
            for run, planned in zip(runs, plan.runs.values(), strict=True)
            for position, one in planned.stimuli.items()
        ],
        batch_size=2_000,
    )
    return dict(zip(plan.runs, runs, strict=True))


def _run(experiment: Experiment, config: ModelConfig, planned: PlannedRun, sitting: Sitting) -> Run:
    missing = planned.missing
    return Run(
        experiment=experiment,
        config=config,
        sitting=sitting,
        ordinal=planned.ordinal,
        state=Run.State.INCOMPLETE if missing else Run.State.FINISHED,
        problem=planned.stimuli[missing[0]].problem if missing else "",
    )


class _Times:
    """When each run began and ended, as far as its calls say."""

    def __init__(self) -> None:
        self.known: dict[tuple[str, int], tuple[datetime, datetime]] = {}

    def add(self, key: tuple[str, int], *moments: datetime | None) -> None:
        for moment in moments:
            if moment is not None:
                first, last = self.known.get(key, (moment, moment))
                self.known[key] = (min(first, moment), max(last, moment))

    def of(self, key: tuple[str, int]) -> tuple[datetime | None, datetime | None]:
        return self.known.get(key, (None, None))


class _Digesting:
    """A file that knows the digest of what was read of it."""

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.sha256 = file, hashlib.sha256()

    def readline(self, size: int = -1) -> bytes:
        line = self.file.readline(size)
        self.sha256.update(line)
        return line


def _calls_create(
    report: ReplayReport, runs: dict[tuple[str, int], Run], stimuli: dict[int, int], times: _Times
) -> str:
    """Read the file once more and write its calls. Returns the digest of its bytes. Raises ReplayStaleError."""
    plan, records = report.plan, hashlib.sha256()
    with report.source.open() as opened:
        file = _Digesting(opened)
        batch: list[Call] = []
        for line in read_lines(file):  # type: ignore[arg-type]
            records.update(line.digest)
            found = plan.entries.get(line.number)
            if found is None:
                continue
            model, ordinal, position, entry = found
            times.add((model, ordinal), line.values["sent_at"], line.values["ended_at"])
            if entry.is_final:
                continue
            run = runs[model, ordinal]
            columns = call_columns(line.values)
            batch.append(
                Call(
                    config_id=run.config_id,
                    run=run,
                    stimulus_id=stimuli[position],
                    attempt=entry.attempt,
                    state=entry.state,
                    kind=entry.kind,
                    worker=NOT_UNNESTED,
                    **columns,
                )
            )
            if len(batch) >= BATCH:
                Call.objects.bulk_create(batch)
                batch = []
        Call.objects.bulk_create(batch)
    if records.hexdigest() != plan.digest:
        raise ReplayStaleError
    return file.sha256.hexdigest()


def call_columns(values: dict[str, Any]) -> dict[str, Any]:
    """The columns of a call that a record fills, in a form that the database takes."""
    reply, escaped = storable_text(values["raw_reply"] or "")
    body, escaped_body = storable_text(values["raw_body"] or "")
    detail, _escaped = storable_text(values["refusal"] or values["detail"] or "")
    response = values["response"]
    if response is not None and not is_storable_json(response):
        body, escaped_body = storable_text(json.dumps(response, ensure_ascii=False))
        response, escaped_body = None, True
    request = values["request"]
    return {
        "asked": values["parameters_asked"] or {},
        "request": request if request is not None else values["parameters_sent"] or {},
        "used": values["parameters_used"] or {},
        "response": response,
        "raw_reply": reply,
        "raw_body": body,
        "escaped": escaped or escaped_body or values["escaped"],
        "detail": detail,
        "model_reported": values["model_reported"] or "",
        "finish_reason": values["finish_reason"] or "",
        "http_status": values["http_status"],
        "input_tokens": values["input_tokens"],
        "cached_tokens": values["cached_tokens"],
        "output_tokens": values["output_tokens"],
        "reasoning_tokens": values["reasoning_tokens"],
        "cost": values["cost"],
        "reserved": values["cost_at_most"] if values["cost"] is None else None,
        "currency": values["currency"] or "",
        "sent": values["sent"],
        "sent_at": values["sent_at"],
        "ended_at": values["ended_at"],
    }


# --- put aside -----------------------------------------------------------------------------------------------------


@transaction.atomic
def replies_set_aside(*, made: ReplyImport, reason: str, actor: User | None) -> int:
    """Count none of the import's runs, and let its file come in again. Returns how many sittings changed.

    Raises NotSetAsideError.
    """
    reason = storable_text(reason.strip())[0][:200]
    if not reason:
        raise NotSetAsideError("no_reason")
    locked = ReplyImport.objects.select_for_update().get(pk=made.pk)
    if locked.set_aside_at is not None:
        raise NotSetAsideError("already")
    locked.set_aside_at, locked.set_aside_by, locked.set_aside_reason = timezone.now(), actor, reason
    return _standing_set(locked, Sitting.Standing.EXCLUDED, "replies_set_aside", reason, actor)


@transaction.atomic
def replies_count_again(*, made: ReplyImport, actor: User | None) -> int:
    """The import's runs count again. Raises NotSetAsideError, also where the same file has come in since."""
    locked = ReplyImport.objects.select_for_update().get(pk=made.pk)
    if locked.set_aside_at is None:
        raise NotSetAsideError("already")
    locked.set_aside_at, locked.set_aside_by, locked.set_aside_reason = None, None, ""
    try:
        with transaction.atomic():
            return _standing_set(locked, Sitting.Standing.COUNTED, "replies_count_again", "", actor)
    except IntegrityError as error:
        if "replyimport_file_once" not in str(error):
            raise
        raise NotSetAsideError("came_again") from error


def _standing_set(made: ReplyImport, standing: str, action: str, reason: str, actor: User | None) -> int:
    made.save(update_fields=["set_aside_at", "set_aside_by", "set_aside_reason"])
    study = made.study
    sittings = made.experiment.runs.values_list("sitting_id", flat=True)
    changed = sittings_set_standing(
        sitting_ids=list(sittings), standing=standing, reason=reason, study=study, actor=actor
    )
    audit_record(
        actor=actor, study=study, action=action, target=made.experiment, detail={"runs": len(changed), "reason": reason}
    )
    return len(changed)
