"""Alpha with 1,000 bootstrap resamples on 3 raters × 50,000 units, beside one call of `krippendorff` per
resample.

The package is timed on a few resamples and the time scaled to 1,000.
"""

import time

import krippendorff
import numpy as np

from annotation.agreement import alpha

RATERS, UNITS, RESAMPLES, TIMED = 3, 50_000, 1_000, 10


def ratings_make() -> np.ndarray:
    """Binary ratings of noisy raters, 5 % of them missing."""
    random = np.random.default_rng(1)
    truth = random.random(UNITS) < 0.7
    ratings = np.where(random.random((RATERS, UNITS)) < 0.1, ~truth, truth).astype(float)
    ratings[random.random((RATERS, UNITS)) < 0.05] = np.nan
    return ratings


def measure() -> str:
    ratings = ratings_make()
    times = []
    for _ in range(5):
        start = time.perf_counter()
        ours = alpha(ratings, "nominal", resamples=RESAMPLES)
        times.append(time.perf_counter() - start)
    seconds = sorted(times)[2]
    random = np.random.default_rng(2)
    start = time.perf_counter()
    for _ in range(TIMED):
        drawn = ratings[:, random.integers(0, UNITS, UNITS)]
        krippendorff.alpha(reliability_data=drawn, level_of_measurement="nominal")
    theirs = (time.perf_counter() - start) / TIMED * RESAMPLES
    reference = krippendorff.alpha(reliability_data=ratings, level_of_measurement="nominal")
    assert ours.value is not None
    assert abs(ours.value - reference) < 1e-12
    return (
        f"{RATERS} x {UNITS} nominal, {RESAMPLES} resamples: {seconds:.3f} s (median of 5); "
        f"a krippendorff call each: {theirs:.1f} s (scaled from {TIMED}); ratio {theirs / seconds:.0f}"
    )
