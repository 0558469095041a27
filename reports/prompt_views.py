"""Two versions of a prompt side by side. Shows answers and labels, so it is closed to one who is rating."""

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from corpus.models import Instrument
from llmruns.models import Prompt
from reports.prompt_comparison import comparison_of
from reports.selectors import rubric_of
from scoring.services import rules_keep_up
from studies.access import SignedIn, unblinded_study
from studies.models import Study


@login_required
@require_safe
def prompt_compare(request: SignedIn, slug: str) -> HttpResponse:
    study = unblinded_study(request.user, slug)
    prompts = (_prompt(study, request.GET.get("first", "")), _prompt(study, request.GET.get("second", "")))
    instrument = get_object_or_404(Instrument, study=study, pk=_number(request.GET.get("instrument", "")))
    rubric = rubric_of(instrument)
    n_uncounted = rules_keep_up(study=study, rubric=rubric)  # as the results page does: a part of the reading
    chosen = request.GET.get("model", "")
    wanted = int(chosen) if chosen.isascii() and chosen.isdigit() and len(chosen) < 18 else None
    rows, single = comparison_of(instrument=instrument, rubric=rubric, prompts=prompts, chosen=wanted)
    shown = next((row for row in rows if row.config.pk == wanted), rows[0] if rows else None)
    context = {
        "study": study,
        "first": prompts[0],
        "second": prompts[1],
        "instrument": instrument,
        "rubric": rubric,
        "rows": rows,
        "single": single,
        "shown": shown,
        "same": prompts[0] == prompts[1],
        "n_uncounted": n_uncounted,
    }
    return render(request, "reports/prompt_compare.html", context)


def _prompt(study: Study, value: str) -> Prompt:
    return get_object_or_404(Prompt, study=study, purpose=Prompt.Purpose.ANSWER, pk=_number(value))


def _number(value: str) -> int:
    """Raises Http404: the length first, since int() refuses thousands of digits."""
    if not (value.isascii() and value.isdigit() and len(value) < 18):
        raise Http404
    return int(value)
