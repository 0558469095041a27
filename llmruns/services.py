"""Configurations, prompts, and the life of an experiment. What happens to a single call is in calls.py."""

import uuid
from collections.abc import Collection, Sequence
from datetime import timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from corpus.models import Instrument, Respondent, Sitting
from corpus.services import sitting_start, sitting_stop
from llmruns.addresses import base_url_check
from llmruns.calls import (
    Outcome,
    calls_sweep,
    cost_columns,
    experiment_settle,
    parameters_of,
    provider_ask,
    question_body,
    reply_columns,
)
from llmruns.catalogue import entry_find
from llmruns.credentials import CredentialUnusableError, key_of
from llmruns.estimate import cap_obstacle
from llmruns.judging import judgings_settle
from llmruns.keys import KeyNameRefusedError, key_name_is_allowed
from llmruns.models import Call, Credential, Currency, Experiment, ModelConfig, Prompt, Run, RunStimulus
from llmruns.parameters import extra_body_problem
from llmruns.pricing import LARGEST, price_at, price_day
from llmruns.providers.base import ProviderReply
from llmruns.queue import judgements_enqueue, queue_length, stimuli_enqueue
from llmruns.replies import classify_reply
from llmruns.sending import judging_due, work_due
from studies.models import Study, User
from studies.services import audit_record

MAX_RUNS, MAX_ATTEMPTS = 100, 50
PAPER_PROMPT = "paper"
OVERDUE = timedelta(seconds=30)  # no message travels longer than this while the queue is empty
TRIAL_SECONDS = 60.0  # somebody waits for the page
TRIAL_WORDS = "кошка сидеть на стол и играть с мяч"  # the prompt's own example: no stimulus is shown to anybody


class LabelTakenError(Exception):
    """The study has a configuration of this name."""


