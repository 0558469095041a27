"""How good a judge's values are, beside what raters said. Pure functions on plain values.

Throughout, `truth` and `said` are n values of one criterion's scale, one for each answer; `groups` names the respondent
of each answer. Intervals are 95 % percentile bootstrap intervals over respondents (cluster bootstrap: Field & Welsh
2007): a respondent's answers are drawn together, since they resemble each other. Undefined is None with a reason.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 2_000
BINS = 10

Reason = Literal[
    "",
    "no_answers",
    "one_class_true",  # raters gave all answers one value: nothing can be told apart
    "one_class_said",  # the judge gave all answers one value
    "no_confidence",  # the judge did not say how sure it is
    "no_variation",
    "too_few",
]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with its interval. `undefined`: resamples in which it had no value, out of RESAMPLES."""

    value: float | None
    reason: Reason = ""
    low: float | None = None  # None: fewer than two respondents, or hardly a resample with a value
    high: float | None = None
    undefined: int = 0


@dataclass(frozen=True, slots=True)
class Bin:
    """Of a reliability diagram: answers whose confidence lies in (low, high], the lowest bin with its lower edge."""

    low: float
    high: float
    n: int
    confidence: float | None  # mean; None where the bin is empty
    correct: float | None  # share of answers on which the judge agrees with the raters


@dataclass(frozen=True, slots=True)
class Majority:
    """What the judge gets who always says the commonest value of the answers measured on."""

    value: float
    f1_micro: float
    f1_macro: float
    f1_weighted: float
    # Its MCC is undefined: 0 divided by 0.


@dataclass(frozen=True)
class Report:
    """Everything about one judge on one criterion. `confusion[i][j]`: answers of truth i that were said to be j."""

    n: int
    n_respondents: int
    classes: list[float]
    confusion: list[list[int]]
    majority: Majority | None
    estimates: dict[str, Estimate]  # f1_micro, f1_macro, f1_weighted, mcc, ece, brier
    bins: list[Bin] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> "Report":
        return cls(
            **{
                **stored,
                "majority": stored["majority"] and Majority(**stored["majority"]),
                "estimates": {name: Estimate(**estimate) for name, estimate in stored["estimates"].items()},
                "bins": [Bin(**one) for one in stored["bins"]],
            }
        )


def confusion(truth: Sequence[float], said: Sequence[float], classes: Sequence[float]) -> list[list[int]]:
    """k × k counts, rows by truth, columns by what was said."""
    place = {value: index for index, value in enumerate(classes)}
    table = [[0] * len(classes) for _ in classes]
    for one, other in zip(truth, said, strict=True):
        table[place[one]][place[other]] += 1
    return table


# --- figures of confusion tables: arrays (…, k, k) give arrays (…); NaN stands for *undefined* inside here only ------


def f1_micro(tables: Floats) -> Floats:
    """The share of answers on which both agree: with one value for each answer, micro F1 is the accuracy."""
    return divided(np.trace(tables, axis1=-2, axis2=-1), tables.sum(axis=(-2, -1)))


def _f1_each(tables: Floats) -> tuple[Floats, Floats, Floats]:
    """F1 = 2TP / (2TP + FP + FN) of each class, how often it is true, and whether it occurs at all."""
    hits = np.diagonal(tables, axis1=-2, axis2=-1)
    true, said = tables.sum(axis=-1), tables.sum(axis=-2)
    return divided(2 * hits, true + said), true, true + said > 0


def f1_macro(tables: Floats) -> Floats:
    """The plain mean of the classes' F1, over the classes that are true or said of any answer."""
    each, _true, occurs = _f1_each(tables)
    return divided(np.where(occurs, each, 0).sum(axis=-1), occurs.sum(axis=-1))


def f1_weighted(tables: Floats) -> Floats:
    """The mean of the classes' F1, weighted by how often each is true."""
    each, true, occurs = _f1_each(tables)
    return divided((np.where(occurs, each, 0) * true).sum(axis=-1), true.sum(axis=-1))


def mcc(tables: Floats) -> Floats:
    """Matthews' correlation coefficient, for two classes or more (R_K: Gorodkin 2004).

    doi 10.1016/j.compbiolchem.2004.09.006.

    Undefined where all answers are of one class, or are said to be.
    """
    n = tables.sum(axis=(-2, -1))
    true, said = tables.sum(axis=-1), tables.sum(axis=-2)
    both = np.trace(tables, axis1=-2, axis2=-1) * n - (true * said).sum(axis=-1)
    spread = (n**2 - (said**2).sum(axis=-1)) * (n**2 - (true**2).sum(axis=-1))
    return divided(both, np.sqrt(spread))


