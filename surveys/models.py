import uuid

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from corpus.drafts import Draft
from corpus.models import Answer, Instrument, Respondent, Sitting, Stimulus
from studies.models import Study, User


class Purpose(models.TextChoices):
    """What a consent document asks for. Each is asked on its own: Russian law (152-FZ, art. 9 and 10.1) wants it so."""

    PARTICIPATION = "participation", _("participation")
    PUBLICATION = "publication", _("publication of the answers")
    THIRD_PARTIES = "third_parties", _("processing by third parties")


class ConsentDocument(models.Model):
    """What a participant agrees to, word for word. A changed text is a new version."""

    study = models.ForeignKey(Study, on_delete=models.PROTECT, related_name="consent_documents")
    purpose = models.CharField(max_length=20, choices=Purpose.choices, default=Purpose.PARTICIPATION)
    version = models.PositiveIntegerField(default=1)
    language = models.CharField(max_length=10, default="ru")
    text = models.TextField()
    sha256 = models.CharField(max_length=64)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["study", "purpose", "language", "version"], name="consentdocument_unique_version"
            ),
            models.CheckConstraint(condition=Q(purpose__in=Purpose.values), name="consentdocument_known_purpose"),
        ]

    def __str__(self) -> str:
        return f"{self.purpose} v{self.version} ({self.language})"


class Platform(models.TextChoices):
    """Where participants come from: who names them, and what they get at the end."""

    DIRECT = "direct", _("direct link")
    PROLIFIC = "prolific", "Prolific"
    TOLOKA = "toloka", _("Toloka")
    YANDEX = "yandex", _("Yandex Tasks")
    OTHER = "other", _("another platform")
    IMPORTED = "imported", _("imported")  # answers collected elsewhere; nobody ever comes by a link


class Survey(models.Model):
    class State(models.TextChoices):
        DRAFT = "draft", _("draft")
        OPEN = "open", _("open")
        CLOSED = "closed", _("closed")

    class OrderScheme(models.TextChoices):
        FIXED = "fixed", _("as in the instrument")
        WITHIN_BANDS = "within_bands", _("random within each complexity")

    class Codes(models.TextChoices):
        COMMON = "common", _("one for everybody")
        UNIQUE = "unique", _("each participant their own")

    instrument = models.ForeignKey(Instrument, on_delete=models.PROTECT, related_name="surveys")
    consent_document = models.ForeignKey(ConsentDocument, on_delete=models.PROTECT, related_name="surveys")
    # None: not asked for, so nobody has agreed.
    publication_document = models.ForeignKey(ConsentDocument, on_delete=models.PROTECT, null=True, related_name="+")
    third_party_document = models.ForeignKey(ConsentDocument, on_delete=models.PROTECT, null=True, related_name="+")
    slug = models.SlugField(max_length=60)
    title = models.CharField(max_length=200)  # for the researcher
    state = models.CharField(max_length=10, choices=State.choices, default=State.DRAFT)
    contact = models.CharField(max_length=200)  # whom a participant may write to
    platform = models.CharField(max_length=10, choices=Platform.choices, default=Platform.DIRECT)
    # The URL parameters that name the person, and the one visit of theirs (assignment, session); empty: none.
    person_parameter = models.CharField(max_length=60, blank=True)
    visit_parameter = models.CharField(max_length=60, blank=True)
    codes = models.CharField(max_length=10, choices=Codes.choices, default=Codes.COMMON)
    completion_code = models.CharField(max_length=40)
    screen_out_code = models.CharField(max_length=40, blank=True)
    return_url = models.URLField(max_length=500, blank=True)  # `{code}` in it is replaced by the code
    is_pilot = models.BooleanField(default=False)
    quota = models.PositiveIntegerField(null=True)  # places; None: no limit
    hold_minutes = models.PositiveIntegerField(default=120)  # how long an idle participant keeps a place
    opens_at = models.DateTimeField(null=True)
    closes_at = models.DateTimeField(null=True)
    order_scheme = models.CharField(max_length=20, choices=OrderScheme.choices, default=OrderScheme.FIXED)
    seed = models.PositiveIntegerField(default=1)  # of the orders
    gap_minutes = models.PositiveIntegerField(null=True, default=30)  # pause after which the instruction comes again
    revision = models.PositiveIntegerField(default=1)  # grows with every change to it or its questions
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["slug"], name="survey_unique_slug"),
            models.CheckConstraint(condition=Q(state__in=["draft", "open", "closed"]), name="survey_known_state"),
            models.CheckConstraint(condition=Q(platform__in=Platform.values), name="survey_known_platform"),
            models.CheckConstraint(condition=Q(quota__isnull=True) | Q(quota__gte=1), name="survey_quota_positive"),
            models.CheckConstraint(
                condition=Q(opens_at__isnull=True) | Q(closes_at__isnull=True) | Q(opens_at__lt=models.F("closes_at")),
                name="survey_opens_before_it_closes",
            ),
            models.CheckConstraint(
                condition=~Q(platform="imported") | Q(state="closed"), name="survey_imported_is_closed"
            ),
        ]

    def __str__(self) -> str:
        return self.title


