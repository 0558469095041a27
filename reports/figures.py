"""The paper's first figure: one Vega-Lite specification for the page and for files."""

import textwrap
from dataclasses import dataclass
from typing import Any, Literal

import altair as alt
import vl_convert
from django.template.defaultfilters import floatformat
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from reports.selectors import Results
from scoring.formula import ModelScore, PeopleScore

Theme = Literal["light", "dark"]

# Okabe and Ito's blue and vermilion: told apart with every common colour blindness, and in grey by their shape.
INK = {"light": "#212529", "dark": "#dee2e6"}
GRID = {"light": "#dee2e6", "dark": "#3a4047"}
BAR = {"light": "#4a8ab8", "dark": "#56a0d3"}
LINE = {"light": "#b3400a", "dark": "#ff8a4c"}

NUMBERS = {
    False: {"decimal": ".", "thousands": ",", "grouping": [3], "currency": ["", ""]},
    True: {"decimal": ",", "thousands": "\u00a0", "grouping": [3], "currency": ["", ""]},
}
WIDTH = 640
VEGA_LITE = "6.4"
FIGURE_COLUMNS = ("study", "simulated", "group", "n_sittings", "mean", "sd_over_runs", "majority", "low", "high")


@dataclass(frozen=True, slots=True)
class Bar:
    label: str
    mean: float
    sd: float | None  # over runs
    n: int


@dataclass(frozen=True, slots=True)
class Line:
    mean: float
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True, slots=True)
class FigureData:
    title: list[str]
    bars: list[Bar]
    line: Line | None
    not_drawn: list[tuple[str, str]]  # label and the code of the reason


def figure_data(results: Results) -> FigureData:
    """All of it on the scale 0 to 1."""
    bars: list[Bar] = []
    missing: list[tuple[str, str]] = []
    for row in results.models:
        score = row.scores[0]
        if isinstance(score, ModelScore) and score.mean.norm is not None:
            bars.append(Bar(row.label, score.mean.norm, score.sd.norm, score.n_scored))
        else:
            missing.append((row.label, score.mean.reason))
    bars.sort(key=lambda bar: -bar.mean)
    return FigureData(_title(results), bars, _line(results), missing)


def _title(results: Results) -> list[str]:
    """In lines that a phone can show: Vega does not break them itself."""
    title = _("%(study)s: people and models") % {"study": results.study.title}
    lines = textwrap.wrap(title, 42, break_long_words=True)
    return [_("SIMULATED DATA"), *lines] if results.study.simulated else lines


def _line(results: Results) -> Line | None:
    people = results.people.scores[0]
    if not isinstance(people, PeopleScore) or people.mean.norm is None:
        return None
    scale, interval = len(results.criteria), people.interval
    return Line(
        people.mean.norm,
        interval.low / scale if interval else None,
        interval.high / scale if interval else None,
        people.n_scored,
    )


def specification(data: FigureData, *, theme: Theme = "light") -> dict[str, Any]:
    """Vega-Lite: a bar for each model, lying on its side so that names stay readable on a phone, and people's line."""
    values = [
        {"label": bar.label, "mean": bar.mean, "sd": bar.sd, "n": bar.n}
        | ({} if bar.sd is None else {"from": max(0.0, bar.mean - bar.sd), "to": min(1.0, bar.mean + bar.sd)})
        for bar in data.bars
    ]
    y = alt.Y("label:N", sort=[bar.label for bar in data.bars], title=None, axis=alt.Axis(labelLimit=150))
    title = [_("Score from 0 to 1: mean over runs"), _("and standard deviation over runs")]
    x = alt.X("mean:Q", scale=alt.Scale(domain=[0, 1]), title=title, axis=alt.Axis(format=".1f", tickCount=5))
    bars = _chart(values).encode(y=y)
    whiskers = _chart([value for value in values if "from" in value]).encode(y=y)
    layers = [
        bars.mark_bar(color=BAR[theme], height={"band": 0.6}).encode(
            x=x, tooltip=[_tip("label:N", _("Model")), *_tips(), _tip("n:Q", _("Runs"), "d")]
        ),
        whiskers.mark_rule(color=INK[theme], strokeWidth=1.5).encode(x=alt.X("from:Q", title=title), x2="to:Q"),
        *whisker_ends(whiskers, theme, title),
        *people_layers(data.line, theme, title),
    ]
    chart = alt.layer(*layers).properties(
        width=WIDTH,
        height={"step": 30} if data.bars else 40,
        title=alt.TitleParams(text=data.title, subtitle=_subtitle(data), anchor="start", frame="bounds"),
    )
    finished: dict[str, Any] = styled(chart, theme).to_dict()
    return finished


