"""Who may see what. Every view and API endpoint gets its study through one of these functions."""

from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest
from django.utils.translation import gettext as _

from studies.models import DECISIONS, Blinding, Membership, Role, Study, User

Visitor = User | AnonymousUser


class SignedIn(HttpRequest):
    """The request of a view behind `login_required`, for the type checker."""

    user: User


class BlindedError(PermissionDenied):
    """The person is judging this study's answers, so what says who gave them stays closed."""


def studies_of(user: Visitor, *, role: str = Role.RESEARCHER) -> QuerySet[Study]:
    """The studies in which the user is an active member in this role."""
    if not user.is_authenticated:
        return Study.objects.none()
    memberships = Membership.objects.filter(user=user, role=role, is_active=True)
    return Study.objects.filter(pk__in=memberships.values("study"))


def research_study(user: Visitor, slug: str) -> Study:
    """The study, for one of its researchers; to everybody else it does not exist. One query.

    Raises Http404.
    """
    study = studies_of(user).filter(slug=slug).first()
    if study is None:
        raise Http404
    return study


def is_blinded(user: Visitor, study: Study) -> bool:
    return user.is_authenticated and Blinding.objects.filter(user=user, study=study, lifted_at__isnull=True).exists()


def unblinded_study(user: Visitor, slug: str) -> Study:
    """The study, for a researcher who may see who gave which answer. Two queries.

    Raises Http404 for non-members and BlindedError for a researcher who rates in an open campaign, or for whose
    decision answers of a closed one wait.
    """
    study = research_study(user, slug)
    live = Blinding.objects.filter(user=user.pk, study=study, lifted_at__isnull=True)
    causes = list(live.values_list("cause", flat=True))
    if any(not cause.startswith(DECISIONS) for cause in causes):
        raise BlindedError(
            _("You are rating answers of this study. Results, calls and exports open when the campaign closes.")
        )
    if causes:
        raise BlindedError(
            _(
                "Answers of this study wait for your decision. Results, calls and exports open when you have decided "
                "them, or when somebody else is named to decide."
            )
        )
    return study
