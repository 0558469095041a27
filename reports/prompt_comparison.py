"""The same models under two versions of a prompt, stimulus by stimulus."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from django.db.models import Count, Q

from corpus.models import Answer, Instrument, Sitting, Stimulus
from llmruns.models import Call, ModelConfig, Prompt, Run
from scoring.models import Criterion, Rubric
from scoring.selectors import LabelledAnswer, labels_of

SEQUENCE = "sequence"
FEW = 500  # sittings whose answers are named one by one; above, all labels of the instrument are read
Reason = Literal["", "no_answers", "undecided", "no_criterion"]


@dataclass(frozen=True)
class Share:
    """`count` of `n`; where `n` is 0 there is no share."""

    count: int
    n: int

    @property
    def percent(self) -> float | None:
        return 100 * self.count / self.n if self.n else None


@dataclass(frozen=True)
class Mean:
    """A mean of labels over `n` answers, or None with the reason. `undecided`: answers without a label."""

    value: float | None
    n: int
    undecided: int
    reason: Reason


@dataclass
class Side:
    """One model under one prompt, on all stimuli or on one."""

    first: int = 0
    first_valid: int = 0
    answers: list[Answer] = field(default_factory=list)
    labelled: list[LabelledAnswer] = field(default_factory=list)
    sequence: Mean = Mean(None, 0, 0, "no_answers")
    score: Mean = Mean(None, 0, 0, "no_answers")

    @property
    def valid(self) -> Share:
        return Share(self.first_valid, self.first)


@dataclass(frozen=True)
class StimulusRow:
    stimulus: Stimulus
    sides: tuple[Side, Side]


@dataclass(frozen=True)
class ModelRow:
    config: ModelConfig
    runs: tuple[int, int]
    sides: tuple[Side, Side]
    stimuli: list[StimulusRow]

    @property
    def difference(self) -> float | None:
        """Of the shares of answers as long as the original, second minus first, in points."""
        first, second = (side.sequence.value for side in self.sides)
        return None if first is None or second is None else 100 * (second - first)


def comparison_of(
    *, instrument: Instrument, rubric: Rubric, prompts: tuple[Prompt, Prompt], chosen: int | None = None
) -> tuple[list[ModelRow], list[ModelConfig]]:
    """The models that took the instrument under both prompts, and those that did so under one. About ten queries.

    Read are the finished runs that count. Only the model `chosen` (the first where there is no such) has its row's
    `stimuli`, with the texts: those of all models would be most of the work.
    Labels are those of the study's raters and of the counting rules: see scoring.selectors.labels_of.
    """
    runs: list[Any] = list(
        Run.objects.filter(
            experiment__instrument=instrument,
            experiment__prompt__in=prompts,
            sitting__standing=Sitting.Standing.COUNTED,
            state=Run.State.FINISHED,  # a run that is under way has met some stimuli and not the others
        )
        .order_by("config__label", "pk")
        .values_list("config_id", "experiment__prompt_id", "pk", "sitting_id", named=True)
    )
    sides: dict[int, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))  # the sittings
    for run in runs:
        sides[run.config_id][0 if run.experiment__prompt_id == prompts[0].pk else 1].append(run.sitting_id)
    configs = ModelConfig.objects.in_bulk(sides)
    both = [pk for pk, (first, second) in sides.items() if first and second]
    facts = _facts(instrument, rubric, [run for run in runs if run.config_id in both], prompts)
    detailed = chosen if chosen in both else next(iter(both), None)
    texts = _texts(sides[detailed]) if detailed is not None else {}
    stimuli = list(instrument.stimuli.filter(is_practice=False).order_by("position"))
    rows = []
    for pk in both:
        details = []
        if pk == detailed:
            details = [StimulusRow(one, facts.sides(pk, sides[pk], [one.pk], texts)) for one in stimuli]
        everything = facts.sides(pk, sides[pk], [one.pk for one in stimuli])
        rows.append(ModelRow(configs[pk], (len(sides[pk][0]), len(sides[pk][1])), everything, details))
    return rows, [configs[pk] for pk in sides if pk not in both]


Texts = dict[tuple[int, int], Answer]  # by sitting and stimulus


@dataclass
class _Facts:
    criteria: tuple[Criterion, ...]
    labelled: dict[tuple[int, int], LabelledAnswer]  # by sitting and stimulus
    # By model, prompt's place and stimulus: first attempts, and valid ones among them.
    first: dict[tuple[int, int, int], tuple[int, int]]

    def sides(
        self, config: int, sittings: tuple[list[int], list[int]], stimuli: Sequence[int], texts: Texts | None = None
    ) -> tuple[Side, Side]:
        first, second = (self._side(config, place, sittings[place], stimuli, texts or {}) for place in (0, 1))
        return first, second

    def _side(self, config: int, place: int, sittings: list[int], stimuli: Sequence[int], texts: Texts) -> Side:
        side = Side()
        for stimulus in stimuli:
            number, valid = self.first.get((config, place, stimulus), (0, 0))
            side.first += number
            side.first_valid += valid
        pairs = [(sitting, stimulus) for sitting in sittings for stimulus in stimuli]
        side.answers = [texts[pair] for pair in pairs if pair in texts]
        side.labelled = [self.labelled[pair] for pair in pairs if pair in self.labelled]
        side.sequence = _mean(side.labelled, self.criteria, [SEQUENCE])
        side.score = _mean(side.labelled, self.criteria, [one.code for one in self.criteria if one.in_score])
        return side


def _facts(instrument: Instrument, rubric: Rubric, runs: Sequence[Any], prompts: tuple[Prompt, Prompt]) -> _Facts:
    sittings = {run.sitting_id for run in runs}
    ids: list[int] | None = None
    if len(sittings) <= FEW:
        ids = list(Answer.objects.filter(sitting__in=sittings).values_list("pk", flat=True))
    labels = labels_of(instrument=instrument, rubric=rubric, answer_ids=ids)
    attempts = (
        Call.objects.filter(run__in=[run.pk for run in runs], attempt=1)
        .values("config_id", "run__experiment__prompt_id", "stimulus_id")
        .annotate(number=Count("pk"), valid=Count("pk", filter=Q(state=Call.State.OK)))
        .values_list("config_id", "run__experiment__prompt_id", "stimulus_id", "number", "valid")
    )
    return _Facts(
        criteria=labels.criteria,
        labelled={(one.sitting_id, one.stimulus_id): one for one in labels.answers if one.sitting_id in sittings},
        first={
            (config, 0 if prompt == prompts[0].pk else 1, stimulus): (number, valid)
            for config, prompt, stimulus, number, valid in attempts
        },
    )


def _texts(sittings: tuple[list[int], list[int]]) -> Texts:
    answers = Answer.objects.filter(sitting__in=[*sittings[0], *sittings[1]], stimulus__is_practice=False)
    return {(answer.sitting_id, answer.stimulus_id): answer for answer in answers}


def _mean(answers: Sequence[LabelledAnswer], criteria: Sequence[Criterion], codes: Sequence[str]) -> Mean:
    """The mean sum of these criteria's labels. An answer with an undecided one leaves the whole undefined."""
    places = [place for place, criterion in enumerate(criteria) if criterion.code in codes]
    if not places:
        return Mean(None, len(answers), 0, "no_criterion")
    if not answers:
        return Mean(None, 0, 0, "no_answers")
    values = [[answer.labels[place].value for place in places] for answer in answers]
    sums = [sum(value for value in one if value is not None) for one in values if None not in one]
    undecided = len(values) - len(sums)
    if undecided:
        return Mean(None, len(values), undecided, "undecided")
    return Mean(sum(sums) / len(sums), len(sums), 0, "")
