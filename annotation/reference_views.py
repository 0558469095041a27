"""The researcher's pages of references: the list, the search for an answer, what is right of it, put aside or back.

All of them stay closed to whoever rates in an open campaign: they name the gold answers and their values.
"""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from annotation.errors import (
    AnswerNotUsableError,
    ReferenceExistsError,
    ReferencesRefusedError,
    ReferenceStaleError,
    ReferenceUsedError,
)
from annotation.forms import value_label
from annotation.guideline_forms import RUBRIC_NAMES
from annotation.guideline_views import rubric_asked
from annotation.models import Reference
from annotation.reference_file import MAX_BYTES, problem_text, read_references
from annotation.reference_forms import AnswerSearchForm, ReferenceForm, ReferencesFileForm, initial_of
from annotation.reference_selectors import (
    answer_to_mark,
    answers_alike,
    answers_usable,
    counts_by_stimulus,
    criteria_of,
    items_made_of,
    references_of,
    shown,
    stimuli_of,
    texts_of,
)
from annotation.reference_services import (
    reference_add,
    reference_change,
    reference_restore,
    reference_retire,
    references_import,
    state_of,
)
from corpus.models import Answer
from scoring.models import Criterion, Rubric
from scoring.services import RUBRICS
from studies.access import SignedIn, unblinded_study
from studies.models import Study

PAGE = 50
PROBLEMS_SHOWN = 50
SHOWN = ("training", "gold", "retired")


def _rubric(request: SignedIn) -> Rubric:
    """Of the address. Raises Http404."""
    return RUBRICS[rubric_asked(request)]()


def _row(reference: Reference, criteria: list[Criterion]) -> dict[str, Any]:
    values = [
        (one.question, value_label(one, reference.expected[one.code]))
        for one in criteria
        if one.code in reference.expected
    ]
    return {"reference": reference, "shown": shown(reference.answer), "values": values}


@login_required
@require_safe
def reference_list(request: SignedIn, slug: str) -> HttpResponse:
    """The references of a rubric: those in use, of one purpose, put aside, to one stimulus."""
    study = unblinded_study(request.user, slug)
    rubric = _rubric(request)
    only = request.GET.get("show", "")
    counts = counts_by_stimulus(study, rubric)
    stimulus = next((one.stimulus for one in counts if str(one.stimulus.pk) == request.GET.get("stimulus")), None)
    found = references_of(study, rubric).filter(is_active=only != "retired")
    if only in ("training", "gold"):
        found = found.filter(purpose=only)
    if stimulus is not None:
        found = found.filter(answer__stimulus=stimulus)
    page = Paginator(found, PAGE).get_page(request.GET.get("page"))
    criteria = criteria_of(rubric)
    query = {"rubric": rubric.slug, "show": only, "stimulus": stimulus.pk if stimulus else ""}
    context = {
        "study": study,
        "rubric": rubric.slug,
        "rubrics": RUBRIC_NAMES,
        "only": only if only in SHOWN else "",
        "stimulus": stimulus,
        "counts": counts,
        "numbers": {name: sum(getattr(one, name) for one in counts) for name in SHOWN},
        "page": page,
        "rows": [_row(reference, criteria) for reference in page.object_list],
        "query": urlencode({name: value for name, value in query.items() if value}),
    }
    return render(request, "annotation/reference_list.html", context)


@login_required
@require_safe
def reference_answers(request: SignedIn, slug: str) -> HttpResponse:
    """The different answers to one stimulus, to choose one that becomes a reference."""
    study = unblinded_study(request.user, slug)
    rubric = _rubric(request)
    stimuli = stimuli_of(study)
    first = stimuli.filter(pk__in=answers_usable(study).values("stimulus")).first() or stimuli.first()
    data = request.GET.copy()
    if first is not None:
        data.setdefault("stimulus", str(first.pk))
    form = AnswerSearchForm(data, stimuli=stimuli)
    context: dict[str, Any] = {"study": study, "rubric": rubric.slug, "rubrics": RUBRIC_NAMES, "form": form}
    if first is None:
        return render(request, "annotation/reference_answers.html", context)
    if not form.is_valid():
        return render(request, "annotation/reference_answers.html", context, status=400)
    stimulus, wanted = form.cleaned_data["stimulus"], form.cleaned_data["text"]
    texts = texts_of(study, rubric, stimulus=stimulus, wanted=wanted)
    context |= {
        "stimulus": stimulus,
        "wanted": wanted,
        "page": Paginator(texts, PAGE).get_page(request.GET.get("page")),
        "query": urlencode({"rubric": rubric.slug, "stimulus": stimulus.pk, "text": wanted}),
    }
    return render(request, "annotation/reference_answers.html", context)


@login_required
@require_http_methods(["GET", "POST"])
def reference_new(request: SignedIn, slug: str, answer: UUID) -> HttpResponse:
    """What is right of an answer, which the address names by its blind number."""
    study = unblinded_study(request.user, slug)
    rubric = _rubric(request)
    found = answer_to_mark(study, answer)
    if found is None:
        raise Http404
    known = Reference.objects.filter(study=study, rubric=rubric, answer=found).first()
    if known is not None:
        messages.info(request, _("This answer is a reference already."))
        return redirect("reference", slug, known.pk)
    criteria = criteria_of(rubric)
    if request.method == "GET":
        return _new_page(request, study, rubric, found, ReferenceForm(criteria=criteria))
    form = ReferenceForm(request.POST, criteria=criteria)
    if not form.is_valid():
        return _new_page(request, study, rubric, found, form, status=400)
    try:
        made = reference_add(study=study, answer=found, rubric=rubric.slug, right=form.right(), actor=request.user)
    except AnswerNotUsableError:
        raise Http404 from None
    except ReferenceExistsError:
        form.add_error(None, _("A colleague has made this answer a reference meanwhile. Nothing was changed."))
        return _new_page(request, study, rubric, found, form, status=409)
    messages.success(request, _("The reference is saved. Campaigns that open from now on can use it."))
    return redirect(f"{reverse('reference_list', args=[slug])}?{urlencode({'rubric': made.rubric.slug})}")


