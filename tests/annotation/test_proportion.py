"""Wilson's interval."""

import pytest

from annotation.proportion import proportion


@pytest.mark.parametrize(
    ("hits", "n", "low", "high"),
    [  # R. Newcombe, Two-sided confidence intervals for the single proportion, Stat Med 17 (1998), table I, method 3
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0000, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_published_intervals(hits: int, n: int, low: float, high: float) -> None:
    found = proportion(hits, n)
    assert found.value == hits / n
    assert (found.low, found.high) == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))
    mirrored = proportion(n - hits, n)
    assert (mirrored.low, mirrored.high) == (pytest.approx(1 - found.high), pytest.approx(1 - found.low))


@pytest.mark.parametrize("n", [1, 3, 1000])
def test_at_the_edges_the_interval_is_one_sided_and_not_empty(n: int) -> None:
    none, every = proportion(0, n), proportion(n, n)
    assert none.low == 0 and every.high == 1
    assert 0 < none.high < 1 and 0 < every.low < 1


def test_of_nothing_there_is_no_share() -> None:
    found = proportion(0, 0)
    assert (found.value, found.low, found.high, found.n) == (None, None, None, 0)


@pytest.mark.parametrize(("hits", "n"), [(-1, 2), (3, 2)])
def test_what_is_no_share_is_refused(hits: int, n: int) -> None:
    with pytest.raises(ValueError, match="of"):
        proportion(hits, n)
