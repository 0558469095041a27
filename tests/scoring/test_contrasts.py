"""Expected numbers are derived by hand or by another way of counting."""

import random
import statistics

import numpy as np
import pytest

from scoring.contrasts import (
    band_mean,
    counted_mean,
    criterion_means,
    differences,
    place_among,
    runs_mean,
    scored_rows,
    worst,
)
from scoring.formula import Criterion, Score, Sitting, answer_score

CRITERIA = [Criterion("a"), Criterion("b")]


def sitting(respondent: str, *answers: str, finished: bool = True) -> Sitting:
    """'1?' is a right and b undecided."""
    marks = {"1": 1.0, "0": 0.0, "?": None}
    scored = {
        number: answer_score({"a": marks[given[0]], "b": marks[given[1]]}, CRITERIA)
        for number, given in enumerate(answers)
    }
    return Sitting(respondent, finished, scored)


def test_only_sittings_with_a_score_are_rows():
    found = scored_rows(
        [
            sitting("p", "11", "10"),
            sitting("q", "11", "1?"),
            sitting("r", "11", "11", finished=False),
            sitting("s", "11"),
        ],
        [0, 1],
    )
    assert found.tolist() == [[2, 1]]
    assert scored_rows([], [0, 1]).shape == (0, 2)
    two = scored_rows([sitting("p", "11", "10"), sitting("p", "00", "11")], [0, 1])
    assert two.tolist() == [[1, 1.5]]  # one person, twice


def test_runs():
    mean, n = runs_mean([sitting("m", "11", "10"), sitting("m", "10", "00"), sitting("m", "1?", "11")], [0, 1])
    assert (mean.tolist(), n) == ([1.5, 0.5], 2)
    assert runs_mean([sitting("m", "1?", "11")], [0, 1]) == (None, 0)


def test_differences():
    people = np.array([[2.0, 0.0], [1.0, 1.0]])
    (found,) = differences(people, [(np.array([2.0, 1.0]), 5)])
    assert found.value == pytest.approx(1.5 - 1.0)
    assert (found.n_people, found.n_runs, found.n_stimuli, found.reason) == (2, 5, 2, "")
    assert found.low <= found.value <= found.high
    assert differences(people, [(np.array([2.0, 1.0]), 5)]) == [found]  # the same seed
    assert differences(people, [(None, 0)])[0].reason == "no_runs"
    assert differences(np.zeros((0, 2)), [(np.array([2.0, 1.0]), 5)])[0].reason == "no_people"
    (one,) = differences(people[:1], [(np.array([2.0, 1.0]), 5)])
    assert (one.value, one.low, one.resamples) == (0.5, None, 0)


def test_the_interval_is_the_two_way_bootstrap_done_one_by_one():
    rng = random.Random(3)
    people = [[float(rng.randrange(5)) for _ in range(6)] for _ in range(30)]
    model = [float(rng.randrange(2, 5)) for _ in range(6)]
    (found,) = differences(np.array(people), [(np.array(model), 5)], resamples=20_000)
    drawn = []
    for _ in range(20_000):
        stimuli = rng.choices(range(6), k=6)
        chosen = rng.choices(people, k=30)
        ours = statistics.fmean(model[s] for s in stimuli)
        theirs = statistics.fmean(person[s] for person in chosen for s in stimuli)
        drawn.append(ours - theirs)
    cuts = statistics.quantiles(drawn, n=40)
    assert (found.low, found.high) == pytest.approx((cuts[0], cuts[-1]), abs=0.04)


def test_a_model_like_everybody_differs_by_nothing():
    people = np.full((10, 4), 3.0)
    (found,) = differences(people, [(np.full(4, 3.0), 5)])
    assert (found.value, found.low, found.high) == pytest.approx((0, 0, 0), abs=1e-12)


def test_place_among_people():
    assert place_among(2.0, [1.0, 2.0, 2.0, 3.0]).percentile == 50  # one below, two halves of two
    assert place_among(0.3, [0.1 + 0.2]).percentile == 50  # equal but for the last bit
    assert place_among(5.0, [1.0, 2.0]).percentile == 100
    assert place_among(None, [1.0]).percentile is None
    assert place_among(1.0, []) == place_among(None, [])


def test_bands_count_once_each():
    bands = [Score(4.0, 1.0, ""), Score(2.0, 0.5, ""), Score(0.0, 0.0, "")]
    assert band_mean(bands) == 0.5
    assert band_mean([*bands, Score(None, None, "undecided")]) is None
    assert band_mean([]) is None


def test_by_criterion():
    first, second = criterion_means(
        [sitting("p", "11", "1?"), sitting("q", "01", "00", finished=False)], [0, 1], CRITERIA
    )
    assert (first.value, first.n, first.n_undecided, first.bounds) == (1, 2, 0, None)
    assert (second.value, second.n, second.n_undecided) == (1, 1, 1)
    assert (second.bounds.low, second.bounds.high) == (0.5, 1)
    found = counted_mean({1.0: 3, 0.0: 1, None: 4})
    assert (found.value, found.n, found.bounds.low, found.bounds.high) == (0.75, 4, 3 / 8, 7 / 8)
    assert counted_mean({}).value is None


def test_the_worst():
    means = {1: 4.0, 2: 1.0, 3: 1.0, 4: 2.0, 5: 3.5, 6: 3.9}
    assert worst(means, maximum=4) == {2, 3}
    assert worst(means, maximum=4, places=3) == {2, 3, 4}
    assert worst(means, maximum=4, places=99) == {2, 3, 4, 5, 6}
    assert worst({1: 4.0}, maximum=4) == set()
    assert worst({}, maximum=4) == set()
