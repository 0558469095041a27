"""The pages of a participant: plain POST, redirect, GET; they work without scripts and without cookies.

The address of a participant's pages carries a 256-bit secret, and nothing else lets anybody in. No cookie gives any
right here, so a forged request has nothing to borrow and the CSRF check (which needs a cookie) is left out: a phone
that refuses cookies must not cost an answer. See docs/decisions/0003-participant-address.md.
"""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import translation
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_safe

from corpus.models import Answer
from corpus.services import (
    MAX_ANSWER_CHARACTERS,
    AnswerEmptyError,
    AnswerOutdatedError,
    AnswerTooLongError,
    AnswerUnstorableError,
    SittingClosedError,
)
from surveys.models import Participant, Question
from surveys.practice import practice_ahead
from surveys.rights import receipt_issue
from surveys.services import exposure_begin, participant_leave, task_submit
from surveys.timing import timing_read
from surveys.visits import Visit, visit_again, visit_of

P = ParamSpec("P")


def speak(request: HttpRequest, language: str) -> None:
    """Answer in the test's own language unless the person has chosen another."""
    if settings.LANGUAGE_COOKIE_NAME not in request.COOKIES:
        translation.activate(language)


def wrong_link(request: HttpRequest) -> HttpResponse:
    text = _("It may have been copied incompletely. Open the survey again from where you found it.")
    return render(request, "surveys/notice.html", {"title": _("This link does not work"), "text": text}, status=404)


