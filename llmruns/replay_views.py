"""The researcher's pages for replies recorded elsewhere: send, look, import, put aside.

All are closed to who rates in an open campaign: they show which model gave which answer.
"""

from collections import Counter
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from corpus.drafts import DraftLostError, draft_discard, drafts_sweep
from llmruns.importers.plan import GIVEN, PlannedModel
from llmruns.models import ReplyDraft, ReplyImport
from llmruns.replay import (
    NotSetAsideError,
    ReplayReport,
    ReplayStaleError,
    replies_count_again,
    replies_import,
    replies_set_aside,
)
from llmruns.replay_drafts import draft_choose, draft_create, draft_source
from llmruns.replay_forms import ReplyTargetForm, ReplyUploadForm, target_of
from llmruns.replay_shown import problem_groups
from studies.access import SignedIn, unblinded_study
from studies.models import Study

EXAMPLES = 10


@login_required
@require_safe
def reply_imports(request: SignedIn, slug: str) -> HttpResponse:
    study = unblinded_study(request.user, slug)
    drafts_sweep(ReplyDraft)
    context = {
        "study": study,
        "imports": ReplyImport.objects.filter(study=study).select_related("experiment", "actor").order_by("-pk"),
        "drafts": study.reply_drafts.filter(made_by=request.user).select_related("instrument").order_by("-pk"),
    }
    return render(request, "llmruns/reply_imports.html", context)


@login_required
@require_http_methods(["GET", "POST"])
def reply_upload(request: SignedIn, slug: str) -> HttpResponse:
    study = unblinded_study(request.user, slug)
    drafts_sweep(ReplyDraft)
    form = ReplyUploadForm(request.POST or None, request.FILES or None, study=study)
    if request.method == "POST" and form.is_valid():
        draft = draft_create(
            instrument=form.cleaned_data["instrument"], upload=form.cleaned_data["file"], actor=request.user
        )
        return redirect("reply_draft", slug, draft.key)
    status = 400 if request.method == "POST" else 200
    return render(request, "llmruns/reply_upload.html", {"study": study, "form": form}, status=status)


@login_required
@require_http_methods(["GET", "POST"])
def reply_draft(request: SignedIn, slug: str, key: UUID) -> HttpResponse:
    """GET shows the file and what would happen; POST keeps what was chosen and shows it again."""
    study = unblinded_study(request.user, slug)
    drafts_sweep(ReplyDraft)
    try:
        draft = _draft(request, study, key)
        if request.method == "POST":
            form = ReplyTargetForm(request.POST, study=study)
            if form.is_valid():
                draft_choose(draft=draft, chosen=form.chosen)
                return redirect(request.path + "#check")
            return render(request, "llmruns/reply_draft.html", _context(draft, form), status=400)
        return render(request, "llmruns/reply_draft.html", _context(draft))
    except (Http404, DraftLostError) as error:
        return _imported(request, study, key) or _not_imported(request, study, key, error)


@login_required
@require_POST
def reply_confirm(request: SignedIn, slug: str, key: UUID) -> HttpResponse:
    """Import exactly what was shown, or say that it is no longer so."""
    study = unblinded_study(request.user, slug)
    try:
        draft = _draft(request, study, key)
        report = _report(draft, shown=request.POST.get("shown", ""))
    except (Http404, DraftLostError, ReplayStaleError) as error:
        # The button was pressed twice: the other press imports, or has.
        return _imported(request, study, key) or _not_imported(request, study, key, error)
    if report.made is None:
        messages.error(request, _("Nothing was imported: the file has problems."))
        return redirect("reply_draft", slug, key)
    draft_discard(draft=draft)
    number = report.plan.counts["answers"]
    messages.success(request, ngettext("%(n)s answer imported.", "%(n)s answers imported.", number) % {"n": number})
    return redirect("experiment_detail", slug, report.made.experiment_id)


@login_required
@require_POST
def reply_discard(request: SignedIn, slug: str, key: UUID) -> HttpResponse:
    study = unblinded_study(request.user, slug)
    draft_discard(draft=_draft(request, study, key))
    messages.success(request, _("The file is gone; nothing of it was imported."))
    return redirect("reply_imports", slug)


