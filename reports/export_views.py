from collections.abc import Iterator

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.translation import get_language
from django.views.decorators.http import require_safe

from annotation.reference_file import columns_of, rows_of
from annotation.reference_selectors import criteria_of, references_of
from corpus.importing import ALL_COLUMNS, stimuli_csv, stimulus_cells, stimulus_rows
from corpus.models import Answer
from reports.csvfile import stream
from reports.exports import EXPORTS
from scoring.services import PAPER_RUBRIC, RUBRICS, paper_rubric, rules_apply, rules_keep_up
from studies.access import SignedIn, research_study, unblinded_study
from studies.models import Study


@login_required
@require_safe
def exports(request: SignedIn, slug: str) -> HttpResponse:
    study = unblinded_study(request.user, slug)
    rubric = paper_rubric()
    rules_keep_up(study=study, rubric=rubric)  # see result_views.current_results
    files = [
        {"export": export, "count": export.count(study, rubric), "columns": export.columns(study, rubric)}
        for export in EXPORTS.values()
    ]
    return render(request, "reports/exports.html", {"study": study, "files": files})


@login_required
@require_safe
def export_file(request: SignedIn, slug: str, name: str) -> StreamingHttpResponse:
    """`?for=excel` gives the form that a spreadsheet opens without harm; without it, the exact one."""
    study = unblinded_study(request.user, slug)
    export = EXPORTS.get(name)
    if export is None:
        raise Http404
    rubric = paper_rubric()
    rules_apply(study=study, rubric=rubric)  # see result_views.current_results
    for_excel = request.GET.get("for") == "excel"
    pieces: Iterator[str] | Iterator[bytes]
    if export.pieces is not None and not for_excel:
        pieces = export.pieces(study, rubric)
    else:
        pieces = stream(
            export.columns(study, rubric),
            export.rows(study, rubric),
            for_excel=for_excel,
            decimal_comma=get_language() == "ru",
        )
    response = StreamingHttpResponse(pieces, content_type="text/csv; charset=utf-8")
    response.headers["Content-Disposition"] = f'attachment; filename="{file_name(study, name, for_excel)}.csv"'
    return response


@login_required
@require_safe
def instrument_file(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    """An instrument's stimuli, as its page imports them; `?for=excel`, as a spreadsheet opens them without harm."""
    study = research_study(request.user, slug)
    instrument = get_object_or_404(study.instruments, pk=pk)
    rows = stimulus_rows(instrument.stimuli.order_by("position"))
    for_excel = request.GET.get("for") == "excel"
    content: bytes | str = stimuli_csv(rows)
    if for_excel:
        cells = [[row.position, *stimulus_cells(row)[1:]] for row in rows]
        content = "".join(stream(ALL_COLUMNS, cells, for_excel=True, decimal_comma=get_language() == "ru"))
    name = file_name(study, f"{instrument.slug}-v{instrument.version}", for_excel)
    headers = {"Content-Disposition": f'attachment; filename="{name}.csv"'}
    return HttpResponse(content, content_type="text/csv; charset=utf-8", headers=headers)


def file_name(study: Study, name: str, for_excel: bool = False) -> str:
    """Simulated data says so in the name too, where it outlives the page."""
    parts = [study.slug, "simulated" if study.simulated else "", name, "for-excel" if for_excel else ""]
    return "-".join(part for part in parts if part)


@login_required
@require_safe
def references_csv(request: SignedIn, slug: str) -> StreamingHttpResponse:
    """The references of a rubric, as their page reads them back; `?for=excel`, as a spreadsheet opens them."""
    study = unblinded_study(request.user, slug)
    asked = request.GET.get("rubric") or PAPER_RUBRIC
    if asked not in RUBRICS:
        raise Http404
    rubric = RUBRICS[asked]()
    for_excel = request.GET.get("for") == "excel"
    criteria = criteria_of(rubric)
    pieces = stream(
        columns_of(criteria),
        rows_of(references_of(study, rubric).exclude(answer__outcome=Answer.Outcome.WITHDRAWN), criteria),
        for_excel=for_excel,
        decimal_comma=get_language() == "ru",
    )
    response = StreamingHttpResponse(pieces, content_type="text/csv; charset=utf-8")
    name = file_name(study, f"references-{asked}", for_excel)
    response.headers["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    return response
