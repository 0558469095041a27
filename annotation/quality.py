"""How each rater of a campaign works: training, gold answers, repeats, pace, drift. For researchers.

Numbers only: nothing is judged here and nobody is left out. Who gave an answer is not read. Training, gold and repeats
are read from their own rounds; nothing of them is in a label or in the raters' alpha.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt

from annotation.agreement import Agreement, alpha
from annotation.breakdown import RESAMPLES, level_of
from annotation.models import Campaign, Item, Purpose, Rater, Seat, Skip
from annotation.places import LONGEST
from annotation.proportion import Proportion, proportion
from annotation.ratings import Floats, Mask, Ratings, numbers, ratings_of
from annotation.selectors import Standing, standing_of
from scoring.models import Criterion, Judgement, Round
from studies.models import Membership

FIFTHS = 5
Numbers = npt.NDArray[np.int64]

# Judged once or more, by whom and when first; -1 where the page measured no time.
PLACES = """
SELECT rater_id, item_id, (purpose = 'rating')::int, COALESCE(seconds, -1), date_part('epoch', done_at),
    COALESCE(ordinal, 0), is_flagged::int, (comment <> '')::int
FROM annotation_place WHERE campaign_id = {campaign:d} AND rater_id IS NOT NULL AND done_at IS NOT NULL
"""


@dataclass(frozen=True)
class Pace:
    """Seconds on one answer. None where no time was measured. `n_long`: looks longer than five minutes."""

    median: float | None
    lower: float | None  # quartile
    upper: float | None
    n: int
    n_long: int


@dataclass(frozen=True)
class Values:
    """A rater's live votes on one criterion, refusals left out: the share of each value, best first."""

    shares: list[tuple[float, Proportion]]
    with_others: Proportion  # equal to what most of two or more others say, where they say something


@dataclass(frozen=True)
class OnCriterion:
    training: Proportion  # right at the first try
    gold: Proportion
    again: Proportion  # planned repeats judged as the first time
    again_alpha: Agreement
    values: Values


@dataclass(frozen=True)
class Part:
    """A fifth of the answers that a rater judged, in the order in which they did."""

    number: int
    n: int
    first: datetime
    last: datetime
    pace: Pace
    by_criterion: list[Values]


@dataclass(frozen=True)
class RaterQuality:
    rater: Rater
    standing: Standing
    done: int
    checks: int
    active_at: datetime | None
    seconds: float  # spent, each look counted for at most five minutes
    skips: list[tuple[str, int]]  # reason, how often; "" where it went with a withdrawn answer
    flags: int
    comments: int
    pace: Pace
    training: Proportion  # answers right on every criterion
    gold: Proportion
    by_criterion: list[OnCriterion]
    parts: list[Part]

    @property
    def skipped(self) -> int:
        return sum(n for _, n in self.skips)


@dataclass(frozen=True)
class Quality:
    criteria: list[Criterion]
    raters: list[RaterQuality]


def quality_of(campaign: Campaign) -> Quality:
    """Everybody who has taken an answer or whose votes are here, in the order of their pseudonyms.

    A dozen queries, whatever the number of raters and answers.
    """
    ratings = ratings_of(campaign)
    checks, repeats = _checks(campaign, ratings.criteria), _repeats(campaign)
    places = numbers(PLACES.format(campaign=campaign.pk), 8)
    seats = {seat.rater_id: seat for seat in Seat.objects.filter(campaign=campaign)}
    skips = _skips(campaign)
    votes = _Votes.of(ratings)
    members = set(Membership.objects.filter(study=campaign.study_id, is_active=True).values_list("user", flat=True))
    raters = Rater.objects.filter(study=campaign.study_id).select_related("user").order_by("pk")
    voters = set(ratings.judges.tolist())
    is_imported = campaign.round.purpose == Round.Purpose.IMPORTED
    here = [rater for rater in raters if rater.pk in seats or rater.judge_id in voters]
    return Quality(
        criteria=list(ratings.criteria),
        raters=[
            _rater(
                rater,
                seats.get(rater.pk),
                is_imported,
                standing_of(rater, members),
                skips.get(rater.pk, Counter()),
                places[places[:, 0] == rater.pk],
                votes,
                [checks.get((rater.judge_id, code), _NONE) for code in (*votes.codes, WHOLE)],
                [repeats.get((rater.judge_id, criterion.pk), []) for criterion in ratings.criteria],
            )
            for rater in here
        ],
    )


