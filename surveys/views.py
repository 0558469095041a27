"""The researcher's pages about surveys and their questionnaires."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from corpus.checks import finding_text
from corpus.services import InstrumentIncompleteError
from studies.access import SignedIn, research_study
from studies.models import Study
from studies.selectors import links_are_local
from surveys.forms import SurveyForm
from surveys.models import Platform, Survey
from surveys.platforms import RULES
from surveys.questionnaire import QuestionsForm
from surveys.review import review_file
from surveys.selectors import surveys_of
from surveys.services import (
    ALWAYS_CHANGEABLE,
    QuestionMisplacedError,
    SurveyFieldFrozenError,
    SurveyOutdatedError,
    is_open,
    places_taken,
    survey_create,
    survey_set_state,
    survey_update,
)


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
    context = {"study": study, "form": form, "title": _("New survey"), "button": _("Make a draft")}
    return render(request, "surveys/survey_form.html", context)


@login_required
@require_http_methods(["GET", "POST"])
def survey_edit(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    study = research_study(request.user, slug)
    survey = _survey(study.pk, pk)
    form = SurveyForm(request.POST or None, study=study, initial=_initial(survey))
    begun = survey.participants.exists()
    if begun:
        for name, field in form.fields.items():
            field.disabled = name not in ALWAYS_CHANGEABLE
    if request.method == "POST" and form.is_valid():
        try:
            survey_update(survey=survey, actor=request.user, seen=_seen(request), **form.cleaned_data)
        except SurveyOutdatedError:
            survey.refresh_from_db(fields=["revision"])
            text = _("Somebody has changed this survey since you opened it. Nothing was saved; press again to save.")
            form.add_error(None, text)
            return render(request, "surveys/survey_form.html", _edit_context(study, survey, form, begun), status=409)
        except QuestionMisplacedError as error:
            text = _("The question “%(code)s” stands after a task that this instrument does not have.")
            form.add_error("instrument", text % {"code": error})
            return render(request, "surveys/survey_form.html", _edit_context(study, survey, form, begun), status=409)
        except SurveyFieldFrozenError:  # the first person came while the page was open
            text = _("Somebody has begun meanwhile, so only what stays changeable can be saved. Nothing was changed.")
            messages.error(request, text)
            return redirect("survey_edit", slug, pk)
        messages.success(request, _("Saved."))
        return redirect("survey", slug, survey.pk)
    return render(request, "surveys/survey_form.html", _edit_context(study, survey, form, begun))


def _edit_context(study: Study, survey: Survey, form: SurveyForm, begun: bool) -> dict[str, Any]:
    titles = {"title": _("Edit the survey"), "button": _("Save")}
    return {"study": study, "survey": survey, "form": form, "begun": begun, **titles}


def _seen(request: HttpRequest) -> int:
    """The survey's revision on the page that was sent; 0, which none has, where it is not told."""
    seen = request.POST.get("seen", "")
    return int(seen) if seen.isascii() and seen.isdigit() and len(seen) < 10 else 0


def _survey(study_id: int, pk: int) -> Survey:
    surveys = Survey.objects.select_related(
        "instrument__study", "consent_document", "publication_document", "third_party_document"
    )
    return get_object_or_404(surveys.exclude(platform=Platform.IMPORTED), instrument__study=study_id, pk=pk)


def _initial(survey: Survey) -> dict[str, Any]:
    names = [name for _legend, section, _folds in SurveyForm.SECTIONS for name in section if not name.endswith("_text")]
    return {
        **{name: getattr(survey, name) for name in names},
        "consent_text": survey.consent_document.text,
        "publication_text": survey.publication_document.text if survey.publication_document else "",
        "third_party_text": survey.third_party_document.text if survey.third_party_document else "",
    }


