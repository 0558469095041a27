"""Labels by Dawid and Skene's model beside the majority: raters weigh by how often they err.

A. P. Dawid, A. M. Skene, *Maximum likelihood estimation of observer error-rates using the EM algorithm* (1979), as
crowd-kit computes it. The labels of Luria are the strict majority and the adjudicator's; this stands beside them.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from annotation.models import Campaign
from annotation.ratings import Floats, Ratings
from annotation.votes import item_labels
from scoring.models import Criterion

ITERATIONS = 100


@dataclass(frozen=True)
class DawidSkene:
    """Of one criterion. `errors`: rater's judge → estimated share of wrong judgements.

    `differ`: items whose label by the model is not that of the votes, undecided ones among them. `reason`: why there is
    nothing to estimate.
    """

    criterion: Criterion
    n_units: int
    errors: list[tuple[int, float]]
    shares: list[tuple[float, float]]  # value → share of units, by the model
    differ: list[int]
    n_filled: int  # undecided by votes, decided by the model
    reason: str = ""


def dawid_skene_of(campaign: Campaign, ratings: Ratings) -> list[DawidSkene]:
    """Attempts only: a refusal is 0 by rule. Seconds for 20,000 answers. One query."""
    labels, _ = item_labels(campaign, ratings)
    return [_of_criterion(ratings, criterion, labels[criterion.code]) for criterion in ratings.criteria]


def _of_criterion(ratings: Ratings, criterion: Criterion, labels: Floats) -> DawidSkene:
    matrix = ratings.matrices[criterion.code].copy()
    matrix[:, ratings.refusal] = np.nan
    judged = (~np.isnan(matrix)).sum(axis=0) > 0
    if len(ratings.judges) < 2 or len(np.unique(matrix[~np.isnan(matrix)])) < 2:
        return DawidSkene(criterion, int(judged.sum()), [], [], [], 0, "no_variation")
    by_unit, errors, shares = fitted(matrix, ratings.judges.tolist(), criterion.scale)
    by_item = by_unit[ratings.item_units]
    known = ~np.isnan(by_item)
    differ = known & (np.isnan(labels) | (labels != by_item))
    return DawidSkene(
        criterion=criterion,
        n_units=int(judged.sum()),
        errors=errors,
        shares=shares,
        differ=ratings.item_ids[differ].tolist(),
        n_filled=int((known & np.isnan(labels)).sum()),
    )


def fitted(
    matrix: Floats, judges: Sequence[int], scale: Sequence[float]
) -> tuple[Floats, list[tuple[int, float]], list[tuple[float, float]]]:
    """Raters × units to the model's value per unit (NaN where nobody judged), error shares and class shares.

    A rater's error share is Σ over classes of prior × (1 − probability of naming it right).
    """
    # Heavy, and needed on this page alone.
    import pandas as pd  # noqa: PLC0415
    from crowdkit.aggregation import DawidSkene as Model  # noqa: PLC0415

    raters, units = np.nonzero(~np.isnan(matrix))
    frame = pd.DataFrame({"task": units, "worker": raters, "label": matrix[raters, units]})
    with warnings.catch_warnings():
        # crowd-kit 1.4.2, its newest release, does what pandas 4 will no longer do; the requirements hold pandas 3.
        warnings.simplefilter("ignore", pd.errors.Pandas4Warning)
        model: Any = Model(n_iter=ITERATIONS).fit(frame)  # its own types do not say what a fitted model has
    found = np.full(matrix.shape[1], np.nan)
    found[model.labels_.index.to_numpy()] = model.labels_.to_numpy(dtype=float)
    priors, named = model.priors_, model.errors_
    errors = []
    for place in np.unique(raters).tolist():
        own = named.loc[place]
        right = sum(float(priors[value]) * float(own.at[value, value]) for value in priors.index if value in own.index)
        errors.append((judges[place], 1 - right))
    return found, errors, [(value, float(priors.get(value, 0.0))) for value in scale]
