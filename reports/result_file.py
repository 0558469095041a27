"""The whole results page as one long table: a row for each number."""

from collections.abc import Iterator
from typing import Any

from reports.contrast_tables import band_means, beside_means, contrasts
from reports.selectors import Results, Row
from scoring.contrasts import criterion_means
from scoring.formula import Bounds, MeanInterval, ModelScore, PeopleScore, Score

TABLE_COLUMNS = (
    "study",
    "simulated",
    "instrument",
    "instrument_version",
    "basis",
    "people",
    "group",
    "kind",
    "measure",
    "factor",
    "level",
    "value",
    "low",
    "high",
    "range",
    "n",
    "n_undecided",
    "reason",
)
Line = tuple[str, str | None, str | None, float | None, float | None, float | None, str | None, int | None, int, str]


def table_rows(results: Results) -> Iterator[list[Any]]:
    """Under TABLE_COLUMNS; scores from 0 to 1. `range` says what low and high are; an undefined value has a reason."""
    choice, instrument = results.chosen.choice, results.instrument
    head = [
        results.study.slug,
        results.study.simulated,
        instrument.slug,
        instrument.version,
        choice.basis.key,
        choice.people,
    ]
    for row in results.rows:
        own = [*head, row.file_name, "people" if row.is_people else "model"]
        for line in _lines(results, row):
            yield [*own, *(None if cell == "" else cell for cell in line)]
    for one in contrasts(results):
        own, found, scale = [*head, one.row.label, "model"], one.difference, len(results.criteria)
        numbers = [None if value is None else value / scale for value in (found.value, found.low, found.high)]
        kind = "interval over people and stimuli" if found.low is not None else None
        yield [*own, "difference", "all", None, *numbers, kind, found.n_runs, 0, found.reason or None]
        reason = None if one.place.percentile is not None else found.reason or "no_runs"
        yield [*own, "percentile", "all", None, one.place.percentile, None, None, None, one.place.n, 0, reason]


def _lines(results: Results, row: Row) -> Iterator[Line]:
    scale = len(results.criteria)
    for cut, score in zip(results.groups, row.scores, strict=True):
        yield _score(
            "mean",
            cut.factor,
            cut.value,
            score.mean,
            score.n_scored,
            score.n_undecided if isinstance(score, PeopleScore) else _undecided(score),
            _scaled(score.interval, scale) if isinstance(score, PeopleScore) else None,
        )
        if isinstance(score, ModelScore):
            undecided = _undecided(score)
            yield _score("sd_over_runs", cut.factor, cut.value, score.sd, score.n_scored, undecided)
            bounds = _scaled(score.bounds, scale) if undecided else None
            yield _score("majority", cut.factor, cut.value, score.majority, score.n_complete, undecided, bounds)
        elif score.bounds is not None and score.n_undecided:
            low, high, kind = _scaled(score.bounds, scale) or (None, None, None)
            n = score.n_scored + score.n_undecided
            yield "mean_bounds", cut.factor, cut.value, None, low, high, kind, n, score.n_undecided, ""
    yield _band("band_mean", band_means(results, by_majority=False)[row.key])
    if not row.is_people:
        yield _band("band_majority", band_means(results, by_majority=True)[row.key])
    stimuli = [stimulus.pk for stimulus in results.stimuli]
    codes = [criterion.code for criterion in results.criteria]
    means = [*criterion_means(row.finished, stimuli, results.criteria), *beside_means(results, row)]
    for code, mean in zip([*codes, *results.beside], means, strict=True):
        low, high, kind = _scaled(mean.bounds, 1) or (None, None, None)
        reason = "" if mean.value is not None else ("undecided" if mean.n_undecided else "no_sittings")
        yield "criterion", "criterion", code, mean.value, low, high, kind, mean.n, mean.n_undecided, reason
    for stimulus in results.stimuli:
        found, position = row.stimuli[stimulus.pk], str(stimulus.position)
        yield _score("stimulus", "stimulus", position, found.score, found.n, found.n_undecided)
        if isinstance(row.scores[0], ModelScore):
            yield _stimulus_majority(row.scores[0], stimulus.pk, position, scale)


def _stimulus_majority(score: ModelScore, key: int, position: str, scale: int) -> Line:
    own = score.by_stimulus.get(key)
    value = None if own is None or own.value is None else own.value / scale
    reason = score.majority.reason if value is None else ""
    return "stimulus_majority", "stimulus", position, value, None, None, None, score.n_complete, 0, reason


def _band(measure: str, value: float | None) -> Line:
    return measure, "complexity", "", value, None, None, None, None, 0, "" if value is not None else "undecided"


def _undecided(score: ModelScore) -> int:
    return sum(run.n_undecided > 0 for run in score.runs)


def _score(
    measure: str,
    factor: str,
    level: str,
    score: Score,
    n: int,
    n_undecided: int,
    found: tuple[float, float, str] | None = None,
) -> Line:
    low, high, kind = found or (None, None, None)
    return measure, factor, level, score.norm, low, high, kind, n, n_undecided, score.reason


def _scaled(found: Bounds | MeanInterval | None, scale: int) -> tuple[float, float, str] | None:
    if found is None:
        return None
    kind = "interval over people" if isinstance(found, MeanInterval) else "bounds"
    return found.low / scale, found.high / scale, kind
