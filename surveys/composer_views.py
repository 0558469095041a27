"""Composing a test from a treebank: file and parameters, progress, proposals, what was left out, the instrument."""

from dataclasses import dataclass
from pathlib import PurePath
from urllib.parse import urlencode

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from corpus.compositions import (
    STALE,
    NoOtherCandidateError,
    NotAllAcceptedError,
    NotInSlotError,
    NotReviewableError,
    candidate_accept,
    candidate_replace,
    composition_cancel,
    composition_create,
    composition_make_instrument,
    composition_restart,
    composition_rows,
    refusal_below,
    treebank_add,
)
from corpus.importing import stimuli_csv
from corpus.languages import LANGUAGES, language_gaps
from corpus.models import Composition, Treebank
from corpus.reasons import REASONS
from corpus.treebank import TreebankUnreadableError
from corpus.treebank_files import LeftOut, TreebankTooLargeError, left_out_page, treebank_store
from studies.access import SignedIn, research_study
from studies.models import Study
from surveys.composer_forms import CompositionForm, MakeInstrumentForm
from surveys.composer_selectors import compositions_of, review_of, slot_of

LEFT_OUT_PER_PAGE = 50


@login_required
@require_safe
def composition_list(request: HttpRequest, slug: str) -> HttpResponse:
    study = research_study(request.user, slug)
    page = Paginator(compositions_of(study), 50).get_page(request.GET.get("page"))
    return render(request, "surveys/composition_list.html", {"study": study, "page": page})


@login_required
@require_http_methods(["GET", "POST"])
def composition_new(request: SignedIn, slug: str) -> HttpResponse:
    study = research_study(request.user, slug)
    language = (request.POST if request.method == "POST" else request.GET).get("language", "ru").strip()[:10]
    form = CompositionForm(request.POST or None, request.FILES or None, study=study, language=language)
    if request.method == "POST" and form.is_valid() and form.parameters:
        treebank = form.cleaned_data["treebank"] or _treebank(request, study, form)
        if treebank is not None:
            composition = composition_create(
                treebank=treebank,
                title=form.cleaned_data["title"],
                parameters=form.parameters,
                actor=request.user,
            )
            return redirect("composition", slug, composition.pk)
    context = {
        "study": study,
        "form": form,
        "language": language,
        "languages": [(code, _LANGUAGE_NAMES[code]()) for code in LANGUAGES],
        "gaps": [REASONS[code] for code in language_gaps(language)],
        "max_mb": settings.TREEBANK_MAX_MB,
    }
    return render(request, "surveys/composition_new.html", context)


_LANGUAGE_NAMES = {"ru": lambda: _("Russian"), "de": lambda: _("German"), "fi": lambda: _("Finnish")}


def _treebank(request: SignedIn, study: Study, form: CompositionForm) -> Treebank | None:
    """The treebank that was sent, stored; None with the form's error where it cannot be used."""
    file = form.cleaned_data["file"]
    try:
        stored = treebank_store(file.chunks(), language=form.cleaned_data["language"])
    except TreebankTooLargeError:
        form.add_error("file", _("The file is larger than %(mb)s MB.") % {"mb": settings.TREEBANK_MAX_MB})
    except TreebankUnreadableError as error:
        form.add_error("file", _("Nothing was stored. %(problem)s") % {"problem": str(error)})
    else:
        name = form.cleaned_data["name"].strip() or PurePath(file.name).stem[:80]
        licence = form.cleaned_data["licence"].strip()
        return treebank_add(study=study, stored=stored, name=name, licence=licence, actor=request.user)
    return None


def _composition(study: Study, pk: int) -> Composition:
    return get_object_or_404(compositions_of(study), pk=pk)


