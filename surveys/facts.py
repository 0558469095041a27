"""The facts of each sitting of a survey that rules of exclusion look at. Aggregated in the database."""

from collections import Counter, defaultdict
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Aggregate, Count, FloatField, Max, Q, QuerySet, Sum
from django.utils import timezone

from corpus.models import Answer, Sitting
from corpus.tokens import is_refusal
from studies.models import Study
from surveys.exclusion import Facts, kind_of
from surveys.models import Exposure, Participant, Question, QuestionResponse, Survey
from surveys.questionnaire import attention_passed

# Whom a rule may take, and whom another rule may have taken before. Pilots and withdrawn sittings count nowhere.
EXCLUDABLE = (Sitting.Standing.COUNTED, Sitting.Standing.EXCLUDED)


class Median(Aggregate):
    """PostgreSQL's, by interpolation between the two in the middle."""

    function = "PERCENTILE_CONT"
    template = "%(function)s(0.5) WITHIN GROUP (ORDER BY %(expressions)s)"
    output_field = FloatField()


def sittings_of(survey: Survey) -> QuerySet[Sitting]:
    """The sittings of a survey's people. No query of its own."""
    return Sitting.objects.filter(respondent__participant__survey=survey)


def sittings_taken(survey: Survey, kind: str, limit: float | None) -> list[int]:
    """The excludable sittings that a rule takes, by id. Three to six queries, whatever their number."""
    found = kind_of(kind)
    if found is None:
        return []
    return [pk for pk, facts in facts_of(survey, kinds={kind}).items() if found.takes(facts, limit or 0)]


def facts_of(survey: Survey, *, kinds: Collection[str] | None = None) -> dict[int, Facts]:
    """The facts of the survey's excludable sittings, by id, oldest first.

    `kinds` leaves out what these kinds do not look at and would be slow to read: the answers' texts, without which
    refusals are not counted, and the responses to attention checks. None: everything.
    """
    sittings = sittings_of(survey).filter(standing__in=EXCLUDABLE)
    exposures = _exposures(sittings)
    refusals = _refusals(sittings, survey) if kinds is None or "refusals" in kinds else {}
    failed = checks_failed(survey) if kinds is None or "checks_failed" in kinds else {}
    since = timezone.now() - timedelta(minutes=survey.hold_minutes)
    rows = sittings.order_by("pk").values_list(
        "pk", "state", "started_at", "finished_at", "respondent__participant", "respondent__participant__flags"
    )
    return {
        pk: _facts(
            state, started, finished, exposures.get(pk, {}), refusals.get(pk, 0), failed.get(person, 0), flags, since
        )
        for pk, state, started, finished, person, flags in rows
    }


def _facts(
    state: str,
    started: datetime,
    finished: datetime | None,
    times: dict[str, Any],
    refusals: int,
    failed: int,
    flags: list[str],
    since: datetime,
) -> Facts:
    seen = max(filter(None, (started, times.get("shown"), times.get("sent"))))
    median, away = times.get("median"), times.get("away")
    return Facts(
        is_finished=state == Sitting.State.FINISHED,
        is_gone=state == Sitting.State.STOPPED or (state == Sitting.State.OPEN and seen < since),
        # An import that knows no times has a start and an end at one moment.
        total_minutes=(finished - started).total_seconds() / 60 if finished and finished > started else None,
        median_seconds=None if median is None else median / 1000,
        refusals=refusals,
        checks_failed=failed,
        translated=times.get("n_translated") if times.get("n_watched") else None,
        pasted=times.get("n_pasted") if times.get("n_watched") else None,
        away_minutes=None if away is None else away / 60_000,
        flags=frozenset(flags),
    )


def _exposures(sittings: QuerySet[Sitting]) -> dict[int, dict[str, Any]]:
    rows = (
        Exposure.objects.filter(sitting__in=sittings.values("pk"), stimulus__is_practice=False)
        .order_by()
        .values("sitting")
        .annotate(
            median=Median("duration_ms"),
            away=Sum("away_ms"),
            n_watched=Count("pk", filter=Q(translated__isnull=False)),  # by the page's script
            n_translated=Count("pk", filter=Q(translated=True)),
            n_pasted=Count("pk", filter=Q(pastes__gt=0)),
            shown=Max("onset_at"),
            sent=Max("submitted_at"),
        )
    )
    return {row["sitting"]: dict(row) for row in rows}


def _refusals(sittings: QuerySet[Sitting], survey: Survey) -> Counter[int]:
    counts = Counter[int]()
    answers = Answer.objects.filter(sitting__in=sittings.values("pk"), stimulus__is_practice=False)
    below = survey.instrument.refusal_below
    for sitting, outcome, text in answers.values_list("sitting", "outcome", "text").iterator(chunk_size=5_000):
        if outcome == Answer.Outcome.DECLINED or (outcome == Answer.Outcome.GIVEN and is_refusal(text, below)):
            counts[sitting] += 1
    return counts


def checks_failed(survey: Survey, *, participants: Collection[int] | None = None) -> Counter[int]:
    """How many attention checks each participant (None: all of them) failed; who failed none is not in it. Two queries.

    A check that was shown and left out is failed; one without a row was never reached.
    """
    responses = QuestionResponse.objects.filter(question__survey=survey)
    if participants is not None:
        responses = responses.filter(participant__in=participants)
    return _failed(Question.objects.filter(survey=survey), responses)


def checks_failed_in(study: Study) -> Counter[int]:
    """`checks_failed` over all of a study's surveys. Two queries."""
    questions = Question.objects.filter(survey__instrument__study=study)
    return _failed(questions, QuestionResponse.objects.filter(question__survey__instrument__study=study))


def _failed(questions: QuerySet[Question], responses: QuerySet[QuestionResponse]) -> Counter[int]:
    checks = questions.exclude(expected="").in_bulk()
    failed = Counter[int]()
    live = responses.filter(question__in=checks, participant__withdrawn_at__isnull=True)
    for participant, question, value in live.values_list("participant", "question", "value"):
        if attention_passed(checks[question], value) is False:
            failed[participant] += 1
    return failed


def flag_counts(survey: Survey) -> dict[str, int]:
    """How many participants have each flag. One query."""
    counts: dict[str, int] = defaultdict(int)
    people = Participant.objects.filter(survey=survey).exclude(flags=[])
    for flags in people.values_list("flags", flat=True):
        for flag in set(flags):
            counts[flag] += 1
    return dict(counts)
