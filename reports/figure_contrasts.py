"""The fourth figure, which the paper does not have: how far each model is from people, with its interval."""

from dataclasses import dataclass
from typing import Any

import altair as alt
from django.utils.translation import gettext as _

from reports.contrast_tables import contrasts
from reports.figures import (
    BAR,
    INK,
    WIDTH,
    Theme,
    chart_of,
    name_height,
    named,
    names_beside,
    notes_of,
    styled,
    tip,
    titled,
)
from reports.selectors import Results
from scoring.contrasts import RESAMPLES

CONTRAST_COLUMNS = (
    "study",
    "simulated",
    "group",
    "difference",
    "low",
    "high",
    "reason",
    "percentile",
    "n_people",
    "n_runs",
    "n_stimuli",
    "resamples",
    "basis",
    "people",
)


@dataclass(frozen=True, slots=True)
class ContrastPoint:
    label: str
    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class ContrastData:
    title: list[str]
    notes: tuple[str, ...]
    points: list[ContrastPoint]
    not_drawn: list[tuple[str, str]]


def contrast_data(results: Results) -> ContrastData:
    """All of it on the scale −1 to 1."""
    scale = len(results.criteria)
    points: list[ContrastPoint] = []
    missing: list[tuple[str, str]] = []
    for one in contrasts(results):
        found = one.difference
        if found.value is None:
            missing.append((one.row.label, found.reason))
            continue
        low = None if found.low is None else found.low / scale
        high = None if found.high is None else found.high / scale
        points.append(ContrastPoint(one.row.label, found.value / scale, low, high))
    points.sort(key=lambda point: -point.value)
    return ContrastData(titled(results, _("%(study)s: models minus people")), notes_of(results), points, missing)


def contrast_specification(data: ContrastData, *, theme: Theme = "light") -> dict[str, Any]:
    """Vega-Lite: a point for each model and a line for its interval; a dashed line where people stand."""
    values = [
        named(one.label) | {"value": one.value} | ({} if one.low is None else {"low": one.low, "high": one.high})
        for one in data.points
    ]
    title = [_("Difference of the scores from 0 to 1,"), _("95 % bootstrap interval over people and stimuli")]
    labels = [one.label for one in data.points]
    y = names_beside(labels)
    x = alt.X("value:Q", title=title, scale=alt.Scale(zero=True, nice=True), axis=alt.Axis(format="+.2f", tickCount=5))
    points = chart_of(values).encode(y=y)
    intervals = chart_of([value for value in values if "low" in value]).encode(y=y)
    tips = [tip("name:N", _("Model")), tip("value:Q", _("Difference"), "+.3f")]
    if len(values) and all("low" in value for value in values):
        tips += [tip("low:Q", _("from"), "+.3f"), tip("high:Q", _("to"), "+.3f")]
    layers = [
        chart_of([{"zero": 0}]).mark_rule(color=INK[theme], strokeDash=[6, 3]).encode(x=alt.X("zero:Q", title=title)),
        intervals.mark_rule(color=BAR[theme], strokeWidth=6, opacity=0.45).encode(
            x=alt.X("low:Q", title=title), x2="high:Q"
        ),
        points.mark_point(color=INK[theme], filled=True, size=60, shape="diamond").encode(x=x, tooltip=tips),
    ]
    subtitle = [_("Right of the dashed line: better than people on average"), *data.notes]
    chart = alt.layer(*layers).properties(
        width=WIDTH,
        height={"step": name_height(labels, 26)} if values else 40,
        title=alt.TitleParams(text=data.title, subtitle=subtitle, anchor="start", frame="bounds"),
    )
    finished: dict[str, Any] = styled(chart, theme).to_dict(validate=False)
    return finished


def contrast_csv_rows(results: Results, *, in_words: bool = False) -> list[list[Any]]:
    """Under CONTRAST_COLUMNS, 0 to 1: of models only, whose names are the same in every language."""
    scale, study, choice = len(results.criteria), results.study, results.chosen.choice
    rows = []
    for one in contrasts(results):
        found = one.difference
        numbers = [None if value is None else value / scale for value in (found.value, found.low, found.high)]
        rows.append(
            [
                study.slug,
                study.simulated,
                one.row.label,
                *numbers,
                found.reason or None,
                one.place.percentile,
                found.n_people,
                found.n_runs,
                found.n_stimuli,
                found.resamples or None,
                choice.basis.key,
                choice.people,
            ]
        )
    return rows


def contrast_note() -> str:
    return _(
        "The interval is a percentile bootstrap of %(resamples)s resamples with a fixed seed: people are resampled, "
        "and stimuli, the same ones for people and model; a model's runs are not resampled but averaged."
    ) % {"resamples": RESAMPLES}
