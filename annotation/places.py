"""Writes at a place: it is judged, passed by, taken back. Adjudication is in `annotation.adjudication`.

A rater's seat is locked first, then the place: the posts of one rater stand in a row, and two raters meet only at a
place.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from annotation.deciding import decisions_blind
from annotation.errors import (
    AnswerRemovedError,
    CampaignClosedError,
    CommentTooLongError,
    PlaceNotYoursError,
    PlaceStaleError,
    RaterInactiveError,
    ReasonMissingError,
    ValuesMissingError,
)
from annotation.facts import Facts, facts_of
from annotation.models import Campaign, Place, Purpose, Rater, Seat, Skip
from annotation.queue import AHEAD, Hand, hand_fill, seat_ensure
from annotation.tally import COUNTED, Tally, tally_from
from annotation.versions import label_change, version_add
from scoring.models import Criterion, Judgement
from scoring.services import (
    RoundClosedError,
    ValueOutsideScaleError,
    Verdict,
    judgements_retract,
    judgements_write,
)
from studies.database import parsed, planned_cursor
from studies.models import User
from studies.services import audit_record

MAX_COMMENT = 2_000  # characters, of a comment or of a reason to pass by
LONGEST = 300.0  # seconds that count towards a rater's pace: a longer look is a pause


@dataclass(frozen=True, slots=True)
class Remark:
    """What a rater adds to a judgement. `seconds`: how long the answer was on the screen, None where unknown."""

    seconds: float | None = None
    is_flagged: bool = False
    comment: str = ""


@dataclass(frozen=True, slots=True)
class Feedback:
    """Of a training answer: criterion code to what was chosen and what is right."""

    chosen: dict[str, float]
    expected: dict[str, float]
    not_attempt: bool  # what is right
    chosen_not_attempt: bool
    explanation: str

    @property
    def is_right(self) -> bool:
        return self.chosen == self.expected and self.not_attempt == self.chosen_not_attempt


@dataclass(frozen=True, slots=True)
class Saved:
    """What a save came to. `hand` holds what is to be judged next."""

    place: UUID
    place_id: int
    campaign_id: int
    version: int
    hand: Hand
    tally: Tally
    feedback: Feedback | None = None


@dataclass(frozen=True, slots=True)
class _Desk:
    """A place and its rater's seat, both locked, with what the rater may do there."""

    place_id: int
    place: UUID
    state: str
    rater_id: int | None  # of the place; None where it is free
    version: int
    purpose: str
    item_id: int
    is_flagged: bool
    comment: str
    was_done: bool
    seat_id: int
    done: int
    cursor: int
    me: int  # the rater who asks
    judge_id: int
    campaign_id: int
    round_id: int
    is_open: bool

    @property
    def is_mine(self) -> bool:
        return self.rater_id == self.me


@dataclass(frozen=True, slots=True)
class _Thing:
    """The answer at a place as it is once the locks are held."""

    answer_id: int
    is_removed: bool
    sharing: list[int]  # answers with the same text, which share the judgement
    expected: dict[str, float] | None
    expected_not_attempt: bool
    explanation: str
    judged: dict[int, tuple[float, bool]]  # criterion → value and mark, as stored
    is_active: bool  # the rater


# Locked are the seat and the place, in this order, and nothing that the other joins bring can change under them.
DESK = """
SELECT place.id, place.uuid, place.state, place.rater_id, place.version, place.purpose, place.item_id,
    place.is_flagged, place.comment, place.done_at IS NOT NULL, seat.id, seat.done, seat.cursor, rater.id,
    rater.judge_id, campaign.id, campaign.round_id, campaign.state = 'open'
FROM annotation_seat AS seat
JOIN annotation_campaign AS campaign ON campaign.id = seat.campaign_id
JOIN annotation_rater AS rater ON rater.id = seat.rater_id AND rater.user_id = %s
JOIN annotation_place AS place ON place.campaign_id = campaign.id
JOIN studies_membership AS member
    ON member.user_id = rater.user_id AND member.study_id = rater.study_id AND member.is_active
WHERE place.uuid = %s
FOR NO KEY UPDATE OF seat, place
"""
# Asked when the locks are held, so that it is not older than they are.
THING = """
SELECT item.answer_id, item.removed_at IS NOT NULL,
    (SELECT jsonb_agg(other.answer_id) FROM annotation_item AS other
        WHERE other.same_as_id = item.id AND other.removed_at IS NULL),
    item.expected, item.expected_not_attempt, item.explanation,
    (SELECT jsonb_agg(jsonb_build_array(one.criterion_id, one.value, one.not_attempt)) FROM scoring_judgement AS one
        WHERE one.round_id = %s AND one.answer_id = item.answer_id AND one.judge_id = %s AND one.retracted_at IS NULL),
    (SELECT is_active FROM annotation_rater WHERE id = %s)
FROM annotation_item AS item WHERE item.id = %s
"""
SAVE = """
UPDATE annotation_place SET state = 'done', rater_id = %(rater)s, version = version + 1,
    held_at = COALESCE(held_at, clock_timestamp()), done_at = COALESCE(done_at, clock_timestamp()),
    seconds = COALESCE(seconds, %(seconds)s::float8), ordinal = COALESCE(ordinal, %(ordinal)s::int),
    is_flagged = %(flagged)s::bool, comment = %(comment)s
WHERE id = %(place)s
"""
SIT = f"""
UPDATE annotation_seat AS seat SET done = done + %s::int, checks = checks + %s::int, seconds = seconds + %s::float8,
    timed = timed + %s::int, revision = revision + %s::int, cursor = %s::bigint, active_at = clock_timestamp()
FROM annotation_campaign AS campaign WHERE seat.id = %s AND campaign.id = seat.campaign_id RETURNING {COUNTED}
"""  # noqa: S608 (names of our own columns)


