"""What the figures share, and the first of them: one Vega-Lite specification for the page and for files."""

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import altair as alt
import vl_convert
from django.template.defaultfilters import floatformat
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from reports.selectors import Results, Row
from scoring.formula import ModelScore, PeopleScore

Theme = Literal["light", "dark"]

# Okabe and Ito's blue and vermilion: told apart with every common colour blindness, and in grey by their shape.
INK = {"light": "#212529", "dark": "#dee2e6"}
GRID = {"light": "#dee2e6", "dark": "#3a4047"}
BAR = {"light": "#4a8ab8", "dark": "#3a7ca8"}
LINE = {"light": "#b3400a", "dark": "#ff8a4c"}

NUMBERS = {
    False: {"decimal": ".", "thousands": ",", "grouping": [3], "currency": ["", ""]},
    True: {"decimal": ",", "thousands": "\u00a0", "grouping": [3], "currency": ["", ""]},
}
WIDTH = 640
NAME_LENGTH = 22  # characters of a name in one line beside its bar: what a phone leaves room for
LINE_HEIGHT = 14
NAME_LINES = r"split(datum.value, '\n')"  # a Vega expression
VEGA_LITE = "6.4"
FIGURE_COLUMNS = (
    "study",
    "simulated",
    "group",
    "n_sittings",
    "mean",
    "sd_over_runs",
    "majority",
    "low",
    "high",
    "factor",
    "level",
    "n_stimuli",
    "basis",
    "people",
)


@dataclass(frozen=True, slots=True)
class Bar:
    """`mean` and `sd` are over runs; `majority` is drawn instead where it is given."""

    label: str
    mean: float
    sd: float | None
    n: int
    majority: float | None = None

    @property
    def value(self) -> float:
        return self.mean if self.majority is None else self.majority


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
    notes: tuple[str, ...] = ()  # under the title, besides what the line is
    is_majority: bool = False


def figure_data(results: Results) -> FigureData:
    """All of it on the scale 0 to 1."""
    bars: list[Bar] = []
    missing: list[tuple[str, str]] = []
    is_majority = results.chosen.choice.runs == "majority"
    for row in results.models:
        found = model_bar(row, 0, is_majority=is_majority)
        if isinstance(found, Bar):
            bars.append(found)
        else:
            missing.append((row.label, found))
    bars.sort(key=lambda bar: -bar.value)
    return FigureData(
        titled(results, _("%(study)s: people and models")),
        bars,
        _line(results),
        missing,
        notes_of(results),
        is_majority,
    )


def model_bar(row: Row, cut: int, *, is_majority: bool) -> Bar | str:
    """The bar of a model on a group of stimuli, or the code of the reason why there is none."""
    score = row.scores[cut]
    if not isinstance(score, ModelScore):
        return "no_sittings"
    drawn = score.majority if is_majority else score.mean
    if drawn.norm is None:
        return drawn.reason
    mean = drawn.norm if score.mean.norm is None else score.mean.norm
    sd = None if score.mean.norm is None else score.sd.norm
    return Bar(row.label, mean, sd, score.n_scored, drawn.norm if is_majority else None)


def titled(results: Results, title: str) -> list[str]:
    """In lines that a phone can show: Vega does not break them itself."""
    lines = textwrap.wrap(title % {"study": results.study.title}, 42, break_long_words=True)
    if len(lines) > 1:  # what is drawn, in a line of its own
        what = (title % {"study": ""}).lstrip(": ")
        lines = [*textwrap.wrap(f"{results.study.title}:", 42, break_long_words=True), *textwrap.wrap(what, 42)]
    return [_("SIMULATED DATA"), *lines] if results.study.simulated else lines