def _skips(campaign: Campaign) -> dict[int, Counter[str]]:
    """By rater: reason and how often. One query."""
    found: dict[int, Counter[str]] = {}
    for rater, reason in Skip.objects.filter(campaign=campaign, undone_at__isnull=True).values_list("rater", "reason"):
        found.setdefault(rater, Counter())[reason] += 1
    return found


# --- training, gold, repeats -------------------------------------------------------------------------------------

WHOLE = ""  # in place of a criterion's code: the answer is right if everything about it is
_NONE = (proportion(0, 0), proportion(0, 0))


def _checks(campaign: Campaign, criteria: Iterable[Criterion]) -> dict[tuple[int, str], tuple[Proportion, Proportion]]:
    """(judge, criterion code or WHOLE) → right in training, right in gold. Two queries.

    A training answer tells what is right as soon as it is judged, so the first judgement counts and not a later one.
    Answers that their authors have withdrawn count nowhere.
    """
    known = {
        answer: (expected or {}, mark)
        for answer, expected, mark in Item.objects.filter(
            campaign=campaign, purpose__in=[Purpose.TRAINING, Purpose.GOLD], removed_at__isnull=True
        ).values_list("answer", "expected", "expected_not_attempt")
    }
    rounds = [campaign.training_round_id, campaign.gold_round_id]
    rows = Judgement.objects.filter(round__in=[pk for pk in rounds if pk is not None]).order_by("pk")
    codes = {criterion.pk: criterion.code for criterion in criteria}
    said: dict[tuple[int, int, int], dict[str, tuple[float, bool]]] = {}
    for round_id, judge, answer, criterion, value, mark, retracted in rows.values_list(
        "round_id", "judge_id", "answer_id", "criterion_id", "value", "not_attempt", "retracted_at"
    ):
        is_training = round_id == campaign.training_round_id
        if answer in known and criterion in codes and (is_training or retracted is None):
            said.setdefault((judge, int(not is_training), answer), {}).setdefault(codes[criterion], (value, mark))
    counts: dict[tuple[int, str], tuple[Counter[bool], Counter[bool]]] = {}
    for (judge, which, answer), by_code in said.items():
        expected, mark = known[answer]
        right = {code: value == expected.get(code, 0) for code, (value, _) in by_code.items()}
        right[WHOLE] = all(right.values()) and any(one[1] for one in by_code.values()) == mark
        for code, is_right in right.items():
            counts.setdefault((judge, code), (Counter(), Counter()))[which][is_right] += 1
    return {
        key: (proportion(training[True], training.total()), proportion(gold[True], gold.total()))
        for key, (training, gold) in counts.items()
    }


def _repeats(campaign: Campaign) -> dict[tuple[int, int], list[tuple[float, float]]]:
    """(judge, criterion) → the first and the second value of each answer judged twice. One query, none without
    repeats."""
    if campaign.repeat_round_id is None:
        return {}
    items = Item.objects.filter(campaign=campaign, is_repeated=True, removed_at__isnull=True)
    rows = Judgement.objects.filter(
        round__in=[campaign.round_id, campaign.repeat_round_id],
        answer__in=items.values("answer"),
        retracted_at__isnull=True,
    ).values_list("round_id", "judge_id", "criterion_id", "answer_id", "value")
    first: dict[tuple[int, int, int], float] = {}
    second: dict[tuple[int, int, int], float] = {}
    for round_id, judge, criterion, answer, value in rows:
        (first if round_id == campaign.round_id else second)[judge, criterion, answer] = value
    pairs: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for (judge, criterion, answer), value in second.items():
        if (judge, criterion, answer) in first:
            pairs.setdefault((judge, criterion), []).append((first[judge, criterion, answer], value))
    return pairs


# --- votes, pace and drift ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Votes:
    """The votes of a campaign, and by criterion how many raters gave each unit each value (values × units)."""

    ratings: Ratings
    counts: Mapping[str, Floats]
    row_of: Mapping[int, int]  # judge → row of the matrices

    @classmethod
    def of(cls, ratings: Ratings) -> "_Votes":
        counts = {
            one.code: np.stack([(ratings.matrices[one.code] == value).sum(axis=0) for value in one.scale])
            for one in ratings.criteria
        }
        return cls(ratings, counts, {judge: row for row, judge in enumerate(ratings.judges.tolist())})

    @property
    def codes(self) -> list[str]:
        return [criterion.code for criterion in self.ratings.criteria]

    def own(self, judge: int, criterion: Criterion) -> Floats:
        """The rater's values by unit; NaN where there is none and at refusals."""
        row = self.row_of.get(judge)
        if row is None:
            return np.full(len(self.ratings.units), np.nan)
        return np.where(self.ratings.refusal, np.nan, self.ratings.matrices[criterion.code][row])

    def with_others(self, own: Floats, criterion: Criterion) -> tuple[Mask, Mask]:
        """Where two or more others have a strict majority beside the rater's value, and where it is that value."""
        scale = np.array(criterion.scale, dtype=np.float64)
        others = self.counts[criterion.code] - (own == scale[:, np.newaxis])
        total = others.sum(axis=0)
        decided = ~np.isnan(own) & (total >= 2) & (2 * others.max(axis=0) > total)
        return decided, decided & (scale[others.argmax(axis=0)] == own)

    def units_of(self, items: Numbers) -> Numbers:
        """The unit of each item that has places; those whose answers no longer count are left out."""
        units = self.ratings.units
        if not len(units):
            return np.empty(0, dtype=np.int64)
        found = np.searchsorted(units, items).clip(max=len(units) - 1)
        kept: Numbers = found[units[found] == items]
        return kept


