import math
import warnings
from fractions import Fraction

import krippendorff
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from annotation import agreement
from annotation.agreement import alpha, interval, percent_agreement
from tests.shared_cases import case_params

N = None
LEVELS = ["nominal", "ordinal", "interval"]


@st.composite
def matrices(draw, values=(0, 1, 2, 5)):
    raters = draw(st.integers(2, 4))
    units = draw(st.integers(1, 12))
    cell = st.sampled_from([None, *values])
    return [[draw(cell) for _ in range(units)] for _ in range(raters)]


@pytest.mark.parametrize("case", case_params("agreement"))
def test_shared_case(case):
    result = alpha(case["matrix"], case["level"])
    assert result.n_pairable == case["n_pairable"]
    if case["alpha"] is None:
        assert result.value is None
        assert result.reason == "no_variation"
        return
    assert result.value == pytest.approx(case["alpha"], abs=1e-12, rel=0)
    assert result.value == pytest.approx(float(Fraction(case["exact"])), abs=1e-12, rel=0)
    assert result.reason == ""


def test_two_raters_three_units():
    # Units 11, 00, 10: coincidences o11 = 2, o00 = 2, o10 = o01 = 1, so n1 = n0 = 3 and N = 6.
    # D_o = 2, D_e = 3*3*2 = 18: alpha = 1 - 5 * 2 / 18 = 4/9.
    result = alpha([[1, 0, 1], [1, 0, 0]])
    assert result.value == pytest.approx(4 / 9, abs=1e-15)
    assert (result.n_units, result.n_pairable) == (3, 6)


def test_interval_level_weighs_by_distance():
    # Units (0, 0), (0.25, 0.5), (1, 1). Σ over ordered pairs: observed 2 * 0.0625 = 0.125. Expected
    # 2 (N Σx² - (Σx)²) = 2 (6 * (0.0625 + 0.25 + 2) - 2.75²) = 2 (13.875 - 7.5625) = 12.625.
    result = alpha([[0, 0.25, 1], [0, 0.5, 1]], "interval")
    assert result.value == pytest.approx(1 - 5 * 0.125 / 12.625, abs=1e-15)


def test_ordinal_level_weighs_by_ranks():
    # Values 1, 2, 9 once as 1|1, 2|9, 9|9: n = (2, 1, 3), mid-ranks 1, 2.5, 4.5. Observed 2 * 2² = 8.
    # Expected 2 (2*1*1.5² + 2*3*3.5² + 1*3*2²) = 2 (4.5 + 73.5 + 12) = 180: alpha = 1 - 5 * 8 / 180 = 7/9.
    assert alpha([[1, 2, 9], [1, 9, 9]], "ordinal").value == pytest.approx(7 / 9, abs=1e-15)
    # Only the order of values counts.
    assert alpha([[1, 2, 3], [1, 3, 3]], "ordinal").value == pytest.approx(7 / 9, abs=1e-15)


def test_systematic_disagreement_is_below_zero():
    assert alpha([[1, 0], [0, 1]]).value == pytest.approx(-0.5, abs=1e-15)


def test_a_gap_is_not_a_class():
    # Scenario SG6: L1 1 1 0, L2 1 1 -, L3 - 1 0. Seven pairable values, all present ratings agree.
    result = alpha([[1, 1, 0], [1, 1, N], [N, 1, 0]])
    assert (result.value, result.n_pairable) == (1.0, 7)
    # L1 withdraws the rating of answer 1: the unit has one rating and leaves.
    result = alpha([[N, 1, 0], [1, 1, N], [N, 1, 0]])
    assert (result.value, result.n_units, result.n_pairable) == (1.0, 2, 5)


@pytest.mark.parametrize("level", LEVELS)
def test_no_variation_is_undefined(level):
    result = alpha([[1, 1, 1], [1, 1, N]], level)
    assert (result.value, result.reason) == (None, "no_variation")
    assert (result.n_units, result.n_pairable, result.interval) == (2, 4, None)


@pytest.mark.parametrize("ratings", [[], [[]], [[1, N], [N, 0]], [[1, 0, 1]], [[N, N], [N, N]]])
def test_no_common_unit_is_undefined(ratings):
    result = alpha(ratings)
    assert (result.value, result.reason, result.n_units, result.n_pairable) == (None, "no_common_unit", 0, 0)
    assert result.interval is None
    assert percent_agreement(ratings).value is None
    assert percent_agreement(ratings).reason == "no_common_unit"


def test_nan_is_a_gap_too():
    assert alpha(np.array([[1, 0, np.nan], [1, 1, 0]])) == alpha([[1, 0, N], [1, 1, 0]])


@pytest.mark.parametrize("ratings", [[[1, 0], [1]], [[1, float("inf")], [1, 0]], [1, 0, 1]])
def test_what_is_no_matrix_of_ratings_is_refused(ratings):
    with pytest.raises(ValueError):
        alpha(ratings)


def test_unknown_level_is_refused():
    with pytest.raises(ValueError, match="level"):
        alpha([[1], [1]], "ration")


@pytest.mark.parametrize("scale", [1e-200, 1e-3, 1e200])
def test_interval_alpha_has_no_unit(scale):
    ratings = np.array([[0, 1, 2, 4], [0, 2, 2, 3]], dtype=float)
    expected = alpha(ratings, "interval").value
    assert alpha(ratings * scale, "interval").value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("level", LEVELS)