@transaction.atomic
def place_judge(
    *,
    place_uuid: UUID,
    user_id: int,
    values: Mapping[str, float],
    version: int,
    not_attempt: bool = False,
    remark: Remark = Remark(),
    ahead: int = AHEAD,
) -> Saved:
    """Store one rater's judgements of one answer, criterion codes to values or *not an attempt*, and hand out the next.

    `version` is the one that the page showed. An older page that says what is stored already is the same post twice and
    changes nothing; one that says something else is refused. A place that was given back while the page was open is
    taken again if nobody has it. Answers with the same text share the judgement.

    Raises PlaceNotYoursError, AnswerRemovedError, PlaceStaleError, ValuesMissingError, scoring's
    ValueOutsideScaleError, CommentTooLongError, CampaignClosedError, RaterInactiveError.
    """
    desk = _desk(place_uuid, user_id)
    facts = facts_of(desk.campaign_id, desk.round_id)
    thing = _thing(desk, facts)
    _refuse(desk, thing)
    verdicts = verdicts_of(facts.criteria, values, not_attempt=not_attempt)
    if len(remark.comment) > MAX_COMMENT:
        raise CommentTooLongError
    is_judged = _is_stored(thing, verdicts)
    if version != desk.version and not (is_judged and desk.state == Place.State.DONE and _is_remarked(desk, remark)):
        raise PlaceStaleError
    changed = 0 if is_judged else _write(desk, facts, thing, verdicts)
    is_new = changed > 0 or desk.state != Place.State.DONE or not _is_remarked(desk, remark)
    if is_new:
        _save(desk, remark)
    done = desk.done + int(_is_first(desk))
    hand = hand_fill(facts=facts, rater_id=desk.me, done=done, cursor=desk.cursor, ahead=ahead)
    return Saved(
        place=desk.place,
        place_id=desk.place_id,
        campaign_id=desk.campaign_id,
        version=desk.version + int(is_new),
        hand=hand,
        tally=_sit(desk, hand, remark if is_new else None),
        feedback=_feedback(desk, thing, verdicts),
    )


def _desk(place_uuid: UUID, user_id: int) -> _Desk:
    """Raises PlaceNotYoursError."""
    for _ in range(2):
        with planned_cursor() as cursor:
            cursor.execute(DESK, [user_id, place_uuid])
            row: Any = cursor.fetchone()
        if row is not None:
            return _Desk(*row)
        rater = Rater.objects.filter(user=user_id, study__campaigns__places__uuid=place_uuid).first()
        campaign = Campaign.objects.filter(places__uuid=place_uuid).first()
        if rater is None or campaign is None:
            break
        seat_ensure(campaign.pk, rater.pk)
    raise PlaceNotYoursError


def _thing(desk: _Desk, facts: Facts) -> _Thing:
    round_id = facts.rounds[desk.purpose]
    with planned_cursor() as cursor:
        cursor.execute(THING, [round_id, desk.judge_id, desk.me, desk.item_id])
        row: Any = cursor.fetchone()
    sharing = (parsed(row[2]) or []) if desk.purpose == Purpose.RATING else []
    judged = {criterion: (float(value), mark) for criterion, value, mark in parsed(row[6]) or ()}
    return _Thing(row[0], row[1], sharing, parsed(row[3]), row[4], row[5], judged, row[7])


