"""Reads for raters and for the campaign's pages.

What a rater's or adjudicator's page calls is in the first half and reads only this app's tables, the round, its
criteria and judgements: never a sitting, a respondent, a survey or a run (DESIGN, "Blindness").
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from annotation.models import Campaign, Guideline, Item, Place, Purpose, Rater
from scoring.models import Criterion, Judgement, Round
from studies.models import Membership, Role, Study, User

# --- what raters see ---------------------------------------------------------------------------------------------


def memberships_rating(user: User) -> QuerySet[Membership]:
    """The user's memberships in studies that they rate in, or may begin to. No query of its own."""
    has_rater = Rater.objects.filter(user=user, study=OuterRef("study"), is_active=True, only_decides=False)
    stopped = Rater.objects.filter(user=user, study=OuterRef("study"), is_active=False)
    return (
        Membership.objects.filter(user=user, is_active=True)
        .filter(Q(role=Role.RATER) | Exists(has_rater))
        .exclude(Exists(stopped))
    )


def raters_ended(user: User) -> QuerySet[Rater]:
    """The user as a rater of the studies, still theirs, in which a researcher ended their work. No query of its own."""
    studies = Membership.objects.filter(user=user, is_active=True).values("study")
    return Rater.objects.filter(user=user, is_active=False, study__in=studies).select_related("study")


def campaign_to_rate(user: User, pk: int) -> Campaign | None:
    """The campaign, if the user rates in its study or may begin to. One query."""
    studies = memberships_rating(user).values("study")
    return Campaign.objects.select_related("study", "round").filter(pk=pk, study__in=studies).first()


def rater_of(user: User, study_id: int) -> Rater | None:
    """One query."""
    return Rater.objects.filter(user=user, study_id=study_id).first()


def criteria_asked(campaign: Campaign) -> list[Criterion]:
    """The criteria that the campaign's raters are asked, in the rubric's order. One query."""
    return list(campaign.criteria.order_by("position"))


@dataclass(frozen=True)
class Chosen:
    """What a judge said of one answer: criterion codes to values, empty where nothing is stored."""

    values: dict[str, float]
    not_attempt: bool = False
    reason: str = ""

    def says(self, values: Mapping[str, float], *, not_attempt: bool, reason: str) -> bool:
        """Whether it is this. What is no attempt is 0 on everything, whatever else was sent."""
        same = not_attempt or dict(values) == self.values
        return same and (self.not_attempt, self.reason) == (not_attempt, reason)


def guideline_of(study_id: int, version: int) -> str:
    """The rules that were in force when the campaign opened. One query."""
    guideline = Guideline.objects.filter(study=study_id, version=version)
    return guideline.values_list("text", flat=True).first() or ""


def campaigns_to_adjudicate(user: User) -> QuerySet[Campaign]:
    """Closed campaigns whose undecided answers this user decides. No query of its own."""
    studies = Membership.objects.filter(user=user, is_active=True).values("study")
    return Campaign.objects.select_related("study", "round").filter(
        adjudicator__user=user, adjudicator__is_active=True, state=Campaign.State.CLOSED, study__in=studies
    )


def item_to_adjudicate(user: User, item_uuid: UUID) -> Item | None:
    """One query."""
    return (
        Item.objects.select_related("campaign__study", "campaign__round__adjudication", "campaign__adjudicator")
        .filter(uuid=item_uuid, campaign__in=campaigns_to_adjudicate(user))
        .first()
    )


# --- the researcher's pages --------------------------------------------------------------------------------------


def campaigns_of(study: Study) -> QuerySet[Campaign]:
    """With the number of judgements that are done, of `n_places` asked for. One query."""
    return (
        study.campaigns.select_related("adjudicator__user")
        .annotate(
            n_done=Count("places", filter=Q(places__state=Place.State.DONE, places__purpose=Purpose.RATING)),
        )
        .order_by("-opened_at")
    )


def items_shown(pks: list[int]) -> dict[int, Item]:
    """One query."""
    return Item.objects.in_bulk(pks)


def items_removed(campaign: Campaign) -> int:
    """How many answers were withdrawn by their authors since the campaign opened. One query."""
    return Item.objects.filter(campaign=campaign, removed_at__isnull=False).count()


def answers_judged_by(campaign: Campaign, user: User) -> int:
    """How many answers of the campaign this user has judged in it as a rater. One query."""
    own = Judgement.objects.filter(
        round=campaign.round_id, judge__rater__user=user, retracted_at__isnull=True, shared_from__isnull=True
    )
    return own.values("answer").distinct().count()


def adjudicating_member(campaign: Campaign) -> Membership | None:
    """One query, none where nobody is named."""
    if campaign.adjudicator is None:
        return None
    return Membership.objects.filter(user=campaign.adjudicator.user_id, study=campaign.study_id).first()


Standing = Literal["working", "work_ended", "access_ended", "imported"]


def standing_of(rater: Rater, members: Collection[int]) -> Standing:
    """Whether the rater may judge, and if not, why. `members`: users with access to the study. No query."""
    if rater.user_id is None:
        return "imported"
    if rater.user_id not in members:
        return "access_ended"
    return "working" if rater.is_active else "work_ended"


@dataclass(frozen=True)
class RaterProgress:
    name: str
    rater: Rater | None  # None: a member who has not begun
    done: int
    held: int
    withdrawn: int
    standing: Standing = "working"


def raters_progress(campaign: Campaign) -> list[RaterProgress]:
    """Every rater of the study, also those who have left, and what they did in this campaign. For researchers only.

    An adjudicator who does not rate is none of them.

    Training, gold and repeats are not counted as judged. Of an imported campaign only those who stand in its files.
    Three queries.
    """
    counts: dict[int, Counter[str]] = {}
    rows = (
        Place.objects.filter(Q(purpose=Purpose.RATING) | Q(state=Place.State.HELD))
        .filter(campaign=campaign, rater__isnull=False)
        .values_list("rater", "state")
        .annotate(n=Count("pk"))
    )
    for rater_id, state, n in rows.order_by():
        counts.setdefault(rater_id, Counter())[state] = n
    raters = list(Rater.objects.filter(study=campaign.study_id).select_related("user").order_by("pk"))
    begun = {rater.user_id for rater in raters if not rater.only_decides}
    is_imported = campaign.round.purpose == Round.Purpose.IMPORTED
    members = list(
        Membership.objects.filter(study=campaign.study_id, is_active=True).select_related("user").order_by("pk")
    )
    users = {member.user_id for member in members}
    table = []
    for rater in raters:
        own = counts.get(rater.pk, Counter())
        if (is_imported or rater.only_decides) and not own:
            continue
        standing = standing_of(rater, users)
        table.append(RaterProgress(rater.name, rater, own["done"], own["held"], own["withdrawn"], standing))
    if is_imported:
        return table
    waiting = [member for member in members if member.role == Role.RATER and member.user_id not in begun]
    return table + [RaterProgress(member.user.username, None, 0, 0, 0) for member in waiting]


def raters_expected(study: Study) -> int:
    """How many people may rate: active raters who are still members, and members in this role who have not begun.

    Two queries.
    """
    # An imported name rates nothing here, and neither does who was only named to adjudicate.
    raters = Rater.objects.filter(study=study, user__isnull=False, only_decides=False)
    waiting = Membership.objects.filter(study=study, role=Role.RATER, is_active=True).exclude(
        user__in=raters.filter(user__isnull=False).values("user")  # NOT IN with a NULL would leave nobody
    )
    still_members = raters.filter(is_active=True, user__memberships__study=study, user__memberships__is_active=True)
    return still_members.count() + waiting.count()
