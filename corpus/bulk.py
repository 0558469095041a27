"""Whole files of answers at once, under the same rules as `corpus.services` gives each of them one by one."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from corpus.models import Answer, Instrument, Respondent, Sitting
from corpus.services import (
    INCOMPLETE,
    MAX_ANSWER_CHARACTERS,
    AnswerTooLongError,
    AnswerUnstorableError,
    SittingClosedError,
    StimulusNotInSittingError,
    instrument_freeze,
)

BATCH = 2_000


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    stimulus_id: int
    text: str
    outcome: str = Answer.Outcome.GIVEN


@dataclass(frozen=True, slots=True)
class GivenSitting:
    """Answers from elsewhere. They may be empty: a person who sent nothing has refused, a model gave no word."""

    respondent: Respondent
    answers: Sequence[GivenAnswer]
    started_at: datetime
    finished_at: datetime
    standing: str = Sitting.Standing.COUNTED
    ordinal: int = 1
    source_label: str = ""  # where it is not that of all


def sittings_import(*, instrument: Instrument, source_label: str, sittings: Sequence[GivenSitting]) -> list[Answer]:
    """First sittings of new respondents: finished where every stimulus is answered, else stopped.

    Returns the answers in the order of `sittings`. Two inserts per 2,000 rows.

    Raises AnswerTooLongError, AnswerUnstorableError, StimulusNotInSittingError.
    """
    return _import(instrument, source_label, sittings)[1]


def runs_import(*, instrument: Instrument, sittings: Sequence[GivenSitting]) -> list[Sitting]:
    """Sittings of models, each with its ordinal and label; the caller has locked the respondents. Like the above."""
    return _import(instrument, "", sittings)[0]


@transaction.atomic
def _import(
    instrument: Instrument, source_label: str, sittings: Sequence[GivenSitting]
) -> tuple[list[Sitting], list[Answer]]:
    instrument_freeze(instrument=instrument, actor=None)
    order = list(instrument.stimuli.filter(is_practice=False).order_by("position").values_list("pk", flat=True))
    rows = []
    for given in sittings:
        _check(given.answers, order)
        is_whole = len(given.answers) == len(order)
        rows.append(
            Sitting(
                respondent=given.respondent,
                instrument=instrument,
                state=Sitting.State.FINISHED if is_whole else Sitting.State.STOPPED,
                source_label=given.source_label or source_label,
                ordinal=given.ordinal,
                standing=given.standing,
                standing_reason="" if is_whole else INCOMPLETE,
                order=order,
                started_at=given.started_at,
                finished_at=given.finished_at if is_whole else None,
            )
        )
    Sitting.objects.bulk_create(rows, batch_size=BATCH)
    answers = [
        _answer(sitting, answer) for sitting, given in zip(rows, sittings, strict=True) for answer in given.answers
    ]
    return rows, Answer.objects.bulk_create(answers, batch_size=BATCH)


@transaction.atomic
def sitting_extend(*, sitting_id: int, answers: Sequence[GivenAnswer], finished_at: datetime) -> list[Answer]:
    """More answers of an imported sitting that was incomplete; the last missing one finishes it. Four queries.

    Raises SittingClosedError where nothing is missing or the sitting was withdrawn, and what `sittings_import` raises.
    """
    sitting = Sitting.objects.select_for_update().get(pk=sitting_id)
    if sitting.state != Sitting.State.STOPPED or sitting.standing == Sitting.Standing.WITHDRAWN:
        raise SittingClosedError
    _check(answers, sitting.order)
    made = Answer.objects.bulk_create([_answer(sitting, answer) for answer in answers], batch_size=BATCH)
    if Answer.objects.filter(sitting=sitting).count() == len(sitting.order):
        sitting.state, sitting.finished_at = Sitting.State.FINISHED, finished_at
        if sitting.standing_reason == INCOMPLETE:
            sitting.standing_reason = ""
        sitting.save(update_fields=["state", "finished_at", "standing_reason"])
    return made


def _check(answers: Sequence[GivenAnswer], order: Sequence[int]) -> None:
    presented = set(order)
    if any(answer.stimulus_id not in presented for answer in answers):
        raise StimulusNotInSittingError
    if any(len(answer.text) > MAX_ANSWER_CHARACTERS for answer in answers):
        raise AnswerTooLongError
    if any("\x00" in answer.text for answer in answers):
        raise AnswerUnstorableError


def _answer(sitting: Sitting, given: GivenAnswer) -> Answer:
    text = given.text if given.outcome == Answer.Outcome.GIVEN else ""
    return Answer(sitting=sitting, stimulus_id=given.stimulus_id, outcome=given.outcome, text=text)
