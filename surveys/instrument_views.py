"""The researcher's pages of instruments: make, look at, freeze, copy, delete, compare."""

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from corpus.builtin import builtin_instrument_create, children_instrument_create
from corpus.importing import StimuliUnreadableError, problem_text, read_stimuli, stimulus_rows
from corpus.instruments import (
    InstrumentChangedError,
    InstrumentFrozenError,
    InstrumentUsedError,
    instrument_copy,
    instrument_delete,
)
from corpus.models import Instrument
from corpus.services import (
    InstrumentIncompleteError,
    RefusalLimitError,
    VersionTakenError,
    instrument_create,
    instrument_freeze,
)
from corpus.versions import stimuli_compared, text_compared
from studies.access import SignedIn, research_study, unblinded_study
from studies.models import Study
from surveys.instrument_forms import (
    CopyElsewhereForm,
    CopyForm,
    EmptyForm,
    FileForm,
    SeenForm,
    VersionForm,
)
from surveys.instrument_selectors import contents_of, instruments_with_counts, version_before, versions_of
from surveys.models import Survey
from surveys.practice import practice_understood


def instrument_of(request: SignedIn, slug: str, pk: int) -> tuple[Study, Instrument]:
    study = research_study(request.user, slug)
    return study, get_object_or_404(Instrument.objects.select_related("study"), study=study, pk=pk)


@login_required
@require_safe
def instrument_list(request: SignedIn, slug: str) -> HttpResponse:
    study = research_study(request.user, slug)
    context = {"study": study, "instruments": instruments_with_counts(study)}
    return render(request, "surveys/instrument_list.html", context)


# --- making one --------------------------------------------------------------------------------------------------


@login_required
@require_http_methods(["GET", "POST"])
def instrument_new(request: SignedIn, slug: str) -> HttpResponse:
    """Five ways to begin, each with its own form; `begin` says which one was sent."""
    study = research_study(request.user, slug)
    language = {"initial": {"language": "ru"}}
    forms_by_way: dict[str, forms.Form] = {
        "empty": EmptyForm(prefix="empty", **language),
        "file": FileForm(prefix="file", **language),
        "copy": CopyForm(prefix="copy", user=request.user),
    }
    way = request.POST.get("begin", "")
    if request.method == "POST":
        bound: dict[str, Callable[[], forms.Form]] = {
            "empty": lambda: EmptyForm(request.POST, prefix="empty"),
            "file": lambda: FileForm(request.POST, request.FILES, prefix="file"),
            "copy": lambda: CopyForm(request.POST, prefix="copy", user=request.user),
        }
        if way in bound:
            forms_by_way[way] = bound[way]()
        if way not in bound or forms_by_way[way].is_valid():
            made = _make(request, study, way, forms_by_way.get(way))
            if made is not None:
                messages.success(request, _("The instrument is a draft. Nobody sees it until you use it."))
                return redirect("instrument", slug, made.pk)
    context = {"study": study, "forms": forms_by_way, "way": way}
    return render(request, "surveys/instrument_new.html", context, status=400 if request.method == "POST" else 200)


def _make(request: SignedIn, study: Study, way: str, form: forms.Form | None) -> Instrument | None:
    """None with the form's error, or a message, where nothing was made."""
    try:
        if way == "study":
            return builtin_instrument_create(study=study, actor=request.user, version=1)
        if way == "children":
            return children_instrument_create(study=study, actor=request.user, version=1)
        if form is None:
            raise Http404
        data = form.cleaned_data
        names = {"study": study, "slug": data["slug"], "title": data["title"], "actor": request.user, "version": 1}
        if way == "copy":
            return instrument_copy(instrument=data["instrument"], **names)
        rows = read_stimuli(data["file"]) if way == "file" else []
        limit = {"refusal_below": data["refusal_below"]} if way == "file" else {}
        return instrument_create(language=data["language"], instruction="", stimuli=rows, **names, **limit)
    except VersionTakenError:
        taken = _("The study has an instrument with this address. Nothing was made; open it and copy it instead.")
        if form is None:
            messages.error(request, taken)
        else:
            form.add_error("slug", taken)
    except RefusalLimitError:
        if form is not None:
            form.add_error("refusal_below", _("The shortest original in the file is not longer than that."))
    except StimuliUnreadableError as error:
        if form is not None:
            form.add_error("file", [problem_text(problem) for problem in error.problems[:20]])
    return None


# --- looking at one ----------------------------------------------------------------------------------------------