@login_required
@require_POST
def reply_set_aside(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    study = unblinded_study(request.user, slug)
    made = get_object_or_404(ReplyImport, study=study, pk=pk)
    try:
        number = replies_set_aside(made=made, reason=request.POST.get("reason", ""), actor=request.user)
    except NotSetAsideError as error:
        messages.error(request, ASIDE[error.reason]())
    else:
        messages.success(
            request,
            ngettext("Put aside: %(n)s run counts nowhere now.", "Put aside: %(n)s runs count nowhere now.", number)
            % {"n": number},
        )
    return redirect("experiment_detail", slug, made.experiment_id)


@login_required
@require_POST
def reply_count_again(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    study = unblinded_study(request.user, slug)
    made = get_object_or_404(ReplyImport, study=study, pk=pk)
    try:
        number = replies_count_again(made=made, actor=request.user)
    except NotSetAsideError as error:
        messages.error(request, ASIDE[error.reason]())
    else:
        messages.success(
            request, ngettext("%(n)s run counts again.", "%(n)s runs count again.", number) % {"n": number}
        )
    return redirect("experiment_detail", slug, made.experiment_id)


ASIDE = {
    "no_reason": lambda: _("Say why: the reason stands beside the runs."),
    "already": lambda: _("This had been done already."),
    "came_again": lambda: _("The same replies have been imported anew since. Put that import aside first."),
}


def _draft(request: SignedIn, study: Study, key: UUID) -> ReplyDraft:
    """A draft is its sender's alone."""
    drafts = ReplyDraft.objects.select_related("instrument__study", "study", "made_by")
    return get_object_or_404(drafts, key=key, study=study, made_by=request.user)


def _report(draft: ReplyDraft, *, shown: str | None = None) -> ReplayReport:
    """The dry run; with `shown` (the digest of the one that was seen) the import. Raises DraftLostError."""
    try:
        return replies_import(
            instrument=draft.instrument,
            source=draft_source(draft),
            target=target_of(draft.study, draft.settings),
            actor=draft.made_by,
            dry_run=shown is None,
            shown=shown,
            draft_key=draft.key,
        )
    except OSError as error:
        raise DraftLostError from error


def _imported(request: SignedIn, study: Study, key: UUID) -> HttpResponse | None:
    """To the experiment that came of one's draft, where it has been imported already."""
    made = ReplyImport.objects.filter(study=study, draft_key=key, actor=request.user).last()
    return redirect("experiment_detail", study.slug, made.experiment_id) if made else None


def _not_imported(request: SignedIn, study: Study, key: UUID, error: Exception) -> HttpResponse:
    if isinstance(error, Http404):
        raise error
    if isinstance(error, DraftLostError):
        messages.error(request, _("The file is not here any more. Send it again."))
        return redirect("reply_upload", study.slug)
    messages.error(
        request, _("Nothing was imported: what would happen is no longer what you saw. Look again, then confirm.")
    )
    return redirect("reply_draft", study.slug, key)


def _context(draft: ReplyDraft, form: ReplyTargetForm | None = None) -> dict[str, Any]:
    report = _report(draft)
    plan = report.plan
    runs = Counter(run.model for run in plan.runs.values())
    return {
        "study": draft.study,
        "draft": draft,
        "form": form or ReplyTargetForm(initial=draft.settings, study=draft.study),
        "report": report,
        "counts": plan.counts,
        "problems": problem_groups(report.problems),
        "notes": problem_groups(report.notes),
        "models": [
            (model, report.labels[model.label], runs[model.label], _asked(model)) for model in plan.models.values()
        ],
        "examples": _examples(report),
        "shown": report.digest,
    }


def _asked(model: PlannedModel) -> list[tuple[str, Any]]:
    return [(name, value) for name, value in (model.asked or {}).items() if value is not None]


def _examples(report: ReplayReport) -> list[dict[str, Any]]:
    """The first answers, each beside its stimulus."""
    found: list[dict[str, Any]] = []
    for run in report.plan.runs.values():
        for position, one in run.stimuli.items():
            if one.outcome == GIVEN and len(found) < EXAMPLES:
                found.append({"run": run, "position": position, "text": one.text, "attempts": one.attempts})
    return found
