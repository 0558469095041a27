"""Who trains classifiers, and on whose answers they are measured. Pure: ids in, ids out."""

import hashlib
import json
import random
from collections.abc import Collection, Iterable
from dataclasses import dataclass

FRACTION = 0.7


@dataclass(frozen=True)
class Sides:
    train: frozenset[int]
    test: frozenset[int]


def people_of(respondents: Iterable[int], same: Iterable[Collection[int]] = ()) -> list[tuple[int, ...]]:
    """Respondents put together into people, sorted. `same`: sets of respondents known to be one person.

    Sets that overlap are one person. Ids in `same` that are no respondents here are ignored.
    """
    leader = {pk: pk for pk in respondents}

    def find(pk: int) -> int:
        while leader[pk] != pk:
            leader[pk] = leader[leader[pk]]
            pk = leader[pk]
        return pk

    for one in same:
        known = sorted(pk for pk in one if pk in leader)
        for other in known[1:]:
            low, high = sorted((find(known[0]), find(other)))
            leader[high] = low
    people: dict[int, list[int]] = {}
    for pk in sorted(leader):
        people.setdefault(find(pk), []).append(pk)
    return sorted(tuple(members) for members in people.values())


def people_hash(people: Iterable[Collection[int]]) -> str:
    """sha256, hex, of who is there and who is one person."""
    return hashlib.sha256(json.dumps(sorted(map(sorted, people))).encode()).hexdigest()


def split(people: Collection[tuple[int, ...]], *, seed: int, fraction: float = FRACTION) -> Sides:
    """⌊fraction · n⌋ of the n respondents train, the rest test; all respondents of one person are on one side.

    People are shuffled by the seed and taken in this order while they fit; where somebody with several respondents
    does not, the next one is tried, so that fewer than ⌊fraction · n⌋ train only if nobody fills the gap. With one
    respondent for each person it is exactly the paper's split (108: 75 and 33). Source: DESIGN, "Split".
    """
    if not 0 < fraction < 1:
        raise ValueError(f"fraction {fraction} is not between 0 and 1")
    order = sorted(people)
    random.Random(seed).shuffle(order)  # noqa: S311  # not for secrets
    n = sum(map(len, order))
    room = int(fraction * n + 1e-9)  # 0.7 · 10 is 7, whatever the last bit says
    train: set[int] = set()
    for members in order:
        if len(train) + len(members) <= room:
            train.update(members)
    everybody = {pk for members in order for pk in members}
    return Sides(frozenset(train), frozenset(everybody - train))


def cut(groups: Iterable[str], *, seed: int, fraction: float) -> frozenset[str]:
    """The groups (respondents) of the training side that are held back for thresholds and stopping.

    ⌈fraction · n⌉ of them, at least one and never all; none where there are fewer than two.
    """
    order = sorted(set(groups))
    if len(order) < 2 or fraction <= 0:
        return frozenset()
    random.Random(seed).shuffle(order)  # noqa: S311
    wanted = -int(-fraction * len(order) // 1)
    return frozenset(order[: min(max(1, wanted), len(order) - 1)])
