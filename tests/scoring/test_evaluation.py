"""Every figure beside scikit-learn's or SciPy's, or counted by hand; intervals beside a bootstrap written out."""

import json
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

from scoring.evaluation import Bin, Report, Said, confusion, evaluate, majority, mean_difference, mean_over_criteria


def drawn(n: int, classes: list[float], seed: int) -> dict:
    """n answers of n/6 respondents by a judge who is right in two cases of three."""
    rng = random.Random(seed)
    truth = [rng.choice(classes) for _ in range(n)]
    said = [value if rng.random() < 0.67 else rng.choice(classes) for value in truth]
    raw = [[rng.random() + (3 * (value == one)) for one in classes] for value in said]
    probabilities = [[share / sum(row) for share in row] for row in raw]
    return {
        "truth": truth,
        "said": said,
        "groups": [index // 6 for index in range(n)],
        "classes": classes,
        "probabilities": probabilities,
    }


@pytest.mark.parametrize("classes", [[0.0, 1.0], [0.0, 0.25, 0.5, 1.0]], ids=["two", "four"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_figures_are_sklearns(classes: list[float], seed: int) -> None:
    data = drawn(120, classes, seed)
    report = evaluate(**data)
    truth = [classes.index(value) for value in data["truth"]]
    said = [classes.index(value) for value in data["said"]]
    for average in ("micro", "macro", "weighted"):
        assert report.estimates[f"f1_{average}"].value == pytest.approx(metrics.f1_score(truth, said, average=average))
    assert report.estimates["mcc"].value == pytest.approx(metrics.matthews_corrcoef(truth, said))
    assert report.confusion == metrics.confusion_matrix(truth, said).tolist()
    assert report.estimates["brier"].value == pytest.approx(
        metrics.brier_score_loss(truth, data["probabilities"], labels=range(len(classes)), scale_by_half="auto")
    )


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0]), st.sampled_from([0.0, 0.5, 1.0])), min_size=1, max_size=30))
def test_f1_over_the_classes_that_occur(pairs: list[tuple[float, float]]) -> None:
    """As scikit-learn has it when it is not told of classes that nobody gave and nobody said."""
    truth, said = map(list, zip(*pairs, strict=True))
    report = evaluate(truth=truth, said=said, groups=list(range(len(pairs))), classes=[0.0, 0.5, 1.0], resamples=10)
    expected = metrics.f1_score([str(v) for v in truth], [str(v) for v in said], average="macro")
    assert report.estimates["f1_macro"].value == pytest.approx(expected)


def test_classes_in_any_order() -> None:
    """Scales stand best first; the columns of the probabilities go with them."""
    data = drawn(60, [0.0, 1.0], 4)
    turned = data | {"classes": [1.0, 0.0], "probabilities": [row[::-1] for row in data["probabilities"]]}
    assert evaluate(**data) == evaluate(**turned)


def test_ece_by_hand() -> None:
    """Confidence of what was said: 0.9 0.9 0.8 0.6, correct 1 0 1 1.

    Bins (0.8, 0.9]: two, mean 0.9, half right: |1.8 - 1|; (0.7, 0.8]: |0.8 - 1|; (0.5, 0.6]: |0.6 - 1|.
    ECE = (0.8 + 0.2 + 0.4) / 4 = 0.35. Brier = (0.01 + 0.81 + 0.04 + 0.16) / 4 = 0.255.
    """
    report = evaluate(
        truth=[1.0, 0.0, 1.0, 0.0],
        said=[1.0, 1.0, 1.0, 0.0],
        groups=["a", "a", "b", "b"],
        classes=[0.0, 1.0],
        probabilities=[[0.1, 0.9], [0.1, 0.9], [0.2, 0.8], [0.6, 0.4]],
    )
    assert report.estimates["ece"].value == pytest.approx(0.35)
    assert report.estimates["brier"].value == pytest.approx(0.255)
    assert [found.n for found in report.bins] == [0, 0, 0, 0, 0, 1, 0, 1, 2, 0]
    assert report.bins[8] == Bin(0.8, 0.9, 2, pytest.approx(0.9), 0.5)
    assert report.bins[0].confidence is None and report.bins[0].correct is None


