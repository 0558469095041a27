"""The agreement page of a campaign, and its numbers as CSV. For researchers who do not rate in an open campaign.

Here, and not with the rest of rating, because it tells people's answers from models'.
"""

import csv
import io
from collections.abc import Iterator
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from annotation.breakdown import Breakdown, Chosen, Found, Line, breakdown_of, names_of
from annotation.dawid_skene import dawid_skene_of
from annotation.forms import value_label
from annotation.models import Campaign, Item, Rater
from annotation.ratings import Mask, Ratings, ratings_of
from annotation.selectors import items_shown
from corpus.models import Complexity, Respondent
from reports.export_views import file_name
from studies.access import SignedIn, unblinded_study

LEVELS = ("nominal", "ordinal", "interval")
REASONS = {
    "no_common_unit": gettext_lazy("not defined: nothing here was judged twice"),
    "no_variation": gettext_lazy("not defined: all judgements here have the same value"),
}
PARTS = {
    "complexity": gettext_lazy("By complexity"),
    "shuffled": gettext_lazy("By whether the words were shuffled"),
    "kind": gettext_lazy("People's and models' answers"),
    "stimulus": gettext_lazy("By stimulus"),
    "tenth": gettext_lazy("Over time: the judged answers in ten equal parts, in the order of their last judgement"),
}
NAMES = {
    "given in order": gettext_lazy("given in order"),
    "shuffled": gettext_lazy("shuffled"),
    "people": gettext_lazy("people"),
    "models": gettext_lazy("models"),
}


def _campaign(request: SignedIn, slug: str, pk: int) -> Campaign:
    study = unblinded_study(request.user, slug)
    return get_object_or_404(study.campaigns.select_related("round", "study"), pk=pk)


def _kinds(campaign: Campaign, ratings: Ratings) -> dict[str, Mask]:
    """People's and models' answers; a text that both gave is in both. Only when nobody rates any more. One query."""
    rows = Item.objects.filter(campaign=campaign).values_list("answer", "answer__sitting__respondent__kind")
    answers: dict[str, list[int]] = {kind: [] for kind in Respondent.Kind}
    for answer, kind in rows:
        answers[kind].append(answer)
    return {
        "people": ratings.with_an_item_among(answers[Respondent.Kind.HUMAN]),
        "models": ratings.with_an_item_among(answers[Respondent.Kind.MODEL]),
    }


def _level(request: SignedIn) -> str:
    level = request.GET.get("level", "")
    return level if level in LEVELS else ""


