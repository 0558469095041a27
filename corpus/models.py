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
    revision = models.PositiveIntegerField(default=1)  # grows with every edit, so that a page out of date is noticed
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
    # A person's consent covers processing by third parties, such as the provider of a model that judges. Written down
    # by the layer that asks for consent; a model's answers need none.
    third_parties = models.BooleanField(default=False)
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


class Treebank(models.Model):
    """A file in CoNLL-U that a researcher has sent. It lies in DATA_DIR under its hash, and never changes."""

    study = models.ForeignKey(Study, on_delete=models.PROTECT, related_name="treebanks")
    name = models.CharField(max_length=80)
    licence = models.CharField(max_length=50, blank=True)
    sha256 = models.CharField(max_length=64)
    size = models.PositiveBigIntegerField()  # bytes
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["study", "sha256"], name="treebank_once_per_study"),
        ]

    def __str__(self) -> str:
        return self.name


class Composition(models.Model):
    """A test that is being put together from a treebank: parameters, the search for candidates, decisions."""

    class State(models.TextChoices):
        WAITING = "waiting", _("waiting for a worker")
        READING = "reading", _("the treebank is being read")
        READY = "ready", _("to be reviewed")
        FAILED = "failed", _("failed")
        CANCELLED = "cancelled", _("cancelled")

    treebank = models.ForeignKey(Treebank, on_delete=models.PROTECT, related_name="compositions")
    title = models.CharField(max_length=200)
    parameters = models.JSONField()  # composer.Parameters
    state = models.CharField(max_length=10, choices=State.choices, default=State.WAITING)
    attempt = models.PositiveIntegerField(default=0)  # how often it was begun; an older attempt writes nothing more
    beat_at = models.DateTimeField(null=True)  # the last sign of life of the worker that reads
    bytes_read = models.PositiveBigIntegerField(default=0)
    sentences = models.PositiveIntegerField(default=0)
    passed = models.JSONField(default=list)  # candidates of each band, kept or not
    left_out = models.JSONField(default=dict)  # sentences by reason; one sentence may have several
    n_left_out = models.PositiveIntegerField(default=0)
    problem = models.TextField(blank=True)  # why it failed
    instrument = models.ForeignKey(Instrument, on_delete=models.PROTECT, null=True, related_name="compositions")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=["waiting", "reading", "ready", "failed", "cancelled"]),
                name="composition_known_state",
            ),
            models.CheckConstraint(
                condition=Q(instrument__isnull=True) | Q(state="ready"), name="composition_made_when_ready"
            ),
        ]

    def __str__(self) -> str:
        return self.title


class CompositionCandidate(models.Model):
    """A sentence that can be a task. It stands in a slot of the test, waits, or is rejected."""

    class Decision(models.TextChoices):
        OPEN = "open", _("not decided")
        ACCEPTED = "accepted", _("accepted")
        REJECTED = "rejected", _("rejected")

    composition = models.ForeignKey(Composition, on_delete=models.PROTECT, related_name="candidates")
    band = models.PositiveSmallIntegerField()  # place in composer.BANDS
    place = models.PositiveIntegerField()  # rank within the band, from 1
    slot = models.PositiveSmallIntegerField(null=True)  # position in the test
    decision = models.CharField(max_length=10, choices=Decision.choices, default=Decision.OPEN)
    sent_id = models.CharField(max_length=100)
    line = models.PositiveIntegerField()
    text = models.TextField()
    original = models.TextField()
    given = models.JSONField()  # lemmas and signs in the sentence's order
    compound = models.BooleanField()
    weakness = models.PositiveSmallIntegerField()
    doubts = models.JSONField(default=list)  # pairs of reason and word

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["composition", "band", "place"], name="compositioncandidate_unique_place"),
            models.UniqueConstraint(fields=["composition", "slot"], name="compositioncandidate_one_per_slot"),
            models.CheckConstraint(
                condition=Q(decision="open")
                | Q(decision="accepted", slot__isnull=False)
                | Q(decision="rejected", slot__isnull=True),
                name="compositioncandidate_decision_fits_slot",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.sent_id}: {self.original}"
