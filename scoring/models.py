from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _

from corpus.models import Answer, Respondent, Stimulus
from studies.models import Study, User


class Rubric(models.Model):
    slug = models.SlugField(max_length=60)
    version = models.PositiveIntegerField(default=1)
    title = models.CharField(max_length=200)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["slug", "version"], name="rubric_unique_slug_version")]

    def __str__(self) -> str:
        return f"{self.title} v{self.version}"


class Criterion(models.Model):
    class Kind(models.TextChoices):
        JUDGED = "judged", _("judged")
        RULE = "rule", _("counted by rule")

    rubric = models.ForeignKey(Rubric, on_delete=models.PROTECT, related_name="criteria")
    position = models.PositiveSmallIntegerField()
    code = models.SlugField(max_length=30)
    question_ru = models.CharField(max_length=200)
    question_en = models.CharField(max_length=200)
    kind = models.CharField(max_length=10, choices=Kind.choices)
    scale = models.JSONField()  # the allowed values, best first: [1, 0] or [1, 0.5, 0.25, 0]
    in_score = models.BooleanField(default=True)

    class Meta:
        verbose_name_plural = "criteria"
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(fields=["rubric", "code"], name="criterion_unique_code"),
            models.UniqueConstraint(fields=["rubric", "position"], name="criterion_unique_position"),
            models.CheckConstraint(condition=Q(kind__in=["judged", "rule"]), name="criterion_known_kind"),
        ]

    def __str__(self) -> str:
        return self.code

    @property
    def question(self) -> str:
        return self.question_ru if get_language() == "ru" else self.question_en


class Judge(models.Model):
    """Whoever or whatever judges. What kind of judge, the layer that made it knows (a 1:1 row of its own)."""

    class Kind(models.TextChoices):
        RATER = "rater", _("rater")
        RULE = "rule", _("rule")
        CLASSIFIER = "classifier", _("classifier")
        MODEL = "model", _("model judge")

    kind = models.CharField(max_length=10, choices=Kind.choices)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(kind__in=["rater", "rule", "classifier", "model"]), name="judge_known_kind"
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.pk}"


class Rule(models.Model):
    judge = models.OneToOneField(Judge, on_delete=models.PROTECT, related_name="rule")
    code = models.SlugField(max_length=30)
    version = models.PositiveIntegerField(default=1)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["code", "version"], name="rule_unique_code_version")]

    def __str__(self) -> str:
        return f"{self.code} v{self.version}"


class AcceptedForm(models.Model):
    """What a given word of a stimulus may be beside its own forms, for the vocabulary match.

    Never rewritten: a form is taken back by a date, so that it is known by which list an answer was compared when.
    """

    stimulus = models.ForeignKey(Stimulus, on_delete=models.PROTECT, related_name="accepted_forms")
    lemma = models.CharField(max_length=100)  # the given word
    form = models.CharField(max_length=100)  # as it stands; a dictionary form stands for all its forms
    version = models.PositiveIntegerField()  # the how manieth change of the stimulus's list added it
    made_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    made_at = models.DateTimeField(default=timezone.now, editable=False)
    retired_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["stimulus", "lemma", "form"],
                condition=Q(retired_at__isnull=True),
                name="acceptedform_one_live",
            ),
            models.UniqueConstraint(fields=["stimulus", "version"], name="acceptedform_unique_version"),
            models.CheckConstraint(
                condition=~Q(lemma="") & ~Q(form="") & Q(version__gte=1), name="acceptedform_says_something"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.lemma} → {self.form}"


class Round(models.Model):
    class Purpose(models.TextChoices):
        RATING = "rating", _("rating")
        REPEAT = "repeat", _("repeat")
        TRAINING = "training", _("training")
        GOLD = "gold", _("gold")
        ADJUDICATION = "adjudication", _("adjudication")
        AUTOMATIC = "automatic", _("automatic")
        IMPORTED = "imported", _("imported")

    study = models.ForeignKey(Study, on_delete=models.PROTECT, related_name="rounds")
    rubric = models.ForeignKey(Rubric, on_delete=models.PROTECT, related_name="rounds")
    purpose = models.CharField(max_length=15, choices=Purpose.choices)
    guideline_version = models.PositiveIntegerField(null=True)
    # An adjudication decides what this rating round left undecided.
    adjudicates = models.OneToOneField("self", on_delete=models.PROTECT, null=True, related_name="adjudication")
    # Of an automatic round: whose judgements alone it holds. Null: the counting rules', one round for all of them.
    judge = models.ForeignKey(Judge, on_delete=models.PROTECT, null=True, related_name="rounds")
    created_at = models.DateTimeField(auto_now_add=True)
    closed_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(purpose="adjudication", adjudicates__isnull=False)
                | (~Q(purpose="adjudication") & Q(adjudicates__isnull=True)),
                name="round_adjudicates_a_round",
            ),
            models.UniqueConstraint(
                fields=["study", "rubric"],
                condition=Q(purpose="automatic", judge__isnull=True),
                name="round_one_of_rules_per_study_rubric",
            ),
            models.CheckConstraint(
                condition=Q(judge__isnull=True) | Q(purpose="automatic"), name="round_of_one_judge_is_automatic"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.purpose} {self.pk}"


