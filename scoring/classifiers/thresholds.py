"""From which probability on the upper of two classes is said."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from scoring.evaluation import mcc

GRID = np.linspace(0.05, 0.95, 181)


def best_threshold(upper: NDArray[Any], truth: NDArray[Any]) -> float | None:
    """Where MCC is highest, the middle of the equally good ones; None where MCC is undefined everywhere.

    `upper`: probabilities of the upper class; `truth`: 1 where it is right, else 0.
    """
    said, right = upper[None, :] >= GRID[:, None], (truth == 1)[None, :]
    cells = [(said == bool(s)) & (right == bool(t)) for t in (0, 1) for s in (0, 1)]
    found = mcc(np.stack([cell.sum(axis=1) for cell in cells], axis=1).reshape(-1, 2, 2).astype(float))
    if np.isnan(found).all():
        return None
    best = np.flatnonzero(found >= np.nanmax(found) - 1e-12)
    return round(float(GRID[best[len(best) // 2]]), 6)
