"""The paper's rubric on three stimuli; every expected figure is worked out beside it."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.formula import (
    Bounds,
    Criterion,
    Group,
    Score,
    Sitting,
    Stimulus,
    answer_score,
    model_score,
    people_score,
    sitting_score,
    stimulus_groups,
    stimulus_means,
)

CODES = ["grammatical", "logical", "order", "sequence"]
CRITERIA = [Criterion(code) for code in CODES]
GRADED = [Criterion("quality", is_graded=True)]
STIMULI = ["s1", "s2", "s3"]
TOO_FEW = Score(None, None, "too_few")


def answer(labels: str):
    """'110?' is grammatical, logical, unnatural order, sequence undecided."""
    return answer_score(
        {code: None if sign == "?" else float(sign) for code, sign in zip(CODES, labels, strict=True)},
        CRITERIA,
    )


def sitting(respondent, *labels, finished=True):
    return Sitting(respondent, finished, {key: answer(own) for key, own in zip(STIMULI, labels, strict=False)})


def test_an_answer_is_the_sum_of_its_labels():
    assert answer("1101").value == 3.0
    assert (answer("1101").low, answer("1101").high) == (3.0, 3.0)


def test_an_undecided_label_leaves_the_sum_open():
    open_answer = answer("1?0?")
    assert (open_answer.value, open_answer.low, open_answer.high) == (None, 1.0, 3.0)
    missing = answer_score({"grammatical": 1.0}, CRITERIA)
    assert (missing.value, missing.low, missing.high) == (None, 1.0, 4.0)


def test_a_label_that_is_not_in_the_score_is_not_read():
    assert answer_score({"quality": 0.25, "vocabulary": 1.0}, GRADED).value == 0.25


@pytest.mark.parametrize("label", [1.5, -1, float("nan"), float("inf"), 0.5])
def test_a_label_off_its_scale_is_refused(label):
    with pytest.raises(ValueError, match="scale"):
        answer_score({"grammatical": label}, [Criterion("grammatical")])


def test_a_sitting_is_the_mean_over_all_stimuli():
    # (4 + 2 + 0) / 3 = 2; over four criteria 0.5.
    result = sitting_score(sitting("p", "1111", "1001", "0000"), STIMULI, CRITERIA)
    assert result.score == Score(2.0, 0.5, "")
    assert (result.bounds, result.n_stimuli, result.n_undecided) == (Bounds(2.0, 2.0), 3, 0)


def test_a_sitting_on_a_group_reads_only_its_stimuli():
    result = sitting_score(sitting("p", "1111", "?001", "0000"), ["s1", "s3"], CRITERIA)
    assert result.score == Score(2.0, 0.5, "")


@pytest.mark.parametrize(
    ("one", "stimuli", "reason", "bounds"),
    [
        (sitting("p", "1111", "1111", finished=False), STIMULI, "unfinished", None),
        (sitting("p", "1111", "1111", "1111", finished=False), STIMULI, "unfinished", None),
        (sitting("p", "1111", "1111"), STIMULI, "missing_answers", None),
        (sitting("p", "1111", "1111"), [], "no_stimuli", None),
        # (4 + [1, 2] + 1) / 3: between 2 and 7/3.
        (sitting("p", "1111", "100?", "1000"), STIMULI, "undecided", Bounds(2.0, 7 / 3)),
    ],
)
def test_a_sitting_without_a_score_says_why(one, stimuli, reason, bounds):
    result = sitting_score(one, stimuli, CRITERIA)
    assert result.score == Score(None, None, reason)
    assert result.bounds == bounds


PEOPLE = [
    sitting("a", "1111", "1111", "1111"),  # 4
    sitting("b", "1111", "1001", "0000"),  # 2
    sitting("c", "1111", "1111", "000?"),  # undecided: 8/3 to 3
    sitting("d", "1111", finished=False),
    sitting("e", "0000", "0000", "0000"),  # 0
]


def test_people_are_the_mean_of_finished_sittings_with_a_score():
    result = people_score(PEOPLE, STIMULI, CRITERIA)
    # (4 + 2 + 0) / 3 = 2, deviation with ddof 1: sqrt((4 + 0 + 4) / 2) = 2.
    assert result.mean == Score(2.0, 0.5, "")
    assert result.sd == Score(2.0, 0.5, "")
    assert (result.n_scored, result.n_respondents) == (3, 3)
    assert (result.n_unfinished, result.n_undecided, result.n_missing) == (1, 1, 0)
    # All four finished sittings: (4 + 2 + 0 + 8/3) / 4 = 13/6 and (4 + 2 + 0 + 3) / 4 = 9/4.
    assert result.bounds.low == pytest.approx(13 / 6, abs=1e-15)
    assert result.bounds.high == pytest.approx(9 / 4, abs=1e-15)


def test_an_early_quitter_is_not_averaged_over_easy_tasks():
    quitter = sitting("q", "1111", finished=False)
    assert people_score([quitter], ["s1"], CRITERIA).mean == Score(None, None, "no_sittings")


def test_a_group_without_the_undecided_stimulus_counts_the_sitting():
    result = people_score(PEOPLE, ["s1", "s2"], CRITERIA)
    # a 4, b 3, c 4, e 0: 11/4.
    assert result.mean == Score(2.75, 0.6875, "")
    assert result.n_undecided == 0


def test_people_interval_is_of_respondents():
    result = people_score(PEOPLE, STIMULI, CRITERIA, seed=5)
    assert result.interval == people_score(PEOPLE, STIMULI, CRITERIA, seed=5).interval
    # Three respondents at 0, 2, 4: the mean of a resample is 0 or 4 with 1/27 each, above 2.5 %.
    assert (result.interval.low, result.interval.high) == (0.0, 4.0)
    assert (result.interval.n, result.interval.level, result.interval.resamples) == (3, 0.95, 1000)


def test_people_interval_is_as_wide_as_theory_says():
    # 100 people, half at 4 and half at 0: the mean has standard error 2 / sqrt(100) = 0.2.
    people = [sitting(n, *["1111" if n % 2 else "0000"] * 3) for n in range(100)]
    interval = people_score(people, STIMULI, CRITERIA, resamples=20_000).interval
    assert interval.low == pytest.approx(2 - 1.96 * 0.2, abs=0.03)
    assert interval.high == pytest.approx(2 + 1.96 * 0.2, abs=0.03)


def test_sittings_of_one_respondent_are_drawn_together():
    # One person took the test 99 times at 4, another once at 0. A quarter of the resamples hold only the one,
    # a quarter only the other: 0 and 4. Were sittings drawn, the mean would keep near 3.96.
    people = [sitting("a", "1111", "1111", "1111")] * 99 + [sitting("b", "0000", "0000", "0000")]
    result = people_score(people, STIMULI, CRITERIA)
    assert (result.mean.value, result.n_scored, result.n_respondents) == (3.96, 100, 2)
    assert (result.interval.low, result.interval.high) == (0.0, 4.0)


@pytest.mark.parametrize(
    ("sittings", "stimuli", "reason"),
    [
        ([], STIMULI, "no_sittings"),
        ([PEOPLE[3]], STIMULI, "no_sittings"),
        ([PEOPLE[2]], STIMULI, "undecided"),
        ([PEOPLE[2], PEOPLE[3]], STIMULI, "undecided"),
        ([sitting("p", "1111")], STIMULI, "missing_answers"),
        (PEOPLE, [], "no_stimuli"),
    ],
)
def test_people_without_a_score_say_why(sittings, stimuli, reason):
    result = people_score(sittings, stimuli, CRITERIA)
    assert result.mean == Score(None, None, reason)
    assert (result.sd, result.interval) == (TOO_FEW, None)


def test_one_person_has_a_mean_and_neither_deviation_nor_interval():
    result = people_score([PEOPLE[0]], STIMULI, CRITERIA)
    assert result.mean == Score(4.0, 1.0, "")
    assert (result.sd, result.interval) == (TOO_FEW, None)


RUNS = [
    sitting("m", "1111", "1101", "0000"),  # 7/3
    sitting("m", "1111", "1001", "1000"),  # 7/3
    sitting("m", "1111", "0011", "1001"),  # 8/3
    sitting("m", "0000", "0011", "0000"),  # 2/3 (s1 without a valid reply)
    sitting("m", "1111", "1111", "1001"),  # 10/3
]


def test_a_model_is_the_majority_of_its_planned_runs():
    result = model_score(RUNS, STIMULI, CRITERIA, planned=5)
    # s1: each criterion in 4 of 5 runs. s2: grammatical 3, logical 2, order 3, sequence 5. s3: 3, 0, 0, 2.
    assert {key: own.values for key, own in result.by_stimulus.items()} == {
        "s1": (1.0, 1.0, 1.0, 1.0),
        "s2": (1.0, 0.0, 1.0, 1.0),
        "s3": (1.0, 0.0, 0.0, 0.0),
    }
    # (4 + 3 + 1) / 3 = 8/3, over four criteria 2/3.
    assert result.majority.value == pytest.approx(8 / 3, abs=1e-15)
    assert result.majority.norm == pytest.approx(2 / 3, abs=1e-15)
    assert result.bounds == Bounds(result.majority.value, result.majority.value)


def test_the_mean_over_runs_stands_beside_the_majority():
    result = model_score(RUNS, STIMULI, CRITERIA, planned=5)
    # (7 + 7 + 8 + 2 + 10) / 3 / 5 = 34/15. Thirds from the mean 6.8: 0.2, 0.2, 1.2, -4.8, 3.2; squares sum to
    # 0.04 + 0.04 + 1.44 + 23.04 + 10.24 = 34.8; sd = sqrt(34.8 / 4) / 3.
    assert result.mean.value == pytest.approx(34 / 15, abs=1e-15)
    assert result.mean.norm == pytest.approx(34 / 60, abs=1e-15)
    assert result.sd.value == pytest.approx(math.sqrt(8.7) / 3, abs=1e-15)
    assert (result.n_planned, result.n_complete, result.n_scored) == (5, 5, 5)


def test_half_of_an_even_number_of_runs_is_not_more_than_half():
    runs = [sitting("m", sign * 4, sign * 4, sign * 4) for sign in "1100"]
    assert model_score(runs, STIMULI, CRITERIA, planned=4).majority == Score(0.0, 0.0, "")
    # Equal at every stimulus, and yet the mean is 2: the two figures answer different questions.
    assert model_score(runs, STIMULI, CRITERIA, planned=4).mean == Score(2.0, 0.5, "")


@pytest.mark.parametrize(
    ("runs", "reason"),
    [
        ([*RUNS[:4], sitting("m", "1111", finished=False)], "incomplete_run"),
        ([*RUNS[:4], sitting("m", "1111", "1111")], "incomplete_run"),
        (RUNS[:4], "missing_runs"),
        ([], "missing_runs"),
        ([*RUNS, RUNS[0]], "too_many_runs"),
    ],
)
def test_a_majority_needs_every_planned_run(runs, reason):
    result = model_score(runs, STIMULI, CRITERIA, planned=5)
    assert result.majority == Score(None, None, reason)
    assert (result.bounds, result.by_stimulus) == (None, {})


def test_an_incomplete_run_leaves_the_mean_of_the_others():
    result = model_score([*RUNS[:2], sitting("m", "1111", finished=False)], STIMULI, CRITERIA, planned=3)
    assert result.mean.value == pytest.approx(7 / 3, abs=1e-15)
    assert (result.sd.value, result.n_complete, result.n_scored) == (0.0, 2, 2)


def test_an_undecided_label_matters_only_where_it_could_turn_the_majority():
    # One stimulus, three runs. grammatical 1 1 ?: holds. logical 0 0 ?: does not. order 1 0 ?: open.
    runs = [sitting("m", labels) for labels in ("1011", "1001", "???1")]
    result = model_score(runs, ["s1"], CRITERIA, planned=3)
    assert result.by_stimulus["s1"].values == (1.0, 0.0, None, 1.0)
    assert result.majority == Score(None, None, "undecided")
    assert result.bounds == Bounds(2.0, 3.0)
    closed = model_score([sitting("m", labels) for labels in ("1011", "1011", "???1")], ["s1"], CRITERIA, planned=3)
    assert closed.majority == Score(3.0, 0.75, "")
    assert (closed.n_scored, closed.n_complete) == (2, 3)


def graded(*values):
    return [Sitting("m", True, {"s1": answer_score({"quality": value}, GRADED)}) for value in values]


def test_a_graded_criterion_needs_one_value_in_more_than_half():
    result = model_score(graded(0.5, 0.5, 1), ["s1"], GRADED, planned=3)
    assert result.majority == Score(0.5, 0.5, "")
    split = model_score(graded(0.5, 0.25, 1), ["s1"], GRADED, planned=3)
    assert split.majority == Score(None, None, "no_majority")
    assert split.bounds == Bounds(0.0, 1.0)
    unknown = model_score(graded(0.5, None, 1), ["s1"], GRADED, planned=3)
    assert unknown.majority == Score(None, None, "undecided")


def test_a_model_without_planned_runs_is_a_mistake():
    with pytest.raises(ValueError, match="planned"):
        model_score([], STIMULI, CRITERIA, planned=0)


def test_one_run_has_no_deviation():
    result = model_score(RUNS[:1], STIMULI, CRITERIA, planned=1)
    assert result.mean.value == result.majority.value == pytest.approx(7 / 3, abs=1e-15)
    assert result.sd == TOO_FEW


def test_stimulus_means():
    result = stimulus_means(PEOPLE, STIMULI, CRITERIA)
    # s1: 4 4 4 0 (d did not finish). s3: 4 0 0, and c's undecided answer is left out and counted.
    assert (result["s1"].score, result["s1"].n, result["s1"].n_undecided) == (Score(3.0, 0.75, ""), 4, 0)
    assert result["s3"].score.value == pytest.approx(4 / 3, abs=1e-15)
    assert (result["s3"].n, result["s3"].n_undecided) == (3, 1)
    assert stimulus_means([PEOPLE[2]], ["s3"], CRITERIA)["s3"].score == Score(None, None, "undecided")
    assert stimulus_means([], ["s3"], CRITERIA)["s3"].score == Score(None, None, "no_sittings")


def test_stimulus_groups_are_the_papers_cuts():
    stimuli = [Stimulus(1, "easy", True), Stimulus(2, "hard", False), Stimulus(3, "hard", True)]
    assert stimulus_groups(stimuli) == [
        Group("all", "", (1, 2, 3)),
        Group("shuffled", "no", (2,)),
        Group("shuffled", "yes", (1, 3)),
        Group("complexity", "easy", (1,)),
        Group("complexity", "hard", (2, 3)),
    ]
    assert stimulus_groups([]) == [Group("all", "", ())]


labels = st.text("01?", min_size=4, max_size=4)
sittings = st.builds(
    lambda who, own, finished: sitting(who, *own, finished=finished),
    st.integers(0, 3),
    st.lists(labels, min_size=2, max_size=3),
    st.booleans(),
)


@given(st.lists(sittings, max_size=6))
def test_nothing_is_nan_and_bounds_hold_what_may_come(people):
    result = people_score(people, STIMULI, CRITERIA, resamples=50)
    for figure in (result.mean, result.sd):
        assert (figure.value is None) == bool(figure.reason)
        assert figure.value is None or math.isfinite(figure.value)
    if result.bounds is not None:
        assert 0 <= result.bounds.low <= result.bounds.high <= 4
    if result.mean.value is not None and result.n_undecided == 0:
        assert result.bounds.low == pytest.approx(result.mean.value) == result.bounds.high


@given(st.lists(sittings, min_size=1, max_size=5), st.sampled_from("01"))
def test_a_models_bounds_hold_when_the_labels_are_decided(runs, sign):
    before = model_score(runs, STIMULI, CRITERIA, planned=len(runs))
    if before.bounds is None:
        assert before.majority.reason == "incomplete_run"
        return
    decided = []
    for run in runs:
        own = [
            "".join(sign if value is None else str(int(value)) for value in one.values) for one in run.answers.values()
        ]
        decided.append(sitting("m", *own))
    after = model_score(decided, STIMULI, CRITERIA, planned=len(runs))
    assert before.bounds.low - 1e-9 <= after.majority.value <= before.bounds.high + 1e-9
