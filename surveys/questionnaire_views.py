"""The researcher's pages of a questionnaire."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from studies.access import SignedIn, research_study
from surveys.forms import QuestionForm
from surveys.models import Question, Survey
from surveys.question_services import (
    question_create,
    question_delete,
    question_move,
    question_update,
    questions_copy,
)
from surveys.services import QuestionMisplacedError, SurveyFieldFrozenError


def _survey(request: HttpRequest, slug: str, pk: int) -> Survey:
    study = research_study(request.user, slug)
    return get_object_or_404(Survey.objects.select_related("instrument__study"), instrument__study=study, pk=pk)


def _question(survey: Survey, question: int) -> Question:
    return get_object_or_404(Question.objects.select_related("survey"), survey=survey, pk=question)


def _frozen(request: HttpRequest, survey: Survey) -> HttpResponse:
    text = _("Participants have come, and all are asked the same: the questions no longer change. Nothing was changed.")
    messages.error(request, text)
    return redirect("question_list", survey.instrument.study.slug, survey.pk)


@login_required
@require_safe
def question_list(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    survey = _survey(request, slug, pk)
    order = {"before": 0, "between": 1, "after": 2}
    questions = sorted(survey.questions.all(), key=lambda one: (order[one.place], one.after_task or 0, one.position))
    others = Survey.objects.filter(instrument__study=survey.instrument.study, questions__isnull=False)
    context = {
        "study": survey.instrument.study,
        "survey": survey,
        "questions": questions,
        "begun": survey.participants.exists(),
        "others": others.exclude(pk=survey.pk).distinct().order_by("pk"),
    }
    return render(request, "surveys/question_list.html", context)


@login_required
@require_http_methods(["GET", "POST"])
def question_new(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    survey = _survey(request, slug, pk)
    form = QuestionForm(request.POST or None, survey=survey)
    if request.method == "POST" and form.is_valid():
        try:
            question_create(survey=survey, actor=request.user, **form.question_fields())
        except SurveyFieldFrozenError:
            return _frozen(request, survey)
        return redirect("question_list", slug, pk)
    context = {"study": survey.instrument.study, "survey": survey, "form": form, "title": _("New question")}
    return render(request, "surveys/question_form.html", context)


@login_required
@require_http_methods(["GET", "POST"])
def question_edit(request: SignedIn, slug: str, pk: int, question: int) -> HttpResponse:
    survey = _survey(request, slug, pk)
    row = _question(survey, question)
    form = QuestionForm(request.POST or None, survey=survey, question=row)
    if request.method == "POST" and form.is_valid():
        try:
            question_update(question=row, actor=request.user, **form.question_fields())
        except SurveyFieldFrozenError:
            return _frozen(request, survey)
        return redirect("question_list", slug, pk)
    context = {"study": survey.instrument.study, "survey": survey, "form": form, "title": _("Edit the question")}
    return render(request, "surveys/question_form.html", context)


@login_required
@require_POST
def question_change(request: SignedIn, slug: str, pk: int, question: int) -> HttpResponse:
    """Move up, move down or remove."""
    survey = _survey(request, slug, pk)
    row = _question(survey, question)
    action = request.POST.get("action")
    try:
        if action in ("up", "down"):
            question_move(question=row, up=action == "up", actor=request.user)
        elif action == "delete":
            question_delete(question=row, actor=request.user)
        else:
            return HttpResponse(_("Say what to do with the question."), status=400)
    except SurveyFieldFrozenError:
        return _frozen(request, survey)
    return redirect("question_list", slug, pk)


@login_required
@require_POST
def question_copy(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    survey = _survey(request, slug, pk)
    source = request.POST.get("source", "")
    known = source.isascii() and source.isdigit() and len(source) < 19
    others = Survey.objects.filter(instrument__study=survey.instrument.study).exclude(pk=survey.pk)
    other = get_object_or_404(others, pk=int(source) if known else 0)
    try:
        copied = questions_copy(source=other, target=survey, actor=request.user)
    except QuestionMisplacedError as error:
        text = _("Nothing was copied: the question “%(code)s” stands after a task that this instrument does not have.")
        messages.error(request, text % {"code": error})
        return redirect("question_list", slug, pk)
    except SurveyFieldFrozenError:
        return _frozen(request, survey)
    messages.success(request, _("Questions copied: %(copied)s.") % {"copied": copied})
    return redirect("question_list", slug, pk)
