import uuid

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from corpus.drafts import Draft
from corpus.models import Answer
from scoring.models import Criterion, Judge, Round, Rubric
from studies.models import Study, User


class Rater(models.Model):
    """Whoever judges by hand in one study: a user of Luria, or somebody known only by a name in an imported file."""

    judge = models.OneToOneField(Judge, on_delete=models.PROTECT, related_name="rater")
    user = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="raters")
    study = models.ForeignKey(Study, on_delete=models.PROTECT, related_name="raters")
    pseudonym = models.CharField(max_length=20)  # the name in exports: R1, R2, …
    imported_name = models.CharField(max_length=200, blank=True)  # in a file; may be an address, so never exported
    is_active = models.BooleanField(default=True)
    # Named to adjudicate, and nothing more: offered no places and blinded by no open campaign until they begin to rate.
    only_decides = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "study"], name="rater_one_per_user_study"),
            models.UniqueConstraint(fields=["study", "pseudonym"], name="rater_unique_pseudonym"),
            models.UniqueConstraint(
                fields=["study", "imported_name"], condition=~Q(imported_name=""), name="rater_unique_imported_name"
            ),
            models.CheckConstraint(condition=Q(user__isnull=False) | ~Q(imported_name=""), name="rater_is_somebody"),
        ]

    def __str__(self) -> str:
        return self.pseudonym

    @property
    def name(self) -> str:
        """For researchers of the study only; exports and raters' pages have the pseudonym."""
        return self.user.username if self.user else self.imported_name


class Guideline(models.Model):
    """One version of the rules that a study's raters read. A campaign keeps the version it opened with."""

    study = models.ForeignKey(Study, on_delete=models.PROTECT, related_name="guidelines")
    rubric_slug = models.SlugField(max_length=60)  # of the rubric that it explains
    version = models.PositiveIntegerField(default=1)  # counted within the study
    text = models.TextField()  # markdown, shown without its HTML
    note = models.CharField(max_length=300, blank=True)  # what changed, in the author's words
    author = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["study", "version"], name="guideline_unique_version")]

    def __str__(self) -> str:
        return f"v{self.version}"


class Reference(models.Model):
    """An answer whose right values are known: raters train on it, or are checked by it without knowing."""

    class Purpose(models.TextChoices):
        TRAINING = "training", _("training")
        GOLD = "gold", _("gold")

    study = models.ForeignKey(Study, on_delete=models.PROTECT, related_name="references")
    rubric = models.ForeignKey(Rubric, on_delete=models.PROTECT, related_name="references")
    answer = models.ForeignKey(Answer, on_delete=models.PROTECT, related_name="references")
    purpose = models.CharField(max_length=10, choices=Purpose.choices)
    expected = models.JSONField()  # criterion code → value; all 0 where not_attempt
    not_attempt = models.BooleanField(default=False)
    explanation = models.TextField(blank=True)  # shown after the answer where it trains
    is_active = models.BooleanField(default=True)  # campaigns that open later leave an inactive one out
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["rubric", "answer"], name="reference_one_per_answer"),
            models.CheckConstraint(condition=Q(purpose__in=["training", "gold"]), name="reference_known_purpose"),
        ]

    def __str__(self) -> str:
        return f"{self.purpose} {self.answer_id}"


