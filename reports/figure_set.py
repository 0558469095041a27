"""The figures of the results page by number: what each draws, its file's columns, and what could not be drawn."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from reports.figure_contrasts import CONTRAST_COLUMNS, contrast_csv_rows, contrast_data, contrast_specification
from reports.figure_cuts import Factor, cut_data, cut_specification
from reports.figures import FIGURE_COLUMNS, Theme, cut_rows, figure_data, figure_rows, specification
from reports.selectors import Results


@dataclass(frozen=True, slots=True)
class Drawn:
    """A figure of some results. `not_drawn`: labels and codes of reasons."""

    specification: Callable[[Theme], dict[str, Any]]
    is_empty: bool
    not_drawn: list[tuple[str, str]]


class Rows(Protocol):
    """Of a figure's file; `in_words` for people who read it, in their language."""

    def __call__(self, results: Results, *, in_words: bool = False) -> list[list[Any]]: ...


@dataclass(frozen=True, slots=True)
class Figure:
    number: int
    draw: Callable[[Results], Drawn]
    columns: tuple[str, ...]
    rows: Rows

    @property
    def name(self) -> str:
        return f"figure{self.number}"


def _overall(results: Results) -> Drawn:
    data = figure_data(results)
    return Drawn(lambda theme: specification(data, theme=theme), not data.bars and data.line is None, data.not_drawn)


def _by(factor: Factor) -> Callable[[Results], Drawn]:
    def draw(results: Results) -> Drawn:
        data = cut_data(results, factor)
        return Drawn(lambda theme: cut_specification(data, theme=theme), not data.bars, data.not_drawn)

    return draw


def _contrasts(results: Results) -> Drawn:
    data = contrast_data(results)
    return Drawn(lambda theme: contrast_specification(data, theme=theme), not data.points, data.not_drawn)


def _rows_by(factor: Factor) -> Rows:
    def rows(results: Results, *, in_words: bool = False) -> list[list[Any]]:
        places = [place for place, cut in enumerate(results.groups) if cut.factor == factor]
        return cut_rows(results, places, in_words=in_words)

    return rows


FIGURES = {
    figure.number: figure
    for figure in (
        Figure(1, _overall, FIGURE_COLUMNS, figure_rows),
        Figure(2, _by("shuffled"), FIGURE_COLUMNS, _rows_by("shuffled")),
        Figure(3, _by("complexity"), FIGURE_COLUMNS, _rows_by("complexity")),
        Figure(4, _contrasts, CONTRAST_COLUMNS, contrast_csv_rows),
    )
}
