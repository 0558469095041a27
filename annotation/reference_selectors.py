"""Reads for the pages of references: the answers of a study as texts, and those whose right values are known.

Who gave an answer is read nowhere here: a sitting narrows what can be chosen and is never shown.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from annotation.models import Item, Purpose, Reference
from corpus.display import display_text
from corpus.models import Answer, Instrument, Sitting, Stimulus
from corpus.tokens import is_refusal
from scoring.models import Criterion, Judgement, Round, Rubric
from studies.models import Study

CHECKS = (Purpose.TRAINING, Purpose.GOLD)
LABELLING = (Round.Purpose.RATING, Round.Purpose.IMPORTED, Round.Purpose.ADJUDICATION)


def criteria_of(rubric: Rubric) -> list[Criterion]:
    """What a reference says the right value of. One query."""
    return list(rubric.criteria.filter(kind=Criterion.Kind.JUDGED).order_by("position"))


# --- answers that can become references --------------------------------------------------------------------------


def answers_usable(study: Study) -> QuerySet[Answer]:
    """Given answers of counted sittings that can no longer change, as a campaign could hold them. No query."""
    return Answer.objects.filter(
        stimulus__instrument__study=study,
        stimulus__is_practice=False,
        outcome=Answer.Outcome.GIVEN,
        sitting__standing=Sitting.Standing.COUNTED,
    ).exclude(sitting__state=Sitting.State.OPEN)


def _judged() -> Exists:
    live = Judgement.objects.filter(answer=OuterRef("pk"), retracted_at__isnull=True)
    return Exists(live.filter(round__purpose__in=LABELLING))


def stimuli_of(study: Study) -> QuerySet[Stimulus]:
    """The study's tasks, in the order in which lists show them. No query."""
    return (
        Stimulus.objects.filter(instrument__study=study, is_practice=False)
        .select_related("instrument")
        .order_by("instrument__slug", "-instrument__version", "position")
    )


@dataclass(frozen=True, slots=True)
class Text:
    """What was answered to a stimulus, as raters see it, and the answer that would stand for it."""

    answer_id: int
    blind_id: UUID
    stimulus_id: int
    display: str
    n: int  # answers with this text to this stimulus
    is_refusal: bool
    is_judged: bool  # raters have labelled the answer that would stand for the text
    reference_id: int | None  # of the rubric, where one of these answers is a reference


def texts_of(study: Study, rubric: Rubric, *, stimulus: Stimulus, wanted: str = "") -> list[Text]:
    """The different texts given to a stimulus that contain `wanted`, whatever its case, by the alphabet.

    Of equal texts, the answer that is a reference stands for all; else one that raters have labelled already, since a
    campaign that trains or checks by an answer does not label it; else the one with the lowest blind number, which
    says nothing of its author. Two queries.
    """
    known = dict(
        Reference.objects.filter(rubric=rubric, answer__stimulus=stimulus, study=study).values_list("answer", "pk")
    )
    made_for = stimulus.instrument
    groups: dict[str, list[tuple[bool, bool, UUID, int, str]]] = {}
    answers = answers_usable(study).filter(stimulus=stimulus).annotate(is_judged=_judged())
    for pk, blind_id, text, is_judged in answers.values_list("pk", "blind_id", "text", "is_judged"):
        shown = display_text(text, lower_case=made_for.lower_case)
        if wanted.casefold() in shown.casefold():
            groups.setdefault(shown, []).append((pk not in known, not is_judged, blind_id, pk, text))
    return [_text(shown, groups[shown], stimulus, known) for shown in sorted(groups, key=str.casefold)]


def _text(
    shown: str, answers: list[tuple[bool, bool, UUID, int, str]], stimulus: Stimulus, known: dict[int, int]
) -> Text:
    _, is_not_judged, blind_id, pk, text = min(answers)
    return Text(
        answer_id=pk,
        blind_id=blind_id,
        stimulus_id=stimulus.pk,
        display=shown,
        n=len(answers),
        is_refusal=is_refusal(text, stimulus.instrument.refusal_below),
        is_judged=not is_not_judged,
        reference_id=known.get(pk),
    )


