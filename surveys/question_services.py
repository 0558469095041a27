"""The only writer of questions and of the responses to them."""

from collections.abc import Sequence
from typing import Any

from django.db import transaction
from django.db.models import F, Max
from django.utils import timezone

from corpus.models import Sitting
from corpus.services import sitting_stop
from studies.database import locked
from studies.models import User
from studies.services import audit_record
from surveys.models import Participant, Question, QuestionResponse, Survey
from surveys.questionnaire import Value, screens_out
from surveys.services import SurveyFieldFrozenError, questions_fit


def _locked(survey: Survey) -> Survey:
    """Raises SurveyFieldFrozenError once somebody has started: all are asked the same."""
    survey = locked(Survey.objects.select_related("instrument__study"), survey.pk)
    if Participant.objects.filter(survey=survey).exists():
        raise SurveyFieldFrozenError("questions")
    return survey


def _changed(survey: Survey, actor: User | None, action: str, question: Question) -> None:
    Survey.objects.filter(pk=survey.pk).update(revision=F("revision") + 1)
    audit_record(
        actor=actor, study=survey.instrument.study, action=action, target=survey, detail={"question": question.code}
    )


@transaction.atomic
def question_create(*, survey: Survey, actor: User | None, **fields: Any) -> Question:
    """A question at the end of its place. Raises SurveyFieldFrozenError."""
    survey = _locked(survey)
    last = Question.objects.filter(survey=survey).aggregate(last=Max("position"))["last"] or 0
    question = Question.objects.create(survey=survey, position=last + 1, **fields)
    _changed(survey, actor, "question_create", question)
    return question


@transaction.atomic
def question_update(*, question: Question, actor: User | None, **fields: Any) -> Question:
    """Raises SurveyFieldFrozenError."""
    survey = _locked(question.survey)
    for name, value in fields.items():
        setattr(question, name, value)
    question.save(update_fields=list(fields))
    _changed(survey, actor, "question_update", question)
    return question


@transaction.atomic
def question_delete(*, question: Question, actor: User | None) -> None:
    """Raises SurveyFieldFrozenError."""
    survey = _locked(question.survey)
    _changed(survey, actor, "question_delete", question)
    question.delete()


@transaction.atomic
def question_move(*, question: Question, up: bool, actor: User | None) -> None:
    """Change places with the neighbour on the same page; at the edge nothing happens. Raises SurveyFieldFrozenError."""
    survey = _locked(question.survey)
    page = Question.objects.filter(survey=survey, place=question.place, after_task=question.after_task)
    beside = (
        page.filter(position__lt=question.position).last()
        if up
        else page.filter(position__gt=question.position).first()
    )
    if beside is None:
        return
    last = Question.objects.filter(survey=survey).aggregate(last=Max("position"))["last"]
    here, there = question.position, beside.position
    for one, position in ((beside, last + 1), (question, there), (beside, here)):  # a position is never held twice
        one.position = position
        one.save(update_fields=["position"])
    _changed(survey, actor, "question_move", question)


@transaction.atomic
def questions_copy(*, source: Survey, target: Survey, actor: User | None) -> int:
    """All questions of another survey after those that are there; a code that is taken gets a number.

    Raises SurveyFieldFrozenError, QuestionMisplacedError.
    """
    target = _locked(target)
    questions_fit(source.questions.all(), target.instrument)
    taken = set(Question.objects.filter(survey=target).values_list("code", flat=True))
    position = Question.objects.filter(survey=target).aggregate(last=Max("position"))["last"] or 0
    copies = []
    for question in Question.objects.filter(survey=source):
        question.pk, question.survey, position = None, target, position + 1
        question.position = position
        number, code = 2, question.code
        while question.code in taken:
            question.code, number = f"{code[:36]}-{number}", number + 1
        taken.add(question.code)
        copies.append(question)
    Question.objects.bulk_create(copies)
    Survey.objects.filter(pk=target.pk).update(revision=F("revision") + 1)
    audit_record(
        actor=actor,
        study=target.instrument.study,
        action="questions_copy",
        target=target,
        detail={"from": source.pk, "questions": len(copies)},
    )
    return len(copies)


@transaction.atomic
def questions_respond(
    *, participant_id: int, sitting_id: int, questions: Sequence[Question], responses: dict[int, Value]
) -> bool:
    """Keep one page's responses; an earlier value goes to the response's history. Safe to repeat.

    Returns whether the person has been screened out by them, which ends the sitting.
    """
    # Two posts of one page come in a row, and so do this and a withdrawal, after which nothing is kept.
    if Participant.objects.select_for_update(no_key=True).get(pk=participant_id).withdrawn_at is not None:
        return False
    known = {
        response.question_id: response
        for response in QuestionResponse.objects.filter(participant_id=participant_id, question__in=questions)
    }
    for question in questions:
        value, response = responses[question.pk], known.get(question.pk)
        if response is None:
            QuestionResponse.objects.create(participant_id=participant_id, question=question, value=value)
        elif response.value != value:
            response.earlier = [*response.earlier, {"value": response.value, "at": response.at.isoformat()}]
            response.value = value
            response.save(update_fields=["value", "earlier", "at"])
    out = any(screens_out(question, responses[question.pk]) for question in questions)
    if out and Sitting.objects.filter(pk=sitting_id, state=Sitting.State.OPEN).exists():
        Participant.objects.filter(pk=participant_id, screened_out_at=None).update(screened_out_at=timezone.now())
        sitting_stop(sitting_id=sitting_id, reason="screened out by the questionnaire")
    return out
