"""The pages of a participant: plain POST, redirect, GET; they work without scripts and without cookies.

The address of a participant's pages carries a 256-bit secret, and nothing else lets anybody in. No cookie gives any
right here, so a forged request has nothing to borrow and the CSRF check (which needs a cookie) is left out: a phone
that refuses cookies must not cost an answer. See docs/decisions/0003-participant-address.md.
"""

import uuid
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import translation
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_safe

from corpus.models import Answer, Sitting
from corpus.services import (
    MAX_ANSWER_CHARACTERS,
    AnswerEmptyError,
    AnswerTooLongError,
    AnswerUnstorableError,
    SittingClosedError,
)
from surveys.forms import StartForm
from surveys.models import Survey
from surveys.selectors import Progress, progress_of, sitting_of
from surveys.services import SurveyNotOpenError, exposure_begin, participant_leave, participant_start, task_submit

COOKIE_AGE = 180 * 24 * 3600
P = ParamSpec("P")


def speak(request: HttpRequest, language: str) -> None:
    """Answer in the test's own language unless the person has chosen another."""
    if settings.LANGUAGE_COOKIE_NAME not in request.COOKIES:
        translation.activate(language)


def cookie_name(survey: Survey) -> str:
    return f"luria_participant_{survey.pk}"


def _wrong_link(request: HttpRequest) -> HttpResponse:
    text = _("It may have been copied incompletely. Open the survey again from where you found it.")
    return render(request, "surveys/notice.html", {"title": _("This link does not work"), "text": text}, status=404)


