import uuid

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from corpus.models import Answer
from scoring.models import Judge, Round
from studies.models import Study, User


class Rater(models.Model):
    judge = models.OneToOneField(Judge, on_delete=models.PROTECT, related_name="rater")
    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="raters")
    study = models.ForeignKey(Study, on_delete=models.PROTECT, related_name="raters")
    pseudonym = models.CharField(max_length=20)  # the name in exports: R1, R2, …
    is_active = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "study"], name="rater_one_per_user_study"),
            models.UniqueConstraint(fields=["study", "pseudonym"], name="rater_unique_pseudonym"),
        ]

    def __str__(self) -> str:
        return self.pseudonym


class Guideline(models.Model):
    study = models.ForeignKey(Study, on_delete=models.PROTECT, related_name="guidelines")
    version = models.PositiveIntegerField(default=1)
    text = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["study", "version"], name="guideline_unique_version")]

    def __str__(self) -> str:
        return f"v{self.version}"


class Campaign(models.Model):
    class State(models.TextChoices):
        OPEN = "open", _("open")
        CLOSED = "closed", _("closed")

    round = models.OneToOneField(Round, on_delete=models.PROTECT, related_name="campaign")
    study = models.ForeignKey(Study, on_delete=models.PROTECT, related_name="campaigns")
    title = models.CharField(max_length=200)
    state = models.CharField(max_length=10, choices=State.choices, default=State.OPEN)
    raters_per_answer = models.PositiveSmallIntegerField()
    seed = models.PositiveIntegerField()  # of the shuffle that set the order of the items
    with_refusals = models.BooleanField(default=False)
    adjudicator = models.ForeignKey(Rater, on_delete=models.PROTECT, null=True, related_name="adjudicates")
    opened_at = models.DateTimeField(auto_now_add=True)
    closed_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(raters_per_answer__gte=1), name="campaign_at_least_one_rater"),
            # A double click on "open" must not freeze the same answers twice.
            models.UniqueConstraint(
                fields=["study", "title"], condition=Q(state="open"), name="campaign_one_open_per_title"
            ),
            models.CheckConstraint(
                condition=Q(state="open", closed_at__isnull=True) | Q(state="closed", closed_at__isnull=False),
                name="campaign_closed_has_time",
            ),
        ]

    def __str__(self) -> str:
        return self.title


class Item(models.Model):
    """An answer as raters see it, fixed when the campaign opened: nothing here says who gave it."""

    uuid = models.UUIDField(default=uuid.uuid4)  # in the adjudicator's address; says nothing about the answer
    campaign = models.ForeignKey(Campaign, on_delete=models.PROTECT, related_name="items")
    answer = models.ForeignKey(Answer, on_delete=models.PROTECT, related_name="items")
    position = models.PositiveIntegerField()
    stimulus_text = models.TextField()
    display_text = models.TextField()
    language = models.CharField(max_length=10, default="ru")  # BCP 47, of both texts
    is_refusal = models.BooleanField(default=False)  # a label by rule: 0, however raters vote
    # Its author has withdrawn the answer: nothing is left to be judged. A judge is told so, and not by whom or why.
    removed_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["uuid"], name="item_unique_uuid"),
            models.UniqueConstraint(fields=["campaign", "answer"], name="item_one_per_answer"),
            models.UniqueConstraint(fields=["campaign", "position"], name="item_unique_position"),
            models.CheckConstraint(
                condition=Q(removed_at__isnull=True) | Q(display_text=""), name="item_removed_has_no_text"
            ),
        ]

    def __str__(self) -> str:
        return self.display_text


class Place(models.Model):
    """One of the k places for a rater at an item. All exist from the start, so there can never be more."""

    class State(models.TextChoices):
        FREE = "free", _("free")
        HELD = "held", _("held")
        DONE = "done", _("done")
        # The label was taken back. The place stays with its rater, who is not asked again but may judge anew.
        WITHDRAWN = "withdrawn", _("withdrawn")
        # The answer was removed before it was judged here. Nobody is asked; who had it is kept, to be told.
        VOID = "void", _("void")

    uuid = models.UUIDField(default=uuid.uuid4)
    item = models.ForeignKey(Item, on_delete=models.PROTECT, related_name="places")
    campaign = models.ForeignKey(Campaign, on_delete=models.PROTECT, related_name="places")
    number = models.PositiveSmallIntegerField()
    state = models.CharField(max_length=10, choices=State.choices, default=State.FREE)
    rater = models.ForeignKey(Rater, on_delete=models.PROTECT, null=True, related_name="places")
    held_at = models.DateTimeField(null=True)
    done_at = models.DateTimeField(null=True)
    version = models.PositiveIntegerField(default=0)  # grows with each save, so that a stale tab is noticed

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["uuid"], name="place_unique_uuid"),
            models.UniqueConstraint(fields=["item", "number"], name="place_unique_number"),
            # In this order, so that the index also finds a rater's last item.
            models.UniqueConstraint(fields=["rater", "item"], name="place_one_per_rater_item"),
            models.CheckConstraint(
                condition=Q(state="free", rater__isnull=True)
                | Q(state__in=["held", "done", "withdrawn"], rater__isnull=False)
                | Q(state="void"),
                name="place_taken_has_rater",
            ),
        ]
        indexes = [
            # What place_next asks for, in its order; with old statistics PostgreSQL would otherwise sort all places.
            models.Index(fields=["campaign", "item", "number"], condition=Q(state="free"), name="place_free_in_order"),
            models.Index(fields=["campaign", "rater", "done_at"], name="place_by_rater"),
            models.Index(fields=["rater"], condition=Q(state="held"), name="place_held_by_rater"),
        ]

    def __str__(self) -> str:
        return f"{self.item_id}/{self.number} {self.state}"
