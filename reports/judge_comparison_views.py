"""The comparison of judges as a page and as a file. Closed to one who is rating, as all results."""

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import get_language, gettext_lazy
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from reports import classifier_selectors
from reports.classifying import same_person
from reports.csvfile import stream
from reports.export_views import file_name
from reports.judge_choice import asked_of, rubric_asked, set_choices, split_asked
from reports.judge_comparison import SUBSETS, Comparison, Line, comparison_of
from reports.judge_files import COLUMNS, comparison_rows
from reports.judge_rows import rubrics_of, sheet_of, splits_of
from reports.words import EVALUATION_REASONS
from scoring.classifiers.problems import ClassifierError
from scoring.classifiers.services import split_ensure
from scoring.correlation import Correlation
from scoring.evaluation import Estimate
from scoring.models import Split
from scoring.services import rules_apply
from studies.access import SignedIn, unblinded_study
from studies.models import Study

FIGURES = {name: classifier_selectors.FIGURES[name] for name in ("f1_macro", "f1_micro", "f1_weighted", "mcc")}
KINDS = {
    "classifier": gettext_lazy("classifier"),
    "model": gettext_lazy("model judge"),
    "set": "",
}
VARIANTS = {
    "all": gettext_lazy("all answers"),
    "no_refusals": gettext_lazy("without refusals"),
    "judged": gettext_lazy("all answers, without the points that a rule gives"),
    "judged_no_refusals": gettext_lazy("without refusals and without the points that a rule gives"),
}
UNITS = {"answer": gettext_lazy("Score of each answer"), "respondent": gettext_lazy("Mean score of each person")}


@dataclass(frozen=True, slots=True)
class Cell:
    """A figure in a table. Without an estimate there is nothing to say: `reason` does, in words."""

    estimate: Estimate | None
    reason: Any = ""
    n: int | None = None


def _found(request: SignedIn, study: Study, splits: list[Split]) -> Comparison:
    """Raises Http404, and ClassifierError where the split's people have no labels any more.

    The counting rules are a part of the reading: see `result_views.current_results`.
    """
    split = split_asked(request.GET.dict(), splits)
    rubric = rubric_asked(request.GET.dict(), rubrics_of(study))
    rules_apply(study=study, rubric=rubric)
    sheet = sheet_of(split=split, rubric=rubric)
    return comparison_of(sheet, asked_of(request.GET, sheet))


@login_required
@require_safe
def judge_comparison(request: SignedIn, slug: str) -> HttpResponse:
    study = unblinded_study(request.user, slug)
    splits = splits_of(study)
    context: dict[str, Any] = {"study": study, "splits": splits}
    if not splits:
        return render(request, "reports/judge_comparison.html", context)
    try:
        found = _found(request, study, splits)
    except ClassifierError as error:
        return render(request, "reports/judge_comparison.html", context | {"problem": str(error)})
    except Http404:
        if rubrics_of(study):
            raise
        problem = _("No answer of this study has been rated.")
        return render(request, "reports/judge_comparison.html", context | {"problem": problem})
    query = request.GET.copy()
    return render(
        request,
        "reports/judge_comparison.html",
        context
        | {
            "found": found,
            "asked": found.asked,
            "sheet": found.sheet,
            "figures": FIGURES.items(),
            "figure": FIGURES[found.asked.figure],
            "subsets": [(one.value, one.label) for one in SUBSETS],
            "rubrics": rubrics_of(study),
            "columns": _columns(found),
            "has_differences": any(line.from_highest for line in (*found.lines, found.constant)),
            "lines": [_line_shown(found, line) for line in (*found.lines, found.constant)],
            "sets": [
                (criterion, choices, found.chosen_set.get(criterion.code))
                for criterion, choices in zip(found.criteria, set_choices(found.sheet).values(), strict=True)
            ],
            "scores": [_scores_shown(found, unit) for unit in UNITS] if found.with_scores else [],
            "n_train": found.sheet.split.sides.filter(trains=True).count(),
            "n_test": found.sheet.split.sides.filter(trains=False).count(),
            "query": query.urlencode(),
        },
    )


@login_required
@require_safe
def judge_comparison_csv(request: SignedIn, slug: str) -> StreamingHttpResponse:
    study = unblinded_study(request.user, slug)
    try:
        found = _found(request, study, splits_of(study))
    except ClassifierError as error:
        raise Http404 from error
    for_excel = request.GET.get("for") == "excel"
    pieces = stream(COLUMNS, comparison_rows(found), for_excel=for_excel, decimal_comma=get_language() == "ru")
    response = StreamingHttpResponse(pieces, content_type="text/csv; charset=utf-8")
    response.headers["Content-Disposition"] = f'attachment; filename="{file_name(study, "judges", for_excel)}.csv"'
    return response


@login_required
@require_POST
def judge_split(request: SignedIn, slug: str) -> HttpResponse:
    """Divide the people whose answers are labelled, for a study that has judges to compare and trains none."""
    study = unblinded_study(request.user, slug)
    rubrics = rubrics_of(study)
    try:
        if not rubrics:
            raise ClassifierError("no_labels")
        split_ensure(study=study, rubric=rubrics[0], same_person=same_person(study), seed=1, actor=request.user)
    except ClassifierError as error:
        messages.error(request, str(error))
    return redirect("judge_comparison", slug)


def _columns(found: Comparison) -> list[tuple[Any, int | None]]:
    """Each criterion, with the number of answers where all rows are measured on the same ones."""
    return [
        (criterion, cell.n if cell else 0) if found.asked.on == "common" else (criterion, None)
        for criterion, cell in zip(found.criteria, found.constant.cells, strict=True)
    ]


def _line_shown(found: Comparison, line: Line) -> dict[str, Any]:
    cells = [
        _cell(report.estimates[found.asked.figure], report.n if found.asked.on == "own" else None)
        if report
        else Cell(None, _("says nothing on it") if line.row and found.constant.cells[place] else _("no answers"))
        for place, report in enumerate(line.cells)
    ]
    mean = _cell(line.mean) if line.mean else Cell(None, _("does not judge every criterion"))
    kind = KINDS[line.row.kind] if line.row else ""
    is_highest = line.row is not None and line.mean is not None and line.mean.value is not None
    difference = _cell(line.from_highest) if line.from_highest else Cell(None, _("highest") if is_highest else "–")
    return {"line": line, "row": line.row, "kind": kind, "cells": cells, "mean": mean, "difference": difference}


def _cell(estimate: Estimate, n: int | None = None) -> Cell:
    reason = EVALUATION_REASONS.get(estimate.reason, "")
    return Cell(estimate if estimate.value is not None else None, reason, n)


def _scores_shown(found: Comparison, unit: str) -> dict[str, Any]:
    lines = [
        (line.row, [_pair(line.correlations[unit, variant]) for variant in VARIANTS]) for line in found.with_scores
    ]
    is_common = found.asked.on == "common"
    columns = [(VARIANTS[key], lines[0][1][place][2] if is_common else None) for place, key in enumerate(VARIANTS)]
    return {"title": UNITS[unit], "columns": columns, "lines": lines}


def _pair(found: Correlation) -> tuple[Cell, Cell, int]:
    return _cell(found.pearson), _cell(found.spearman), found.n
