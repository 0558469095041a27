"""What the judgements of a round come to: a label, or *undecided*."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from operator import itemgetter
from typing import Literal

Basis = Literal[
    "no_valid_reply", "refusal", "adjudication", "not_attempt", "majority", "rule", "judge", "undecided"
]  # in the order in which they apply
Reason = Literal["", "no_votes", "single_vote", "tie", "no_majority", "no_rule_value"]


@dataclass(frozen=True, slots=True)
class Majority:
    """The value of more than half of two or more votes, or the reason why there is none.

    `votes`: judgements that exist. `votes_for`: those for `value`, 0 where undecided.
    """

    value: float | None
    votes: int
    votes_for: int
    reason: Reason


@dataclass(frozen=True, slots=True)
class Label:
    """The label of one answer on one criterion. `value` is None, and `reason` says why, only where undecided.

    `votes` and `votes_for` are the raters' judgements and those for `value`, whatever the basis, so that a
    label by adjudication still shows how the raters voted. For a rule criterion `votes` are the raters that
    judged the answer and `votes_for` those that marked it *not an attempt* where that is the basis, else 0.
    """

    value: float | None
    basis: Basis
    votes: int
    votes_for: int
    reason: Reason


def majority(values: Iterable[float | None]) -> Majority:
    """The strict majority of the judgements of one answer on one criterion; None is no judgement.

    A tie, a single vote and a plurality are no majority. Values are compared exactly: on a graded scale too,
    more than half of the votes must name one value. Raises ValueError on NaN, which is not a judgement.
    """
    votes = [float(value) for value in values if value is not None]
    if any(math.isnan(value) for value in votes):
        raise ValueError("NaN is not a judgement")
    if len(votes) < 2:
        return Majority(None, len(votes), 0, "single_vote" if votes else "no_votes")
    counts = {value: votes.count(value) for value in set(votes)}  # few: a Counter costs four times as much
    value, count = max(counts.items(), key=itemgetter(1))
    if _is_majority(count, len(votes)):
        return Majority(value, len(votes), count, "")
    is_tie = list(counts.values()) == [count, count]
    return Majority(None, len(votes), 0, "tie" if is_tie else "no_majority")


def label(
    values: Iterable[float | None],
    *,
    adjudicated: float | None = None,
    is_refusal: bool = False,
    no_valid_reply: bool = False,
    not_attempt_votes: int = 0,
) -> Label:
    """The label on a judged criterion: refusal rule, else adjudication, else strict majority, else undecided.

    `values`: the raters' live judgements, a rater's *not an attempt* counting as that rater's 0.
    `not_attempt_votes`: how many of them are such; where they are the majority, the basis says so. A model's
    outcome `no_valid_reply` is 0 like a refusal but has a name of its own: it is not a choice. Source:
    DESIGN, "Label".
    """
    voted = [float(value) for value in values if value is not None]
    found = majority(voted)
    zeros = voted.count(0.0)
    if no_valid_reply:
        return Label(0.0, "no_valid_reply", found.votes, zeros, "")
    if is_refusal:
        return Label(0.0, "refusal", found.votes, zeros, "")
    if adjudicated is not None:
        decided = float(adjudicated)
        return Label(decided, "adjudication", found.votes, voted.count(decided), "")
    if found.value is None:
        return Label(None, "undecided", found.votes, 0, found.reason)
    by_mark = found.value == 0.0 and _is_majority(not_attempt_votes, found.votes)
    return Label(found.value, "not_attempt" if by_mark else "majority", found.votes, found.votes_for, "")


def label_automatic(
    values: Iterable[float | None], *, judges: int, is_refusal: bool = False, no_valid_reply: bool = False
) -> Label:
    """The label on a judged criterion where automatic judges are the basis: the refusal rule, else the judge's value.

    `judges`: how many of the basis judge this criterion. One alone decides: it was chosen to. Of several a strict
    majority, as of raters.
    """
    voted = [float(value) for value in values if value is not None]
    if no_valid_reply or is_refusal:
        return Label(0.0, "no_valid_reply" if no_valid_reply else "refusal", len(voted), voted.count(0.0), "")
    if judges == 1 and len(voted) == 1:
        if math.isnan(voted[0]):
            raise ValueError("NaN is not a judgement")
        return Label(voted[0], "judge", 1, 1, "")
    found = majority(voted)
    if found.value is None:
        return Label(None, "undecided", found.votes, 0, found.reason)
    return Label(found.value, "majority", found.votes, found.votes_for, "")


def label_rule(
    rule_value: float | None,
    *,
    not_attempt_votes: int = 0,
    votes: int = 0,
    adjudicated_not_attempt: bool | None = None,
    is_refusal: bool = False,
    no_valid_reply: bool = False,
) -> Label:
    """The label on a criterion that is counted, not judged (sequence equality).

    0 for a refusal and for `no_valid_reply`; else 0 where the adjudicator, or without one a strict majority
    of the `votes` raters that judged the answer, marked it *not an attempt*; else the rule's value. A tie or
    a single mark is no majority: the rule stands, and the answer's judged criteria are what goes to
    adjudication. An adjudicator who judged the answer as an attempt (False) overrules the raters' marks.
    """
    if no_valid_reply:
        return Label(0.0, "no_valid_reply", votes, 0, "")
    if is_refusal:
        return Label(0.0, "refusal", votes, 0, "")
    if adjudicated_not_attempt:
        return Label(0.0, "adjudication", votes, not_attempt_votes, "")
    if adjudicated_not_attempt is None and _is_majority(not_attempt_votes, votes):
        return Label(0.0, "not_attempt", votes, not_attempt_votes, "")
    if rule_value is None:
        return Label(None, "undecided", votes, 0, "no_rule_value")
    return Label(float(rule_value), "rule", votes, 0, "")


def _is_majority(count: int, votes: int) -> bool:
    """More than half of two or more: one vote alone decides nothing."""
    return votes >= 2 and 2 * count > votes
