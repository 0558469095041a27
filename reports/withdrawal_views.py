"""Withdrawing: a participant by the receipt code or on their own link, a researcher at somebody's written request.

The participant's pages work without an account, a cookie or scripts. Whoever sends the code, or knows the secret
address, may withdraw; no cookie gives any right here, so a forged request has nothing to borrow and the CSRF check,
which needs a cookie, is left out (docs/decisions/0003-participant-address.md).
"""

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import translation
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from corpus.models import Sitting
from reports.withdrawal import Held, Way, held_by, held_by_receipt, participant_withdraw
from studies.access import SignedIn, research_study
from studies.services import secret_digest
from surveys.models import Participant
from surveys.rights_forms import ReasonForm
from surveys.watch_views import sitting_at, sitting_context, survey_of


@never_cache
@csrf_exempt  # see the module's docstring
@sensitive_post_parameters("code")
@require_http_methods(["GET", "HEAD", "POST"])
def withdraw(request: HttpRequest) -> HttpResponse:
    """By the code, which is only ever sent in a form's body: an address would leave it in logs and histories."""
    if request.method != "POST":
        return render(request, "reports/withdraw.html", {})
    code = request.POST.get("code", "")
    held = held_by_receipt(code)
    if held is None:
        return render(request, "reports/withdraw.html", {"code": code, "unknown": True}, status=422)
    return _step(request, held, way=Way.RECEIPT, code=code)


@never_cache
@csrf_exempt  # see the module's docstring
@require_http_methods(["GET", "HEAD", "POST"])
def participant_withdraw_page(request: HttpRequest, secret: str) -> HttpResponse:
    """On the participant's own link. After it the link leads here, and this page says that it is done."""
    participant = (
        Participant.objects.filter(digest=secret_digest(secret)).select_related("survey__instrument__study").first()
    )
    if participant is None:
        text = _("It may have been copied incompletely. Open the survey again from where you found it.")
        return render(request, "surveys/notice.html", {"title": _("This link does not work"), "text": text}, status=404)
    if settings.LANGUAGE_COOKIE_NAME not in request.COOKIES:
        translation.activate(participant.survey.instrument.language)
    return _step(request, held_by(participant), way=Way.OWN_LINK, secret=secret)


def _step(request: HttpRequest, held: Held, *, way: str, code: str = "", secret: str = "") -> HttpResponse:
    """What would go, then, confirmed, that it is gone."""
    survey = held.participant.survey
    context = {"held": held, "survey": survey, "study": survey.instrument.study, "code": code, "secret": secret}
    if held.withdrawn:
        return render(request, "reports/withdraw_done.html", {**context, "before": True})
    if request.method == "POST" and "confirm" in request.POST:
        participant_withdraw(participant_id=held.participant.pk, way=way)
        return render(request, "reports/withdraw_done.html", context)
    return render(request, "reports/withdraw_confirm.html", context)


@login_required
@require_http_methods(["GET", "POST"])
def sitting_withdraw_page(request: SignedIn, slug: str, pk: int, sitting_pk: int) -> HttpResponse:
    """A researcher carries out what somebody has asked for. Open while they rate, too: the right does not wait."""
    study = research_study(request.user, slug)
    survey = survey_of(study, pk)
    sitting = sitting_at(survey, sitting_pk)
    form = ReasonForm(request.POST or None)
    if sitting.standing != Sitting.Standing.WITHDRAWN and request.method == "POST" and form.is_valid():
        participant_withdraw(
            participant_id=sitting.respondent.participant.pk,
            way=Way.REQUEST,
            reason=form.cleaned_data["reason"],
            actor=request.user,
        )
        messages.success(request, _("Withdrawn. The texts no longer exist, and nothing counts this person's answers."))
        return redirect("survey_sitting", slug, pk, sitting_pk)
    context = sitting_context(request, study, survey, sitting)
    context |= {"held": held_by(sitting.respondent.participant), "reason_form": form}
    status = 400 if form.errors else 200
    return render(request, "reports/sitting_withdraw.html", context, status=status)
