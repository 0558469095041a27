"""The researcher's pages that change a draft: its own fields, its stimuli, a CSV file in their place."""

import base64
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST

from corpus.builtin import instruction_examples
from corpus.importing import StimuliUnreadableError, StimulusRow, problem_text, read_stimuli, stimulus_rows
from corpus.instruments import (
    MAX_STIMULI,
    InstrumentChangedError,
    InstrumentFrozenError,
    TooManyStimuliError,
    instrument_update,
    practice_add,
    stimuli_replace,
    stimulus_add,
    stimulus_delete,
    stimulus_move,
    stimulus_update,
)
from corpus.models import Instrument, Stimulus
from corpus.versions import stimuli_compared
from studies.access import SignedIn
from studies.models import Study
from surveys.instrument_forms import (
    ImportConfirmForm,
    ImportForm,
    InstrumentForm,
    MoveForm,
    SeenForm,
    StimulusForm,
    stimulus_initial,
)
from surveys.instrument_views import counts_of, instrument_of

EDIT_ERRORS = (InstrumentFrozenError, InstrumentChangedError, TooManyStimuliError, Stimulus.DoesNotExist)


def refusal_text(error: Exception) -> str:
    """Why an edit was refused, for the person who made it."""
    if isinstance(error, InstrumentFrozenError):
        return _(
            "Not saved: the instrument is frozen and no longer changes. Copy it to a new version and change that one."
        )
    if isinstance(error, TooManyStimuliError):
        return _("Not saved: an instrument has at most %(number)s tasks.") % {"number": MAX_STIMULI}
    if isinstance(error, Stimulus.DoesNotExist):
        return _("Not saved: this task has been removed meanwhile.")
    return _("Not saved: the instrument was changed meanwhile, in another window or by somebody else.")


