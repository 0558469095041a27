"""The participant flow of one survey or of all of a study's: a table, a figure, a file. Counts only."""

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.shortcuts import render
from django.utils.translation import get_language
from django.views.decorators.http import require_safe

from reports.csvfile import stream
from reports.export_views import file_name
from reports.figures import Theme, compiled, drawn
from reports.flow import FLOW_COLUMNS, flow_lines, flow_rows, flow_specification, share_of_consented
from reports.result_views import FILES
from studies.access import SignedIn, research_study
from studies.models import Study
from surveys.models import Survey
from surveys.watching import Flow, flow_of


def _chosen(study: Study, request: HttpRequest) -> tuple[list[Survey], Survey | None, Flow]:
    """The study's surveys, the one asked for (none: all), and its flow. Four queries. Raises Http404."""
    known = list(Survey.objects.filter(instrument__study=study).order_by("pk"))
    wanted = request.GET.get("survey", "")
    chosen = [survey for survey in known if str(survey.pk) == wanted]
    if wanted and not chosen:
        raise Http404
    return known, chosen[0] if chosen else None, flow_of([survey.pk for survey in chosen or known])


@login_required
@require_safe
def flow(request: SignedIn, slug: str) -> HttpResponse:
    study = research_study(request.user, slug)
    surveys, survey, found = _chosen(study, request)
    context = {
        "study": study,
        "surveys": surveys,
        "survey": survey,
        "flow": found,
        "lines": [
            (line, None if (share := share_of_consented(line, found)) is None else 100 * share)
            for line in flow_lines(found)
        ],
        "files": list(FILES),
        "query": f"survey={survey.pk if survey else ''}",
    }
    return render(request, "reports/flow.html", context)


@login_required
@require_safe
def flow_vega(request: SignedIn, slug: str) -> JsonResponse:
    study = research_study(request.user, slug)
    theme: Theme = "dark" if request.GET.get("theme") == "dark" else "light"
    _known, _survey, found = _chosen(study, request)
    return JsonResponse(compiled(flow_specification(study, found, theme=theme)))


@login_required
@require_safe
def flow_file(request: SignedIn, slug: str, kind: str) -> HttpResponse:
    study = research_study(request.user, slug)
    if kind not in FILES:
        raise Http404
    _known, survey, found = _chosen(study, request)
    content = drawn(flow_specification(study, found), kind)  # type: ignore[arg-type]
    response = HttpResponse(content, content_type=FILES[kind])
    way = "attachment" if "download" in request.GET else "inline"
    response.headers["Content-Disposition"] = f'{way}; filename="{_name(study, survey)}.{kind}"'
    return response


@login_required
@require_safe
def flow_csv(request: SignedIn, slug: str) -> StreamingHttpResponse:
    study = research_study(request.user, slug)
    _known, survey, found = _chosen(study, request)
    for_excel = request.GET.get("for") == "excel"
    rows = flow_rows(study, survey.slug if survey else "", found)
    pieces = stream(FLOW_COLUMNS, rows, for_excel=for_excel, decimal_comma=get_language() == "ru")
    response = StreamingHttpResponse(pieces, content_type="text/csv; charset=utf-8")
    name = _name(study, survey) + ("-for-excel" if for_excel else "")
    response.headers["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    return response


def _name(study: Study, survey: Survey | None) -> str:
    return file_name(study, f"flow-{survey.slug}" if survey else "flow")
