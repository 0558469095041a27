"""How one judge's values agree with labels: counts, percent, F1, Matthews' correlation. Pure.

A judge is held against labels here, not against an equal: who is right is given. Among equals it is Krippendorff's
alpha that counts (annotation.agreement).
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from scoring.evaluation import f1_macro, mcc

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

    F1 macro and MCC are those of `scoring.evaluation`.
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
    table = np.array(counts, dtype=float)
    matthews = _defined(mcc(table))
    return Concordance(
        scale=values,
        counts=counts,
        n=n,
        agreed=agreed,
        percent=100 * agreed / n,
        f1_macro=_defined(f1_macro(table)),
        mcc=matthews,
        label_mean=sum(map(lambda value, k: value * k, values, labels)) / n,
        judge_mean=sum(map(lambda value, k: value * k, values, said)) / n,
        reason="" if matthews is not None else "no_variation",
    )


def _defined(figure: NDArray[np.float64]) -> float | None:
    value = float(figure)
    return None if np.isnan(value) else value
