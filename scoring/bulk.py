"""Whole rounds of judgements at once, under the same rules as `scoring.services` gives each of them one by one."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.utils import timezone

from scoring.models import Criterion, Judgement, Round, Rubric
from scoring.services import ValueOutsideScaleError, round_close
from studies.models import Study

BATCH = 5_000


@dataclass(frozen=True, slots=True)
class GivenJudgement:
    answer_id: int
    criterion: Criterion
    judge_id: int
    value: float
    made_at: datetime | None = None  # None: not known; the time of the import stands in
    retracted_at: datetime | None = None  # history: its judge has changed it


@transaction.atomic
def round_import(*, study: Study, rubric: Rubric, judgements: Iterable[GivenJudgement]) -> Round:
    """A closed round of judgements that were made elsewhere. One insert per 5,000 rows.

    Raises ValueOutsideScaleError.
    """
    now = timezone.now()
    round_ = Round.objects.create(study=study, rubric=rubric, purpose=Round.Purpose.IMPORTED)
    rows = []
    for given in judgements:
        if given.value not in given.criterion.scale:
            raise ValueOutsideScaleError(f"{given.criterion.code}: {given.value}")
        rows.append(
            Judgement(
                round=round_,
                answer_id=given.answer_id,
                criterion=given.criterion,
                judge_id=given.judge_id,
                value=given.value,
                made_at=given.made_at or now,
                retracted_at=given.retracted_at,
            )
        )
    Judgement.objects.bulk_create(rows, batch_size=BATCH)
    round_close(round_id=round_.pk)  # only now: a closed round takes none
    round_.refresh_from_db(fields=["closed_at"])
    return round_