def _new_page(
    request: SignedIn, study: Study, rubric: Rubric, answer: Answer, form: ReferenceForm, *, status: int = 200
) -> HttpResponse:
    context = {
        "study": study,
        "rubric": rubric.slug,
        "rubrics": RUBRIC_NAMES,
        "shown": shown(answer),
        "alike": answers_alike(study, answer),
        "is_judged": getattr(answer, "is_judged", False),
        "form": form,
        "back": urlencode({"rubric": rubric.slug, "stimulus": str(answer.stimulus_id)}),
    }
    return render(request, "annotation/reference_new.html", context, status=status)


@login_required
@require_http_methods(["GET", "POST"])
def reference(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    """One reference: to be read once a campaign has it, to be changed before."""
    study = unblinded_study(request.user, slug)
    found = _found(study, pk)
    criteria = criteria_of(found.rubric)
    if request.method == "GET":
        form = ReferenceForm(initial=initial_of(found, state_of(found)), criteria=criteria)
        return _reference_page(request, study, found, form)
    form = ReferenceForm(request.POST, criteria=criteria)
    if not form.is_valid():
        return _reference_page(request, study, found, form, status=400)
    try:
        reference_change(reference=found, right=form.right(), seen=form.cleaned_data["seen"], actor=request.user)
    except ReferenceUsedError:
        form.add_error(None, _("A campaign has copied this reference meanwhile: it stays as it was."))
    except AnswerNotUsableError:
        form.add_error(None, _("The author of the answer has withdrawn it: nothing was saved."))
    except ReferenceStaleError:
        data = request.POST.copy()  # what was typed stays; sent again, it replaces what is stored now
        data["seen"] = state_of(_found(study, pk))
        form.data = data
        form.add_error(
            None,
            _(
                "Not saved: somebody has changed the reference meanwhile. What is stored now stands above; saving "
                "again replaces it."
            ),
        )
    else:
        messages.success(request, _("The reference is saved."))
        return redirect("reference", slug, pk)
    return _reference_page(request, study, _found(study, pk), form, status=409)


def _found(study: Study, pk: int) -> Reference:
    """Raises Http404."""
    kept = Reference.objects.select_related("rubric").filter(study=study)
    rubric = get_object_or_404(kept, pk=pk).rubric
    return references_of(study, rubric).select_related("study", "rubric", "answer__stimulus__instrument").get(pk=pk)


def _reference_page(
    request: SignedIn, study: Study, found: Reference, form: ReferenceForm, *, status: int = 200
) -> HttpResponse:
    context = {
        "study": study,
        "rubric": found.rubric.slug,
        "rubrics": RUBRIC_NAMES,
        "row": _row(found, form.criteria),
        "form": form,
        "editable": not items_made_of(found).exists() and found.answer.outcome != Answer.Outcome.WITHDRAWN,
    }
    return render(request, "annotation/reference.html", context, status=status)


@login_required
@require_POST
def reference_state(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    """Put a reference aside, or take it back."""
    study = unblinded_study(request.user, slug)
    found = get_object_or_404(Reference.objects.select_related("study", "rubric"), study=study, pk=pk)
    if request.POST.get("active") == "0":
        reference_retire(reference=found, actor=request.user)
        messages.success(request, _("Put aside: campaigns that open from now on do without it."))
    elif request.POST.get("active") == "1":
        try:
            reference_restore(reference=found, actor=request.user)
        except AnswerNotUsableError:
            messages.error(request, _("The author of the answer has withdrawn it: it cannot come back."))
        else:
            messages.success(request, _("Taken back: campaigns that open from now on can use it."))
    return redirect("reference", slug, pk)


@login_required
@require_http_methods(["GET", "POST"])
def references_file(request: SignedIn, slug: str) -> HttpResponse:
    """References from a CSV file, all rows or none; `check` reads the file and saves nothing."""
    study = unblinded_study(request.user, slug)
    rubric = _rubric(request)
    criteria = criteria_of(rubric)
    context: dict[str, Any] = {
        "study": study,
        "rubric": rubric.slug,
        "rubrics": RUBRIC_NAMES,
        "codes": [criterion.code for criterion in criteria],
        "form": ReferencesFileForm(),
    }
    if request.method == "GET":
        return render(request, "annotation/reference_file.html", context)
    form = context["form"] = ReferencesFileForm(request.POST, request.FILES)
    if not form.is_valid():
        return render(request, "annotation/reference_file.html", context, status=400)
    dry_run = "check" in request.POST
    try:
        rows = read_references(form.cleaned_data["file"].read(MAX_BYTES + 1), criteria)
        found = references_import(study=study, rubric=rubric.slug, rows=rows, actor=request.user, dry_run=dry_run)
    except ReferencesRefusedError as refused:
        texts = [problem_text(problem) for problem in refused.problems]
        context |= {"problems": texts[:PROBLEMS_SHOWN], "more": max(0, len(texts) - PROBLEMS_SHOWN)}
        return render(request, "annotation/reference_file.html", context, status=400)
    if dry_run:
        return render(request, "annotation/reference_file.html", context | {"found": found})
    messages.success(
        request,
        _("The file is taken. New: %(new)s, changed: %(changed)s, as they were: %(same)s.")
        % {"new": found.new, "changed": found.changed, "same": found.same},
    )
    return redirect(f"{reverse('reference_list', args=[slug])}?{urlencode({'rubric': rubric.slug})}")
