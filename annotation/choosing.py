"""Which answers a campaign would hold, and what stays outside and why. Reads only; `annotation.opening` writes.

A selection is decided by what was asked and by its seed: the same answers, asked for in the same words, give the same
campaign. Who gave an answer can narrow the selection and never the order.
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Sum

from annotation.doubting import Doubted, Doubting, doubted
from annotation.models import Campaign, Item, Purpose, Reference, Seat
from annotation.votes import items_undecided
from corpus.display import display_text
from corpus.models import Answer, Instrument, Respondent, Sitting
from corpus.tokens import is_refusal
from scoring.models import Judgement, Round
from scoring.services import PAPER_RUBRIC
from studies.models import Study

MAX_PLACES = 300_000  # judgements that one campaign may ask for: what opens within one request
ENOUGH_TO_TELL = 20  # timed places of the study's raters, before anything is said about hours


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Which answers are wanted. What is left empty narrows nothing."""

    instrument: Instrument | None = None
    kind: str = ""  # human or model
    sources: Sequence[str] = ()  # source labels of sittings: surveys and model configurations
    complexity: Sequence[str] = ()
    shuffled: bool | None = None
    stimuli: Sequence[int] = ()
    with_refusals: bool = False
    only_new: bool = False
    undecided_in: Campaign | None = None  # a closed campaign of the study
    doubt: Doubting | None = None  # only what automatic judges are in doubt about; no refusal is among that
    sample: int | None = None
    balanced: bool = True  # the sample takes as many from each stimulus as it can

    def as_json(self) -> dict[str, Any]:
        """What was asked for, without what was left empty; rows by their numbers."""
        asked: dict[str, Any] = {
            "instrument": self.instrument.pk if self.instrument else None,
            "kind": self.kind,
            "sources": list(self.sources),
            "complexity": list(self.complexity),
            "shuffled": self.shuffled,
            "stimuli": list(self.stimuli),
            "with_refusals": self.with_refusals or None,
            "only_new": self.only_new or None,
            "undecided_in": self.undecided_in.pk if self.undecided_in else None,
            "doubt": self.doubt.as_json() if self.doubt else None,
            "sample": self.sample,
            "balanced": self.balanced if self.sample else None,
        }
        return {name: value for name, value in asked.items() if value not in (None, "", [])}


EVERYTHING = Selection()


@dataclass(frozen=True, slots=True)
class Candidate:
    """A counted answer that can no longer change, in the form that raters would see."""

    answer_id: int
    stimulus_id: int
    stimulus_text: str
    display_text: str
    language: str
    is_refusal: bool


def answers_of(study: Study, selection: Selection) -> QuerySet[Answer]:
    """The answers that the filters over people, models and stimuli let through, whatever their state. No query."""
    answers = Answer.objects.filter(sitting__instrument__study=study, stimulus__is_practice=False)
    if selection.instrument:
        answers = answers.filter(sitting__instrument=selection.instrument)
    if selection.kind:
        answers = answers.filter(sitting__respondent__kind=selection.kind)
    if selection.sources:
        answers = answers.filter(sitting__source_label__in=list(selection.sources))
    if selection.complexity:
        answers = answers.filter(stimulus__complexity__in=list(selection.complexity))
    if selection.shuffled is not None:
        answers = answers.filter(stimulus__shuffled=selection.shuffled)
    if selection.stimuli:
        answers = answers.filter(stimulus__in=list(selection.stimuli))
    return answers


def _ended(answers: QuerySet[Answer]) -> QuerySet[Answer]:
    """Those that count and can no longer change."""
    return answers.filter(outcome=Answer.Outcome.GIVEN, sitting__standing=Sitting.Standing.COUNTED).exclude(
        sitting__state=Sitting.State.OPEN
    )


def _held() -> Exists:
    return Exists(Item.objects.filter(answer=OuterRef("pk"), purpose=Purpose.RATING))


def _undecided(selection: Selection) -> list[int]:
    """The answers that the earlier campaign left without a label. Six queries at most."""
    if selection.undecided_in is None:
        return []
    items = items_undecided(selection.undecided_in)
    return list(Item.objects.filter(pk__in=items).values_list("answer_id", flat=True))


