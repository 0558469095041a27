import uuid

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from corpus.models import Respondent
from studies.models import Study, User


class Release(models.Model):
    """A frozen dataset. Once it is ready, what it says of itself never changes (a trigger); a later one replaces it.

    Its bytes lie in DATA_DIR under their hash until a person in it takes their answers back: then they are deleted, and
    the row stays as the record of what was given out.
    """

    class State(models.TextChoices):
        WAITING = "waiting", _("waiting for a worker")
        BUILDING = "building", _("being made")
        READY = "ready", _("ready")
        FAILED = "failed", _("failed")
        RECALLED = "recalled", _("no longer offered")

    study = models.ForeignKey(Study, on_delete=models.PROTECT, related_name="releases")
    number = models.PositiveIntegerField()  # in the study, from 1: the dataset's version
    replaces = models.OneToOneField("self", on_delete=models.PROTECT, null=True, related_name="successor")
    state = models.CharField(max_length=10, choices=State.choices, default=State.WAITING)
    policy = models.JSONField()  # reports.releases.policy.Policy
    note = models.CharField(max_length=300, blank=True)  # what is new, in the maker's words; stands in the files
    salt = models.UUIDField(default=uuid.uuid4)  # of the pseudonyms; a study's releases share it, none of them holds it
    counts = models.JSONField(default=dict)  # what is in it, and what was left out and why
    files = models.JSONField(default=list)  # [{"path": …, "bytes": …, "sha256": …, "rows": …}, …]
    content_sha256 = models.CharField(max_length=64, blank=True)  # of the digests of all files
    sha256 = models.CharField(max_length=64, blank=True)  # of the archive
    size = models.PositiveBigIntegerField(null=True)
    attempt = models.PositiveIntegerField(default=0)  # how often it was begun; an older attempt stores nothing
    problem = models.TextField(blank=True)  # why it failed
    made_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    made_at = models.DateTimeField(auto_now_add=True)
    recalled_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["study", "number"], name="release_unique_number"),
            models.CheckConstraint(
                condition=Q(state__in=["waiting", "building", "ready", "failed", "recalled"]),
                name="release_known_state",
            ),
            models.CheckConstraint(
                condition=~Q(state__in=["ready", "recalled"]) | (~Q(sha256="") & Q(size__isnull=False)),
                name="release_ready_has_hash",
            ),
            models.CheckConstraint(
                condition=Q(state="recalled", recalled_at__isnull=False)
                | (~Q(state="recalled") & Q(recalled_at__isnull=True)),
                name="release_recalled_has_time",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.study_id} release {self.number}"


class ReleaseMember(models.Model):
    """A person whose answers are in a release: who takes them back must be found in it."""

    release = models.ForeignKey(Release, on_delete=models.PROTECT, related_name="members")
    respondent = models.ForeignKey(Respondent, on_delete=models.PROTECT, related_name="released_in")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["respondent", "release"], name="releasemember_once_per_release")]

    def __str__(self) -> str:
        return f"{self.respondent_id} in {self.release_id}"


class ReleaseImport(models.Model):
    """A study that was made from a release. The same release comes in once."""

    study = models.OneToOneField(Study, on_delete=models.PROTECT, related_name="release_import")
    content_sha256 = models.CharField(max_length=64)
    file = models.JSONField()  # name, bytes, sha256
    manifest = models.JSONField()  # what the release says of itself
    counts = models.JSONField(default=dict)
    made_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    made_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["content_sha256"], name="releaseimport_once")]

    def __str__(self) -> str:
        return f"{self.study_id} from {self.content_sha256[:8]}"
