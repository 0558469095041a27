"""The comparison of judges: the paper's Table 1, every judge as a row, on the same test answers beside the raters'
labels; and how closely the automatic score follows the raters'. Computed when it is read, so that a label that was
decided anew is never behind the figures."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from reports.judge_rows import Row, Sheet, row_covers, set_row, sheet_of
from scoring.classifiers.study_data import Labelled
from scoring.correlation import Correlation, mean_by_respondent, score_correlation
from scoring.evaluation import Estimate, Report, Said, evaluate, majority, mean_difference, mean_over_criteria
from scoring.models import Criterion, Evaluation, Rubric, Split

Subset = Evaluation.Subset
SUBSETS = (Subset.ALL, Subset.UNSEEN, Subset.HELD_OUT, Subset.WITH_REFUSALS)  # in the order in which they are offered
UNITS = ("answer", "respondent")
VARIANTS = ("all", "no_refusals", "judged", "judged_no_refusals")
On = Literal["common", "own"]


@dataclass(frozen=True)
class Asked:
    """`on`: common, the answers on which every chosen judge has spoken; own, those on which each one has.

    `judges`: none are all. `chosen_set`: a judge for each judged criterion's code; empty: no such row.
    """

    figure: str = "f1_macro"  # of FIGURES
    subset: str = Subset.ALL
    on: On = "common"
    judges: frozenset[int] = frozenset()
    chosen_set: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Line:
    """A row with its figures. `n_own`: answers of the subset that have a label, on which it has spoken."""

    row: Row | None  # None: whoever always says the commonest value
    cells: list[Report | None]  # for each judged criterion; None: it does not judge this one, or there are no answers
    mean: Estimate | None  # of the asked figure over the criteria; None: it does not judge all of them
    n_own: int | None
    said: list[Said] | None = None  # what the mean is of
    from_highest: Estimate | None = None  # its mean less the highest of a judge's; on common answers only
    correlations: dict[tuple[str, str], Correlation] = field(default_factory=dict)  # by unit and variant

    @property
    def judge(self) -> int | None:
        return self.row.judges[0] if self.row and len(self.row.judges) == 1 else None


@dataclass(frozen=True)
class Comparison:
    sheet: Sheet
    asked: Asked
    criteria: list[Criterion]  # the judged ones
    n_subset: int  # answers of the subset that have a label on some criterion
    lines: list[Line]
    constant: Line
    chosen_set: dict[str, int]
    n_scored: int  # answers behind the correlations on common answers; on own ones each says its own

    @property
    def with_scores(self) -> list[Line]:
        return [line for line in self.lines if line.correlations]


def judges_compared(*, split: Split, rubric: Rubric, asked: Asked | None = None) -> Comparison:
    """Raises ClassifierError no_labels. Queries: those of `sheet_of`."""
    return comparison_of(sheet_of(split=split, rubric=rubric), asked or Asked())


def comparison_of(sheet: Sheet, asked: Asked) -> Comparison:
    """No query."""
    rows = [row for row in sheet.rows if not asked.judges or row.judges[0] in asked.judges]
    chosen_set = dict(asked.chosen_set)
    if chosen_set:
        by_judge = {row.judges[0]: row for row in sheet.rows}
        codes = [sheet.criteria[place].code for place in sheet.judged]
        rows.append(set_row(sheet, [by_judge[chosen_set[code]] for code in codes]))
    table = _Table(sheet, asked, rows)
    scores = _Scores(sheet, asked, rows)
    lines = [table.line(row, scores.correlations(row)) for row in rows]
    *lines, constant = _with_differences([*lines, table.line(None, {})], asked, sheet.split.seed)
    return Comparison(
        sheet=sheet,
        asked=asked,
        criteria=[sheet.criteria[place] for place in sheet.judged],
        n_subset=len({pk for place in sheet.judged for pk in table.labelled(place, None)}),
        lines=lines,
        constant=constant,
        chosen_set=chosen_set,
        n_scored=len(scores.common),
    )


class _Table:
    """F1 and the like of rows on answers of one subset."""

    def __init__(self, sheet: Sheet, asked: Asked, rows: Sequence[Row]) -> None:
        self.sheet, self.asked, self.rows = sheet, asked, rows
        self.answers = {answer.answer_id: answer for answer in sheet.compared.answers}
        self.covers = {(id(row), place): row_covers(sheet, row, place) for row in rows for place in sheet.judged}
        learned = [row.held_out for row in rows if row.held_out is not None]
        self.held_by_all = frozenset.intersection(*learned) if learned else frozenset()
        self.held_by_any = frozenset.union(*learned) if learned else frozenset()
        self._common = {place: self._common_of(place) for place in sheet.judged}

    def _holds(self, row: Row | None) -> Callable[[Labelled], bool]:
        """Whether an answer is of the subset; row None: of all rows together."""
        seen = self.sheet.compared.trained_texts
        if self.asked.subset == Subset.WITH_REFUSALS:
            return lambda _answer: True
        if self.asked.subset == Subset.UNSEEN:
            return lambda answer: not answer.is_refusal and answer.text not in seen
        if self.asked.subset == Subset.HELD_OUT:
            held = self.held_by_all if self.asked.on == "common" else self.held_by_any
            if self.asked.on == "own" and row is not None and row.held_out is not None:
                held = row.held_out
            return lambda answer: not answer.is_refusal and answer.stimulus_id in held
        return lambda answer: not answer.is_refusal

    def labelled(self, place: int, row: Row | None) -> list[int]:
        """Answers of the subset with a label on the criterion."""
        holds = self._holds(row)
        truth = self.sheet.truth
        return [
            pk for pk, answer in self.answers.items() if holds(answer) and pk in truth and truth[pk][place] is not None
        ]

    def spoken(self, place: int, row: Row) -> list[int]:
        return [pk for pk in self.labelled(place, row) if _value(row, pk, place) is not None]

    def n_own(self, row: Row) -> int:
        return len({pk for place in self.sheet.judged if self.covers[id(row), place] for pk in self.spoken(place, row)})

    def _common_of(self, place: int) -> list[int]:
        """On which every row has spoken that judges the criterion at all."""
        asked = [row for row in self.rows if self.covers[id(row), place]]
        return [pk for pk in self.labelled(place, None) if all(_value(row, pk, place) is not None for row in asked)]

    def line(self, row: Row | None, correlations: dict[tuple[str, str], Correlation]) -> Line:
        """Row None: whoever always says the commonest value of the very answers measured on."""
        said = [
            self._said(place, self._measured_on(place, row), row)
            if row is None or self.covers[id(row), place]
            else None
            for place in self.sheet.judged
        ]
        seed = self.sheet.split.seed
        cells = [
            evaluate(truth=one.truth, said=one.said, groups=one.groups, classes=one.classes, seed=seed)
            if one is not None and one.truth
            else None
            for one in said
        ]
        whole = [one for one in said if one is not None]
        is_whole = bool(said) and len(whole) == len(said)
        return Line(
            row,
            cells,
            mean=mean_over_criteria(whole, self.asked.figure, seed=seed) if is_whole else None,
            n_own=self.n_own(row) if row is not None else None,
            said=whole if is_whole else None,
            correlations=correlations,
        )

    def _measured_on(self, place: int, row: Row | None) -> list[int]:
        if self.asked.on == "common":
            return self._common[place]
        return self.spoken(place, row) if row is not None else self.labelled(place, None)

    def _said(self, place: int, answers: Sequence[int], row: Row | None) -> Said:
        classes = [float(value) for value in self.sheet.criteria[place].scale]
        truth = [_known(self.sheet.truth[pk][place]) for pk in answers]
        if row is None:
            constant = majority(truth, classes)
            values = [constant.value] * len(truth) if constant else []
        else:
            values = [_known(row.values[pk][place]) for pk in answers]
        return Said(truth, values, [self.answers[pk].respondent_id for pk in answers], classes)


def _with_differences(lines: list[Line], asked: Asked, seed: int) -> list[Line]:
    """Each with how far its mean lies from that of the judge who has the highest, where all are of the same answers."""
    means = {place: one.mean.value for place, one in enumerate(lines) if one.mean and one.mean.value is not None}
    judges = [place for place in means if lines[place].row is not None]
    if asked.on == "own" or len(judges) < 2:
        return lines
    best = max(judges, key=lambda place: (means[place], -place))
    against = lines[best].said or []
    return [
        replace(one, from_highest=mean_difference(one.said, against, asked.figure, seed=seed))
        if one.said and place != best and place in means
        else one
        for place, one in enumerate(lines)
    ]


class _Scores:
    """Scores of answers by raters and by each row that judges every criterion in the score."""

    def __init__(self, sheet: Sheet, asked: Asked, rows: Sequence[Row]) -> None:
        self.sheet, self.asked = sheet, asked
        self.answers = {answer.answer_id: answer for answer in sheet.compared.answers}
        self.in_score = [place for place, one in enumerate(sheet.criteria) if one.in_score]
        self.judged = [place for place in self.in_score if place in sheet.judged]
        self.by_raters = [pk for pk in self.answers if self._is_scored(sheet.truth, pk)]
        self.whole = {id(row) for row in rows if all(row_covers(sheet, row, place) for place in self.judged)}
        full = [row for row in rows if id(row) in self.whole]
        self.common = [pk for pk in self.by_raters if all(self._is_scored(row.values, pk) for row in full)]

    def _is_scored(self, values: Mapping[int, Sequence[float | None]], pk: int) -> bool:
        """An answer with an undecided label on a criterion in the score has no score."""
        return pk in values and all(values[pk][place] is not None for place in self.in_score)

    def correlations(self, row: Row) -> dict[tuple[str, str], Correlation]:
        if id(row) not in self.whole or not self.judged:
            return {}
        scored = self.common if self.asked.on == "common" else self.by_raters
        scored = [pk for pk in scored if self._is_scored(row.values, pk)]
        found = {}
        for variant in VARIANTS:
            places = self.judged if variant.startswith("judged") else self.in_score
            chosen = [pk for pk in scored if not (variant.endswith("no_refusals") and self.answers[pk].is_refusal)]
            automatic = [_sum(row.values[pk], places) for pk in chosen]
            raters = [_sum(self.sheet.truth[pk], places) for pk in chosen]
            groups = [self.answers[pk].respondent_id for pk in chosen]
            seed = self.sheet.split.seed
            found["answer", variant] = score_correlation(automatic, raters, groups, seed=seed)
            means = mean_by_respondent(automatic, raters, groups)
            found["respondent", variant] = score_correlation(*means, seed=seed)
        return found


def _value(row: Row, pk: int, place: int) -> float | None:
    values = row.values.get(pk)
    return None if values is None else values[place]


def _sum(values: Sequence[float | None], places: Sequence[int]) -> float:
    """The score of an answer: Σ over its criteria, as `scoring.formula` has it, none of them undecided."""
    return sum(_known(values[place]) for place in places)


def _known(value: float | None) -> float:
    if value is None:
        raise ValueError("undecided")  # whoever asks has looked
    return value
