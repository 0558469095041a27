"""An instrument as its participants would meet it, for its researchers. Nothing is stored, not even a draft.

The pages are the participants' own templates: they are drawn for a visit that exists only in memory, and their links
carry `preview-<instrument>` where a participant has the secret, so that the routes below answer them. No secret looks
like that: secrets are hexadecimal digits.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_safe

from corpus.models import Instrument, Sitting
from studies.access import SignedIn, research_study
from surveys.models import Survey
from surveys.participant_views import context_of, speak
from surveys.practice import Ahead, practice_check
from surveys.practice_views import Refused, posted_text, practice_page, problem_text
from surveys.visits import Facts, Visit

# These pages take posts because participants' pages do. The forms carry no CSRF token, and need none here: whoever
# forged such a post would make a researcher's browser show a page.
PREVIEW_METHODS = ["GET", "HEAD", "POST"]


def preview_page(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Find the instrument for one of its study's researchers; to everybody else it does not exist."""

    @never_cache
    @login_required
    @wraps(view)
    def inner(request: SignedIn, pk: int, **kwargs: Any) -> HttpResponse:
        instrument = Instrument.objects.select_related("study").filter(pk=pk).first()
        if instrument is None:
            raise Http404
        research_study(request.user, instrument.study.slug)
        speak(request, instrument.language)
        return view(request, instrument, **kwargs)

    return inner


def _visit(instrument: Instrument, state: str = Sitting.State.OPEN) -> Visit:
    """A visit in memory, with all that the participants' pages read of it."""
    survey = Survey(
        instrument=instrument,
        title=_("Preview"),
        contact=_("the survey's contact"),
        completion_code=_("the survey's code"),
    )
    stimuli = list(instrument.stimuli.order_by("position"))
    real = {one.pk: one for one in stimuli if not one.is_practice}
    now = timezone.now()
    return Visit(
        secret=f"preview-{instrument.pk}",
        participant_id=0,
        respondent_id=0,
        sitting_id=0,
        state=state,
        order=list(real),
        answers={},
        responded=frozenset(),
        seen_at=now,
        now=now,
        external_id="",
        visit_id="",
        own_code="",
        screened_out=False,
        withdrawn=False,
        facts=Facts(survey, real, [one for one in stimuli if one.is_practice], []),
    )


def _context(visit: Visit, **more: Any) -> dict[str, Any]:
    return context_of(visit, preview=visit.facts.instrument, **more)


@require_safe
@preview_page
def preview(request: SignedIn, instrument: Instrument) -> HttpResponse:
    """The instruction, as after the consent."""
    visit = _visit(instrument)
    ahead = None
    if visit.facts.practice:
        ahead = Ahead(len(visit.facts.practice), 0, reverse("participant_practice", args=[visit.secret, 1]))
    go_on = reverse("participant_task", args=[visit.secret, 1])
    return render(request, "surveys/instruction.html", _context(visit, go_on=go_on, practice=ahead))


@csrf_exempt  # see PREVIEW_METHODS
@require_http_methods(PREVIEW_METHODS)
@preview_page
def preview_practice(request: SignedIn, instrument: Instrument, number: int) -> HttpResponse:
    """What is sent comes back beside the right answer, in the same response: there is nowhere to keep it."""
    visit = _visit(instrument)
    if not 1 <= number <= len(visit.facts.practice):
        return redirect("participant", visit.secret)
    shown: dict[str, Any] = {}
    if request.method == "POST":
        text = posted_text(request)
        try:
            kept = practice_check(text=text, declined="declined" in request.POST)
            shown = {"text": kept, "with_feedback": True}
        except Refused as error:
            shown = {"text": text.replace("\x00", ""), "problem": problem_text(error), "status": 422}
    return practice_page(request, visit, number, preview=instrument, **shown)


@csrf_exempt  # see PREVIEW_METHODS
@require_http_methods(PREVIEW_METHODS)
@preview_page
def preview_task(request: SignedIn, instrument: Instrument, number: int) -> HttpResponse:
    """One task; whatever is sent leads to the next one and is dropped."""
    visit = _visit(instrument)
    if not 1 <= number <= visit.total:
        return redirect("participant_end", visit.secret)
    onward = reverse("participant_end", args=[visit.secret])
    if number < visit.total:
        onward = reverse("participant_task", args=[visit.secret, number + 1])
    problem, status = "", 200
    if request.method == "POST":
        try:
            practice_check(text=posted_text(request), declined="declined" in request.POST)
        except Refused as error:
            problem, status = problem_text(error), 422
        else:
            return redirect(onward)
    context = _context(
        visit,
        stimulus=visit.stimulus(number),
        given=None,
        number=number,
        total=visit.total,
        percent=round(100 * (number - 1) / visit.total),
        text=posted_text(request).replace("\x00", ""),
        problem=problem,
        next_address=onward,
    )
    return render(request, "surveys/task.html", context, status=status)


@require_safe
@preview_page
def preview_end(request: SignedIn, instrument: Instrument) -> HttpResponse:
    """The last page; `?left`: of somebody who left."""
    left = "left" in request.GET
    visit = _visit(instrument, Sitting.State.STOPPED if left else Sitting.State.FINISHED)
    code = "" if left else visit.survey.completion_code
    return render(
        request,
        "surveys/end.html",
        _context(visit, code=code, return_url="", receipt=_("the person's own receipt code")),
    )


@csrf_exempt  # see PREVIEW_METHODS
@require_http_methods(PREVIEW_METHODS)
@preview_page
def preview_leave(request: SignedIn, instrument: Instrument) -> HttpResponse:
    visit = _visit(instrument)
    if request.method == "POST":
        return redirect(reverse("participant_end", args=[visit.secret]) + "?left=1")
    return render(request, "surveys/leave.html", _context(visit))
