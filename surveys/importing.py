"""The only writer of imported answers and platform records."""

import contextlib
import dataclasses
import hashlib
import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from corpus.bulk import BATCH, GivenAnswer, GivenSitting, sitting_extend, sittings_import
from corpus.checks import finding_text
from corpus.models import Answer, Instrument, Respondent, Sitting
from corpus.services import InstrumentIncompleteError, instrument_check
from corpus.tables.faults import Fault
from corpus.tables.table import folded
from studies.models import Study, User
from studies.services import audit_record, secret_digest
from surveys.import_known import known_people, same_files
from surveys.import_platform import batch_create, platform_compare, platform_store
from surveys.import_report import ImportReport, Named, NewAnswer, SourceFile
from surveys.importers.formats import plan_file
from surveys.importers.items import Item
from surveys.importers.plan import UNNAMED, Plan, PlannedAnswer
from surveys.models import Consent, ImportBatch, ImportedAnswer, Participant, Platform, Survey
from surveys.services import survey_create, withdrawn_digest

NAMED_PROBLEMS = 5  # of an instrument that is not complete; its own page has them all


class ImportTargetError(Exception):
    """The survey that is to hold the answers cannot: `code` is one of `import_words.TARGETS`."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class ImportStaleError(Exception):
    """What would happen now is not what the person has seen."""


@dataclass(frozen=True)
class Target:
    """Where the answers go: a survey of the instrument for imported answers, by its title; new where none has it.

    `statement` says how the people consented, in the words of whoever imports; a new survey needs one.
    """

    title: str
    statement: str = ""
    publication: bool = False  # the consent covers publishing the answers
    third_parties: bool = False  # and handing them to others, such as the provider of a model that judges


@dataclass
class Person:
    """What is there of one external id."""

    participant: Participant | None = None
    sitting: Sitting | None = None
    answers: dict[int, tuple[str, str]] = field(default_factory=dict)  # by stimulus number: outcome and text
    external_id: str = ""
    new: list[NewAnswer] = field(default_factory=list)


@transaction.atomic
def answers_import(
    *,
    instrument: Instrument,
    files: Sequence[SourceFile],
    format_name: str | None,
    settings: dict[str, Any],
    target: Target | None,
    actor: User | None,
    dry_run: bool = False,
    shown: str | None = None,
    draft_key: UUID | None = None,
) -> ImportReport:
    """Import the answers of the files, or (`dry_run`) say what would happen. Repeating brings in only what is new.

    An answer that is there with another text stays and is named as a conflict. A fault in any file stores nothing; it
    stands in the report. `target` may be missing in a dry run, and for Prolific's participants, which are joined to
    people who are there. A dozen queries, and one insert per 2,000 rows.

    `shown` is the digest of the dry run that the person has seen; where it would come out otherwise now, nothing is
    stored. `draft_key` is that of the draft it is imported from, kept with the batch.

    Raises ImportTargetError, ImportStaleError.
    """
    stimuli = list(instrument.stimuli.order_by("position"))
    items = [Item(stimulus.position, stimulus.text, stimulus.is_practice, stimulus.original) for stimulus in stimuli]
    plans = [plan_file(file.data, format_name=format_name, settings=settings, items=items) for file in files]
    study = Study.objects.select_for_update().get(pk=instrument.study_id)  # two imports of one file come in a row
    report = ImportReport(list(files), plans)
    if not report.fault and any(plan.answers for plan in plans):
        plans[0].error = _unfit(instrument)
    if report.fault:
        return report
    for number, plan in enumerate(plans):
        report.skipped += [Named(number, skip.record, skip.reason, skip.item) for skip in plan.skipped]
        report.warnings += [Named(number, skip.record, skip.reason, skip.item) for skip in plan.warnings]
        report.notices += [(number, notice) for notice in plan.notices]
    report.notices += same_files(study, report)
    if any(plan.people for plan in plans):
        platform_compare(study, report)
        _seal(report, settings, target, shown)
        if not dry_run and report.people:
            platform_store(report, settings=settings, actor=actor, study=study, draft_key=draft_key)
        return report
    survey = report.survey = _survey_of(instrument, target)
    people = _compare(report, study, survey)
    report.notices += known_people(study, survey, [person.external_id for person in people])
    report.respondents = len(people)
    report.incomplete = sum(
        len(person.answers) < sum(not stimulus.is_practice for stimulus in stimuli) for person in people
    )
    _seal(report, settings, target, shown)
    if dry_run or not people:
        return report
    if target is None:
        raise ImportTargetError("no_title")
    survey = survey or _survey_create(instrument, target, actor)
    _store(report, people, survey, {stimulus.position: stimulus.pk for stimulus in stimuli}, settings, actor, draft_key)
    return report


def _unfit(instrument: Instrument) -> Fault | None:
    """Why the import could not freeze the instrument; said by the dry run too."""
    if instrument.state == Instrument.State.FROZEN:
        return None
    try:  # locked, so that nobody takes something out of it before it is frozen
        instrument_check(Instrument.objects.select_for_update().get(pk=instrument.pk))
    except InstrumentIncompleteError as error:
        return Fault("instrument_incomplete", detail="; ".join(map(finding_text, error.problems[:NAMED_PROBLEMS])))
    return None


def digest_of(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()


def _seal(report: ImportReport, settings: dict[str, Any], target: Target | None, shown: str | None) -> None:
    """Raises ImportStaleError."""
    report.digest = digest_of([report.as_json(), settings, target and dataclasses.asdict(target)])
    if shown is not None and shown != report.digest:
        raise ImportStaleError


def _survey_of(instrument: Instrument, target: Target | None) -> Survey | None:
    """The survey that the answers go to, where it is there already; it keeps the consent it was made with."""
    if target is None:
        return None
    title = target.title.strip()
    if not title or len(title) > 200 or "\0" in title + target.statement:
        raise ImportTargetError("no_title")
    survey = (
        Survey.objects.filter(instrument=instrument, platform=Platform.IMPORTED, title=title)
        .select_related("consent_document")
        .first()
    )
    statement = target.statement.replace("\r\n", "\n").strip()
    if survey is None and not statement:
        raise ImportTargetError("no_statement")
    if survey and not _agrees(survey, target, statement):
        raise ImportTargetError("other_statement")
    return survey


def _agrees(survey: Survey, target: Target, statement: str) -> bool:
    """Whether what is now said of the consents is what the survey was made with; nothing said is no other thing."""
    covers = (survey.publication_document_id is not None, survey.third_party_document_id is not None)
    said = (target.publication, target.third_parties)
    if not statement:
        return not any(now and not then for now, then in zip(said, covers, strict=True))
    return survey.consent_document.text == statement and said == covers


def _survey_create(instrument: Instrument, target: Target, actor: User | None) -> Survey:
    return survey_create(
        instrument=instrument,
        title=target.title.strip(),
        contact="",
        consent_text=target.statement,
        publication_text=target.statement if target.publication else "",
        third_party_text=target.statement if target.third_parties else "",
        platform=Platform.IMPORTED,
        state=Survey.State.CLOSED,
        actor=actor,
    )


def _people_of(survey: Survey | None) -> dict[str, Person]:
    """Everybody in the survey, by folded external id. Two queries."""
    people: dict[str, Person] = {}
    if survey is None:
        return people
    by_sitting: dict[int, Person] = {}
    sittings = Sitting.objects.filter(respondent__participant__survey=survey, ordinal=1)
    for sitting in sittings.select_related("respondent__participant"):
        participant = sitting.respondent.participant
        person = Person(participant, sitting, external_id=participant.external_id)
        people[folded(participant.external_id)] = by_sitting[sitting.pk] = person
    answers = Answer.objects.filter(sitting__in=list(by_sitting)).values_list(
        "sitting_id", "stimulus__position", "outcome", "text"
    )
    for sitting_id, number, outcome, text in answers:
        by_sitting[sitting_id].answers[number] = (outcome, text)
    return people


def _withdrawn_of(study: Study) -> set[str]:
    """Digests of the ids of those who took their answers back, whichever survey they were in. One query."""
    gone = Participant.objects.filter(survey__instrument__study=study).exclude(withdrawn_digest="")
    return set(gone.values_list("withdrawn_digest", flat=True))


def _own_of(study: Study, plans: Sequence[Plan]) -> set[str]:
    """The external ids of the files that this study itself has given out: its own export. One query."""
    given: dict[UUID, set[str]] = {}
    for external_id in {external_id for plan in plans for external_id in plan.external_ids.values()}:
        with contextlib.suppress(ValueError):
            given.setdefault(UUID(external_id), set()).add(external_id)
    ours = Respondent.objects.filter(study=study, public_id__in=given) if given else Respondent.objects.none()
    return {external_id for public_id in ours.values_list("public_id", flat=True) for external_id in given[public_id]}


def _refused_of(study: Study, plans: Sequence[Plan]) -> dict[str, str]:
    """The external ids of the files of which nothing is taken, and why. Two queries."""
    withdrawn = _withdrawn_of(study)
    refused = dict.fromkeys(_own_of(study, plans), "own_export")
    if withdrawn:
        for external_id in {external_id for plan in plans for external_id in plan.external_ids.values()}:
            if withdrawn_digest(study_id=study.pk, external_id=external_id) in withdrawn:
                refused[external_id] = "withdrawn"
    return refused


def _warn_of_strangers(report: ImportReport, survey: Survey, known: set[str]) -> None:
    """Where people have no names, a longer export should hold those who are here.

    With none of them a column was taken for something else than last time, and everybody would be here twice. A query
    per file.
    """
    for number, plan in enumerate(report.plans):
        nameless = {row for row, external_id in plan.external_ids.items() if external_id.startswith(UNNAMED)}
        if not nameless or any(plan.external_ids[row] in known for row in nameless):
            continue
        kind = (plan.format or "").rpartition("_")[0]
        if survey.import_batches.filter(format__startswith=f"{kind}_").exists():
            first = next(answer.record for answer in plan.answers if answer.respondent in nameless)
            report.warnings.append(Named(number, first, "nobody_known"))


def _compare(report: ImportReport, study: Study, survey: Survey | None) -> list[Person]:
    """Sort the planned answers into new, there already, conflict, withdrawn and exported from here.

    Returns the people with new ones.
    """
    known = _people_of(survey)
    refused = _refused_of(study, report.plans)
    if survey:
        _warn_of_strangers(report, survey, {*known, *refused})
    touched: dict[str, Person] = {}
    for number, plan in enumerate(report.plans):
        for answer in plan.answers:
            external_id = plan.external_ids[answer.respondent]
            key = folded(external_id)
            person = known.setdefault(key, Person(external_id=external_id))
            there = person.answers.get(answer.item)
            if external_id in refused:
                report.skipped.append(Named(number, answer.record, refused[external_id], answer.item))
            elif there is None:
                person.answers[answer.item] = (answer.outcome, answer.text)
                person.new.append(NewAnswer(number, answer))
                report.answers.append(person.new[-1])
                touched[key] = person
            elif there == (answer.outcome, answer.text):
                report.already += 1
            else:
                report.conflicts.append(Named(number, answer.record, "conflict", answer.item, answer.respondent))
    return list(touched.values())


def _store(
    report: ImportReport,
    people: list[Person],
    survey: Survey,
    stimuli: dict[int, int],
    settings: dict[str, Any],
    actor: User | None,
    draft_key: UUID | None,
) -> None:
    now = timezone.now()
    batch = batch_create(report, survey, settings, actor, draft_key)
    newcomers = [person for person in people if person.participant is None]
    respondents = Respondent.objects.bulk_create(
        [
            Respondent(
                study_id=survey.instrument.study_id,
                kind=Respondent.Kind.HUMAN,
                third_parties=survey.third_party_document_id is not None,
            )
            for _person in newcomers
        ],
        batch_size=BATCH,
    )
    participants = Participant.objects.bulk_create(
        [
            Participant(
                respondent=respondent,
                survey=survey,
                digest=secret_digest(secrets.token_urlsafe(32)),  # of a secret that nobody has: no page opens with it
                external_id=person.external_id,
                visit_id=person.new[0].planned.assignment,
            )
            for person, respondent in zip(newcomers, respondents, strict=True)
        ],
        batch_size=BATCH,
    )
    _consents_create(survey, participants)
    answers = sittings_import(
        instrument=survey.instrument,
        source_label=survey.title,
        sittings=[
            GivenSitting(
                respondent,
                [_given(new, stimuli) for new in person.new],
                *_times(person, now),
                standing=person.new[0].planned.standing,
            )
            for person, respondent in zip(newcomers, respondents, strict=True)
        ],
    )
    planned = [new for person in newcomers for new in person.new]
    for person in people:
        if person.sitting is not None:
            given = [_given(new, stimuli) for new in person.new]
            finished_at = _times(person, now)[1]
            answers += sitting_extend(sitting_id=person.sitting.pk, answers=given, finished_at=finished_at)
            planned += person.new
    ImportedAnswer.objects.bulk_create(
        [_origin(answer, new, batch) for answer, new in zip(answers, planned, strict=True)], batch_size=BATCH
    )
    audit_record(
        actor=actor,
        study=survey.instrument.study,
        action="answers_import",
        target=batch,
        detail={"survey": survey.slug, **report.counts},
    )


def _consents_create(survey: Survey, participants: Sequence[Participant]) -> None:
    documents = (survey.consent_document, survey.publication_document, survey.third_party_document)
    Consent.objects.bulk_create(
        [
            Consent(participant=participant, document=document, sha256=document.sha256)
            for document in documents
            if document is not None
            for participant in participants
        ],
        batch_size=BATCH,
    )


def _given(new: NewAnswer, stimuli: dict[int, int]) -> GivenAnswer:
    return GivenAnswer(stimuli[new.planned.item], new.planned.text, new.planned.outcome)


def _times(person: Person, now: datetime) -> tuple[datetime, datetime]:
    """When the sitting began and ended, as far as the source says. Where it does not, the time of the import stands in
    (ImportedAnswer.submitted_at is then empty, and so is the export's column).
    """
    known = [
        moment
        for new in person.new
        for moment in (new.planned.started_at, new.planned.submitted_at)
        if moment is not None
    ]
    return (min(known), max(known)) if known else (now, now)


def _origin(answer: Answer, new: NewAnswer, batch: ImportBatch) -> ImportedAnswer:
    planned: PlannedAnswer = new.planned
    return ImportedAnswer(
        answer=answer,
        batch=batch,
        file=new.file,
        record=planned.record,
        assignment=planned.assignment,
        status=planned.status,
        started=planned.started or "",
        submitted=planned.submitted or "",
        submitted_at=planned.submitted_at,
        duration_ms=planned.duration_ms,
    )
