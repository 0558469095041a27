"""Whole rounds of judgements at once, under the same rules as `scoring.services` gives each of them one by one."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from django.db import connection, transaction
from django.utils import timezone

from scoring.models import Criterion, Round, Rubric
from scoring.services import ValueOutsideScaleError, round_close
from studies.models import Study

BATCH = 20_000
# Written out: a model instance for each of a hundred thousand judgements takes five times as long.
INSERT = """
INSERT INTO scoring_judgement
    (round_id, answer_id, criterion_id, judge_id, value, made_at, retracted_at, not_attempt, reason)
SELECT %s, answer, criterion, judge, value, made_at, retracted_at, FALSE, ''
FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::float8[], %s::timestamptz[], %s::timestamptz[])
    AS given(answer, criterion, judge, value, made_at, retracted_at)
"""


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
    """A closed round of judgements that were made elsewhere. One insert per 20,000 rows.

    Raises ValueOutsideScaleError.
    """
    round_ = Round.objects.create(study=study, rubric=rubric, purpose=Round.Purpose.IMPORTED)
    rows = _rows(judgements, timezone.now())
    with connection.cursor() as cursor:
        while batch := list(islice(rows, BATCH)):
            cursor.execute(INSERT, [round_.pk, *map(list, zip(*batch, strict=True))])
    round_close(round_id=round_.pk)  # only now: a closed round takes none
    round_.refresh_from_db(fields=["closed_at"])
    return round_


def _rows(judgements: Iterable[GivenJudgement], now: datetime) -> Iterator[tuple[object, ...]]:
    for given in judgements:
        if given.value not in given.criterion.scale:
            raise ValueOutsideScaleError(f"{given.criterion.code}: {given.value}")
        made_at = given.made_at or now
        yield given.answer_id, given.criterion.pk, given.judge_id, float(given.value), made_at, given.retracted_at
