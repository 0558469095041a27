"""What the judgements of a study come to: the labels of its answers, by its raters or by automatic judges."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from django.contrib.postgres.aggregates import StringAgg
from django.db.models import F, Func, IntegerField, Q, QuerySet, TextField, Value
from django.db.models.functions import Cast

from corpus.models import Answer, Instrument, Sitting
from corpus.tokens import is_refusal
from scoring.bases import RATERS, Basis, criteria_by_judge, heard
from scoring.consensus import Label, label, label_automatic, label_rule
from scoring.models import Criterion, Judgement, Round, Rubric


class LabelledAnswer(NamedTuple):  # and no dataclass: there are many, and a tuple is made in a third of the time
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
    automatic: dict[int, dict[int, float]] = field(default_factory=dict)  # criterion → automatic judge → value


def labels_of(
    *,
    instrument: Instrument,
    rubric: Rubric,
    answer_ids: Sequence[int] | None = None,
    counted: bool = True,
    basis: Basis = RATERS,
    only_closed: bool = False,
) -> Labels:
    """The labels of an instrument's answers on a basis, of counted sittings only. Four queries, five where several
    automatic judges are the basis; few instances.

    A rater's latest live judgement in the study's rating rounds, imported ones among them, is their vote; an
    adjudicator's latest one decides; a rule's one holds for its criterion. Of an automatic judge, the latest live one
    in the study's automatic rounds. `answer_ids` narrows the answers; `counted=False` takes the sittings of every
    standing but *withdrawn* (for a list, never for a score). `only_closed` hears no rating
    that still goes on.
    """
    criteria = tuple(rubric.criteria.all())
    answers = Answer.objects.filter(sitting__instrument=instrument, stimulus__is_practice=False)
    asked = Round.objects.filter(study=instrument.study_id, rubric=rubric)
    if only_closed:
        ongoing = Q(purpose=Round.Purpose.RATING, closed_at__isnull=True)
        asked = asked.exclude(ongoing | Q(adjudicates__isnull=False, adjudicates__closed_at__isnull=True))
    rounds = dict(asked.values_list("pk", "purpose"))
    judgements = Judgement.objects.filter(
        heard(basis, rounds), answer__sitting__instrument=instrument, retracted_at__isnull=True
    )
    if counted:
        answers = answers.filter(sitting__standing=Sitting.Standing.COUNTED)
        judgements = judgements.filter(answer__sitting__standing=Sitting.Standing.COUNTED)
    else:
        answers = answers.exclude(sitting__standing=Sitting.Standing.WITHDRAWN)
    if answer_ids is not None:
        answers = answers.filter(pk__in=answer_ids)
        judgements = judgements.filter(answer__in=answer_ids)
    said = _said(judgements)
    voices = {packed: _voices(packed, rounds, frozenset(basis.judges)) for packed in {"", *said.values()}}
    panel = None if basis.is_raters else _panel(basis, instrument, rubric, criteria)
    below = instrument.refusal_below
    rows = answers.order_by("pk").values_list("pk", "blind_id", "sitting_id", "stimulus_id", "outcome", "text")
    # Few ways of voting exist beside the number of answers: each is labelled once.
    known: dict[tuple[str, str, bool], tuple[Label, ...]] = {}
    found = []
    for pk, blind_id, sitting, stimulus, outcome, text in rows.iterator(chunk_size=5_000):
        is_refused = outcome == Answer.Outcome.DECLINED or (
            outcome != Answer.Outcome.NO_VALID_REPLY and is_refusal(text, below)
        )
        way = (said.get(pk, ""), outcome, is_refused)
        labels = known.get(way)
        if labels is None:
            no_reply = outcome == Answer.Outcome.NO_VALID_REPLY
            labels = known[way] = _labels(voices[way[0]], criteria, panel, is_refused, no_reply)
        found.append(LabelledAnswer(pk, blind_id, sitting, stimulus, outcome, is_refused, labels))
    return Labels(criteria, found)


def _said(judgements: QuerySet[Judgement]) -> dict[int, str]:
    """What was said about each answer, packed into a text by the database: a tenth of the time that the rows take.

    By time: what another tool recorded years ago and a file brought in today is the earlier vote.
    """
    one = Func(
        Value(" "),
        F("round_id"),
        F("criterion_id"),
        F("judge_id"),
        F("value"),
        Cast("not_attempt", IntegerField()),
        function="concat_ws",
        output_field=TextField(),
    )
    packed = StringAgg(one, delimiter=",", order_by=("made_at", "pk"))
    return dict(judgements.order_by().values_list("answer_id").annotate(said=packed))


def _panel(basis: Basis, instrument: Instrument, rubric: Rubric, criteria: Iterable[Criterion]) -> dict[int, int]:
    """How many of the basis's judges judge each criterion in the study; one query, none where there is one judge.

    Whichever answers are looked at: a judge who was silent on a page of them is as silent there as in the results.
    """
    if len(basis.judges) == 1:
        return {criterion.pk: 1 for criterion in criteria}
    judged = criteria_by_judge(instrument.study_id, rubric.pk, basis.judges)
    return {criterion.pk: sum(criterion.pk in own for own in judged.values()) for criterion in criteria}


def _voices(packed: str, purposes: dict[int, str], automatic: frozenset[int]) -> _Voices:
    said = _Voices()
    for one in packed.split(",") if packed else ():
        round_, criterion, judge, value, mark = one.split(" ")
        _hear(said, purposes[int(round_)], int(criterion), int(judge), float(value), mark == "1", automatic)
    return said


def _hear(
    said: _Voices, purpose: str, criterion: int, judge: int, value: float, mark: bool, automatic: frozenset[int]
) -> None:
    if purpose in (Round.Purpose.RATING, Round.Purpose.IMPORTED):
        said.raters.setdefault(criterion, {})[judge] = value
        said.marks[judge] = mark
    elif purpose == Round.Purpose.ADJUDICATION:
        said.adjudicated[criterion] = value
        said.adjudicated_mark = mark
    elif judge in automatic:
        said.automatic.setdefault(criterion, {})[judge] = value
    else:
        said.rules[criterion] = value


def _labels(
    voices: _Voices,
    criteria: tuple[Criterion, ...],
    panel: dict[int, int] | None,
    is_refused: bool,
    no_reply: bool,
) -> tuple[Label, ...]:
    """`panel` is None where raters are the basis."""
    marks = sum(voices.marks.values())
    labels = []
    for criterion in criteria:
        if criterion.kind == Criterion.Kind.RULE:
            found = label_rule(
                voices.rules.get(criterion.pk),
                not_attempt_votes=marks,
                votes=len(voices.marks),
                adjudicated_not_attempt=voices.adjudicated_mark,
                is_refusal=is_refused,
                no_valid_reply=no_reply,
            )
        elif panel is not None:
            found = label_automatic(
                voices.automatic.get(criterion.pk, {}).values(),
                judges=panel.get(criterion.pk, 0),
                is_refusal=is_refused,
                no_valid_reply=no_reply,
            )
        else:
            found = label(
                voices.raters.get(criterion.pk, {}).values(),
                adjudicated=voices.adjudicated.get(criterion.pk),
                is_refusal=is_refused,
                no_valid_reply=no_reply,
                not_attempt_votes=marks,
            )
        labels.append(found)
    return tuple(labels)
