"""Krippendorff's alpha with its bootstrap interval, and plain percent agreement.

Source: K. Krippendorff, *Computing Krippendorff's Alpha-Reliability* (2011): coincidences, then observed
over expected disagreement. Own code and not the `krippendorff` package (the reference in the tests) because
the interval needs alpha a thousand times: ratings on a short scale have few distinct patterns, so resampling
the units is one multinomial draw over the patterns, whatever the number of units.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

Level = Literal["nominal", "ordinal", "interval"]
Reason = Literal["", "no_common_unit", "no_variation"]
Ratings = Sequence[Sequence[float | None]] | npt.NDArray[np.float64]
_Floats = npt.NDArray[np.float64]

_CHUNK_CELLS = 500_000
"""Numbers in an array while resampling (4 MB): memory does not grow with the resamples."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A percentile interval. `low` and `high` are None when no resample was defined.

    `resamples` were drawn; `undefined` of them had no variation, have no alpha and are left out of the
    percentiles.
    """

    low: float | None
    high: float | None
    level: float
    resamples: int
    undefined: int


@dataclass(frozen=True, slots=True)
class Agreement:
    """Alpha or the reason why there is none.

    `n_units`: units with two ratings or more. `n_pairable`: the ratings in them. `interval` is None where
    alpha is undefined, where there is a single unit (nothing to resample), and where no resamples were asked
    for.
    """

    value: float | None
    reason: Reason
    n_units: int
    n_pairable: int
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class PercentAgreement:
    """Share (0 to 1) of equal pairs among `n_pairs` pairs of ratings of one unit; None when there is none."""

    value: float | None
    reason: Reason
    n_units: int
    n_pairs: int


@dataclass(frozen=True, slots=True)
class _Patterns:
    """The distinct ways in which units were rated; who gave which rating does not matter to alpha.

    `values` (V): the scale values that occur, ascending. `counts` (P × V): how many raters gave each value.
    `units` (P): how many units have the pattern. Units with fewer than two ratings are not here.
    """

    values: _Floats
    counts: _Floats
    units: npt.NDArray[np.int64]

    @property
    def n_units(self) -> int:
        return int(self.units.sum())

    @property
    def n_pairable(self) -> int:
        return int((self.counts.sum(axis=1) * self.units).sum())


def alpha(
    ratings: Ratings,
    level: Level = "nominal",
    *,
    resamples: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Agreement:
    """Krippendorff's alpha of one criterion, pooled over the units with two ratings or more.

    `ratings` is raters × units; None or NaN is a missing rating and never a class. Alpha is 1 − D_o / D_e;
    it is not clipped, and is below 0 where raters disagree systematically. Undefined (`value` None):
    `no_common_unit` when no unit has two ratings, `no_variation` when all pairable ratings are one value
    (0/0). `interval` is that of `interval()`; `resamples=0` leaves it out. Raises ValueError on ragged rows,
    infinite ratings and an unknown level.
    """
    patterns = _patterns(ratings, level)
    if patterns.n_units == 0:
        return Agreement(None, "no_common_unit", 0, 0, None)
    value = float(_alphas(patterns, patterns.units[np.newaxis, :].astype(np.float64), level)[0])
    if math.isnan(value):
        return Agreement(None, "no_variation", patterns.n_units, patterns.n_pairable, None)
    bounds = _bootstrap(patterns, level, resamples, confidence, seed) if resamples else None
    return Agreement(value, "", patterns.n_units, patterns.n_pairable, bounds)


def interval(
    ratings: Ratings,
    level: Level = "nominal",
    *,
    resamples: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Interval | None:
    """The percentile bootstrap interval of alpha over units; None where alpha itself has no interval.

    Units with two ratings or more are drawn with replacement, as many as there are (A. Zapf et al.,
    *Measuring inter-rater reliability for nominal data*, BMC Med Res Methodol 16:93, 2016). The same seed
    gives the same interval.
    """
    return alpha(ratings, level, resamples=resamples, confidence=confidence, seed=seed).interval


def percent_agreement(ratings: Ratings) -> PercentAgreement:
    """Equal pairs over all pairs, a pair being two ratings of one unit by different raters.

    The observed agreement of J. Fleiss, *Measuring nominal scale agreement among many raters* (1971), pooled
    over pairs, so that with gaps a unit weighs by its pairs; with equally many raters everywhere it is
    Fleiss' mean P_i.
    """
    patterns = _patterns(ratings, "nominal")
    sizes = patterns.counts.sum(axis=1)
    pairs = float((sizes * (sizes - 1) / 2) @ patterns.units)
    if pairs == 0:
        return PercentAgreement(None, "no_common_unit", 0, 0)
    equal = float((patterns.counts * (patterns.counts - 1) / 2).sum(axis=1) @ patterns.units)
    return PercentAgreement(equal / pairs, "", patterns.n_units, int(pairs))


def _patterns(ratings: Ratings, level: str) -> _Patterns:
    if level not in get_args(Level):
        raise ValueError(f"unknown level of measurement: {level!r}")
    matrix = np.asarray(ratings, dtype=np.float64)
    if matrix.size == 0:
        return _Patterns(np.empty(0), np.empty((0, 0)), np.empty(0, dtype=np.int64))
    if matrix.ndim != 2:
        raise ValueError("ratings must be raters × units")
    if np.isinf(matrix).any():
        raise ValueError("a rating must be a finite number")
    present = ~np.isnan(matrix)
    matrix = matrix[:, present.sum(axis=0) >= 2]
    values = np.unique(matrix[~np.isnan(matrix)])
    counts, units = _distinct(matrix, values)
    return _Patterns(values, counts, units)


def _distinct(matrix: _Floats, values: _Floats) -> tuple[_Floats, npt.NDArray[np.int64]]:
    """Distinct count vectors of the columns (P × V) and how many columns have each (P)."""
    base = matrix.shape[0] + 1
    if base ** len(values) < 2**62:  # a count vector is then one integer, and sorting integers is quick
        key = np.zeros(matrix.shape[1], dtype=np.int64)
        for place, value in enumerate(values):
            key += (matrix == value).sum(axis=0, dtype=np.int64) * base**place
        keys, units = np.unique(key, return_counts=True)
        powers = np.array([base**place for place in range(len(values))], dtype=np.int64)
        return (keys[:, np.newaxis] // powers % base).astype(np.float64), units.astype(np.int64)
    counts = np.zeros((matrix.shape[1], len(values)), dtype=np.float64)
    for row in matrix:
        (columns,) = np.nonzero(~np.isnan(row))
        counts[columns, np.searchsorted(values, row[columns])] += 1
    rows, units = np.unique(counts, axis=0, return_counts=True)
    return rows, units.astype(np.int64)


def _alphas(patterns: _Patterns, units: _Floats, level: Level) -> _Floats:
    """Alpha for each row of `units` (B × P: units per pattern); NaN, in this module only, where undefined.

    With c the counts of a pattern, m their sum, n the marginals, N their sum and d() the disagreement over
    all ordered pairs, alpha = 1 − (N − 1) · Σ d(c) / (m − 1) / d(n). The coincidence matrix, never built,
    gives the same.
    """
    counts = patterns.counts
    marginals = units @ counts
    if level == "nominal":
        within = _unequal(counts)
        expected = _unequal(marginals)
    elif level == "interval":
        places = _places(patterns.values)
        within = _spread(counts, places)
        expected = _spread(marginals, places)
    else:
        # δ(c, k) = Σ_{g=c..k} n_g − (n_c + n_k)/2 is the distance of mid-ranks, so each resample has its own.
        ranks = np.cumsum(marginals, axis=1) - marginals / 2
        sizes = counts.sum(axis=1)
        within = 2 * (sizes * (ranks**2 @ counts.T) - (ranks @ counts.T) ** 2)
        expected = _spread(marginals, ranks)
    observed = (units * (np.maximum(within, 0) / (counts.sum(axis=1) - 1))).sum(axis=1)
    result = np.full(len(units), np.nan)
    defined = ((marginals > 0).sum(axis=1) > 1) & (expected > 0)
    total = marginals.sum(axis=1)
    result[defined] = 1 - (total[defined] - 1) * observed[defined] / expected[defined]
    return result


def _unequal(counts: _Floats) -> _Floats:
    """Ordered pairs of unequal ratings, for each row of counts."""
    pairs: _Floats = counts.sum(axis=1) ** 2 - (counts**2).sum(axis=1)
    return pairs


def _spread(counts: _Floats, places: _Floats) -> _Floats:
    """Σ (x − y)² over ordered pairs of ratings, for each row of counts: 2 (m Σ x² − (Σ x)²)."""
    squares: _Floats = counts.sum(axis=1) * (counts * places**2).sum(axis=1)
    spread: _Floats = 2 * (squares - (counts * places).sum(axis=1) ** 2)
    return spread


def _places(values: _Floats) -> _Floats:
    """Values from 0, scaled by a power of two: alpha stays, and squares neither overflow nor vanish."""
    scaled = np.ldexp(values, -math.frexp(float(np.abs(values).max()))[1])
    moved: _Floats = scaled - scaled.min()
    return np.ldexp(moved, -math.frexp(float(moved.max()))[1])


def _bootstrap(patterns: _Patterns, level: Level, resamples: int, confidence: float, seed: int) -> Interval | None:
    if patterns.n_units < 2:
        return None
    random = np.random.default_rng(seed)
    shares = patterns.units / patterns.n_units
    kinds, scale = patterns.counts.shape
    chunk = max(1, _CHUNK_CELLS // (kinds + scale))
    drawn: list[_Floats] = []
    for start in range(0, resamples, chunk):
        size = min(chunk, resamples - start)
        units = random.multinomial(patterns.n_units, shares, size=size).astype(np.float64)
        drawn.append(_alphas(patterns, units, level))
    alphas = np.concatenate(drawn)
    defined = alphas[~np.isnan(alphas)]
    undefined = resamples - len(defined)
    if len(defined) == 0:
        return Interval(None, None, confidence, resamples, undefined)
    tail = (1 - confidence) / 2
    low, high = np.quantile(defined, [tail, 1 - tail])
    return Interval(float(low), float(high), confidence, resamples, undefined)
