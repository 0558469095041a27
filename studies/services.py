"""Writes about people and studies."""

import hashlib
import secrets
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from studies.models import ApiToken, AuditEntry, Blinding, Invitation, Membership, Role, Study, User

INVITATION_DAYS = 14


class InvitationUnusableError(Exception):
    """The link is unknown, used, expired or revoked."""


class LastResearcherError(Exception):
    """A study keeps at least one researcher."""


def secret_digest(secret: str) -> str:
    """SHA-256, hex. Enough for 256-bit random secrets; passwords go through Django's hashers instead."""
    return hashlib.sha256(secret.encode()).hexdigest()


def audit_record(
    *,
    actor: User | None,
    study: Study | None,
    action: str,
    target: object,
    detail: dict[str, Any] | None = None,
) -> None:
    """Write who did what, in the transaction of the caller."""
    name = target if isinstance(target, str) else f"{target.__class__.__name__} {getattr(target, 'pk', '')}"
    AuditEntry.objects.create(actor=actor, study=study, action=action, target=name[:120], detail=detail or {})


def audit_quotations_blank(*, study: Study, blank: Callable[[Any], Any]) -> int:
    """Take a withdrawn person's words out of the reasons that people wrote into the log.

    Within the caller's transaction. The one change that the log knows: that something happened stays, a text that
    nobody may keep does not. Returns how many entries changed.
    """
    changed = 0
    for entry in AuditEntry.objects.filter(study=study, detail__has_any_keys=["reason", "note"]).only("detail"):
        detail = blank(entry.detail)
        if detail != entry.detail:
            entry.detail = detail
            entry.save(update_fields=["detail"])
            changed += 1
    return changed


@transaction.atomic
def study_create(*, slug: str, title: str, actor: User | None, simulated: bool = False) -> Study:
    study = Study.objects.create(slug=slug, title=title, simulated=simulated)
    if actor is not None:
        Membership.objects.create(user=actor, study=study, role=Role.RESEARCHER)
    audit_record(actor=actor, study=study, action="study_create", target=study)
    return study


@transaction.atomic
def membership_set(*, user: User, study: Study, role: str, actor: User | None) -> Membership:
    """Make the user a member in this role; a rater may become a researcher, never silently the reverse."""
    membership, created = Membership.objects.select_for_update().get_or_create(
        user=user, study=study, defaults={"role": role}
    )
    if not created and (not membership.is_active or (membership.role == Role.RATER and role == Role.RESEARCHER)):
        membership.role = role
        membership.is_active = True
        membership.save(update_fields=["role", "is_active"])
    audit_record(actor=actor, study=study, action="membership_set", target=membership, detail={"role": role})
    return membership


@transaction.atomic
def membership_deactivate(*, membership: Membership, actor: User) -> None:
    """End a person's access to the study; their judgements and deeds stay.

    Raises LastResearcherError.
    """
    researchers = Membership.objects.select_for_update().filter(
        study=membership.study, role=Role.RESEARCHER, is_active=True
    )
    if set(researchers.values_list("pk", flat=True)) == {membership.pk}:
        raise LastResearcherError
    membership.is_active = False
    membership.save(update_fields=["is_active"])
    audit_record(actor=actor, study=membership.study, action="membership_deactivate", target=membership)


@transaction.atomic
def invitation_create(
    *, study: Study, role: str, actor: User | None, note: str = "", user: User | None = None
) -> tuple[Invitation, str]:
    """A new single-use link. Returns the row and the secret, which is shown once and not kept."""
    secret = secrets.token_urlsafe(32)
    invitation = Invitation.objects.create(
        digest=secret_digest(secret),
        study=study,
        role=role,
        note=note,
        user=user,
        created_by=actor,
        expires_at=timezone.now() + timedelta(days=INVITATION_DAYS),
    )
    audit_record(
        actor=actor,
        study=study,
        action="invitation_create",
        target=invitation,
        detail={"role": role, "note": note},
    )
    return invitation, secret


@transaction.atomic
def invitation_revoke(*, invitation: Invitation, actor: User) -> None:
    taken = Invitation.objects.filter(pk=invitation.pk, used_at__isnull=True, revoked_at__isnull=True).update(
        revoked_at=timezone.now()
    )
    if taken:
        audit_record(actor=actor, study=invitation.study, action="invitation_revoke", target=invitation)


def _invitation_take(secret: str) -> Invitation:
    """The usable invitation behind the secret, locked."""
    invitation = (
        Invitation.objects.select_for_update(of=("self",))
        .select_related("study", "user")
        .filter(
            digest=secret_digest(secret),
            used_at__isnull=True,
            revoked_at__isnull=True,
            expires_at__gt=timezone.now(),
        )
        .first()
    )
    if invitation is None:
        raise InvitationUnusableError
    return invitation


def _invitation_use(invitation: Invitation, user: User) -> None:
    membership_set(user=user, study=invitation.study, role=invitation.role, actor=user)
    invitation.used_at = timezone.now()
    invitation.used_by = user
    invitation.save(update_fields=["used_at", "used_by"])
    audit_record(actor=user, study=invitation.study, action="invitation_accept", target=invitation)


@transaction.atomic
def invitation_accept_new(*, secret: str, username: str, password: str) -> User:
    """Make an account with the link. The user name must be free (the form asks first; the database holds it)."""
    invitation = _invitation_take(secret)
    if invitation.user is not None:
        user = invitation.user
        user.set_password(password)
        user.save(update_fields=["password"])
    else:
        user = User.objects.create_user(username=username, password=password)
    _invitation_use(invitation, user)
    return user


@transaction.atomic
def invitation_accept_known(*, secret: str, user: User) -> None:
    """Somebody who has an account and is logged in joins another study with the link."""
    invitation = _invitation_take(secret)
    if invitation.user is not None and invitation.user != user:
        raise InvitationUnusableError
    _invitation_use(invitation, user)


@transaction.atomic
def api_token_create(*, user: User) -> str:
    """A new token; the earlier one, if any, stops working. Shown once."""
    User.objects.select_for_update(no_key=True).get(pk=user.pk)  # of two presses at once the later one's token works
    ApiToken.objects.filter(user=user, revoked_at__isnull=True).update(revoked_at=timezone.now())
    secret = secrets.token_urlsafe(32)
    token = ApiToken.objects.create(user=user, digest=secret_digest(secret))
    audit_record(actor=user, study=None, action="api_token_create", target=token)
    return secret


def blinding_impose(*, user: User, study: Study, cause: str) -> None:
    """From now on this person may not open the study's results, calls or exports. Within the caller's transaction."""
    Blinding.objects.get_or_create(user=user, study=study, cause=cause, lifted_at=None)


def blinding_lift(*, study: Study, cause: str) -> None:
    Blinding.objects.filter(study=study, cause=cause, lifted_at__isnull=True).update(lifted_at=timezone.now())