@login_required
@require_safe
def instrument(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    """Seven queries, whatever the number of stimuli."""
    study, found = instrument_of(request, slug, pk)
    before = version_before(found)
    surveys = list(Survey.objects.filter(instrument=found).order_by("pk"))
    context = {
        "study": study,
        "instrument": found,
        "is_draft": found.state == Instrument.State.DRAFT,
        "contents": contents_of(found),
        "before": before,
        "surveys": surveys,
        "open_surveys": [one for one in surveys if one.state == Survey.State.OPEN],
    }
    return render(request, "surveys/instrument.html", context)


def counts_of(changes: list[Any]) -> dict[str, int]:
    """How many stimuli of two versions were added, removed and so on."""
    kinds = [change.kind for change in changes]
    return {kind: kinds.count(kind) for kind in ("added", "removed", "changed", "moved", "same")}


# --- freezing, copying, deleting, comparing ----------------------------------------------------------------------


@login_required
@require_http_methods(["GET", "POST"])
def instrument_freezing(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    study, found = instrument_of(request, slug, pk)
    if request.method == "POST":
        try:
            changed = instrument_freeze(instrument=found, actor=request.user)
        except InstrumentIncompleteError:
            messages.error(request, _("Not frozen: see below what is missing."))
            return redirect("instrument_freeze", slug, pk)
        if changed:
            messages.success(request, _("The instrument is frozen. It no longer changes."))
        return redirect("instrument", slug, pk)
    if found.state == Instrument.State.FROZEN:
        return redirect("instrument", slug, pk)
    context = {"study": study, "instrument": found, "contents": contents_of(found)}
    return render(request, "surveys/instrument_freeze.html", context)


@login_required
@require_http_methods(["GET", "POST"])
def instrument_copying(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    """The next version of the same instrument, or a new one elsewhere."""
    study, found = instrument_of(request, slug, pk)
    elsewhere = CopyElsewhereForm(user=request.user, initial={"study": study, "title": found.title})
    problem = ""
    if request.method == "POST" and "version" in request.POST:
        next_form = VersionForm(request.POST)
        if next_form.is_valid():
            wanted = {"study": study, "slug": found.slug, "title": found.title, **next_form.cleaned_data}
            try:
                copy = instrument_copy(instrument=found, actor=request.user, **wanted)
            except VersionTakenError:
                problem = _("Nothing was copied: this version has been made meanwhile.")
            else:
                messages.success(request, _("A new version, as a draft. Change it below."))
                return redirect("instrument", slug, copy.pk)
        else:
            problem = _("The page was incomplete. Open it again.")
    elif request.method == "POST":
        elsewhere = CopyElsewhereForm(request.POST, user=request.user)
        if elsewhere.is_valid():
            try:
                copy = instrument_copy(instrument=found, actor=request.user, version=1, **elsewhere.cleaned_data)
            except VersionTakenError:
                elsewhere.add_error("slug", _("That study has an instrument with this address. Nothing was copied."))
            else:
                messages.success(request, _("Copied, as a draft."))
                return redirect("instrument", copy.study.slug, copy.pk)
    last = study.instruments.filter(slug=found.slug).order_by("-version").first()
    following = last.version + 1 if last else 1
    context = {
        "study": study,
        "instrument": found,
        "following": following,
        "next_form": VersionForm(initial={"version": following}),
        "form": elsewhere,
        "problem": problem,
    }
    return render(request, "surveys/instrument_copy.html", context, status=400 if request.method == "POST" else 200)


@login_required
@require_http_methods(["GET", "POST"])
def instrument_deleting(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    """Of a draft that nothing points to."""
    study, found = instrument_of(request, slug, pk)
    if request.method == "POST":
        form = SeenForm(request.POST)
        if not form.is_valid():
            return HttpResponse(_("The page was incomplete. Open it again."), status=400)
        try:
            instrument_delete(instrument=found, seen=form.cleaned_data["seen"], actor=request.user)
        except InstrumentUsedError:
            text = _("Not deleted: a survey or an experiment uses it.")
            messages.error(request, text)
            return redirect("instrument", slug, pk)
        except InstrumentFrozenError:
            messages.error(request, _("Not deleted: the instrument is frozen."))
            return redirect("instrument", slug, pk)
        except InstrumentChangedError:
            messages.error(request, _("Not deleted: it was changed meanwhile, in another window or by somebody else."))
            return redirect("instrument", slug, pk)
        messages.success(request, _("The draft has been deleted."))
        return redirect("instrument_list", slug)
    context = {"study": study, "instrument": found, "contents": contents_of(found)}
    return render(request, "surveys/instrument_delete.html", context)


@login_required
@require_safe
def instrument_compare(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    """This instrument with another one of the study, `?with=`; else with the version before."""
    study, found = instrument_of(request, slug, pk)
    others = list(versions_of(found))
    wanted = request.GET.get("with", "")
    if wanted:
        other = next((one for one in others if str(one.pk) == wanted), None)
        if other is None:
            raise Http404
    else:
        other = version_before(found)
    context: dict[str, Any] = {"study": study, "instrument": found, "others": others, "other": other}
    if other is not None:
        changes = stimuli_compared(stimulus_rows(other.stimuli.all()), stimulus_rows(found.stimuli.all()))
        names = ("title", "language", "refusal_below", "lower_case")
        context |= {
            "changes": changes,
            "counts": counts_of(changes),
            "same": all(change.kind == "same" for change in changes),
            "settings": [name for name in names if getattr(found, name) != getattr(other, name)],
            "instruction": text_compared(other.instruction, found.instruction),
            "instruction_same": other.instruction == found.instruction,
        }
    return render(request, "surveys/instrument_compare.html", context)


@login_required
@require_safe
def instrument_practice(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    """What participants wrote in practice. Closed while the researcher rates, as all that participants wrote is."""
    unblinded_study(request.user, slug)
    study, found = instrument_of(request, slug, pk)
    context = {"study": study, "instrument": found, "table": practice_understood(found)}
    return render(request, "surveys/instrument_practice.html", context)
