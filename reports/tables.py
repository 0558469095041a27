"""The results as tables of cells: a number with the address of its rows, or the reason why there is none."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from corpus.models import Answer, Stimulus
from reports.selectors import Results, Row
from reports.words import BASES, CUTS, REASONS
from scoring.formula import Group, ModelScore, PeopleScore, Score, StimulusMean
from scoring.selectors import LabelledAnswer, Labels


@dataclass(frozen=True, slots=True)
class Cell:
    """`low` and `high` are an interval or bounds, `spread` a deviation, `n` how many the number is over."""

    value: float | None = None
    reason: Any = ""  # in words, where there is no value
    href: str = ""
    digits: int = 3
    n: int | None = None
    low: float | None = None
    high: float | None = None
    spread: float | None = None


@dataclass(frozen=True, slots=True)
class OverviewRow:
    row: Row
    sittings: Cell
    answers: Cell
    norm: Cell
    interval: Cell  # people only
    sd: Cell  # models only
    score: Cell
    majority: Cell  # models only
    undecided: Cell
    bounds: Cell  # of the people's mean
    majority_bounds: Cell  # of a model's majority
    refusals: Cell
    no_reply: Cell


@dataclass(frozen=True, slots=True)
class TableRow:
    head: Any  # a row of results or a stimulus
    cells: list[Cell]


@dataclass(frozen=True, slots=True)
class Table:
    columns: list[Any]
    rows: list[TableRow]


def address(results: Results, **chosen: Any) -> str:
    """The list of the answers behind a number."""
    chosen = {"instrument": results.instrument.pk, **results.chosen.choice.query, **chosen}
    return reverse("result_answers", args=[results.study.slug]) + "?" + urlencode(chosen)


def _cell(score: Score, href: str, *, norm: bool = True, **more: Any) -> Cell:
    value = score.norm if norm else score.value
    return Cell(value, "" if value is not None else REASONS.get(score.reason, score.reason), href, **more)


def overview(results: Results) -> list[OverviewRow]:
    return [_overview_row(results, row) for row in results.rows]


def _overview_row(results: Results, row: Row) -> OverviewRow:
    score, href, scale = row.scores[0], address(results, group=row.key), len(results.criteria)
    none = Cell()
    interval = sd = majority = none
    if isinstance(score, PeopleScore):
        found = score.interval
        interval = (
            Cell(low=found.low / scale, high=found.high / scale, n=found.n)
            if found
            else Cell(reason=REASONS["too_few"])
        )
    else:
        sd = _cell(score.sd, href, n=score.n_scored)
        majority = _cell(score.majority, href)
    # A person's bounds are those of the mean; a model's those of the majority (see scoring.formula).
    bounds = (
        Cell(low=score.bounds.low / scale, high=score.bounds.high / scale)
        if score.bounds and row.tally.n_undecided
        else none
    )
    of_people = isinstance(score, PeopleScore)
    tally = row.tally
    return OverviewRow(
        row=row,
        sittings=Cell(row.n_sittings, digits=0, href=href),
        answers=Cell(tally.n_answers, digits=0, href=href),
        norm=_cell(score.mean, href, n=score.n_scored),
        interval=interval,
        sd=sd,
        score=_cell(score.mean, href, norm=False),
        majority=majority,
        undecided=_count(results, row, tally.n_undecided, "undecided"),
        bounds=bounds if of_people else none,
        majority_bounds=none if of_people else bounds,
        refusals=_count(results, row, tally.n_refusals, "refusal"),
        no_reply=_count(results, row, tally.n_no_reply, "no_reply"),
    )


def _count(results: Results, row: Row, number: int, state: str) -> Cell:
    return Cell(number, digits=0, href=address(results, group=row.key, state=state) if number else "")


def breakdown(results: Results) -> Table:
    """Rows of results by groups of stimuli: the paper's second and third figures as one table.

    Models as chosen: the mean over runs and its deviation, or the majority. Never one beside the other in a row.
    """
    columns = [(CUTS.get((cut.factor, cut.value), cut.value), len(cut.stimuli)) for cut in results.groups]
    rows = []
    for row in results.rows:
        pairs = zip(results.groups, row.scores, strict=True)
        rows.append(TableRow(row, [_cut_cell(results, row, cut, score) for cut, score in pairs]))
    return Table(columns, rows)


def _cut_cell(results: Results, row: Row, cut: Group, score: PeopleScore | ModelScore) -> Cell:
    chosen = {} if cut.factor == "all" else {cut.factor: cut.value}
    href = address(results, group=row.key, **chosen)
    if isinstance(score, ModelScore):
        if results.by_majority:  # without the deviation, which is around the mean
            return _cell(score.majority, href, n=score.n_complete)
        return _cell(score.mean, href, n=score.n_scored, spread=score.sd.norm)
    scale, interval = len(results.criteria), score.interval
    low, high = (interval.low / scale, interval.high / scale) if interval else (None, None)
    return _cell(score.mean, href, n=score.n_scored, low=low, high=high)


def per_stimulus(results: Results) -> Table:
    rows = []
    for stimulus in results.stimuli:
        cells = [_stimulus_cell(results, row, stimulus, row.stimuli[stimulus.pk]) for row in results.rows]
        rows.append(TableRow(stimulus, cells))
    return Table([row.label for row in results.rows], rows)


def _stimulus_cell(results: Results, row: Row, stimulus: Stimulus, mean: StimulusMean) -> Cell:
    href, score = address(results, group=row.key, stimulus=stimulus.position), row.scores[0]
    if not (results.by_majority and isinstance(score, ModelScore)):
        return _cell(mean.score, href, n=mean.n)
    own = score.by_stimulus.get(stimulus.pk)
    if own is None or own.value is None:
        return Cell(None, REASONS.get(score.majority.reason, score.majority.reason), href)
    return Cell(own.value / len(results.criteria), href=href, n=score.n_complete)


@dataclass(frozen=True, slots=True)
class LabelCell:
    value: float | None
    basis: Any
    votes: int
    votes_for: int
    reason: Any
    by_votes: bool  # whether the votes are what decided, or failed to


@dataclass(frozen=True, slots=True)
class AnswerRow:
    answer: Answer
    labels: list[LabelCell]
    total: float | None


def answer_rows(answers: Iterable[Answer], labels: Labels) -> list[AnswerRow]:
    known = {answer.pk: answer for answer in labels.answers}
    rows = []
    for answer in answers:
        found = known[answer.pk]
        values = [label.value for label, one in zip(found.labels, labels.criteria, strict=True) if one.in_score]
        total = None if None in values else sum(value for value in values if value is not None)
        rows.append(AnswerRow(answer, _label_cells(found), total))
    return rows


def _label_cells(answer: LabelledAnswer) -> list[LabelCell]:
    return [
        LabelCell(
            label.value,
            BASES[label.basis],
            label.votes,
            label.votes_for,
            REASONS.get(label.reason, label.reason),
            label.basis in ("majority", "undecided", "not_attempt", "adjudication"),
        )
        for label in answer.labels
    ]
