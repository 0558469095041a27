"""The paper's second and third figures: people and models as bars, by the order of the words and by complexity.

A model's whisker is the deviation over its runs: a thin line with ends. People have the interval of their mean: a
broad bar without ends, in the colour of the people's line. The two are not the same thing and do not look it.
"""

from dataclasses import dataclass
from typing import Any, Literal

import altair as alt
from django.utils.translation import gettext as _

from reports.figures import (
    INK,
    LINE,
    WIDTH,
    Bar,
    Theme,
    axis_title,
    bar_values,
    chart_of,
    mean_points,
    model_bar,
    name_height,
    names_beside,
    notes_of,
    score_axis,
    styled,
    tip,
    tips,
    titled,
    whisker_ends,
)
from reports.selectors import Results
from reports.words import CUTS
from scoring.formula import PeopleScore

Factor = Literal["shuffled", "complexity"]

# Steps of one blue, told apart in grey and in their order; none so near to the ink that a whisker would vanish on it.
STEPS = {
    "light": {2: ["#b9d9ee", "#5c9ac6"], 3: ["#cfe5f4", "#93c1e0", "#5c9ac6"]},
    "dark": {2: ["#3f7ea8", "#24506e"], 3: ["#4a8cb8", "#326789", "#1f4560"]},
}
BAND = 16  # height of one bar with its room


@dataclass(frozen=True, slots=True)
class CutBar:
    """One bar: a model's, or the people's with the interval of their mean."""

    level: str
    bar: Bar
    is_people: bool
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class CutData:
    title: list[str]
    notes: tuple[str, ...]
    labels: list[str]  # from the top: people, then models from the best
    levels: list[str]
    bars: list[CutBar]
    not_drawn: list[tuple[str, str]]  # label with its level, and the code of the reason
    is_majority: bool


def cut_data(results: Results, factor: Factor) -> CutData:
    """All of it on the scale 0 to 1."""
    places = [place for place, cut in enumerate(results.groups) if cut.factor == factor]
    levels = {place: _level(factor, results.groups[place].value) for place in places}
    is_majority = results.chosen.choice.runs == "majority"
    bars = [bar for place in places if (bar := _people_bar(results, place, levels[place])) is not None]
    missing: list[tuple[str, str]] = []
    if results.people.n_sittings and len(bars) < len(places):
        drawn = {bar.level for bar in bars}
        people = results.people
        missing += [
            (f"{people.label}, {levels[place]}", people.scores[place].mean.reason)
            for place in places
            if levels[place] not in drawn
        ]
    overall: dict[str, float] = {}
    for row in results.models:
        whole = model_bar(row, 0, is_majority=is_majority)
        overall[row.label] = whole.value if isinstance(whole, Bar) else -1.0
        for place in places:
            found = model_bar(row, place, is_majority=is_majority)
            if isinstance(found, Bar):
                bars.append(CutBar(levels[place], found, is_people=False))
            else:
                missing.append((f"{row.label}, {levels[place]}", found))
    drawn_labels = {bar.bar.label for bar in bars}
    labels = [results.people.label, *sorted(overall, key=lambda label: -overall[label])]
    title = {
        "shuffled": _("%(study)s: by order of the given words"),
        "complexity": _("%(study)s: by complexity"),
    }[factor]
    return CutData(
        titled(results, title),
        notes_of(results),
        [label for label in labels if label in drawn_labels],
        list(levels.values()),
        bars,
        missing,
        is_majority,
    )


def _level(factor: str, value: str) -> str:
    return str(CUTS.get((factor, value), value))


def _people_bar(results: Results, place: int, level: str) -> CutBar | None:
    score, scale = results.people.scores[place], len(results.criteria)
    if not isinstance(score, PeopleScore) or score.mean.norm is None:
        return None
    bar = Bar(results.people.label, score.mean.norm, None, score.n_scored)
    if score.interval is None:
        return CutBar(level, bar, is_people=True)
    return CutBar(level, bar, True, score.interval.low / scale, score.interval.high / scale)


def cut_specification(data: CutData, *, theme: Theme = "light") -> dict[str, Any]:
    """Vega-Lite: for each respondent a bar for each level."""
    values = [
        bar_values(one.bar) | {"level": one.level} | ({"low": one.low, "high": one.high} if one.low is not None else {})
        for one in data.bars
    ]
    title = axis_title(is_majority=data.is_majority)
    y = names_beside(data.labels, scale=alt.Scale(paddingInner=0.25))
    within = alt.YOffset("level:N", sort=data.levels)
    colours = alt.Color(
        "level:N",
        sort=data.levels,
        scale=alt.Scale(domain=data.levels, range=_steps(theme, len(data.levels))),
        legend=alt.Legend(orient="bottom", title=None, symbolType="square"),
    )
    x = score_axis(values, title)
    bars = chart_of(values).encode(y=y, yOffset=within)
    over_runs = chart_of([value for value in values if "from" in value]).encode(y=y, yOffset=within)
    over_people = chart_of([value for value in values if "low" in value]).encode(y=y, yOffset=within)
    layers = [
        bars.mark_bar().encode(
            x=x,
            color=colours,
            tooltip=[
                tip("name:N", _("Respondent")),
                tip("level:N", _("Stimuli")),
                *tips(data.is_majority),
                tip("n:Q", "n", "d"),
            ],
        ),
        over_people.mark_rule(color=LINE[theme], opacity=0.85, strokeWidth=6).encode(
            x=alt.X("low:Q", title=title), x2="high:Q"
        ),
        # The end of the bar, which lies under the interval.
        over_people.mark_tick(color=INK[theme], thickness=2, height=BAND * 0.6).encode(x=x),
        over_runs.mark_rule(color=INK[theme], strokeWidth=1.5).encode(x=alt.X("from:Q", title=title), x2="to:Q"),
        *whisker_ends(over_runs, theme, title),
        *(mean_points(over_runs, theme, title) if data.is_majority else []),
    ]
    chart = alt.layer(*layers).properties(
        width=WIDTH,
        height=name_height(data.labels, BAND * len(data.levels)) * len(data.labels) or BAND,
        title=alt.TitleParams(text=data.title, subtitle=[*_subtitle(), *data.notes], anchor="start", frame="bounds"),
    )
    finished: dict[str, Any] = (
        styled(chart, theme).configure_legend(labelColor=INK[theme], labelFontSize=12).to_dict(validate=False)
    )
    return finished


def _steps(theme: Theme, number: int) -> list[str]:
    return STEPS[theme][2 if number <= 2 else 3][:number]


def _subtitle() -> list[str]:
    return [
        _("Models: thin whisker with ends, SD over runs"),
        _("People: broad bar, 95 % bootstrap interval of their mean"),
    ]