class Question(models.Model):
    """One question of a survey's questionnaire. With `expected` it is an attention check: a flag, never a gate."""

    class Place(models.TextChoices):
        BEFORE = "before", _("before the tasks")
        BETWEEN = "between", _("between two tasks")
        AFTER = "after", _("after the tasks")

    class Kind(models.TextChoices):
        SINGLE = "single", _("one of several")
        MULTIPLE = "multiple", _("any of several")
        NUMBER = "number", _("number")
        SHORT = "short", _("short text")
        LONG = "long", _("long text")
        SCALE = "scale", _("scale")

    survey = models.ForeignKey(Survey, on_delete=models.PROTECT, related_name="questions")
    position = models.PositiveSmallIntegerField()
    place = models.CharField(max_length=10, choices=Place.choices)
    after_task = models.PositiveSmallIntegerField(null=True)  # which task it follows, where it stands between two
    code = models.SlugField(max_length=40)  # the column in exports
    kind = models.CharField(max_length=10, choices=Kind.choices)
    text = models.JSONField()  # {"ru": …, "en": …}
    options = models.JSONField(default=list)  # [{"value": "f", "text": {"ru": …}}, …] where one chooses
    minimum = models.IntegerField(null=True)  # of a number or a scale
    maximum = models.IntegerField(null=True)
    end_labels = models.JSONField(default=dict)  # of a scale: {"low": {"ru": …}, "high": {"ru": …}}
    required = models.BooleanField(default=False)
    expected = models.CharField(max_length=200, blank=True)  # an attention check's right response
    screens_out = models.JSONField(default=list)  # values that end the survey before the tasks

    class Meta:
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(fields=["survey", "position"], name="question_unique_position"),
            models.UniqueConstraint(fields=["survey", "code"], name="question_unique_code"),
            models.CheckConstraint(
                condition=Q(place="between", after_task__isnull=False)
                | (Q(place__in=["before", "after"]) & Q(after_task__isnull=True)),
                name="question_between_names_its_task",
            ),
        ]

    def __str__(self) -> str:
        return self.code


class Participant(models.Model):
    respondent = models.OneToOneField(Respondent, on_delete=models.PROTECT, related_name="participant")
    survey = models.ForeignKey(Survey, on_delete=models.PROTECT, related_name="participants")
    # Both sides of a link: the digest finds the participant, the secret itself is only in their browser.
    digest = models.CharField(max_length=64)
    start_key = models.UUIDField(default=uuid.uuid4)  # made with the consent page: a double click starts once
    external_id = models.CharField(max_length=100, blank=True)  # the platform's name for the person
    visit_id = models.CharField(max_length=100, blank=True)  # the platform's name for this visit (assignment, session)
    completion_code = models.CharField(max_length=40, blank=True)  # set where each participant has their own
    receipt_digest = models.CharField(max_length=64, blank=True)  # of the receipt code (128 bit), given out once
    screened_out_at = models.DateTimeField(null=True)
    withdrawn_at = models.DateTimeField(null=True)  # they took it all back: see surveys.rights
    withdrawn_digest = models.CharField(max_length=64, blank=True)  # keyed, of the id they had: no import revives them
    flags = models.JSONField(default=list)  # codes such as `browser_again`; they inform and never block
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["digest"], name="participant_unique_digest"),
            models.UniqueConstraint(fields=["survey", "start_key"], name="participant_one_per_start_key"),
            models.UniqueConstraint(
                fields=["survey", "external_id"],
                condition=~Q(external_id=""),
                name="participant_one_per_external_id",
            ),
            models.UniqueConstraint(
                fields=["receipt_digest"], condition=~Q(receipt_digest=""), name="participant_unique_receipt"
            ),
            models.CheckConstraint(
                condition=Q(withdrawn_at__isnull=True) | Q(external_id="", visit_id=""),
                name="participant_withdrawn_has_no_ids",
            ),
        ]
        indexes = [models.Index(fields=["external_id"], name="participant_by_external_id")]

    def __str__(self) -> str:
        return f"participant {self.pk}"


