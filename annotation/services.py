"""Raters and campaigns: who rates, and until when. `annotation.opening` fixes what; `annotation.queue` hands it out.

Locks are taken in the order study, campaign, round, so that opening, closing and a rater who joins meanwhile agree on
who is blinded.
"""

from django.db import transaction
from django.utils import timezone

from annotation.deciding import decisions_blind, decisions_cause
from annotation.errors import NotAMemberError
from annotation.guideline import CHILDREN_GUIDELINE, DEFAULT_GUIDELINE
from annotation.models import Campaign, Guideline, Place, Purpose, Rater, Seat
from annotation.versions import labels_freeze
from scoring.models import Judge, Round, Rubric
from scoring.services import CHILDREN_RUBRIC, round_close
from studies.models import Membership, Study, User
from studies.services import audit_record, blinding_impose, blinding_lift


def blinding_cause(campaign: Campaign) -> str:
    return f"campaign {campaign.pk}"


def study_lock(study_id: int) -> Study:
    return Study.objects.select_for_update(no_key=True).get(pk=study_id)


@transaction.atomic
def rater_ensure(*, user: User, study: Study, actor: User | None) -> Rater:
    """The user as a rater of the study, with a pseudonym and a judge; blinded while a campaign is open.

    A rater whose work was ended stays so. Raises NotAMemberError.
    """
    rater = _judge_ensure(user, study, actor, only_decides=False)
    if rater.only_decides:  # named to adjudicate before, and now they rate too
        study_lock(study.pk)
        rater.only_decides = False
        rater.save(update_fields=["only_decides"])
        rater_blind(rater)
        _made_record(rater, "rater_ensure", actor)
    return rater


def _judge_ensure(user: User, study: Study, actor: User | None, *, only_decides: bool) -> Rater:
    """Whom the study knows already stays what they are."""
    if not Membership.objects.filter(user=user, study=study, is_active=True).exists():
        raise NotAMemberError
    known = Rater.objects.filter(user=user, study=study).first()
    if known is not None:
        return known
    study_lock(study.pk)
    known = Rater.objects.filter(user=user, study=study).first()  # made while we waited
    if known is not None:
        return known
    rater = Rater.objects.create(
        user=user,
        study=study,
        judge=Judge.objects.create(kind=Judge.Kind.RATER),
        pseudonym=f"R{Rater.objects.filter(study=study).count() + 1}",
        only_decides=only_decides,
    )
    rater_blind(rater)
    _made_record(rater, "adjudicator_ensure" if only_decides else "rater_ensure", actor)
    return rater


def _made_record(rater: Rater, action: str, actor: User | None) -> None:
    detail = {"user": rater.user_id, "name": rater.pseudonym}
    audit_record(actor=actor, study=rater.study, action=action, target=rater, detail=detail)


def rater_blind(rater: Rater) -> None:
    """While a campaign is open; not an adjudicator who does not rate: `annotation.deciding` blinds those."""
    if rater.user is None or rater.only_decides:  # a name from an imported file opens no pages
        return
    for campaign in Campaign.objects.filter(study=rater.study_id, state=Campaign.State.OPEN):
        blinding_impose(user=rater.user, study=rater.study, cause=blinding_cause(campaign))


@transaction.atomic
def rater_deactivate(*, rater: Rater, actor: User) -> None:
    """End a rater's work: judgements stay, places not yet judged go to the others."""
    Rater.objects.select_for_update(no_key=True).get(pk=rater.pk)
    if Rater.objects.filter(pk=rater.pk, is_active=True).update(is_active=False):
        given_back = _places_give_back(rater)
        audit_record(
            actor=actor,
            study=rater.study,
            action="rater_deactivate",
            target=rater,
            detail={"places_given_back": given_back},
        )


def _places_give_back(rater: Rater) -> int:
    # Whoever judges holds a seat and then a place: so the seats come first. Then one after another by id.
    seats = Seat.objects.select_for_update(no_key=True).filter(rater=rater).order_by("pk")
    Seat.objects.filter(pk__in=list(seats.values_list("pk", flat=True))).update(cursor=0)
    held = Place.objects.select_for_update().filter(rater=rater, state=Place.State.HELD).order_by("pk")
    pks = list(held.values_list("pk", flat=True))
    places = Place.objects.filter(pk__in=pks)
    places.exclude(purpose=Purpose.RATING).update(state=Place.State.VOID)
    return places.filter(purpose=Purpose.RATING).update(state=Place.State.FREE, rater=None, held_at=None)


