"""The participant flow as lines of a table, as a figure and as a file: who came how far, and who is out and why."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from reports.figures import BAR, GRID, INK, WIDTH, Theme, styled
from studies.models import Study
from surveys.watching import Flow

FLOW_COLUMNS = ("study", "simulated", "survey", "step", "reason", "n", "share_of_consented")


@dataclass(frozen=True, slots=True)
class Line:
    code: str  # opened, not_consented, …
    words: str
    n: int
    is_stage: bool  # else a loss between two stages
    reason: str = ""  # of an exclusion, as it was written down
    about: str = ""  # the definition


def flow_lines(flow: Flow) -> list[Line]:
    """Stages with the losses after each. A stage is the one before less the losses between."""
    lines = [
        Line(
            "opened", _("openings of the consent page"), flow.opened, True, about=_("not people: a reload is another")
        ),
        Line("not_consented", _("openings without a consent"), flow.not_consented, False),
        Line("consented", _("consented"), flow.consented, True, about=_("agreed to take part")),
        Line("screened_out", _("screened out"), flow.screened_out, False, about=_("by a question before the tasks")),
        Line("not_started", _("did not begin"), flow.not_started, False, about=_("no task was shown to them")),
        Line("started", _("started"), flow.started, True, about=_("a task was shown to them, or they have an answer")),
        Line("under_way", _("not finished so far"), flow.under_way, False, about=_("may still come back")),
        Line("left", _("left"), flow.left, False, about=_("ended the test before its last task")),
        Line("finished", pgettext("people", "finished"), flow.finished, True, about=_("every task has an answer")),
        Line("pilot", _("pilot"), flow.pilot, False, about=_("tried the survey out")),
        Line(
            "withdrawn",
            pgettext("people", "withdrawn"),
            flow.withdrawn,
            False,
            about=_("took their answers back; the texts are gone"),
        ),
    ]
    for reason, n in flow.excluded:
        lines.append(Line("excluded", _("excluded: %(reason)s") % {"reason": reason}, n, False, reason=reason))
    if not flow.excluded:
        lines.append(Line("excluded", _("excluded"), 0, False))
    about = _("finished and counted: the people of the results page")
    return [*lines, Line("analysed", _("analysed"), flow.analysed, True, about=about)]


def share_of_consented(line: Line, flow: Flow) -> float | None:
    """None: nobody consented, or the line counts openings and not people."""
    return line.n / flow.consented if flow.consented and line.code not in ("opened", "not_consented") else None


def flow_rows(study: Study, survey: str, flow: Flow) -> list[Sequence[Any]]:
    """Under FLOW_COLUMNS. `survey` is its address, empty for all of the study's."""
    return [
        (
            study.slug,
            study.simulated,
            survey or None,
            line.code,
            line.reason or None,
            line.n,
            share_of_consented(line, flow),
        )
        for line in flow_lines(flow)
    ]


def flow_specification(study: Study, flow: Flow, *, theme: Theme = "light") -> dict[str, Any]:
    """Vega-Lite: a bar for each stage, grey ones for those who fall out between. Losses of nobody are not drawn."""
    lines = [line for line in flow_lines(flow) if line.is_stage or line.n]
    # Bars are told apart by their order: a reason may read like a stage.
    values = [
        {"order": order, "label": line.words, "n": line.n, "stage": line.is_stage} for order, line in enumerate(lines)
    ]
    chart = alt.Chart(alt.Data(values=values))  # type: ignore[no-untyped-call]
    names = {str(order): line.words for order, line in enumerate(lines)}
    y = alt.Y(
        "order:O",
        title=None,
        sort=None,
        axis=alt.Axis(labelLimit=230, labelExpr=f"{json.dumps(names)}[datum.value]", domain=False, ticks=False),
    )
    x = alt.X("n:Q", title=pgettext("how many", "Number"), axis=alt.Axis(format="d", tickMinStep=1, tickCount=6))
    colour = alt.condition("datum.stage", alt.value(BAR[theme]), alt.value(GRID[theme]))
    tips = [
        alt.Tooltip("label:N", title=_("Step")),
        alt.Tooltip("n:Q", title=pgettext("how many", "Number"), format="d"),
    ]
    bars = chart.mark_bar(height={"band": 0.7}).encode(y=y, x=x, color=colour, tooltip=tips)
    numbers = chart.mark_text(align="left", dx=4, color=INK[theme]).encode(y=y, x=x, text=alt.Text("n:Q", format="d"))
    title = [_("SIMULATED DATA")] if study.simulated else []
    layered = alt.layer(bars, numbers).properties(
        width=WIDTH,
        height={"step": 26},
        title=alt.TitleParams(text=[*title, _("Participant flow")], anchor="start", frame="bounds"),
    )
    finished: dict[str, Any] = styled(layered, theme).to_dict()
    return finished
