"""The researcher's pages for answers collected elsewhere: send, look, import, look again.

All are closed to who rates in an open campaign: they show who answered what.
"""

from collections import defaultdict
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from corpus.tables.decoding import ENCODINGS
from corpus.tables.table import DELIMITERS
from studies.access import SignedIn, unblinded_study
from studies.models import Study
from surveys.import_drafts import DraftLostError, draft_choose, draft_create, draft_discard, draft_read, drafts_sweep
from surveys.import_forms import ChoicesForm, UploadForm, role_choices, roles_of, settings_of
from surveys.import_preview import Preview, preview_of, suggested
from surveys.import_report import ImportReport, Named, SourceFile
from surveys.import_words import FORMATS, TARGETS, fault_text, notice_text, reason_text
from surveys.importers.checks import MAX_CONSENT
from surveys.importers.items import Item
from surveys.importing import ImportStaleError, ImportTargetError, Target, answers_import, digest_of
from surveys.models import ImportDraft
from surveys.selectors import batch_sittings, import_batches_of, imported_surveys_of

EXAMPLES = 10
SITTINGS = 20  # of a batch that are linked at once


@login_required
@require_safe
def import_list(request: SignedIn, slug: str) -> HttpResponse:
    study = unblinded_study(request.user, slug)
    drafts_sweep()
    context = {
        "study": study,
        "surveys": imported_surveys_of(study),
        "batches": import_batches_of(study),
        "drafts": study.import_drafts.filter(made_by=request.user).select_related("instrument").order_by("-pk"),
    }
    return render(request, "surveys/import_list.html", context)


@login_required
@require_http_methods(["GET", "POST"])
def import_new(request: SignedIn, slug: str) -> HttpResponse:
    study = unblinded_study(request.user, slug)
    drafts_sweep()
    form = UploadForm(request.POST or None, request.FILES or None, study=study)
    if request.method == "POST" and form.is_valid():
        draft = draft_create(
            instrument=form.cleaned_data["instrument"],
            upload=form.cleaned_data["file"],
            format_name=form.cleaned_data["format"],
            actor=request.user,
        )
        return redirect("import_draft", slug, draft.key)
    return render(request, "surveys/import_new.html", {"study": study, "form": form})


@login_required
@require_http_methods(["GET", "POST"])
def import_draft(request: SignedIn, slug: str, key: UUID) -> HttpResponse:
    """GET shows the file and what would happen; POST keeps what was chosen and shows it again."""
    study = unblinded_study(request.user, slug)
    drafts_sweep()
    try:
        draft = _draft(request, study, key)
        data = draft_read(draft)
    except (Http404, DraftLostError) as error:
        return _imported(request, study, key) or _not_imported(request, study, key, error)
    if request.method == "POST":
        preview = preview_of(data, request.POST.get("format", ""), {})
        form = ChoicesForm(request.POST, sheets=preview.sheets, format_name=preview.format)
        if form.is_valid():
            draft_choose(
                draft=draft, format_name=form.cleaned_data["format"], chosen=_chosen(request, form, preview, draft)
            )
            return redirect(request.path + "#check")
        return render(request, "surveys/import_draft.html", _context(draft, data, form))
    return render(request, "surveys/import_draft.html", _context(draft, data))


@login_required
@require_POST
def import_confirm(request: SignedIn, slug: str, key: UUID) -> HttpResponse:
    """Import exactly what was shown, or say that it is no longer so."""
    study = unblinded_study(request.user, slug)
    try:
        draft = _draft(request, study, key)
        report = _report(draft, draft_read(draft), shown=request.POST.get("shown", ""))
    except (Http404, DraftLostError, ImportStaleError, ImportTargetError) as error:
        # The button was pressed twice: the other press imports, or has.
        return _imported(request, study, key) or _not_imported(request, study, key, error)
    if report.fault:
        messages.error(request, _("Nothing was imported: %(why)s.") % {"why": fault_text(report.fault[1])})
        return redirect("import_draft", slug, key)
    if not report.batches:
        messages.error(request, _("Nothing was imported: there is nothing new in the file."))
        return redirect("import_draft", slug, key)
    draft_discard(draft=draft)
    messages.success(request, _done(report))
    return redirect("import_batch", slug, report.batches[0].pk)


def _imported(request: SignedIn, study: Study, key: UUID) -> HttpResponse | None:
    """To the batch that came of one's draft, where it has been imported already."""
    batch = import_batches_of(study).filter(draft_key=key, made_by=request.user).last()
    return redirect("import_batch", study.slug, batch.pk) if batch else None


