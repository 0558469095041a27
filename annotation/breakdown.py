"""How far the raters of a campaign agree: overall and cut in every way that the agreement page shows.

Criteria are never averaged, and only judgements of the campaign's own round are here. Everything is computed when it is
asked for: nothing is stale.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast, get_args

import numpy as np

from annotation.agreement import Agreement, Level, PercentAgreement, alpha, percent_agreement
from annotation.models import Campaign, Rater
from annotation.ratings import COMPLEXITIES, Floats, Mask, Ratings, strict_majority
from corpus.models import Stimulus
from scoring.models import Criterion, Judge, Judgement

TENTHS = 10
RESAMPLES = 1000


Found = tuple[Agreement, PercentAgreement]


@dataclass(frozen=True)
class Line:
    """One cut of the answers or of the raters, criterion by criterion."""

    kind: str  # "stimulus", "complexity", …
    name: str
    by_criterion: list[Found]


@dataclass(frozen=True)
class Pair:
    """Two raters. `None` where they have judged nothing in common or one value only."""

    one: int  # judge
    other: int
    by_criterion: list[Found]


@dataclass(frozen=True)
class Chosen:
    """How often a rater, or all of them (`judge` is None), chose each value: criterion by criterion, in its order."""

    judge: int | None
    by_criterion: list[list[int]]


@dataclass(frozen=True)
class Beside:
    """A classifier or model judge against the raters' label. Never inside the raters' alpha."""

    judge: int
    name: str
    by_criterion: list[Found]


@dataclass(frozen=True)
class Divided:
    """An answer on which the raters differ. `share`: of the pairs of votes that are unequal, mean over the criteria."""

    item: int
    share: float


@dataclass(frozen=True)
class Breakdown:
    criteria: Sequence[Criterion]
    levels: list[Level]
    overall: Line
    with_refusals: Line | None
    lines: list[Line]
    pairs: list[Pair]
    without: list[tuple[int, Line]]  # each rater left out
    chosen: list[Chosen]  # all raters first
    beside: list[Beside]
    divided: list[Divided]
    n_units: int
    n_judged_twice: int
    n_shared: int  # answers whose text another one of the campaign has, where such are judged once


def level_of(criterion: Criterion, asked: str = "") -> Level:
    """The level asked for, else nominal for two values and ordinal for a graded scale."""
    if asked in get_args(Level):
        return cast(Level, asked)
    return "nominal" if len(criterion.scale) == 2 else "ordinal"


def breakdown_of(
    campaign: Campaign, ratings: Ratings, *, level: str = "", groups: Mapping[str, Mask] | None = None
) -> Breakdown:
    """`groups`: further cuts by units, with their names: who answered is not known here. Two queries."""
    levels = [level_of(criterion, level) for criterion in ratings.criteria]
    chosen = ~ratings.refusal
    cut = _Cut(ratings, levels)
    return Breakdown(
        criteria=ratings.criteria,
        levels=levels,
        overall=cut.line("overall", "", chosen, resamples=RESAMPLES),
        with_refusals=cut.line("refusals", "", None, resamples=RESAMPLES) if ratings.refusal.any() else None,
        lines=list(_lines(cut, chosen, groups or {})),
        pairs=[
            Pair(int(one), int(other), cut.pair(place, second, chosen))
            for place, one in enumerate(ratings.judges)
            for second, other in enumerate(ratings.judges)
            if second > place
        ],
        without=[(int(judge), cut.line("without", "", chosen, but=place)) for place, judge in enumerate(ratings.judges)]
        if len(ratings.judges) > 2
        else [],
        chosen=[_chosen(ratings, chosen, None)]
        + [_chosen(ratings, chosen, place) for place in range(len(ratings.judges))],
        beside=_beside(campaign, ratings, levels, chosen),
        divided=_divided(ratings, chosen),
        n_units=int(chosen.sum()),
        n_judged_twice=int((ratings.n_votes[chosen] >= 2).sum()),
        n_shared=len(ratings.item_ids) - len(ratings.units),
    )


@dataclass(frozen=True)
class Summary:
    attempts: list[Found]
    with_refusals: list[Found]


def summary_of(ratings: Ratings) -> Summary:
    """What the campaign's own page and the API show. No query."""
    cut = _Cut(ratings, [level_of(criterion) for criterion in ratings.criteria])
    attempts = cut.line("overall", "", ~ratings.refusal, resamples=RESAMPLES).by_criterion
    refusals = cut.line("refusals", "", None, resamples=RESAMPLES).by_criterion if ratings.refusal.any() else attempts
    return Summary(attempts, refusals)


@dataclass(frozen=True)
class _Cut:
    ratings: Ratings
    levels: list[Level]

    def line(self, kind: str, name: str, mask: Mask | None, *, resamples: int = 0, but: int | None = None) -> Line:
        found = []
        for criterion, level in zip(self.ratings.criteria, self.levels, strict=True):
            matrix = self.ratings.matrices[criterion.code]
            if mask is not None:
                matrix = matrix[:, mask]
            if but is not None:
                matrix = np.delete(matrix, but, axis=0)
            found.append((alpha(matrix, level, resamples=resamples), percent_agreement(matrix)))
        return Line(kind, name, found)

    def pair(self, one: int, other: int, mask: Mask) -> list[Found]:
        found = []
        for criterion, level in zip(self.ratings.criteria, self.levels, strict=True):
            matrix = self.ratings.matrices[criterion.code][[one, other]][:, mask]
            found.append((alpha(matrix, level, resamples=0), percent_agreement(matrix)))
        return found