@login_required
@require_http_methods(["GET", "POST"])
def instrument_edit(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    """Title, language, limit and instruction. `preview` shows the instruction and saves nothing."""
    study, found = instrument_of(request, slug, pk)
    if request.method == "GET":
        if found.state == Instrument.State.FROZEN:
            return redirect("instrument", slug, pk)
        names = ("title", "language", "refusal_below", "lower_case", "instruction")
        form = InstrumentForm(initial={"seen": found.revision} | {name: getattr(found, name) for name in names})
        return _edit_page(request, study, found, form)
    form = InstrumentForm(request.POST)
    if not form.is_valid():
        return _edit_page(request, study, found, form, status=400)
    if "preview" in request.POST:
        return _edit_page(request, study, found, form, preview=form.cleaned_data["instruction"])
    try:
        instrument_update(instrument=found, actor=request.user, **form.cleaned_data)
    except EDIT_ERRORS as error:
        return _edit_page(request, study, found, form, error=error, status=409)
    messages.success(request, _("Saved."))
    return redirect("instrument", slug, pk)


def _edit_page(
    request: SignedIn,
    study: Study,
    found: Instrument,
    form: forms.Form,
    *,
    preview: str | None = None,
    error: Exception | None = None,
    status: int = 200,
) -> HttpResponse:
    """What was typed stays in the form. After a refusal the stored text stands beside it."""
    context = {"study": study, "instrument": found, "form": form, "preview": preview, **_refused(found, form, error)}
    return render(request, "surveys/instrument_edit.html", context, status=status)


def _refused(found: Instrument, form: forms.Form, error: Exception | None) -> dict[str, Any]:
    """The message, and what is stored now; the form takes on the new revision, so that sending it again saves it."""
    if error is None:
        return {}
    found.refresh_from_db()
    form.data = form.data.copy()  # type: ignore[attr-defined]
    form.data["seen"] = found.revision  # type: ignore[index]
    return {
        "problem": refusal_text(error),
        "frozen": isinstance(error, InstrumentFrozenError),
        "changed": isinstance(error, InstrumentChangedError),
    }


# --- the stimuli of a draft --------------------------------------------------------------------------------------


@login_required
@require_http_methods(["GET", "POST"])
def stimulus_new(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    study, found = instrument_of(request, slug, pk)
    if request.method == "GET":
        if found.state == Instrument.State.FROZEN:
            return redirect("instrument", slug, pk)
        initial = {"seen": found.revision, "is_practice": "practice" in request.GET}
        return _stimulus_page(request, study, found, StimulusForm(initial=initial))
    form = StimulusForm(request.POST)
    if not form.is_valid():
        return _stimulus_page(request, study, found, form, status=400)
    try:
        stimulus_add(instrument=found, seen=form.cleaned_data["seen"], row=form.row(), actor=request.user)
    except EDIT_ERRORS as error:
        return _stimulus_page(request, study, found, form, error=error, status=409)
    messages.success(request, _("The task has been added."))
    if "more" in request.POST:
        again = "?practice=1" if form.cleaned_data["is_practice"] else ""
        return redirect(f"{request.path}{again}")
    return redirect("instrument", slug, pk)


@login_required
@require_http_methods(["GET", "POST"])
def stimulus_edit(request: SignedIn, slug: str, pk: int, stimulus_pk: int) -> HttpResponse:
    study, found = instrument_of(request, slug, pk)
    stimulus = found.stimuli.filter(pk=stimulus_pk).first()
    if request.method == "GET":
        if stimulus is None:
            raise Http404
        if found.state == Instrument.State.FROZEN:
            return redirect("instrument", slug, pk)
        form = StimulusForm(initial={"seen": found.revision} | stimulus_initial(stimulus))
        return _stimulus_page(request, study, found, form, stimulus=stimulus)
    form = StimulusForm(request.POST)
    if not form.is_valid():
        return _stimulus_page(request, study, found, form, stimulus=stimulus, status=400)
    seen, row = form.cleaned_data["seen"], form.row()
    try:
        stimulus_update(instrument=found, seen=seen, stimulus_id=stimulus_pk, row=row, actor=request.user)
    except EDIT_ERRORS as error:
        return _stimulus_page(request, study, found, form, stimulus=stimulus, error=error, status=409)
    messages.success(request, _("Saved."))
    return redirect("instrument", slug, pk)


def _stimulus_page(
    request: SignedIn,
    study: Study,
    found: Instrument,
    form: forms.Form,
    *,
    stimulus: Stimulus | None = None,
    error: Exception | None = None,
    status: int = 200,
) -> HttpResponse:
    context = {"study": study, "instrument": found, "form": form, "stimulus": stimulus}
    context |= _refused(found, form, error)
    return render(request, "surveys/instrument_stimulus.html", context, status=status)


@login_required
@require_POST
def stimulus_moving(request: SignedIn, slug: str, pk: int, stimulus_pk: int) -> HttpResponse:
    _study, found = instrument_of(request, slug, pk)
    form = MoveForm(request.POST)
    if not form.is_valid():
        return HttpResponse(_("Say where to move the task."), status=400)
    try:
        stimulus_move(instrument=found, stimulus_id=stimulus_pk, actor=request.user, **form.cleaned_data)
    except EDIT_ERRORS as error:
        messages.error(request, refusal_text(error))
    return redirect("instrument", slug, pk)


@login_required
@require_http_methods(["GET", "POST"])
def stimulus_deleting(request: SignedIn, slug: str, pk: int, stimulus_pk: int) -> HttpResponse:
    study, found = instrument_of(request, slug, pk)
    if request.method == "POST":
        form = SeenForm(request.POST)
        if not form.is_valid():
            return HttpResponse(_("The page was incomplete. Open it again."), status=400)
        seen = form.cleaned_data["seen"]
        try:
            stimulus_delete(instrument=found, seen=seen, stimulus_id=stimulus_pk, actor=request.user)
        except EDIT_ERRORS as error:
            messages.error(request, refusal_text(error))
        else:
            messages.success(request, _("The task has been removed; the numbers have closed up."))
        return redirect("instrument", slug, pk)
    stimulus = get_object_or_404(found.stimuli, pk=stimulus_pk)
    context = {"study": study, "instrument": found, "stimulus": stimulus}
    return render(request, "surveys/instrument_stimulus_delete.html", context)


@login_required
@require_POST
def instrument_examples(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    """The examples of the study's instruction as practice tasks."""
    _study, found = instrument_of(request, slug, pk)
    form = SeenForm(request.POST)
    if not form.is_valid():
        return HttpResponse(_("The page was incomplete. Open it again."), status=400)
    seen = form.cleaned_data["seen"]
    try:
        added = practice_add(instrument=found, seen=seen, rows=instruction_examples(), actor=request.user)
    except EDIT_ERRORS as error:
        messages.error(request, refusal_text(error))
    else:
        text = ngettext("%(n)s task for practice has been added.", "%(n)s tasks for practice have been added.", added)
        messages.success(request, text % {"n": added} if added else _("The examples are there already."))
    return redirect("instrument", slug, pk)


# --- CSV ---------------------------------------------------------------------------------------------------------


@login_required
@require_http_methods(["GET", "POST"])
def instrument_import(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    """Two steps: the file and what it would change, then the change. All stimuli of the draft are replaced."""
    study, found = instrument_of(request, slug, pk)
    if request.method == "GET":
        return _import_page(request, study, found, ImportForm(initial={"seen": found.revision}))
    if request.POST.get("step") == "replace":
        return _import_replace(request, study, found)
    form = ImportForm(request.POST, request.FILES)
    if not form.is_valid():
        return _import_page(request, study, found, form, status=400)
    rows = _read(form, form.cleaned_data["file"], "file")
    if rows is None:
        return _import_page(request, study, found, form, status=400)
    changes = stimuli_compared(stimulus_rows(found.stimuli.all()), rows)
    content = base64.b64encode(form.cleaned_data["file"]).decode()
    context: dict[str, Any] = {
        "changes": changes,
        "counts": counts_of(changes),
        "same": all(change.kind == "same" for change in changes),
        "confirm": ImportConfirmForm(initial={"seen": form.cleaned_data["seen"], "content": content}),
    }
    return _import_page(request, study, found, form, **context)


def _import_replace(request: SignedIn, study: Study, found: Instrument) -> HttpResponse:
    form = ImportConfirmForm(request.POST)
    rows = _read(form, form.cleaned_data["content"], None) if form.is_valid() else None
    again = ImportForm(initial={"seen": found.revision})
    if rows is None:
        problem = _("The file did not arrive as it was sent. Choose it again.")
        return _import_page(request, study, found, again, problem=problem, status=400)
    try:
        stimuli_replace(instrument=found, seen=form.cleaned_data["seen"], rows=rows, actor=request.user)
    except EDIT_ERRORS as error:
        return _import_page(request, study, found, again, **_refused(found, form, error), status=409)
    text = ngettext(
        "The draft now has %(n)s task from the file.", "The draft now has %(n)s tasks from the file.", len(rows)
    )
    messages.success(request, text % {"n": len(rows)})
    return redirect("instrument", found.study.slug, found.pk)


def _read(form: forms.Form, data: bytes, field: str | None) -> list[StimulusRow] | None:
    try:
        return read_stimuli(data)
    except StimuliUnreadableError as error:
        form.add_error(field, [problem_text(problem) for problem in error.problems[:20]])
        return None


def _import_page(
    request: SignedIn, study: Study, found: Instrument, form: forms.Form, *, status: int = 200, **more: Any
) -> HttpResponse:
    context = {"study": study, "instrument": found, "form": form, **more}
    return render(request, "surveys/instrument_import.html", context, status=status)
