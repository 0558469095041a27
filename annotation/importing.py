"""The only writer of imported judgements: an import makes a closed campaign, all of it or nothing."""

import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from annotation.import_answers import Answers, RespondentsNamed
from annotation.import_raters import NEW, Whom, raters_create, raters_match
from annotation.import_report import Compared, ImportReport
from annotation.import_votes import Said, Vote, votes_of
from annotation.importers.plan import Planned, Source
from annotation.importers.planning import plan_files
from annotation.models import Campaign, Item, JudgementImport, Place, Rater, Seat
from annotation.versions import labels_freeze
from corpus.display import display_text
from corpus.models import Instrument
from corpus.tables.faults import FaultError
from corpus.tokens import is_refusal
from scoring.bulk import GivenJudgement, round_import
from scoring.models import Criterion, Judgement, Round
from scoring.services import PAPER_RUBRIC, RUBRICS
from studies.models import Study, User
from studies.services import audit_record

BATCH = 5_000
MAX_TITLE = 200
COMPARED = 3
SECONDS_COUNTED = 300.0  # of a Seat, for one answer
_ADDRESS = re.compile(r"\S*@\S*")


class NoTitleError(Exception):
    """The campaign that is to hold the judgements has no title of 1 to 200 characters."""


class ImportStaleError(Exception):
    """What would happen now is not what the person has seen."""


@dataclass(frozen=True)
class Target:
    title: str
    rubric: str = PAPER_RUBRIC


@transaction.atomic
def judgements_import(
    *,
    study: Study,
    files: Sequence[Source],
    format_name: str | None,
    settings: dict[str, Any],
    target: Target,
    actor: User | None,
    dry_run: bool = False,
    shown: str | None = None,
    draft_key: UUID | None = None,
    named: RespondentsNamed | None = None,
) -> ImportReport:
    """Import the judgements of the files as one closed campaign, or (`dry_run`) say what would happen.

    The same judgements again change nothing: `already` says which import has them. A fault in any file, or in what was
    chosen, stores nothing; it stands in the report. `shown` is the digest of the dry run that the person has seen.
    `named` finds respondents by the names that platforms gave them. Some twenty queries, and one insert per 5,000 rows.

    Raises NoTitleError, ImportStaleError.
    """
    report = ImportReport(list(files), plan_files(files, format_name=format_name, settings=settings))
    study = Study.objects.select_for_update(no_key=True).get(pk=study.pk)  # two imports of one file come in a row
    if report.fault:
        return report
    plan = report.plan
    report.skipped, report.conflicts, report.warnings = [*plan.skipped], [*plan.conflicts], [*plan.warnings]
    try:
        _judge(report, study, settings, target, named)
    except FaultError as error:
        report.error, report.votes = error.fault, []
        return report
    content = _content_digest(report, study, settings)
    _compare(report, study, content)
    report.digest = digest_of([report.as_json(), settings, target.title, target.rubric])
    if shown is not None and shown != report.digest:
        raise ImportStaleError
    if dry_run or report.already or not report.votes:
        return report
    title = target.title.strip()
    if not title or len(title) > MAX_TITLE or "\0" in title:
        raise NoTitleError
    _store(report, study, title, target.rubric, settings, actor, draft_key)
    return report