@given(ratings=matrices())
@settings(deadline=None, max_examples=1000)
def test_same_as_the_krippendorff_package(level, ratings):
    # The package raises when values or pairs are too few, and gives NaN or an error without variation.
    result = alpha(ratings, level, resamples=0)
    data = np.array(ratings, dtype=float)
    pairable = data[:, (~np.isnan(data)).sum(axis=0) >= 2]
    kinds = set(pairable[~np.isnan(pairable)])
    if len(kinds) < 2:
        assert result.value is None
        assert result.reason == ("no_variation" if kinds else "no_common_unit")
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Values of single ratings are no part of alpha; the package's domain is that of all ratings.
        reference = krippendorff.alpha(reliability_data=pairable, level_of_measurement=level)
    assert result.value == pytest.approx(reference, abs=1e-12, rel=0)


@given(matrices(values=tuple(range(30))), st.sampled_from(LEVELS))
@settings(deadline=None, max_examples=30)
def test_same_on_a_scale_too_long_for_one_integer(ratings, level):
    assume(alpha(ratings, level, resamples=0).value is not None)
    data = np.array(ratings, dtype=float)
    pairable = data[:, (~np.isnan(data)).sum(axis=0) >= 2]
    # 40 more units with a new value each push the count vectors past 62 bits.
    extra = np.tile(np.arange(100, 140, dtype=float), (len(ratings), 1))
    data = np.hstack([pairable, extra])
    reference = krippendorff.alpha(reliability_data=data, level_of_measurement=level)
    assert alpha(data, level, resamples=0).value == pytest.approx(reference, abs=1e-12, rel=0)


@given(matrices(), st.sampled_from(LEVELS), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=50)
def test_drawing_patterns_is_drawing_units(ratings, level, random):
    """Alpha at resampled pattern counts is alpha of the matrix of the resampled units."""
    patterns = agreement._patterns(ratings, level)
    assume(patterns.n_units > 1)
    data = np.array(ratings, dtype=float)
    pairable = data[:, (~np.isnan(data)).sum(axis=0) >= 2]
    drawn = pairable[:, [random.randrange(pairable.shape[1]) for _ in range(pairable.shape[1])]]
    units = []
    for pattern in patterns.counts:
        same = [[int((column == value).sum()) for value in patterns.values] for column in drawn.T]
        units.append(same.count(pattern.tolist()))
    assert sum(units) == patterns.n_units
    value = agreement._alphas(patterns, np.array([units], dtype=float), level)[0]
    expected = alpha(drawn, level, resamples=0).value
    assert (None if math.isnan(value) else value) == (None if expected is None else pytest.approx(expected, abs=1e-12))


RATINGS = [[1, 1, 0, 1, 0, 1, 1, 0, 1, 1, 0, 1], [1, 1, 0, 1, 0, 1, 1, 1, 1, 1, 0, 1]]


def test_interval_has_the_quantiles_of_resampled_units():
    random = np.random.default_rng(7)
    truth = random.random(200) < 0.6
    data = np.where(random.random((3, 200)) < 0.15, ~truth, truth).astype(float)
    data[0, :40] = np.nan
    draws = [alpha(data[:, random.integers(0, 200, 200)], resamples=0).value for _ in range(3000)]
    low, high = np.quantile(draws, [0.025, 0.975])
    bounds = interval(data, resamples=20_000)
    # A tail quantile of 3,000 draws has a standard error of about 0.003 here: the interval is 0.2 wide.
    assert bounds.low == pytest.approx(low, abs=0.012)
    assert bounds.high == pytest.approx(high, abs=0.012)
    assert 0.15 < bounds.high - bounds.low < 0.25


def test_interval_is_repeatable_and_part_of_alpha():
    first = interval(RATINGS, seed=3)
    assert first == interval(RATINGS, seed=3) == alpha(RATINGS, seed=3).interval
    assert (first.resamples, first.level) == (1000, 0.95)
    assert alpha(RATINGS, resamples=0).interval is None


def test_interval_does_not_depend_on_the_chunks(monkeypatch):
    whole = interval(RATINGS, resamples=500)
    monkeypatch.setattr(agreement, "_CHUNK_CELLS", 40)
    assert interval(RATINGS, resamples=500) == whole


def test_undefined_resamples_are_counted():
    # Units 11 and 00: half of the resamples draw one of them twice, and have no variation.
    bounds = interval([[1, 0], [1, 0]], resamples=2000, seed=1)
    assert 900 < bounds.undefined < 1100
    assert (bounds.low, bounds.high, bounds.resamples) == (1.0, 1.0, 2000)


def test_one_unit_has_no_interval():
    result = alpha([[1], [0]])
    # o10 = o01 = 1, N = 2: 1 - 1 * 2 / 2 = 0.
    assert (result.value, result.interval) == (0.0, None)


def test_all_resamples_undefined_has_no_bounds():
    bounds = interval([[1, 0], [1, 0]], resamples=1, seed=next(s for s in range(99) if _undefined(s)))
    assert (bounds.low, bounds.high, bounds.undefined) == (None, None, 1)


def _undefined(seed: int) -> bool:
    return interval([[1, 0], [1, 0]], resamples=1, seed=seed).undefined == 1


def test_percent_agreement_counts_pairs():
    # Unit 1: three ratings 1 1 0, one equal pair of three. Unit 2: 0 0, one of one.
    result = percent_agreement([[1, 0, 1], [1, 0, N], [0, N, N]])
    assert (result.value, result.n_units, result.n_pairs) == (0.5, 2, 4)
    assert percent_agreement([[1, 1], [1, 1]]).value == 1.0
    assert percent_agreement([[1, 0], [0, 1]]).value == 0.0
