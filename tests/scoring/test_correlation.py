"""Coefficients beside SciPy's; intervals beside a bootstrap over respondents written out."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from scoring.correlation import mean_by_respondent, score_correlation

SCORES = [0.0, 1.0, 2.0, 3.0, 4.0]


def drawn(n: int, seed: int) -> tuple[list[float], list[float], list[int]]:
    """n answers, four by each respondent; the automatic score is off by one in every second answer."""
    rng = random.Random(seed)
    raters = [float(rng.randrange(5)) for _ in range(n)]
    automatic = [min(4.0, max(0.0, value + rng.choice([-1, 0, 0, 1]))) for value in raters]
    return automatic, raters, [index // 4 for index in range(n)]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_coefficients_are_scipys(seed: int) -> None:
    automatic, raters, groups = drawn(80, seed)
    found = score_correlation(automatic, raters, groups)
    assert (found.n, found.n_respondents) == (80, 20)
    assert found.pearson.value == pytest.approx(stats.pearsonr(automatic, raters).statistic)
    assert found.spearman.value == pytest.approx(stats.spearmanr(automatic, raters).statistic)
    assert found.pearson.low < found.pearson.value < found.pearson.high


@given(st.lists(st.tuples(st.sampled_from(SCORES), st.sampled_from(SCORES)), min_size=3, max_size=25))
def test_coefficients_of_anything_are_scipys(pairs: list[tuple[float, float]]) -> None:
    automatic, raters = map(list, zip(*pairs, strict=True))
    found = score_correlation(automatic, raters, range(len(pairs)), resamples=5)
    if len(set(automatic)) == 1 or len(set(raters)) == 1:
        assert (found.pearson.value, found.spearman.reason) == (None, "no_variation")
    else:
        assert found.pearson.value == pytest.approx(stats.pearsonr(automatic, raters).statistic)
        assert found.spearman.value == pytest.approx(stats.spearmanr(automatic, raters).statistic)


def test_intervals_are_those_of_a_bootstrap_written_out() -> None:
    """Respondents drawn with all their answers, each resample ranked anew."""
    automatic, raters, groups = drawn(80, 4)
    found = score_correlation(automatic, raters, groups, seed=11, resamples=300)
    pearson, spearman = [], []
    for row in np.random.default_rng(11).multinomial(20, [1 / 20] * 20, size=300):
        places = [index for index, group in enumerate(groups) for _ in range(row[group])]
        one, other = ([scores[index] for index in places] for scores in (automatic, raters))
        pearson.append(stats.pearsonr(one, other).statistic)
        spearman.append(stats.spearmanr(one, other).statistic)
    for shown, values in ((found.pearson, pearson), (found.spearman, spearman)):
        assert (shown.low, shown.high) == pytest.approx(tuple(np.percentile(values, [2.5, 97.5])))


def test_scores_far_from_zero_lose_nothing() -> None:
    automatic, raters, groups = drawn(40, 5)
    far = score_correlation([1e6 + value for value in automatic], raters, groups)
    assert far.pearson.value == pytest.approx(stats.pearsonr(automatic, raters).statistic)
    assert far.pearson.low == pytest.approx(score_correlation(automatic, raters, groups).pearson.low)


def test_means_by_respondent() -> None:
    """a: (4 + 2) / 2 and (3 + 3) / 2; b: its one answer."""
    assert mean_by_respondent([4.0, 1.0, 2.0], [3.0, 0.0, 3.0], ["a", "b", "a"]) == ([3.0, 1.0], [3.0, 0.0], ["a", "b"])


def test_what_is_undefined_says_why() -> None:
    assert score_correlation([], [], []).pearson.reason == "no_answers"
    assert score_correlation([1.0, 2.0], [1.0, 2.0], "ab").spearman.reason == "too_few"
    flat = score_correlation([1.0] * 5, [0.0, 1.0, 2.0, 3.0, 4.0], range(5))
    assert (flat.pearson.value, flat.pearson.reason, flat.spearman.reason) == (None, "no_variation", "no_variation")


def test_one_respondent_has_no_interval_and_resamples_without_variation_are_counted() -> None:
    alone = score_correlation([0.0, 1.0, 2.0], [0.0, 1.0, 1.0], "aaa")
    assert alone.pearson.value == pytest.approx(3**0.5 / 2) and alone.pearson.low is None
    # b and c vary, a does not: one of 27 resamples is a alone.
    some = score_correlation([1.0, 1.0, 0.0, 2.0, 1.0, 3.0], [1.0, 1.0, 0.0, 2.0, 0.0, 3.0], "aabbcc")
    assert some.pearson.undefined / 2_000 == pytest.approx(1 / 27, abs=0.02)


@pytest.mark.parametrize("wrong", [[1.0, 2.0], [1.0, 2.0, float("nan")]])
def test_bad_input(wrong: list[float]) -> None:
    with pytest.raises(ValueError, match=r"entry|finite"):
        score_correlation(wrong, [1.0, 2.0, 3.0], "abc")
