"""Answers, raters and campaigns in a line each, through the services."""

from collections.abc import Sequence
from dataclasses import fields
from datetime import timedelta
from typing import Any

from django.utils import timezone

from annotation.choosing import Selection
from annotation.layout import Plan
from annotation.models import Campaign, Item, Place, Rater, Seat
from annotation.opening import campaign_open
from annotation.places import place_judge
from annotation.queue import IDLE, Hand, places_hold, seat_ensure
from annotation.selectors import criteria_asked
from annotation.services import rater_ensure
from corpus.models import Answer, Instrument, Respondent, Sitting
from corpus.services import answer_record, instrument_freeze, sitting_finish, sitting_start
from scoring.models import Judgement
from studies.models import Role, Study, User
from studies.services import membership_set

SELECTION = {field.name for field in fields(Selection)}
PLAN = {field.name for field in fields(Plan)}
CODES = ("grammatical", "logical", "order")
YES = dict.fromkeys(CODES, 1.0)
NO = dict.fromkeys(CODES, 0.0)
GOOD = ("кошка сидит на столе", "мышь бежит от кошки", "дети, которые играли во дворе, были счастливы")


def make_sitting(
    instrument: Instrument,
    texts: Sequence[str | None] = GOOD,
    *,
    kind: str = Respondent.Kind.HUMAN,
    label: str = "survey",
    finish: bool = True,
) -> Sitting:
    """One respondent's sitting; a text of None is declined. Finished if there are as many texts as stimuli."""
    respondent = Respondent.objects.create(study=instrument.study, kind=kind)
    sitting = sitting_start(respondent=respondent, instrument=instrument, source_label=label)
    for stimulus_id, text in zip(sitting.order, texts, strict=False):
        outcome = Answer.Outcome.DECLINED if text is None else Answer.Outcome.GIVEN
        answer_record(sitting_id=sitting.pk, stimulus_id=stimulus_id, outcome=outcome, text=text or "")
    if finish:
        sitting_finish(sitting_id=sitting.pk)
        sitting.refresh_from_db()
    return sitting


def make_rater(study: Study, name: str) -> Rater:
    user = User.objects.create_user(name)
    membership_set(user=user, study=study, role=Role.RATER, actor=None)
    return rater_ensure(user=user, study=study, actor=None)


def make_campaign(
    study: Study, actor: User, *, k: int = 3, title: str = "Round", seed: int = 7, **kwargs: Any
) -> Campaign:
    """Each answer judged by itself, whatever its text, so that tests may count answers. `kwargs` are fields of the
    selection, of the plan, or arguments of `campaign_open`."""
    chosen = {name: kwargs.pop(name) for name in list(kwargs) if name in SELECTION}
    planned = {name: kwargs.pop(name) for name in list(kwargs) if name in PLAN}
    plan = Plan(**{"identical": "separately"} | planned)
    return campaign_open(
        study=study,
        title=title,
        raters_per_answer=k,
        seed=seed,
        actor=actor,
        selection=Selection(**chosen),
        plan=plan,
        **kwargs,
    )


def take(campaign: Campaign, rater: Rater) -> Place:
    """What lies first in the rater's hand."""
    (card,) = places_hold(campaign_id=campaign.pk, rater_id=rater.pk, ahead=1).cards[:1]
    return Place.objects.get(uuid=card.place)


def hand_of(campaign: Campaign, rater: Rater) -> Hand:
    """At most one place, and whether something may come back."""
    return places_hold(campaign_id=campaign.pk, rater_id=rater.pk, ahead=1)


def idle(place: Place) -> None:
    """Its rater has done nothing for too long."""
    Seat.objects.filter(campaign=place.campaign_id, rater=place.rater_id).update(
        active_at=timezone.now() - IDLE - timedelta(seconds=1)
    )


def judge(campaign: Campaign, rater: Rater, values: dict[str, float] | None = None) -> Place:
    place = take(campaign, rater)
    return post(place, rater, values, version=place.version)


def post(
    place: Place, rater: Rater, values: dict[str, float] | None = None, *, version: int = 0, **kwargs: Any
) -> Place:
    """Judge a place, and take no other in hand for it."""
    chosen = YES if values is None else values
    place_judge(place_uuid=place.uuid, user_id=rater.user_id, values=chosen, version=version, ahead=0, **kwargs)
    place.refresh_from_db()
    return place


def give(item: Item, rater: Rater) -> Place:
    """Hand a certain item to a certain rater, as the queue could have done."""
    had = Place.objects.filter(item=item, rater=rater).first()
    if had is not None:
        return had
    seat_ensure(item.campaign_id, rater.pk)
    place = Place.objects.filter(item=item, state=Place.State.FREE).order_by("number").first()
    assert place is not None
    place.state, place.rater, place.held_at = Place.State.HELD, rater, item.campaign.opened_at
    place.save(update_fields=["state", "rater", "held_at"])
    return place


def live(campaign: Campaign) -> int:
    return Judgement.objects.filter(round=campaign.round_id, retracted_at__isnull=True).count()


def form(values: dict[str, float] | None = None, version: int = 0) -> dict[str, str]:
    """What a judging page posts."""
    return {"version": str(version)} | {f"c-{code}": f"{value:g}" for code, value in (values or YES).items()}


def many_answers(instrument: Instrument, *, sittings: int) -> None:
    """As many finished sittings at once, past the services: only the raters are tested here."""
    respondents = Respondent.objects.bulk_create(
        Respondent(study=instrument.study, kind=Respondent.Kind.HUMAN) for _ in range(sittings)
    )
    order = list(instrument.stimuli.values_list("pk", flat=True))
    now = instrument.created_at
    instrument_freeze(instrument=instrument, actor=None)
    made = Sitting.objects.bulk_create(
        Sitting(
            respondent=respondent,
            instrument=instrument,
            source_label="survey",
            state=Sitting.State.FINISHED,
            order=order,
            started_at=now,
            finished_at=now,
        )
        for respondent in respondents
    )
    Answer.objects.bulk_create(
        Answer(
            sitting=sitting, stimulus_id=stimulus, outcome=Answer.Outcome.GIVEN, text=f"ответ из слов номер {number}"
        )
        for number, sitting in enumerate(made)
        for stimulus in order
    )


def judge_all(campaign: Campaign, raters: Sequence[Rater], value: float = 1.0) -> None:
    """Every rater has judged every answer, past the services: for pages over many answers."""
    now = campaign.opened_at
    items = list(campaign.items.all())
    for number, rater in enumerate(raters, start=1):
        campaign.places.filter(number=number).update(
            state=Place.State.DONE, rater=rater, held_at=now, done_at=now, version=1
        )
        Judgement.objects.bulk_create(
            Judgement(
                round=campaign.round,
                answer_id=item.answer_id,
                criterion=criterion,
                judge=rater.judge,
                value=value if (item.pk + number) % 4 else 1 - value,
            )
            for item in items
            for criterion in criteria_asked(campaign)
        )
