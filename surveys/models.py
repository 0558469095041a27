import uuid

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from corpus.models import Instrument, Respondent, Sitting, Stimulus
from studies.models import Study


class ConsentDocument(models.Model):
    """What a participant agrees to, word for word. A changed text is a new version."""

    study = models.ForeignKey(Study, on_delete=models.PROTECT, related_name="consent_documents")
    version = models.PositiveIntegerField(default=1)
    language = models.CharField(max_length=10, default="ru")
    text = models.TextField()
    sha256 = models.CharField(max_length=64)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["study", "language", "version"], name="consentdocument_unique_version")
        ]

    def __str__(self) -> str:
        return f"v{self.version} ({self.language})"


class Survey(models.Model):
    class State(models.TextChoices):
        DRAFT = "draft", _("draft")
        OPEN = "open", _("open")
        CLOSED = "closed", _("closed")

    instrument = models.ForeignKey(Instrument, on_delete=models.PROTECT, related_name="surveys")
    consent_document = models.ForeignKey(ConsentDocument, on_delete=models.PROTECT, related_name="surveys")
    slug = models.SlugField(max_length=60)
    title = models.CharField(max_length=200)  # for the researcher
    state = models.CharField(max_length=10, choices=State.choices, default=State.DRAFT)
    contact = models.CharField(max_length=200)  # whom a participant may write to
    completion_code = models.CharField(max_length=40)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["slug"], name="survey_unique_slug"),
            models.CheckConstraint(condition=Q(state__in=["draft", "open", "closed"]), name="survey_known_state"),
        ]

    def __str__(self) -> str:
        return self.title


class Participant(models.Model):
    respondent = models.OneToOneField(Respondent, on_delete=models.PROTECT, related_name="participant")
    survey = models.ForeignKey(Survey, on_delete=models.PROTECT, related_name="participants")
    # Both sides of a link: the digest finds the participant, the secret itself is only in their browser.
    digest = models.CharField(max_length=64)
    start_key = models.UUIDField(default=uuid.uuid4)  # made with the consent page: a double click starts once
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["digest"], name="participant_unique_digest"),
            models.UniqueConstraint(fields=["survey", "start_key"], name="participant_one_per_start_key"),
        ]

    def __str__(self) -> str:
        return f"participant {self.pk}"


class Consent(models.Model):
    participant = models.ForeignKey(Participant, on_delete=models.PROTECT, related_name="consents")
    document = models.ForeignKey(ConsentDocument, on_delete=models.PROTECT, related_name="consents")
    given_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["participant", "document"], name="consent_one_per_document")]

    def __str__(self) -> str:
        return f"{self.participant_id} to {self.document_id}"


class Exposure(models.Model):
    """When a stimulus was first shown and when its answer first came back."""

    sitting = models.ForeignKey(Sitting, on_delete=models.PROTECT, related_name="exposures")
    stimulus = models.ForeignKey(Stimulus, on_delete=models.PROTECT, related_name="exposures")
    onset_at = models.DateTimeField()
    submitted_at = models.DateTimeField(null=True)
    # From the page's first paint to the submit by the browser's monotonic clock, in ms; absent without scripts.
    duration_ms = models.PositiveIntegerField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["sitting", "stimulus"], name="exposure_one_per_sitting_stimulus")
        ]

    def __str__(self) -> str:
        return f"{self.sitting_id} {self.stimulus_id}"