@dataclass(frozen=True, slots=True)
class Shown:
    """One answer as raters see it. `display` is empty where its author has withdrawn it."""

    stimulus_text: str
    display: str
    language: str
    is_refusal: bool
    is_withdrawn: bool


def shown(answer: Answer) -> Shown:
    """No query where the stimulus and its instrument are selected with the answer."""
    made_for: Instrument = answer.stimulus.instrument
    return Shown(
        stimulus_text=answer.stimulus.text,
        display=display_text(answer.text, lower_case=made_for.lower_case),
        language=made_for.language,
        is_refusal=is_refusal(answer.text, made_for.refusal_below),
        is_withdrawn=answer.outcome == Answer.Outcome.WITHDRAWN,
    )


def answer_to_mark(study: Study, blind_id: UUID) -> Answer | None:
    """The answer if it can become a reference, with `is_judged`. One query."""
    answers = answers_usable(study).annotate(is_judged=_judged()).select_related("stimulus__instrument")
    return answers.filter(blind_id=blind_id).first()


def answers_alike(study: Study, answer: Answer) -> int:
    """How many other answers to the stimulus raters could not tell from this one. One query."""
    made_for = answer.stimulus.instrument
    own = display_text(answer.text, lower_case=made_for.lower_case)
    others = answers_usable(study).filter(stimulus=answer.stimulus_id).exclude(pk=answer.pk)
    return sum(
        display_text(text, lower_case=made_for.lower_case) == own for text in others.values_list("text", flat=True)
    )


# --- references --------------------------------------------------------------------------------------------------


def items_made_of(reference: Reference) -> QuerySet[Item]:
    """The copies in campaigns. No query."""
    return Item.objects.filter(
        answer=reference.answer_id, purpose__in=CHECKS, campaign__round__rubric=reference.rubric_id
    )


def references_of(study: Study, rubric: Rubric) -> QuerySet[Reference]:
    """In the order in which they were made, which is that of training; `n_campaigns` has copied them. One query."""
    copies = Item.objects.filter(
        answer=OuterRef("answer"), purpose__in=CHECKS, campaign__round__rubric=OuterRef("rubric")
    )
    counted = copies.order_by().values("answer").annotate(n=Count("campaign", distinct=True)).values("n")
    return (
        Reference.objects.filter(study=study, rubric=rubric)
        .select_related("answer__stimulus__instrument")
        .annotate(n_campaigns=Coalesce(Subquery(counted), 0))
        .order_by("pk")
    )


@dataclass(frozen=True, slots=True)
class StimulusCount:
    """Of one stimulus."""

    stimulus: Stimulus
    answers: int
    training: int
    gold: int
    retired: int


def counts_by_stimulus(study: Study, rubric: Rubric) -> list[StimulusCount]:
    """Every stimulus of the study that has answers or references. Three queries."""
    active = Q(is_active=True)
    rows = Reference.objects.filter(study=study, rubric=rubric).values_list("answer__stimulus").order_by()
    numbers = {
        stimulus: counts
        for stimulus, *counts in rows.annotate(
            training=Count("pk", filter=active & Q(purpose=Reference.Purpose.TRAINING)),
            gold=Count("pk", filter=active & Q(purpose=Reference.Purpose.GOLD)),
            retired=Count("pk", filter=~active),
        )
    }
    answers = dict(answers_usable(study).values_list("stimulus").annotate(n=Count("pk")).order_by())
    return list(_counted(stimuli_of(study), answers, numbers))


def _counted(
    stimuli: QuerySet[Stimulus], answers: dict[int, int], numbers: dict[int, list[int]]
) -> Iterator[StimulusCount]:
    for stimulus in stimuli:
        if stimulus.pk in answers or stimulus.pk in numbers:
            yield StimulusCount(stimulus, answers.get(stimulus.pk, 0), *numbers.get(stimulus.pk, [0, 0, 0]))