def digest_of(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()


# --- what the files say, in terms of the study ----------------------------------------------------------------------


def _judge(
    report: ImportReport, study: Study, settings: dict[str, Any], target: Target, named: RespondentsNamed | None
) -> None:
    """Raises FaultError."""
    planned = report.plan.judgements
    criteria = _criteria(planned, settings, target)
    people = list(dict.fromkeys(one.annotator for one in planned))
    report.people = raters_match(study, people, settings.get("raters") or {})
    answers = Answers(study, {one.answer for one in planned}, settings.get("keys") or {}, named)
    said: list[Said] = []
    for one in planned:
        found = answers.find(one.answer)
        if found.answer is None:
            report.skipped.append(one.named(found.reason))
        elif values := _values(one, criteria, report):
            said.append(Said(one, found.answer, report.people[one.annotator], values))
        else:
            report.skipped.append(one.named("nothing_usable"))
    report.votes = votes_of(said)
    for before, _later in sorted(report.replaced, key=lambda pair: (pair[0].planned.file, pair[0].planned.record)):
        report.skipped.append(before.planned.named("duplicate"))
    used = {pk for vote in report.votes for pk in vote.values}
    report.criteria = sorted((c for c in criteria.values() if c.pk in used), key=lambda c: c.position)


def _criteria(planned: Sequence[Planned], settings: dict[str, Any], target: Target) -> dict[str, Criterion]:
    """By the name in the file. Raises FaultError `unknown_criteria`, `rule_criterion`, `doubled_criterion`."""
    if target.rubric not in RUBRICS:
        raise FaultError("bad_setting", detail="rubric")
    codes = settings.get("codes") or {}
    names = list(dict.fromkeys(name for one in planned for name in one.values))
    known = {criterion.code: criterion for criterion in RUBRICS[target.rubric]().criteria.all()}
    unknown = [name for name in names if codes.get(name, name) not in known]
    if unknown:
        raise FaultError("unknown_criteria", detail=", ".join(unknown)[:200])
    found = {name: known[codes.get(name, name)] for name in names}
    for name, criterion in found.items():
        if criterion.kind == Criterion.Kind.RULE:
            raise FaultError("rule_criterion", detail=name[:80])
    doubled = [code for code, n in Counter(one.code for one in found.values()).items() if n > 1]
    if doubled:
        raise FaultError("doubled_criterion", detail=", ".join(doubled))
    return found


def _values(planned: Planned, criteria: dict[str, Criterion], report: ImportReport) -> dict[int, float]:
    """What was said, by criterion; a value that the scale has not is a gap and a conflict."""
    values = {}
    for name, value in planned.values.items():
        if value is None:
            continue
        if value in criteria[name].scale:
            values[criteria[name].pk] = value
        else:
            report.conflicts.append(planned.named("outside_scale", name, f"{value:g}"))
            planned.values[name] = None
    return values


# --- what is here of it already -------------------------------------------------------------------------------------


def _content_digest(report: ImportReport, study: Study, settings: dict[str, Any]) -> str:
    """Of what the judgements say, whatever file and format they come in. Empty while somebody in it is not here yet.

    Who is said to be *new* may be the one whom the first run of the same command has made.
    """
    said = {name: rater for name, rater in (settings.get("raters") or {}).items() if rater != NEW}
    people = raters_match(study, report.people, said)
    if any(people[vote.planned.annotator].pk is None for vote in report.votes):
        return ""
    return _rows_digest((vote.answer.pk, people[vote.planned.annotator].pk, vote.values) for vote in report.votes)


def _rows_digest(rows: Any) -> str:
    return digest_of(sorted([answer, rater, sorted(values.items())] for answer, rater, values in rows))


def _compare(report: ImportReport, study: Study, content: str) -> None:
    """Earlier imports of the same people's judgements, and the one that is this very import. Three queries."""
    if content and report.votes:
        earlier = JudgementImport.objects.filter(campaign__study=study, digest=content)
        report.already = earlier.select_related("campaign").order_by("pk").first()
    judges = {whom.rater.judge_id: whom.rater.pk for whom in report.people.values() if whom.rater}
    if not judges or not report.votes:
        return
    stored: dict[int, dict[tuple[int, int, int], float]] = defaultdict(dict)
    rows = Judgement.objects.filter(
        round__study=study, round__purpose=Round.Purpose.IMPORTED, judge__in=judges, retracted_at__isnull=True
    )
    for round_id, *key, value in rows.values_list("round_id", "answer_id", "judge_id", "criterion_id", "value"):
        stored[round_id][key[0], judges[key[1]], key[2]] = value
    told = {(v.answer.pk, v.whom.pk or 0, pk): value for v in report.votes for pk, value in v.values.items()}
    campaigns = Campaign.objects.filter(round__in=stored).select_related("judgement_import")
    found = []
    for campaign in campaigns.order_by("pk"):
        there = stored[campaign.round_id]
        both = told.keys() & there.keys()
        same = sum(told[key] == there[key] for key in both)
        if both:
            gone = len(there) - len(both)
            found.append(Compared(campaign, same, len(both) - same, len(told) - len(both), gone))
    report.compared = sorted(found, key=lambda one: (-one.same, one.campaign.pk))[:COMPARED]
    within = next((one.campaign for one in report.compared if one.is_within), None)
    if within is not None and report.already is None:
        report.already = within.judgement_import


# --- storing --------------------------------------------------------------------------------------------------------


def _store(
    report: ImportReport,
    study: Study,
    title: str,
    rubric: str,
    settings: dict[str, Any],
    actor: User | None,
    draft_key: UUID | None,
) -> None:
    now = timezone.now()
    raters = raters_create(study, [vote.whom for vote in report.votes])
    by_pk = {criterion.pk: criterion for criterion in RUBRICS[rubric]().criteria.all()}
    round_ = round_import(
        study=study,
        rubric=RUBRICS[rubric](),
        judgements=chain(
            (given for vote in report.votes for one in vote.said for given in _given(one, raters, by_pk, now)),
            (given for one, later in report.replaced for given in _given(one, raters, by_pk, now, later)),
        ),
    )
    per_answer = Counter(vote.answer.pk for vote in report.votes)
    campaign = Campaign(
        round=round_,
        study=study,
        title=title,
        state=Campaign.State.CLOSED,
        closed_at=round_.closed_at,
        raters_per_answer=max(per_answer.values()),
        seed=0,
        selection={"imported": report.plan.formats, "answers": len(per_answer)},
        n_items=len(per_answer),
        n_places=len(report.votes),
    )
    items = _items(campaign, report)
    campaign.with_refusals = any(item.is_refusal for item in items.values())
    campaign.save()
    campaign.criteria.set(report.criteria)
    Item.objects.bulk_create(items.values(), batch_size=BATCH)
    _places_create(campaign, items, report.votes, raters, now)
    labels_freeze(campaign=campaign, actor=actor)
    report.imported = JudgementImport.objects.create(
        campaign=campaign,
        format=", ".join(dict.fromkeys(report.plan.formats))[:40],
        settings=_kept(settings) | {"rubric": rubric},
        files=[_file(source, number, report) for number, source in enumerate(report.files)],
        digest=_rows_digest((vote.answer.pk, raters[vote.whom].pk, vote.values) for vote in report.votes),
        counts=report.counts | {"reasons": report.reasons},
        actor=actor,
        draft_key=draft_key,
    )
    audit_record(
        actor=actor,
        study=study,
        action="judgements_import",
        target=campaign,
        detail={"import": report.imported.pk, **report.counts, "raters": sorted(r.pseudonym for r in raters.values())},
    )


def _given(
    said: Said, raters: dict[Whom, Rater], criteria: dict[int, Criterion], now: datetime, later: Said | None = None
) -> Iterator[GivenJudgement]:
    """The judgements of a record; with the one that took its place they are history: retracted when that was made."""
    made_at = said.planned.made_at or now
    retracted_at = max(made_at, later.planned.made_at or now) if later else None
    for pk, value in said.values.items():
        judge_id = raters[said.whom].judge_id
        yield GivenJudgement(said.answer.pk, criteria[pk], judge_id, value, made_at, retracted_at)


def _items(campaign: Campaign, report: ImportReport) -> dict[int, Item]:
    """By answer, the answers of a stimulus together."""
    made_for = {row.pk: row for row in Instrument.objects.filter(study=campaign.study_id)}
    answers = {vote.answer.pk: vote.answer for vote in report.votes}
    in_order = sorted(answers.values(), key=lambda one: (one.instrument_id, one.position, one.pk))
    return {
        answer.pk: Item(
            campaign=campaign,
            answer_id=answer.pk,
            position=position,
            stimulus_text=answer.stimulus_text,
            display_text=display_text(answer.text, lower_case=made_for[answer.instrument_id].lower_case),
            language=made_for[answer.instrument_id].language,
            is_refusal=is_refusal(answer.text, made_for[answer.instrument_id].refusal_below),
        )
        for position, answer in enumerate(in_order, start=1)
    }


def _places_create(
    campaign: Campaign, items: dict[int, Item], votes: Sequence[Vote], raters: dict[Whom, Rater], now: datetime
) -> None:
    """A judged place per vote, numbered within its item, and a seat per rater with what they did."""
    numbers: Counter[int] = Counter()
    seats: dict[int, Seat] = {}
    places = []
    in_time = sorted(votes, key=lambda vote: vote.made_at or now)
    for vote in in_time:
        rater = raters[vote.whom]
        seat = seats.setdefault(rater.pk, Seat(campaign=campaign, rater=rater, revision=1))
        numbers[vote.answer.pk] += 1
        seat.done += 1
        if vote.seconds is not None:
            seat.timed += 1
            seat.seconds += min(vote.seconds, SECONDS_COUNTED)
        at = vote.made_at or now
        places.append(
            Place(
                item=items[vote.answer.pk],
                campaign=campaign,
                number=numbers[vote.answer.pk],
                state=Place.State.DONE,
                rater=rater,
                held_at=at,
                done_at=at,
                ordinal=seat.done,
                version=1,
                seconds=vote.seconds,
                comment=vote.comment,
            )
        )
    Place.objects.bulk_create(places, batch_size=BATCH)
    Seat.objects.bulk_create(seats.values(), batch_size=BATCH)


def _kept(settings: dict[str, Any]) -> dict[str, Any]:
    """What was chosen, without what names people or answers."""
    return {name: value for name, value in settings.items() if name not in ("keys", "raters") and value}


def _file(source: Source, number: int, report: ImportReport) -> dict[str, Any]:
    """The files themselves are not kept. A name may be an annotator's address, which is not kept either."""
    plan = report.plan
    return {
        "name": _ADDRESS.sub("…", source.name)[:200],
        "bytes": len(source.data),
        "sha256": hashlib.sha256(source.data).hexdigest(),
        "format": plan.formats[number],
        "encoding": plan.encodings[number],
    }


def study_raters(study: Study) -> list[Rater]:
    """Everybody whom an annotator can be, with names, for researchers. One query."""
    return list(Rater.objects.filter(study=study).select_related("user").order_by("pk"))