def whisker_ends(whiskers: alt.Chart, theme: Theme, title: list[str]) -> list[alt.Chart]:
    tick = whiskers.mark_tick(color=INK[theme], thickness=1.5, height=8)
    return [tick.encode(x=alt.X(f"{end}:Q", title=title)) for end in ("from", "to")]


def people_layers(line: Line | None, theme: Theme, title: list[str]) -> list[alt.Chart]:
    if line is None:
        return []
    value = {"mean": line.mean, "low": line.low, "high": line.high, "n": line.n}
    chart = _chart([value])
    layers = []
    if line.low is not None:
        band = chart.mark_rect(color=LINE[theme], opacity=0.15)
        layers.append(band.encode(x=alt.X("low:Q", title=title), x2="high:Q"))
    rule = chart.mark_rule(color=LINE[theme], strokeWidth=2, strokeDash=[6, 3])
    tips = [_tip("mean:Q", _("People, mean"), ".3f"), _tip("n:Q", _("People"), "d")]
    layers.append(rule.encode(x=alt.X("mean:Q", title=title), tooltip=tips))
    return layers


def _chart(values: list[dict[str, Any]]) -> alt.Chart:
    return alt.Chart(alt.Data(values=values))  # type: ignore[no-untyped-call]


def _tip(field: str, title: str, number_format: str | None = None) -> alt.Tooltip:
    return alt.Tooltip(field, title=title, format=number_format or alt.Undefined)


def _tips() -> list[alt.Tooltip]:
    return [_tip("mean:Q", _("Mean"), ".3f"), _tip("sd:Q", _("SD over runs"), ".3f")]


def _subtitle(data: FigureData) -> list[str]:
    if data.line is None:
        return [_("No line: nobody has a score yet.")]
    text = _("Dashed line: people, %(mean)s (n = %(n)s)") % {"mean": _number(data.line.mean), "n": data.line.n}
    if data.line.low is None or data.line.high is None:
        return [text]
    bounds = {"low": _number(data.line.low), "high": _number(data.line.high)}
    return [text, _("band: 95 %% interval of their mean, %(low)s to %(high)s") % bounds]


def _number(value: float) -> str:
    return floatformat(value, 3)  # as the tables do it; number_format cuts instead of rounding


def styled(chart: Any, theme: Theme) -> Any:
    ink, grid = INK[theme], GRID[theme]
    font = "Liberation Sans, Arial, sans-serif"  # the first is the one that vl-convert carries
    return (
        chart.configure(
            background="transparent" if theme == "dark" else "#ffffff",
            font=font,
            locale=alt.Locale(number=NUMBERS[get_language() == "ru"]),
        )
        .configure_title(color=ink, subtitleColor=ink, fontSize=14, subtitleFontSize=12, offset=10)
        .configure_axis(
            labelColor=ink, titleColor=ink, gridColor=grid, domainColor=grid, tickColor=grid, labelFontSize=12
        )
        .configure_view(stroke=None)
    )


def compiled(specification: dict[str, Any]) -> dict[str, Any]:
    """Vega, which the page's interpreter draws. Compiled here because Vega-Lite's own compiler is large."""
    vega: dict[str, Any] = vl_convert.vegalite_to_vega(specification, vl_version=VEGA_LITE)
    return vega


def drawn(specification: dict[str, Any], kind: Literal["svg", "png", "pdf"]) -> bytes:
    """The same figure as a file. No address is fetched: the data is in the specification."""
    vega = compiled(specification)
    numbers = NUMBERS[get_language() == "ru"]
    if kind == "svg":
        svg: str = vl_convert.vega_to_svg(vega, allowed_base_urls=[], format_locale=numbers)
        return svg.encode()
    if kind == "png":
        png: bytes = vl_convert.vega_to_png(vega, scale=2, allowed_base_urls=[], format_locale=numbers)
        return png
    pdf: bytes = vl_convert.vega_to_pdf(vega, allowed_base_urls=[], format_locale=numbers)
    return pdf


def figure_rows(results: Results) -> list[list[Any]]:
    """The figure's data under FIGURE_COLUMNS, what is not drawn included: a missing figure is empty there."""
    rows: list[list[Any]] = []
    scale = len(results.criteria)
    for row in results.rows:
        score = row.scores[0]
        head = [results.study.slug, results.study.simulated, row.label, score.n_scored, score.mean.norm]
        if isinstance(score, ModelScore):
            rows.append([*head, score.sd.norm, score.majority.norm, None, None])
        else:
            interval = score.interval
            ends = [interval.low / scale, interval.high / scale] if interval else [None, None]
            rows.append([*head, None, None, *ends])
    return rows
