"""The researcher's pages for judgements made in other tools: send, look, import, look again.

All are closed to who rates in an open campaign: the files show who gave which answer, and how others judged.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from annotation.import_answers import RespondentsNamed
from annotation.import_choices import (
    field_choices,
    label_choices,
    labels_posted,
    meanings,
    meanings_posted,
    rater_choices,
    raters_posted,
    roles_posted,
)
from annotation.import_drafts import DraftLostError, draft_choose, draft_create, draft_discard, draft_read, drafts_sweep
from annotation.import_forms import JudgementChoicesForm, JudgementUploadForm, choices_initial
from annotation.import_look import Look, look_at, suggested
from annotation.import_report import ImportReport
from annotation.import_words import fault_text, format_title, reason_text
from annotation.importers.archive import unpacked
from annotation.importers.plan import Named, Source
from annotation.importers.planning import annotators_of
from annotation.importing import ImportStaleError, NoTitleError, Target, digest_of, judgements_import, study_raters
from annotation.models import JudgementDraft, JudgementImport
from corpus.tables.decoding import ENCODINGS
from scoring.models import Criterion
from scoring.services import PAPER_RUBRIC, RUBRICS
from studies.access import SignedIn, unblinded_study
from studies.models import Study

EXAMPLES = 10
NAMED = 500  # records of one reason that are named on the page; the command names all


@login_required
@require_safe
def judgement_imports(request: SignedIn, slug: str) -> HttpResponse:
    study = unblinded_study(request.user, slug)
    drafts_sweep()
    context = {
        "study": study,
        "imports": _imports_of(study).order_by("-pk"),
        "drafts": study.judgement_drafts.filter(made_by=request.user).order_by("-pk"),
    }
    return render(request, "annotation/judgement_imports.html", context)


@login_required
@require_http_methods(["GET", "POST"])
def judgement_upload(request: SignedIn, slug: str) -> HttpResponse:
    study = unblinded_study(request.user, slug)
    drafts_sweep()
    form = JudgementUploadForm(request.POST or None, request.FILES or None)
    if request.method == "POST" and form.is_valid():
        draft = draft_create(
            study=study,
            uploads=form.cleaned_data["uploads"],
            format_name=form.cleaned_data["format"],
            keys=form.cleaned_data["keys"],
            actor=request.user,
        )
        return redirect("judgement_draft", slug, draft.key)
    status = 400 if request.method == "POST" else 200
    return render(request, "annotation/judgement_upload.html", {"study": study, "form": form}, status=status)


@login_required
@require_http_methods(["GET", "POST"])
def judgement_draft(request: SignedIn, slug: str, key: UUID, named: RespondentsNamed) -> HttpResponse:
    """GET shows the files and what would happen; POST keeps what was chosen and shows it again."""
    study = unblinded_study(request.user, slug)
    drafts_sweep()
    try:
        draft = _draft(request, study, key)
        sources = unpacked(draft_read(draft))
    except (Http404, DraftLostError) as error:
        return _imported(request, study, key) or _not_imported(request, study, key, error)
    page = _Page(draft, sources)
    if request.method == "POST":
        form = JudgementChoicesForm(request.POST, sheets=page.look.sheets)
        if form.is_valid():
            page.choose(request, form)
            return redirect(request.path + "#check")
        return render(request, "annotation/judgement_draft.html", page.context(named, form), status=400)
    return render(request, "annotation/judgement_draft.html", page.context(named))


@login_required
@require_POST
def judgement_confirm(request: SignedIn, slug: str, key: UUID, named: RespondentsNamed) -> HttpResponse:
    """Import exactly what was shown, or say that it is no longer so."""
    study = unblinded_study(request.user, slug)
    try:
        draft = _draft(request, study, key)
        page = _Page(draft, unpacked(draft_read(draft)))
        report = page.report(named, shown=request.POST.get("shown", ""))
    except (Http404, DraftLostError, ImportStaleError, NoTitleError) as error:
        # The button was pressed twice: the other press imports, or has.
        return _imported(request, study, key) or _not_imported(request, study, key, error)
    if report.imported is None:
        why = fault_text(report.fault[1]) if report.fault else _("there is nothing new in the files")
        messages.error(request, _("Nothing was imported: %(why)s.") % {"why": why})
        return redirect("judgement_draft", slug, key)
    draft_discard(draft=draft)
    messages.success(request, _done(report))
    return redirect("judgement_import", slug, report.imported.pk)


@login_required
@require_POST
def judgement_discard(request: SignedIn, slug: str, key: UUID) -> HttpResponse:
    study = unblinded_study(request.user, slug)
    draft_discard(draft=_draft(request, study, key))
    messages.success(request, _("The files are gone; nothing of them was imported."))
    return redirect("judgement_imports", slug)


@login_required
@require_safe
def judgement_import(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    study = unblinded_study(request.user, slug)
    found = get_object_or_404(_imports_of(study), pk=pk)
    reasons = found.counts.get("reasons", {})
    context = {
        "study": study,
        "import": found,
        "campaign": found.campaign,
        "reasons": [(code, reason_text(code), number) for code, number in reasons.items()],
        "seats": found.campaign.seats.select_related("rater__user").order_by("rater__pk"),
        "formats": ", ".join(dict.fromkeys(format_title(file["format"]) for file in found.files)),
    }
    return render(request, "annotation/judgement_import.html", context)


class _Page:
    """A draft with its files and what was chosen, or is suggested, for them."""

    def __init__(self, draft: JudgementDraft, sources: list[Source]) -> None:
        self.draft, self.sources = draft, sources
        self.target = Target(**{"title": "", "rubric": PAPER_RUBRIC} | draft.settings.get("target", {}))
        self.criteria = _criteria(self.target.rubric)
        self.keys: dict[str, str] = draft.settings.get("keys", {})
        chosen: dict[str, Any] | None = draft.settings.get("importing")
        self.look = look_at(sources, draft.format or None, chosen or {})
        self.importing = suggested(self.look, self.criteria, self.keys) if chosen is None else chosen

    @property
    def looks_key(self) -> str:
        """Tells whether the tables that were posted are those that the files have when read as chosen."""
        return _looks_key(self.look, self.target.rubric)

    def choose(self, request: SignedIn, form: JudgementChoicesForm) -> None:
        """Keep what was posted. Fields are kept only as long as the files are read the same way."""
        data, reading = request.POST, form.reading
        look = look_at(self.sources, form.cleaned_data["format"] or None, reading)
        criteria = _criteria(form.target["rubric"])
        if data.get("looks") != _looks_key(look, form.target["rubric"]):
            importing = suggested(look, criteria, self.keys)
        elif look.labels:
            importing = roles_posted(data, look, criteria) | {"labels": labels_posted(data, look, criteria)}
        else:
            importing = roles_posted(data, look, criteria)
            importing |= meanings_posted(data, look, importing, self.importing, criteria)
        annotators = list(annotators_of(self.report(None).plan.judgements))
        importing["raters"] = raters_posted(data, annotators, study_raters(self.draft.study))
        kept = {"importing": importing | reading, "target": form.target}
        draft_choose(
            draft=self.draft,
            format_name=form.cleaned_data["format"],
            chosen=kept | ({"keys": self.keys} if self.keys else {}),
        )

    def report(self, named: RespondentsNamed | None, *, shown: str | None = None) -> ImportReport:
        """The dry run; with `shown` (the digest of the one that was seen) the import."""
        return judgements_import(
            study=self.draft.study,
            files=self.sources,
            format_name=self.draft.format or None,
            settings=self.importing | ({"keys": self.keys} if self.keys else {}),
            target=self.target,
            actor=self.draft.made_by,
            dry_run=shown is None,
            shown=shown,
            draft_key=self.draft.key,
            named=named,
        )

    def context(self, named: RespondentsNamed, form: JudgementChoicesForm | None = None) -> dict[str, Any]:
        look, importing, target = self.look, self.importing, self.draft.settings.get("target", {})
        report = self.report(named)
        fault, place = (look.fault, look.fault_file) if look.fault else (None, "")
        if fault is None and report.fault:
            place, fault = report.fault
        annotators = annotators_of(report.plan.judgements)
        raters = rater_choices(list(annotators), study_raters(self.draft.study), importing.get("raters", {}))
        initial = choices_initial(self.draft.format, importing, target)
        return {
            "study": self.draft.study,
            "draft": self.draft,
            "look": look,
            "looks_key": self.looks_key,
            "format": ", ".join(dict.fromkeys(map(format_title, look.formats))),
            "encoding": _encoding_title(look.encodings[0]) if look.encodings else "",
            "form": form or JudgementChoicesForm(initial=initial, sheets=look.sheets),
            "fields": field_choices(look, importing, self.criteria),
            "meanings": meanings(look, importing, self.criteria),
            "labels": label_choices(look, importing, self.criteria),
            "raters": list(zip(raters, annotators.values(), strict=True)),
            "fault": fault_text(fault) if fault else "",
            "fault_file": place if len(self.sources) > 1 else "",
            # Nothing is wrong with the files; the person has not said all of it yet.
            "is_open": fault is not None and fault.code in ("missing_setting", "unknown_criteria", "unknown_rater"),
            "report": None if fault else report,
            "counts": report.counts,
            "groups": _groups([*report.skipped, *report.conflicts, *report.warnings], report.files),
            "examples": _examples(report),
            "wants_title": bool(report.votes) and not target.get("title", "").strip(),
            "shown": report.digest if not fault else "",
        }


def _looks_key(look: Look, rubric: str) -> str:
    return digest_of([look.formats, [(one.name, one.values) for one in look.fields.values()], look.labels, rubric])


def _criteria(rubric: str) -> list[Criterion]:
    """Those that are judged."""
    return list(RUBRICS[rubric]().criteria.filter(kind=Criterion.Kind.JUDGED).order_by("position"))


def _imports_of(study: Study) -> Any:
    found = JudgementImport.objects.filter(campaign__study=study)
    return found.select_related("campaign__round", "actor")


def _draft(request: SignedIn, study: Study, key: UUID) -> JudgementDraft:
    """A draft is its sender's alone."""
    drafts = JudgementDraft.objects.select_related("study", "made_by")
    return get_object_or_404(drafts, key=key, study=study, made_by=request.user)