class Campaign(models.Model):
    class State(models.TextChoices):
        OPEN = "open", _("open")
        CLOSED = "closed", _("closed")

    class Identical(models.TextChoices):
        ONCE = "once", _("judged once, the judgement shared")
        SEPARATELY = "separately", _("each judged separately")

    # Purpose *rating*, or *imported* where the judgements came from a file: such a campaign is closed from the start.
    round = models.OneToOneField(Round, on_delete=models.PROTECT, related_name="campaign")
    # What raters do beside rating has rounds of its own, made when the campaign has such answers.
    training_round = models.OneToOneField(Round, on_delete=models.PROTECT, null=True, related_name="+")
    gold_round = models.OneToOneField(Round, on_delete=models.PROTECT, null=True, related_name="+")
    repeat_round = models.OneToOneField(Round, on_delete=models.PROTECT, null=True, related_name="+")
    study = models.ForeignKey(Study, on_delete=models.PROTECT, related_name="campaigns")
    title = models.CharField(max_length=200)
    state = models.CharField(max_length=10, choices=State.choices, default=State.OPEN)
    criteria = models.ManyToManyField(Criterion, related_name="+")  # those of the rubric's judged ones that are asked
    raters_per_answer = models.PositiveSmallIntegerField()
    identical = models.CharField(max_length=10, choices=Identical.choices, default=Identical.SEPARATELY)
    seed = models.PositiveIntegerField()  # of the sample, the order and the repeats
    with_refusals = models.BooleanField(default=False)
    selection = models.JSONField(default=dict)  # what was asked for at the opening; the items are what it gave
    deadline = models.DateTimeField(null=True)  # raters are told; nothing closes by itself
    repeat_distance = models.PositiveIntegerField(default=0)  # least number of other answers before a planned repeat
    gold_every = models.PositiveSmallIntegerField(default=0)  # a gold answer after about so many; 0: none
    n_items = models.PositiveIntegerField(default=0)  # that raters judge; those removed since the opening are not in it
    n_places = models.PositiveIntegerField(default=0)  # of purpose rating: judgements asked for
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

    @property
    def is_of_doubt(self) -> bool:
        """It was opened for what automatic judges doubted: no random sample, so nothing on it stands for the study."""
        return bool(self.selection.get("asked", {}).get("doubt"))

    @property
    def came_with_release(self) -> bool:
        return self.selection.get("imported") == ["release"]

    @property
    def is_overdue(self) -> bool:
        """Its deadline has passed, and nobody has closed it or given it another."""
        return self.state == self.State.OPEN and self.deadline is not None and self.deadline <= timezone.now()


class Purpose(models.TextChoices):
    """Why an answer lies before a rater. Rating alone makes labels and alpha; a rater sees only what trains."""

    RATING = "rating", _("rating")
    REPEAT = "repeat", _("repeat")
    TRAINING = "training", _("training")
    GOLD = "gold", _("gold")


class Item(models.Model):
    """An answer as raters see it, fixed when the campaign opened: nothing here says who gave it."""

    uuid = models.UUIDField(default=uuid.uuid4)  # in the adjudicator's address; says nothing about the answer
    campaign = models.ForeignKey(Campaign, on_delete=models.PROTECT, related_name="items")
    answer = models.ForeignKey(Answer, on_delete=models.PROTECT, related_name="items")
    purpose = models.CharField(max_length=10, choices=Purpose.choices, default=Purpose.RATING)
    position = models.PositiveIntegerField()
    stimulus_text = models.TextField()
    display_text = models.TextField()
    language = models.CharField(max_length=10, default="ru")  # BCP 47, of both texts
    is_refusal = models.BooleanField(default=False)  # a label by rule: 0, however raters vote
    # The item with the same text at which this one is judged: it has no places of its own and shares the judgements.
    same_as = models.ForeignKey("self", on_delete=models.PROTECT, null=True, related_name="sharing")
    is_repeated = models.BooleanField(default=False)  # whoever judges it will be asked a second time
    expected = models.JSONField(null=True)  # of training and gold: criterion code → right value
    expected_not_attempt = models.BooleanField(default=False)
    explanation = models.TextField(blank=True)
    # Its author has withdrawn the answer: nothing is left to be judged. A judge is told so, and not by whom or why.
    removed_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["uuid"], name="item_unique_uuid"),
            models.UniqueConstraint(fields=["campaign", "answer"], name="item_one_per_answer"),
            models.UniqueConstraint(fields=["campaign", "position"], name="item_unique_position"),
            models.CheckConstraint(
                condition=Q(removed_at__isnull=True) | Q(display_text="", explanation=""),
                name="item_removed_has_no_text",
            ),
            models.CheckConstraint(
                condition=Q(purpose="rating", expected__isnull=True)
                | Q(purpose__in=["training", "gold"], expected__isnull=False, same_as__isnull=True, is_repeated=False),
                name="item_reference_has_values",
            ),
        ]
        indexes = [
            models.Index(fields=["campaign", "purpose"], condition=~Q(purpose="rating"), name="item_reference"),
        ]

    def __str__(self) -> str:
        return self.display_text