def participant_page(
    view: Callable[Concatenate[HttpRequest, Visit, P], HttpResponse],
) -> Callable[..., HttpResponse]:
    """Find the visit behind the secret address, or say that the link does not work. One query."""

    @never_cache
    @wraps(view)
    def inner(request: HttpRequest, secret: str, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        visit = visit_of(secret)
        if visit is None:
            return wrong_link(request)
        speak(request, visit.facts.instrument.language)
        if visit.withdrawn:  # there is nothing to go on with, and what is sent now is not kept
            return redirect("participant_withdraw", secret)
        return view(request, visit, *args, **kwargs)

    return inner


def context_of(visit: Visit, **extra: object) -> dict[str, object]:
    """What every page of a participant's shows."""
    facts = visit.facts
    return {
        "visit": visit,
        "secret": visit.secret,
        "survey": facts.survey,
        "study": facts.study,
        "instrument": facts.instrument,
        **extra,
    }


def next_address(visit: Visit, *, after: int | None = None) -> str:
    """The page where the participant goes on; `after`: the task that has just been answered, and not yet read back."""
    facts, place = visit.facts, Question.Place
    if not visit.is_open or (after is not None and after == visit.total):
        finished = visit.is_finished or visit.is_open
        if finished and visit.unanswered(facts.questions_at(place.AFTER)):
            return reverse("participant_questions", args=[visit.secret, "after"])
        return reverse("participant_end", args=[visit.secret])
    if visit.unanswered(facts.questions_at(place.BEFORE)):
        return reverse("participant_questions", args=[visit.secret, "before"])
    number = visit.next_number if after is None else after + 1
    if number is None:  # all are answered, in a sitting that a crash kept from being finished: the last one does it
        number = visit.total
    waiting = waiting_between(visit, number)
    if waiting is not None:
        return reverse("participant_questions", args=[visit.secret, str(waiting)])
    return reverse("participant_task", args=[visit.secret, number])


def waiting_between(visit: Visit, number: int) -> int | None:
    """The task whose questions are to be answered before the task `number` is shown."""
    if not visit.facts.questions:
        return None
    for task in range(1, number):
        if visit.unanswered(visit.facts.questions_at(Question.Place.BETWEEN, task)):
            return task
    return None


@require_safe
@participant_page
def participant(request: HttpRequest, visit: Visit) -> HttpResponse:
    """Where to go on: the instruction for a newcomer, the first open task for one who comes back."""
    before = visit.facts.questions_at(Question.Place.BEFORE)
    if visit.is_open and not visit.answers and not visit.unanswered(before):
        context = context_of(visit, go_on=next_address(visit), practice=practice_ahead(visit))
        return render(request, "surveys/instruction.html", context)
    return redirect(next_address(visit))


@csrf_exempt  # see the module's docstring
@require_http_methods(["GET", "HEAD", "POST"])
@participant_page
def task(request: HttpRequest, visit: Visit, number: int) -> HttpResponse:
    """One task; those ahead of the first open one stay closed. Two queries to show, of which one notes the onset.

    A first answer takes three queries, the last one six.
    """
    if request.method == "POST":
        if not visit.is_open:
            return _too_late(request, visit, number)
        if 1 <= number <= (visit.next_number or visit.total):
            return _submit(request, visit, number)
        return redirect(next_address(visit))
    if not visit.is_open or not 1 <= number <= (visit.next_number or visit.total):
        return redirect(next_address(visit))
    if waiting_between(visit, number) is not None:
        return redirect(next_address(visit))
    if visit.was_away and "read" not in request.GET:
        here = f"{request.path}?read"
        return render(request, "surveys/instruction.html", context_of(visit, go_on=here, again=True))
    exposure_begin(sitting_id=visit.sitting_id, stimulus_id=visit.order[number - 1])
    return _task_page(request, visit, number)


def _posted(request: HttpRequest) -> tuple[str, str]:
    """The outcome and the text that the form sent."""
    if "declined" in request.POST:
        return Answer.Outcome.DECLINED, ""
    return Answer.Outcome.GIVEN, request.POST.get("text", "").replace("\r\n", "\n")  # forms send CRLF


def _too_late(request: HttpRequest, visit: Visit, number: int) -> HttpResponse:
    """The sitting has ended. Who sent what is stored, as a double click does, has lost nothing; others are told."""
    given = visit.given(number) if 1 <= number <= visit.total else None
    if given is not None and (given.outcome, given.text) == _posted(request):
        return redirect(next_address(visit))
    problem = _("What you have just sent was not saved: the test had ended. What was saved before is kept.")
    return render(request, "surveys/end.html", context_of(visit, problem=problem, **_codes(visit)), status=409)


def _submit(request: HttpRequest, visit: Visit, number: int) -> HttpResponse:
    outcome, text = _posted(request)
    try:
        task_submit(
            visit=visit,
            number=number,
            outcome=outcome,
            text=text,
            seen_revision=_whole(request.POST.get("seen")),
            timing=timing_read(request.POST.get("timing", "")),
        )
    except SittingClosedError:  # meanwhile, in another tab or by the other half of a double click
        return _too_late(request, visit_again(visit), number)
    except AnswerOutdatedError:
        return _outdated(request, visit_again(visit), number, text)
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
        return redirect(next_address(visit, after=number))
    return _task_page(request, visit, number, problem=problem, text=text, status=422)


def _outdated(request: HttpRequest, visit: Visit, number: int, text: str) -> HttpResponse:
    """Another tab was faster. What is stored and what was sent stand side by side; the next press decides."""
    given = visit.given(number)
    stored = given.text if given and given.outcome == Answer.Outcome.GIVEN else _("I cannot make a sentence")
    problem = _(
        "Meanwhile this answer was saved in another tab or window: “%(stored)s”. "
        "To replace it, press the same button again."
    ) % {"stored": stored}
    return _task_page(request, visit, number, problem=problem, text=text, status=409)


def _whole(value: str | None) -> int | None:
    """A whole number that fits the database, or None: odd extras never stop an answer."""
    return int(value) if value and value.isascii() and value.isdigit() and len(value) <= 9 else None


def _task_page(
    request: HttpRequest, visit: Visit, number: int, *, problem: str = "", text: str | None = None, status: int = 200
) -> HttpResponse:
    given = visit.given(number)
    context = context_of(
        visit,
        stimulus=visit.stimulus(number),
        given=given,
        number=number,
        total=visit.total,
        percent=round(100 * (number - 1) / visit.total),
        text=(given.text if given else "") if text is None else text,
        problem=problem,
        next_address=next_address(visit, after=number),
    )
    return render(request, "surveys/task.html", context, status=status)


@require_safe
@participant_page
def end(request: HttpRequest, visit: Visit) -> HttpResponse:
    """Thanks and the codes; or, for one who left or was screened out, that they did."""
    if visit.is_open:
        return redirect("participant", visit.secret)
    if visit.is_finished and visit.unanswered(visit.facts.questions_at(Question.Place.AFTER)):
        return redirect(next_address(visit))
    return render(request, "surveys/end.html", context_of(visit, **_codes(visit)))


def _codes(visit: Visit) -> dict[str, str]:
    """The code to hand in, the platform's address to hand it in at (empty where there is none), and the receipt."""
    receipt = receipt_issue(participant=Participant.objects.get(pk=visit.participant_id))
    return {**_completion(visit), "receipt": receipt, "withdraw": settings.PUBLIC_URL + reverse("withdraw")}


def _completion(visit: Visit) -> dict[str, str]:
    survey = visit.survey
    code = survey.screen_out_code if visit.screened_out else visit.own_code or survey.completion_code
    if not (visit.is_finished or visit.screened_out) or not code:
        return {"code": "", "return_url": ""}
    return {"code": code, "return_url": survey.return_url.replace("{code}", code)}


@csrf_exempt  # see the module's docstring
@require_http_methods(["GET", "HEAD", "POST"])
@participant_page
def leave(request: HttpRequest, visit: Visit) -> HttpResponse:
    if request.method == "POST":
        participant_leave(sitting_id=visit.sitting_id)
        return redirect("participant_end", visit.secret)
    if not visit.is_open:
        return redirect("participant_end", visit.secret)
    return render(request, "surveys/leave.html", context_of(visit))