@login_required
@require_safe
def survey(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    study = research_study(request.user, slug)
    survey = get_object_or_404(surveys_of(study).select_related("publication_document", "third_party_document"), pk=pk)
    if survey.platform == Platform.IMPORTED:
        return redirect("import_list", slug)  # it has no link, and nobody opens it
    rule = RULES.get(Platform(survey.platform))
    context = {
        "study": study,
        "survey": survey,
        "link": _link(survey),
        "local": links_are_local(),
        "taken": places_taken(survey),
        "waits": survey.state == Survey.State.OPEN and not is_open(survey),
        "n_questions": survey.questions.count(),
        "lacks_screen_out": _lacks_screen_out(survey),
        "wants_review_file": bool(rule and rule.wants_review_file) or survey.platform == Platform.OTHER,
    }
    return render(request, "surveys/survey.html", context)


def _lacks_screen_out(survey: Survey) -> bool:
    """On a platform, people whom a question turns away have to hand in a code as well."""
    screens = survey.questions.exclude(screens_out=[]).exists()
    return screens and not survey.screen_out_code and survey.platform in RULES


# How each platform writes "put the id here" in a task's address.
PLACEHOLDERS = {
    Platform.PROLIFIC: {
        "PROLIFIC_PID": "{{%PROLIFIC_PID%}}",
        "STUDY_ID": "{{%STUDY_ID%}}",
        "SESSION_ID": "{{%SESSION_ID%}}",
    },
}


def _link(survey: Survey) -> str:
    """The address to give out, with the platform's placeholders where the ids come."""
    address = settings.PUBLIC_URL + reverse("survey_enter", args=[survey.slug])
    own = {survey.person_parameter: "…", survey.visit_parameter: "…"}
    names = {name: value for name, value in own.items() if name}
    if survey.person_parameter == "PROLIFIC_PID":
        names = PLACEHOLDERS[Platform.PROLIFIC]
    return address + ("?" + "&".join(f"{name}={value}" for name, value in names.items()) if names else "")


@login_required
@require_POST
def survey_state(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    study = research_study(request.user, slug)
    survey = get_object_or_404(Survey.objects.filter(instrument__study=study), pk=pk)
    state = request.POST.get("state")
    if state not in (Survey.State.OPEN, Survey.State.CLOSED) or survey.platform == Platform.IMPORTED:
        return HttpResponse(_("Say whether to open or to close."), status=400)
    try:
        changed = survey_set_state(survey=survey, state=state, actor=request.user)
    except InstrumentIncompleteError as error:
        text = _("Not opened: the instrument is not complete. %(problems)s")
        messages.error(request, text % {"problems": "; ".join(map(finding_text, error.problems))})
        return redirect("survey", slug, pk)
    if changed:
        opened = state == Survey.State.OPEN
        messages.success(request, _("The survey is open.") if opened else _("The survey is closed to newcomers."))
    return redirect("survey", slug, pk)


@login_required
@require_safe
def survey_preview(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """The consent page and the questions as participants meet them. Nothing can be sent from here."""
    study = research_study(request.user, slug)
    survey = _survey(study.pk, pk)
    questions = list(survey.questions.all())
    pages = []
    for place, after in sorted({(one.place, one.after_task) for one in questions}, key=_page_order):
        own = [one for one in questions if (one.place, one.after_task) == (place, after)]
        form = QuestionsForm(questions=own, language=survey.instrument.language)
        pages.append({"place": place, "after": after, "form": form})
    return render(request, "surveys/survey_preview.html", {"study": study, "survey": survey, "pages": pages})


def _page_order(page: tuple[str, int | None]) -> tuple[int, int]:
    return ["before", "between", "after"].index(page[0]), page[1] or 0


@login_required
@require_safe
def survey_review(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """The file with which Toloka or Yandex Tasks accepts and rejects assignments in bulk."""
    study = research_study(request.user, slug)
    survey = _survey(study.pk, pk)
    text = review_file(survey, reject_unfinished=request.GET.get("unfinished") == "reject")
    response = HttpResponse(text.encode(), content_type="text/tab-separated-values; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="review-{survey.slug}.tsv"'
    return response
