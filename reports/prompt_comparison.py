"""The same models under two versions of a prompt, stimulus by stimulus."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from django.db.models import Count, Q

from corpus.models import Answer, Instrument, Sitting, Stimulus
from llmruns.models import Call, ModelConfig, Prompt, Run
from scoring.models import Criterion, Rubric
from scoring.selectors import LabelledAnswer, labels_of

SEQUENCE = "sequence"
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
    *, instrument: Instrument, rubric: Rubric, prompts: tuple[Prompt, Prompt]
) -> tuple[list[ModelRow], list[ModelConfig]]:
    """The models that took the instrument under both prompts, and those that did so under one. About ten queries.

    Read are the finished runs that count.
    Labels are those of the study's raters and of the counting rules: see scoring.selectors.labels_of.
    """
    runs = list(
        Run.objects.filter(
            experiment__instrument=instrument,
            experiment__prompt__in=prompts,
            sitting__standing=Sitting.Standing.COUNTED,
            state=Run.State.FINISHED,  # a run that is under way has met some stimuli and not the others
        )
        .select_related("config", "experiment")
        .order_by("config__label", "pk")
    )
    sides: dict[int, tuple[list[Run], list[Run]]] = defaultdict(lambda: ([], []))
    for run in runs:
        sides[run.config_id][0 if run.experiment.prompt_id == prompts[0].pk else 1].append(run)
    configs = {run.config_id: run.config for run in runs}
    both = [pk for pk, (first, second) in sides.items() if first and second]
    facts = _facts(instrument, rubric, [run for pk in both for half in sides[pk] for run in half])
    stimuli = list(instrument.stimuli.filter(is_practice=False).order_by("position"))
    rows = []
    for pk in both:
        first, second = sides[pk]
        details = [StimulusRow(one, (facts.side(first, [one.pk]), facts.side(second, [one.pk]))) for one in stimuli]
        everything = [one.pk for one in stimuli]
        rows.append(
            ModelRow(
                configs[pk],
                (len(first), len(second)),
                (facts.side(first, everything), facts.side(second, everything)),
                details,
            )
        )
    return rows, [configs[pk] for pk in sides if pk not in both]


@dataclass
class _Facts:
    criteria: tuple[Criterion, ...]
    answers: dict[tuple[int, int], Answer]  # by sitting and stimulus
    labelled: dict[int, LabelledAnswer]  # by answer
    first: dict[tuple[int, int], tuple[int, int]]  # by run and stimulus: first attempts, and valid ones among them

    def side(self, runs: Iterable[Run], stimuli: Sequence[int]) -> Side:
        side = Side()
        for run in runs:
            for stimulus in stimuli:
                number, valid = self.first.get((run.pk, stimulus), (0, 0))
                side.first += number
                side.first_valid += valid
                answer = self.answers.get((run.sitting_id, stimulus))
                if answer is not None:
                    side.answers.append(answer)
                    if answer.pk in self.labelled:
                        side.labelled.append(self.labelled[answer.pk])
        side.sequence = _mean(side.labelled, self.criteria, [SEQUENCE])
        side.score = _mean(side.labelled, self.criteria, [one.code for one in self.criteria if one.in_score])
        return side


def _facts(instrument: Instrument, rubric: Rubric, runs: Sequence[Run]) -> _Facts:
    answers = list(Answer.objects.filter(sitting__in=[run.sitting_id for run in runs], stimulus__is_practice=False))
    labels = labels_of(instrument=instrument, rubric=rubric, answer_ids=[answer.pk for answer in answers])
    attempts = (
        Call.objects.filter(run__in=[run.pk for run in runs], attempt=1)
        .values("run_id", "stimulus_id")
        .annotate(number=Count("pk"), valid=Count("pk", filter=Q(state=Call.State.OK)))
        .values_list("run_id", "stimulus_id", "number", "valid")
    )
    return _Facts(
        criteria=labels.criteria,
        answers={(answer.sitting_id, answer.stimulus_id): answer for answer in answers},
        labelled={one.pk: one for one in labels.answers},
        first={(run, stimulus): (number, valid) for run, stimulus, number, valid in attempts},
    )


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
