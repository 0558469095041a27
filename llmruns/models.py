from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from corpus.drafts import Draft
from corpus.models import Answer, Instrument, Respondent, Sitting, Stimulus
from llmruns.keys import KEY_VARIABLE
from scoring.models import Judge, Round, Rubric
from studies.models import Study, User


class Provider(models.TextChoices):
    OPENAI = "openai", "OpenAI"
    ANTHROPIC = "anthropic", "Anthropic"
    GIGACHAT = "gigachat", "GigaChat"
    YANDEX = "yandex", "Yandex"
    OPENAI_COMPATIBLE = "openai_compatible", _("OpenAI-compatible server")
    SIMULATED = "simulated", _("simulated")  # in simulated studies only
    REPLAYED = "replayed", _("replies recorded elsewhere")  # nothing is sent


class Currency(models.TextChoices):
    USD = "USD", "USD"
    RUB = "RUB", "RUB"


class CatalogueEntry(models.Model):
    """What is known of a model, as data. Without a study: what Luria brings; a study's own row stands above it."""

    study = models.ForeignKey(Study, on_delete=models.PROTECT, null=True, related_name="catalogue_entries")
    provider = models.CharField(max_length=30, choices=Provider.choices)
    model = models.CharField(max_length=200)  # as the provider writes it
    label = models.CharField(max_length=100)
    size = models.CharField(max_length=40, blank=True)  # "35B, 3B active"; empty where the vendor does not say
    # Names of ModelConfig.PARAMETERS that the model takes; null where it is not known.
    accepts = models.JSONField(null=True)
    in_paper = models.BooleanField(default=False)
    retired_on = models.DateField(null=True, blank=True)
    source = models.CharField(max_length=300, blank=True)
    note = models.CharField(max_length=300, blank=True)

    class Meta:
        verbose_name_plural = "catalogue entries"
        constraints = [
            models.UniqueConstraint(
                fields=["study", "provider", "model"], nulls_distinct=False, name="catalogueentry_unique_model"
            )
        ]

    def __str__(self) -> str:
        return self.label


class Price(models.Model):
    """What a million tokens cost from a day on. Rows are added, never changed: a call keeps its price."""

    study = models.ForeignKey(Study, on_delete=models.PROTECT, null=True, related_name="prices")
    provider = models.CharField(max_length=30, choices=Provider.choices)
    model = models.CharField(max_length=200)
    currency = models.CharField(max_length=3, choices=Currency.choices)
    input_million = models.DecimalField(max_digits=16, decimal_places=8)
    cached_input_million = models.DecimalField(
        max_digits=16, decimal_places=8, null=True, blank=True
    )  # null: as other input
    output_million = models.DecimalField(max_digits=16, decimal_places=8)  # reasoning is output
    valid_from = models.DateField()
    source = models.CharField(max_length=300, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["study", "provider", "model", "valid_from"], nulls_distinct=False, name="price_one_a_day"
            ),
            models.CheckConstraint(
                condition=Q(input_million__gte=0, output_million__gte=0), name="price_is_not_negative"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.model} {self.valid_from}"


class Credential(models.Model):
    """A provider's key, encrypted with a key of the environment (llmruns.keys). Never shown, exported or logged."""

    study = models.ForeignKey(Study, on_delete=models.PROTECT, related_name="credentials")
    provider = models.CharField(max_length=30, choices=Provider.choices)
    name = models.CharField(max_length=100)
    ciphertext = models.BinaryField()
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    retired_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["study", "name"], name="credential_unique_name")]

    def __str__(self) -> str:
        return self.name


class AccessToken(models.Model):
    """A short-lived token that all workers share; its row lock lets one of them at a time ask for a new one."""

    digest = models.CharField(max_length=64, unique=True)  # of the key and what it is for (llmruns.vault)
    ciphertext = models.BinaryField()
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.digest[:8]


