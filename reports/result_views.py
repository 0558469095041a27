"""The results: one table and one figure, and the way from each number to its rows."""

from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.shortcuts import render
from django.utils.translation import get_language
from django.views.decorators.http import require_safe

from corpus.models import Complexity, Instrument
from reports.csvfile import stream
from reports.dashboard import outside_words
from reports.export_views import file_name
from reports.figures import FIGURE_COLUMNS, Theme, compiled, drawn, figure_data, figure_rows, specification
from reports.model_facts import model_facts
from reports.selectors import (
    AnswerFilter,
    Results,
    answers_behind,
    instruments_of,
    people_outside,
    results_of,
    row_labels,
    rubric_of,
)
from reports.tables import answer_rows, breakdown, overview, per_stimulus
from reports.words import REASONS, STATES, differences
from scoring.selectors import labels_of
from scoring.services import rules_apply
from studies.access import SignedIn, unblinded_study
from studies.models import Study

PAGE_SIZE = 50
FILES = {"svg": "image/svg+xml", "png": "image/png", "pdf": "application/pdf"}


def instrument_shown(study: Study, request: HttpRequest) -> tuple[list[Instrument], Instrument | None]:
    """All of the study's instruments, and the one asked for (else the newest that somebody has sat, else the newest).

    Raises Http404 for an instrument that the study does not have.
    """
    known = list(instruments_of(study))
    wanted = request.GET.get("instrument")
    if wanted:
        chosen = [instrument for instrument in known if str(instrument.pk) == wanted]
        if not chosen:
            raise Http404
        return known, chosen[0]
    sat = [instrument for instrument in known if instrument.n_sittings]  # type: ignore[attr-defined]
    return known, next(iter(sat or known), None)


def current_results(study: Study, instrument: Instrument) -> Results:
    """The results, after the counting rules have seen every answer.

    A GET starts nothing, and this writes: the rules are no work in the background but a part of the reading. They are
    cheap, idempotent, the same for whoever asks, and a result without them would lack a criterion (DESIGN, section 6).
    """
    rubric = rubric_of(instrument)
    rules_apply(study=study, rubric=rubric)
    return results_of(study=study, instrument=instrument, rubric=rubric)


@login_required
@require_safe
def results(request: SignedIn, slug: str) -> HttpResponse:
    study = unblinded_study(request.user, slug)
    instruments, instrument = instrument_shown(study, request)
    if instrument is None:
        return render(request, "reports/results.html", {"study": study})
    found = current_results(study, instrument)
    figure = figure_data(found)
    context = {
        "study": study,
        "instruments": instruments,
        "instrument": instrument,
        "results": found,
        "outside": ", ".join(outside_words(people_outside(instrument))),
        "overview": overview(found),
        "model_facts": model_facts(found),
        "breakdown": breakdown(found),
        "per_stimulus": per_stimulus(found),
        "figure": figure,
        "not_drawn": [(label, REASONS[reason]) for label, reason in figure.not_drawn],
        "files": list(FILES),
        "differences": differences(
            criteria=[criterion.code for criterion in found.criteria], refusal_below=instrument.refusal_below
        ),
    }
    return render(request, "reports/results.html", context)


@login_required
@require_safe
def result_answers(request: SignedIn, slug: str) -> HttpResponse:
    """The answers behind a number, each with its labels and how they came about."""
    study = unblinded_study(request.user, slug)
    _known, instrument = instrument_shown(study, request)
    if instrument is None:
        raise Http404
    rubric = rubric_of(instrument)
    rules_apply(study=study, rubric=rubric)  # see current_results
    groups = row_labels(instrument)
    chosen = _chosen(request, groups)
    answers, labels = answers_behind(instrument=instrument, rubric=rubric, chosen=chosen)
    page = Paginator(answers, PAGE_SIZE).get_page(request.GET.get("page"))
    shown = list(page.object_list)
    if labels is None:
        labels = labels_of(instrument=instrument, rubric=rubric, answer_ids=[answer.pk for answer in shown])
    query = {key: value for key, value in request.GET.items() if key != "page"}
    context = {
        "study": study,
        "instrument": instrument,
        "page": page,
        "criteria": labels.criteria,
        "rows": answer_rows(shown, labels),
        "chosen": chosen,
        "groups": groups.items(),
        "positions": instrument.stimuli.filter(is_practice=False).values_list("position", flat=True),
        "complexities": Complexity.choices,
        "states": STATES.items(),
        "query": urlencode(query),
    }
    return render(request, "reports/result_answers.html", context)


def _chosen(request: HttpRequest, groups: dict[str, str]) -> AnswerFilter:
    """The address's choice. What it does not know is a 404: a list that silently shows all would answer wrongly."""
    given = {key: str(value) for key, value in request.GET.items() if value}
    allowed: dict[str, Any] = {
        "group": groups,
        "shuffled": {"yes", "no"},
        "complexity": Complexity.values,
        "state": STATES,
    }
    for key, values in allowed.items():
        if key in given and given[key] not in values:
            raise Http404
    stimulus = given.get("stimulus", "")
    if stimulus and not (stimulus.isascii() and stimulus.isdigit() and len(stimulus) < 5):
        raise Http404
    return AnswerFilter(
        group=given.get("group", ""),
        stimulus=int(stimulus) if stimulus else None,
        shuffled=given["shuffled"] == "yes" if "shuffled" in given else None,
        complexity=given.get("complexity", ""),
        state=given.get("state", ""),
    )


def _figure_results(request: SignedIn, slug: str) -> Results:
    study = unblinded_study(request.user, slug)
    _known, instrument = instrument_shown(study, request)
    if instrument is None:
        raise Http404
    return current_results(study, instrument)


@login_required
@require_safe
def figure_vega(request: SignedIn, slug: str) -> JsonResponse:
    """The figure as Vega, for static/reports/figure.js to draw without eval."""
    theme: Theme = "dark" if request.GET.get("theme") == "dark" else "light"
    data = figure_data(_figure_results(request, slug))
    return JsonResponse(compiled(specification(data, theme=theme)))


@login_required
@require_safe
def figure_file(request: SignedIn, slug: str, kind: str) -> HttpResponse:
    if kind not in FILES:
        raise Http404
    found = _figure_results(request, slug)
    content = drawn(specification(figure_data(found)), kind)  # type: ignore[arg-type]
    response = HttpResponse(content, content_type=FILES[kind])
    way = "attachment" if "download" in request.GET else "inline"
    response.headers["Content-Disposition"] = f'{way}; filename="{file_name(found.study, "figure1")}.{kind}"'
    return response


@login_required
@require_safe
def figure_csv(request: SignedIn, slug: str) -> StreamingHttpResponse:
    found = _figure_results(request, slug)
    for_excel = request.GET.get("for") == "excel"
    pieces = stream(FIGURE_COLUMNS, figure_rows(found), for_excel=for_excel, decimal_comma=get_language() == "ru")
    response = StreamingHttpResponse(pieces, content_type="text/csv; charset=utf-8")
    name = file_name(found.study, "figure1", for_excel)
    response.headers["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    return response
