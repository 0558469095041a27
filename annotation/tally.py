"""How far a rater is in a campaign, as the rater is told: nothing of the others, and nothing of what is a check.

Training, gold and repeated answers count as any answer does. A counter that stood still at them, or a total that grew,
would tell which they are.
"""

from dataclasses import dataclass
from typing import Any

from django.db.models import Sum

from annotation.models import Campaign, Seat
from studies.database import planned_cursor

ENOUGH_TO_TELL = 5  # timed places


@dataclass(frozen=True, slots=True)
class Tally:
    """How far a rater is. `total`: what they have judged and what they could still be given, by purpose rating."""

    done: int
    total: int
    minutes: int | None  # that the rest takes at the rater's own pace; None while too little is known

    @property
    def left(self) -> int:
        return self.total - self.done

    @property
    def percent(self) -> int:
        return 100 * self.done // self.total if self.total else 0


# What `tally_from` reads. What was passed by is over like what was judged: the place is no longer held.
COUNTED = """
    campaign.n_items, campaign.n_places,
    (SELECT COALESCE(sum(other.done), 0) FROM annotation_seat AS other
        WHERE other.campaign_id = seat.campaign_id AND other.id <> seat.id),
    (SELECT count(*) FROM annotation_skip AS skip JOIN annotation_place AS place ON place.id = skip.place_id
        WHERE skip.rater_id = seat.rater_id AND skip.campaign_id = seat.campaign_id AND skip.undone_at IS NULL
        AND place.purpose = 'rating'),
    CASE WHEN campaign.training_round_id IS NULL AND campaign.gold_round_id IS NULL THEN 0 ELSE (
        SELECT count(*) FROM annotation_item AS item WHERE item.campaign_id = seat.campaign_id
        AND item.purpose <> 'rating' AND item.removed_at IS NULL AND NOT EXISTS (
            SELECT 1 FROM annotation_place AS place WHERE place.item_id = item.id AND place.rater_id = seat.rater_id
            AND place.state <> 'held')) END,
    CASE WHEN campaign.repeat_round_id IS NULL THEN 0 ELSE
        COALESCE((campaign.selection #>> '{numbers,repeats}')::int, 0) END,
    CASE WHEN campaign.repeat_round_id IS NULL THEN 0 ELSE (
        SELECT count(*) FROM annotation_place AS place WHERE place.campaign_id = seat.campaign_id
        AND place.rater_id = seat.rater_id AND place.purpose = 'repeat' AND place.state <> 'held') END,
    (SELECT count(*) FROM annotation_place AS held
        WHERE held.rater_id = seat.rater_id AND held.campaign_id = seat.campaign_id AND held.state = 'held'),
    seat.done, seat.checks, seat.seconds, seat.timed
"""
TALLY = f"""
SELECT {COUNTED} FROM annotation_seat AS seat JOIN annotation_campaign AS campaign ON campaign.id = seat.campaign_id
WHERE seat.campaign_id = %s AND seat.rater_id = %s
"""  # noqa: S608 (names of our own columns)


def tally_of(campaign_id: int, rater_id: int) -> Tally:
    """One query, and three where the rater has not begun."""
    with planned_cursor() as cursor:
        cursor.execute(TALLY, [campaign_id, rater_id])
        row: Any = cursor.fetchone()
    return tally_from(row or _unbegun(campaign_id))


def _unbegun(campaign_id: int) -> tuple[Any, ...]:
    """What COUNTED would say of a rater without a seat."""
    campaign = Campaign.objects.get(pk=campaign_id)
    by_others = Seat.objects.filter(campaign=campaign).aggregate(n=Sum("done"))["n"] or 0
    references = campaign.items.exclude(purpose="rating").filter(removed_at__isnull=True).count()
    repeats = campaign.selection.get("numbers", {}).get("repeats", 0)
    return campaign.n_items, campaign.n_places, by_others, 0, references, repeats, 0, 0, 0, 0, 0.0, 0


def tally_from(row: tuple[Any, ...]) -> Tally:
    """How many repeats a rater will meet is not known before, and told as the campaign's share of what they judge."""
    n_items, n_places, by_others, skipped, references, repeats, repeated, held, done, checks, seconds, timed = row
    left = max(0, min(n_items - done - skipped, n_places - done - int(by_others)))
    if left:
        left += references + max(0, round(repeats * (done + left) / n_items) - repeated)
    left = max(left, held)
    known = timed >= ENOUGH_TO_TELL
    return Tally(done + checks, done + checks + left, round(left * seconds / timed / 60) if known else None)