def participant_page(
    view: Callable[Concatenate[HttpRequest, Sitting, str, P], HttpResponse],
) -> Callable[..., HttpResponse]:
    """Find the sitting behind the secret address, or say that the link does not work."""

    @never_cache
    @wraps(view)
    def inner(request: HttpRequest, secret: str, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        sitting = sitting_of(secret)
        if sitting is None:
            return _wrong_link(request)
        speak(request, sitting.instrument.language)
        return view(request, sitting, secret, *args, **kwargs)

    return inner


@never_cache
@csrf_exempt  # see the module's docstring
@require_http_methods(["GET", "HEAD", "POST"])
def survey_enter(request: HttpRequest, slug: str) -> HttpResponse:
    """The public link: consent first. Looking (as a link preview does) starts nothing."""
    survey = Survey.objects.select_related("instrument__study", "consent_document").filter(slug=slug).first()
    if survey is None:
        return _wrong_link(request)
    speak(request, survey.instrument.language)
    known = request.COOKIES.get(cookie_name(survey), "")
    if known and sitting_of(known):
        return redirect("participant", known)
    if survey.state != Survey.State.OPEN:
        return _not_open(request, survey)
    if request.method == "POST":
        form = StartForm(request.POST)
        if form.is_valid():
            return _start(request, survey, form.cleaned_data["start_key"])
    context = {"survey": survey, "study": survey.instrument.study, "start_key": uuid.uuid4()}
    return render(request, "surveys/consent.html", context)


def _start(request: HttpRequest, survey: Survey, start_key: uuid.UUID) -> HttpResponse:
    try:
        secret = participant_start(survey_id=survey.pk, start_key=start_key)
    except SurveyNotOpenError:
        return _not_open(request, survey)
    response = redirect("participant", secret)
    response.set_cookie(
        cookie_name(survey),
        secret,
        max_age=COOKIE_AGE,
        path=request.path,
        httponly=True,
        samesite="Lax",
        secure=settings.SECURE,
    )
    return response


def _not_open(request: HttpRequest, survey: Survey) -> HttpResponse:
    closed = survey.state == Survey.State.CLOSED
    title = _("This survey is closed") if closed else _("This survey is not open yet")
    text = _("It takes no new participants. Questions: %(contact)s") % {"contact": survey.contact}
    return render(
        request, "surveys/notice.html", {"title": title, "text": text, "study": survey.instrument.study}, status=403
    )


def _context(sitting: Sitting, secret: str, **extra: object) -> dict[str, object]:
    survey = sitting.respondent.participant.survey
    return {"sitting": sitting, "secret": secret, "survey": survey, "study": sitting.instrument.study, **extra}


def _where_now(secret: str, progress: Progress) -> HttpResponse:
    if progress.sitting.state != Sitting.State.OPEN or progress.next_number is None:
        return redirect("participant_end", secret)
    return redirect("participant_task", secret, progress.next_number)


@require_safe
@participant_page
def participant(request: HttpRequest, sitting: Sitting, secret: str) -> HttpResponse:
    """Where to go on: the instruction for a newcomer, the first open task for one who comes back."""
    progress = progress_of(sitting)
    if sitting.state == Sitting.State.OPEN and not progress.answers:
        return render(request, "surveys/instruction.html", _context(sitting, secret, total=progress.total))
    return _where_now(secret, progress)


@csrf_exempt  # see the module's docstring
@require_http_methods(["GET", "HEAD", "POST"])
@participant_page
def task(request: HttpRequest, sitting: Sitting, secret: str, number: int) -> HttpResponse:
    """One task. Four queries to show, of which one notes the onset; tasks ahead of the first open one stay closed."""
    progress = progress_of(sitting)
    reachable = progress.next_number or progress.total
    if sitting.state != Sitting.State.OPEN and request.method == "POST":
        return _too_late(request, progress, number, secret)
    if sitting.state != Sitting.State.OPEN or not 1 <= number <= reachable:
        return _where_now(secret, progress)
    if request.method == "POST":
        return _submit(request, progress, number, secret)
    exposure_begin(sitting_id=sitting.pk, stimulus_id=progress.stimuli[number - 1].pk)
    return _task_page(request, progress, number, secret)


def _too_late(request: HttpRequest, progress: Progress, number: int, secret: str) -> HttpResponse:
    """The sitting has ended. Who sent what is stored, as a double click does, has lost nothing; others are told."""
    outcome, text = _posted(request)
    answer = progress.answers.get(progress.stimuli[number - 1].pk) if 1 <= number <= progress.total else None
    if answer is not None and (answer.outcome, answer.text) == (outcome, "" if "declined" in request.POST else text):
        return redirect("participant_end", secret)
    problem = _("What you have just sent was not saved: the test had ended. What was saved before is kept.")
    return render(request, "surveys/end.html", _context(progress.sitting, secret, problem=problem), status=409)


def _posted(request: HttpRequest) -> tuple[str, str]:
    """The outcome and the text that the form sent."""
    text = request.POST.get("text", "").replace("\r\n", "\n")  # forms send CRLF whatever was typed
    return Answer.Outcome.DECLINED if "declined" in request.POST else Answer.Outcome.GIVEN, text


def _submit(request: HttpRequest, progress: Progress, number: int, secret: str) -> HttpResponse:
    outcome, text = _posted(request)
    try:
        task_submit(
            sitting=progress.sitting,
            stimulus_id=progress.stimuli[number - 1].pk,
            outcome=outcome,
            text=text,
            seen_revision=_whole(request.POST.get("seen")),
            duration_ms=_whole(request.POST.get("duration")),
        )
    except SittingClosedError:  # meanwhile, in another tab or by the other half of a double click
        return _too_late(request, progress_of(progress.sitting), number, secret)
    except AnswerEmptyError:
        problem = _("Nothing is written. Write a sentence, or press “I cannot make a sentence”.")
    except AnswerTooLongError:
        problem = _("This is too long for one sentence: more than %(limit)s characters. Please shorten it.") % {
            "limit": MAX_ANSWER_CHARACTERS
        }
    except AnswerUnstorableError:
        problem = _("The answer contains a character that cannot be stored. Please type it again.")
        text = text.replace("\x00", "")
    else:
        if number == progress.total:
            return redirect("participant_end", secret)
        return redirect("participant_task", secret, number + 1)
    return _task_page(request, progress, number, secret, problem=problem, text=text, status=422)


def _whole(value: str | None) -> int | None:
    """A whole number that fits the database, or None: odd extras never stop an answer."""
    return int(value) if value and value.isascii() and value.isdigit() and len(value) <= 9 else None


def _task_page(
    request: HttpRequest,
    progress: Progress,
    number: int,
    secret: str,
    *,
    problem: str = "",
    text: str | None = None,
    status: int = 200,
) -> HttpResponse:
    stimulus = progress.stimuli[number - 1]
    answer = progress.answers.get(stimulus.pk)
    context = _context(
        progress.sitting,
        secret,
        stimulus=stimulus,
        answer=answer,
        number=number,
        total=progress.total,
        done=len(progress.answers),
        percent=round(100 * (number - 1) / progress.total),
        text=(answer.text if answer else "") if text is None else text,
        problem=problem,
    )
    return render(request, "surveys/task.html", context, status=status)


@require_safe
@participant_page
def end(request: HttpRequest, sitting: Sitting, secret: str) -> HttpResponse:
    """Thanks and the completion code; or, for one who left, that they left."""
    if sitting.state == Sitting.State.OPEN:
        return redirect("participant", secret)
    return render(request, "surveys/end.html", _context(sitting, secret))


@csrf_exempt  # see the module's docstring
@require_http_methods(["GET", "HEAD", "POST"])
@participant_page
def leave(request: HttpRequest, sitting: Sitting, secret: str) -> HttpResponse:
    if request.method == "POST":
        participant_leave(sitting=sitting)
        return redirect("participant_end", secret)
    if sitting.state != Sitting.State.OPEN:
        return redirect("participant_end", secret)
    return render(request, "surveys/leave.html", _context(sitting, secret))
