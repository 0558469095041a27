"""One person decides what raters left without a majority in a closed campaign, and what one of them flagged.

Nothing here reads who answered: the adjudicator is as blind as the raters, and does not see their names either.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from django.db import transaction

from annotation.errors import (
    AnswerRemovedError,
    CampaignOpenError,
    NotUndecidedError,
    PlaceNotYoursError,
    RaterInactiveError,
    ReasonMissingError,
)
from annotation.models import Campaign, Item, Place, Purpose, Rater
from annotation.places import verdicts_of
from annotation.selectors import criteria_asked
from annotation.versions import decision_change, version_add
from annotation.votes import CampaignVotes, Tally, is_undecided, tallies_of
from scoring.models import Criterion, Judgement, Round
from scoring.services import judgements_record, judgements_retract


@dataclass(frozen=True)
class Case:
    """What an adjudicator sees of the raters' work on one answer: votes and remarks, and nobody's name."""

    tallies: list[Tally]
    is_flagged: bool
    comments: list[str]

    @property
    def criteria(self) -> list[Criterion]:
        """Those to decide: a flagged answer is decided as a whole, else the majorities stand."""
        return [tally.criterion for tally in self.tallies if self.is_flagged or tally.is_undecided]


def case_of(item: Item) -> Case:
    """Three queries."""
    judged = Place.objects.filter(item=item, purpose=Purpose.RATING, state=Place.State.DONE)
    remarks = list(judged.order_by("comment", "pk").values_list("is_flagged", "comment"))
    return Case(
        tallies=tallies_of(item),
        is_flagged=any(flagged for flagged, _ in remarks),
        comments=[comment for _, comment in remarks if comment],
    )


def items_flagged(campaign: Campaign) -> set[int]:
    """Items that a rater wants the adjudicator to look at. One query."""
    flagged = Place.objects.filter(
        campaign=campaign, purpose=Purpose.RATING, state=Place.State.DONE, is_flagged=True, item__removed_at=None
    )
    return set(flagged.values_list("item_id", flat=True))


def items_to_decide(campaign: Campaign, *, counted_only: bool = True) -> list[int]:
    """Items that wait for the adjudicator, in the campaign's order: undecided ones, and flagged ones not decided yet.

    Answers that share a text are one case. Six queries.
    """
    known = CampaignVotes(campaign, counted_only=counted_only)
    flagged = items_flagged(campaign)
    sharing = set(Item.objects.filter(campaign=campaign, same_as__isnull=False).values_list("pk", flat=True))
    decided = {answer for answer, _ in known.decisions}
    return [
        pk
        for pk, by_code in known.labels().items()
        if pk not in sharing and (is_undecided(by_code) or (pk in flagged and known.answer_of[pk] not in decided))
    ]


@transaction.atomic
def adjudication_record(
    *,
    item_uuid: UUID,
    rater_id: int,
    values: Mapping[str, float],
    reason: str,
    not_attempt: bool = False,
) -> int:
    """Decide the criteria on which an answer of a closed campaign has no majority. Returns how many changed.

    All of them where a rater flagged the answer, or where it is *not an attempt*. Whatever else was decided before is
    retracted. Answers that share the text share the decision.

    Raises PlaceNotYoursError (not this campaign's adjudicator), AnswerRemovedError, CampaignOpenError,
    NotUndecidedError, ReasonMissingError, ValuesMissingError, ValueOutsideScaleError.
    """
    if not reason.strip():
        raise ReasonMissingError
    rater = Rater.objects.select_for_update(no_key=True).get(pk=rater_id)
    if not rater.is_active:
        raise RaterInactiveError
    # The campaign's lock puts two adjudicators, the old one and the new, in a row.
    item = (
        Item.objects.select_for_update(of=("campaign",), no_key=True)
        .select_related("campaign__round", "answer")
        .filter(uuid=item_uuid, campaign__adjudicator=rater)
        .first()
    )
    if item is None or item.same_as_id is not None:  # what shares a text is decided where it is judged
        raise PlaceNotYoursError
    if item.campaign.state == Campaign.State.OPEN:
        raise CampaignOpenError
    if Item.objects.filter(pk=item.pk, removed_at__isnull=False).exists():  # after the lock
        raise AnswerRemovedError
    undecided = case_of(item).criteria
    if not undecided:
        raise NotUndecidedError
    # What is no attempt is 0 on every criterion, those among them on which the raters agreed.
    criteria = criteria_asked(item.campaign) if not_attempt else undecided
    round_ = Round.objects.get(adjudicates=item.campaign.round_id)
    verdicts = verdicts_of(criteria, values, not_attempt=not_attempt, reason=reason.strip())
    sharing = list(item.sharing.filter(removed_at__isnull=True).values_list("answer_id", flat=True))
    earlier = Judgement.objects.filter(round=round_, answer=item.answer_id, retracted_at__isnull=True)
    live = Judgement.objects.filter(
        round=round_, answer__in=[item.answer_id, *sharing], retracted_at__isnull=True
    ).select_related("criterion")
    before = set(live.values_list("pk", flat=True))
    for judge_id in set(earlier.values_list("judge_id", flat=True)):
        kept = verdicts if judge_id == rater.judge_id else ()
        judgements_retract(
            round_id=round_.pk,
            answer_id=item.answer_id,
            judge_id=judge_id,
            but_criteria=list(kept),
            sharing=sharing,
        )
    changed = judgements_record(
        round_id=round_.pk, answer_id=item.answer_id, judge_id=rater.judge_id, verdicts=verdicts, sharing=sharing
    )
    after = {one.pk: one for one in live.all()}
    if set(after) != before:
        fresh = [one for pk, one in after.items() if pk not in before]
        change = decision_change(
            item=item, rater=rater, judgements=fresh, retracted=before - set(after), sharing=sharing
        )
        version_add(campaign=item.campaign, change=change, actor=rater.user)
    return changed