def _lines(cut: _Cut, chosen: Mask, groups: Mapping[str, Mask]) -> Iterator[Line]:
    ratings = cut.ratings
    for number, name in enumerate(COMPLEXITIES):
        yield cut.line("complexity", name, chosen & (ratings.complexity == number), resamples=RESAMPLES)
    for value, name in ((False, "given in order"), (True, "shuffled")):
        yield cut.line("shuffled", name, chosen & (ratings.shuffled == value), resamples=RESAMPLES)
    for name, mask in groups.items():
        yield cut.line("kind", name, chosen & mask, resamples=RESAMPLES)
    for pk, name in _stimuli(ratings):
        if (chosen & (ratings.stimulus == pk)).any():
            yield cut.line("stimulus", name, chosen & (ratings.stimulus == pk))
    judged = np.flatnonzero(chosen & (ratings.n_votes >= 2))
    order = judged[np.argsort(ratings.last_vote[judged], kind="stable")]
    has_an_order = len(np.unique(ratings.last_vote[judged])) > 1  # an import may give all of them one time
    if len(order) >= TENTHS and has_an_order:
        for number, part in enumerate(np.array_split(order, TENTHS), start=1):
            mask = np.zeros(len(ratings.units), dtype=bool)
            mask[part] = True
            yield cut.line("tenth", str(number), mask)


def _stimuli(ratings: Ratings) -> list[tuple[int, str]]:
    """Id and name, in their order: the position, after the instrument's name where there are several. One query."""
    rows = list(
        Stimulus.objects.filter(pk__in=np.unique(ratings.stimulus).tolist())
        .order_by("instrument__slug", "instrument__version", "position")
        .values_list("pk", "position", "instrument_id", "instrument__slug", "instrument__version")
    )
    several = len({row[2] for row in rows}) > 1
    return [
        (pk, f"{slug} v{version} · {position}" if several else str(position)) for pk, position, _, slug, version in rows
    ]


def _chosen(ratings: Ratings, mask: Mask, place: int | None) -> Chosen:
    rows = slice(None) if place is None else slice(place, place + 1)
    counts = []
    for criterion in ratings.criteria:
        matrix = ratings.matrices[criterion.code][rows, mask]
        counts.append([int((matrix == value).sum()) for value in criterion.scale])
    return Chosen(None if place is None else int(ratings.judges[place]), counts)


def _divided(ratings: Ratings, chosen: Mask, limit: int = 20) -> list[Divided]:
    shares = [_unequal_share(ratings.matrices[criterion.code], criterion.scale) for criterion in ratings.criteria]
    if not shares:
        return []
    mean = np.where(chosen, np.mean(shares, axis=0), 0.0)
    order = np.argsort(-mean, kind="stable")[:limit]
    return [Divided(ratings.first_item(unit), float(mean[unit])) for unit in order if mean[unit] > 0]


def _unequal_share(matrix: Floats, scale: Sequence[float]) -> Floats:
    counts = np.stack([(matrix == value).sum(axis=0) for value in scale]).astype(np.float64)
    total = counts.sum(axis=0)
    pairs = total * (total - 1)
    equal = (counts * (counts - 1)).sum(axis=0)
    return np.divide(pairs - equal, pairs, out=np.zeros_like(pairs), where=pairs > 0)


def _beside(campaign: Campaign, ratings: Ratings, levels: list[Level], chosen: Mask) -> list[Beside]:
    """Live judgements of classifiers and models on these answers, the newest of each judge."""
    kinds = [Judge.Kind.CLASSIFIER, Judge.Kind.MODEL]
    said = Judgement.objects.filter(
        judge__kind__in=kinds, round__study=campaign.study_id, retracted_at__isnull=True
    ).filter(answer__items__campaign=campaign)
    rows = list(said.order_by("pk").values_list("judge", "criterion", "answer", "value"))
    if not rows:
        return []
    unit_of = dict(zip(ratings.item_answers.tolist(), ratings.item_units.tolist(), strict=True))
    found = []
    for judge in dict.fromkeys(row[0] for row in rows):
        by_criterion = []
        for criterion, level in zip(ratings.criteria, levels, strict=True):
            matrix = np.full((2, len(ratings.units)), np.nan)
            matrix[0] = strict_majority(ratings.matrices[criterion.code], criterion.scale)
            for _, _, answer, value in (row for row in rows if row[0] == judge and row[1] == criterion.pk):
                if answer in unit_of:
                    matrix[1, unit_of[answer]] = value
            by_criterion.append((alpha(matrix[:, chosen], level), percent_agreement(matrix[:, chosen])))
        found.append(Beside(judge, str(judge), by_criterion))
    return found


def names_of(ratings: Ratings) -> dict[int, Rater]:
    """Judge → rater. One query."""
    raters = Rater.objects.filter(judge__in=ratings.judges.tolist()).select_related("user")
    return {rater.judge_id: rater for rater in raters}
