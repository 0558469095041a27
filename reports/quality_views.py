"""The quality page of a campaign, and its numbers as CSV. For researchers who do not rate in an open campaign.

It informs and does nothing: whether somebody's work ends, a person decides elsewhere.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse, JsonResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.translation import get_language, gettext_lazy
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from annotation.agreement import Agreement
from annotation.forms import value_label
from annotation.models import Campaign
from annotation.proportion import Proportion
from annotation.quality import OnCriterion, Pace, Part, Quality, RaterQuality, Values, quality_of
from reports.csvfile import stream
from reports.export_views import file_name
from reports.figures import Theme, compiled, drawn
from reports.quality_figure import MOST, PACE, can_be_drawn, choices, drift_specification
from reports.result_views import FILES
from scoring.models import Criterion
from studies.access import SignedIn, unblinded_study

REASONS = {
    "no_common_unit": gettext_lazy("not defined: nothing was judged twice"),
    "no_variation": gettext_lazy("not defined: all of these judgements have one value"),
}
STANDINGS = {
    "work_ended": gettext_lazy("work ended"),
    "access_ended": gettext_lazy("access ended"),
    "imported": gettext_lazy("from an imported file"),
}


def _campaign(request: SignedIn, slug: str, pk: int) -> Campaign:
    study = unblinded_study(request.user, slug)
    return get_object_or_404(study.campaigns.select_related("round", "study"), pk=pk)


@login_required
@require_safe
def campaign_quality_page(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    """Computed when it is opened. A dozen queries, whatever the number of raters and answers."""
    campaign = _campaign(request, slug, pk)
    found = quality_of(campaign)
    context = {
        "study": campaign.study,
        "campaign": campaign,
        "raters": [_overview(row, campaign) for row in found.raters],
        "has_checks": bool(campaign.training_round_id or campaign.gold_round_id),
        "tables": [
            (
                criterion,
                _labels(criterion),
                [_on_criterion(row, criterion, row.by_criterion[place]) for row in found.raters],
            )
            for place, criterion in enumerate(found.criteria)
        ],
        "criteria": [(criterion, _labels(criterion)) for criterion in found.criteria],
        "over_time": [(_name(row), [_part(found.criteria, part) for part in row.parts]) for row in found.raters],
        "drawings": choices(found) if can_be_drawn(found) else [],
        "drawn": _drawn(request, found),
        "too_many": sum(bool(row.parts) for row in found.raters) > MOST,
        "files": list(FILES),
        "skips": [(_name(row), row.skips) for row in found.raters if row.skips],
    }
    return render(request, "reports/quality.html", context)


def _drawn(request: SignedIn, found: Quality) -> str:
    asked = request.GET.get("drawn", "")
    return asked if asked in dict(choices(found)) else PACE


def _name(row: RaterQuality) -> str:
    return f"{row.rater.pseudonym} · {row.rater.name}"


def _shown(criterion: Criterion) -> list[float]:
    """The values whose shares stand on the page: of two, one says what the other is."""
    return list(criterion.scale[:1] if len(criterion.scale) == 2 else criterion.scale)


def _labels(criterion: Criterion) -> list[str]:
    return [value_label(criterion, value) for value in _shown(criterion)]


def _overview(row: RaterQuality, campaign: Campaign) -> dict[str, Any]:
    with_release = row.standing == "imported" and campaign.came_with_release
    return {
        "row": row,
        "standing": _("from a release") if with_release else STANDINGS.get(row.standing, ""),
        "hours": divmod(round(row.seconds / 60), 60),
        "training": _share(row.training),
        "gold": _share(row.gold),
    }


def _on_criterion(row: RaterQuality, criterion: Criterion, found: OnCriterion) -> dict[str, Any]:
    return {
        "row": row,
        "training": _share(found.training),
        "gold": _share(found.gold),
        "again": _share(found.again),
        "alpha": found.again_alpha,
        "reason": REASONS.get(found.again_alpha.reason, ""),
        **_values(criterion, found.values),
    }


def _values(criterion: Criterion, found: Values) -> dict[str, Any]:
    shares = dict(found.shares)
    return {
        "values": [_share(shares[value]) for value in _shown(criterion)],
        "with_others": _share(found.with_others),
    }


def _part(criteria: Sequence[Criterion], part: Part) -> dict[str, Any]:
    by_criterion = zip(criteria, part.by_criterion, strict=True)
    return {"part": part, "by_criterion": [_values(criterion, one) for criterion, one in by_criterion]}


def _share(found: Proportion) -> dict[str, Any]:
    """In hundredths; None where there is nothing to take a share of."""
    parts = {"percent": found.value, "low": found.low, "high": found.high}
    return {"n": found.n} | {name: None if one is None else 100 * one for name, one in parts.items()}


# --- the figure --------------------------------------------------------------------------------------------------


def _specification(request: SignedIn, campaign: Campaign, theme: Theme = "light") -> dict[str, Any]:
    found = quality_of(campaign)
    if not can_be_drawn(found):
        raise Http404
    return drift_specification(campaign.study, found, _drawn(request, found), theme=theme)


@login_required
@require_safe
def campaign_quality_vega(request: SignedIn, slug: str, pk: int) -> JsonResponse:
    """The figure as Vega, for static/reports/figure.js to draw without eval."""
    theme: Theme = "dark" if request.GET.get("theme") == "dark" else "light"
    return JsonResponse(compiled(_specification(request, _campaign(request, slug, pk), theme)))


@login_required
@require_safe
def campaign_quality_figure(request: SignedIn, slug: str, pk: int, kind: str) -> HttpResponse:
    campaign = _campaign(request, slug, pk)
    if kind not in FILES:
        raise Http404
    content = drawn(_specification(request, campaign), kind)  # type: ignore[arg-type]
    response = HttpResponse(content, content_type=FILES[kind])
    way = "attachment" if "download" in request.GET else "inline"
    name = file_name(campaign.study, f"campaign-{campaign.pk}-quality")
    response.headers["Content-Disposition"] = f'{way}; filename="{name}.{kind}"'
    return response


# --- the file ----------------------------------------------------------------------------------------------------

COLUMNS = ("rater", "part", "measure", "criterion", "category", "value", "low", "high", "n", "reason")
NOTHING = "none_judged"


@login_required
@require_safe
def campaign_quality_csv(request: SignedIn, slug: str, pk: int) -> StreamingHttpResponse:
    """Every number of the page, one in a line; raters by pseudonym; an undefined value is empty and has its reason."""
    campaign = _campaign(request, slug, pk)
    for_excel = request.GET.get("for") == "excel"
    rows = quality_rows(quality_of(campaign))
    pieces = stream(COLUMNS, rows, for_excel=for_excel, decimal_comma=get_language() == "ru")
    response = StreamingHttpResponse(pieces, content_type="text/csv; charset=utf-8")
    name = file_name(campaign.study, f"campaign-{campaign.pk}-quality", for_excel)
    response.headers["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    return response


def quality_rows(found: Quality) -> Iterator[Sequence[Any]]:
    """Under COLUMNS. `part` is empty or the number of a fifth."""
    for row in found.raters:
        for part, *cells in _rows(row, found.criteria):
            yield [row.rater.pseudonym, part, *cells]


def _rows(row: RaterQuality, criteria: Sequence[Criterion]) -> Iterator[list[Any]]:
    counts = {"judged": row.done, "checks": row.checks, "skipped": row.skipped, "flags": row.flags}
    for measure, n in {**counts, "comments": row.comments}.items():
        yield [None, measure, None, None, n, None, None, None, None]
    yield [None, "standing", None, row.standing, None, None, None, None, None]
    yield [None, "seconds_in_all", None, None, row.seconds, None, None, None, None]
    yield [None, "active_at", None, None, row.active_at, None, None, None, None]
    yield [None, *_pace_cells(row.pace)]
    yield [None, *_share_cells("training", None, None, row.training)]
    yield [None, *_share_cells("gold", None, None, row.gold)]
    for criterion, one in zip(criteria, row.by_criterion, strict=True):
        for measure, share in (("training", one.training), ("gold", one.gold), ("repeats_equal", one.again)):
            yield [None, *_share_cells(measure, criterion, None, share)]
        yield [None, *_alpha_cells(criterion, one.again_alpha)]
        yield from ([None, *cells] for cells in _values_cells(criterion, one.values))
    for part in row.parts:
        yield [part.number, "judged", None, None, part.n, None, None, None, None]
        yield [part.number, "first_at", None, None, part.first, None, None, None, None]
        yield [part.number, "last_at", None, None, part.last, None, None, None, None]
        yield [part.number, *_pace_cells(part.pace)]
        for criterion, values in zip(criteria, part.by_criterion, strict=True):
            yield from ([part.number, *cells] for cells in _values_cells(criterion, values))


def _pace_cells(pace: Pace) -> list[Any]:
    reason = "" if pace.n else "no_time_measured"
    return ["seconds_median_and_quartiles", None, None, pace.median, pace.lower, pace.upper, pace.n, reason or None]


def _share_cells(measure: str, criterion: Criterion | None, category: Any, share: Proportion) -> list[Any]:
    reason = None if share.n else NOTHING
    return [
        measure,
        criterion.code if criterion else None,
        category,
        share.value,
        share.low,
        share.high,
        share.n,
        reason,
    ]


def _alpha_cells(criterion: Criterion, found: Agreement) -> list[Any]:
    interval = found.interval
    ends = [interval.low, interval.high] if interval else [None, None]
    return ["repeats_alpha", criterion.code, None, found.value, *ends, found.n_units, found.reason or None]


def _values_cells(criterion: Criterion, found: Values) -> Iterator[list[Any]]:
    for value, share in found.shares:
        yield _share_cells("value", criterion, value, share)
    yield _share_cells("with_others", criterion, None, found.with_others)