def _not_imported(request: SignedIn, study: Study, key: UUID, error: Exception) -> HttpResponse:
    if isinstance(error, Http404):
        raise error
    if isinstance(error, DraftLostError):
        return _lost(request, study)
    if isinstance(error, ImportTargetError):
        messages.error(request, TARGETS[error.code])
    else:
        messages.error(
            request, _("Nothing was imported: what would happen is no longer what you saw. Look again, then confirm.")
        )
    return redirect("import_draft", study.slug, key)


@login_required
@require_POST
def import_discard(request: SignedIn, slug: str, key: UUID) -> HttpResponse:
    study = unblinded_study(request.user, slug)
    draft_discard(draft=_draft(request, study, key))
    messages.success(request, _("The file is gone; nothing of it was imported."))
    return redirect("import_list", slug)


@login_required
@require_safe
def import_batch(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    study = unblinded_study(request.user, slug)
    batch = get_object_or_404(import_batches_of(study), pk=pk)
    named = [Named(one.get("file", 0), one["record"], one["reason"], one.get("item")) for one in batch.skipped]
    context = {
        "study": study,
        "batch": batch,
        "groups": _groups(named),
        "format": _format_title(batch.format.rpartition("_")[0]),
        "is_prolific": batch.format.startswith("prolific"),
        "sittings": batch_sittings(batch)[:SITTINGS],
        "more": batch.counts.get("respondents", 0) > SITTINGS,
    }
    return render(request, "surveys/import_batch.html", context)


def _done(report: ImportReport) -> str:
    number = report.counts["imported"]
    if report.people:
        return ngettext("%(n)s person marked.", "%(n)s people marked.", number) % {"n": number}
    return ngettext("%(n)s answer imported.", "%(n)s answers imported.", number) % {"n": number}


def _draft(request: SignedIn, study: Study, key: UUID) -> ImportDraft:
    """A draft is its sender's alone."""
    drafts = ImportDraft.objects.select_related("instrument__study")
    return get_object_or_404(drafts, key=key, study=study, made_by=request.user)


def _lost(request: HttpRequest, study: Study) -> HttpResponse:
    messages.error(request, _("The file is not here any more. Send it again."))
    return redirect("import_new", study.slug)


def _items(draft: ImportDraft) -> list[Item]:
    return [Item(row.position, row.text, row.is_practice, row.original) for row in draft.instrument.stimuli.all()]


def _chosen(request: HttpRequest, form: ChoicesForm, preview: Preview, draft: ImportDraft) -> dict[str, Any]:
    """What the posted form comes to. Columns are kept only as long as the file is read the same way."""
    reading = form.reading
    again = preview_of(draft_read(draft), form.cleaned_data["format"], reading)
    stimuli = list(draft.instrument.stimuli.all())
    roles = {}
    for place, header in enumerate(again.header):
        role = request.POST.get(f"role-{place}", "")
        if role in dict(role_choices(again.format, header, stimuli)):
            roles[place] = role
    if request.POST.get("columns") != _columns_key(again):
        hints = suggested(again, _items(draft))
        return {"importing": hints | reading, "target": form.target}
    importing = reading | settings_of(roles)
    yes = [value[:MAX_CONSENT] for value in request.POST.getlist("consent_yes")]
    if "consent_column" in importing and yes:
        importing["consent_yes"] = yes
    return {"importing": importing, "target": form.target}


def _columns_key(preview: Preview) -> str:
    """Tells whether the table that was posted is the one that the file has when read as chosen."""
    return digest_of([preview.format, preview.header])


def _report(draft: ImportDraft, data: bytes, *, shown: str | None = None) -> ImportReport:
    """The dry run; with `shown` (the digest of the one that was seen) the import. Raises what `answers_import` does."""
    kept = draft.settings.get("target", {})
    target = Target(**kept) if kept.get("title", "").strip() else None
    return answers_import(
        instrument=draft.instrument,
        files=[SourceFile(draft.name, data)],
        format_name=draft.format or None,
        settings=_importing(draft, data),
        target=target,
        actor=draft.made_by,
        dry_run=shown is None,
        shown=shown,
        draft_key=draft.key,
    )


def _importing(draft: ImportDraft, data: bytes) -> dict[str, Any]:
    if "importing" in draft.settings:
        chosen: dict[str, Any] = draft.settings["importing"]
        return chosen
    return suggested(preview_of(data, draft.format, {}), _items(draft))


def _context(draft: ImportDraft, data: bytes, form: ChoicesForm | None = None) -> dict[str, Any]:
    importing = _importing(draft, data)
    preview = preview_of(data, draft.format, importing)
    report, problem = None, ""
    try:
        report = _report(draft, data)
    except ImportTargetError as error:
        problem = str(TARGETS[error.code])
    fault = preview.fault or (report.plans[0].error if report else None)
    named = [*report.skipped, *report.conflicts, *report.warnings] if report else []
    columns = _columns(draft, preview, importing)
    has_answers = bool(report and report.answers)
    target = draft.settings.get("target", {})
    return {
        "study": draft.study,
        "draft": draft,
        "preview": preview,
        "format": _format_title(preview.format),
        "encoding": _encoding_title(preview.encoding),
        "separator": _separator_title(preview.delimiter),
        "form": form
        or ChoicesForm(initial=_initial(draft, importing), sheets=preview.sheets, format_name=preview.format),
        "columns": columns,
        "columns_key": _columns_key(preview),
        "may_choose": any(column["choices"] for column in columns),
        "consents": [(value, value in importing.get("consent_yes", [])) for value in preview.consents],
        "fault": fault_text(fault) if fault else "",
        # Nothing is wrong with the file; the person has not said all of it yet.
        "is_open": fault is not None and fault.code in ("missing_setting", "no_answer_columns"),
        "problem": problem,
        "report": None if fault else report,
        "counts": report.counts if report else {},
        "groups": _groups(named),
        "notices": _notices(report) if report else [],
        "examples": _examples(draft, report) if report else [],
        "people": [new.planned for new in report.people[:EXAMPLES]] if report else [],
        "unused": report.plans[0].unused if report else [],
        "wants_title": has_answers and not target.get("title", "").strip(),
        "shown": report.digest if report and not fault else "",
    }


def _initial(draft: ImportDraft, importing: dict[str, Any]) -> dict[str, Any]:
    initial = {"format": draft.format, **importing, **draft.settings.get("target", {})}
    if initial.get("delimiter") == "\t":
        initial["delimiter"] = "tab"
    if "for_excel" in importing:
        initial["for_excel"] = "yes" if importing["for_excel"] else "no"
    return initial


def _columns(draft: ImportDraft, preview: Preview, importing: dict[str, Any]) -> list[dict[str, Any]]:
    """A row for each column: its number for people, its header, its first values, and what it may be."""
    stimuli = list(draft.instrument.stimuli.all())
    roles = roles_of(importing)
    return [
        {
            "place": place,
            "number": place + 1,
            "header": header,
            "values": [row[place] for row in preview.rows if place < len(row)],
            "choices": [
                (role, title, roles.get(place) == role) for role, title in role_choices(preview.format, header, stimuli)
            ],
        }
        for place, header in enumerate(preview.header)
    ]


def _notices(report: ImportReport) -> list[dict[str, Any]]:
    return [
        {"text": notice_text(notice), "batch": notice.told.get("batch"), "is_known": notice.reason == "same_file"}
        for _number, notice in report.notices
    ]


def _examples(draft: ImportDraft, report: ImportReport) -> list[dict[str, Any]]:
    """The first answers, each beside the task it is to be an answer to."""
    stimuli = {stimulus.position: stimulus for stimulus in draft.instrument.stimuli.all()}
    return [{"answer": new.planned, "stimulus": stimuli[new.planned.item]} for new in report.answers[:EXAMPLES]]


def _groups(named: list[Named]) -> list[dict[str, Any]]:
    """By reason, with every record."""
    by_reason: dict[str, list[Named]] = defaultdict(list)
    for one in named:
        by_reason[one.reason].append(one)
    return [
        {"reason": reason, "text": reason_text(reason), "n": len(several), "records": several}
        for reason, several in by_reason.items()
    ]


def _encoding_title(encoding: str | None) -> str:
    return ENCODINGS.get((encoding or "").removesuffix("-sig").removesuffix("-le").removesuffix("-be"), "")


def _separator_title(delimiter: str | None) -> str:
    titles = {"comma": _("comma"), "semicolon": _("semicolon"), "tab": _("tab")}
    return titles[DELIMITERS[delimiter]] if delimiter else ""


def _format_title(name: str) -> str:
    return str(FORMATS[name]) if name in FORMATS and name != "columns" else _("table")
