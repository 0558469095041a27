from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.utils.translation import get_language
from django.views.decorators.http import require_safe

from reports.csvfile import stream
from reports.exports import EXPORTS
from scoring.services import paper_rubric, rules_apply
from studies.access import SignedIn, unblinded_study
from studies.models import Study


@login_required
@require_safe
def exports(request: SignedIn, slug: str) -> HttpResponse:
    study = unblinded_study(request.user, slug)
    rubric = paper_rubric()
    rules_apply(study=study, rubric=rubric)  # see result_views.current_results
    files = [
        {"export": export, "count": export.count(study, rubric), "columns": export.columns(rubric)}
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
    pieces = stream(
        export.columns(rubric),
        export.rows(study, rubric),
        for_excel=for_excel,
        decimal_comma=get_language() == "ru",
    )
    response = StreamingHttpResponse(pieces, content_type="text/csv; charset=utf-8")
    response.headers["Content-Disposition"] = f'attachment; filename="{file_name(study, name, for_excel)}.csv"'
    return response


def file_name(study: Study, name: str, for_excel: bool = False) -> str:
    """Simulated data says so in the name too, where it outlives the page."""
    parts = [study.slug, "simulated" if study.simulated else "", name, "for-excel" if for_excel else ""]
    return "-".join(part for part in parts if part)
