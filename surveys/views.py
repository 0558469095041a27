"""The researcher's pages about surveys."""

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from studies.access import SignedIn, research_study
from studies.selectors import links_are_local
from surveys.forms import SurveyForm
from surveys.models import Survey
from surveys.selectors import surveys_of
from surveys.services import survey_create, survey_set_state


@login_required
@require_safe
def survey_list(request: HttpRequest, slug: str) -> HttpResponse:
    study = research_study(request.user, slug)
    return render(request, "surveys/survey_list.html", {"study": study, "surveys": surveys_of(study)})


@login_required
@require_http_methods(["GET", "POST"])
def survey_new(request: SignedIn, slug: str) -> HttpResponse:
    study = research_study(request.user, slug)
    form = SurveyForm(request.POST or None, study=study)
    if request.method == "POST" and form.is_valid():
        survey = survey_create(actor=request.user, **form.cleaned_data)
        messages.success(request, _("The survey is a draft. Open it when you are ready."))
        return redirect("survey", slug, survey.pk)
    return render(request, "surveys/survey_new.html", {"study": study, "form": form})


@login_required
@require_safe
def survey(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    study = research_study(request.user, slug)
    survey = get_object_or_404(surveys_of(study), pk=pk)
    link = settings.PUBLIC_URL + reverse("survey_enter", args=[survey.slug])
    return render(
        request, "surveys/survey.html", {"study": study, "survey": survey, "link": link, "local": links_are_local()}
    )


@login_required
@require_POST
def survey_state(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    study = research_study(request.user, slug)
    survey = get_object_or_404(Survey.objects.filter(instrument__study=study), pk=pk)
    state = request.POST.get("state")
    if state not in (Survey.State.OPEN, Survey.State.CLOSED):
        return HttpResponse(_("Say whether to open or to close."), status=400)
    if survey_set_state(survey=survey, state=state, actor=request.user):
        opened = state == Survey.State.OPEN
        messages.success(request, _("The survey is open.") if opened else _("The survey is closed to newcomers."))
    return redirect("survey", slug, pk)
