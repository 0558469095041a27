"""The comparison of judges as a table of rows: one figure of one judge in each."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from reports.judge_comparison import Comparison, Line
from scoring.correlation import Correlation
from scoring.evaluation import FIGURES, Estimate, Report

FROM_HIGHEST = "from_highest"
MAJORITY = "majority class"
COLUMNS = (
    "study",
    "simulated",
    "split",
    "split_seed",
    "judge",
    "judge_id",
    "judge_kind",
    "subset",
    "answers_chosen",
    "figure",
    "criterion",
    "unit",
    "variant",
    "value",
    "low",
    "high",
    "undefined_resamples",
    "reason",
    "n",
    "n_respondents",
)


def comparison_rows(found: Comparison) -> Iterator[Sequence[Any]]:
    """Every F1, the MCC, the asked figure's mean over criteria, its difference from the highest, and the correlations.

    The correlations are of all test answers whatever the subset; their `variant` says which are left out.
    """
    for line in (*found.lines, found.constant):
        head = _head(found, line)
        for criterion, report in zip(found.criteria, line.cells, strict=True):
            if report is not None:
                yield from _figure_rows([*head, found.asked.subset, found.asked.on], criterion.code, report)
        if line.mean is not None:
            start = [*head, found.asked.subset, found.asked.on, found.asked.figure, "mean", "answer", None]
            yield [*start, *_estimate(line.mean), None, None]
        if line.from_highest is not None:
            start = [*head, found.asked.subset, found.asked.on, found.asked.figure, "mean", "answer", FROM_HIGHEST]
            yield [*start, *_estimate(line.from_highest), None, None]
        for (unit, variant), correlation in line.correlations.items():
            yield from _correlation_rows([*head, None, found.asked.on], unit, variant, correlation)


def _head(found: Comparison, line: Line) -> list[Any]:
    split = found.sheet.split
    who = [judge_text(line), line.judge, line.row.kind if line.row else None]
    return [split.study.slug, split.study.simulated, split.pk, split.seed, *who]


def judge_text(line: Line) -> str:
    """What a row is called in files and on the command line, the same in every language."""
    if line.row is None:
        return MAJORITY
    return "; ".join(f"{criterion.code}: {name}" for criterion, name in line.row.parts) or line.row.name


def _figure_rows(head: list[Any], code: str, report: Report) -> Iterable[Sequence[Any]]:
    for figure in FIGURES:
        estimate = _estimate(report.estimates[figure])
        yield [*head, figure, code, "answer", None, *estimate, report.n, report.n_respondents]


def _correlation_rows(head: list[Any], unit: str, variant: str, correlation: Correlation) -> Iterable[Sequence[Any]]:
    for figure, estimate in (("pearson", correlation.pearson), ("spearman", correlation.spearman)):
        counts = correlation.n, correlation.n_respondents
        yield [*head, figure, "score", unit, variant, *_estimate(estimate), *counts]


def _estimate(estimate: Estimate) -> list[Any]:
    return [estimate.value, estimate.low, estimate.high, estimate.undefined, estimate.reason or None]
