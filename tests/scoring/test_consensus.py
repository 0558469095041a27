import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.consensus import Label, Majority, label, label_rule, majority


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 1, 0], Majority(1.0, 3, 2, "")),
        ([0, 0], Majority(0.0, 2, 2, "")),
        ([1, None, 1], Majority(1.0, 2, 2, "")),  # a gap is not a vote
        ([1, 0], Majority(None, 2, 0, "tie")),
        ([1, 1, 0, 0], Majority(None, 4, 0, "tie")),
        ([1], Majority(None, 1, 0, "single_vote")),
        ([1, None], Majority(None, 1, 0, "single_vote")),
        ([], Majority(None, 0, 0, "no_votes")),
        ([None, None], Majority(None, 0, 0, "no_votes")),
        # A graded scale: more than half on one value, never a mean.
        ([0.5, 0.5, 1], Majority(0.5, 3, 2, "")),
        ([0.5, 0.25, 1], Majority(None, 3, 0, "no_majority")),
        ([0.5, 0.5, 1, 0.25], Majority(None, 4, 0, "no_majority")),
        ([0.25, 0.25, 0.25, 0, 1], Majority(0.25, 5, 3, "")),
    ],
)
def test_majority(values, expected):
    assert majority(values) == expected


def test_nan_is_not_a_judgement():
    with pytest.raises(ValueError, match="NaN"):
        majority([1, float("nan")])


@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0])), st.randoms(use_true_random=False))
def test_majority_knows_no_order_and_is_more_than_half(values, random):
    found = majority(values)
    shuffled = list(values)
    random.shuffle(shuffled)
    assert majority(shuffled) == found
    has_majority = len(values) > 1 and any(2 * values.count(value) > len(values) for value in values)
    assert (found.value is not None) == has_majority
    if found.value is not None:
        assert 2 * values.count(found.value) > len(values)
        assert found.votes_for == values.count(found.value)


def test_label_by_majority():
    assert label([1, 1, 0]) == Label(1.0, "majority", 3, 2, "")


@pytest.mark.parametrize(
    ("values", "reason"),
    [([1, 0], "tie"), ([1], "single_vote"), ([], "no_votes"), ([1, 0.5, 0], "no_majority")],
)
def test_undecided_has_no_class(values, reason):
    assert label(values) == Label(None, "undecided", len(values), 0, reason)


def test_scenario_sg6_majority_and_withdrawal():
    # L1 1 1 0, L2 1 1 -, L3 - 1 0: majority 1, 1, 0. L1 withdraws the first: one vote, undecided.
    units = [[1, 1, None], [1, 1, 1], [0, None, 0]]
    assert [label(unit).value for unit in units] == [1.0, 1.0, 0.0]
    assert label([None, 1, None]) == Label(None, "undecided", 1, 0, "single_vote")


def test_adjudication_stands_above_the_majority():
    assert label([1, 0], adjudicated=1) == Label(1.0, "adjudication", 2, 1, "")
    assert label([1, 1, 0], adjudicated=0) == Label(0.0, "adjudication", 3, 1, "")
    assert label([], adjudicated=0) == Label(0.0, "adjudication", 0, 0, "")


def test_refusal_stands_above_all_judgements():
    assert label([1, 1, 1], adjudicated=1, is_refusal=True) == Label(0.0, "refusal", 3, 0, "")
    assert label([], is_refusal=True) == Label(0.0, "refusal", 0, 0, "")


def test_no_valid_reply_is_not_called_a_refusal():
    # Its text is empty, so the refusal rule holds for it too; the name tells that nobody chose.
    assert label([], is_refusal=True, no_valid_reply=True) == Label(0.0, "no_valid_reply", 0, 0, "")


def test_not_an_attempt_is_each_raters_zero():
    assert label([0, 0, 1], not_attempt_votes=2) == Label(0.0, "not_attempt", 3, 2, "")
    assert label([0, 0, 1], not_attempt_votes=1) == Label(0.0, "majority", 3, 2, "")
    assert label([0, 1, 1], not_attempt_votes=1) == Label(1.0, "majority", 3, 2, "")
    assert label([0, 1], not_attempt_votes=1) == Label(None, "undecided", 2, 0, "tie")
    assert label([0], not_attempt_votes=1) == Label(None, "undecided", 1, 0, "single_vote")


@pytest.mark.parametrize(
    ("marks", "votes", "expected"),
    [
        (0, 0, Label(1.0, "rule", 0, 0, "")),  # nobody has judged yet: counting needs no rater
        (0, 3, Label(1.0, "rule", 3, 0, "")),
        (1, 3, Label(1.0, "rule", 3, 0, "")),
        (2, 3, Label(0.0, "not_attempt", 3, 2, "")),
        (1, 2, Label(1.0, "rule", 2, 0, "")),  # a tie is no majority
        (1, 1, Label(1.0, "rule", 1, 0, "")),  # nor is a single mark
        (2, 2, Label(0.0, "not_attempt", 2, 2, "")),
    ],
)
def test_label_rule_and_not_an_attempt(marks, votes, expected):
    assert label_rule(1, not_attempt_votes=marks, votes=votes) == expected


def test_label_rule_and_the_adjudicator():
    decided = label_rule(1, not_attempt_votes=1, votes=2, adjudicated_not_attempt=True)
    assert decided == Label(0.0, "adjudication", 2, 1, "")
    overruled = label_rule(1, not_attempt_votes=2, votes=2, adjudicated_not_attempt=False)
    assert overruled == Label(1.0, "rule", 2, 0, "")


def test_label_rule_of_what_is_no_answer():
    assert label_rule(1, is_refusal=True) == Label(0.0, "refusal", 0, 0, "")
    assert label_rule(0, is_refusal=True, no_valid_reply=True).basis == "no_valid_reply"
    assert label_rule(None) == Label(None, "undecided", 0, 0, "no_rule_value")
