"""What the judgements of a study come to: the labels of its answers by its raters."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from uuid import UUID

from django.db.models import Q, QuerySet

from corpus.models import Answer, Instrument, Sitting
from corpus.tokens import is_refusal
from scoring.consensus import Label, label, label_rule
from scoring.models import Criterion, Judge, Judgement, Round, Rubric


@dataclass(frozen=True, slots=True)
class LabelledAnswer:
    """An answer of a counted sitting. `labels` stand in the order of the criteria."""

    pk: int
    blind_id: UUID
    sitting_id: int
    stimulus_id: int
    outcome: str
    is_refusal: bool  # declined, or given with too few words; `no_valid_reply` is not a choice and not a refusal
    labels: tuple[Label, ...]

    @property
    def is_undecided(self) -> bool:
        return any(label.value is None for label in self.labels)


@dataclass(frozen=True, slots=True)
class Labels:
    criteria: tuple[Criterion, ...]
    answers: list[LabelledAnswer]


@dataclass(slots=True)
class _Voices:
    """Everything live that was said about one answer. The inner dicts are by judge, so that the latest stands."""

    raters: dict[int, dict[int, float]] = field(default_factory=dict)  # criterion → judge → value
    marks: dict[int, bool] = field(default_factory=dict)  # judge → whether they saw no attempt
    adjudicated: dict[int, float] = field(default_factory=dict)
    adjudicated_mark: bool | None = None
    rules: dict[int, float] = field(default_factory=dict)


# Whose judgements make labels on the basis "rater labels". Repeats, training, classifiers and models are other bases.
HEARD = (
    Q(round__purpose__in=[Round.Purpose.RATING, Round.Purpose.IMPORTED], judge__kind=Judge.Kind.RATER)
    | Q(round__purpose=Round.Purpose.ADJUDICATION, judge__kind=Judge.Kind.RATER)
    | Q(round__purpose=Round.Purpose.AUTOMATIC, judge__kind=Judge.Kind.RULE)
)

# Few ways of voting exist beside the number of answers, and a Label is a value: each is made once.
_label = lru_cache(maxsize=4096)(label)
_label_rule = lru_cache(maxsize=4096)(label_rule)
_SILENCE = _Voices()


def labels_of(
    *,
    instrument: Instrument,
    rubric: Rubric,
    answer_ids: Sequence[int] | None = None,
    counted: bool = True,
    only_closed: bool = False,
) -> Labels:
    """The labels by rater of an instrument's answers, of counted sittings only. Four queries, few instances.

    A rater's latest live judgement in the study's rating rounds, imported ones among them, is their vote; an
    adjudicator's latest one decides; a rule's one holds for its criterion. `answer_ids` narrows the answers;
    `counted=False` takes the sittings of every standing but *withdrawn* (for a list, never for a score). `only_closed`
    hears no rating that still goes on.
    """
    criteria = tuple(rubric.criteria.all())
    answers = Answer.objects.filter(sitting__instrument=instrument, stimulus__is_practice=False)
    heard = Round.objects.filter(study=instrument.study_id, rubric=rubric)
    if only_closed:
        ongoing = Q(purpose=Round.Purpose.RATING, closed_at__isnull=True)
        heard = heard.exclude(ongoing | Q(adjudicates__isnull=False, adjudicates__closed_at__isnull=True))
    rounds = dict(heard.values_list("pk", "purpose"))
    judgements = Judgement.objects.filter(
        HEARD, round__in=rounds, answer__sitting__instrument=instrument, retracted_at__isnull=True
    )
    if counted:
        answers = answers.filter(sitting__standing=Sitting.Standing.COUNTED)
        judgements = judgements.filter(answer__sitting__standing=Sitting.Standing.COUNTED)
    else:
        answers = answers.exclude(sitting__standing=Sitting.Standing.WITHDRAWN)
    if answer_ids is not None:
        answers = answers.filter(pk__in=answer_ids)
        judgements = judgements.filter(answer__in=answer_ids)
    voices = _voices(judgements, rounds)
    below = instrument.refusal_below
    rows = answers.order_by("pk").values_list("pk", "blind_id", "sitting_id", "stimulus_id", "outcome", "text")
    return Labels(
        criteria,
        [
            _labelled(*row, below=below, voices=voices.get(row[0], _SILENCE), criteria=criteria)
            for row in rows.iterator(chunk_size=5_000)
        ],
    )


def _voices(judgements: QuerySet[Judgement], purposes: dict[int, str]) -> dict[int, _Voices]:
    voices: dict[int, _Voices] = defaultdict(_Voices)
    # By time: what another tool recorded years ago and a file brought in today is the earlier vote.
    rows = judgements.order_by("made_at", "pk").values_list(
        "round_id", "answer_id", "criterion_id", "judge_id", "value", "not_attempt"
    )
    for round_, answer, criterion, judge, value, mark in rows.iterator(chunk_size=20_000):
        said, purpose = voices[answer], purposes[round_]
        if purpose in (Round.Purpose.RATING, Round.Purpose.IMPORTED):
            said.raters.setdefault(criterion, {})[judge] = value
            said.marks[judge] = mark
        elif purpose == Round.Purpose.ADJUDICATION:
            said.adjudicated[criterion] = value
            said.adjudicated_mark = mark
        else:
            said.rules[criterion] = value
    return voices


def _labelled(
    pk: int,
    blind_id: UUID,
    sitting_id: int,
    stimulus_id: int,
    outcome: str,
    text: str,
    *,
    below: int,
    voices: _Voices,
    criteria: tuple[Criterion, ...],
) -> LabelledAnswer:
    no_reply = outcome == Answer.Outcome.NO_VALID_REPLY
    refused = outcome == Answer.Outcome.DECLINED or (not no_reply and is_refusal(text, below))
    marks = sum(voices.marks.values())
    labels = []
    for criterion in criteria:
        if criterion.kind == Criterion.Kind.RULE:
            found = _label_rule(
                voices.rules.get(criterion.pk),
                not_attempt_votes=marks,
                votes=len(voices.marks),
                adjudicated_not_attempt=voices.adjudicated_mark,
                is_refusal=refused,
                no_valid_reply=no_reply,
            )
        else:
            found = _label(
                tuple(sorted(voices.raters.get(criterion.pk, {}).values())),
                adjudicated=voices.adjudicated.get(criterion.pk),
                is_refusal=refused,
                no_valid_reply=no_reply,
                not_attempt_votes=marks,
            )
        labels.append(found)
    return LabelledAnswer(pk, blind_id, sitting_id, stimulus_id, outcome, refused, tuple(labels))
