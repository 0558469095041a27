from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from corpus.models import Instrument, Respondent, Sitting, Stimulus
from studies.models import Study, User


class Prompt(models.Model):
    study = models.ForeignKey(Study, on_delete=models.PROTECT, related_name="prompts")
    slug = models.SlugField(max_length=60)
    version = models.PositiveIntegerField(default=1)
    text = models.TextField()  # {words} is replaced by the stimulus
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["study", "slug", "version"], name="prompt_unique_slug_version"),
            models.CheckConstraint(condition=Q(text__contains="{words}"), name="prompt_has_words"),
        ]

    def __str__(self) -> str:
        return f"{self.slug} v{self.version}"


class ModelConfig(models.Model):
    """A model as a respondent: where it answers and with which parameters it is asked."""

    class Provider(models.TextChoices):
        OPENAI_COMPATIBLE = "openai_compatible", _("OpenAI-compatible server")

    respondent = models.OneToOneField(Respondent, on_delete=models.PROTECT, related_name="model_config")
    study = models.ForeignKey(Study, on_delete=models.PROTECT, related_name="model_configs")
    label = models.CharField(max_length=100)  # the name in tables and figures
    provider = models.CharField(max_length=30, choices=Provider.choices, default=Provider.OPENAI_COMPATIBLE)
    base_url = models.CharField(max_length=500)
    model = models.CharField(max_length=200)
    key_variable = models.CharField(max_length=100, blank=True)  # the environment variable that holds the key
    temperature = models.FloatField(default=1.0)
    max_output_tokens = models.PositiveIntegerField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["study", "label"], name="modelconfig_unique_label")]

    def __str__(self) -> str:
        return self.label


class Experiment(models.Model):
    class State(models.TextChoices):
        RUNNING = "running", _("running")
        FINISHED = "finished", _("finished")
        CANCELLED = "cancelled", _("cancelled")

    study = models.ForeignKey(Study, on_delete=models.PROTECT, related_name="experiments")
    instrument = models.ForeignKey(Instrument, on_delete=models.PROTECT, related_name="experiments")
    prompt = models.ForeignKey(Prompt, on_delete=models.PROTECT, related_name="experiments")
    title = models.CharField(max_length=200)
    runs_planned = models.PositiveSmallIntegerField(default=5)
    max_attempts = models.PositiveSmallIntegerField(default=10)
    state = models.CharField(max_length=10, choices=State.choices, default=State.RUNNING)
    launched_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    launched_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(runs_planned__gte=1, max_attempts__gte=1), name="experiment_asks_something"
            )
        ]

    def __str__(self) -> str:
        return self.title


class Run(models.Model):
    class State(models.TextChoices):
        PENDING = "pending", _("waiting")
        RUNNING = "running", _("running")
        PAUSED = "paused", _("paused")
        FINISHED = "finished", _("finished")
        INCOMPLETE = "incomplete", _("incomplete")  # ended for a technical reason: no score, no majority
        CANCELLED = "cancelled", _("cancelled")

    experiment = models.ForeignKey(Experiment, on_delete=models.PROTECT, related_name="runs")
    config = models.ForeignKey(ModelConfig, on_delete=models.PROTECT, related_name="runs")
    sitting = models.OneToOneField(Sitting, on_delete=models.PROTECT, related_name="run")
    ordinal = models.PositiveSmallIntegerField()
    state = models.CharField(max_length=10, choices=State.choices, default=State.PENDING)
    reason = models.CharField(max_length=500, blank=True)  # why it is paused or incomplete

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["experiment", "config", "ordinal"], name="run_unique_experiment_config_ordinal"
            )
        ]

    def __str__(self) -> str:
        return f"{self.config_id} run {self.ordinal}"


class Call(models.Model):
    """One HTTP request to a provider, written before it is sent."""

    class State(models.TextChoices):
        IN_FLIGHT = "in_flight", _("in flight")
        OK = "ok", _("valid reply")
        BAD_REPLY = "bad_reply", _("reply not in the required format")  # costs an attempt
        FAILED = "failed", _("technical failure")  # costs none
        LOST = "lost", _("lost, possibly billed")  # the worker died while it was in flight

    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="calls")
    config = models.ForeignKey(ModelConfig, on_delete=models.PROTECT, related_name="calls")
    stimulus = models.ForeignKey(Stimulus, on_delete=models.PROTECT, related_name="calls")
    attempt = models.PositiveSmallIntegerField(null=True)  # numbers completed replies only
    state = models.CharField(max_length=10, choices=State.choices, default=State.IN_FLIGHT)
    kind = models.CharField(max_length=40, blank=True)  # of a bad reply or a failure: format, rate_limit, …
    detail = models.TextField(blank=True)
    request = models.JSONField()
    response = models.JSONField(null=True)
    raw_reply = models.TextField(blank=True)
    model_reported = models.CharField(max_length=200, blank=True)  # what the provider says has answered
    finish_reason = models.CharField(max_length=40, blank=True)
    http_status = models.PositiveSmallIntegerField(null=True)
    input_tokens = models.PositiveIntegerField(null=True)
    output_tokens = models.PositiveIntegerField(null=True)
    worker = models.CharField(max_length=100, blank=True)
    sent_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "stimulus", "attempt"], name="call_unique_attempt"),
            models.UniqueConstraint(
                fields=["run", "stimulus"], condition=Q(state="ok"), name="call_at_most_one_success"
            ),
            models.UniqueConstraint(
                fields=["run", "stimulus"], condition=Q(state="in_flight"), name="call_at_most_one_in_flight"
            ),
            models.CheckConstraint(
                condition=Q(state__in=["ok", "bad_reply"], attempt__isnull=False)
                | Q(state__in=["in_flight", "failed", "lost"], attempt__isnull=True),
                name="call_attempt_only_for_replies",
            ),
        ]
        indexes = [models.Index(fields=["run", "state"], name="call_by_run_state")]

    def __str__(self) -> str:
        return f"{self.run_id} {self.stimulus_id}: {self.state}"
