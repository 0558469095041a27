from urllib.parse import urlsplit

from django.conf import settings
from django.db.models import QuerySet
from django.utils import timezone

from studies.models import Invitation, Membership, Study
from studies.services import secret_digest

LOOPBACK = ("127.0.0.1", "localhost", "[::1]", "::1")


def links_are_local() -> bool:
    """Whether the links that we give out work on this computer alone. No query."""
    return urlsplit(settings.PUBLIC_URL).hostname in LOOPBACK


def members_of(study: Study) -> QuerySet[Membership]:
    """One query."""
    return study.memberships.select_related("user").order_by("role", "user__username")


def open_invitations_of(study: Study) -> QuerySet[Invitation]:
    """Links that still work. One query."""
    return study.invitations.filter(
        used_at__isnull=True, revoked_at__isnull=True, expires_at__gt=timezone.now()
    ).order_by("-created_at")


def usable_invitation(secret: str) -> Invitation | None:
    """The invitation behind a link, if it still works. One query."""
    return (
        Invitation.objects.select_related("study", "user")
        .filter(
            digest=secret_digest(secret), used_at__isnull=True, revoked_at__isnull=True, expires_at__gt=timezone.now()
        )
        .first()
    )