class Arrival(models.Model):
    """A consent page opened in a real browser (its script says so; a link preview has none). Nothing of the person."""

    survey = models.ForeignKey(Survey, on_delete=models.PROTECT, related_name="arrivals")
    key = models.UUIDField()  # the page's start key
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["survey", "key"], name="arrival_one_per_key")]

    def __str__(self) -> str:
        return f"{self.survey_id} {self.key}"


class Consent(models.Model):
    """A person's agreement to one document. What they did not agree to has no row."""

    participant = models.ForeignKey(Participant, on_delete=models.PROTECT, related_name="consents")
    document = models.ForeignKey(ConsentDocument, on_delete=models.PROTECT, related_name="consents")
    sha256 = models.CharField(max_length=64)  # of the text that was shown
    given_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["participant", "document"], name="consent_one_per_document")]

    def __str__(self) -> str:
        return f"{self.participant_id} to {self.document_id}"


class PracticeAnswer(models.Model):
    """What a participant wrote in a practice task, each try a row: read by researchers, never rated, run or scored."""

    participant = models.ForeignKey(Participant, on_delete=models.PROTECT, related_name="practice_answers")
    stimulus = models.ForeignKey(Stimulus, on_delete=models.PROTECT, related_name="practice_answers")
    number = models.PositiveSmallIntegerField()  # of the try; feedback came after each
    text = models.TextField(blank=True)  # empty: could not make a sentence, or blanked by a withdrawal
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["participant", "stimulus", "number"], name="practiceanswer_unique_number"),
            models.CheckConstraint(condition=Q(number__gte=1), name="practiceanswer_number_positive"),
        ]

    def __str__(self) -> str:
        return f"{self.participant_id} {self.stimulus_id}: {self.number}"


class QuestionResponse(models.Model):
    """What a participant chose or wrote; given again, the earlier value goes to `earlier`."""

    participant = models.ForeignKey(Participant, on_delete=models.PROTECT, related_name="responses")
    question = models.ForeignKey(Question, on_delete=models.PROTECT, related_name="responses")
    value = models.JSONField(null=True)  # str, int or list of str; None: left out
    earlier = models.JSONField(default=list)
    at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["participant", "question"], name="questionresponse_one_per_question")
        ]

    def __str__(self) -> str:
        return f"{self.participant_id} {self.question_id}"


class Exposure(models.Model):
    """When a stimulus was first shown, when its answer first came back, and what happened between.

    The times in ms run from the page's first paint by the browser's monotonic clock; without scripts they are absent.
    Where a page was reloaded, times are added up and the first key keeps its first value.
    """

    sitting = models.ForeignKey(Sitting, on_delete=models.PROTECT, related_name="exposures")
    stimulus = models.ForeignKey(Stimulus, on_delete=models.PROTECT, related_name="exposures")
    onset_at = models.DateTimeField()
    submitted_at = models.DateTimeField(null=True)
    duration_ms = models.PositiveIntegerField(null=True)
    first_key_ms = models.PositiveIntegerField(null=True)
    away_ms = models.PositiveIntegerField(null=True)  # the page was hidden or another window was in front
    pastes = models.PositiveSmallIntegerField(null=True)
    pasted_characters = models.PositiveIntegerField(null=True)
    translated = models.BooleanField(null=True)  # the browser had translated the page
    device = models.CharField(max_length=10, blank=True)  # phone, tablet or desktop, by width and pointer

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["sitting", "stimulus"], name="exposure_one_per_sitting_stimulus")
        ]

    def __str__(self) -> str:
        return f"{self.sitting_id} {self.stimulus_id}"


class ImportBatch(models.Model):
    """One import of answers collected elsewhere: where they came from and what was done with every record."""

    survey = models.ForeignKey(Survey, on_delete=models.PROTECT, related_name="import_batches")
    format = models.CharField(max_length=40)
    files = models.JSONField()  # [{"name": …, "sha256": …, "bytes": …, "encoding": …}, …]
    settings = models.JSONField(default=dict)  # the person's choices: columns, consents
    counts = models.JSONField(default=dict)
    skipped = models.JSONField(default=list)  # [{"record": 3, "reason": "rejected"}, …]
    made_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    made_at = models.DateTimeField(auto_now_add=True)
    draft_key = models.UUIDField(null=True)  # of the draft that was confirmed: pressed twice, it imports once

    class Meta:
        indexes = [models.Index(fields=["draft_key"], name="importbatch_by_draft")]

    def __str__(self) -> str:
        return f"{self.format} into {self.survey_id}"


