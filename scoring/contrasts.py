"""Models beside people: differences with intervals, places among people, bands, criteria, the worst stimuli.

All of it from finished `formula.Sitting`s, in points per stimulus unless it says so. Undefined is None.
"""

import math
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from scoring.formula import Bounds, Criterion, Score, Sitting, StimulusMean

RESAMPLES = 2000
SEED = 20_261_130
LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Difference:
    """The model's mean over runs minus the people's mean, in points.

    The interval is a percentile bootstrap in which people and stimuli are resampled together: in each resample the
    same stimuli for both, so that what makes a stimulus hard for both cancels out. Runs are not resampled: `n_runs`
    of them are averaged as they are. None, with the reason, where either side has no score; no interval below two
    people or two stimuli.
    """

    value: float | None
    low: float | None
    high: float | None
    reason: Literal["", "no_people", "no_runs"]
    n_people: int
    n_runs: int
    n_stimuli: int
    resamples: int


@dataclass(frozen=True, slots=True)
class Place:
    """The share of people below a score, those equal to it counting half (0 to 100), over `n` people."""

    percentile: float | None
    n: int


@dataclass(frozen=True, slots=True)
class CriterionMean:
    """The mean label on a criterion over the `n` answers that have one; `n_undecided` more have none.

    `bounds`: where the mean of all lies; None where nothing is undecided.
    """

    value: float | None
    n: int
    n_undecided: int
    bounds: Bounds | None


def scored_rows(sittings: Iterable[Sitting], stimuli: Sequence[Hashable]) -> np.ndarray:
    """Points of each respondent with a score, respondents × stimuli; a respondent's sittings are averaged.

    Sittings without a score are left out, as everywhere. The rows stand in an order of their own, so that the interval
    does not depend on who came first: a dataset that has left that out, and is read back, shows the very figure.
    """
    own: dict[Hashable, list[list[float]]] = {}
    for sitting in sittings:
        if (points := _points(sitting, stimuli)) is not None:
            own.setdefault(sitting.respondent, []).append(points)
    rows = sorted(np.mean(np.array(sorted(found)), axis=0).tolist() for found in own.values())
    return np.array(rows) if rows else np.zeros((0, len(stimuli)))


def runs_mean(runs: Iterable[Sitting], stimuli: Sequence[Hashable]) -> tuple[np.ndarray | None, int]:
    """A model's mean points on each stimulus over its scored runs, and over how many; None without any."""
    scored = [points for run in runs if (points := _points(run, stimuli)) is not None]
    return (np.mean(np.array(scored), axis=0), len(scored)) if scored else (None, 0)


def _points(sitting: Sitting, stimuli: Sequence[Hashable]) -> list[float] | None:
    """The points on each stimulus; None where the sitting has no score."""
    if not sitting.is_finished or not stimuli:
        return None
    points = []
    for key in stimuli:
        answer = sitting.answers.get(key)
        if answer is None or answer.value is None:
            return None
        points.append(answer.value)
    return points


