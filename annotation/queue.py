"""Which answers lie before a rater: places are handed out, passed by, given back.

Whatever a rater writes locks the rater's seat first and then places, so the posts of one rater stand in a row and two
raters meet only at a place. These statements run for every judgement of every rater and are written out: see
docs/benchmarks.md for what the object mapper takes.
"""

import random
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction

from annotation.errors import CampaignClosedError, RaterInactiveError
from annotation.facts import Facts, facts_of
from annotation.models import Campaign, Purpose, Seat
from studies.database import planned_cursor

IDLE = timedelta(minutes=30)
"""A place whose rater has done nothing for longer than this goes to whoever has nothing else left to judge."""

AHEAD = 3
"""Places that a rater holds: the one on the screen and the next ones, which the page shows without asking."""


@dataclass(frozen=True, slots=True)
class Card:
    """An answer as a judging page shows it. Why it lies here a rater learns only where it trains."""

    place: UUID
    campaign_id: int
    purpose: str
    item_id: int
    state: str
    version: int
    stimulus_text: str
    display_text: str
    language: str
    is_flagged: bool
    comment: str

    @property
    def is_training(self) -> bool:
        return self.purpose == Purpose.TRAINING

    @property
    def is_done(self) -> bool:
        return self.state == "done"


@dataclass(frozen=True, slots=True)
class Hand:
    """What a rater holds, in the order to be judged. `later`: nothing now, but something may yet come back."""

    cards: tuple[Card, ...]
    later: bool = False
    cursor: int = 0  # what the seat's is to become


SEAT = """
SELECT seat.id, seat.done, seat.cursor, campaign.state, campaign.round_id, rater.is_active
FROM annotation_seat AS seat
JOIN annotation_campaign AS campaign ON campaign.id = seat.campaign_id
JOIN annotation_rater AS rater ON rater.id = seat.rater_id
WHERE seat.campaign_id = %s AND seat.rater_id = %s
FOR NO KEY UPDATE OF seat
"""
HELD = """
SELECT place.uuid, place.campaign_id, place.purpose, place.item_id, place.state, place.version, item.stimulus_text,
    item.display_text, item.language, place.is_flagged, place.comment
FROM annotation_place AS place JOIN annotation_item AS item ON item.id = place.item_id
WHERE place.rater_id = %s AND place.campaign_id = %s AND place.state = 'held'
ORDER BY place.held_at, place.id
"""
# A row that changed before it was locked is looked at again by PostgreSQL and left out if it no longer fits.
# SKIP LOCKED keeps raters from queueing behind each other.
TAKE = """
WITH found AS (
    SELECT place.id FROM annotation_place AS place
    WHERE place.campaign_id = %s AND place.state = 'free' AND place.item_id > %s
        AND NOT EXISTS (SELECT 1 FROM annotation_place AS had WHERE had.rater_id = %s AND had.item_id = place.item_id)
        AND NOT EXISTS (SELECT 1 FROM annotation_skip AS skip
            WHERE skip.rater_id = %s AND skip.item_id = place.item_id AND skip.undone_at IS NULL)
    ORDER BY place.item_id, place.number LIMIT 1 FOR UPDATE OF place {skip_locked})
UPDATE annotation_place AS place SET state = 'held', rater_id = %s, held_at = clock_timestamp()
FROM found WHERE place.id = found.id RETURNING place.item_id
"""
TAKE_FREE = TAKE.format(skip_locked="SKIP LOCKED")
TAKE_WAITING = TAKE.format(skip_locked="")
OPEN_TO = """
SELECT EXISTS (SELECT 1 FROM annotation_place AS place
    JOIN annotation_seat AS seat ON seat.campaign_id = place.campaign_id AND seat.rater_id = place.rater_id
    WHERE place.campaign_id = %s AND place.state = 'held' AND place.purpose = 'rating' AND place.rater_id <> %s
        AND NOT EXISTS (SELECT 1 FROM annotation_place AS had WHERE had.rater_id = %s AND had.item_id = place.item_id)
        AND NOT EXISTS (SELECT 1 FROM annotation_skip AS skip
            WHERE skip.rater_id = %s AND skip.item_id = place.item_id AND skip.undone_at IS NULL))
"""
TAKE_IDLE = """
WITH found AS (
    SELECT place.id FROM annotation_place AS place
    JOIN annotation_seat AS seat ON seat.campaign_id = place.campaign_id AND seat.rater_id = place.rater_id
    WHERE place.campaign_id = %s AND place.state = 'held' AND place.purpose = 'rating' AND place.rater_id <> %s
        AND seat.active_at < clock_timestamp() - %s::interval
        AND NOT EXISTS (SELECT 1 FROM annotation_place AS had WHERE had.rater_id = %s AND had.item_id = place.item_id)
        AND NOT EXISTS (SELECT 1 FROM annotation_skip AS skip
            WHERE skip.rater_id = %s AND skip.item_id = place.item_id AND skip.undone_at IS NULL)
    ORDER BY place.item_id, place.number LIMIT 1 FOR UPDATE OF place SKIP LOCKED)
UPDATE annotation_place AS place SET state = 'held', rater_id = %s, held_at = clock_timestamp()
FROM found WHERE place.id = found.id RETURNING place.item_id
"""
CHECK = """
INSERT INTO annotation_place
    (uuid, item_id, campaign_id, purpose, number, state, rater_id, held_at, version, is_flagged, comment)
VALUES (gen_random_uuid(), %s, %s, %s, 0, 'held', %s, clock_timestamp(), 0, false, '')
"""


