"""What the watching page shows of a survey: the flow of people, the tasks, the flags, the sittings.

Everything is counted in the database; no function's number of queries grows with the people.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import (
    BigIntegerField,
    Count,
    DurationField,
    Exists,
    ExpressionWrapper,
    F,
    Func,
    IntegerField,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Sum,
)
from django.db.models.functions import Cast, Coalesce
from django.utils.translation import gettext_lazy

from corpus.models import Answer, Sitting, Stimulus
from surveys.exclusion import FLAGS
from surveys.facts import Median, checks_failed, flag_counts, sittings_of
from surveys.models import Arrival, Exposure, Participant, Survey
from surveys.selectors import stages

# What counts for the tasks' figures: a withdrawn person's answers say nothing, an excluded one's are out.
SHOWN = (Sitting.Standing.COUNTED, Sitting.Standing.PILOT)
AWAY_LONG = timedelta(minutes=5)

# What the browser measured, beside the flags of `surveys.exclusion`.
SIGNALS = {
    "translated": gettext_lazy("the browser had translated a task"),
    "pasted": gettext_lazy("pasted into an answer"),
    "away": gettext_lazy("away from the page for more than 5 minutes in all"),
    "check_failed": gettext_lazy("failed an attention check"),
}


# --- the flow of people --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Flow:
    """How many people came how far. Each stage is the one before without those named in between.

    opened − `not_consented` = consented; − `screened_out` − `not_started` = started; − `under_way` − `left` =
    finished; − `pilot` − `withdrawn` − the excluded = analysed. `opened` counts openings of the consent page, which are
    no people: whoever reloads it has opened it twice.
    """

    opened: int = 0
    consented: int = 0
    screened_out: int = 0
    started: int = 0
    under_way: int = 0
    left: int = 0
    finished: int = 0
    pilot: int = 0
    withdrawn: int = 0
    excluded: tuple[tuple[str, int], ...] = ()  # reason and number, the most frequent first
    pilot_in_all: int = 0  # finished or not, as the two below
    withdrawn_in_all: int = 0
    excluded_in_all: int = 0

    @property
    def not_consented(self) -> int:
        return self.opened - self.consented

    @property
    def not_started(self) -> int:
        return self.consented - self.screened_out - self.started

    @property
    def n_excluded(self) -> int:
        return sum(number for _reason, number in self.excluded)

    @property
    def analysed(self) -> int:
        return self.finished - self.pilot - self.withdrawn - self.n_excluded


BESIDE = ("pilot", "withdrawn", "excluded")
"""Of `stages`: no stage, but who of those counted in them is out of the results."""


def flow_of(surveys: Collection[int]) -> Flow:
    """The flow over these surveys, by `surveys.selectors.stages`. Three queries."""
    found = stages()
    counted = {f"{name}_in_all" if name in BESIDE else name: whom for name, whom in found.items()}
    counted |= {name: found["finished"] & found[name] for name in ("pilot", "withdrawn")}
    people = Participant.objects.filter(survey__in=surveys)
    counts = people.aggregate(**{f"n_{name}": Count("pk", filter=whom) for name, whom in counted.items()})
    same = Participant.objects.filter(survey=OuterRef("survey"), start_key=OuterRef("key"))
    looked = Arrival.objects.filter(~Exists(same), survey__in=surveys).count()
    numbers = {name.removeprefix("n_"): n for name, n in counts.items()}
    return Flow(opened=looked + numbers["consented"], excluded=_reasons(surveys), **numbers)


def _reasons(surveys: Collection[int]) -> tuple[tuple[str, int], ...]:
    rows = (
        Sitting.objects.filter(
            respondent__participant__survey__in=surveys,
            standing=Sitting.Standing.EXCLUDED,
            state=Sitting.State.FINISHED,
        )
        .order_by()
        .values_list("standing_reason")
        .annotate(n=Count("pk"))
    )
    return tuple(sorted(rows, key=lambda row: (-row[1], row[0])))


# --- the tasks -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Task:
    stimulus: Stimulus
    shown: int
    answered: int
    declined: int
    stopped: int  # people for whom it was the first task without an answer when they left
    waiting: int  # the same of those who are still under way
    timed: int
    median_seconds: float | None  # None: nobody's time was measured

    @property
    def declined_share(self) -> float | None:
        return self.declined / self.answered if self.answered else None


@dataclass(frozen=True, slots=True)
class Stop:
    """Where people stopped by the number of the task in their own order."""

    number: int
    stopped: int
    waiting: int


@dataclass(frozen=True, slots=True)
class Tasks:
    rows: list[Task]
    stops: list[Stop]  # empty where everybody has the same order


class _Element(Func):
    """An element of a JSON array of whole numbers; NULL past its end."""

    template = "(%(expressions)s)::bigint"
    arg_joiner = " ->> "
    output_field = BigIntegerField()


def tasks_of(survey: Survey) -> Tasks:
    """Every task with what became of it, without excluded and withdrawn people. Four queries."""
    sittings = sittings_of(survey).filter(standing__in=SHOWN)
    answers = {
        stimulus: (answered, declined)
        for stimulus, answered, declined in Answer.objects.filter(sitting__in=sittings.values("pk"))
        .order_by()
        .values_list("stimulus")
        .annotate(answered=Count("pk"), declined=Count("pk", filter=Q(outcome=Answer.Outcome.DECLINED)))
    }
    exposures = {
        stimulus: (shown, timed, median)
        for stimulus, shown, timed, median in Exposure.objects.filter(sitting__in=sittings.values("pk"))
        .order_by()
        .values_list("stimulus")
        .annotate(shown=Count("pk"), timed=Count("duration_ms"), median=Median("duration_ms"))
    }
    by_task, by_number = _stops(sittings)
    stimuli = survey.instrument.stimuli.filter(is_practice=False).order_by("position")
    rows = []
    for stimulus in stimuli:
        answered, declined = answers.get(stimulus.pk, (0, 0))
        shown, timed, median = exposures.get(stimulus.pk, (0, 0, None))
        stopped, waiting = by_task["stopped", stimulus.pk], by_task["open", stimulus.pk]
        seconds = None if median is None else median / 1000
        rows.append(Task(stimulus, shown, answered, declined, stopped, waiting, timed, seconds))
    if survey.order_scheme == Survey.OrderScheme.FIXED:
        return Tasks(rows, [])
    numbers = range(1, len(rows) + 1)
    return Tasks(rows, [Stop(number, by_number["stopped", number], by_number["open", number]) for number in numbers])


def _stops(sittings: QuerySet[Sitting]) -> tuple[Counter[tuple[str, int]], Counter[tuple[str, int]]]:
    """Unfinished sittings by state and first task without an answer: by stimulus, and by number from 1. One query.

    Tasks are answered in the sitting's order, so that task stands where the number of answers points to.
    """
    given = Answer.objects.filter(sitting=OuterRef("pk"), stimulus__is_practice=False).order_by()
    number = Coalesce(Subquery(given.values("sitting").annotate(n=Count("pk")).values("n")), 0)
    rows = (
        sittings.exclude(state=Sitting.State.FINISHED)
        .filter(Exists(Exposure.objects.filter(sitting=OuterRef("pk"))))
        .annotate(given=number)
        .annotate(task=_Element(F("order"), Cast(F("given"), IntegerField())))
        .order_by()
        .values_list("state", "given", "task")
        .annotate(n=Count("pk"))
    )
    by_task, by_number = Counter[tuple[str, int]](), Counter[tuple[str, int]]()
    for state, before, task, n in rows:
        by_number[state, before + 1] += n
        if task is not None:
            by_task[state, task] += n
    return by_task, by_number


# --- flags ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FlagRow:
    code: str
    words: Any
    n: int


def flags_of(survey: Survey) -> list[FlagRow]:
    """Every flag and signal with the number of people who have it, those with nobody left out. Four queries."""
    exposures = Exposure.objects.filter(sitting__respondent__participant__survey=survey)
    found: dict[str, int] = exposures.aggregate(
        translated=Count("sitting", distinct=True, filter=Q(translated=True)),
        pasted=Count("sitting", distinct=True, filter=Q(pastes__gt=0)),
    )
    found["away"] = _away_long(exposures).count()
    found["check_failed"] = len(checks_failed(survey))
    rows = [FlagRow(code, FLAGS.get(code, code), n) for code, n in sorted(flag_counts(survey).items())]
    return rows + [FlagRow(code, words, found[code]) for code, words in SIGNALS.items() if found[code]]


def _away_long(exposures: QuerySet[Exposure]) -> QuerySet[Any, Any]:
    limit = AWAY_LONG.total_seconds() * 1000
    return exposures.order_by().values("sitting").annotate(away=Sum("away_ms")).filter(away__gt=limit)


def flag_words(flags: Sequence[str], *, translated: bool, pasted: bool, away_ms: int, check_failed: bool) -> list[Any]:
    """One person's flags and signals in words: those that `flags_of` counts them among."""
    seen = {
        "translated": translated,
        "pasted": pasted,
        "away": away_ms > AWAY_LONG.total_seconds() * 1000,
        "check_failed": check_failed,
    }
    return [FLAGS.get(flag, flag) for flag in flags] + [words for code, words in SIGNALS.items() if seen[code]]


