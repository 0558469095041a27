"""The votes of a label, as files and the API show them."""

from scoring.consensus import Label
from scoring.models import Criterion

Votes = tuple[int | None, int | None]


def votes_counted(criterion: Criterion, label: Label) -> Votes:
    """How many raters judged the answer, and how many of them gave the label."""
    return label.votes, label.votes_for


def votes_shown(criterion: Criterion, label: Label) -> Votes:
    """The same; nothing where raters were not asked: of what a rule counts they say only *not an attempt*."""
    if criterion.kind == Criterion.Kind.RULE and label.basis not in ("not_attempt", "adjudication"):
        return None, None
    return votes_counted(criterion, label)
