"""The figures of the results, for the page and as files."""

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse, JsonResponse, StreamingHttpResponse
from django.utils.translation import get_language
from django.views.decorators.http import require_safe

from reports.csvfile import stream
from reports.export_views import file_name
from reports.figure_set import FIGURES, Figure
from reports.figures import Theme, compiled, drawn
from reports.result_views import FILES, current_results, instrument_shown
from reports.selectors import Results
from studies.access import SignedIn, unblinded_study


def _results(request: SignedIn, slug: str, *, whole: bool = False) -> Results:
    """Raises Http404 where there is no instrument, or no such choice."""
    study = unblinded_study(request.user, slug)
    _known, instrument = instrument_shown(study, request)
    if instrument is None:
        raise Http404
    return current_results(study, instrument, request.GET.dict(), whole=whole)


def _figure(number: int) -> Figure:
    if number not in FIGURES:
        raise Http404
    return FIGURES[number]


def _theme(request: SignedIn) -> Theme:
    return "dark" if request.GET.get("theme") == "dark" else "light"


@login_required
@require_safe
def figures_vega(request: SignedIn, slug: str) -> JsonResponse:
    """All figures as Vega, by number, for static/reports/figure.js to draw without eval: the results are read once."""
    results = _results(request, slug)
    found = {}
    for number, figure in FIGURES.items():
        drawing = figure.draw(results)
        if not drawing.is_empty:
            found[str(number)] = compiled(drawing.specification(_theme(request)))
    return JsonResponse(found)


@login_required
@require_safe
def figure_vega(request: SignedIn, slug: str, number: int = 1) -> JsonResponse:
    figure = _figure(number)
    return JsonResponse(compiled(figure.draw(_results(request, slug)).specification(_theme(request))))


@login_required
@require_safe
def figure_file(request: SignedIn, slug: str, kind: str, number: int = 1) -> HttpResponse:
    figure = _figure(number)
    if kind not in FILES:
        raise Http404
    found = _results(request, slug, whole=True)
    content = drawn(figure.draw(found).specification("light"), kind)  # type: ignore[arg-type]
    response = HttpResponse(content, content_type=FILES[kind])
    way = "attachment" if "download" in request.GET else "inline"
    response.headers["Content-Disposition"] = f'{way}; filename="{file_name(found.study, figure.name)}.{kind}"'
    return response


@login_required
@require_safe
def figure_csv(request: SignedIn, slug: str, number: int = 1) -> StreamingHttpResponse:
    figure = _figure(number)
    found = _results(request, slug, whole=True)
    for_excel = request.GET.get("for") == "excel"
    rows = figure.rows(found, in_words=for_excel)
    pieces = stream(figure.columns, rows, for_excel=for_excel, decimal_comma=get_language() == "ru")
    response = StreamingHttpResponse(pieces, content_type="text/csv; charset=utf-8")
    name = file_name(found.study, figure.name, for_excel)
    response.headers["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    return response