def divided(above: Any, below: Any) -> Floats:
    above, below = np.asarray(above, dtype=float), np.asarray(below, dtype=float)
    return np.divide(above, below, out=np.full(np.broadcast(above, below).shape, np.nan), where=below > 0)


FIGURES: dict[str, Callable[[Floats], Floats]] = {
    "f1_micro": f1_micro,
    "f1_macro": f1_macro,
    "f1_weighted": f1_weighted,
    "mcc": mcc,
}


# --- the report --------------------------------------------------------------------------------------------------


def evaluate(
    *,
    truth: Sequence[float],
    said: Sequence[float],
    groups: Sequence[Hashable],
    classes: Sequence[float],
    probabilities: Sequence[Sequence[float]] | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Report:
    """`probabilities`: n × k, in the order of `classes`, each row adding up to 1; None: the judge gives none.

    Raises ValueError where the lengths differ and KeyError for a value that is no class.
    """
    order = sorted(classes)
    columns = [list(classes).index(value) for value in order]
    if not len(truth) == len(said) == len(groups):
        raise ValueError("truth, said and groups must have one entry for each answer")
    members, number = numbered(groups)
    tables = _tables_by_group(truth, said, order, number, members)
    drawn = draws(members, seed, resamples)
    whole = tables.sum(axis=0)
    estimates = {
        name: estimate(figure(whole), figure(np.tensordot(drawn, tables, axes=1)), _why(name, whole))
        for name, figure in FIGURES.items()
    }
    bins: list[Bin] = []
    if probabilities is None or not truth:
        unknown: Reason = "no_confidence" if truth else "no_answers"
        estimates |= {"ece": Estimate(None, unknown), "brier": Estimate(None, unknown)}
    else:
        sure = np.asarray(probabilities, dtype=float)[:, columns]
        found, bins = _calibration(np.array(truth), np.array(said), sure, np.array(order), number, members, drawn)
        estimates |= found
    return Report(
        n=len(truth),
        n_respondents=members,
        classes=order,
        confusion=[[int(count) for count in row] for row in whole],
        majority=majority(truth, order),
        estimates=estimates,
        bins=bins,
    )


def majority(truth: Sequence[float], classes: Sequence[float]) -> Majority | None:
    """The constant judge; of equally common values the smaller. None without answers."""
    if not truth:
        return None
    value = min(Counter(truth).items(), key=lambda pair: (-pair[1], pair[0]))[0]
    table = np.array(confusion(truth, [value] * len(truth), classes), dtype=float)
    return Majority(value, float(f1_micro(table)), float(f1_macro(table)), float(f1_weighted(table)))


@dataclass(frozen=True, slots=True)
class Said:
    """What a judge said on one criterion: n labels, n values, and who gave each of the n answers."""

    truth: Sequence[float]
    said: Sequence[float]
    groups: Sequence[Hashable]
    classes: Sequence[float]


def mean_over_criteria(criteria: Sequence[Said], figure: str, *, seed: int = 0, resamples: int = RESAMPLES) -> Estimate:
    """The plain mean of one of FIGURES over criteria. A resample draws the same respondents for all of them.

    Undefined where the figure of one criterion is, with that one's reason.
    """
    value, resampled, reason = _means(criteria, figure, seed, resamples)
    return Estimate(None, reason) if value is None else estimate(value, resampled, "")


def mean_difference(
    one: Sequence[Said], other: Sequence[Said], figure: str, *, seed: int = 0, resamples: int = RESAMPLES
) -> Estimate:
    """How much higher the mean over criteria is for one judge than for another, on the same answers: a resample draws
    the same respondents for both, so that what is hard for both does not widen the interval.

    Raises ValueError where the answers differ.
    """
    if [(list(a.truth), list(a.groups)) for a in one] != [(list(b.truth), list(b.groups)) for b in other]:
        raise ValueError("a difference is one on the same answers")
    value, resampled, reason = _means(one, figure, seed, resamples)
    against, beside, why = _means(other, figure, seed, resamples)
    if value is None or against is None:
        return Estimate(None, reason or why)
    return estimate(value - against, resampled - beside, "")


def _means(criteria: Sequence[Said], figure: str, seed: int, resamples: int) -> tuple[float | None, Floats, Reason]:
    """The mean, that of each resample (NaN where undefined), and why there is none."""
    members, number = numbered([group for one in criteria for group in one.groups])
    drawn = draws(members, seed, resamples)
    value, resampled, start = 0.0, np.zeros(len(drawn)), 0
    for one in criteria:
        end = start + len(one.groups)
        tables = _tables_by_group(one.truth, one.said, sorted(one.classes), number[start:end], members)
        whole, start = tables.sum(axis=0), end
        own = float(FIGURES[figure](whole))
        if np.isnan(own):
            return None, resampled, _why(figure, whole)
        value += own
        resampled += FIGURES[figure](np.tensordot(drawn, tables, axes=1))
    if not criteria:
        return None, resampled, "no_answers"
    return value / len(criteria), resampled / len(criteria), ""


def numbered(groups: Sequence[Hashable]) -> tuple[int, NDArray[np.int64]]:
    numbers: dict[Hashable, int] = {}
    places = [numbers.setdefault(group, len(numbers)) for group in groups]
    return len(numbers), np.array(places, dtype=np.int64)


def _tables_by_group(
    truth: Sequence[float], said: Sequence[float], classes: list[float], number: NDArray[np.int64], members: int
) -> Floats:
    place = {value: index for index, value in enumerate(classes)}
    tables = np.zeros((members, len(classes), len(classes)))
    rows, columns = (np.array([place[value] for value in values], dtype=np.int64) for values in (truth, said))
    np.add.at(tables, (number, rows, columns), 1)
    return tables


@lru_cache(maxsize=4)  # the figures of a page are all over the same respondents
def draws(members: int, seed: int, resamples: int) -> Floats:
    """resamples × members: how often each respondent is drawn. Read-only."""
    if members < 2:
        return np.zeros((0, members))
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(members, [1 / members] * members, size=resamples).astype(float)
    drawn.flags.writeable = False
    return drawn


def _why(name: str, table: Floats) -> Reason:
    if table.sum() == 0:
        return "no_answers"
    if name == "mcc":
        if np.count_nonzero(table.sum(axis=1)) < 2:
            return "one_class_true"
        if np.count_nonzero(table.sum(axis=0)) < 2:
            return "one_class_said"
    return ""


def estimate(value: Any, resampled: Floats, reason: Reason) -> Estimate:
    if np.isnan(value):
        return Estimate(None, reason)
    defined = resampled[~np.isnan(resampled)]
    undefined = len(resampled) - len(defined)
    if len(defined) < 2 or undefined > len(resampled) / 2:
        return Estimate(float(value), "", undefined=undefined)
    low, high = np.percentile(defined, [2.5, 97.5])
    return Estimate(float(value), "", float(low), float(high), undefined)


def _calibration(
    truth: NDArray[Any],
    said: NDArray[Any],
    probabilities: Floats,
    classes: NDArray[Any],
    number: NDArray[np.int64],
    members: int,
    drawn: Floats,
) -> tuple[dict[str, Estimate], list[Bin]]:
    """Expected calibration error of what was said (Guo et al. 2017, arXiv 1706.04599), over ten equal bins, and the
    Brier score: mean squared distance of the probabilities from the truth, halved for two classes as is usual."""
    place = np.searchsorted(classes, said)
    confidence = probabilities[np.arange(len(said)), place]
    correct = (truth == said).astype(float)
    bins = np.clip(np.ceil(confidence * BINS).astype(int) - 1, 0, BINS - 1)
    sums = np.zeros((members, BINS, 3))  # answers, confidence, correct
    np.add.at(sums, (number, bins), np.stack([np.ones_like(correct), confidence, correct], axis=1))
    distance = ((probabilities - (classes[None, :] == truth[:, None])) ** 2).sum(axis=1)
    squared = np.zeros((members, 2))
    np.add.at(squared, number, np.stack([distance / (2 if len(classes) == 2 else 1), np.ones_like(distance)], axis=1))

    def ece(totals: Floats) -> Floats:
        return divided(np.abs(totals[..., 1] - totals[..., 2]).sum(axis=-1), totals[..., 0].sum(axis=-1))

    def brier(totals: Floats) -> Floats:
        return divided(totals[..., 0], totals[..., 1])

    whole = sums.sum(axis=0)
    found = {
        "ece": estimate(ece(whole), ece(np.tensordot(drawn, sums, axes=1)), ""),
        "brier": estimate(brier(squared.sum(axis=0)), brier(np.tensordot(drawn, squared, axes=1)), ""),
    }
    return found, [
        Bin(
            index / BINS,
            (index + 1) / BINS,
            int(n),
            float(sure / n) if n else None,
            float(right / n) if n else None,
        )
        for index, (n, sure, right) in enumerate(whole)
    ]