class ImportedAnswer(models.Model):
    """Where an imported answer stands in its source. The times are as the source writes them; unknown stays empty."""

    answer = models.OneToOneField(Answer, on_delete=models.PROTECT, related_name="imported")
    batch = models.ForeignKey(ImportBatch, on_delete=models.PROTECT, related_name="answers")
    file = models.PositiveSmallIntegerField(default=0)  # which of the batch's files
    record = models.PositiveIntegerField()  # of the file, after the header, blank ones counted
    assignment = models.CharField(max_length=100, blank=True)
    status = models.CharField(max_length=40, blank=True)  # of the assignment, as the platform calls it
    started = models.CharField(max_length=40, blank=True)  # ISO 8601; without a zone where the source has none
    submitted = models.CharField(max_length=40, blank=True)
    submitted_at = models.DateTimeField(null=True)  # None: the moment is not known
    duration_ms = models.PositiveIntegerField(null=True)

    class Meta:
        indexes = [models.Index(fields=["batch", "file", "record"], name="importedanswer_by_record")]

    def __str__(self) -> str:
        return f"{self.batch_id} record {self.record}"


class PlatformRecord(models.Model):
    """What a platform says about a participant (paid or not, how long it took). The latest row counts."""

    participant = models.ForeignKey(Participant, on_delete=models.PROTECT, related_name="platform_records")
    batch = models.ForeignKey(ImportBatch, on_delete=models.PROTECT, related_name="platform_records")
    record = models.PositiveIntegerField()
    status = models.CharField(max_length=40)
    seconds = models.PositiveIntegerField(null=True)
    data = models.JSONField(default=dict)  # age, sex, and the columns that the person importing chose

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["participant", "batch"], name="platformrecord_one_per_participant_batch")
        ]

    def __str__(self) -> str:
        return f"{self.participant_id} {self.status}"


class ImportDraft(Draft):
    """A file that was sent and not yet imported. Its bytes lie in DATA_DIR until then, or for a day."""

    FOLDER = "imports"

    study = models.ForeignKey(Study, on_delete=models.PROTECT, related_name="import_drafts")
    instrument = models.ForeignKey(Instrument, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=200)
    sha256 = models.CharField(max_length=64)
    size = models.PositiveIntegerField()
    format = models.CharField(max_length=40, blank=True)  # empty: seen from the file

    class Meta:
        constraints = [models.UniqueConstraint(fields=["key"], name="importdraft_unique_key")]

    def __str__(self) -> str:
        return self.name


class ExclusionRule(models.Model):
    """Whom to leave out and why, written down before it is applied."""

    survey = models.ForeignKey(Survey, on_delete=models.PROTECT, related_name="exclusion_rules")
    kind = models.CharField(max_length=40)  # of `surveys.exclusion`
    limit = models.FloatField(null=True)  # what the kind compares with
    reason = models.CharField(max_length=200)
    made_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    made_at = models.DateTimeField(auto_now_add=True)
    lifted_at = models.DateTimeField(null=True)
    lifted_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")

    def __str__(self) -> str:
        return f"{self.kind} {self.limit}"


class Exclusion(models.Model):
    """A sitting left out by a rule; lifted again, the row stays."""

    rule = models.ForeignKey(ExclusionRule, on_delete=models.PROTECT, related_name="exclusions")
    sitting = models.ForeignKey(Sitting, on_delete=models.PROTECT, related_name="exclusions")
    at = models.DateTimeField(auto_now_add=True)
    lifted_at = models.DateTimeField(null=True)
    reason_before = models.CharField(max_length=200, blank=True)  # the sitting's, which lifting brings back
    standing_before = models.CharField(max_length=10, default=Sitting.Standing.COUNTED)  # excluded: by an import

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["rule", "sitting"], condition=Q(lifted_at__isnull=True), name="exclusion_one_live_per_rule"
            ),
            models.CheckConstraint(
                condition=Q(standing_before__in=["counted", "excluded"]), name="exclusion_known_standing_before"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.sitting_id} by {self.rule_id}"
