"""The researcher's pages of the rules that raters read: their versions, one, a new one, two compared."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from annotation.errors import GuidelineStaleError, GuidelineUnchangedError
from annotation.guideline_forms import RUBRIC_NAMES, GuidelineForm
from annotation.guideline_selectors import guideline_newest, guidelines_of, state_of, text_to_begin_with
from annotation.guideline_services import guideline_write
from annotation.models import Guideline
from corpus.versions import text_compared
from scoring.services import PAPER_RUBRIC, RUBRICS
from studies.access import SignedIn, research_study
from studies.models import Study


def rubric_asked(request: SignedIn) -> str:
    """Of the address; the study's own where it names none. Raises Http404."""
    slug = request.GET.get("rubric") or PAPER_RUBRIC
    if slug not in RUBRICS:
        raise Http404
    return slug


@login_required
@require_safe
def guideline_list(request: SignedIn, slug: str) -> HttpResponse:
    study = research_study(request.user, slug)
    context = {"study": study, "rows": guidelines_of(study), "rubrics": RUBRIC_NAMES}
    return render(request, "annotation/guideline_list.html", context)


@login_required
@require_safe
def guideline(request: SignedIn, slug: str, number: int) -> HttpResponse:
    study = research_study(request.user, slug)
    rows = guidelines_of(study)
    row = next((one for one in rows if one.guideline.version == number), None)
    if row is None:
        raise Http404
    context = {
        "study": study,
        "row": row,
        "guideline": row.guideline,
        "rubric_name": RUBRIC_NAMES.get(row.guideline.rubric_slug, row.guideline.rubric_slug),
        "others": len(rows) > 1,
    }
    return render(request, "annotation/guideline.html", context)


@login_required
@require_http_methods(["GET", "POST"])
def guideline_new(request: SignedIn, slug: str) -> HttpResponse:
    """The newest text to be changed. `preview` shows what it would look like and saves nothing."""
    study = research_study(request.user, slug)
    if request.method == "GET":
        rubric = rubric_asked(request)
        newest = guideline_newest(study, rubric)
        initial = {"rubric": rubric, "seen": state_of(newest), "text": text_to_begin_with(rubric, newest)}
        return _guideline_new_page(request, study, GuidelineForm(initial=initial), rubric)
    form = GuidelineForm(request.POST)
    valid = form.is_valid()
    rubric = form.cleaned_data.get("rubric") or PAPER_RUBRIC
    if not valid:
        return _guideline_new_page(request, study, form, rubric, status=400)
    if "preview" in request.POST:
        return _guideline_new_page(request, study, form, rubric, preview=form.cleaned_data["text"])
    text, note, seen = (form.cleaned_data[name] for name in ("text", "note", "seen"))
    try:
        made = guideline_write(study=study, rubric_slug=rubric, text=text, note=note, seen=seen, actor=request.user)
    except GuidelineUnchangedError:
        form.add_error("text", _("The newest version has this very text: no new one was made."))
        return _guideline_new_page(request, study, form, rubric, status=409)
    except GuidelineStaleError:
        return _guideline_new_page(request, study, form, rubric, stale=True, status=409)
    messages.success(request, _("Version %(number)s is saved.") % {"number": made.version})
    return redirect("guideline", slug, made.version)


def _guideline_new_page(
    request: SignedIn,
    study: Study,
    form: GuidelineForm,
    rubric: str,
    *,
    preview: str = "",
    stale: bool = False,
    status: int = 200,
) -> HttpResponse:
    """What was typed stays in the form. A refused form has then seen the newer version: sent again, it is saved."""
    newest = guideline_newest(study, rubric)
    typed = preview
    if stale:
        typed = form.cleaned_data["text"]
        data = request.POST.copy()
        data["seen"] = state_of(newest)
        form.data = data
    context: dict[str, Any] = {
        "study": study,
        "form": form,
        "rubric": rubric,
        "rubrics": RUBRIC_NAMES,
        "newest": newest,
        "preview": preview,
        "stale": stale,
        "changes": text_compared(text_to_begin_with(rubric, newest), typed) if typed else [],
    }
    return render(request, "annotation/guideline_new.html", context, status=status)


@login_required
@require_safe
def guideline_compare(request: SignedIn, slug: str, number: int) -> HttpResponse:
    """This version with another one of the study, `?with=`; else with the one before it for the same rubric."""
    study = research_study(request.user, slug)
    versions = Guideline.objects.filter(study=study).order_by("-version")
    found = get_object_or_404(versions, version=number)
    others = list(versions.exclude(pk=found.pk))
    wanted = request.GET.get("with", "")
    if wanted:
        other = next((one for one in others if str(one.version) == wanted), None)
        if other is None:
            raise Http404
    else:
        other = _before(found, others)
    context: dict[str, Any] = {"study": study, "guideline": found, "others": others, "other": other}
    if other is not None:
        context |= {"lines": text_compared(other.text, found.text), "same": other.text == found.text}
    return render(request, "annotation/guideline_compare.html", context)


def _before(found: Guideline, others: list[Guideline]) -> Guideline | None:
    """The version before of the same rubric, else the nearest after, else any. `others` has the newest first."""
    own = [one for one in others if one.rubric_slug == found.rubric_slug]
    earlier = [one for one in own if one.version < found.version]
    return next(iter([*earlier, *reversed(own), *others]), None)
