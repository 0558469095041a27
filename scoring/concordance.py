"""How one judge's values agree with labels: counts, percent, F1, Matthews' correlation. Pure.

A judge is held against labels here, not against an equal: who is right is given. Among equals it is Krippendorff's
alpha that counts (annotation.agreement).
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

Reason = Literal["", "no_pairs", "no_variation"]


@dataclass(frozen=True, slots=True)
class Concordance:
    """`counts[i][j]`: how often the label is `scale[i]` and the judge says `scale[j]`.

    A figure is None where it is not defined: all of them without a pair (`reason` no_pairs); `mcc` where the labels or
    the judge have one value only (no_variation).
    """

    scale: tuple[float, ...]
    counts: tuple[tuple[int, ...], ...]
    n: int
    agreed: int
    percent: float | None  # of 100
    f1_macro: float | None
    mcc: float | None
    label_mean: float | None
    judge_mean: float | None
    reason: Reason


def concordance(pairs: Iterable[tuple[float, float]], scale: Sequence[float]) -> Concordance:
    """`pairs` are (label, judge's value), both on the scale. Raises ValueError for another value.

    F1 macro: the plain mean of the F1 of every value that occurs among the labels or the judge's, as scikit-learn's
    `f1_score(average="macro")`. MCC for any number of values: Gorodkin, J. (2004), Comput. Biol. Chem. 28, 367–374.
    """
    values = tuple(float(value) for value in scale)
    found = Counter((float(label), float(said)) for label, said in pairs)
    if strange := {value for pair in found for value in pair} - set(values):
        raise ValueError(f"not on the scale: {sorted(strange)}")
    counts = tuple(tuple(found[label, said] for said in values) for label in values)
    n = sum(map(sum, counts))
    agreed = sum(counts[i][i] for i in range(len(values)))
    if n == 0:
        return Concordance(values, counts, 0, 0, None, None, None, None, None, "no_pairs")
    labels = [sum(row) for row in counts]
    said = [sum(column) for column in zip(*counts, strict=True)]
    mcc = _mcc(agreed, n, labels, said)
    return Concordance(
        scale=values,
        counts=counts,
        n=n,
        agreed=agreed,
        percent=100 * agreed / n,
        f1_macro=_f1_macro(counts, labels, said),
        mcc=mcc,
        label_mean=sum(map(lambda value, k: value * k, values, labels)) / n,
        judge_mean=sum(map(lambda value, k: value * k, values, said)) / n,
        reason="" if mcc is not None else "no_variation",
    )


def _f1_macro(counts: Sequence[Sequence[int]], labels: Sequence[int], said: Sequence[int]) -> float:
    """2·tp / (labels + said) for each value that occurs on either side."""
    each = [2 * counts[i][i] / (labels[i] + said[i]) for i in range(len(counts)) if labels[i] + said[i]]
    return sum(each) / len(each)


def _mcc(agreed: int, n: int, labels: Sequence[int], said: Sequence[int]) -> float | None:
    spread = (n * n - sum(k * k for k in labels)) * (n * n - sum(k * k for k in said))
    if spread == 0:
        return None
    return (agreed * n - sum(a * b for a, b in zip(labels, said, strict=True))) / math.sqrt(spread)