class ProviderLimit(models.Model):
    """How much may be asked of one provider at once and in a minute, by all workers together."""

    study = models.ForeignKey(Study, on_delete=models.PROTECT, related_name="provider_limits")
    provider = models.CharField(max_length=30, choices=Provider.choices)
    base_url = models.CharField(max_length=500, blank=True)  # several servers may speak one protocol
    parallel = models.PositiveSmallIntegerField(null=True, blank=True)
    per_minute = models.PositiveIntegerField(null=True, blank=True)
    wake_at = models.DateTimeField(null=True)  # a message is on its way that sends what is due then

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["study", "provider", "base_url"], name="providerlimit_unique"),
            models.CheckConstraint(
                condition=(Q(parallel=None) | Q(parallel__gte=1)) & (Q(per_minute=None) | Q(per_minute__gte=1)),
                name="providerlimit_lets_something_through",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.provider} {self.base_url}"


class Prompt(models.Model):
    class Purpose(models.TextChoices):
        ANSWER = "answer", _("answers")
        JUDGE = "judge", _("judgements")

    study = models.ForeignKey(Study, on_delete=models.PROTECT, related_name="prompts")
    slug = models.SlugField(max_length=60)
    version = models.PositiveIntegerField(default=1)
    purpose = models.CharField(max_length=10, choices=Purpose.choices, default=Purpose.ANSWER)
    text = models.TextField()  # {words} is replaced by the stimulus, {answer} by the answer to judge
    note = models.CharField(max_length=300, blank=True)  # what this version tries
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["study", "slug", "version"], name="prompt_unique_slug_version"),
            models.CheckConstraint(condition=Q(text__contains="{words}"), name="prompt_has_words"),
            models.CheckConstraint(
                condition=Q(purpose="answer") | Q(text__contains="{answer}"), name="prompt_of_a_judge_has_answer"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.slug} v{self.version}"


class ModelConfig(models.Model):
    """A model as a respondent: where it answers and with which parameters it is asked."""

    Provider = Provider
    PARAMETERS = ("temperature", "top_p", "max_output_tokens")

    respondent = models.OneToOneField(Respondent, on_delete=models.PROTECT, related_name="model_config")
    study = models.ForeignKey(Study, on_delete=models.PROTECT, related_name="model_configs")
    label = models.CharField(max_length=100)  # the name in tables and figures
    provider = models.CharField(max_length=30, choices=Provider.choices, default=Provider.OPENAI_COMPATIBLE)
    base_url = models.CharField(max_length=500)
    model = models.CharField(max_length=200)
    key_variable = models.CharField(max_length=100, blank=True)  # the environment variable that holds the key
    credential = models.ForeignKey(Credential, on_delete=models.PROTECT, null=True, related_name="model_configs")
    # What is asked for; null: the provider's default. What was sent and what was used stand in each call.
    temperature = models.FloatField(null=True, default=1.0)
    top_p = models.FloatField(null=True)
    extra_body = models.JSONField(default=dict, blank=True)  # sent as it is: chat_template_kwargs and the like
    # Of PARAMETERS, those that the model takes, as the catalogue said when the configuration was made: later edits of
    # the catalogue do not change what a configuration sends. Null: not known, all that are asked for are sent.
    accepts = models.JSONField(null=True)
    folder = models.CharField(max_length=100, blank=True)  # Yandex: the folder that is billed; GigaChat: the scope
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
            models.CheckConstraint(
                condition=Q(key_variable="") | Q(credential__isnull=True), name="modelconfig_one_key_at_most"
            ),
            models.CheckConstraint(condition=Q(timeout__gte=1, timeout__lte=600), name="modelconfig_timeout_bounded"),
        ]

    def __str__(self) -> str:
        return self.label


