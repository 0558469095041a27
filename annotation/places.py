"""Writes of the queue: a place is taken, judged, withdrawn; an undecided answer is adjudicated.

A rater's row is locked first, then the place: the posts of one rater stand in a row, and two raters meet
only at a place.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Max, Q, QuerySet
from django.utils import timezone

from annotation.errors import (
    AnswerRemovedError,
    CampaignClosedError,
    CampaignOpenError,
    NotUndecidedError,
    PlaceNotYoursError,
    PlaceStaleError,
    RaterInactiveError,
    ReasonMissingError,
    ValuesMissingError,
)
from annotation.models import Campaign, Item, Place, Rater
from annotation.selectors import chosen_at, criteria_asked, places_open_to
from annotation.votes import criteria_undecided
from scoring.models import Criterion, Judgement, Round
from scoring.services import RoundClosedError, Verdict, judgements_record, judgements_retract
from studies.models import User
from studies.services import audit_record

IDLE = timedelta(minutes=30)
"""A place held longer than this goes to whoever has nothing else left to judge."""


@dataclass(frozen=True)
class Next:
    """`place` is None when nothing can be handed out now; `later` says that something may yet come back."""

    place: Place | None
    later: bool = False


def _rater_lock(rater_id: int) -> Rater:
    rater = Rater.objects.select_for_update(no_key=True).get(pk=rater_id)
    if not rater.is_active:
        raise RaterInactiveError
    return rater


@transaction.atomic
def place_next(*, campaign_id: int, rater_id: int) -> Next:
    """The rater's held place, or else the next free one of an answer that the rater has not had.

    Raises CampaignClosedError, RaterInactiveError.
    """
    rater = _rater_lock(rater_id)
    if not Campaign.objects.filter(pk=campaign_id, study=rater.study_id, state=Campaign.State.OPEN).exists():
        raise CampaignClosedError
    held = Place.objects.select_for_update().filter(campaign=campaign_id, rater=rater, state=Place.State.HELD)
    place = held.order_by("item_id").first() or _place_find(campaign_id, rater_id)
    if place is None:
        later = places_open_to(campaign_id, rater_id, Place.State.HELD).exists()
        return Next(None, later)
    place.state, place.rater, place.held_at = Place.State.HELD, rater, timezone.now()
    place.save(update_fields=["state", "rater", "held_at"])
    return Next(place)


def _place_find(campaign_id: int, rater_id: int) -> Place | None:
    """A place to take, locked. Free ones first, then those that lie idle.

    SKIP LOCKED keeps raters from queueing behind each other, but it also hides places that are only being written at
    this moment. So where it finds nothing, the question is asked without it before the answer is *nothing*. Items are
    numbered in the order of the campaign's shuffle, and the index begins with them.
    """
    free = places_open_to(campaign_id, rater_id, Place.State.FREE)
    idle = places_open_to(campaign_id, rater_id, Place.State.HELD).filter(held_at__lt=timezone.now() - IDLE)
    last = Place.objects.filter(campaign=campaign_id, rater=rater_id).aggregate(last=Max("item"))["last"]
    # Most raters work through the items in order, and what they had need not be passed by again each time.
    ahead = free.filter(item__gt=last or 0)
    for open_to in (ahead, free, idle):
        place = _first_locked(open_to, skip_locked=True)
        while place is None and open_to.exists():
            place = _first_locked(open_to, skip_locked=False)
        if place is not None:
            return place
    return None


def _first_locked(places: QuerySet[Place], *, skip_locked: bool) -> Place | None:
    # A row that changed while its lock was awaited is checked again by PostgreSQL and left out if it no longer fits.
    return places.select_for_update(skip_locked=skip_locked, of=("self",)).order_by("item_id", "number").first()


@transaction.atomic
def place_judge(
    *, place_uuid: UUID, rater_id: int, values: Mapping[str, float], version: int, not_attempt: bool = False
) -> Place:
    """Store one rater's judgements of one answer: criterion codes to values, or *not an attempt*.

    `version` is the one that the page showed. An older page that says what is stored already is the same post twice and
    changes nothing; one that says something else is refused. A place that was given back while the page was open is
    taken again if nobody has it.

    Raises PlaceNotYoursError, AnswerRemovedError, PlaceStaleError, ValuesMissingError, scoring's
    ValueOutsideScaleError, CampaignClosedError, RaterInactiveError.
    """
    rater = _rater_lock(rater_id)
    place = _place_lock(place_uuid, rater)
    if place.campaign.state == Campaign.State.CLOSED:
        raise CampaignClosedError
    criteria = criteria_asked(place.campaign)
    verdicts = _verdicts(criteria, values, not_attempt=not_attempt)
    if version != place.version:
        if _is_stored(place, rater, verdicts):
            return place
        raise PlaceStaleError
    try:
        changed = judgements_record(
            round_id=place.campaign.round_id,
            answer_id=place.item.answer_id,
            judge_id=rater.judge_id,
            verdicts=verdicts,
        )
    except RoundClosedError as error:
        raise CampaignClosedError from error
    if changed or place.state != Place.State.DONE:
        now = timezone.now()
        place.state, place.rater, place.version = Place.State.DONE, rater, place.version + 1
        place.held_at, place.done_at = place.held_at or now, place.done_at or now
        place.save(update_fields=["state", "rater", "version", "held_at", "done_at"])
    return place


def _place_lock(place_uuid: UUID, rater: Rater) -> Place:
    place = (
        Place.objects.select_for_update(of=("self",))
        .select_related("item", "campaign__round")
        .filter(Q(rater=rater) | Q(state=Place.State.FREE), uuid=place_uuid, campaign__study=rater.study_id)
        .first()
    )
    if place is None:
        raise PlaceNotYoursError
    if place.state == Place.State.VOID or _is_removed(place.item_id):
        raise AnswerRemovedError
    # Free: given back while the page was open. Its address is known only to those who had it.
    if place.rater_id is None and Place.objects.filter(item=place.item_id, rater=rater).exists():
        raise PlaceNotYoursError
    return place


def _is_removed(item_id: int) -> bool:
    """Asked after the lock: what was read while waiting for it may be older."""
    return Item.objects.filter(pk=item_id, removed_at__isnull=False).exists()


def _verdicts(
    criteria: list[Criterion], values: Mapping[str, float], *, not_attempt: bool, reason: str = ""
) -> dict[Criterion, Verdict]:
    if not_attempt:
        return {criterion: Verdict(0, not_attempt=True, reason=reason) for criterion in criteria}
    missing = [criterion.code for criterion in criteria if criterion.code not in values]
    if missing:
        raise ValuesMissingError(missing)
    return {criterion: Verdict(values[criterion.code], reason=reason) for criterion in criteria}


def _is_stored(place: Place, rater: Rater, verdicts: Mapping[Criterion, Verdict]) -> bool:
    chosen = chosen_at(round_id=place.campaign.round_id, answer_id=place.item.answer_id, judge_id=rater.judge_id)
    wanted = {criterion.code: verdict.value for criterion, verdict in verdicts.items()}
    return (chosen.values, chosen.not_attempt) == (wanted, any(one.not_attempt for one in verdicts.values()))


@transaction.atomic
def place_withdraw(*, place_uuid: UUID, rater_id: int) -> Place:
    """A rater takes a label back while the campaign is open. It leaves votes and agreement at once.

    Raises PlaceNotYoursError, CampaignClosedError, RaterInactiveError.
    """
    rater = _rater_lock(rater_id)
    place = (
        Place.objects.select_for_update(of=("self",))
        .select_related("campaign", "item", "rater__user")
        .filter(uuid=place_uuid, rater=rater)
        .first()
    )
    if place is None:
        raise PlaceNotYoursError
    if place.campaign.state == Campaign.State.CLOSED:
        raise CampaignClosedError
    return _label_take_back(place, actor=rater.user, reason="")


@transaction.atomic
def label_withdraw(*, place_id: int, actor: User, reason: str) -> Place:
    """A researcher takes a rater's label out, in a closed campaign too. The judgements stay as history."""
    place = Place.objects.select_for_update(of=("self",)).select_related("campaign", "item", "rater").get(pk=place_id)
    return _label_take_back(place, actor=actor, reason=reason)


