"""The public link of a survey: consent first. Looking at it (as a link preview does) starts nothing.

Why there is no CSRF check here: see `participant_views`.
"""

import uuid

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_POST

from surveys.forms import StartForm
from surveys.models import Purpose, Survey
from surveys.participant_views import speak, wrong_link
from surveys.platforms import ParameterMissingError, ParameterRefusedError, ids_read
from surveys.services import (
    AlreadyStartedError,
    ConsentChangedError,
    HasWithdrawnError,
    Newcomer,
    QuotaFullError,
    SurveyNotOpenError,
    arrival_record,
    documents_key,
    is_full,
    is_open,
    participant_start,
)
from surveys.visits import Visit, facts_by_slug, visit_of

COOKIE_AGE = 180 * 24 * 3600


def cookie_name(survey: Survey) -> str:
    return f"luria_participant_{survey.pk}"


@never_cache
@csrf_exempt  # see the module's docstring
@require_http_methods(["GET", "HEAD", "POST"])
def survey_enter(request: HttpRequest, slug: str) -> HttpResponse:
    """One query to show, another where there is a quota, and those of `visits.facts_of`."""
    facts = facts_by_slug(slug)
    if facts is None:
        return wrong_link(request)
    survey = facts.survey
    speak(request, survey.instrument.language)
    form = StartForm(request.POST) if request.method == "POST" else None
    try:
        person, visit = _ids(request, survey, form)
    except (ParameterMissingError, ParameterRefusedError) as problem:
        return _nameless(request, survey, problem)
    known = _known(request, survey, person)
    if known:
        return redirect("participant", known.secret)
    if form is not None and form.is_valid():
        return _start(request, survey, form, person, visit)
    if not is_open(survey):
        return _not_open(request, survey)
    if is_full(survey) and not (person and survey.participants.filter(external_id=person).exists()):
        return _full(request, survey)
    return _consent(request, survey, person, visit)


def _consent(
    request: HttpRequest, survey: Survey, person: str, visit: str, *, problem: str = "", status: int = 200
) -> HttpResponse:
    context = {
        "survey": survey,
        "study": survey.instrument.study,
        "start_key": uuid.uuid4(),
        "person": person,
        "visit": visit,
        "documents": documents_key(survey),
        "further": _further(survey),
        "problem": problem,
    }
    return render(request, "surveys/consent.html", context, status=status)


def _ids(request: HttpRequest, survey: Survey, form: StartForm | None) -> tuple[str, str]:
    """From the link, or from the page that the link showed."""
    if form is not None and form.is_valid():
        sent = {
            survey.person_parameter: form.cleaned_data["person"],
            survey.visit_parameter: form.cleaned_data["visit"],
        }
        return ids_read(survey.platform, survey.person_parameter, survey.visit_parameter, sent)
    return ids_read(survey.platform, survey.person_parameter, survey.visit_parameter, request.GET.dict())


def _known(request: HttpRequest, survey: Survey, person: str) -> Visit | None:
    """Who has begun in this browser; under another id of the platform it is somebody else."""
    secret = request.COOKIES.get(cookie_name(survey), "")
    visit = visit_of(secret) if secret else None
    return visit if visit and visit.external_id == person else None


def _further(survey: Survey) -> list[dict[str, object]]:
    """The consents that are asked for apart, unticked, and without which one can take part."""
    asked = [
        (
            Purpose.PUBLICATION,
            survey.publication_document,
            _("I agree that my answers may be published, without my name"),
        ),
        (
            Purpose.THIRD_PARTIES,
            survey.third_party_document,
            _("I agree that my answers may be processed by other organisations, without my name"),
        ),
    ]
    return [
        {"purpose": purpose, "document": document, "label": label} for purpose, document, label in asked if document
    ]


def _start(request: HttpRequest, survey: Survey, form: StartForm, person: str, visit: str) -> HttpResponse:
    seen_cookie = f"luria_started_{survey.instrument.study_id}"
    newcomer = Newcomer(
        start_key=form.cleaned_data["start_key"],
        person=person,
        visit=visit,
        agreed=[purpose for purpose in (Purpose.PUBLICATION, Purpose.THIRD_PARTIES) if request.POST.get(purpose)],
        started_before=seen_cookie in request.COOKIES,
        documents=form.cleaned_data["documents"],
    )
    try:
        secret = participant_start(survey_id=survey.pk, newcomer=newcomer)
    except SurveyNotOpenError:
        return _not_open(request, survey)
    except QuotaFullError:
        return _full(request, survey)
    except AlreadyStartedError:
        title = _("This test has already been started under your number")
        text = _("Go on in the browser in which you started. If that was not you, write to: %(contact)s")
        return _notice(request, survey, title, text % {"contact": survey.contact}, status=409)
    except ConsentChangedError:
        again = _("The text below has been changed since you opened the page, or was not shown. Please read it.")
        facts = facts_by_slug(survey.slug)
        return _consent(request, facts.survey if facts else survey, person, visit, problem=again, status=409)
    except HasWithdrawnError:
        title = _("You have taken your answers back")
        text = _("One cannot take part in this study a second time. Questions: %(contact)s")
        return _notice(request, survey, title, text % {"contact": survey.contact}, status=409)
    response = redirect("participant", secret)
    for name, value, path in (
        (cookie_name(survey), secret, request.path),
        (seen_cookie, "1", reverse("survey_enter", args=["-"])[:-2]),
    ):
        response.set_cookie(
            name, value, max_age=COOKIE_AGE, path=path, httponly=True, samesite="Lax", secure=settings.SECURE
        )
    return response


@csrf_exempt  # see the module's docstring
@require_POST
def survey_arrive(request: HttpRequest, slug: str) -> HttpResponse:
    """What the consent page's script sends, so that arrivals can be told from link previews."""
    facts = facts_by_slug(slug)
    form = StartForm(request.POST)
    if facts is None or not form.is_valid():
        return HttpResponse(status=404)
    if is_open(facts.survey):
        arrival_record(survey_id=facts.survey.pk, key=form.cleaned_data["start_key"])
    return HttpResponse(status=204)


def _notice(request: HttpRequest, survey: Survey, title: str, text: str, status: int) -> HttpResponse:
    context = {"title": title, "text": text, "study": survey.instrument.study}
    return render(request, "surveys/notice.html", context, status=status)


def _nameless(request: HttpRequest, survey: Survey, problem: Exception) -> HttpResponse:
    """Whoever comes past the platform could not be paid, and nobody could tell them from a repeat."""
    title = _("Open this survey from your task")
    if isinstance(problem, ParameterRefusedError):
        text = _("The link does not carry a proper number of yours. Open the survey from the task itself. %(contact)s")
    else:
        text = _("The link does not say who you are. Open the survey from the task itself. %(contact)s")
    contact = _("Questions: %(contact)s") % {"contact": survey.contact}
    return _notice(request, survey, title, text % {"contact": contact}, status=400)


def _not_open(request: HttpRequest, survey: Survey) -> HttpResponse:
    over = survey.closes_at is not None and survey.closes_at <= timezone.now()
    closed = survey.state == Survey.State.CLOSED or over
    title = _("This survey is closed") if closed else _("This survey is not open yet")
    text = _("It takes no new participants. Questions: %(contact)s") % {"contact": survey.contact}
    return _notice(request, survey, title, text, status=403)


def _full(request: HttpRequest, survey: Survey) -> HttpResponse:
    text = _("All places are taken at the moment. Nothing of yours was recorded. Questions: %(contact)s")
    return _notice(
        request, survey, _("Thank you, there are enough participants"), text % {"contact": survey.contact}, 403
    )
