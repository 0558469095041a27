"""A share with its interval."""

from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist


@dataclass(frozen=True, slots=True)
class Proportion:
    """`value`, `low` and `high` are shares from 0 to 1, and None where there is nothing to take a share of."""

    hits: int
    n: int
    value: float | None
    low: float | None
    high: float | None


def proportion(hits: int, n: int, *, confidence: float = 0.95) -> Proportion:
    """The share of `hits` among `n` and its score interval: defined and not empty at 0 of n and at n of n.

    Source: E. B. Wilson, *Probable inference, the law of succession, and statistical inference*, JASA 22 (1927),
    209–212. Raises ValueError where hits are negative or more than n.
    """
    if not 0 <= hits <= n:
        raise ValueError(f"{hits} of {n}")
    if n == 0:
        return Proportion(0, 0, None, None, None)
    share, z = hits / n, NormalDist().inv_cdf((1 + confidence) / 2)
    middle = share + z**2 / (2 * n)
    reach = z * sqrt(share * (1 - share) / n + (z / (2 * n)) ** 2)
    low, high = ((middle + sign * reach) / (1 + z**2 / n) for sign in (-1, 1))
    # The bound at the edge is the edge; rounding must not put it beside it.
    return Proportion(hits, n, share, 0.0 if hits == 0 else low, 1.0 if hits == n else high)
