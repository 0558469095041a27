from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _

from corpus.models import Answer
from studies.models import Study


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