def candidates(study: Study, selection: Selection = EVERYTHING) -> Iterator[Candidate]:
    """The answers that a campaign could hold, refusals among them, in the order of their ids. Two queries, and those of
    the earlier campaign's votes where only its undecided answers are wanted.

    Given answers of counted sittings that are finished or stopped: those of an open sitting may still change.
    """
    instruments = {row.pk: row for row in Instrument.objects.filter(study=study)}
    answers = _ended(answers_of(study, selection))
    if selection.only_new:
        answers = answers.filter(~_held())
    if selection.undecided_in is not None:
        answers = answers.filter(pk__in=_undecided(selection))
    rows = answers.order_by("pk").values_list("pk", "text", "stimulus_id", "stimulus__text", "sitting__instrument_id")
    seen: dict[tuple[int, str], tuple[str, bool]] = {}  # models above all give the same text many times
    for pk, text, stimulus_id, stimulus_text, instrument_id in rows.iterator(chunk_size=5_000):
        made_for = instruments[instrument_id]
        key = (instrument_id, text)
        if key not in seen:
            seen[key] = (
                display_text(text, lower_case=made_for.lower_case),
                is_refusal(text, made_for.refusal_below),
            )
        yield Candidate(pk, stimulus_id, stimulus_text, seen[key][0], made_for.language, seen[key][1])


@dataclass(frozen=True)
class Chosen:
    """The answers of a campaign, not yet in its order, and what the same selection found beside them."""

    answers: list[Candidate]
    found: int  # before the sample was drawn
    refusals: int  # found, in the campaign or left out
    references: list[int]  # answers that train or check its raters and would else have been rated
    doubt: Doubted | None = None  # where only what judges doubt was wanted


def chosen(
    study: Study,
    selection: Selection,
    *,
    seed: int,
    references: Iterable[int] = (),
    rubric: str = PAPER_RUBRIC,
    codes: Iterable[str] = (),
) -> Chosen:
    """The selection itself. As many queries as `candidates`, and two where only doubted answers are wanted: doubted on
    the criteria with these codes of the rubric, none: on any of its judged ones. Raises JudgesSilentError."""
    apart = set(references)
    rest: list[Candidate] = []
    left_out = []
    refusals = 0
    for candidate in candidates(study, selection):
        refusals += candidate.is_refusal
        if candidate.is_refusal and (selection.doubt is not None or not selection.with_refusals):
            continue  # no judge is asked about a refusal, whatever may once have been said of it
        if candidate.answer_id in apart:
            left_out.append(candidate.answer_id)
        else:
            rest.append(candidate)
    doubt = None
    if selection.doubt is not None:
        answers = [candidate.answer_id for candidate in rest]
        doubt = doubted(study, selection.doubt, answers, references=left_out, seed=seed, rubric=rubric, codes=codes)
        rest = [candidate for candidate in rest if candidate.answer_id in doubt.answers]
        left_out = [answer for answer in left_out if answer in doubt.references]
    found = len(rest)
    if selection.sample is not None and selection.sample < found:
        rest = sampled(rest, selection.sample, seed=seed, balanced=selection.balanced)
    return Chosen(rest, found, refusals, left_out, doubt)


def grouped(answers: Iterable[Candidate]) -> dict[int, list[Candidate]]:
    """By stimulus, stimuli and answers in the order of their ids."""
    groups: dict[int, list[Candidate]] = {}
    for candidate in sorted(answers, key=lambda one: (one.stimulus_id, one.answer_id)):
        groups.setdefault(candidate.stimulus_id, []).append(candidate)
    return groups


def sampled(answers: Sequence[Candidate], size: int, *, seed: int, balanced: bool) -> list[Candidate]:
    """`size` of the answers, drawn by the seed.

    Balanced: each stimulus gives the same number, one more or less, unless it has fewer; the others then give more.
    """
    draw = random.Random(f"sample {seed}")  # noqa: S311 (a sample to repeat, not a secret)
    if not balanced:
        return draw.sample(sorted(answers, key=lambda one: one.answer_id), size)
    groups = list(grouped(answers).values())
    for group in groups:
        draw.shuffle(group)
    draw.shuffle(groups)  # which stimuli give one more
    taken: list[Candidate] = []
    turn = 0
    while len(taken) < size:
        taken += [group[turn] for group in groups if turn < len(group)][: size - len(taken)]
        turn += 1
    return taken