class Judgement(models.Model):
    """One judge's value for one answer on one criterion in one round. A change retracts and adds."""

    round = models.ForeignKey(Round, on_delete=models.PROTECT, related_name="judgements")
    answer = models.ForeignKey(Answer, on_delete=models.PROTECT, related_name="judgements")
    criterion = models.ForeignKey(Criterion, on_delete=models.PROTECT, related_name="judgements")
    judge = models.ForeignKey(Judge, on_delete=models.PROTECT, related_name="judgements")
    value = models.FloatField()
    not_attempt = models.BooleanField(default=False)  # the rater saw no attempt at the task: 0 everywhere
    confidence = models.FloatField(null=True)
    reason = models.TextField(blank=True)
    # The judgement of another answer with the same text, of which this is a copy: the judge gave one vote, not two.
    shared_from = models.ForeignKey("self", on_delete=models.PROTECT, null=True, related_name="shares", db_index=False)
    made_at = models.DateTimeField(default=timezone.now, editable=False)  # of an imported one, as its file says
    retracted_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["round", "answer", "criterion", "judge"],
                condition=Q(retracted_at__isnull=True),
                name="judgement_one_live",
            ),
            models.CheckConstraint(condition=Q(not_attempt=False) | Q(value=0), name="judgement_not_attempt_is_zero"),
            models.CheckConstraint(
                condition=Q(confidence__isnull=True) | Q(confidence__gte=0, confidence__lte=1),
                name="judgement_confidence_is_a_share",
            ),
        ]
        indexes = [
            models.Index(
                fields=["answer", "criterion"],
                condition=Q(retracted_at__isnull=True),
                name="judgement_live_by_answer",
            )
        ]

    def __str__(self) -> str:
        return f"{self.answer_id} {self.criterion_id}: {self.value}"


class Split(models.Model):
    """Which respondents classifiers train on, and on whose answers every judge of a comparison is measured."""

    study = models.ForeignKey(Study, on_delete=models.PROTECT, related_name="splits")
    seed = models.PositiveIntegerField()
    fraction = models.FloatField(default=0.7)  # of the respondents, that train
    people_hash = models.CharField(max_length=64)  # of who was there, and who is one person: see scoring.splitting
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["study", "seed", "fraction", "people_hash"], name="split_once_per_people"),
            models.CheckConstraint(condition=Q(fraction__gt=0, fraction__lt=1), name="split_fraction_is_a_share"),
        ]

    def __str__(self) -> str:
        return f"split {self.pk} (seed {self.seed})"


class SplitSide(models.Model):
    """The side of one respondent. Never changes; whoever comes later is on neither side."""

    split = models.ForeignKey(Split, on_delete=models.PROTECT, related_name="sides")
    respondent = models.ForeignKey(Respondent, on_delete=models.PROTECT, related_name="split_sides")
    trains = models.BooleanField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["split", "respondent"], name="splitside_one_per_respondent"),
        ]

    def __str__(self) -> str:
        return f"{self.respondent_id} {'trains' if self.trains else 'tests'}"


class JobState(models.TextChoices):
    """Of work for queue `ml`."""

    QUEUED = "queued", _("waiting for a worker")
    RUNNING = "running", _("running")
    FINISHED = "finished", _("finished")
    FAILED = "failed", _("failed")
    CANCELLED = "cancelled", _("cancelled")


UNFINISHED = (JobState.QUEUED, JobState.RUNNING)


class Job(models.Model):
    """Work that a worker claims, shows the progress of, and can be killed in the middle of."""

    state = models.CharField(max_length=10, choices=JobState.choices, default=JobState.QUEUED)
    attempt = models.PositiveIntegerField(default=0)  # how often it was begun; an older attempt writes nothing more
    done = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(default=0)
    problem = models.CharField(max_length=40, blank=True)  # why it failed: a code of scoring.classifiers.problems
    problem_detail = models.JSONField(default=dict)
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    deaths = models.PositiveSmallIntegerField(default=0)  # how often in a row a worker died soon after it had begun

    class Meta:
        abstract = True