def test_intervals_are_those_of_a_bootstrap_written_out() -> None:
    data = drawn(90, [0.0, 1.0], 5)
    report = evaluate(**data, seed=11, resamples=400)
    rng = np.random.default_rng(11)
    counts = rng.multinomial(15, [1 / 15] * 15, size=400)
    values = []
    for row in counts:
        places = [
            place for group, times in enumerate(row) for _ in range(times) for place in range(group * 6, group * 6 + 6)
        ]
        truth, said = ([data[name][place] for place in places] for name in ("truth", "said"))
        values.append(metrics.f1_score(truth, said, average="macro"))
    low, high = np.percentile(values, [2.5, 97.5])
    assert (report.estimates["f1_macro"].low, report.estimates["f1_macro"].high) == pytest.approx((low, high))


def test_respondents_are_drawn_whole() -> None:
    """Ten respondents who are each all right or all wrong: an interval over answers would be far too narrow."""
    truth = [1.0] * 200
    said = [1.0] * 100 + [0.0] * 100
    by_respondent = evaluate(truth=truth, said=said, groups=[i // 20 for i in range(200)], classes=[0.0, 1.0])
    by_answer = evaluate(truth=truth, said=said, groups=list(range(200)), classes=[0.0, 1.0])
    wide, narrow = (report.estimates["f1_micro"] for report in (by_respondent, by_answer))
    assert wide.high - wide.low > 3 * (narrow.high - narrow.low)  # √20 = 4.5 in theory


def test_majority_stands_beside() -> None:
    found = majority([1.0, 1.0, 1.0, 0.0], [0.0, 1.0])
    assert found is not None and found.value == 1.0
    assert found.f1_micro == 0.75
    assert found.f1_macro == pytest.approx((6 / 7 + 0) / 2)
    assert found.f1_weighted == pytest.approx(6 / 7 * 0.75)


def test_what_is_undefined_says_why_and_is_no_number() -> None:
    one_said = evaluate(truth=[1.0, 0.0], said=[1.0, 1.0], groups=[1, 2], classes=[0.0, 1.0])
    assert (one_said.estimates["mcc"].value, one_said.estimates["mcc"].reason) == (None, "one_class_said")
    assert one_said.estimates["ece"].reason == "no_confidence"
    one_true = evaluate(truth=[1.0, 1.0], said=[1.0, 0.0], groups=[1, 2], classes=[0.0, 1.0])
    assert one_true.estimates["mcc"].reason == "one_class_true"
    nothing = evaluate(truth=[], said=[], groups=[], classes=[0.0, 1.0], probabilities=[])
    assert {estimate.reason for estimate in nothing.estimates.values()} == {"no_answers"} and nothing.majority is None
    single = evaluate(truth=[1.0, 0.0], said=[1.0, 0.0], groups=[1, 1], classes=[0.0, 1.0])
    assert single.estimates["f1_macro"].value == 1.0 and single.estimates["f1_macro"].low is None
    for report in (one_said, one_true, nothing, single):
        assert "NaN" not in json.dumps(report.as_json())


def test_undefined_resamples_are_counted() -> None:
    """Two respondents of one class each: every second resample has one class only, and no MCC."""
    report = evaluate(truth=[1.0, 0.0, 1.0], said=[1.0, 0.0, 1.0], groups=["a", "b", "c"], classes=[0.0, 1.0])
    # One class only: the b never drawn, (2/3)^3 = 8/27, or only b, 1/27.
    assert report.estimates["mcc"].undefined / 2_000 == pytest.approx(9 / 27, abs=0.05)


def test_lengths_and_classes_are_checked() -> None:
    with pytest.raises(ValueError, match="one entry"):
        evaluate(truth=[1.0], said=[], groups=[1], classes=[0.0, 1.0])
    with pytest.raises(KeyError):
        confusion([2.0], [1.0], [0.0, 1.0])


def test_a_stored_report_is_the_same_again() -> None:
    report = evaluate(**drawn(60, [0.0, 1.0], 6))
    assert Report.from_json(json.loads(json.dumps(report.as_json()))) == report


def test_the_mean_over_criteria_and_its_interval_are_written_out() -> None:
    """Criteria of different answers and different respondents; a resample holds the same people for all of them."""
    first, second = drawn(90, [0.0, 1.0], 7), drawn(60, [0.0, 0.5, 1.0], 8)
    second["groups"] = [group + 5 for group in second["groups"]]  # respondents 5 to 14 of 0 to 14
    names = ("truth", "said", "groups", "classes")
    found = mean_over_criteria(
        [Said(**{name: data[name] for name in names}) for data in (first, second)], "f1_macro", seed=3, resamples=300
    )

    def macro(data: dict, counts: dict[int, int]) -> float:
        places = [index for index, group in enumerate(data["groups"]) for _ in range(counts[group])]
        truth, said = ([str(data[name][index]) for index in places] for name in ("truth", "said"))
        return metrics.f1_score(truth, said, average="macro")

    whole = dict.fromkeys(range(15), 1)
    assert found.value == pytest.approx((macro(first, whole) + macro(second, whole)) / 2)
    values = []
    for row in np.random.default_rng(3).multinomial(15, [1 / 15] * 15, size=300):
        counts = dict(enumerate(row.tolist()))
        values.append((macro(first, counts) + macro(second, counts)) / 2)
    assert (found.low, found.high) == pytest.approx(tuple(np.percentile(values, [2.5, 97.5])))


def test_a_mean_with_an_undefined_criterion_is_undefined() -> None:
    sets = [Said([1.0, 0.0], [1.0, 0.0], [1, 2], [0.0, 1.0]), Said([1.0, 0.0], [1.0, 1.0], [1, 2], [0.0, 1.0])]
    assert mean_over_criteria(sets, "f1_macro").value == pytest.approx((1 + 1 / 3) / 2)
    assert mean_over_criteria(sets, "mcc").reason == "one_class_said"
    assert mean_over_criteria([], "mcc").reason == "no_answers"
    empty = Said([], [], [], [0.0, 1.0])
    assert mean_over_criteria([sets[0], empty], "f1_micro").reason == "no_answers"


def test_a_difference_is_one_in_the_same_resamples() -> None:
    """Two judges with the same mistakes but one; and 0 between a judge and itself."""
    data = drawn(120, [0.0, 1.0], 9)
    names = ("truth", "groups", "classes")
    plain = {name: data[name] for name in names}
    wrong = next(place for place, value in enumerate(data["said"]) if value != data["truth"][place])
    better = [*data["said"]]
    better[wrong] = data["truth"][wrong]
    one, other = [Said(said=better, **plain)], [Said(said=data["said"], **plain)]
    found = mean_difference(one, other, "f1_micro", seed=2)
    assert found.value == pytest.approx(1 / 120)
    # The respondent of that answer is drawn k times of 20: the difference is k / 120.
    counts = np.random.default_rng(2).multinomial(20, [1 / 20] * 20, size=2_000)[:, data["groups"][wrong]]
    assert (found.low, found.high) == pytest.approx(tuple(np.percentile(counts / 120, [2.5, 97.5])))
    same = mean_difference(one, one, "f1_macro")
    assert (same.value, same.low, same.high) == (0, 0, 0)
    assert mean_difference(one, [Said(said=[1.0] * 120, **plain)], "mcc").reason == "one_class_said"
    with pytest.raises(ValueError, match="same answers"):
        mean_difference(one, [Said([1.0], [1.0], [1], [0.0, 1.0])], "mcc")
