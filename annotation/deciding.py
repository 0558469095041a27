"""What waits for a campaign's adjudicator, by why it waits. The list itself is `adjudication.items_to_decide`."""

from typing import NamedTuple

from annotation.adjudication import items_flagged, items_to_decide
from annotation.models import Campaign
from annotation.votes import CampaignVotes, is_undecided


class Waiting(NamedTuple):
    """Answers to decide. One that has no majority and was flagged is counted once, as one without a majority."""

    tied: int
    flagged: int

    @property
    def total(self) -> int:
        return self.tied + self.flagged


def waiting_of(campaign: Campaign, *, counted_only: bool = True) -> Waiting:
    """Seven queries, four more where a flagged answer waits."""
    waiting = items_to_decide(campaign, counted_only=counted_only)
    flagged = items_flagged(campaign).intersection(waiting)
    if not flagged:
        return Waiting(len(waiting), 0)
    labels = CampaignVotes(campaign, counted_only=counted_only).labels()
    agreed = sum(not is_undecided(labels[pk]) for pk in flagged)
    return Waiting(len(waiting) - agreed, agreed)
