"""What the pages of judgings show."""

from dataclasses import dataclass, field

from django.db.models import Case, Count, F, Min, Q, QuerySet, Value, When
from django.db.models.functions import Coalesce
from django.utils import timezone

from corpus.models import Respondent
from llmruns.accounts import Account, judging_account
from llmruns.models import Call, Judging, JudgingItem, ModelJudge
from llmruns.wording import kind_words
from studies.models import Study

# An answer that shares its text goes by the one that is asked, unless it has left by itself.
STATE = Case(
    When(state=JudgingItem.State.REMOVED, then=Value(JudgingItem.State.REMOVED)),
    default=Coalesce(F("same_as__state"), F("state")),
)


@dataclass(frozen=True)
class JudgingRow:
    judging: Judging
    answers: int
    settled: int


def judges_brought(study: Study) -> int:
    """How many model judges came with a release: with judgements and without the work that made them. One query."""
    found = ModelJudge.objects.filter(judge__judgements__round__study=study, judgings=None)
    return found.distinct().count()


def judging_rows(study: Study) -> list[JudgingRow]:
    """Newest first. One query."""
    settled = Q(shown__in=[JudgingItem.State.JUDGED, JudgingItem.State.NO_VERDICT, JudgingItem.State.REMOVED])
    counts = {
        judging_id: (answers, done)
        for judging_id, answers, done in JudgingItem.objects.filter(judging__round__study=study)
        .annotate(shown=STATE)
        .values("judging_id")
        .annotate(answers=Count("pk"), done=Count("pk", filter=settled))
        .values_list("judging_id", "answers", "done")
    }
    return [JudgingRow(judging, *counts.get(judging.pk, (0, 0))) for judging in judgings_of(study)]


def judgings_of(study: Study) -> QuerySet[Judging]:
    return (
        Judging.objects.filter(round__study=study)
        .select_related("model_judge__config", "model_judge__prompt", "model_judge__rubric", "round__study")
        .order_by("-pk")
    )


def judging_counts(judgings: QuerySet[Judging]) -> QuerySet[Judging]:
    """With `n_answers` and `n_settled`. No query of its own."""
    shown = Coalesce(F("items__same_as__state"), F("items__state"))
    left = Q(items__state=JudgingItem.State.REMOVED)
    settled = left | Q(shown_state__in=[JudgingItem.State.JUDGED, JudgingItem.State.NO_VERDICT])
    return judgings.alias(shown_state=shown).annotate(
        n_answers=Count("items"), n_settled=Count("items", filter=settled)
    )


@dataclass
class JudgingProgress:
    answers: int = 0
    asked: int = 0  # different texts
    judged: int = 0
    no_verdict: int = 0
    given_up: int = 0
    removed: int = 0
    waiting: int = 0  # for a limit or after a failure
    waits_for: list[str] = field(default_factory=list)
    in_flight: int = 0
    failures: int = 0
    lost: int = 0
    bad_replies: int = 0
    own: int = 0  # answers that the judge's own configuration has given
    own_judged: int = 0
    account: Account = field(default_factory=Account)

    @property
    def settled(self) -> int:
        return self.judged + self.no_verdict + self.removed

    @property
    def percent(self) -> int:
        return 100 * self.settled // self.answers if self.answers else 0


def judging_progress(judging: Judging) -> JudgingProgress:
    """Four queries."""
    items = JudgingItem.objects.filter(judging=judging).annotate(shown=STATE)
    asked = Q(same_as__isnull=True) & ~Q(state=JudgingItem.State.REMOVED)
    own = Q(answer__sitting__respondent=judging.model_judge.config.respondent_id)
    now = timezone.now()
    counts = items.aggregate(
        answers=Count("pk"),
        asked=Count("pk", filter=asked),
        judged=Count("pk", filter=Q(shown=JudgingItem.State.JUDGED)),
        no_verdict=Count("pk", filter=Q(shown=JudgingItem.State.NO_VERDICT)),
        given_up=Count("pk", filter=Q(shown=JudgingItem.State.GIVEN_UP)),
        removed=Count("pk", filter=Q(shown=JudgingItem.State.REMOVED)),
        waiting=Count("pk", filter=asked & Q(state=JudgingItem.State.TODO, due_at__gt=now)),
        own=Count("pk", filter=own),
        own_judged=Count("pk", filter=own & Q(shown=JudgingItem.State.JUDGED)),
    )
    waits_for = (
        items.filter(asked, state=JudgingItem.State.TODO, due_at__gt=now)
        .exclude(problem="")
        .values_list("problem", flat=True)
        .annotate(first=Min("pk"))
        .order_by("problem")
    )
    calls = Call.objects.filter(judging=judging).aggregate(
        in_flight=Count("pk", filter=Q(state=Call.State.IN_FLIGHT)),
        failures=Count("pk", filter=Q(state=Call.State.FAILED)),
        lost=Count("pk", filter=Q(state=Call.State.LOST)),
        bad_replies=Count("pk", filter=Q(state=Call.State.BAD_REPLY)),
    )
    words = [kind_words(kind) for kind in dict.fromkeys(waits_for)]
    return JudgingProgress(**counts, **calls, waits_for=words, account=judging_account(judging))


def people_and_models(judging: Judging) -> tuple[int, int]:
    """How many of the answers people and models have given. One query."""
    counts = JudgingItem.objects.filter(judging=judging).aggregate(
        people=Count("pk", filter=Q(answer__sitting__respondent__kind=Respondent.Kind.HUMAN)),
        models=Count("pk", filter=Q(answer__sitting__respondent__kind=Respondent.Kind.MODEL)),
    )
    return counts["people"], counts["models"]