# --- the sittings --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SittingFilter:
    """Which sittings a list shows. Empty fields narrow nothing."""

    state: str = ""
    standing: str = ""
    flag: str = ""


def sittings_listed(survey: Survey, chosen: SittingFilter) -> QuerySet[Sitting]:
    """The newest first, each with what its row shows. One query for a page; two more for the flag `check_failed`."""
    sittings = sittings_of(survey)
    if chosen.state:
        sittings = sittings.filter(state=chosen.state)
    if chosen.standing:
        sittings = sittings.filter(standing=chosen.standing)
    if chosen.flag:
        sittings = sittings.filter(_has_flag(survey, chosen.flag))
    answers = Answer.objects.filter(sitting=OuterRef("pk"), stimulus__is_practice=False).order_by().values("sitting")
    declined = answers.filter(outcome=Answer.Outcome.DECLINED)
    exposures = Exposure.objects.filter(sitting=OuterRef("pk")).order_by().values("sitting")
    lasted = ExpressionWrapper(F("finished_at") - F("started_at"), output_field=DurationField())
    return (
        sittings.select_related("respondent__participant")
        .annotate(
            n_answers=Coalesce(Subquery(answers.annotate(n=Count("pk")).values("n")), 0),
            n_declined=Coalesce(Subquery(declined.annotate(n=Count("pk")).values("n")), 0),
            median_ms=Subquery(exposures.annotate(median=Median("duration_ms")).values("median")),
            n_translated=Coalesce(
                Subquery(exposures.annotate(n=Count("pk", filter=Q(translated=True))).values("n")), 0
            ),
            n_pasted=Coalesce(Subquery(exposures.annotate(n=Count("pk", filter=Q(pastes__gt=0))).values("n")), 0),
            away_in_all=Coalesce(Subquery(exposures.annotate(away=Sum("away_ms")).values("away")), 0),
            lasted=lasted,
        )
        .order_by("-pk")
    )