class Experiment(models.Model):
    class State(models.TextChoices):
        RUNNING = "running", _("running")
        PAUSED = "paused", _("paused")  # by a person, or because the cap is reached
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
    imported = models.BooleanField(default=False)  # its calls were made elsewhere and came in as a file
    # The budget. A call reserves the most that it can cost before it is sent: spent + reserved stays under the cap.
    # No constraint holds it: a reply that was paid for is recorded, whatever the provider says it cost.
    cap = models.DecimalField(max_digits=16, decimal_places=8, null=True)
    currency = models.CharField(max_length=3, choices=Currency.choices, blank=True)  # of the cap
    spent = models.DecimalField(max_digits=16, decimal_places=8, default=0)
    reserved = models.DecimalField(max_digits=16, decimal_places=8, default=0)
    waits_for_money = models.BooleanField(default=False)  # a call found no room beside those in flight
    problem = models.CharField(max_length=40, blank=True)  # why it is paused: a kind of llmruns.wording
    launched_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    launched_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(runs_planned__gte=1, max_attempts__gte=1), name="experiment_asks_something"
            ),
            models.UniqueConstraint(fields=["study", "launch_key"], name="experiment_launched_once"),
            models.CheckConstraint(condition=Q(cap=None) | Q(currency__gt=""), name="experiment_cap_has_a_currency"),
            models.CheckConstraint(
                condition=Q(spent__gte=0, reserved__gte=0), name="experiment_budget_is_not_negative"
            ),
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


class ModelJudge(models.Model):
    """A configuration with a prompt as a judge on a rubric. Never edited: its judgements belong to exactly these."""

    judge = models.OneToOneField(Judge, on_delete=models.PROTECT, related_name="model_judge")
    config = models.ForeignKey(ModelConfig, on_delete=models.PROTECT, related_name="judges")
    prompt = models.ForeignKey(Prompt, on_delete=models.PROTECT, related_name="judges")
    rubric = models.ForeignKey(Rubric, on_delete=models.PROTECT, related_name="model_judges")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["config", "prompt", "rubric"], name="modeljudge_unique_config_prompt")
        ]

    def __str__(self) -> str:
        return f"{self.config_id} {self.prompt_id}"


class Judging(models.Model):
    """A model judge's work on chosen answers, in a round of its own (purpose *automatic*).

    Paused: nothing more is sent, because a person said so, the cap is reached, or every further call would fail alike.
    Incomplete: all that could be asked was asked, and some answer could not be judged for a technical reason. Both can
    be resumed. A finished or cancelled one has closed its round.
    """

    class State(models.TextChoices):
        RUNNING = "running", _("running")
        PAUSED = "paused", _("paused")
        FINISHED = "finished", _("finished")
        INCOMPLETE = "incomplete", _("incomplete")
        CANCELLED = "cancelled", _("cancelled")

    model_judge = models.ForeignKey(ModelJudge, on_delete=models.PROTECT, related_name="judgings")
    round = models.OneToOneField(Round, on_delete=models.PROTECT, related_name="judging")
    title = models.CharField(max_length=200)
    selection = models.JSONField(default=dict)  # how the answers were chosen, fixed at the launch
    max_attempts = models.PositiveSmallIntegerField(default=10)
    deadline = models.PositiveIntegerField(default=900)
    state = models.CharField(max_length=10, choices=State.choices, default=State.RUNNING)
    problem = models.CharField(max_length=40, blank=True)
    reason = models.CharField(max_length=500, blank=True)
    cap = models.DecimalField(max_digits=16, decimal_places=8, null=True)
    currency = models.CharField(max_length=3, choices=Currency.choices, blank=True)
    spent = models.DecimalField(max_digits=16, decimal_places=8, default=0)
    reserved = models.DecimalField(max_digits=16, decimal_places=8, default=0)
    waits_for_money = models.BooleanField(default=False)
    launch_key = models.UUIDField(null=True)
    launched_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    launched_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["model_judge", "launch_key"], name="judging_launched_once"),
            models.CheckConstraint(condition=Q(cap=None) | Q(currency__gt=""), name="judging_cap_has_a_currency"),
            models.CheckConstraint(condition=Q(spent__gte=0, reserved__gte=0), name="judging_budget_is_not_negative"),
        ]

    def __str__(self) -> str:
        return self.title

    @property
    def study(self) -> Study:
        return self.round.study