def _refuse(desk: _Desk, thing: _Thing) -> None:
    if not thing.is_active:
        raise RaterInactiveError
    if not desk.is_mine:
        # Free: given back while the page was open. Its address is known only to those who had it.
        if desk.rater_id is not None or desk.state not in (Place.State.FREE, Place.State.VOID):
            raise PlaceNotYoursError
        if Place.objects.filter(item=desk.item_id, rater=desk.me, purpose=desk.purpose).exists():
            raise PlaceNotYoursError
    if thing.is_removed or (desk.state == Place.State.VOID and not _is_passed_check(desk)):
        raise AnswerRemovedError
    if not desk.is_open:
        raise CampaignClosedError


def _is_passed_check(desk: _Desk) -> bool:
    """A training, gold or repeated answer that the rater passed by. Coming back to it works as with any other, or it
    would tell what it is."""
    passed = Skip.objects.filter(place=desk.place_id, rater=desk.me, undone_at__isnull=True)
    return desk.is_mine and desk.purpose != Purpose.RATING and passed.exists()


def verdicts_of(
    criteria: Sequence[Criterion], values: Mapping[str, float], *, not_attempt: bool, reason: str = ""
) -> dict[Criterion, Verdict]:
    """What a judge says on each criterion. Raises ValuesMissingError, scoring's ValueOutsideScaleError."""
    if not_attempt:
        return {criterion: Verdict(0, not_attempt=True, reason=reason) for criterion in criteria}
    missing = [criterion.code for criterion in criteria if criterion.code not in values]
    if missing:
        raise ValuesMissingError(missing)
    for criterion in criteria:
        if values[criterion.code] not in criterion.scale:
            raise ValueOutsideScaleError(f"{criterion.code}: {values[criterion.code]}")
    return {criterion: Verdict(values[criterion.code], reason=reason) for criterion in criteria}


def _is_stored(thing: _Thing, verdicts: Mapping[Criterion, Verdict]) -> bool:
    return thing.judged == {criterion.pk: (one.value, one.not_attempt) for criterion, one in verdicts.items()}


def _is_remarked(desk: _Desk, remark: Remark) -> bool:
    return (desk.is_flagged, desk.comment) == (remark.is_flagged, remark.comment)


def _is_first(desk: _Desk) -> bool:
    return desk.purpose == Purpose.RATING and not desk.was_done


def _write(desk: _Desk, facts: Facts, thing: _Thing, verdicts: Mapping[Criterion, Verdict]) -> int:
    """Raises CampaignClosedError: it was closed after we had read that it is open."""
    try:
        return judgements_write(
            round_id=facts.rounds[desk.purpose],
            answer_id=thing.answer_id,
            judge_id=desk.judge_id,
            verdicts=verdicts,
            sharing=thing.sharing,
            replaces=bool(thing.judged) or desk.version > 0,
        )
    except RoundClosedError as error:
        raise CampaignClosedError from error


def _save(desk: _Desk, remark: Remark) -> None:
    with planned_cursor() as cursor:
        cursor.execute(
            SAVE,
            {
                "rater": desk.me,
                "seconds": remark.seconds,
                "ordinal": desk.done + 1 if _is_first(desk) else None,
                "flagged": remark.is_flagged,
                "comment": remark.comment,
                "place": desk.place_id,
            },
        )
    if not desk.is_mine or desk.state == Place.State.VOID:
        Skip.objects.filter(rater=desk.me, item=desk.item_id, undone_at__isnull=True).update(undone_at=timezone.now())


def _sit(desk: _Desk, hand: Hand, remark: Remark | None) -> Tally:
    """Count at the seat what was saved; `remark` is None where nothing was."""
    is_first = remark is not None and not desk.was_done
    seconds = remark.seconds if remark is not None and is_first else None
    with planned_cursor() as cursor:
        cursor.execute(
            SIT,
            [
                int(is_first and desk.purpose == Purpose.RATING),
                int(is_first and desk.purpose != Purpose.RATING),
                0.0 if seconds is None else min(seconds, LONGEST),
                int(seconds is not None),
                int(remark is not None),
                hand.cursor,
                desk.seat_id,
            ],
        )
        return tally_from(cursor.fetchone())


def _feedback(desk: _Desk, thing: _Thing, verdicts: Mapping[Criterion, Verdict]) -> Feedback | None:
    if desk.purpose != Purpose.TRAINING or thing.expected is None:
        return None
    return Feedback(
        chosen={criterion.code: one.value for criterion, one in verdicts.items()},
        expected={criterion.code: float(thing.expected.get(criterion.code, 0)) for criterion in verdicts},
        not_attempt=thing.expected_not_attempt,
        chosen_not_attempt=any(one.not_attempt for one in verdicts.values()),
        explanation=thing.explanation,
    )