def notes_of(results: Results) -> tuple[str, ...]:
    """What a file must say of itself: the basis and the people, in lines that a phone can show."""
    notes = [
        _("Basis: %(basis)s") % {"basis": results.chosen.basis_name},
        _("People: %(people)s") % {"people": results.chosen.people_name},
    ]
    return tuple(line for note in notes for line in textwrap.wrap(note, 56, break_long_words=True))


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
    values = [bar_values(bar) for bar in data.bars]
    labels = [bar.label for bar in data.bars]
    y = names_beside(labels)
    title = axis_title(is_majority=data.is_majority)
    x = score_axis(values, title)
    bars = chart_of(values).encode(y=y)
    whiskers = chart_of([value for value in values if "from" in value]).encode(y=y)
    layers = [
        bars.mark_bar(color=BAR[theme], height={"band": 0.6}).encode(
            x=x, tooltip=[tip("name:N", _("Model")), *tips(data.is_majority), tip("n:Q", _("Runs"), "d")]
        ),
        whiskers.mark_rule(color=INK[theme], strokeWidth=1.5).encode(x=alt.X("from:Q", title=title), x2="to:Q"),
        *whisker_ends(whiskers, theme, title),
        *(mean_points(whiskers, theme, title) if data.is_majority else []),
        *people_layers(data.line, theme, title),
    ]
    chart = alt.layer(*layers).properties(
        width=WIDTH,
        height={"step": name_height(labels, 30)} if data.bars else 40,
        title=alt.TitleParams(
            text=data.title, subtitle=[*_subtitle(data), *data.notes], anchor="start", frame="bounds"
        ),
    )
    finished: dict[str, Any] = styled(chart, theme).to_dict(validate=False)
    return finished


def names_beside(labels: Iterable[str], **more: Any) -> alt.Y:
    """The axis of names, in this order. A long name stands in several lines: cut, two could no longer be told apart."""
    axis = alt.Axis(labelLimit=170, labelLineHeight=LINE_HEIGHT, labelExpr=NAME_LINES)
    return alt.Y("label:N", sort=[in_lines(label) for label in labels], title=None, axis=axis, **more)


def named(label: str) -> dict[str, Any]:
    """`label` for names_beside, `name` for tooltips."""
    return {"label": in_lines(label), "name": label}


def in_lines(label: str) -> str:
    return "\n".join(textwrap.wrap(label, NAME_LENGTH, break_long_words=True)) or label


def name_height(labels: Iterable[str], least: int) -> int:
    """Pixels that each name needs so that none runs into the next."""
    lines = max((in_lines(label).count("\n") + 1 for label in labels), default=1)
    return max(least, LINE_HEIGHT * lines + 4)


def bar_values(bar: Bar) -> dict[str, Any]:
    value = named(bar.label) | {"value": bar.value, "mean": bar.mean, "sd": bar.sd, "n": bar.n}
    if bar.sd is None:
        return value
    return value | {"from": bar.mean - bar.sd, "to": bar.mean + bar.sd}


def score_axis(values: list[dict[str, Any]], title: list[str]) -> alt.X:
    """From 0 to 1, and as far beyond as a whisker goes: cut at 1 it would look like a deviation of two lengths."""
    low = min((value["from"] for value in values if "from" in value), default=0)
    high = max((value["to"] for value in values if "to" in value), default=1)
    scale = alt.Scale(domain=[min(0, low), max(1, high)], nice=False)
    axis = alt.Axis(format=".1f", values=[0, 0.2, 0.4, 0.6, 0.8, 1])
    return alt.X("value:Q", scale=scale, title=title, axis=axis)


def axis_title(*, is_majority: bool) -> list[str]:
    if is_majority:
        return [_("Score from 0 to 1: majority over runs;"), _("dot and whisker: mean and SD over runs")]
    return [_("Score from 0 to 1: mean over runs"), _("and standard deviation over runs")]


def mean_points(whiskers: alt.Chart, theme: Theme, title: list[str]) -> list[alt.Chart]:
    """Where the bar is the majority, the whisker's own middle: it is around the mean over runs."""
    return [whiskers.mark_point(color=INK[theme], filled=True, size=25).encode(x=alt.X("mean:Q", title=title))]