def _imported(request: SignedIn, study: Study, key: UUID) -> HttpResponse | None:
    """To the import that came of one's draft, where it has been imported already."""
    found = _imports_of(study).filter(draft_key=key, actor=request.user).first()
    return redirect("judgement_import", study.slug, found.pk) if found else None


def _not_imported(request: SignedIn, study: Study, key: UUID, error: Exception) -> HttpResponse:
    if isinstance(error, Http404):
        raise error
    if isinstance(error, DraftLostError):
        messages.error(request, _("The files are not here any more. Send them again."))
        return redirect("judgement_upload", study.slug)
    if isinstance(error, NoTitleError):
        messages.error(request, _("Say what the campaign that is to hold the judgements is called."))
    else:
        messages.error(
            request, _("Nothing was imported: what would happen is no longer what you saw. Look again, then confirm.")
        )
    return redirect("judgement_draft", study.slug, key)


def _done(report: ImportReport) -> str:
    number = report.counts["imported"]
    return ngettext(
        "%(n)s judgement imported. Its campaign is closed.",
        "%(n)s judgements imported. Their campaign is closed.",
        number,
    ) % {"n": number}


def _groups(named: list[Named], files: Sequence[Source]) -> list[dict[str, Any]]:
    """By reason, with the records and, of a criterion or value, which."""
    by_reason: dict[str, list[Named]] = defaultdict(list)
    for one in named:
        by_reason[one.reason].append(one)
    several = len(files) > 1
    return [
        {
            "reason": reason,
            "text": reason_text(reason),
            "n": len(ones),
            "more": max(0, len(ones) - NAMED),
            "records": [(one, files[one.file].name if several else "") for one in ones[:NAMED]],
        }
        for reason, ones in by_reason.items()
    ]


def _examples(report: ImportReport) -> list[dict[str, Any]]:
    """The first judgements, each beside the answer it is to be of."""
    return [
        {
            "vote": vote,
            "who": vote.whom.rater.pseudonym if vote.whom.rater else "",
            "values": [(criterion.question, vote.values.get(criterion.pk)) for criterion in report.criteria],
        }
        for vote in report.votes[:EXAMPLES]
    ]


def _encoding_title(encoding: str | None) -> str:
    return ENCODINGS.get((encoding or "").removesuffix("-sig").removesuffix("-le").removesuffix("-be"), "")
