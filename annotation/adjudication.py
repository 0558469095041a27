"""One person decides what the raters of a closed campaign left without a majority."""

from collections.abc import Mapping
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
from annotation.models import Campaign, Item, Rater
from annotation.places import verdicts_of
from annotation.selectors import criteria_asked
from annotation.votes import criteria_undecided
from scoring.models import Judgement, Round
from scoring.services import judgements_record, judgements_retract


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

    *Not an attempt* decides them all. Whatever else was decided before is retracted.

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
        .select_related("campaign__round")
        .filter(uuid=item_uuid, campaign__adjudicator=rater)
        .first()
    )
    if item is None:
        raise PlaceNotYoursError
    if item.campaign.state == Campaign.State.OPEN:
        raise CampaignOpenError
    if Item.objects.filter(pk=item.pk, removed_at__isnull=False).exists():  # after the lock
        raise AnswerRemovedError
    undecided = criteria_undecided(item)
    if not undecided:
        raise NotUndecidedError
    # What is no attempt is 0 on every criterion, those among them on which the raters agreed.
    criteria = criteria_asked(item.campaign) if not_attempt else undecided
    round_ = Round.objects.get(adjudicates=item.campaign.round_id)
    verdicts = verdicts_of(criteria, values, not_attempt=not_attempt, reason=reason.strip())
    earlier = Judgement.objects.filter(round=round_, answer=item.answer_id, retracted_at__isnull=True)
    for judge_id in set(earlier.values_list("judge_id", flat=True)):
        kept = verdicts if judge_id == rater.judge_id else ()
        judgements_retract(round_id=round_.pk, answer_id=item.answer_id, judge_id=judge_id, but_criteria=list(kept))
    return judgements_record(round_id=round_.pk, answer_id=item.answer_id, judge_id=rater.judge_id, verdicts=verdicts)
