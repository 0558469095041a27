"""A judge against labels. The expected numbers are worked out in the comments, and scikit-learn's."""

import math
import random

import pytest
from sklearn.metrics import f1_score, matthews_corrcoef

from scoring.concordance import concordance


def test_two_values_by_hand() -> None:
    # label 1: said 1, 1, 1, 0; label 0: said 0, 1. tp 3, fn 1, tn 1, fp 1.
    found = concordance([(1, 1), (1, 1), (1, 1), (1, 0), (0, 0), (0, 1)], [1, 0])
    assert found.counts == ((3, 1), (1, 1))
    assert (found.n, found.agreed) == (6, 4)
    assert found.percent == pytest.approx(400 / 6)
    # F1 of 1: 2·3 / (4 + 4) = 0.75; of 0: 2·1 / (2 + 2) = 0.5.
    assert found.f1_macro == pytest.approx(0.625)
    # (3·1 − 1·1) / sqrt(4·4·2·2) = 2 / 8
    assert found.mcc == pytest.approx(0.25)
    assert found.label_mean == pytest.approx(4 / 6) and found.judge_mean == pytest.approx(4 / 6)


def test_nothing_to_compare_is_no_number() -> None:
    found = concordance([], [1, 0])
    assert (found.n, found.percent, found.f1_macro, found.mcc, found.reason) == (0, None, None, None, "no_pairs")


@pytest.mark.parametrize("pairs", [[(1, 1), (1, 1)], [(1, 1), (0, 1)], [(1, 1), (1, 0)]])
def test_one_value_on_a_side_leaves_no_correlation(pairs: list[tuple[float, float]]) -> None:
    found = concordance(pairs, [1, 0])
    assert found.mcc is None and found.reason == "no_variation" and found.percent is not None


def test_a_value_off_the_scale_is_refused() -> None:
    with pytest.raises(ValueError, match=r"0\.5"):
        concordance([(1, 0.5)], [1, 0])


@pytest.mark.parametrize("seed", range(20))
def test_as_scikit_learn_has_it(seed: int) -> None:
    draw = random.Random(seed)
    scale = [1, 0.5, 0.25, 0]
    pairs = [(draw.choice(scale), draw.choice(scale)) for _ in range(draw.randint(8, 60))]
    labels, said = zip(*[(scale.index(a), scale.index(b)) for a, b in pairs], strict=True)
    found = concordance(pairs, scale)
    assert found.f1_macro == pytest.approx(f1_score(labels, said, average="macro"))
    assert found.mcc == pytest.approx(matthews_corrcoef(labels, said))
    assert found.label_mean == pytest.approx(math.fsum(a for a, _ in pairs) / len(pairs))