@dataclass(frozen=True)
class _Own:
    """One rater's votes on one criterion, over the units."""

    criterion: Criterion
    values: Floats
    decided: Mask
    equal: Mask

    def summary(self, units: Numbers | slice) -> Values:
        values = self.values[units]
        n = int((~np.isnan(values)).sum())
        return Values(
            [(value, proportion(int((values == value).sum()), n)) for value in self.criterion.scale],
            proportion(int(self.equal[units].sum()), int(self.decided[units].sum())),
        )


def _rater(
    rater: Rater,
    seat: Seat | None,
    is_imported: bool,
    standing: Standing,
    skips: Counter[str],
    places: Floats,
    votes: _Votes,
    checks: list[tuple[Proportion, Proportion]],
    repeats: list[list[tuple[float, float]]],
) -> RaterQuality:
    rated = places[places[:, 2] == 1]
    own = []
    for criterion in votes.ratings.criteria:
        values = votes.own(rater.judge_id, criterion)
        own.append(_Own(criterion, values, *votes.with_others(values, criterion)))
    return RaterQuality(
        rater=rater,
        standing=standing,
        done=len(rated),
        checks=len(places) - len(rated),
        active_at=_last_told(rated) if is_imported else seat.active_at if seat else None,
        seconds=seat.seconds if seat else 0.0,
        skips=skips.most_common(),
        flags=int(places[:, 6].sum()),
        comments=int(places[:, 7].sum()),
        pace=_pace(rated[:, 3]),
        training=checks[-1][0],
        gold=checks[-1][1],
        by_criterion=[
            OnCriterion(training, gold, *_with_oneself(pairs, one.criterion), one.summary(slice(None)))
            for (training, gold), pairs, one in zip(checks[:-1], repeats, own, strict=True)
        ],
        parts=_parts(rated, votes, own),
    )


def _with_oneself(pairs: list[tuple[float, float]], criterion: Criterion) -> tuple[Proportion, Agreement]:
    equal = sum(first == second for first, second in pairs)
    matrix = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
    return proportion(equal, len(pairs)), alpha(matrix, level_of(criterion), resamples=RESAMPLES)


def _pace(seconds: Floats) -> Pace:
    timed = seconds[seconds >= 0]
    if not len(timed):
        return Pace(None, None, None, 0, 0)
    lower, median, upper = np.quantile(timed, [0.25, 0.5, 0.75]).tolist()
    return Pace(median, lower, upper, len(timed), int((timed > LONGEST).sum()))


def _has_order(rated: Floats) -> bool:
    return len(np.unique(rated[:, 4])) > 1


def _last_told(rated: Floats) -> datetime | None:
    """Of imported judgements: the last time in the file. The seat has that of the import, as have those without one."""
    return datetime.fromtimestamp(rated[:, 4].max(), UTC) if _has_order(rated) else None


def _parts(rated: Floats, votes: _Votes, own: list[_Own]) -> list[Part]:
    """Fifths of a rater's own sequence; none where there are fewer answers than that or all have one time."""
    if len(rated) < FIFTHS or not _has_order(rated):
        return []
    order = rated[np.lexsort((rated[:, 1], rated[:, 5], rated[:, 4]))]
    found = []
    for number, part in enumerate(np.array_split(order, FIFTHS), start=1):
        units = votes.units_of(part[:, 1].astype(np.int64))
        found.append(
            Part(
                number=number,
                n=len(part),
                first=datetime.fromtimestamp(part[0, 4], UTC),
                last=datetime.fromtimestamp(part[-1, 4], UTC),
                pace=_pace(part[:, 3]),
                by_criterion=[one.summary(units) for one in own],
            )
        )
    return found
