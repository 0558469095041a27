"""Which answers a model judge would be given, and what stays outside and why. Reads only.

An answer goes to a third party here. A person's answer is sent only where their consent covers that; it is written
down with the respondent (`Respondent.third_parties`), because this layer cannot ask the surveys. Models' answers need
no consent.
"""

import hashlib
import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from corpus.display import display_text
from corpus.models import Answer, Instrument, Respondent, Sitting
from corpus.tokens import is_refusal
from llmruns.models import ModelConfig, Prompt
from scoring.models import Judgement, Round, Rubric

MAX_ANSWERS = 50_000  # of one judging: what can be looked through and written within one request

CONSENTED = Q(sitting__respondent__kind=Respondent.Kind.MODEL) | Q(sitting__respondent__third_parties=True)
COUNTS = Q(sitting__standing=Sitting.Standing.COUNTED)


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Which answers are wanted. What is left empty narrows nothing."""

    instrument: Instrument
    kind: str = ""  # human or model
    # Answers that another layer has named, such as those of a campaign, and the words to remember that by.
    answer_ids: Collection[int] | None = None
    named: str = ""
    only_new: bool = True  # not what this very judge has judged already
    sample: int | None = None
    seed: int = 0

    def as_json(self) -> dict[str, Any]:
        asked: dict[str, Any] = {
            "instrument": self.instrument.pk,
            "kind": self.kind,
            "named": self.named,
            "only_new": self.only_new or None,
            "sample": self.sample,
            "seed": self.seed if self.sample else None,
        }
        return {name: value for name, value in asked.items() if value not in (None, "")}


@dataclass(frozen=True, slots=True)
class Candidate:
    answer_id: int
    stimulus_text: str
    display_text: str
    respondent_id: int
    is_model: bool


@dataclass(frozen=True)
class Chosen:
    """`answers` in the order in which they are asked. The other numbers count answers that are left out."""

    answers: list[Candidate] = field(default_factory=list)
    found: int = 0  # before the sample was drawn
    refusals: int = 0
    no_consent: int = 0
    declined: int = 0
    in_open_sittings: int = 0
    not_counted: int = 0
    judged_before: int = 0

    @property
    def texts(self) -> list[Candidate]:
        """The first answer of each text to the same words: these are asked."""
        first: dict[tuple[str, str], Candidate] = {}
        for one in self.answers:
            first.setdefault((one.stimulus_text, one.display_text), one)
        return list(first.values())

    def of_people(self) -> int:
        return sum(not one.is_model for one in self.answers)

    @property
    def models(self) -> int:
        return len(self.answers) - self.of_people()

    @property
    def left_out(self) -> int:
        left = (self.refusals, self.no_consent, self.declined, self.in_open_sittings, self.not_counted)
        return sum(left) + self.judged_before

    def own(self, config: ModelConfig) -> int:
        """How many the judge's own configuration has given."""
        return sum(one.respondent_id == config.respondent_id for one in self.answers)

    def digest(self) -> str:
        return hashlib.sha256(",".join(str(one.answer_id) for one in self.answers).encode()).hexdigest()


def _asked(selection: Selection) -> QuerySet[Answer]:
    answers = Answer.objects.filter(sitting__instrument=selection.instrument, stimulus__is_practice=False)
    if selection.kind:
        answers = answers.filter(sitting__respondent__kind=selection.kind)
    if selection.answer_ids is not None:
        answers = answers.filter(pk__in=selection.answer_ids)
    return answers


def chosen(selection: Selection, *, config: ModelConfig, prompt: Prompt | None, rubric: Rubric) -> Chosen:
    """The answers of a judging by this configuration, prompt and rubric. Three queries.

    `prompt` is None where it is yet to be made: its judge has judged nothing.
    """
    answers = _asked(selection)
    ended = COUNTS & ~Q(sitting__state=Sitting.State.OPEN)
    given = ended & Q(outcome=Answer.Outcome.GIVEN)
    left = answers.aggregate(
        not_counted=Count("pk", filter=~COUNTS),
        in_open_sittings=Count("pk", filter=COUNTS & Q(sitting__state=Sitting.State.OPEN)),
        declined=Count("pk", filter=ended & ~Q(outcome=Answer.Outcome.GIVEN)),
        no_consent=Count("pk", filter=given & ~CONSENTED),
    )
    judged = Judgement.objects.filter(
        answer=OuterRef("pk"),
        retracted_at__isnull=True,
        round__purpose=Round.Purpose.AUTOMATIC,
        judge__model_judge__config=config,
        judge__model_judge__prompt=prompt.pk if prompt else None,
        judge__model_judge__rubric=rubric,
    )
    rows = (
        answers.filter(given, CONSENTED)
        .annotate(known=Exists(judged))
        .order_by("stimulus__position", "pk")
        .values_list("pk", "text", "stimulus__text", "sitting__respondent_id", "sitting__respondent__kind", "known")
    )
    instrument = selection.instrument
    found: list[Candidate] = []
    refusals = before = 0
    for pk, text, stimulus, respondent, kind, known in rows.iterator(chunk_size=5_000):
        if is_refusal(text, instrument.refusal_below):
            refusals += 1  # 0 by rule, as in the labels: nobody is asked
        elif known and selection.only_new:
            before += 1
        else:
            shown = display_text(text, lower_case=instrument.lower_case)
            found.append(Candidate(pk, stimulus, shown, respondent, kind == Respondent.Kind.MODEL))
    return Chosen(_sampled(found, selection), len(found), refusals, judged_before=before, **left)


def _sampled(found: Sequence[Candidate], selection: Selection) -> list[Candidate]:
    """Drawn by the seed, and left in their order."""
    if selection.sample is None or selection.sample >= len(found):
        return list(found)
    draw = random.Random(f"judging {selection.seed}")  # noqa: S311 (a sample to repeat, not a secret)
    drawn = set(draw.sample([one.answer_id for one in found], selection.sample))
    return [one for one in found if one.answer_id in drawn]