def shuffled_within_stimuli(answers: Iterable[Candidate], seed: int) -> list[Candidate]:
    """Answers grouped by stimulus; the stimuli, and the answers of each, in an order that the seed alone decides."""
    groups = grouped(answers)
    shuffle = random.Random(seed)  # noqa: S311 (an order to repeat, not a secret)
    stimuli = sorted(groups)
    shuffle.shuffle(stimuli)
    for stimulus in stimuli:
        shuffle.shuffle(groups[stimulus])
    return [candidate for stimulus in stimuli for candidate in groups[stimulus]]


def texts_of(answers: Iterable[Candidate]) -> int:
    """Different display texts, counted within each stimulus."""
    return len({(candidate.stimulus_id, candidate.display_text) for candidate in answers})


def references_for(
    study: Study, rubric: str, *, training: bool, gold: bool, codes: Sequence[str]
) -> QuerySet[Reference]:
    """The active references that a campaign would copy, in the order in which they were made: those that say what is
    right for every criterion that is asked, and whose answers can no longer change. No query."""
    wanted = [Reference.Purpose.TRAINING] * training + [Reference.Purpose.GOLD] * gold
    return (
        Reference.objects.filter(study=study, rubric__slug=rubric, is_active=True, purpose__in=wanted)
        .filter(expected__has_keys=list(codes), answer__outcome=Answer.Outcome.GIVEN)
        .exclude(answer__sitting__state=Sitting.State.OPEN)
        .order_by("pk")
    )


def without_label(answer_ids: Sequence[int]) -> int:
    """How many of the answers nobody has rated yet. One query."""
    rated = [Round.Purpose.RATING, Round.Purpose.IMPORTED, Round.Purpose.ADJUDICATION]
    judged = Judgement.objects.filter(answer=OuterRef("pk"), retracted_at__isnull=True, round__purpose__in=rated)
    return Answer.objects.filter(~Exists(judged), pk__in=answer_ids).count() if answer_ids else 0


# --- before it is opened -----------------------------------------------------------------------------------------


def answers_waiting(study: Study) -> int:
    """How many answers could be rated, refusals among them, whatever is chosen. One query, and no text is read."""
    return _ended(answers_of(study, EVERYTHING)).count()


@dataclass(frozen=True)
class Outside:
    """What the filters let through and no campaign could hold."""

    declined: int
    no_valid_reply: int
    in_open_sittings: int
    not_counted: int
    earlier: int  # held by an earlier campaign and therefore left out


def outside(study: Study, selection: Selection) -> Outside:
    """At most two queries."""
    counted = Q(sitting__standing=Sitting.Standing.COUNTED)
    ended = counted & ~Q(sitting__state=Sitting.State.OPEN)
    answers = answers_of(study, selection)
    found = answers.aggregate(
        declined=Count("pk", filter=ended & Q(outcome=Answer.Outcome.DECLINED)),
        no_valid_reply=Count("pk", filter=ended & Q(outcome=Answer.Outcome.NO_VALID_REPLY)),
        in_open_sittings=Count("pk", filter=counted & Q(sitting__state=Sitting.State.OPEN)),
        not_counted=Count("pk", filter=~counted),
    )
    earlier = 0
    if selection.only_new:
        earlier = answers.filter(ended, _held(), outcome=Answer.Outcome.GIVEN).count()
    return Outside(earlier=earlier, **found)


@dataclass(frozen=True)
class Source:
    """A survey or a model configuration, as a filter offers it."""

    label: str
    kind: str
    answers: int

    @property
    def is_model(self) -> bool:
        return self.kind == Respondent.Kind.MODEL


def sources_of(study: Study) -> list[Source]:
    """Where the study's counted answers come from, people first. One query."""
    rows = (
        Answer.objects.filter(
            sitting__instrument__study=study,
            sitting__standing=Sitting.Standing.COUNTED,
            stimulus__is_practice=False,
            outcome=Answer.Outcome.GIVEN,
        )
        .values_list("sitting__source_label", "sitting__respondent__kind")
        .annotate(n=Count("pk"))
        .order_by("sitting__respondent__kind", "sitting__source_label")
    )
    return [Source(label, kind, n) for label, kind, n in rows]


def pace_of(study: Study) -> float | None:
    """Seconds that the study's raters took for an answer so far, a pause not counted; None while too little is known.
    One query."""
    known = Seat.objects.filter(campaign__study=study).aggregate(seconds=Sum("seconds"), timed=Sum("timed"))
    timed = known["timed"] or 0
    return float(known["seconds"]) / timed if timed >= ENOUGH_TO_TELL else None
