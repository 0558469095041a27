"""How closely an automatic score follows the raters'. Pure functions on plain values.

Throughout, `automatic` and `raters` are two scores of the same n things (answers, or respondents), and `groups` names
the respondent of each. Intervals are 95 % percentile bootstrap intervals over respondents, who are drawn with all their
answers (cluster bootstrap: Field & Welsh 2007). Undefined is None with a reason.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from scoring.evaluation import RESAMPLES, Estimate, Floats, Reason, divided, draws, estimate, numbered

LEAST = 3  # of two things every correlation is 1 or -1
STILL: Reason = "no_variation"
_CHUNK_CELLS = 1_000_000


@dataclass(frozen=True, slots=True)
class Correlation:
    """Pearson's r (1895) and Spearman's rho (1904), which is Pearson's of the mean ranks: equal scores share theirs."""

    n: int  # things: answers, or respondents
    n_respondents: int
    pearson: Estimate
    spearman: Estimate


def score_correlation(
    automatic: Sequence[float],
    raters: Sequence[float],
    groups: Sequence[Hashable],
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Correlation:
    """Undefined, with the reason: `no_answers`, `too_few` (fewer than three), `no_variation` (one of the two scores is
    the same throughout). In each resample ranks are made anew.

    Raises ValueError where the lengths differ or a score is no finite number.
    """
    if not len(automatic) == len(raters) == len(groups):
        raise ValueError("automatic, raters and groups must have one entry for each thing")
    pairs = np.array([automatic, raters], dtype=float).reshape(2, -1)
    if not np.isfinite(pairs).all():
        raise ValueError("a score is a finite number")
    members, number = numbered(groups)
    reason = _why(pairs)
    if reason:
        nothing = Estimate(None, reason)
        return Correlation(len(automatic), members, nothing, nothing)
    # Scores take few values, so few pairs of them occur: each is weighed by how often, for every respondent.
    cells, place = np.unique(pairs, axis=1, return_inverse=True)
    counts = np.zeros((members, cells.shape[1]))
    np.add.at(counts, (number, place.reshape(-1)), 1)
    drawn = draws(members, seed, resamples)
    whole = counts.sum(axis=0, keepdims=True)
    chunk = max(1, _CHUNK_CELLS // cells.shape[1])
    resampled = [_both(cells, drawn[start : start + chunk] @ counts) for start in range(0, len(drawn), chunk)]
    pearson, spearman = np.concatenate(resampled, axis=1) if resampled else np.zeros((2, 0))
    one, other = _both(cells, whole)
    return Correlation(len(automatic), members, estimate(one[0], pearson, STILL), estimate(other[0], spearman, STILL))


def mean_by_respondent(
    automatic: Sequence[float], raters: Sequence[float], groups: Sequence[Hashable]
) -> tuple[list[float], list[float], list[Hashable]]:
    """The mean of both scores over each respondent's answers, respondents as they first occur: what
    `score_correlation` takes. Raises ValueError where the lengths differ."""
    sums: dict[Hashable, list[float]] = {}
    for one, other, group in zip(automatic, raters, groups, strict=True):
        held = sums.setdefault(group, [0.0, 0.0, 0.0])
        for index, value in enumerate((one, other, 1.0)):
            held[index] += value
    return (
        [total / n for total, _other, n in sums.values()],
        [total / n for _one, total, n in sums.values()],
        list(sums),
    )


def _why(pairs: Floats) -> Reason:
    if pairs.shape[1] == 0:
        return "no_answers"
    if pairs.shape[1] < LEAST:
        return "too_few"
    return STILL if (np.ptp(pairs, axis=1) == 0).any() else ""


def _both(cells: Floats, weights: Floats) -> Floats:
    """2 × r: Pearson's and Spearman's for each of the r rows of weights over the p pairs of scores."""
    ranks = [_ranks(values, weights) for values in cells]
    return np.stack([_pearson(cells[:1], cells[1:], weights), _pearson(ranks[0], ranks[1], weights)])


def _ranks(values: Floats, weights: Floats) -> Floats:
    """r × p: the mean rank, from 1, of each pair's value, where a pair occurs as often as its weight says."""
    _unique, inverse = np.unique(values, return_inverse=True)
    totals = weights @ (inverse[:, None] == np.arange(inverse.max() + 1)).astype(float)
    return (np.cumsum(totals, axis=1) - (totals - 1) / 2)[:, inverse]


def _pearson(one: Floats, other: Floats, weights: Floats) -> Floats:
    """Of rows × p values; NaN where a resample holds one value only. Differences from the mean are taken first, so that
    nothing cancels out."""
    n = weights.sum(axis=1, keepdims=True)
    one, other = (values - (values * weights).sum(axis=1, keepdims=True) / n for values in (one, other))
    both, first, second = ((weights * a * b).sum(axis=1) for a, b in ((one, other), (one, one), (other, other)))
    # A value that does not vary leaves no more than rounding behind.
    spread = np.where((first > 1e-12) & (second > 1e-12), first * second, 0)
    return np.clip(divided(both, np.sqrt(spread)), -1, 1)