def _label_take_back(place: Place, *, actor: User | None, reason: str) -> Place:
    if place.state != Place.State.DONE or place.rater is None:
        return place
    judgements_retract(round_id=place.campaign.round_id, answer_id=place.item.answer_id, judge_id=place.rater.judge_id)
    place.state, place.version = Place.State.WITHDRAWN, place.version + 1
    place.save(update_fields=["state", "version"])
    audit_record(
        actor=actor, study=place.campaign.study, action="label_withdraw", target=place, detail={"reason": reason}
    )
    return place


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
    rater = _rater_lock(rater_id)
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
    if _is_removed(item.pk):
        raise AnswerRemovedError
    undecided = criteria_undecided(item)
    if not undecided:
        raise NotUndecidedError
    # What is no attempt is 0 on every criterion, those among them on which the raters agreed.
    criteria = criteria_asked(item.campaign) if not_attempt else undecided
    round_ = Round.objects.get(adjudicates=item.campaign.round_id)
    verdicts = _verdicts(criteria, values, not_attempt=not_attempt, reason=reason.strip())
    earlier = Judgement.objects.filter(round=round_, answer=item.answer_id, retracted_at__isnull=True)
    for judge_id in set(earlier.values_list("judge_id", flat=True)):
        kept = verdicts if judge_id == rater.judge_id else ()
        judgements_retract(round_id=round_.pk, answer_id=item.answer_id, judge_id=judge_id, but_criteria=list(kept))
    return judgements_record(round_id=round_.pk, answer_id=item.answer_id, judge_id=rater.judge_id, verdicts=verdicts)