@transaction.atomic
def places_hold(*, campaign_id: int, rater_id: int, ahead: int = AHEAD) -> Hand:
    """Up to `ahead` places in the rater's hand: those that lie there already, then training, checks that are due, free
    places of answers that the rater has not had, and at last what others have left lying.

    Raises CampaignClosedError, RaterInactiveError.
    """
    seat_ensure(campaign_id, rater_id)
    with planned_cursor() as cursor:
        cursor.execute(SEAT, [campaign_id, rater_id])
        row: Any = cursor.fetchone()
    if row is None or row[3] != Campaign.State.OPEN:
        raise CampaignClosedError
    if not row[5]:
        raise RaterInactiveError
    hand = hand_fill(facts=facts_of(campaign_id, row[4]), rater_id=rater_id, done=row[1], cursor=row[2], ahead=ahead)
    with planned_cursor() as cursor:
        cursor.execute(
            "UPDATE annotation_seat SET cursor = %s, active_at = clock_timestamp() WHERE id = %s", [hand.cursor, row[0]]
        )
    return hand


def seat_ensure(campaign_id: int, rater_id: int) -> None:
    """One query where the seat exists."""
    if not Seat.objects.filter(campaign=campaign_id, rater=rater_id).exists():
        Seat.objects.bulk_create([Seat(campaign_id=campaign_id, rater_id=rater_id)], ignore_conflicts=True)


def hand_fill(*, facts: Facts, rater_id: int, done: int, cursor: int, ahead: int = AHEAD) -> Hand:
    """Within the transaction of a caller that holds the seat and updates its cursor, once: a row that a transaction
    updates twice has its foreign keys checked anew. Two queries, and one for each place that is handed out."""
    hand = held_cards(facts.campaign_id, rater_id)
    taken = 0
    for _ in range(ahead - len(hand)):
        if facts.has_checks:
            if taken:  # a gold answer stands among answers to its own stimulus: what was just taken is looked at
                hand = held_cards(facts.campaign_id, rater_id)
            if _check_take(facts, rater_id, hand, done=done):
                hand = held_cards(facts.campaign_id, rater_id)
                continue
        item_id = _place_take(facts.campaign_id, rater_id, cursor, is_empty=not hand and not taken)
        if item_id is None:
            break
        taken += 1
        cursor = max(cursor, item_id)
    if taken:
        hand = held_cards(facts.campaign_id, rater_id)
    return Hand(hand, later=not hand and _may_come_back(facts.campaign_id, rater_id), cursor=cursor)


def _rating(hand: tuple[Card, ...]) -> int:
    return sum(card.purpose == Purpose.RATING for card in hand)


def held_cards(campaign_id: int, rater_id: int) -> tuple[Card, ...]:
    """One query."""
    with planned_cursor() as cursor:
        cursor.execute(HELD, [rater_id, campaign_id])
        return tuple(Card(*row) for row in cursor.fetchall())


def _place_take(campaign_id: int, rater_id: int, after: int, *, is_empty: bool) -> int | None:
    """The item whose place was taken: ahead of the last one, then one that was given back, then one that lies idle.

    SKIP LOCKED also hides places that are only being written at this moment; so where it finds nothing and the hand is
    empty, the question is asked once more with waiting. Whoever has taken a place in this transaction must not wait:
    somebody who waits for that place may hold the one that is waited for.
    """
    tries = [(TAKE_FREE, after)]
    if after:
        tries.append((TAKE_FREE, 0))
    if is_empty:
        tries.append((TAKE_WAITING, 0))
    for statement, item in tries:
        if found := _taken(statement, [campaign_id, item, rater_id, rater_id, rater_id]):
            return found
    return _taken(TAKE_IDLE, [campaign_id, rater_id, IDLE, rater_id, rater_id, rater_id])


def _taken(statement: str, parameters: list[Any]) -> int | None:
    with planned_cursor() as cursor:
        cursor.execute(statement, parameters)
        row: Any = cursor.fetchone()
    return row[0] if row else None


