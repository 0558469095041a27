"""The researcher's pages of releases: what would go out, what went out, and a study made of one.

All but the last are closed to who rates or decides answers of the study: a release says whose they are.
"""

from contextlib import suppress
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import FileResponse, Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from reports.dashboard_views import may_begin
from reports.models import Release
from reports.release_forms import ReleaseForm, ReleaseImportForm
from reports.releases.archive import ArchiveRefusedError
from reports.releases.building import counts_of
from reports.releases.facts import Facts
from reports.releases.files import release_path
from reports.releases.importing import Imported, StudyTakenError, release_import
from reports.releases.layout import TABLES
from reports.releases.policy import Policy, Questionnaire
from reports.releases.queue import release_enqueue
from reports.releases.services import (
    ReleaseEmptyError,
    ReleaseOvertakenError,
    ReleaseUnderWayError,
    is_large,
    release_begin,
    release_build,
)
from reports.releases.words import LEFT_OUT, fault_text
from studies.access import SignedIn, studies_of, unblinded_study
from studies.models import Study

MOVING = (Release.State.WAITING, Release.State.BUILDING)


@login_required
@require_safe
def release_list(request: SignedIn, slug: str) -> HttpResponse:
    study = unblinded_study(request.user, slug)
    releases = Release.objects.filter(study=study).select_related("made_by", "successor").order_by("-number")
    return render(request, "reports/release_list.html", {"study": study, "releases": releases})


@login_required
@require_http_methods(["GET", "POST"])
def release_new(request: SignedIn, slug: str) -> HttpResponse:
    """GET says what would go out, with counts; POST makes it, in the background where it is large."""
    study = unblinded_study(request.user, slug)
    last = Release.objects.filter(study=study).order_by("-number").first()
    form = ReleaseForm(request.POST or None, initial=last.policy if last else None)
    if request.method == "POST" and form.is_valid():
        made = _made(request, study, form)
        if made is not None:
            return redirect("release", slug, made.number)
    counts = counts_of(Facts(study, Policy(), last.salt if last else Release().salt))
    context = {"study": study, "form": form, "counts": counts, "left_out": _left_out(counts), "last": last}
    return render(request, "reports/release_new.html", context)


def _made(request: SignedIn, study: Study, form: ReleaseForm) -> Release | None:
    """None: the page says why."""
    try:
        release = release_begin(study=study, policy=form.policy(), actor=request.user, note=form.cleaned_data["note"])
    except ReleaseEmptyError:
        form.add_error(None, _("No answer of this study may be published yet: nothing was made."))
        return None
    except ReleaseUnderWayError:
        form.add_error(None, _("Another release of this study is being made. Nothing was made."))
        return None
    if is_large(study):
        release_enqueue(release.pk)
        return release
    with suppress(ReleaseOvertakenError):  # its page says so
        release_build(release_id=release.pk)
    return release


def _left_out(counts: dict[str, Any]) -> list[tuple[Any, int]]:
    return [(LEFT_OUT[reason], number) for reason, number in counts.get("left_out", {}).items() if number]


def _release(study: Study, number: int) -> Release:
    rows = Release.objects.select_related("made_by", "replaces", "successor", "study")
    return get_object_or_404(rows, study=study, number=number)


@login_required
@require_safe
def release_page(request: SignedIn, slug: str, number: int) -> HttpResponse:
    study = unblinded_study(request.user, slug)
    found = _release(study, number)
    abouts = {table.path: table.about for table in TABLES.values()}
    policy = Policy.from_json(found.policy)
    context = {
        "study": study,
        "release": found,
        "moving": found.state in MOVING,
        "policy": policy,
        "questionnaire": Questionnaire(policy.questionnaire).label,
        "left_out": _left_out(found.counts),
        "files": [one | {"about": abouts.get(one["path"], "")} for one in found.files],
    }
    return render(request, "reports/release.html", context)


@login_required
@require_POST
def release_restart(request: SignedIn, slug: str, number: int) -> HttpResponse:
    """Put a release that waits into the queue again: the message may be lost, or the worker dead."""
    study = unblinded_study(request.user, slug)
    found = _release(study, number)
    if found.state in MOVING:
        release_enqueue(found.pk)
        messages.info(request, _("The release is in the queue again. If a worker has it in hand, nothing changes."))
    return redirect("release", slug, number)


@login_required
@require_safe
def release_file(request: SignedIn, slug: str, number: int) -> FileResponse:
    """A recalled release has no file any more: 404."""
    study = unblinded_study(request.user, slug)
    found = _release(study, number)
    if found.state != Release.State.READY:
        raise Http404
    try:
        stream = release_path(found).open("rb")
    except FileNotFoundError as error:
        raise Http404 from error
    simulated = "-simulated" if study.simulated else ""
    name = f"{study.slug}{simulated}-release-{found.number}.zip"
    response = FileResponse(stream, as_attachment=True, filename=name, content_type="application/zip")
    response.headers["ETag"] = f'"{found.sha256}"'
    return response


@login_required
@require_http_methods(["GET", "POST"])
def release_import_page(request: SignedIn) -> HttpResponse:
    """A study made of a release, by whoever may begin one."""
    if not may_begin(request):
        raise PermissionDenied(_("Only a researcher may begin a study."))
    form = ReleaseImportForm(request.POST or None, request.FILES or None)
    done: Imported | None = None
    if request.method == "POST" and form.is_valid():
        upload, dry_run = form.cleaned_data["file"], form.cleaned_data["dry_run"]
        try:
            done = release_import(
                stream=upload.file,
                name=upload.name,
                slug=form.cleaned_data["slug"],
                actor=request.user,
                dry_run=dry_run,
            )
        except ArchiveRefusedError as error:
            form.add_error("file", fault_text(error))
        except StudyTakenError:
            form.add_error("slug", _("A study with the release's address is here already. Give another address."))
        else:
            if done.study is not None:
                messages.success(
                    request,
                    _(
                        "The study has been made of the release. Its labels and scores were counted again and are "
                        "those that the release states."
                    ),
                )
                return redirect("study_dashboard", done.study.slug)
    # Whose study it is, only its researchers are told.
    known = done and done.already and studies_of(request.user).filter(pk=done.already.study_id).first()
    return render(request, "reports/release_import.html", {"form": form, "done": done, "known": known})
