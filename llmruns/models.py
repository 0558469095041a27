from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from corpus.models import Instrument, Respondent, Sitting, Stimulus
from llmruns.keys import KEY_VARIABLE
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
        SIMULATED = "simulated", _("simulated")  # in simulated studies only

    respondent = models.OneToOneField(Respondent, on_delete=models.PROTECT, related_name="model_config")
    study = models.ForeignKey(Study, on_delete=models.PROTECT, related_name="model_configs")
    label = models.CharField(max_length=100)  # the name in tables and figures
    provider = models.CharField(max_length=30, choices=Provider.choices, default=Provider.OPENAI_COMPATIBLE)
    base_url = models.CharField(max_length=500)
    model = models.CharField(max_length=200)
    key_variable = models.CharField(max_length=100, blank=True)  # the environment variable that holds the key
    temperature = models.FloatField(default=1.0)
    max_output_tokens = models.PositiveIntegerField(null=True)
    timeout = models.PositiveSmallIntegerField(default=60, validators=[MinValueValidator(1), MaxValueValidator(600)])
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["study", "label"], name="modelconfig_unique_label"),
            # No form and no API may name SECRET_KEY here and have it sent to a server of the writer's choice.
            models.CheckConstraint(
                condition=Q(key_variable="") | Q(key_variable__regex=KEY_VARIABLE),
                name="modelconfig_key_variable_is_a_key",
            ),
            models.CheckConstraint(condition=Q(timeout__gte=1, timeout__lte=600), name="modelconfig_timeout_bounded"),
        ]

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
    deadline = models.PositiveIntegerField(default=900)  # seconds of technical failures in a row, per stimulus
    launch_key = models.UUIDField(null=True)  # of the form that launched it: a double click launches once
    state = models.CharField(max_length=10, choices=State.choices, default=State.RUNNING)
    launched_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    launched_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(runs_planned__gte=1, max_attempts__gte=1), name="experiment_asks_something"
            ),
            models.UniqueConstraint(fields=["study", "launch_key"], name="experiment_launched_once"),
        ]

    def __str__(self) -> str:
        return self.title


class Run(models.Model):
    """One pass of one configuration through the instrument: the model's sitting.

    Paused and incomplete runs keep their sitting open and can be resumed. Paused: nothing more is sent, because every
    further call would fail alike (quota, key, unknown model). Incomplete: all that could be asked was asked, and some
    stimulus has no answer for a technical reason; there is no score and no majority until it is resumed.
    """

    class State(models.TextChoices):
        PENDING = "pending", _("waiting")
        RUNNING = "running", _("running")
        PAUSED = "paused", _("paused")
        FINISHED = "finished", _("finished")
        INCOMPLETE = "incomplete", _("incomplete")
        CANCELLED = "cancelled", _("cancelled")

    experiment = models.ForeignKey(Experiment, on_delete=models.PROTECT, related_name="runs")
    config = models.ForeignKey(ModelConfig, on_delete=models.PROTECT, related_name="runs")
    sitting = models.OneToOneField(Sitting, on_delete=models.PROTECT, related_name="run")
    ordinal = models.PositiveSmallIntegerField()
    state = models.CharField(max_length=10, choices=State.choices, default=State.PENDING)
    problem = models.CharField(max_length=40, blank=True)  # why it is paused or incomplete: a kind of llmruns.wording
    reason = models.CharField(max_length=500, blank=True)  # what the provider said

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["experiment", "config", "ordinal"], name="run_unique_experiment_config_ordinal"
            )
        ]
        indexes = [models.Index(fields=["state"], name="run_by_state")]

    def __str__(self) -> str:
        return f"{self.config_id} run {self.ordinal}"


class RunStimulus(models.Model):
    """What is still to be asked in a run. The answer itself is in the corpus, what was sent is in the calls."""

    class State(models.TextChoices):
        TODO = "todo", _("to be asked")
        DONE = "done", _("has its answer")
        GIVEN_UP = "given_up", _("given up for a technical reason")

    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="run_stimuli")
    stimulus = models.ForeignKey(Stimulus, on_delete=models.PROTECT, related_name="run_stimuli")
    state = models.CharField(max_length=10, choices=State.choices, default=State.TODO)
    attempts = models.PositiveSmallIntegerField(default=0)  # completed replies
    failures = models.PositiveIntegerField(default=0)  # technical ones, since the last completed reply
    failing_since = models.DateTimeField(null=True)  # the deadline counts from here
    due_at = models.DateTimeField()  # not asked before: back-off and Retry-After
    problem = models.CharField(max_length=40, blank=True)  # kind of the last technical failure

    class Meta:
        verbose_name_plural = "run stimuli"
        constraints = [models.UniqueConstraint(fields=["run", "stimulus"], name="runstimulus_one_per_run_stimulus")]
        indexes = [models.Index(fields=["due_at"], condition=Q(state="todo"), name="runstimulus_due")]

    def __str__(self) -> str:
        return f"{self.run_id} {self.stimulus_id}: {self.state}"


class Call(models.Model):
    """One HTTP request to a provider, written before it is sent."""

    class Purpose(models.TextChoices):
        ANSWER = "answer", _("answer")
        TRIAL = "trial", _("trial")

    class State(models.TextChoices):
        IN_FLIGHT = "in_flight", _("in flight")
        OK = "ok", _("valid reply")
        BAD_REPLY = "bad_reply", _("reply not in the required format")  # costs an attempt
        FAILED = "failed", _("technical failure")  # costs none
        LOST = "lost", _("lost, possibly billed")  # the worker died while it was in flight

    config = models.ForeignKey(ModelConfig, on_delete=models.PROTECT, related_name="calls")
    purpose = models.CharField(max_length=10, choices=Purpose.choices, default=Purpose.ANSWER)
    run = models.ForeignKey(Run, on_delete=models.PROTECT, null=True, related_name="calls")
    stimulus = models.ForeignKey(Stimulus, on_delete=models.PROTECT, null=True, related_name="calls")
    attempt = models.PositiveSmallIntegerField(null=True)  # numbers completed replies only
    state = models.CharField(max_length=10, choices=State.choices, default=State.IN_FLIGHT)
    kind = models.CharField(max_length=40, blank=True)  # of a bad reply or a failure: format, rate_limit, …
    detail = models.TextField(blank=True)
    request = models.JSONField()
    response = models.JSONField(null=True)
    raw_reply = models.TextField(blank=True)  # the text of the message
    raw_body = models.TextField(blank=True)  # what came back, where it is no JSON that the database can hold; bounded
    escaped = models.BooleanField(
        default=False
    )  # NUL, lone surrogates or bytes that are no UTF-8 are written as \\u or \\x
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
                condition=Q(purpose="trial", attempt__isnull=True)
                | Q(state__in=["ok", "bad_reply"], attempt__isnull=False)
                | Q(state__in=["in_flight", "failed", "lost"], attempt__isnull=True),
                name="call_attempt_only_for_replies",
            ),
            models.CheckConstraint(
                condition=Q(purpose="answer", run__isnull=False, stimulus__isnull=False)
                | Q(purpose="trial", run__isnull=True, stimulus__isnull=True),
                name="call_answers_belong_to_a_run",
            ),
        ]
        indexes = [
            models.Index(fields=["run", "state"], name="call_by_run_state"),
            models.Index(fields=["sent_at"], condition=Q(state="in_flight"), name="call_in_flight"),
        ]

    def __str__(self) -> str:
        return f"{self.run_id} {self.stimulus_id}: {self.state}"
