"""What a model judge said, beside the raters' labels. Closed to one who is rating, as all results."""

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.translation import get_language, gettext_lazy
from django.views.decorators.http import require_safe

from llmruns.judge_selectors import judgings_of
from llmruns.models import Judging
from reports.csvfile import stream
from reports.judging_agreement import COLUMNS, agreement_of, judge_name, rows_of, said_by
from studies.access import SignedIn, unblinded_study

GROUP_NAMES = {
    "people": gettext_lazy("people's answers"),
    "models": gettext_lazy("models' answers"),
    "own": gettext_lazy("its own answers"),
}


def _judging(request: SignedIn, slug: str, pk: int) -> Judging:
    return get_object_or_404(judgings_of(unblinded_study(request.user, slug)), pk=pk)


@login_required
@require_safe
def judging_agreement(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    judging = _judging(request, slug, pk)
    found = agreement_of(judging, said_by(judging))
    parts = [
        (one, [(GROUP_NAMES[name], one.groups[name]) for name in GROUP_NAMES if one.groups[name].n])
        for one in found.figures
    ]
    context = {
        "study": judging.study,
        "judging": judging,
        "name": judge_name(judging.model_judge),
        "found": found,
        "parts": parts,
    }
    return render(request, "reports/judging_agreement.html", context)


@login_required
@require_safe
def judging_csv(request: SignedIn, slug: str, pk: int) -> StreamingHttpResponse:
    judging = _judging(request, slug, pk)
    for_excel = request.GET.get("for") == "excel"
    rows = rows_of(judging, said_by(judging))
    pieces = stream(COLUMNS, rows, for_excel=for_excel, decimal_comma=get_language() == "ru")
    response = StreamingHttpResponse(pieces, content_type="text/csv; charset=utf-8")
    name = f"{judging.study.slug}-judging-{judging.pk}"
    response.headers["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    return response