class Seat(models.Model):
    """One rater at one campaign: what they have done, counted as they do it, so that no page counts places.

    Its row is what a rater's writes lock first.
    """

    campaign = models.ForeignKey(Campaign, on_delete=models.PROTECT, related_name="seats")
    rater = models.ForeignKey(Rater, on_delete=models.PROTECT, related_name="seats")
    done = models.PositiveIntegerField(default=0)  # places of purpose rating, judged once or more
    checks = models.PositiveIntegerField(default=0)  # places of the other purposes, judged
    seconds = models.FloatField(default=0)  # spent on `timed` places, each counted for at most five minutes
    timed = models.PositiveIntegerField(default=0)
    revision = models.PositiveIntegerField(default=0)  # grows with whatever changes a vote of this rater here
    cursor = models.BigIntegerField(default=0)  # the last item handed out for rating: most work in order, from here on
    joined_at = models.DateTimeField(auto_now_add=True)
    active_at = models.DateTimeField(default=timezone.now)  # of the last thing done here: what is held longer may go on

    class Meta:
        constraints = [models.UniqueConstraint(fields=["campaign", "rater"], name="seat_one_per_campaign_rater")]

    def __str__(self) -> str:
        return f"{self.rater_id} at {self.campaign_id}"


class Place(models.Model):
    """A place for a rater at an item.

    Those of purpose *rating* all exist from the start, k for each item that is judged, so there can never be more. The
    others are made when they are handed out.
    """

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
    purpose = models.CharField(max_length=10, choices=Purpose.choices, default=Purpose.RATING)
    number = models.PositiveSmallIntegerField()  # of k; 0 where the purpose is not rating
    state = models.CharField(max_length=10, choices=State.choices, default=State.FREE)
    rater = models.ForeignKey(Rater, on_delete=models.PROTECT, null=True, related_name="places")
    held_at = models.DateTimeField(null=True)
    done_at = models.DateTimeField(null=True)
    ordinal = models.PositiveIntegerField(null=True)  # how many places of purpose rating its rater had judged with it
    version = models.PositiveIntegerField(default=0)  # grows with each save, so that a stale tab is noticed
    seconds = models.FloatField(null=True)  # on the screen until the first save, as the page measured it
    is_flagged = models.BooleanField(default=False)  # the rater wants the adjudicator to look at it
    comment = models.TextField(blank=True)  # the rater's, for researchers and the adjudicator

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["uuid"], name="place_unique_uuid"),
            models.UniqueConstraint(
                fields=["item", "number"], condition=Q(purpose="rating"), name="place_unique_number"
            ),
            # In this order, so that the index also finds a rater's last item.
            models.UniqueConstraint(fields=["rater", "item", "purpose"], name="place_one_per_rater_item"),
            models.CheckConstraint(
                condition=Q(state="free", rater__isnull=True)
                | Q(state__in=["held", "done", "withdrawn"], rater__isnull=False)
                | Q(state="void"),
                name="place_taken_has_rater",
            ),
            models.CheckConstraint(
                condition=Q(purpose="rating", number__gte=1) | (~Q(purpose="rating") & Q(number=0)),
                name="place_rating_is_numbered",
            ),
        ]
        indexes = [
            # What the queue asks for, in its order; with old statistics PostgreSQL would otherwise sort all places.
            models.Index(fields=["campaign", "item", "number"], condition=Q(state="free"), name="place_free_in_order"),
            models.Index(fields=["campaign", "rater", "done_at"], name="place_by_rater"),
            models.Index(fields=["rater"], condition=Q(state="held"), name="place_held_by_rater"),
        ]

    def __str__(self) -> str:
        return f"{self.item_id}/{self.number} {self.state}"


