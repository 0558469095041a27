"""On which answers automatic judges differ, and of which they are unsure. Reads only."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db import connection

from scoring.bases import AUTOMATIC
from scoring.models import Criterion, Round


@dataclass(frozen=True, slots=True)
class Doubt:
    """What the judges asked about said of one answer, on the criteria asked about."""

    differ: bool  # two of them give it different values on one criterion
    sure: float | None  # the lowest confidence that one of them has on one criterion; None: nobody said how sure
    judges: int  # how many judged the criterion that most of them judged


# Of a judge who judged an answer in several rounds the latest judgement stands, as in the labels. Judgements that are
# copied to answers with the same text are as good as their originals here.
SAID = """
WITH said AS (
    SELECT DISTINCT ON (j.answer_id, j.criterion_id, j.judge_id) j.answer_id, j.criterion_id, j.value, j.confidence
    FROM scoring_judgement AS j
    JOIN scoring_round AS r ON r.id = j.round_id
    JOIN scoring_judge AS who ON who.id = j.judge_id
    WHERE r.study_id = %(study)s AND r.purpose = %(purpose)s AND who.kind = ANY(%(kinds)s)
        AND (%(judges)s::bigint[] IS NULL OR j.judge_id = ANY(%(judges)s::bigint[]))
        AND j.criterion_id = ANY(%(criteria)s::bigint[]) AND j.retracted_at IS NULL
    ORDER BY j.answer_id, j.criterion_id, j.judge_id, j.made_at DESC, j.id DESC
), compared AS (
    SELECT answer_id, min(value) <> max(value) AS differ, min(confidence) AS sure, count(*) AS judges
    FROM said GROUP BY answer_id, criterion_id
)
SELECT answer_id, bool_or(differ), min(sure), max(judges) FROM compared GROUP BY answer_id
"""


def doubts_of(*, study_id: int, criteria: Iterable[int], judges: Iterable[int] = ()) -> Mapping[int, Doubt]:
    """By answer, of all that one of these automatic judges has judged on one of the criteria; no judges named: all.

    One query, a pass over the judges' live judgements and one sort of them: about half a second for 20,000 answers,
    three judges and three criteria. Whether an answer counts is not looked at.
    """
    asked: dict[str, Any] = {
        "study": study_id,
        "purpose": Round.Purpose.AUTOMATIC.value,
        "kinds": [kind.value for kind in AUTOMATIC],
        "judges": sorted(set(judges)) or None,
        "criteria": sorted(set(criteria)),
    }
    with connection.cursor() as cursor:
        cursor.execute(SAID, asked)
        return {answer: Doubt(differ, sure, n) for answer, differ, sure, n in cursor.fetchall()}


def criteria_judged(rubric_slug: str, codes: Iterable[str] = ()) -> list[int]:
    """The ids of a rubric's judged criteria with these codes; no codes: of all. One query."""
    found = Criterion.objects.filter(rubric__slug=rubric_slug, kind=Criterion.Kind.JUDGED)
    wanted = list(codes)
    return list((found.filter(code__in=wanted) if wanted else found).values_list("pk", flat=True))