@transaction.atomic
def rater_reactivate(*, rater: Rater, actor: User) -> None:
    study_lock(rater.study_id)
    if Rater.objects.filter(pk=rater.pk, is_active=False).update(is_active=True):
        rater_blind(rater)
        audit_record(actor=actor, study=rater.study, action="rater_reactivate", target=rater)


def guideline_ensure(study: Study, rubric: Rubric) -> Guideline:
    """The study's newest rules for this rubric, the default ones if it has none.

    Within the caller's transaction and study lock. A graded rubric has rules of its own, which never stand in for the
    others.
    """
    known = Guideline.objects.filter(study=study).order_by("-version")
    newest = known.filter(rubric_slug=rubric.slug).first()
    if newest is not None:
        return newest
    text = CHILDREN_GUIDELINE if rubric.slug == CHILDREN_RUBRIC else DEFAULT_GUIDELINE
    last = known.first()
    return Guideline.objects.create(
        study=study, rubric_slug=rubric.slug, version=last.version + 1 if last else 1, text=text
    )


@transaction.atomic
def campaign_close(*, campaign: Campaign, actor: User) -> None:
    """No judgement is added from now on; raters may open results again. Closing twice is closing once."""
    study_lock(campaign.study_id)
    locked = Campaign.objects.select_for_update(no_key=True).get(pk=campaign.pk)
    if locked.state == Campaign.State.CLOSED:
        return
    for round_id in (locked.round_id, locked.training_round_id, locked.gold_round_id, locked.repeat_round_id):
        if round_id is not None:
            round_close(round_id=round_id)
    locked.state, locked.closed_at = Campaign.State.CLOSED, timezone.now()
    locked.save(update_fields=["state", "closed_at"])
    labels_freeze(campaign=locked, actor=actor)
    blinding_lift(study=campaign.study, cause=blinding_cause(locked))
    decisions_blind(locked)
    audit_record(actor=actor, study=campaign.study, action="campaign_close", target=locked)


@transaction.atomic
def adjudicator_set(*, campaign: Campaign, user: User, actor: User) -> Rater:
    """Name who decides what the raters left undecided. Earlier decisions stay.

    Nobody becomes a rater by it. Raises NotAMemberError.
    """
    study_lock(campaign.study_id)
    return adjudicator_set_within(Campaign.objects.select_for_update().get(pk=campaign.pk), user, actor)


@transaction.atomic
def adjudicator_unset(*, campaign: Campaign, actor: User) -> None:
    """Nobody decides from now on, so nobody is blinded by what waits. Earlier decisions stay."""
    study_lock(campaign.study_id)
    locked = Campaign.objects.select_for_update().get(pk=campaign.pk)
    if locked.adjudicator is None:
        return
    pseudonym = locked.adjudicator.pseudonym
    locked.adjudicator = None
    locked.save(update_fields=["adjudicator"])
    blinding_lift(study=campaign.study, cause=decisions_cause(locked))
    audit_record(
        actor=actor, study=campaign.study, action="adjudicator_unset", target=locked, detail={"rater": pseudonym}
    )


def adjudicator_set_within(campaign: Campaign, user: User, actor: User) -> Rater:
    rater = _judge_ensure(user, campaign.study, actor, only_decides=True)
    if campaign.adjudicator_id == rater.pk:
        return rater
    campaign.adjudicator = rater
    campaign.save(update_fields=["adjudicator"])
    Round.objects.get_or_create(
        adjudicates=campaign.round,
        defaults={
            "study": campaign.study,
            "rubric_id": campaign.round.rubric_id,
            "purpose": Round.Purpose.ADJUDICATION,
            "guideline_version": campaign.round.guideline_version,
        },
    )
    audit_record(
        actor=actor,
        study=campaign.study,
        action="adjudicator_set",
        target=campaign,
        detail={"rater": rater.pseudonym},
    )
    blinding_lift(study=campaign.study, cause=decisions_cause(campaign))  # of whoever was named before
    decisions_blind(campaign)
    return rater