def _has_flag(survey: Survey, flag: str) -> Q:
    own = Exposure.objects.filter(sitting=OuterRef("pk"))
    if flag == "translated":
        return Q(Exists(own.filter(translated=True)))
    if flag == "pasted":
        return Q(Exists(own.filter(pastes__gt=0)))
    if flag == "away":
        exposures = Exposure.objects.filter(sitting__respondent__participant__survey=survey)
        return Q(pk__in=_away_long(exposures).values("sitting"))
    if flag == "check_failed":
        return Q(respondent__participant__in=list(checks_failed(survey)))
    return Q(respondent__participant__flags__contains=[flag])


@dataclass(frozen=True, slots=True)
class SittingTask:
    """A task of one sitting, in the sitting's order."""

    number: int
    stimulus: Stimulus
    answer: Answer | None
    exposure: Exposure | None

    @property
    def duration(self) -> float | None:
        return _seconds(self.exposure.duration_ms if self.exposure else None)

    @property
    def first_key(self) -> float | None:
        return _seconds(self.exposure.first_key_ms if self.exposure else None)

    @property
    def away(self) -> float | None:
        return _seconds(self.exposure.away_ms if self.exposure else None)


def _seconds(ms: int | None) -> float | None:
    return None if ms is None else ms / 1000


def sitting_tasks(sitting: Sitting) -> Sequence[SittingTask]:
    """Three queries."""
    stimuli = Stimulus.objects.in_bulk(sitting.order)
    answers = {answer.stimulus_id: answer for answer in Answer.objects.filter(sitting=sitting)}
    exposures = {exposure.stimulus_id: exposure for exposure in Exposure.objects.filter(sitting=sitting)}
    return [
        SittingTask(number, stimuli[pk], answers.get(pk), exposures.get(pk))
        for number, pk in enumerate(sitting.order, start=1)
    ]
