"""Where a person lands, and the five stations of a study."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from reports.dashboard import cards_of, study_work
from reports.forms import StudyForm
from reports.services import StudySlugTakenError, study_begin, study_builtin_load
from studies.access import SignedIn, research_study, studies_of
from studies.models import Role


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """A researcher's studies; a rater's desk; to everybody else, what this is."""
    if not request.user.is_authenticated:
        return render(request, "reports/welcome.html")
    studies = list(studies_of(request.user).order_by("-pk"))
    if not studies and studies_of(request.user, role=Role.RATER).exists():
        return redirect("rate_home")
    rates = studies_of(request.user, role=Role.RATER).exists()
    context = {"cards": cards_of(request.user, studies), "may_begin": may_begin(request), "rates": rates}
    return render(request, "reports/home.html", context)


def may_begin(request: HttpRequest) -> bool:
    """Invitations only: a study is begun by somebody who already leads one, or by the installation's keeper."""
    return request.user.is_superuser or studies_of(request.user).exists()


@login_required
@require_http_methods(["GET", "POST"])
def study_new(request: SignedIn) -> HttpResponse:
    if not may_begin(request):
        raise PermissionDenied(_("Only a researcher may begin a study."))
    form = StudyForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            study = study_begin(actor=request.user, **form.cleaned_data)
        except StudySlugTakenError:  # somebody took the address between the form's question and the insert
            form.add_error("slug", _("This address is taken."))
        else:
            messages.success(request, _("The study has been made, with the published test in it."))
            return redirect("study_dashboard", study.slug)
    return render(request, "reports/study_new.html", {"form": form})


@login_required
@require_safe
def study_dashboard(request: SignedIn, slug: str) -> HttpResponse:
    study = research_study(request.user, slug)
    (card,) = cards_of(request.user, [study])
    return render(request, "reports/study.html", {"study": study, "card": card, "work": study_work(study)})


@login_required
@require_POST
def instrument_load(request: SignedIn, slug: str) -> HttpResponse:
    study = research_study(request.user, slug)
    if study_builtin_load(study=study, actor=request.user):
        messages.success(request, _("The published test has been loaded: 18 tasks and their instruction."))
    else:
        messages.info(request, _("The study already has an instrument; nothing was changed."))
    return redirect("study_dashboard", slug)