@login_required
@require_safe
def campaign_agreement_page(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    """Computed when it is opened: nothing on it is stale. A dozen queries, whatever the number of answers."""
    campaign = _campaign(request, slug, pk)
    ratings = ratings_of(campaign)
    closed = campaign.state == Campaign.State.CLOSED
    found = breakdown_of(campaign, ratings, level=_level(request), groups=_kinds(campaign, ratings) if closed else {})
    names = names_of(ratings)
    shown = items_shown([one.item for one in found.divided])
    context = {
        "study": campaign.study,
        "campaign": campaign,
        "found": found,
        "level": _level(request),
        "levels": LEVELS,
        "overall": _cells(found, found.overall.by_criterion),
        "with_refusals": _cells(found, found.with_refusals.by_criterion) if found.with_refusals else [],
        "tables": list(_tables(found)),
        "pairs": [
            (_name(names, pair.one), _name(names, pair.other), _cells(found, pair.by_criterion)) for pair in found.pairs
        ],
        "without": [(_name(names, judge), _cells(found, line.by_criterion)) for judge, line in found.without],
        "beside": [(one.name, _cells(found, one.by_criterion)) for one in found.beside],
        "chosen": [(_name(names, one.judge) if one.judge else "", _chosen(found, one)) for one in found.chosen],
        "divided": [(shown[one.item], round(100 * one.share)) for one in found.divided],
        "is_closed": closed,
        "dawid_skene": _dawid_skene(campaign, ratings, names) if request.GET.get("dawid_skene") else None,
    }
    return render(request, "reports/agreement.html", context)


def _dawid_skene(campaign: Campaign, ratings: Ratings, names: dict[int, Rater]) -> list[dict[str, Any]]:
    rows = []
    for found in dawid_skene_of(campaign, ratings):
        shown = items_shown(found.differ[:SHOWN])
        rows.append(
            {
                "found": found,
                "errors": [(_name(names, judge), round(100 * share, 1)) for judge, share in found.errors],
                "differ": [shown[pk] for pk in found.differ[:SHOWN]],
            }
        )
    return rows


SHOWN = 50


def _name(names: dict[int, Rater], judge: int) -> str:
    rater = names.get(judge)
    return f"{rater.pseudonym} · {rater.name}" if rater else str(judge)


def _cells(found: Breakdown, by_criterion: list[Found]) -> list[dict[str, Any]]:
    return [
        {
            "criterion": criterion,
            "level": level,
            "agreement": agreement,
            "reason": REASONS.get(agreement.reason, ""),
            "percent": None if percent.value is None else 100 * percent.value,
        }
        for criterion, level, (agreement, percent) in zip(found.criteria, found.levels, by_criterion, strict=True)
    ]


def _chosen(found: Breakdown, one: Chosen) -> list[list[tuple[str, int, float | None]]]:
    """By criterion: each value's name, how often it was chosen, and its share in percent."""
    return [
        [
            (value_label(criterion, value), n, 100 * n / sum(counts) if sum(counts) else None)
            for value, n in zip(criterion.scale, counts, strict=True)
        ]
        for criterion, counts in zip(found.criteria, one.by_criterion, strict=True)
    ]


def _tables(found: Breakdown) -> Iterator[tuple[str, list[tuple[str, list[dict[str, Any]]]]]]:
    for kind, title in PARTS.items():
        lines = [line for line in found.lines if line.kind == kind]
        if lines:
            yield str(title), [(_line_name(line), _cells(found, line.by_criterion)) for line in lines]


def _line_name(line: Line) -> str:
    if line.kind == "complexity":
        return str(Complexity(line.name).label)
    return str(NAMES.get(line.name, line.name))


COLUMNS = (
    "part", "name", "other", "criterion", "level", "alpha", "low", "high", "n_answers", "n_judgements", "equal_pairs",
    "reason", "resamples", "resamples_undefined", "value", "n_chosen",
)  # fmt: skip


@login_required
@require_safe
def campaign_agreement_csv(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    """Every number of the page, one in a line; raters by pseudonym; an undefined value is empty and has its reason."""
    campaign = _campaign(request, slug, pk)
    ratings = ratings_of(campaign)
    closed = campaign.state == Campaign.State.CLOSED
    found = breakdown_of(campaign, ratings, level=_level(request), groups=_kinds(campaign, ratings) if closed else {})
    names = {judge: rater.pseudonym for judge, rater in names_of(ratings).items()}
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\r\n")
    table.writerow(COLUMNS)
    for part, name, other, by_criterion in _parts(found, names):
        for criterion, level, (agreement, percent) in zip(found.criteria, found.levels, by_criterion, strict=True):
            interval = agreement.interval
            table.writerow(
                [
                    part,
                    name,
                    other,
                    criterion.code,
                    level,
                    agreement.value,
                    interval.low if interval else None,
                    interval.high if interval else None,
                    agreement.n_units,
                    agreement.n_pairable,
                    percent.value,
                    agreement.reason,
                    interval.resamples if interval else None,
                    interval.undefined if interval else None,
                    None,
                    None,
                ]
            )
    table.writerows(_chosen_lines(found, names))
    response = HttpResponse(text.getvalue(), content_type="text/csv; charset=utf-8")
    name = file_name(campaign.study, f"campaign-{pk}-agreement")
    response["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    return response


def _chosen_lines(found: Breakdown, names: dict[int, str]) -> Iterator[list[Any]]:
    for one in found.chosen:
        for criterion, level, counts in zip(found.criteria, found.levels, one.by_criterion, strict=True):
            for value, n in zip(criterion.scale, counts, strict=True):
                name = names.get(one.judge, "") if one.judge else ""
                empty = [None] * 3
                yield ["chosen", name, "", criterion.code, level, *empty, None, sum(counts), *empty, None, value, n]


def _parts(found: Breakdown, names: dict[int, str]) -> Iterator[tuple[str, str, str, list[Found]]]:
    yield "overall", "", "", found.overall.by_criterion
    if found.with_refusals:
        yield "with refusals", "", "", found.with_refusals.by_criterion
    for line in found.lines:
        yield line.kind, line.name, "", line.by_criterion
    for pair in found.pairs:
        yield "pair", names.get(pair.one, ""), names.get(pair.other, ""), pair.by_criterion
    for judge, line in found.without:
        yield "without", names.get(judge, ""), "", line.by_criterion
    for one in found.beside:
        yield "beside", one.name, "", one.by_criterion
