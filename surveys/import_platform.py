"""What a platform says about people who are there already (Prolific's participants): joined, never invented."""

import dataclasses
import hashlib
from typing import Any
from uuid import UUID

from django.db.models.functions import Lower

from corpus.tables.table import folded
from studies.models import Study, User
from studies.services import audit_record
from surveys.import_report import ImportReport, Named, NewRecord
from surveys.importers.plan import PlannedPerson
from surveys.models import ImportBatch, Participant, PlatformRecord, Survey


def batch_create(
    report: ImportReport, survey: Survey, settings: dict[str, Any], actor: User | None, draft_key: UUID | None
) -> ImportBatch:
    """Where answers came from and what became of each record.

    The files are not kept, nor the names of people who are not in the survey: a withdrawal could not reach them.
    """
    several = len(report.files) > 1
    told = (*report.skipped, *report.conflicts, *report.warnings)
    batch = ImportBatch.objects.create(
        survey=survey,
        format=report.plans[0].format or "",
        files=[
            {
                "name": file.name[:200].replace("\0", ""),
                "sha256": hashlib.sha256(file.data).hexdigest(),
                "bytes": len(file.data),
                "encoding": plan.encoding,
                "delimiter": plan.delimiter,
            }
            for file, plan in zip(report.files, report.plans, strict=True)
        ],
        settings=settings,
        counts=report.counts,
        skipped=[dataclasses.replace(named, respondent="").as_json(several) for named in told],
        made_by=actor,
        draft_key=draft_key,
    )
    report.batches.append(batch)
    return batch


def platform_compare(study: Study, report: ImportReport) -> None:
    """Find each person of the files in the study's surveys: by the visit, else by the external id. Two queries."""
    people = [(number, person) for number, plan in enumerate(report.plans) for person in plan.people]
    names = {person.respondent.lower() for _number, person in people}
    found: dict[str, list[Participant]] = {}
    ours = Participant.objects.filter(survey__instrument__study=study).alias(lowered=Lower("external_id"))
    for participant in ours.filter(lowered__in=names):
        found.setdefault(folded(participant.external_id), []).append(participant)
    latest = _latest_of([participant.pk for several in found.values() for participant in several])
    done: set[int] = set()
    for number, person in people:
        candidates = found.get(folded(person.respondent), [])
        if person.visit and any(participant.visit_id == person.visit for participant in candidates):
            candidates = [participant for participant in candidates if participant.visit_id == person.visit]
        if len(candidates) != 1:
            reason = "unknown_participant" if not candidates else "ambiguous_participant"
            report.skipped.append(Named(number, person.record, reason, respondent=person.respondent))
            continue
        only = candidates[0]
        if latest.get(only.pk) == _said(person):
            report.already += 1
        elif only.pk in done:
            report.skipped.append(Named(number, person.record, "duplicate_respondent"))
        else:
            done.add(only.pk)
            report.people.append(NewRecord(number, person, only.pk, only.survey_id))
    report.respondents = len(report.people)


def platform_store(
    report: ImportReport, *, settings: dict[str, Any], actor: User | None, study: Study, draft_key: UUID | None
) -> None:
    """Within the caller's transaction: a batch for each survey whose people the files name."""
    for survey in Survey.objects.filter(pk__in={new.survey_id for new in report.people}).order_by("pk"):
        batch = batch_create(report, survey, settings, actor, draft_key)
        PlatformRecord.objects.bulk_create(
            PlatformRecord(
                participant_id=new.participant_id,
                batch=batch,
                record=new.planned.record,
                status=new.planned.status[:40],
                seconds=new.planned.seconds,
                data=new.planned.data,
            )
            for new in report.people
            if new.survey_id == survey.pk
        )
        detail = {"survey": survey.slug, **report.counts}
        audit_record(actor=actor, study=study, action="platform_records_import", target=batch, detail=detail)


def _latest_of(participants: list[int]) -> dict[int, tuple[Any, ...]]:
    rows = PlatformRecord.objects.filter(participant__in=participants).order_by("pk")
    return {row.participant_id: (row.status, row.seconds, row.data) for row in rows}


def _said(person: PlannedPerson) -> tuple[Any, ...]:
    return person.status[:40], person.seconds, person.data
