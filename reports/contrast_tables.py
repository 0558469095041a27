"""Models beside people, by criterion, and the worst stimuli: computed once from the results, without a query."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext

from corpus.models import Stimulus
from reports.selectors import Results, Row
from reports.tables import Cell, Table, TableRow, address, breakdown
from reports.words import CONTRAST_REASONS, REASONS
from scoring.contrasts import (
    CriterionMean,
    Difference,
    Place,
    band_mean,
    counted_mean,
    criterion_means,
    differences,
    place_among,
    runs_mean,
    scored_rows,
    stimulus_values,
    worst,
)
from scoring.formula import ModelScore

AMONG = 3


@dataclass(frozen=True, slots=True)
class Contrast:
    row: Row
    difference: Difference
    place: Place


@dataclass(frozen=True, slots=True)
class ContrastRow:
    row: Row
    difference: Cell
    place: Cell


@dataclass(frozen=True, slots=True)
class WorstRow:
    stimulus: Stimulus
    lowest: list[str]  # models whose lowest it is, alone or with others
    among: list[str]  # models that have it among their three lowest
    href: str


def contrasts(results: Results) -> list[Contrast]:
    """Over the mean of a model's runs, whatever is drawn: the fair comparison with single people."""
    if "contrasts" not in results.memo:
        results.memo["contrasts"] = _contrasts(results)
    found: list[Contrast] = results.memo["contrasts"]
    return found


def _contrasts(results: Results) -> list[Contrast]:
    stimuli = [stimulus.pk for stimulus in results.stimuli]
    people = scored_rows(results.people.finished, stimuli)
    models = [runs_mean(row.finished, stimuli) for row in results.models]
    scores = people.mean(axis=1).tolist() if people.size else []
    return [
        Contrast(row, difference, place_among(None if mean is None else float(mean.mean()), scores))
        for row, difference, (mean, _n) in zip(results.models, differences(people, models), models, strict=True)
    ]


def contrast_rows(results: Results, found: Sequence[Contrast]) -> list[ContrastRow]:
    scale = len(results.criteria)
    return [
        ContrastRow(one.row, _difference(results, one, scale), Cell(one.place.percentile, digits=0, n=one.place.n))
        for one in found
    ]


def _difference(results: Results, one: Contrast, scale: int) -> Cell:
    found = one.difference
    if found.value is None:
        return Cell(reason=CONTRAST_REASONS[found.reason])
    low = None if found.low is None else found.low / scale
    high = None if found.high is None else found.high / scale
    return Cell(found.value / scale, href=address(results, group=one.row.key), low=low, high=high, n=found.n_runs)


def by_criterion(results: Results) -> Table:
    """Columns are the criteria's questions, and whether they are in the score."""
    stimuli = [stimulus.pk for stimulus in results.stimuli]
    rows = []
    for row in results.rows:
        means = [*criterion_means(row.finished, stimuli, results.criteria), *beside_means(results, row)]
        rows.append(TableRow(row, [_criterion_cell(results, row, mean) for mean in means]))
    codes = [(criterion.code, True) for criterion in results.criteria] + [(code, False) for code in results.beside]
    columns = [(results.questions[code], in_score) for code, in_score in codes]
    return Table(columns, rows)


def beside_means(results: Results, row: Row) -> list[CriterionMean]:
    """Of the criteria that are not in the score, in the order of `results.beside`."""
    return [
        counted_mean({value: n for (own, value), n in row.tally.beside.items() if own == code})
        for code in results.beside
    ]


def _criterion_cell(results: Results, row: Row, mean: CriterionMean) -> Cell:
    if mean.value is None:
        return Cell(reason=REASONS["undecided" if mean.n_undecided else "no_sittings"])
    bounds = mean.bounds
    return Cell(
        mean.value,
        href=address(results, group=row.key),
        n=mean.n,
        low=bounds.low if bounds else None,
        high=bounds.high if bounds else None,
    )


def band_means(results: Results, *, by_majority: bool) -> dict[str, float | None]:
    """The mean of the bands' means for each row's key; a model's over runs, or of its majorities."""
    places = [place for place, cut in enumerate(results.groups) if cut.factor == "complexity"]
    found = {}
    for row in results.rows:
        bands = []
        for place in places:
            score = row.scores[place]
            bands.append(score.majority if by_majority and isinstance(score, ModelScore) else score.mean)
        found[row.key] = band_mean(bands)
    return found


def breakdown_with_bands(results: Results) -> Table:
    """The breakdown, and the mean of the bands as a last column. Its columns are names and numbers of stimuli."""
    table, bands = breakdown(results), band_means(results, by_majority=results.by_majority)
    columns = [*table.columns, (gettext("mean of the bands"), None)]
    rows = []
    for line in table.rows:
        value = bands[line.head.key]
        reason = "" if value is not None else CONTRAST_REASONS["no_band"]
        last = Cell(value, reason, address(results, group=line.head.key))
        rows.append(TableRow(line.head, [*line.cells, last]))
    return Table(columns, rows)


def worst_stimuli(results: Results) -> tuple[list[WorstRow], int]:
    """Stimuli that are among some model's lowest, the most frequent first; and how many models have any.

    A model that answers everything rightly has no worst stimulus.
    """
    maximum = sum(criterion.maximum for criterion in results.criteria)
    lowest: dict[Hashable, list[str]] = {}
    among: dict[Hashable, list[str]] = {}
    counted = 0
    for row in results.models:
        values = _stimulus_values(results, row)
        counted += bool(values)
        for key in worst(values, maximum=maximum):
            lowest.setdefault(key, []).append(row.label)
        for key in worst(values, maximum=maximum, places=AMONG):
            among.setdefault(key, []).append(row.label)
    shown = [stimulus for stimulus in results.stimuli if stimulus.pk in among]
    shown.sort(key=lambda one: (-len(lowest.get(one.pk, [])), -len(among[one.pk]), one.position))
    rows = [
        WorstRow(one, lowest.get(one.pk, []), among[one.pk], address(results, stimulus=one.position)) for one in shown
    ]
    return rows, counted


def _stimulus_values(results: Results, row: Row) -> dict[Hashable, float]:
    score = row.scores[0]
    if results.by_majority and isinstance(score, ModelScore):
        return {key: answer.value for key, answer in score.by_stimulus.items() if answer.value is not None}
    return stimulus_values(row.stimuli)