def differences(
    people: np.ndarray,
    models: Sequence[tuple[np.ndarray | None, int]],
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> list[Difference]:
    """The difference of each model from the people (`scored_rows`), all over the same resamples.

    B. Efron and R. Tibshirani, *An Introduction to the Bootstrap* (1993), ch. 8 and 13, with two crossed factors.
    """
    n_people, n_stimuli = people.shape
    if not n_people or not n_stimuli:
        reason: Literal["", "no_people", "no_runs"] = "no_people"
        return [Difference(None, None, None, reason, n_people, n, n_stimuli, 0) for _, n in models]
    found = []
    has_interval = n_people > 1 and n_stimuli > 1 and resamples > 0
    if has_interval:
        random = np.random.default_rng(seed)
        stimuli, persons = _shares(random, n_stimuli, resamples), _shares(random, n_people, resamples)
        of_people = ((persons @ people) * stimuli).sum(axis=1)
    for mean, n_runs in models:
        if mean is None:
            found.append(Difference(None, None, None, "no_runs", n_people, 0, n_stimuli, 0))
            continue
        value = float(mean.mean() - people.mean())
        if not has_interval:
            found.append(Difference(value, None, None, "", n_people, n_runs, n_stimuli, 0))
            continue
        tail = (1 - LEVEL) / 2
        low, high = np.quantile(stimuli @ mean - of_people, [tail, 1 - tail])
        found.append(Difference(value, float(low), float(high), "", n_people, n_runs, n_stimuli, resamples))
    return found


def _shares(random: np.random.Generator, size: int, resamples: int) -> np.ndarray:
    """Resamples × what is drawn with replacement: the share of its draws that each has in each resample."""
    drawn = random.integers(0, size, (resamples, size)) + size * np.arange(resamples)[:, np.newaxis]
    return np.bincount(drawn.ravel(), minlength=resamples * size).reshape(resamples, size) / size


def place_among(value: float | None, people: Sequence[float]) -> Place:
    if value is None or not people:
        return Place(None, len(people))
    # Sums of the same points in another order differ in the last bit.
    close = [math.isclose(value, other, rel_tol=0, abs_tol=1e-9) for other in people]
    below = sum(other < value and not equal for other, equal in zip(people, close, strict=True))
    return Place(100 * (below + sum(close) / 2) / len(people), len(people))


def band_mean(bands: Sequence[Score]) -> float | None:
    """The mean of the bands' own means (norm), each band counting once however many stimuli it has."""
    values = [band.norm for band in bands if band.norm is not None]
    return math.fsum(values) / len(values) if values and len(values) == len(bands) else None


def criterion_means(
    sittings: Iterable[Sitting], stimuli: Collection[Hashable], criteria: Sequence[Criterion]
) -> list[CriterionMean]:
    """For each criterion the mean label of all answers of finished sittings, over its maximum (0 to 1)."""
    sums, counts, undecided = [0.0] * len(criteria), [0] * len(criteria), [0] * len(criteria)
    for sitting in sittings:
        if not sitting.is_finished:
            continue
        for key in stimuli:
            answer = sitting.answers.get(key)
            if answer is None:
                continue
            for place, value in enumerate(answer.values):
                if value is None:
                    undecided[place] += 1
                else:
                    sums[place] += value / criteria[place].maximum
                    counts[place] += 1
    found = []
    for total, n, lost in zip(sums, counts, undecided, strict=True):
        bounds = Bounds(total / (n + lost), (total + lost) / (n + lost)) if lost else None
        found.append(CriterionMean(total / n if n else None, n, lost, bounds))
    return found


def counted_mean(counts: Mapping[float | None, int]) -> CriterionMean:
    """The same from how many answers have which label, on a scale from 0 to 1; None is undecided."""
    n, lost = sum(own for value, own in counts.items() if value is not None), counts.get(None, 0)
    total = math.fsum(value * own for value, own in counts.items() if value is not None)
    bounds = Bounds(total / (n + lost), (total + lost) / (n + lost)) if lost else None
    return CriterionMean(total / n if n else None, n, lost, bounds)


def worst(means: Mapping[Hashable, float], *, maximum: float, places: int = 1) -> set[Hashable]:
    """The stimuli with the `places` lowest means, ties included; none of them is at the maximum.

    With ties there may be more than `places`: whoever is as low as the last of them is one of them.
    """
    below = sorted(value for value in means.values() if value < maximum - 1e-9)
    if not below:
        return set()
    limit = below[min(places, len(below)) - 1] + 1e-9
    return {key for key, value in means.items() if value <= limit and value < maximum - 1e-9}


def stimulus_values(means: Mapping[Hashable, StimulusMean]) -> dict[Hashable, float]:
    """The defined ones of `formula.stimulus_means`, in points."""
    return {key: mean.score.value for key, mean in means.items() if mean.score.value is not None}
