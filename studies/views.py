from typing import cast

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.decorators import login_required
from django.db import IntegrityError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from studies.access import SignedIn, research_study, studies_of
from studies.forms import InvitationForm, JoinForm
from studies.models import Membership, Study
from studies.selectors import links_are_local, members_of, open_invitations_of, usable_invitation
from studies.services import (
    InvitationUnusableError,
    LastResearcherError,
    api_token_create,
    invitation_accept_known,
    invitation_accept_new,
    invitation_create,
    invitation_revoke,
    membership_deactivate,
)

# Django's own backend; named because login() after creating a user has not gone through authenticate().
BACKEND = "django.contrib.auth.backends.ModelBackend"


def unusable_link(request: HttpRequest) -> HttpResponse:
    text = _("It has been used, has expired, or was copied incompletely. Ask whoever sent it for a new one.")
    return render(request, "_message.html", {"title": _("This link does not work"), "text": text}, status=404)


@never_cache
@require_http_methods(["GET", "POST"])
def join(request: HttpRequest, secret: str) -> HttpResponse:
    """Follow an invitation. Looking at it uses nothing up; only the form does."""
    invitation = usable_invitation(secret)
    if invitation is None:
        return unusable_link(request)
    if request.user.is_authenticated and invitation.user is None:
        return _join_known(cast(SignedIn, request), secret)
    form = JoinForm(request.POST or None, known=invitation.user)
    if request.method == "POST" and form.is_valid():
        try:
            user = invitation_accept_new(
                secret=secret,
                username=form.cleaned_data.get("username", ""),
                password=form.cleaned_data["password"],
            )
        except InvitationUnusableError:
            return unusable_link(request)
        except IntegrityError:  # somebody took the name between the form's question and the insert
            form.add_error("username", _("This name is taken."))
        else:
            login(request, user, backend=BACKEND)
            return redirect("home")
    return render(request, "studies/invitation_accept.html", {"form": form, "invitation": invitation})


def _join_known(request: SignedIn, secret: str) -> HttpResponse:
    if request.method == "POST":
        try:
            invitation_accept_known(secret=secret, user=request.user)
        except InvitationUnusableError:
            return unusable_link(request)
        return redirect("home")
    return render(
        request, "studies/invitation_accept.html", {"invitation": usable_invitation(secret), "known": request.user}
    )


@login_required
@require_safe
def account(request: SignedIn) -> HttpResponse:
    return render(request, "studies/account.html", {"is_researcher": studies_of(request.user).exists()})


@login_required
@require_POST
@never_cache
def api_token_renew(request: SignedIn) -> HttpResponse:
    return render(
        request, "studies/account.html", {"token": api_token_create(user=request.user), "is_researcher": True}
    )


@login_required
@require_safe
def people(request: SignedIn, slug: str) -> HttpResponse:
    study = research_study(request.user, slug)
    return _people_page(request, study, InvitationForm())


def _people_page(request: HttpRequest, study: Study, form: InvitationForm, link: str = "") -> HttpResponse:
    context = {
        "study": study,
        "members": members_of(study),
        "invitations": open_invitations_of(study),
        "form": form,
        "link": link,
        "local": links_are_local(),
    }
    return render(request, "studies/people.html", context)


@login_required
@require_POST
@never_cache
def invitation_new(request: SignedIn, slug: str) -> HttpResponse:
    """Make a link and show it, this once: only its digest is kept."""
    study = research_study(request.user, slug)
    form = InvitationForm(request.POST)
    if not form.is_valid():
        return _people_page(request, study, form)
    _invitation, secret = invitation_create(study=study, actor=request.user, **form.cleaned_data)
    return _people_page(request, study, InvitationForm(), settings.PUBLIC_URL + reverse("join", args=[secret]))


@login_required
@require_POST
def invitation_take_back(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    study = research_study(request.user, slug)
    invitation_revoke(invitation=get_object_or_404(study.invitations, pk=pk), actor=request.user)
    messages.success(request, _("The link no longer works."))
    return redirect("people", slug)


@login_required
@require_POST
def member_deactivate(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    study = research_study(request.user, slug)
    member = get_object_or_404(Membership.objects.filter(study=study), pk=pk)
    try:
        membership_deactivate(membership=member, actor=request.user)
    except LastResearcherError:
        messages.error(request, _("The last researcher of a study cannot be removed."))
    else:
        messages.success(request, _("Access ended. What this person did stays."))
    return redirect("people", slug)
