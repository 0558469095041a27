"""What waits for a campaign's adjudicator, and that they are blinded as long as something does."""

from typing import NamedTuple

from django.db.models import Count, F, Max, Min, Q

from annotation.models import Campaign, Item, Place, Purpose
from annotation.votes import CampaignVotes, is_undecided
from scoring.models import Judgement
from studies.models import DECISIONS
from studies.services import blinding_impose, blinding_lift


def items_flagged(campaign: Campaign) -> set[int]:
    """Items that a rater wants the adjudicator to look at. One query."""
    flagged = Place.objects.filter(
        campaign=campaign, purpose=Purpose.RATING, state=Place.State.DONE, is_flagged=True, item__removed_at=None
    )
    return set(flagged.values_list("item_id", flat=True))


def _answers_divided(campaign: Campaign) -> set[int]:
    """Answers that may lack a majority: two equal votes or more, and nothing else, are one. One query.

    So votes are read of a few answers and not of all.
    """
    votes = Judgement.objects.filter(round=campaign.round_id, retracted_at__isnull=True)
    by_criterion = votes.values("answer_id", "criterion_id").annotate(
        n=Count("pk"), low=Min("value"), high=Max("value")
    )
    return set(by_criterion.filter(Q(n=1) | Q(low__lt=F("high"))).order_by().values_list("answer_id", flat=True))


def items_to_decide(campaign: Campaign, *, counted_only: bool = True) -> list[int]:
    """Items that wait for the adjudicator, in the campaign's order: undecided ones, and flagged ones not decided yet.

    Answers that share a text are one case. Eight queries.
    """
    flagged = items_flagged(campaign)
    divided = _answers_divided(campaign) | set(Item.objects.filter(pk__in=flagged).values_list("answer_id", flat=True))
    known = CampaignVotes(campaign, counted_only=counted_only, answer_ids=divided)
    sharing = set(Item.objects.filter(campaign=campaign, same_as__isnull=False).values_list("pk", flat=True))
    decided = {answer for answer, _ in known.decisions}
    return [
        pk
        for pk, by_code in known.labels().items()
        if pk not in sharing and (is_undecided(by_code) or (pk in flagged and known.answer_of[pk] not in decided))
    ]


class Waiting(NamedTuple):
    """Answers to decide. One that has no majority and was flagged is counted once, as one without a majority."""

    tied: int
    flagged: int

    @property
    def total(self) -> int:
        return self.tied + self.flagged


def waiting_of(campaign: Campaign, *, counted_only: bool = True) -> Waiting:
    """Nine queries, five more where a flagged answer waits."""
    waiting = items_to_decide(campaign, counted_only=counted_only)
    flagged = items_flagged(campaign).intersection(waiting)
    if not flagged:
        return Waiting(len(waiting), 0)
    answers = set(Item.objects.filter(pk__in=flagged).values_list("answer_id", flat=True))
    labels = CampaignVotes(campaign, counted_only=counted_only, answer_ids=answers).labels()
    agreed = sum(not is_undecided(labels[pk]) for pk in flagged)
    return Waiting(len(waiting) - agreed, agreed)


def decisions_cause(campaign: Campaign) -> str:
    return f"{DECISIONS}{campaign.pk}"


def decisions_blind(campaign: Campaign) -> None:
    """Blind the adjudicator of a closed campaign while an answer waits for them, and no longer.

    Within the transaction that changed what waits or for whom, under the campaign's lock. So a page that asks who is
    blinded reads one row and counts nothing.
    """
    adjudicator = campaign.adjudicator
    if adjudicator is None or adjudicator.user is None or campaign.state != Campaign.State.CLOSED:
        return
    if items_to_decide(campaign, counted_only=False):
        blinding_impose(user=adjudicator.user, study=campaign.study, cause=decisions_cause(campaign))
    else:
        blinding_lift(study=campaign.study, cause=decisions_cause(campaign))