class JudgingItem(models.Model):
    """What is still to be judged. Like RunStimulus; an answer that shares its text with another is asked once.

    The item that is asked has `same_as` null; the others follow its state.
    """

    class State(models.TextChoices):
        TODO = "todo", _("to be judged")
        JUDGED = "judged", _("judged")
        NO_VERDICT = "no_verdict", _("no reply in the required format")
        GIVEN_UP = "given_up", _("given up for a technical reason")
        REMOVED = "removed", _("taken out: the answer counts no more")

    judging = models.ForeignKey(Judging, on_delete=models.PROTECT, related_name="items")
    answer = models.ForeignKey(Answer, on_delete=models.PROTECT, related_name="judging_items")
    same_as = models.ForeignKey("self", on_delete=models.PROTECT, null=True, related_name="sharing")
    state = models.CharField(max_length=10, choices=State.choices, default=State.TODO)
    attempts = models.PositiveSmallIntegerField(default=0)
    failures = models.PositiveIntegerField(default=0)
    failing_since = models.DateTimeField(null=True)
    due_at = models.DateTimeField()
    problem = models.CharField(max_length=40, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["judging", "answer"], name="judgingitem_one_per_answer")]
        indexes = [models.Index(fields=["due_at"], condition=Q(state="todo"), name="judgingitem_due")]

    def __str__(self) -> str:
        return f"{self.judging_id} {self.answer_id}: {self.state}"


class Call(models.Model):
    """One HTTP request to a provider, written before it is sent."""

    class Purpose(models.TextChoices):
        ANSWER = "answer", _("answer")
        JUDGE = "judge", _("judgement")
        TRIAL = "trial", _("trial")

    class State(models.TextChoices):
        IN_FLIGHT = "in_flight", _("in flight")
        OK = "ok", _("valid reply")
        BAD_REPLY = "bad_reply", _("reply not in the required format")  # costs an attempt
        FAILED = "failed", _("technical failure")  # costs none
        LOST = "lost", _("lost, possibly billed")  # the worker died while it was in flight
        # In imported files only: a reply after the one that decided, or after the last attempt. It was paid for.
        SURPLUS = "surplus", _("came after the stimulus was settled")

    config = models.ForeignKey(ModelConfig, on_delete=models.PROTECT, related_name="calls")
    purpose = models.CharField(max_length=10, choices=Purpose.choices, default=Purpose.ANSWER)
    run = models.ForeignKey(Run, on_delete=models.PROTECT, null=True, related_name="calls")
    stimulus = models.ForeignKey(Stimulus, on_delete=models.PROTECT, null=True, related_name="calls")
    judging = models.ForeignKey("Judging", on_delete=models.PROTECT, null=True, related_name="calls")
    answer = models.ForeignKey(Answer, on_delete=models.PROTECT, null=True, related_name="calls")
    attempt = models.PositiveSmallIntegerField(null=True)  # numbers completed replies only
    state = models.CharField(max_length=10, choices=State.choices, default=State.IN_FLIGHT)
    kind = models.CharField(max_length=40, blank=True)  # of a bad reply or a failure: format, rate_limit, …
    detail = models.TextField(blank=True)
    asked = models.JSONField(default=dict)  # the parameters of the configuration
    request = models.JSONField()  # what was sent, the parameters among it
    used = models.JSONField(default=dict)  # the parameters that the provider says it used; mostly it says nothing
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
    cached_tokens = models.PositiveIntegerField(null=True)  # of the input
    output_tokens = models.PositiveIntegerField(null=True)  # reasoning among them
    reasoning_tokens = models.PositiveIntegerField(null=True)
    price = models.ForeignKey(Price, on_delete=models.PROTECT, null=True, related_name="+")
    cost = models.DecimalField(
        max_digits=16, decimal_places=8, null=True
    )  # null: the price or the tokens are not known
    currency = models.CharField(max_length=3, choices=Currency.choices, blank=True)
    reserved = models.DecimalField(
        max_digits=16, decimal_places=8, null=True
    )  # the most that it can cost: while in flight under a cap, and for good where it may have been billed unseen
    worker = models.CharField(max_length=100, blank=True)
    sent = models.BooleanField(default=True)  # false: it is known that no request went out, so that none was billed
    sent_at = models.DateTimeField(default=timezone.now, null=True)  # null: imported from a file that does not say
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "stimulus", "attempt"], name="call_unique_attempt"),
            models.UniqueConstraint(fields=["judging", "answer", "attempt"], name="call_unique_judging_attempt"),
            models.UniqueConstraint(
                fields=["run", "stimulus"], condition=Q(state="ok"), name="call_at_most_one_success"
            ),
            models.UniqueConstraint(
                fields=["judging", "answer"], condition=Q(state="ok"), name="call_at_most_one_judgement"
            ),
            models.UniqueConstraint(
                fields=["judging", "answer"], condition=Q(state="in_flight"), name="call_at_most_one_judging_in_flight"
            ),
            models.UniqueConstraint(
                fields=["run", "stimulus"], condition=Q(state="in_flight"), name="call_at_most_one_in_flight"
            ),
            models.CheckConstraint(
                condition=Q(purpose="trial", attempt__isnull=True)
                | Q(state__in=["ok", "bad_reply"], attempt__isnull=False)
                | Q(state__in=["in_flight", "failed", "lost", "surplus"], attempt__isnull=True),
                name="call_attempt_only_for_replies",
            ),
            models.CheckConstraint(
                condition=Q(purpose="answer", run__isnull=False, stimulus__isnull=False, judging=None, answer=None)
                | Q(purpose="judge", run=None, stimulus=None, judging__isnull=False, answer__isnull=False)
                | Q(purpose="trial", run=None, stimulus=None, judging=None, answer=None),
                name="call_belongs_to_its_purpose",
            ),
        ]
        indexes = [
            models.Index(fields=["run", "state"], name="call_by_run_state"),
            models.Index(fields=["sent_at"], condition=Q(state="in_flight"), name="call_in_flight"),
            models.Index(fields=["config", "sent_at"], name="call_by_config_time"),  # calls of the last minute
        ]

    def __str__(self) -> str:
        return f"{self.run_id} {self.stimulus_id}: {self.state}"


