"""Pace or agreement with the others over time: a line for each rater."""

from collections.abc import Sequence
from typing import Any

import altair as alt
from django.utils.translation import gettext as _

from annotation.quality import Part, Quality
from reports.figures import INK, WIDTH, Theme, styled
from scoring.models import Criterion
from studies.models import Study

# Okabe and Ito's colours, which stay apart with every common colour blindness; each line has a mark of its own beside.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#8C6D1F", "#7A7A7A", "#8877CC")
MARKS = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left")
MOST = len(COLOURS)
"""More lines than these cannot be told apart."""

PACE = "pace"


def choices(found: Quality) -> list[tuple[str, str]]:
    """What can be drawn: code and words."""
    others = [
        (one.code, _("%(criterion)s As most of the others") % {"criterion": one.question}) for one in found.criteria
    ]
    return [(PACE, _("Seconds on an answer, median")), *others]


def can_be_drawn(found: Quality) -> bool:
    return 0 < sum(bool(row.parts) for row in found.raters) <= MOST


def drift_specification(study: Study, found: Quality, drawn: str, *, theme: Theme = "light") -> dict[str, Any]:
    """Vega-Lite: fifths of each rater's own sequence from left to right. A fifth without a value breaks the line.

    `drawn` is one of `choices`; no more raters than can_be_drawn says.
    """
    rows = [row for row in found.raters if row.parts]
    values = [
        {"rater": row.rater.pseudonym, "part": part.number, "value": value, "n": n}
        for row in rows
        for part in row.parts
        for value, n in [_point(part, found.criteria, drawn)]
    ]
    title = dict(choices(found))[drawn]
    names, is_share = [row.rater.pseudonym for row in rows], drawn != PACE
    number = ".0%" if is_share else ".1f"
    scale = alt.Scale(domain=[0, 1]) if is_share else alt.Scale(zero=True, nice=True)
    legend = alt.Legend(orient="bottom", columns=4, title=None, symbolType="circle")
    chart = alt.Chart(alt.Data(values=values))  # type: ignore[no-untyped-call]
    chart = chart.mark_line(point={"size": 60, "filled": True}, strokeWidth=2).encode(
        x=alt.X("part:O", title=_("Fifths of the rater's own sequence"), axis=alt.Axis(labelAngle=0)),
        y=alt.Y("value:Q", title=None, scale=scale, axis=alt.Axis(format=".0%" if is_share else "d", tickCount=5)),
        color=alt.Color(
            "rater:N", sort=names, scale=alt.Scale(domain=names, range=COLOURS[: len(names)]), legend=legend
        ),
        shape=alt.Shape("rater:N", sort=names, scale=alt.Scale(domain=names, range=MARKS[: len(names)]), legend=legend),
        tooltip=[
            alt.Tooltip("rater:N", title=_("Rater")),
            alt.Tooltip("part:O", title=_("Part")),
            alt.Tooltip("value:Q", title=title, format=number),
            alt.Tooltip("n:Q", title="n", format="d"),
        ],
    )
    lines = [_("SIMULATED DATA"), title] if study.simulated else [title]
    chart = chart.properties(width=WIDTH, height=240, title=alt.TitleParams(text=lines, anchor="start", frame="bounds"))
    chart = styled(chart, theme).configure_legend(labelColor=INK[theme], labelFontSize=12)
    finished: dict[str, Any] = chart.to_dict()
    return finished


def _point(part: Part, criteria: Sequence[Criterion], drawn: str) -> tuple[float | None, int]:
    if drawn == PACE:
        return part.pace.median, part.pace.n
    place = [criterion.code for criterion in criteria].index(drawn)
    share = part.by_criterion[place].with_others
    return share.value, share.n