@transaction.atomic
def place_skip(*, place_uuid: UUID, user_id: int, reason: str, ahead: int = AHEAD) -> Saved:
    """Pass an answer by and say why: somebody else gets it, and the queue does not offer it to this rater again.

    A training, gold or repeated answer that is passed by stays unjudged. What was judged already is not passed by: it
    can be withdrawn. Passing by twice is once.

    Raises PlaceNotYoursError, AnswerRemovedError, ReasonMissingError, CommentTooLongError, CampaignClosedError,
    RaterInactiveError.
    """
    reason = reason.strip()
    if not reason:
        raise ReasonMissingError
    if len(reason) > MAX_COMMENT:
        raise CommentTooLongError
    desk = _desk(place_uuid, user_id)
    facts = facts_of(desk.campaign_id, desk.round_id)
    thing = _thing(desk, facts)
    passed = Skip.objects.filter(rater=desk.me, item=desk.item_id, undone_at__isnull=True).exists()
    if not passed or (desk.is_mine and desk.state == Place.State.HELD):
        _refuse(desk, thing)
        if not desk.is_mine or desk.state != Place.State.HELD:
            raise PlaceNotYoursError
        if not passed:
            Skip.objects.create(
                campaign_id=desk.campaign_id,
                item_id=desk.item_id,
                rater_id=desk.me,
                place_id=desk.place_id,
                reason=reason,
            )
        _give_back(desk)
    hand = hand_fill(facts=facts, rater_id=desk.me, done=desk.done, cursor=desk.cursor, ahead=ahead)
    return Saved(desk.place, desk.place_id, desk.campaign_id, desk.version, hand, _sit(desk, hand, None))


def _give_back(desk: _Desk) -> None:
    place = Place.objects.filter(pk=desk.place_id)
    if desk.purpose == Purpose.RATING:
        place.update(state=Place.State.FREE, rater=None, held_at=None)
    else:
        place.update(state=Place.State.VOID)


@transaction.atomic
def place_withdraw(*, place_uuid: UUID, user_id: int) -> None:
    """A rater takes a label back while the campaign is open. It leaves votes and agreement at once.

    Raises PlaceNotYoursError, CampaignClosedError, RaterInactiveError.
    """
    desk = _desk(place_uuid, user_id)
    if not desk.is_mine:
        raise PlaceNotYoursError
    if not desk.is_open:
        raise CampaignClosedError
    if not Rater.objects.filter(pk=desk.me, is_active=True).exists():
        raise RaterInactiveError
    _label_take_back(desk.place_id, actor=User.objects.get(pk=user_id), reason="")


@transaction.atomic
def label_withdraw(*, place_id: int, actor: User, reason: str) -> Place:
    """A researcher takes a rater's label out, in a closed campaign too. The judgements stay as history."""
    # The campaign's lock comes first, as where answers are removed.
    campaign = Campaign.objects.select_for_update(no_key=True).get(places=place_id)
    seat = "SELECT 1 FROM annotation_seat AS seat JOIN annotation_place AS place USING (campaign_id, rater_id) "
    with planned_cursor() as cursor:
        cursor.execute(seat + "WHERE place.id = %s FOR NO KEY UPDATE OF seat", [place_id])
    live = Judgement.objects.filter(round=campaign.round_id, retracted_at__isnull=True, judge__rater__places=place_id)
    place = Place.objects.select_related("item__answer").get(pk=place_id)
    answers = [place.item.answer_id, *place.item.sharing.values_list("answer_id", flat=True)]
    before = set(live.filter(answer__in=answers).values_list("pk", flat=True))
    place = _label_take_back(place_id, actor=actor, reason=reason)
    gone = before - set(live.filter(answer__in=answers).values_list("pk", flat=True))
    if gone and place.rater is not None:
        change = label_change(place, gone)
        version_add(campaign=campaign, change=change, actor=actor)
        decisions_blind(campaign)
    return place


def _label_take_back(place_id: int, *, actor: User, reason: str) -> Place:
    place = (
        Place.objects.select_for_update(of=("self",), no_key=True)
        .select_related("campaign__study", "item", "rater")
        .get(pk=place_id)
    )
    if place.state != Place.State.DONE or place.rater is None:
        return place
    facts = facts_of(place.campaign_id, place.campaign.round_id)
    judgements_retract(
        round_id=facts.rounds[place.purpose],
        answer_id=place.item.answer_id,
        judge_id=place.rater.judge_id,
        sharing=list(place.item.sharing.values_list("answer_id", flat=True)),
    )
    place.state, place.version = Place.State.WITHDRAWN, place.version + 1
    place.save(update_fields=["state", "version"])
    Seat.objects.filter(campaign=place.campaign_id, rater=place.rater_id).update(revision=F("revision") + 1)
    audit_record(
        actor=actor, study=place.campaign.study, action="label_withdraw", target=place, detail={"reason": reason}
    )
    return place