class ReplyDraft(Draft):
    """A file of replies recorded elsewhere that was sent and not yet imported. Its bytes lie in DATA_DIR until then."""

    FOLDER = "replies"

    study = models.ForeignKey(Study, on_delete=models.PROTECT, related_name="reply_drafts")
    instrument = models.ForeignKey(Instrument, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=200)
    sha256 = models.CharField(max_length=64)
    size = models.PositiveIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["key"], name="replydraft_unique_key")]

    def __str__(self) -> str:
        return self.name


class ReplyImport(models.Model):
    """A file of replies that became an experiment. Put aside, its runs count nowhere, and the file may come again."""

    study = models.ForeignKey(Study, on_delete=models.PROTECT, related_name="reply_imports")
    experiment = models.OneToOneField(Experiment, on_delete=models.PROTECT, related_name="reply_import")
    name = models.CharField(max_length=200)
    size = models.PositiveIntegerField()
    sha256 = models.CharField(max_length=64)  # of the bytes
    digest = models.CharField(max_length=64)  # of the records, however the lines are written
    counts = models.JSONField(default=dict)
    notes = models.JSONField(default=list)  # what the person was told: reason, line, detail
    draft_key = models.UUIDField(null=True)
    actor = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    made_at = models.DateTimeField(auto_now_add=True)
    set_aside_at = models.DateTimeField(null=True)
    set_aside_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    set_aside_reason = models.CharField(max_length=200, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["study", "digest"], condition=Q(set_aside_at=None), name="replyimport_file_once"
            ),
            models.CheckConstraint(
                condition=Q(set_aside_at=None) | Q(set_aside_reason__gt=""), name="replyimport_set_aside_with_reason"
            ),
        ]

    def __str__(self) -> str:
        return self.name
