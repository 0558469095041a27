"""Reads of a judging page. Nothing here joins a table that knows who answered (DESIGN, "Blindness")."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from annotation.facts import Facts, facts_of
from annotation.models import Campaign, Place, Rater, Skip
from annotation.queue import Card
from annotation.selectors import Chosen
from scoring.models import Judgement
from studies.database import parsed, planned_cursor
from studies.models import User


@dataclass(frozen=True, slots=True)
class Desk:
    """A place that the user has, with what its page shows beside the card."""

    card: Card
    chosen: Chosen
    rater_id: int
    title: str
    is_open: bool
    is_removed: bool
    is_active: bool
    done_at: datetime | None
    facts: Facts


DESK = """
SELECT place.uuid, place.campaign_id, place.purpose, place.item_id, place.state, place.version, item.stimulus_text,
    item.display_text, item.language, place.is_flagged, place.comment,
    (SELECT jsonb_agg(jsonb_build_array(criterion.code, one.value, one.not_attempt))
     FROM scoring_judgement AS one JOIN scoring_criterion AS criterion ON criterion.id = one.criterion_id
     WHERE one.answer_id = item.answer_id AND one.judge_id = rater.judge_id AND one.retracted_at IS NULL
         AND one.round_id = CASE place.purpose WHEN 'rating' THEN campaign.round_id
             WHEN 'training' THEN campaign.training_round_id WHEN 'gold' THEN campaign.gold_round_id
             ELSE campaign.repeat_round_id END),
    rater.id, campaign.title, campaign.state = 'open',
    item.removed_at IS NOT NULL OR place.state = 'void' AND NOT EXISTS (SELECT 1 FROM annotation_skip AS skip
        WHERE skip.place_id = place.id AND skip.rater_id = rater.id AND skip.undone_at IS NULL),
    rater.is_active, place.done_at, campaign.round_id
FROM annotation_place AS place
JOIN annotation_item AS item ON item.id = place.item_id
JOIN annotation_campaign AS campaign ON campaign.id = place.campaign_id
JOIN annotation_rater AS rater ON rater.study_id = campaign.study_id AND rater.user_id = %s
JOIN studies_membership AS member
    ON member.user_id = rater.user_id AND member.study_id = rater.study_id AND member.is_active
WHERE place.uuid = %s AND (place.rater_id = rater.id OR place.state = 'free' AND EXISTS (
    SELECT 1 FROM annotation_skip AS skip
    WHERE skip.place_id = place.id AND skip.rater_id = rater.id AND skip.undone_at IS NULL))
"""


def desk_of(user: User, place_uuid: UUID) -> Desk | None:
    """A place that the user has, or has passed by and nobody has taken, as it stands.

    One query, two more when a process meets the campaign first.
    """
    with planned_cursor() as cursor:
        cursor.execute(DESK, [user.pk, place_uuid])
        row: Any = cursor.fetchone()
    if row is None:
        return None
    said = parsed(row[11]) or []
    chosen = Chosen({code: float(value) for code, value, _ in said}, not_attempt=any(mark for _, _, mark in said))
    rater_id, title, is_open, is_removed, is_active, done_at, round_id = row[12:19]
    facts = facts_of(row[1], round_id)
    return Desk(Card(*row[:11]), chosen, rater_id, title, is_open, is_removed, is_active, done_at, facts)


def place_before(desk: Desk) -> UUID | None:
    """The place that the same rater judged just before this one. One query."""
    judged = Place.objects.filter(
        campaign=desk.card.campaign_id, rater=desk.rater_id, done_at__isnull=False, item__removed_at__isnull=True
    )
    if desk.done_at is not None:
        judged = judged.filter(done_at__lt=desk.done_at)
    return judged.order_by("-done_at").values_list("uuid", flat=True).first()


def places_done_by(rater: Rater, campaign: Campaign, only: str = "") -> QuerySet[Place]:
    """What a rater has judged or taken back, the latest first. `only` is "", "flagged" or "withdrawn". No query yet."""
    judged = Place.objects.filter(campaign=campaign, rater=rater, done_at__isnull=False, item__removed_at__isnull=True)
    kinds = {"flagged": Q(is_flagged=True) | ~Q(comment=""), "withdrawn": Q(state=Place.State.WITHDRAWN)}
    return judged.filter(kinds.get(only, Q())).select_related("item").order_by("-done_at")


def skips_of(rater: Rater, campaign: Campaign) -> QuerySet[Skip]:
    """What a rater has passed by, the latest first. No query yet."""
    passed = Skip.objects.filter(campaign=campaign, rater=rater, undone_at__isnull=True, item__removed_at__isnull=True)
    return passed.select_related("item", "place").order_by("-made_at")


def said_at(rater: Rater, campaign: Campaign, places: Sequence[Place]) -> dict[int, Chosen]:
    """What the rater chose at each of their places, by the place's key; nothing where it is withdrawn. One query."""
    rounds = facts_of(campaign.pk, campaign.round_id).rounds
    at = {(rounds[place.purpose], place.item.answer_id): place.pk for place in places}
    live = Judgement.objects.filter(
        judge=rater.judge_id,
        round__in={round_id for round_id, _ in at},
        answer__in={answer_id for _, answer_id in at},
        retracted_at__isnull=True,
    ).values_list("round_id", "answer_id", "criterion__code", "value", "not_attempt")
    values: dict[int, dict[str, float]] = {place.pk: {} for place in places}
    not_attempts = set()
    for round_id, answer_id, code, value, not_attempt in live:
        if (place_id := at.get((round_id, answer_id))) is not None:
            values[place_id][code] = value
            if not_attempt:
                not_attempts.add(place_id)
    return {pk: Chosen(chosen, not_attempt=pk in not_attempts) for pk, chosen in values.items()}