@login_required
@require_safe
def composition(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    study = research_study(request.user, slug)
    composition = _composition(study, pk)
    moving = composition.state in (Composition.State.WAITING, Composition.State.READING)
    since = composition.beat_at or composition.created_at
    context = {
        "study": study,
        "composition": composition,
        "moving": moving,
        "stuck": moving and since < timezone.now() - STALE,
        "size_mb": composition.treebank.size / 1_000_000,
        "read_mb": composition.bytes_read / 1_000_000,
        "review": review_of(composition) if composition.state == Composition.State.READY else None,
        "gaps": [REASONS[code] for code in language_gaps(composition.parameters["language"])],
    }
    response = render(request, "surveys/composition.html", context)
    if request.headers.get("HX-Request") and not moving:
        response["HX-Refresh"] = "true"  # the page that asked has no script for reviewing yet
    return response


@login_required
@require_POST
def composition_decide(request: SignedIn, slug: str, pk: int, slot: int) -> HttpResponse:
    """Accept, take back, swap or reject what stands in a slot. htmx gets the slot anew, others the page."""
    study = research_study(request.user, slug)
    composition = _composition(study, pk)
    candidate, action = request.POST.get("candidate", ""), request.POST.get("action", "")
    if not (candidate.isascii() and candidate.isdigit() and len(candidate) < 19) or action not in _ACTIONS:
        return HttpResponse(_("Say what to do with which proposal."), status=400)
    note = ""
    try:
        _ACTIONS[action](composition_id=composition.pk, slot=slot, candidate_id=int(candidate))
    except NotReviewableError:
        note = _("Nothing was changed: the instrument has been made, or the treebank is not read yet.")
    except NotInSlotError:
        note = _("Nothing was changed: another sentence stands here by now.")
    except NoOtherCandidateError:
        note = _("There is no other candidate in this band.")
    if request.headers.get("HX-Request"):
        review = review_of(composition)
        context = {"study": study, "composition": composition, "review": review, "note": note, "fragment": True}
        return render(request, "surveys/_composition_slot.html", {**context, "row": slot_of(review, slot)})
    if note:
        messages.warning(request, note)
    return redirect(reverse("composition", args=[slug, pk]) + f"#slot-{slot}")


def _accept(*, composition_id: int, slot: int, candidate_id: int) -> None:
    candidate_accept(composition_id=composition_id, slot=slot, candidate_id=candidate_id)


def _undo(*, composition_id: int, slot: int, candidate_id: int) -> None:
    candidate_accept(composition_id=composition_id, slot=slot, candidate_id=candidate_id, accepted=False)


def _swap(*, composition_id: int, slot: int, candidate_id: int) -> None:
    candidate_replace(composition_id=composition_id, slot=slot, candidate_id=candidate_id, rejected=False)


def _reject(*, composition_id: int, slot: int, candidate_id: int) -> None:
    candidate_replace(composition_id=composition_id, slot=slot, candidate_id=candidate_id, rejected=True)


_ACTIONS = {"accept": _accept, "undo": _undo, "swap": _swap, "reject": _reject}


@login_required
@require_POST
def composition_stop(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    composition = _composition(research_study(request.user, slug), pk)
    if composition_cancel(composition=composition, actor=request.user):
        messages.success(request, _("Stopped. Nothing of what was read is kept; the treebank stays."))
    return redirect("composition", slug, pk)


@login_required
@require_POST
def composition_again(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    composition = _composition(research_study(request.user, slug), pk)
    composition_restart(composition=composition, actor=request.user)
    return redirect("composition", slug, pk)


@dataclass(frozen=True)
class _Filter:
    code: str
    text: str
    count: int
    chosen: bool


@login_required
@require_safe
def composition_left_out(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    study = research_study(request.user, slug)
    composition = _composition(study, pk)
    reason = request.GET.get("reason", "")
    reason = reason if reason in composition.left_out else ""
    total = composition.left_out[reason] if reason else composition.n_left_out
    paginator = Paginator(range(total), LEFT_OUT_PER_PAGE)
    page = paginator.get_page(request.GET.get("page"))
    first = (page.number - 1) * LEFT_OUT_PER_PAGE
    lines = left_out_page(composition.pk, composition.attempt, reason=reason, first=first, count=LEFT_OUT_PER_PAGE)
    counts = sorted(composition.left_out.items(), key=lambda item: (-item[1], item[0]))
    context = {
        "study": study,
        "composition": composition,
        "page": page,
        "query": urlencode({"reason": reason}) if reason else "",
        "lines": [_shown(line) for line in lines or []],
        "missing": lines is None,
        "filters": [_Filter(code, str(REASONS.get(code, code)), n, code == reason) for code, n in counts],
        "reason": reason,
    }
    return render(request, "surveys/composition_left_out.html", context)


def _shown(line: LeftOut) -> tuple[LeftOut, list[tuple[str, str]]]:
    return line, [(str(REASONS.get(code, code)), detail) for code, detail in line.reasons]


@login_required
@require_safe
def composition_csv(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    composition = _composition(research_study(request.user, slug), pk)
    response = HttpResponse(stimuli_csv(composition_rows(composition)), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="composition-{composition.pk}.csv"'
    return response


@login_required
@require_http_methods(["GET", "POST"])
def composition_make(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    study = research_study(request.user, slug)
    composition = _composition(study, pk)
    if composition.state != Composition.State.READY or composition.instrument_id is not None:
        return redirect("composition", slug, pk)
    language = composition.parameters["language"]
    form = MakeInstrumentForm(request.POST or None, language=language, initial={"title": composition.title})
    if request.method == "POST" and form.is_valid():
        try:
            instrument = composition_make_instrument(composition=composition, actor=request.user, **form.cleaned_data)
        except (NotAllAcceptedError, NotReviewableError):
            messages.warning(request, _("Nothing was made: accept, swap or reject each proposal first."))
        else:
            messages.success(request, _("“%(instrument)s” is made.") % {"instrument": instrument})
        return redirect("composition", slug, pk)
    rows, review = composition_rows(composition), review_of(composition)
    context = {"study": study, "composition": composition, "form": form, "rows": rows, "review": review}
    context |= {"limit": refusal_below(rows) if rows else None, "shuffled": sum(row.shuffled for row in rows)}
    return render(request, "surveys/composition_make.html", context)