class Classifier(Job):
    """A judge that learned from labels (or came trained). Its weights lie in CLASSIFIERS_DIR under its number.

    One that came with a release has judged, and cannot judge any more: `weights_hash` says which weights it had.
    """

    class Recipe(models.TextChoices):
        BASELINE = "baseline", _("baseline: morphology and letters")
        TRANSFORMER = "transformer", _("transformer, one model per criterion")
        SHARED = "shared", _("transformer, one encoder for all criteria")
        ACCEPTABILITY = "acceptability", _("acceptability model, as it is")

    judge = models.OneToOneField(Judge, on_delete=models.PROTECT, related_name="classifier")
    study = models.ForeignKey(Study, on_delete=models.PROTECT, related_name="classifiers")
    rubric = models.ForeignKey(Rubric, on_delete=models.PROTECT, related_name="classifiers")
    criteria = models.ManyToManyField(Criterion, related_name="classifiers")
    split = models.ForeignKey(Split, on_delete=models.PROTECT, related_name="classifiers")
    title = models.CharField(max_length=200)
    recipe = models.CharField(max_length=20, choices=Recipe.choices)
    base_model = models.CharField(max_length=300, blank=True)
    parameters = models.JSONField(default=dict)
    data_hash = models.CharField(max_length=64, blank=True)  # of what it learned from
    n_train = models.PositiveIntegerField(default=0)
    metrics = models.JSONField(default=dict)  # of the training; figures on test answers are Evaluations
    weights_hash = models.CharField(max_length=64, blank=True)
    withdrawn = models.PositiveIntegerField(default=0)  # people it learned from who have taken their answers back since
    # Since when it judges new answers as they come; null: only when asked. Then why it was switched off, if by itself.
    arrival_since = models.DateTimeField(null=True)
    arrival_problem = models.CharField(max_length=40, blank=True)  # a code of scoring.classifiers.problems
    arrival_problem_detail = models.JSONField(default=dict)
    imported = models.BooleanField(default=False)  # with its judgements, from a release; its weights are not here

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(state__in=JobState.values), name="classifier_known_state"),
            models.CheckConstraint(
                condition=Q(imported=False) | Q(state="finished"), name="classifier_imported_is_done"
            ),
            models.CheckConstraint(
                condition=Q(recipe__in=["baseline", "transformer", "shared", "acceptability"]),
                name="classifier_known_recipe",
            ),
            models.CheckConstraint(
                condition=~Q(state="finished") | (~Q(weights_hash="") & Q(finished_at__isnull=False)),
                name="classifier_finished_has_weights",
            ),
            models.CheckConstraint(condition=~Q(state="failed") | ~Q(problem=""), name="classifier_failed_says_why"),
            models.CheckConstraint(
                condition=Q(arrival_since__isnull=True) | Q(state="finished", arrival_problem=""),
                name="classifier_on_arrival_is_finished",
            ),
        ]

    def __str__(self) -> str:
        return self.title


class Evaluation(models.Model):
    """What one judge's values are worth on one criterion, on one set of test answers. Append-only."""

    class Subset(models.TextChoices):
        ALL = "all", _("all test answers that are no refusals")
        WITH_REFUSALS = "with_refusals", _("with refusals, 0 by rule")
        UNSEEN = "unseen", _("texts that nobody in training wrote")
        HELD_OUT = "held_out", _("tasks held out of training")

    judge = models.ForeignKey(Judge, on_delete=models.PROTECT, related_name="evaluations")
    split = models.ForeignKey(Split, on_delete=models.PROTECT, related_name="evaluations")
    criterion = models.ForeignKey(Criterion, on_delete=models.PROTECT, related_name="evaluations")
    subset = models.CharField(max_length=20, choices=Subset.choices)
    data_hash = models.CharField(max_length=64)  # of the answers, their labels and what the judge said
    n_answers = models.PositiveIntegerField()
    n_respondents = models.PositiveIntegerField()
    metrics = models.JSONField()  # scoring.evaluation.Report
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["judge", "split", "criterion", "subset", "data_hash"], name="evaluation_once_per_data"
            ),
            models.CheckConstraint(
                condition=Q(subset__in=["all", "with_refusals", "unseen", "held_out"]), name="evaluation_known_subset"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.judge_id} {self.criterion_id} {self.subset}"


class Application(Job):
    """A classifier judges the answers of its study that it has not judged as they stand."""

    classifier = models.ForeignKey(Classifier, on_delete=models.PROTECT, related_name="applications")
    round = models.ForeignKey(Round, on_delete=models.PROTECT, related_name="applications")
    truncated = models.PositiveIntegerField(default=0)  # answers longer than the model reads: judged by their beginning
    on_arrival = models.BooleanField(default=False)  # nobody asked for it but the wish to judge answers as they come

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(state__in=JobState.values), name="application_known_state"),
            models.CheckConstraint(condition=~Q(state="failed") | ~Q(problem=""), name="application_failed_says_why"),
            # Two at once would both find the same gaps.
            models.UniqueConstraint(
                fields=["classifier"],
                condition=Q(state__in=["queued", "running"]),
                name="application_one_unfinished",
            ),
        ]

    def __str__(self) -> str:
        return f"application {self.pk} of {self.classifier_id}"
