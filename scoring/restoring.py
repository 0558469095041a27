"""Rounds of judgements of a published dataset, as they stand in it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.utils import timezone

from scoring.models import Criterion, Judge, Judgement, Round, Rubric
from scoring.services import ValueOutsideScaleError, round_close
from studies.models import Study

BATCH = 5_000


class SharingUnknownError(Exception):
    """A copy of a judgement names an original that is not there or is a copy itself."""


@dataclass(frozen=True, slots=True)
class RestoredJudgement:
    round: Round
    answer_id: int
    criterion: Criterion
    judge: Judge
    value: float
    not_attempt: bool
    confidence: float | None
    shared_from_answer: int | None
    order: int  # among the judgements of its answer: the latest of a judge stands


def round_restore(
    *, study: Study, rubric: Rubric, purpose: str, guideline_version: int | None, adjudicates: Round | None
) -> Round:
    """An empty round, open until `rounds_close`. What raters judged elsewhere is *imported* here."""
    if purpose == Round.Purpose.RATING:
        purpose = Round.Purpose.IMPORTED
    return Round.objects.create(
        study=study, rubric=rubric, purpose=purpose, guideline_version=guideline_version, adjudicates=adjudicates
    )


@transaction.atomic
def judgements_restore(judgements: Sequence[RestoredJudgement]) -> int:
    """The judgements, copies after their originals. When they were made is not in a published dataset: the time of this
    import stands in, a microsecond later for each of an answer, so that their order is kept.

    Raises ValueOutsideScaleError, SharingUnknownError.
    """
    now = timezone.now()
    originals = [one for one in judgements if one.shared_from_answer is None]
    made = Judgement.objects.bulk_create([_row(one, now, None) for one in originals], batch_size=BATCH)
    known = {(one.round_id, one.answer_id, one.criterion_id, one.judge_id): one for one in made}
    copies = []
    for one in judgements:
        if one.shared_from_answer is not None:
            origin = known.get((one.round.pk, one.shared_from_answer, one.criterion.pk, one.judge.pk))
            if origin is None:
                raise SharingUnknownError
            copies.append(_row(one, now, origin))
    Judgement.objects.bulk_create(copies, batch_size=BATCH)
    return len(made) + len(copies)


def _row(given: RestoredJudgement, now: datetime, origin: Judgement | None) -> Judgement:
    """Raises ValueOutsideScaleError."""
    if given.value not in given.criterion.scale or (given.not_attempt and given.value != 0):
        raise ValueOutsideScaleError(f"{given.criterion.code}: {given.value}")
    return Judgement(
        round=given.round,
        answer_id=given.answer_id,
        criterion=given.criterion,
        judge=given.judge,
        value=given.value,
        not_attempt=given.not_attempt,
        confidence=given.confidence,
        shared_from=origin,
        made_at=now + timedelta(microseconds=given.order),
    )


@transaction.atomic
def rounds_close(rounds: Sequence[Round]) -> None:
    for one in rounds:
        round_close(round_id=one.pk)
        one.refresh_from_db(fields=["closed_at"])