def whisker_ends(whiskers: alt.Chart, theme: Theme, title: list[str]) -> list[alt.Chart]:
    tick = whiskers.mark_tick(color=INK[theme], thickness=1.5, height=8)
    return [tick.encode(x=alt.X(f"{end}:Q", title=title)) for end in ("from", "to")]


def people_layers(line: Line | None, theme: Theme, title: list[str]) -> list[alt.Chart]:
    if line is None:
        return []
    value = {"mean": line.mean, "low": line.low, "high": line.high, "n": line.n}
    chart = chart_of([value])
    layers = []
    if line.low is not None:
        band = chart.mark_rect(color=LINE[theme], opacity=0.15)
        layers.append(band.encode(x=alt.X("low:Q", title=title), x2="high:Q"))
    rule = chart.mark_rule(color=LINE[theme], strokeWidth=2, strokeDash=[6, 3])
    tips = [tip("mean:Q", _("People, mean"), ".3f"), tip("n:Q", _("People"), "d")]
    layers.append(rule.encode(x=alt.X("mean:Q", title=title), tooltip=tips))
    return layers


def chart_of(values: list[dict[str, Any]]) -> alt.Chart:
    return alt.Chart(alt.Data(values=values))  # type: ignore[no-untyped-call]


def tip(field: str, title: str, number_format: str | None = None) -> alt.Tooltip:
    return alt.Tooltip(field, title=title, format=number_format or alt.Undefined)


def tips(is_majority: bool = False) -> list[alt.Tooltip]:
    majority = [tip("value:Q", _("Majority"), ".3f")] if is_majority else []
    return [*majority, tip("mean:Q", _("Mean"), ".3f"), tip("sd:Q", _("SD over runs"), ".3f")]


def _subtitle(data: FigureData) -> list[str]:
    if data.line is None:
        return [_("No line: nobody has a score yet.")]
    text = _("Dashed line: people, %(mean)s (n = %(n)s)") % {"mean": number(data.line.mean), "n": data.line.n}
    if data.line.low is None or data.line.high is None:
        return [text]
    bounds = {"low": number(data.line.low), "high": number(data.line.high)}
    return [text, _("Band: 95 %% interval of their mean, %(low)s to %(high)s") % bounds]


def number(value: float) -> str:
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
    for axis in vega.get("axes", []):
        update = axis.get("encode", {}).get("labels", {}).get("update", {})
        if update.get("text") == {"signal": NAME_LINES}:
            # Vega puts the first line where the bar is; this moves all of them up by half. Vega-Lite cannot say it.
            update["dy"] = {"signal": f"-{LINE_HEIGHT / 2:g} * (length({NAME_LINES}) - 1)"}
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


def figure_rows(results: Results, *, in_words: bool = False) -> list[list[Any]]:
    """The figure's data under FIGURE_COLUMNS, what is not drawn included: a missing figure is empty there."""
    return cut_rows(results, [0], in_words=in_words)


def cut_rows(results: Results, cuts: Iterable[int], *, in_words: bool = False) -> list[list[Any]]:
    """Rows of results on groups of stimuli, under FIGURE_COLUMNS. `in_words`: in the reader's language."""
    rows: list[list[Any]] = []
    scale, study = len(results.criteria), results.study
    for row in results.rows:
        for place in cuts:
            cut, score = results.groups[place], row.scores[place]
            name = row.label if in_words else row.file_name
            head = [study.slug, study.simulated, name, score.n_scored, score.mean.norm]
            tail = [
                cut.factor,
                cut.value or None,
                len(cut.stimuli),
                results.chosen.choice.basis.key,
                results.chosen.choice.people,
            ]
            if isinstance(score, ModelScore):
                rows.append([*head, score.sd.norm, score.majority.norm, None, None, *tail])
                continue
            interval = score.interval
            ends = [interval.low / scale, interval.high / scale] if interval else [None, None]
            rows.append([*head, None, None, *ends, *tail])
    return rows
