"""Practice: tasks with feedback between the instruction and the real ones.

What is written here is kept in a table of its own, each try a row, so that a researcher sees whether people understood.
It is never an answer: nothing rates, runs or scores it, and nothing waits for it.
"""

from collections import Counter
from dataclasses import dataclass

from django.db import transaction
from django.urls import reverse

from corpus.models import Instrument, Sitting, Stimulus
from corpus.services import (
    MAX_ANSWER_CHARACTERS,
    AnswerEmptyError,
    AnswerTooLongError,
    AnswerUnstorableError,
    SittingClosedError,
)
from surveys.models import PracticeAnswer
from surveys.visits import Visit

MAX_TRIES = 50  # after these the last row is written anew, so that nobody fills the table


def practice_check(*, text: str, declined: bool) -> str:
    """The text to keep; empty where the person cannot make a sentence.

    Raises AnswerEmptyError, AnswerTooLongError, AnswerUnstorableError.
    """
    if declined:
        return ""
    if "\x00" in text:
        raise AnswerUnstorableError
    if len(text) > MAX_ANSWER_CHARACTERS:
        raise AnswerTooLongError
    if not text.strip():
        raise AnswerEmptyError
    return text


@transaction.atomic
def practice_answer_record(*, visit: Visit, stimulus_id: int, text: str, declined: bool = False) -> PracticeAnswer:
    """Keep a try. The same text twice in a row, as a double click sends it, is one try.

    Raises SittingClosedError, AnswerEmptyError, AnswerTooLongError, AnswerUnstorableError.
    """
    text = practice_check(text=text, declined=declined)
    # One person's posts in a row, and none after the end or a withdrawal.
    sitting = Sitting.objects.select_for_update(no_key=True).get(pk=visit.sitting_id)
    if sitting.state != Sitting.State.OPEN or sitting.standing == Sitting.Standing.WITHDRAWN:
        raise SittingClosedError
    own = PracticeAnswer.objects.filter(participant=visit.participant_id, stimulus=stimulus_id)
    last = own.order_by("-number").first()
    if last is not None and last.text == text:
        return last
    if last is not None and last.number >= MAX_TRIES:
        last.text = text
        last.save(update_fields=["text"])
        return last
    number = last.number + 1 if last else 1
    return PracticeAnswer.objects.create(
        participant_id=visit.participant_id, stimulus_id=stimulus_id, number=number, text=text
    )


def practice_stimuli(instrument_id: int) -> list[Stimulus]:
    """In their order. One query."""
    return list(Stimulus.objects.filter(instrument=instrument_id, is_practice=True).order_by("position"))


def last_tries(visit: Visit) -> dict[int, str]:
    """Stimulus → what the participant wrote last. One query."""
    rows = PracticeAnswer.objects.filter(participant=visit.participant_id).order_by("number")
    return dict(rows.values_list("stimulus_id", "text"))


@dataclass(frozen=True)
class Ahead:
    """What the instruction says of the practice."""

    total: int
    done: int
    url: str  # of the first task not tried yet, of the first one where all were


def practice_ahead(visit: Visit) -> Ahead | None:
    """None where the instrument has no practice, and then no query; else one."""
    stimuli = visit.facts.practice
    if not stimuli:
        return None
    tried = last_tries(visit)
    number = next((place for place, one in enumerate(stimuli, start=1) if one.pk not in tried), 1)
    return Ahead(
        total=len(stimuli),
        done=sum(one.pk in tried for one in stimuli),
        url=reverse("participant_practice", args=[visit.secret, number]),
    )


@dataclass(frozen=True)
class Understood:
    """One practice task as its participants did it: what they wrote first, before they saw any feedback."""

    stimulus: Stimulus
    people: int
    declined: int
    texts: list[tuple[str, int]]  # the most frequent first


def practice_understood(instrument: Instrument, most: int = 200) -> list[Understood]:
    """Of participants who have not withdrawn. Two queries."""
    firsts = PracticeAnswer.objects.filter(stimulus__instrument=instrument, number=1).exclude(
        participant__respondent__sittings__standing=Sitting.Standing.WITHDRAWN
    )
    found: dict[int, Counter[str]] = {}
    for stimulus_id, text in firsts.values_list("stimulus_id", "text"):
        found.setdefault(stimulus_id, Counter())[text.strip()] += 1
    table = []
    for stimulus in practice_stimuli(instrument.pk):
        own = found.get(stimulus.pk, Counter())
        declined = own.pop("", 0)
        table.append(Understood(stimulus, own.total() + declined, declined, own.most_common(most)))
    return table
