import uuid

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from studies.models import Study


class Instrument(models.Model):
    """One version of a test. Frozen (by a trigger) by its first sitting, or before; a new version is a copy."""

    class State(models.TextChoices):
        DRAFT = "draft", _("draft")
        FROZEN = "frozen", _("frozen")

    study = models.ForeignKey(Study, on_delete=models.PROTECT, related_name="instruments")
    slug = models.SlugField(max_length=60)
    version = models.PositiveIntegerField(default=1)
    title = models.CharField(max_length=200)
    language = models.CharField(max_length=10, default="ru")  # BCP 47, of the stimuli and the pages around them
    instruction = models.TextField()
    refusal_below = models.PositiveSmallIntegerField(default=4)  # fewer word tokens than this is a refusal
    lower_case = models.BooleanField(default=True)  # the originals are written so, and so are answers displayed
    state = models.CharField(max_length=10, choices=State.choices, default=State.DRAFT)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["study", "slug", "version"], name="instrument_unique_slug_version"),
            models.CheckConstraint(condition=Q(refusal_below__gte=1), name="instrument_refusal_below_positive"),
            models.CheckConstraint(condition=Q(state__in=["draft", "frozen"]), name="instrument_known_state"),
        ]

    def __str__(self) -> str:
        return f"{self.title} v{self.version}"


class Complexity(models.TextChoices):
    EASY = "easy", _("easy")
    MEDIUM = "medium", _("medium")
    HARD = "hard", _("hard")


class Stimulus(models.Model):
    instrument = models.ForeignKey(Instrument, on_delete=models.PROTECT, related_name="stimuli")
    position = models.PositiveSmallIntegerField()
    text = models.TextField()  # the given words, as printed
    original = models.TextField()
    complexity = models.CharField(max_length=10, choices=Complexity.choices)
    shuffled = models.BooleanField()
    is_practice = models.BooleanField(default=False)
    feedback = models.TextField(blank=True)  # what a practice task says once it has been answered
    source = models.CharField(max_length=200, blank=True)  # treebank, sentence, licence

    class Meta:
        verbose_name_plural = "stimuli"
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(fields=["instrument", "position"], name="stimulus_unique_position"),
            models.CheckConstraint(condition=Q(complexity__in=Complexity.values), name="stimulus_known_complexity"),
        ]

    def __str__(self) -> str:
        return f"{self.position}. {self.text}"


class Respondent(models.Model):
    class Kind(models.TextChoices):
        HUMAN = "human", _("person")
        MODEL = "model", _("model")

    study = models.ForeignKey(Study, on_delete=models.PROTECT, related_name="respondents")
    kind = models.CharField(max_length=10, choices=Kind.choices)
    public_id = models.UUIDField(default=uuid.uuid4)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["public_id"], name="respondent_unique_public_id"),
            models.CheckConstraint(condition=Q(kind__in=["human", "model"]), name="respondent_known_kind"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.public_id}"


class Sitting(models.Model):
    """One pass of a respondent through an instrument: a person's visit, or one run of a model."""

    class State(models.TextChoices):
        OPEN = "open", _("in progress")
        FINISHED = "finished", _("finished")
        STOPPED = "stopped", _("stopped")  # left by the person, or ended for a technical reason

    class Standing(models.TextChoices):
        COUNTED = "counted", _("counted")
        PILOT = "pilot", _("pilot")
        EXCLUDED = "excluded", _("excluded")
        WITHDRAWN = "withdrawn", _("withdrawn")

    respondent = models.ForeignKey(Respondent, on_delete=models.PROTECT, related_name="sittings")
    instrument = models.ForeignKey(Instrument, on_delete=models.PROTECT, related_name="sittings")
    ordinal = models.PositiveSmallIntegerField(default=1)
    state = models.CharField(max_length=10, choices=State.choices, default=State.OPEN)
    source_label = models.CharField(max_length=200)  # which survey, which model: for readers, not for joins
    standing = models.CharField(max_length=10, choices=Standing.choices, default=Standing.COUNTED)
    standing_reason = models.CharField(max_length=200, blank=True)
    order = models.JSONField()  # stimulus ids in the order in which this sitting presents them
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["respondent", "instrument", "ordinal"], name="sitting_unique_respondent_ordinal"
            ),
            models.CheckConstraint(
                condition=Q(state="finished", finished_at__isnull=False)
                | (~Q(state="finished") & Q(finished_at__isnull=True)),
                name="sitting_finished_has_time",
            ),
            models.CheckConstraint(
                condition=Q(standing__in=["counted", "pilot", "excluded", "withdrawn"]),
                name="sitting_known_standing",
            ),
        ]
        indexes = [models.Index(fields=["instrument", "standing", "state"], name="sitting_by_standing")]

    def __str__(self) -> str:
        return f"{self.source_label} {self.ordinal}"


class Answer(models.Model):
    class Outcome(models.TextChoices):
        GIVEN = "given", _("given")
        DECLINED = "declined", _("declined")
        NO_VALID_REPLY = "no_valid_reply", _("no reply in the required format")
        WITHDRAWN = "withdrawn", _("withdrawn")  # whatever it was, the person has taken it back

    blind_id = models.UUIDField(default=uuid.uuid4)
    sitting = models.ForeignKey(Sitting, on_delete=models.PROTECT, related_name="answers")
    stimulus = models.ForeignKey(Stimulus, on_delete=models.PROTECT, related_name="answers")
    outcome = models.CharField(max_length=20, choices=Outcome.choices)
    text = models.TextField(blank=True)  # as received; never rewritten by the system, blank once withdrawn
    revision = models.PositiveIntegerField(default=1)  # how often it has been given; earlier ones are kept
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["blind_id"], name="answer_unique_blind_id"),
            models.UniqueConstraint(fields=["sitting", "stimulus"], name="answer_one_per_sitting_stimulus"),
            models.CheckConstraint(
                condition=Q(outcome="given") | Q(outcome__in=["declined", "no_valid_reply", "withdrawn"], text=""),
                name="answer_text_only_when_given",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.outcome}: {self.text[:40]}"


class AnswerRevision(models.Model):
    """What an answer was before it was changed, in a sitting that was still open."""

    answer = models.ForeignKey(Answer, on_delete=models.PROTECT, related_name="revisions")
    number = models.PositiveIntegerField()
    outcome = models.CharField(max_length=20, choices=Answer.Outcome.choices)
    text = models.TextField(blank=True)
    made_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["answer", "number"], name="answerrevision_unique_number"),
            models.CheckConstraint(condition=Q(number__gte=1), name="answerrevision_number_positive"),
            models.CheckConstraint(
                condition=~Q(outcome="withdrawn") | Q(text=""), name="answerrevision_withdrawn_has_no_text"
            ),
        ]
        ordering = [F("number").asc()]

    def __str__(self) -> str:
        return f"{self.answer_id} r{self.number}"
