"""Practice as a participant meets it. The rules are those of participant_views: see its docstring."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from corpus.services import (
    MAX_ANSWER_CHARACTERS,
    AnswerEmptyError,
    AnswerTooLongError,
    AnswerUnstorableError,
    SittingClosedError,
)
from surveys.participant_views import context_of, next_address, participant_page
from surveys.practice import last_tries, practice_answer_record
from surveys.visits import Visit, visit_again

Refused = (AnswerEmptyError, AnswerTooLongError, AnswerUnstorableError)


@csrf_exempt  # see the docstring of participant_views
@require_http_methods(["GET", "HEAD", "POST"])
@participant_page
def practice(request: HttpRequest, visit: Visit, number: int) -> HttpResponse:
    """One practice task: the words, or, once it has been tried, what was written beside what was expected.

    `?again` shows the words once more. Two queries to show.
    """
    if not visit.is_open:
        return redirect(next_address(visit))
    stimuli = visit.facts.practice
    if not 1 <= number <= len(stimuli):
        return redirect("participant", visit.secret)
    stimulus = stimuli[number - 1]
    if request.method == "POST":
        text = posted_text(request)
        declined = "declined" in request.POST
        try:
            practice_answer_record(visit=visit, stimulus_id=stimulus.pk, text=text, declined=declined)
        except SittingClosedError:  # meanwhile, in another tab
            return redirect(next_address(visit_again(visit)))
        except Refused as error:
            more: dict[str, Any] = {"problem": problem_text(error), "text": text.replace("\x00", ""), "status": 422}
            return practice_page(request, visit, number, **more)
        return redirect("participant_practice", visit.secret, number)
    tried = last_tries(visit).get(stimulus.pk)
    shows_feedback = tried is not None and "again" not in request.GET
    return practice_page(request, visit, number, text=tried or "", with_feedback=shows_feedback)


def posted_text(request: HttpRequest) -> str:
    return request.POST.get("text", "").replace("\r\n", "\n")  # forms send CRLF whatever was typed


def problem_text(error: Exception) -> str:
    if isinstance(error, AnswerEmptyError):
        return _("Nothing is written. Write a sentence, or press “I cannot make a sentence”.")
    if isinstance(error, AnswerTooLongError):
        return _("This is too long for one sentence: more than %(limit)s characters. Please shorten it.") % {
            "limit": MAX_ANSWER_CHARACTERS
        }
    return _("The answer contains a character that cannot be stored. Please type it again.")


def practice_page(
    request: HttpRequest,
    visit: Visit,
    number: int,
    *,
    text: str = "",
    problem: str = "",
    with_feedback: bool = False,
    status: int = 200,
    **more: Any,
) -> HttpResponse:
    """After the last practice task comes whatever is next for this participant, which need not be the first task."""
    total = len(visit.facts.practice)
    onward = next_address(visit)
    context = context_of(
        visit,
        stimulus=visit.facts.practice[number - 1],
        number=number,
        total=total,
        is_last=number == total,
        next=onward if number == total else reverse("participant_practice", args=[visit.secret, number + 1]),
        onward=onward,
        text=text,
        problem=problem,
        with_feedback=with_feedback,
        **more,
    )
    return render(request, "surveys/practice.html", context, status=status)
