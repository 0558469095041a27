"""The votes of a campaign as arrays, read at once: what agreement is computed from.

The unit is what raters judged once: an item, or all items with one text where identical answers share a judgement. One
vote per unit, criterion and rater, however many answers it counts for.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from django.db import connection

from annotation.models import Campaign
from annotation.selectors import criteria_asked
from scoring.models import Criterion

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

# Counted answers, none that its author has withdrawn: which unit each belongs to, and what is known of it.
ITEMS = """
SELECT COALESCE(item.same_as_id, item.id), item.id, item.answer_id, item.is_refusal::int, stimulus.id,
    CASE stimulus.complexity WHEN 'easy' THEN 0 WHEN 'medium' THEN 1 ELSE 2 END, stimulus.shuffled::int
FROM annotation_item AS item
JOIN corpus_answer AS answer ON answer.id = item.answer_id
JOIN corpus_sitting AS sitting ON sitting.id = answer.sitting_id AND sitting.standing = 'counted'
JOIN corpus_stimulus AS stimulus ON stimulus.id = answer.stimulus_id
WHERE item.campaign_id = {campaign:d} AND item.purpose = 'rating' AND item.removed_at IS NULL
"""
VOTES = """
SELECT one.answer_id, one.criterion_id, one.judge_id, one.value, date_part('epoch', one.made_at)
FROM scoring_judgement AS one WHERE one.round_id = {round:d} AND one.retracted_at IS NULL
"""
COMPLEXITIES = ("easy", "medium", "hard")


def numbers(query: str, columns: int) -> Floats:
    """The rows of a query of numbers without gaps: rows × columns. Nothing of it comes from outside.

    The server packs each column into one value, because a driver that takes rows one after another needs most of a
    second for what three raters say of 20,000 answers.
    """
    names = [f"c{number}" for number in range(columns)]
    packed = ", ".join(f"string_agg(float8send({name}::float8), '')" for name in names)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {packed} FROM ({query}) AS found({', '.join(names)})")  # noqa: S608 (our own text)
        row: Any = cursor.fetchone()
    return np.stack([np.frombuffer(one or b"", dtype=">f8") for one in row], axis=1).astype(np.float64)


@dataclass(frozen=True)
class Ratings:
    """`matrices`: by criterion code raters × units, NaN where there is no vote. Everything else is per unit or item."""

    criteria: Sequence[Criterion]
    judges: npt.NDArray[np.int64]
    units: npt.NDArray[np.int64]
    matrices: dict[str, Floats]
    last_vote: Floats  # of a unit, seconds since 1970; 0 where it has none
    refusal: Mask
    stimulus: npt.NDArray[np.int64]  # its id
    complexity: npt.NDArray[np.int64]  # index into COMPLEXITIES
    shuffled: Mask
    item_units: npt.NDArray[np.int64]  # index of the unit of each item
    item_ids: npt.NDArray[np.int64]
    item_answers: npt.NDArray[np.int64]

    @cached_property
    def n_votes(self) -> npt.NDArray[np.int64]:
        """Raters of each unit, whatever the criterion."""
        present = [~np.isnan(matrix) for matrix in self.matrices.values()]
        shape = (len(self.judges), len(self.units))
        found: npt.NDArray[np.int64] = np.logical_or.reduce(present or [np.zeros(shape, bool)]).sum(axis=0)
        return found

    def with_an_item_among(self, answers: Collection[int]) -> Mask:
        """The units that one of these answers belongs to."""
        mask = np.zeros(len(self.units), dtype=bool)
        mask[self.item_units[np.isin(self.item_answers, list(answers))]] = True
        return mask

    def first_item(self, unit: int) -> int:
        """An item that shows the text of a unit."""
        return int(self.item_ids[np.argmax(self.item_units == unit)])


def ratings_of(campaign: Campaign) -> Ratings:
    """Three queries, whatever the number of answers."""
    criteria = criteria_asked(campaign)
    items = numbers(ITEMS.format(campaign=campaign.pk), 7)
    votes = numbers(VOTES.format(round=campaign.round_id), 5)
    units, first, item_units = np.unique(items[:, 0].astype(np.int64), return_index=True, return_inverse=True)
    place = _units_of(votes[:, 0], items[:, 2], item_units)
    votes, place = votes[place >= 0], place[place >= 0]
    judges, rater = np.unique(votes[:, 2].astype(np.int64), return_inverse=True)
    matrices = {}
    for criterion in criteria:
        chosen = votes[:, 1] == criterion.pk
        matrix = np.full((len(judges), len(units)), np.nan)
        matrix[rater[chosen], place[chosen]] = votes[chosen, 3]  # a copy for a shared text says the same again
        matrices[criterion.code] = matrix
    last_vote = np.zeros(len(units))
    np.maximum.at(last_vote, place, votes[:, 4])
    about: Any = items[first]
    return Ratings(
        criteria=criteria,
        judges=judges,
        units=units,
        matrices=matrices,
        last_vote=last_vote,
        refusal=about[:, 3] == 1,
        stimulus=about[:, 4].astype(np.int64),
        complexity=about[:, 5].astype(np.int64),
        shuffled=about[:, 6] == 1,
        item_units=item_units,
        item_ids=items[:, 1].astype(np.int64),
        item_answers=items[:, 2].astype(np.int64),
    )


def _units_of(voted: Floats, answers: Floats, item_units: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The unit of each answer voted on; -1 where it is none of these."""
    if not len(answers):
        return np.full(len(voted), -1)
    order = np.argsort(answers)
    item = order[np.searchsorted(answers, voted, sorter=order).clip(max=len(answers) - 1)]
    return np.where(answers[item] == voted, item_units[item], -1)


def strict_majority(matrix: Floats, scale: Sequence[float]) -> Floats:
    """The value of more than half of two or more votes, per unit; NaN where none has it (scoring.consensus)."""
    counts = np.stack([(matrix == value).sum(axis=0) for value in scale])
    total = (~np.isnan(matrix)).sum(axis=0)
    best = counts.argmax(axis=0)
    held = 2 * counts.max(axis=0) > total
    return np.where(held & (total >= 2), np.asarray(scale, dtype=np.float64)[best], np.nan)