class ExtraBodyRefusedError(Exception):
    """`reason` as of parameters.extra_body_problem."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class SimulationRefusedError(Exception):
    """A simulated model answers in a study that is marked as simulated, and nowhere else."""


class ReplayedModelError(Exception):
    """Its replies were recorded elsewhere: there is nobody to ask."""


class ExperimentRefusedError(Exception):
    """`reason` is one of: nothing, bounds, foreign, replayed, cap (it is no amount, or has no currency), uncappable.

    `uncappable` holds the configurations that cannot be capped, each with the reason of its bound.
    """

    def __init__(self, reason: str, uncappable: Sequence[tuple[ModelConfig, str]] = ()) -> None:
        super().__init__(reason)
        self.reason = reason
        self.uncappable = list(uncappable)


class NotResumableError(Exception):
    """The run is neither paused nor incomplete, its experiment was cancelled, or its replies were imported."""


def model_config_create(
    *,
    study: Study,
    label: str,
    base_url: str,
    model: str,
    actor: User | None,
    key_variable: str = "",
    credential: Credential | None = None,
    temperature: float | None = 1.0,
    top_p: float | None = None,
    max_output_tokens: int | None = None,
    extra_body: dict[str, Any] | None = None,
    folder: str = "",
    timeout: int = 60,
    provider: str = ModelConfig.Provider.OPENAI_COMPATIBLE,
) -> ModelConfig:
    """A model as a respondent of the study. Never edited later: results belong to exactly these parameters.

    What the catalogue knows of the parameters that the model takes is copied. Raises LabelTakenError,
    KeyNameRefusedError, CredentialUnusableError, ExtraBodyRefusedError, addresses.AddressRefusedError,
    SimulationRefusedError.
    """
    if not key_name_is_allowed(key_variable):
        raise KeyNameRefusedError
    if credential is not None and (
        credential.study_id != study.pk or credential.provider != provider or credential.retired_at is not None
    ):
        raise CredentialUnusableError(credential.name, "retired" if credential.retired_at else "foreign")
    if extra_body and (problem := extra_body_problem(extra_body)):
        raise ExtraBodyRefusedError(problem)
    entry = entry_find(study=study, provider=provider, model=model)
    if provider != ModelConfig.Provider.SIMULATED:
        base_url_check(base_url, allow_private=settings.ALLOW_PRIVATE_ENDPOINTS)
    elif not study.simulated:
        raise SimulationRefusedError
    try:
        with transaction.atomic():
            config = ModelConfig.objects.create(
                study=study,
                respondent=Respondent.objects.create(study=study, kind=Respondent.Kind.MODEL),
                label=label,
                provider=provider,
                base_url=base_url,
                model=model,
                key_variable=key_variable,
                credential=credential,
                temperature=temperature,
                top_p=top_p,
                max_output_tokens=max_output_tokens,
                extra_body=extra_body or {},
                accepts=entry.accepts if entry else None,
                folder=folder,
                timeout=timeout,
            )
            audit_record(
                actor=actor,
                study=study,
                action="model_config_create",
                target=config,
                detail={
                    "label": label,
                    "provider": provider,
                    "base_url": base_url,
                    "model": model,
                    "key_variable": key_variable,
                    "credential": credential.name if credential else "",
                },
            )
    except IntegrityError as error:
        if "modelconfig_unique_label" in str(error):
            raise LabelTakenError from error
        raise
    return config


def paper_prompt_text() -> str:
    return (Path(settings.BASE_DIR) / "study" / "prompt.ru.txt").read_text(encoding="utf-8").rstrip("\n")


@transaction.atomic
def prompt_ensure(*, study: Study, actor: User | None = None) -> Prompt:
    """The version that has the paper's text to the letter; made from study/prompt.ru.txt where there is none.

    Never another one of that name: who asks for the paper's prompt is shown this text.
    """
    Study.objects.select_for_update().get(pk=study.pk)
    own = Prompt.objects.filter(study=study, slug=PAPER_PROMPT).order_by("version")
    prompt = own.filter(purpose=Prompt.Purpose.ANSWER, text=paper_prompt_text()).first()
    if prompt is None:
        newest = own.last()
        version = newest.version + 1 if newest else 1
        prompt = Prompt.objects.create(study=study, slug=PAPER_PROMPT, version=version, text=paper_prompt_text())
        audit_record(actor=actor, study=study, action="prompt_ensure", target=prompt)
    return prompt


def experiment_launch(
    *,
    study: Study,
    instrument: Instrument,
    prompt: Prompt,
    configs: Sequence[ModelConfig],
    actor: User | None,
    title: str = "",
    runs: int = 5,
    max_attempts: int = 10,
    deadline: int = 900,
    launch_key: uuid.UUID | None = None,
    cap: Decimal | None = None,
    currency: str = "",
) -> Experiment:
    """Open the runs with their sittings and put the work into the queue. The same launch_key launches once.

    `cap`: so much in `currency` is never passed by what calls cost and what those in flight can cost at most.

    Raises ExperimentRefusedError, keys.KeyMissingError, addresses.AddressRefusedError, InstrumentIncompleteError.
    """
    if not configs:
        raise ExperimentRefusedError("nothing")
    if not (1 <= runs <= MAX_RUNS and 1 <= max_attempts <= MAX_ATTEMPTS and 1 <= deadline <= 86_400):
        raise ExperimentRefusedError("bounds")
    if {instrument.study_id, prompt.study_id, *(config.study_id for config in configs)} != {study.pk}:
        raise ExperimentRefusedError("foreign")
    if any(config.provider == ModelConfig.Provider.REPLAYED for config in configs):
        raise ExperimentRefusedError("replayed")
    if cap is not None:
        _cap_check(cap, currency, configs, prompt)
    for config in configs:
        key_of(config)
        if config.provider != ModelConfig.Provider.SIMULATED:
            base_url_check(config.base_url, allow_private=settings.ALLOW_PRIVATE_ENDPOINTS)
    try:
        with transaction.atomic():
            experiment = Experiment.objects.create(
                study=study,
                instrument=instrument,
                prompt=prompt,
                title=title or instrument.title,
                runs_planned=runs,
                max_attempts=max_attempts,
                deadline=deadline,
                launched_by=actor,
                launch_key=launch_key,
                cap=cap,
                currency=currency if cap is not None else "",
            )
            # In one order everywhere: two launches of the same configurations must not wait for each other.
            for config in sorted(configs, key=lambda config: config.respondent_id):
                for ordinal in range(1, runs + 1):
                    _run_open(experiment, config, ordinal)
            audit_record(
                actor=actor,
                study=study,
                action="experiment_launch",
                target=experiment,
                detail={
                    "configs": [config.label for config in configs],
                    "runs": runs,
                    "attempts": max_attempts,
                    **({"cap": str(cap), "currency": currency} if cap is not None else {}),
                },
            )
            transaction.on_commit(partial(_experiment_enqueue, experiment.pk))
    except IntegrityError as error:
        if launch_key is None or "experiment_launched_once" not in str(error):
            raise
        return Experiment.objects.get(study=study, launch_key=launch_key)
    return experiment


def _cap_check(cap: Decimal, currency: str, configs: Sequence[ModelConfig], prompt: Prompt) -> None:
    if not 0 < cap <= LARGEST or currency not in Currency.values:
        raise ExperimentRefusedError("cap")
    reasons = [(config, cap_obstacle(config, currency, prompt.text)) for config in configs]
    found = [(config, reason) for config, reason in reasons if reason]
    if found:
        raise ExperimentRefusedError("uncappable", found)


def _run_open(experiment: Experiment, config: ModelConfig, ordinal: int) -> None:
    sitting = sitting_start(
        respondent=config.respondent,
        instrument=experiment.instrument,
        source_label=f"{config.label} · run {ordinal}",
    )
    run = Run.objects.create(experiment=experiment, config=config, sitting=sitting, ordinal=ordinal)
    now = timezone.now()
    RunStimulus.objects.bulk_create(
        RunStimulus(run=run, stimulus_id=stimulus_id, due_at=now) for stimulus_id in sitting.order
    )


def _experiment_enqueue(experiment_id: int) -> None:
    stimuli_enqueue(work_due(experiment_id=experiment_id))


@transaction.atomic
def experiment_cancel(*, experiment: Experiment, actor: User | None) -> int:
    """Stop sending. Calls in flight end and are kept in the log; runs that are not finished have no score.

    Returns how many runs were cancelled. Cancelling twice is cancelling once.
    """
    runs = list(
        Run.objects.select_for_update()
        .filter(experiment=experiment)
        .exclude(state__in=[Run.State.FINISHED, Run.State.CANCELLED])
        .order_by("pk")
    )
    locked = Experiment.objects.select_for_update().get(pk=experiment.pk)
    if locked.state not in (Experiment.State.RUNNING, Experiment.State.PAUSED):
        return 0
    for run in runs:
        run.state = Run.State.CANCELLED
        run.save(update_fields=["state"])
        sitting_stop(sitting_id=run.sitting_id, reason="cancelled")
    locked.state, locked.problem, locked.ended_at = Experiment.State.CANCELLED, "", timezone.now()
    locked.save(update_fields=["state", "problem", "ended_at"])
    audit_record(
        actor=actor,
        study=locked.study,
        action="experiment_cancel",
        target=locked,
        detail={"runs_cancelled": len(runs)},
    )
    return len(runs)


def run_resume(*, run: Run, actor: User | None) -> None:
    """Ask again what has no answer yet. What has one is not touched. Raises NotResumableError, KeyMissingError."""
    if run.experiment.imported:
        raise NotResumableError
    _runs_resume(runs=[run], actor=actor)


def experiment_resume(*, experiment: Experiment, actor: User | None, run_ids: Collection[int] | None = None) -> int:
    """Resume every paused or incomplete run, or those named. Returns how many.

    An experiment that is paused as a whole goes on, and its runs with it, even if none of them stands still by itself.
    Raises NotResumableError, KeyMissingError.
    """
    if experiment.imported:
        raise NotResumableError
    runs = experiment.runs.filter(state__in=RESUMABLE).select_related("config__credential")
    if run_ids is not None:
        runs = runs.filter(pk__in=run_ids)
    found = list(runs)
    if found:
        return _runs_resume(runs=found, actor=actor)
    if run_ids is not None:
        raise NotResumableError
    return _experiment_go_on(experiment, actor)


@transaction.atomic
def _experiment_go_on(experiment: Experiment, actor: User | None) -> int:
    locked = Experiment.objects.select_for_update(no_key=True).get(pk=experiment.pk)
    if locked.state != Experiment.State.PAUSED:
        raise NotResumableError
    locked.state, locked.problem, locked.waits_for_money = Experiment.State.RUNNING, "", False
    locked.save(update_fields=["state", "problem", "waits_for_money"])
    audit_record(actor=actor, study=locked.study, action="experiment_resume", target=locked, detail={"runs": []})
    transaction.on_commit(partial(_experiment_enqueue, locked.pk))
    return locked.runs.filter(state__in=[Run.State.PENDING, Run.State.RUNNING]).count()


RESUMABLE = [Run.State.PAUSED, Run.State.INCOMPLETE]


def _runs_resume(*, runs: Sequence[Run], actor: User | None) -> int:
    calls_sweep()
    for run in runs:
        key_of(run.config)
    with transaction.atomic():
        locked = list(
            Run.objects.select_for_update(of=("self",))
            .select_related("experiment__study")
            .filter(pk__in=[run.pk for run in runs], state__in=RESUMABLE, sitting__state=Sitting.State.OPEN)
            .order_by("pk")
        )
        if not locked:
            raise NotResumableError
        experiment = Experiment.objects.select_for_update().get(pk=locked[0].experiment_id)
        if experiment.state == Experiment.State.CANCELLED:
            raise NotResumableError
        for run in locked:
            run.state, run.problem, run.reason = Run.State.RUNNING, "", ""
            run.save(update_fields=["state", "problem", "reason"])
        # Everything open gets a new deadline and is due now.
        RunStimulus.objects.filter(run__in=locked).exclude(state=RunStimulus.State.DONE).update(
            state=RunStimulus.State.TODO, failures=0, failing_since=None, problem="", due_at=timezone.now()
        )
        experiment.state, experiment.problem, experiment.ended_at = Experiment.State.RUNNING, "", None
        experiment.save(update_fields=["state", "problem", "ended_at"])
        audit_record(
            actor=actor,
            study=locked[0].experiment.study,
            action="experiment_resume",
            target=experiment,
            detail={"runs": [run.pk for run in locked]},
        )
        transaction.on_commit(partial(_experiment_enqueue, experiment.pk))
    return len(locked)


def model_try(*, config: ModelConfig, actor: User | None) -> Call:
    """Send one message now and wait for the reply, a minute at most. Logged as a trial; nobody's answer.

    Raises ReplayedModelError.
    """
    if config.provider == ModelConfig.Provider.REPLAYED:
        raise ReplayedModelError
    body = question_body(config, prompt_ensure(study=config.study, actor=actor).text.replace("{words}", TRIAL_WORDS))
    with transaction.atomic():
        call = Call.objects.create(
            config=config,
            purpose=Call.Purpose.TRIAL,
            asked=parameters_of(config),
            request=body,
            price=price_at(config, price_day(timezone.now())),
        )
        audit_record(actor=actor, study=config.study, action="model_try", target=call)
    _trial_record(call, provider_ask(config, body, longest=TRIAL_SECONDS))
    return call


def _trial_record(call: Call, outcome: Outcome) -> None:
    columns = reply_columns(outcome) | cost_columns(call, outcome, call.request)
    if isinstance(outcome, ProviderReply):
        verdict = classify_reply(outcome.text, outcome.finish_reason, outcome.refusal)
        columns["state"] = Call.State.OK if verdict.answer is not None else Call.State.BAD_REPLY
        columns["kind"] = verdict.error or ""
    else:
        columns["state"], columns["kind"] = Call.State.FAILED, outcome.kind
    for name, value in columns.items():
        setattr(call, name, value)
    call.save(update_fields=list(columns))


def work_recover(*, everything: bool) -> int:
    """Find what was lost on the way: calls of dead workers, messages of a dead broker, ends that nobody noticed.

    `everything`: whatever is to be asked is put into the queue again, as at a worker's start. Else what is overdue, and
    only when the queue is empty, so that a long queue does not grow by itself. Doubled messages are harmless.
    Returns how many were sent.
    """
    calls_sweep()
    going = [Experiment.State.RUNNING, Experiment.State.PAUSED]
    for experiment_id in Experiment.objects.filter(state__in=going).values_list("pk", flat=True):
        experiment_settle(experiment_id=experiment_id)
    judgings_settle()
    overdue = timedelta(0) if everything else OVERDUE
    stimuli, judgements = work_due(overdue=overdue), judging_due(overdue=overdue)
    if not (stimuli or judgements) or not (everything or queue_length() == 0):
        return 0
    stimuli_enqueue(stimuli)
    judgements_enqueue(judgements)
    return len(stimuli) + len(judgements)