class Skip(models.Model):
    """A rater passed an answer by and said why. The place went back to the others; this rater is not asked again."""

    campaign = models.ForeignKey(Campaign, on_delete=models.PROTECT, related_name="skips")
    item = models.ForeignKey(Item, on_delete=models.PROTECT, related_name="skips")
    rater = models.ForeignKey(Rater, on_delete=models.PROTECT, related_name="skips")
    place = models.ForeignKey(Place, on_delete=models.PROTECT, related_name="skips")
    reason = models.TextField()
    made_at = models.DateTimeField(auto_now_add=True)
    undone_at = models.DateTimeField(null=True)  # the rater came back and judged it after all

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["rater", "item"], condition=Q(undone_at__isnull=True), name="skip_one_live_per_rater_item"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.rater_id} passed {self.item_id}"


class LabelVersion(models.Model):
    """The labels of a closed campaign at one moment. Version 1 is that of the closing; each later change adds one.

    `sha256` of version 1 is over the campaign's policy and votes in their canonical form; that of a later one is over
    the digest before it and `change`. So one digest stands for the whole history, and a change costs one row.
    """

    campaign = models.ForeignKey(Campaign, on_delete=models.PROTECT, related_name="label_versions")
    version = models.PositiveIntegerField()
    policy = models.JSONField()  # how votes become labels, the guideline's version, counts of votes and labels
    change = models.JSONField(default=dict)  # what differs from the version before; empty for the first
    sha256 = models.CharField(max_length=64)
    actor = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    made_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["campaign", "version"], name="label_version_unique")]

    def __str__(self) -> str:
        return f"v{self.version}"


class Computed(models.Model):
    """Figures of a campaign that take long to compute, with the state of the votes that they were computed from."""

    campaign = models.ForeignKey(Campaign, on_delete=models.PROTECT, related_name="computed")
    name = models.SlugField(max_length=40)
    state = models.CharField(max_length=100)  # compared with the present one: a page says if its figures are older
    body = models.JSONField()
    computed_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["campaign", "name"], name="computed_one_per_name")]

    def __str__(self) -> str:
        return self.name


class JudgementImport(models.Model):
    """One import of judgements made in another tool. Its votes are those of its campaign."""

    campaign = models.OneToOneField(Campaign, on_delete=models.PROTECT, related_name="judgement_import")
    format = models.CharField(max_length=40)
    settings = models.JSONField(default=dict)
    files = models.JSONField(default=list)  # name, size and sha256 of each; the files themselves are not kept
    digest = models.CharField(max_length=64)  # of what was read: the same import twice is recognised
    counts = models.JSONField(default=dict)
    actor = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    made_at = models.DateTimeField(auto_now_add=True)
    draft_key = models.UUIDField(null=True)  # of the draft that was confirmed: pressed twice, it imports once

    class Meta:
        constraints = [models.UniqueConstraint(fields=["draft_key"], name="judgementimport_once_per_draft")]

    def __str__(self) -> str:
        return f"{self.format} {self.pk}"


class JudgementDraft(Draft):
    """Files of judgements that were sent and not yet imported. Their bytes lie in DATA_DIR until then, or for a day."""

    FOLDER = "judgements"

    study = models.ForeignKey(Study, on_delete=models.PROTECT, related_name="judgement_drafts")
    files = models.JSONField()  # name, bytes and sha256 of each, in the order in which they were sent
    format = models.CharField(max_length=40, blank=True)  # empty: seen from each file

    class Meta:
        constraints = [models.UniqueConstraint(fields=["key"], name="judgementdraft_unique_key")]

    def __str__(self) -> str:
        return str(self.key)
