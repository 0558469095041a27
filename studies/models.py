from django.contrib.auth.models import AbstractUser
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _


class User(AbstractUser):
    """A researcher or a rater. Participants have no account. Users are deactivated, never deleted."""


class Study(models.Model):
    slug = models.SlugField(max_length=60)
    title = models.CharField(max_length=200)
    # Simulated data says so on every page and in every export.
    simulated = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name_plural = "studies"
        constraints = [models.UniqueConstraint(fields=["slug"], name="study_unique_slug")]

    def __str__(self) -> str:
        return self.title


class Role(models.TextChoices):
    RESEARCHER = "researcher", _("researcher")
    RATER = "rater", _("rater")


class Membership(models.Model):
    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="memberships")
    study = models.ForeignKey(Study, on_delete=models.PROTECT, related_name="memberships")
    role = models.CharField(max_length=20, choices=Role.choices)
    is_active = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "study"], name="membership_one_per_user_study"),
            models.CheckConstraint(condition=Q(role__in=Role.values), name="membership_known_role"),
        ]

    def __str__(self) -> str:
        return f"{self.user_id} in {self.study_id}: {self.role}"


DECISIONS = "decisions "
"""Begins the cause of a blinding that lasts while answers of a closed campaign wait for its adjudicator."""


class Blinding(models.Model):
    """While live, this person may not open a study's results, calls or exports: they judge or decide its answers.

    Written by the layer that opens the rating, so that layers which do not know that one can refuse too.
    """

    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="blindings")
    study = models.ForeignKey(Study, on_delete=models.PROTECT, related_name="blindings")
    cause = models.CharField(max_length=60)  # such as "campaign 12" or "decisions 12"
    since = models.DateTimeField(auto_now_add=True)
    lifted_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["user", "study", "cause"],
                condition=Q(lifted_at__isnull=True),
                name="blinding_one_live_per_user_cause",
            )
        ]

    def __str__(self) -> str:
        return f"{self.user_id} in {self.study_id}: {self.cause}"


class Invitation(models.Model):
    """A single-use link. For a newcomer it makes an account; for a known user it sets a new password."""

    digest = models.CharField(max_length=64)  # SHA-256 of the secret in the link; the secret is not kept
    study = models.ForeignKey(Study, on_delete=models.PROTECT, related_name="invitations")
    role = models.CharField(max_length=20, choices=Role.choices)
    note = models.CharField(max_length=200, blank=True)  # whom it is for, for the inviter's eyes
    user = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, related_name="invitations"
    )  # set: the link lets this known user in
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)
    used_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["digest"], name="invitation_unique_digest"),
            models.CheckConstraint(condition=Q(role__in=Role.values), name="invitation_known_role"),
            models.CheckConstraint(
                condition=Q(used_at__isnull=True, used_by__isnull=True)
                | Q(used_at__isnull=False, used_by__isnull=False),
                name="invitation_used_by_somebody",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.role} in {self.study_id}: {self.note}"


class ApiToken(models.Model):
    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="api_tokens")
    digest = models.CharField(max_length=64)
    created_at = models.DateTimeField(auto_now_add=True)
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["digest"], name="apitoken_unique_digest"),
            models.UniqueConstraint(
                fields=["user"], condition=Q(revoked_at__isnull=True), name="apitoken_one_live_per_user"
            ),
        ]

    def __str__(self) -> str:
        return f"token of {self.user_id}"


class AuditEntry(models.Model):
    """Who did what, when. Written in the transaction of the deed; never changed."""

    at = models.DateTimeField(auto_now_add=True)
    actor = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    study = models.ForeignKey(Study, on_delete=models.PROTECT, null=True, related_name="audit_entries")
    action = models.CharField(max_length=60)
    target = models.CharField(max_length=120)
    detail = models.JSONField(default=dict)

    class Meta:
        verbose_name_plural = "audit entries"
        indexes = [models.Index(fields=["study", "-at"], name="audit_by_study")]

    def __str__(self) -> str:
        return f"{self.action} {self.target}"