def _may_come_back(campaign_id: int, rater_id: int) -> bool:
    with planned_cursor() as cursor:
        cursor.execute(OPEN_TO, [campaign_id, rater_id, rater_id, rater_id])
        row: Any = cursor.fetchone()
    return bool(row[0])


# --- training, gold and repeats ----------------------------------------------------------------------------------


def _check_take(facts: Facts, rater_id: int, hand: tuple[Card, ...], *, done: int) -> bool:
    """Hand out a training answer, a repeat or a gold answer if one is due: in this order. `done` places of purpose
    rating are judged."""
    for purpose, item_id in (
        (Purpose.TRAINING, _training_due(facts, rater_id)),
        (Purpose.REPEAT, _repeat_due(facts, rater_id, done)),
        (Purpose.GOLD, _gold_due(facts, rater_id, hand, done)),
    ):
        if item_id is not None:
            with planned_cursor() as cursor:
                cursor.execute(CHECK, [item_id, facts.campaign_id, purpose, rater_id])
            return True
    return False


REFERENCES = """
SELECT item.id, place.id IS NOT NULL, item.stimulus_text, item.display_text FROM annotation_item AS item
LEFT JOIN annotation_place AS place ON place.item_id = item.id AND place.rater_id = %s AND place.purpose = item.purpose
WHERE item.campaign_id = %s AND item.purpose = %s AND item.removed_at IS NULL ORDER BY item.id
"""
REPEAT = """
SELECT place.item_id FROM annotation_place AS place JOIN annotation_item AS item ON item.id = place.item_id
WHERE place.campaign_id = %s AND place.rater_id = %s AND place.purpose = 'rating' AND place.state = 'done'
    AND item.is_repeated AND item.removed_at IS NULL AND place.ordinal <= %s
    AND NOT EXISTS (SELECT 1 FROM annotation_place AS again
        WHERE again.item_id = item.id AND again.rater_id = place.rater_id AND again.purpose = 'repeat')
ORDER BY place.ordinal LIMIT 1
"""


LAST_STIMULUS = """
SELECT item.stimulus_text FROM annotation_place AS place JOIN annotation_item AS item ON item.id = place.item_id
WHERE place.campaign_id = %s AND place.rater_id = %s AND place.purpose = 'rating' AND place.state = 'done'
ORDER BY place.ordinal DESC LIMIT 1
"""


def _references(facts: Facts, rater_id: int, purpose: str) -> list[tuple[int, bool, str, str]]:
    if purpose not in facts.rounds:
        return []
    with planned_cursor() as cursor:
        cursor.execute(REFERENCES, [rater_id, facts.campaign_id, purpose])
        return list(cursor.fetchall())


def _training_due(facts: Facts, rater_id: int) -> int | None:
    return next((pk for pk, had, *_ in _references(facts, rater_id, Purpose.TRAINING) if not had), None)


def _gold_due(facts: Facts, rater_id: int, hand: tuple[Card, ...], done: int) -> int | None:
    """After each `gold_every` answers one, at a place and in an order that only the seed and the rater tell.

    It is one to the stimulus that the rater is at, and no text that lies in the hand: a sentence to another stimulus,
    or the same one twice in a row, would tell what it is. One whose stimulus has gone by is not given.
    """
    items = _references(facts, rater_id, Purpose.GOLD)
    had = sum(was_had for _, was_had, *_ in items)
    if not facts.gold_every or had == len(items) or any(card.purpose == Purpose.GOLD for card in hand):
        return None
    shuffle = random.Random(f"{facts.seed} {rater_id}")  # noqa: S311 (an order to repeat, not a secret)
    shuffle.shuffle(items)
    offsets = [shuffle.randrange(max(1, facts.gold_every // 2)) for _ in items]
    if done + _rating(hand) < had * facts.gold_every + offsets[had]:
        return None
    here = [card.stimulus_text for card in hand if card.purpose == Purpose.RATING][-1:]
    stimulus = here[0] if here else _last_stimulus(facts, rater_id)
    texts = {card.display_text for card in hand}
    fitting = (pk for pk, was_had, own, text in items if not was_had and own == stimulus and text not in texts)
    return next(fitting, None)


def _last_stimulus(facts: Facts, rater_id: int) -> str | None:
    with planned_cursor() as cursor:
        cursor.execute(LAST_STIMULUS, [facts.campaign_id, rater_id])
        row: Any = cursor.fetchone()
    return row[0] if row else None


def _repeat_due(facts: Facts, rater_id: int, done: int) -> int | None:
    """The oldest answer to be judged a second time that lies `repeat_distance` judged answers back."""
    if Purpose.REPEAT not in facts.rounds:
        return None
    with planned_cursor() as cursor:
        cursor.execute(REPEAT, [facts.campaign_id, rater_id, done - facts.repeat_distance])
        row: Any = cursor.fetchone()
    return row[0] if row else None
