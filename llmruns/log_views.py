"""Pages of the log. They show replies, so they are closed to one who is rating."""

import json
from collections.abc import Iterator
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from llmruns.keys import without_secrets
from llmruns.log import (
    Filter,
    call_lines,
    call_page,
    call_row,
    filter_choices,
    filter_read,
    lenient_verdict,
)
from llmruns.models import Call, Experiment, Judging
from llmruns.parameters import parameter_rows
from llmruns.wording import KINDS, model_difference
from studies.access import SignedIn, unblinded_study
from studies.models import Study

SHOWN = 200_000  # characters of a stored body on a page
FLUSH_CHARACTERS = 65_536
# Kinds of a run's or an experiment's pause, or of a stimulus in an imported one, and of no call.
NO_CALLS = {"cancelled", "person", "cap", "unbounded", "not_in_file", "attempts_left", "final_answer_only"}


@login_required
@require_safe
def call_list(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    study = unblinded_study(request.user, slug)
    experiment = get_object_or_404(Experiment.objects.select_related("instrument"), study=study, pk=pk)
    return _log(request, study, filter_read(request.GET, experiment=pk), experiment)


@login_required
@require_safe
def call_log(request: SignedIn, slug: str) -> HttpResponse:
    study = unblinded_study(request.user, slug)
    return _log(request, study, filter_read(request.GET), None)


def _log(request: SignedIn, study: Study, wanted: Filter, experiment: Experiment | None) -> HttpResponse:
    page, rows = call_page(study, wanted, request.GET.get("page"))
    query = request.GET.copy()
    query.pop("page", None)
    file_query = query.copy()
    if experiment is not None:
        file_query["experiment"] = str(experiment.pk)
    going = Experiment.objects.filter(study=study, state=Experiment.State.RUNNING)
    context = {
        "study": study,
        "experiment": experiment,
        "page": page,
        "rows": rows,
        "wanted": wanted,
        "choices": filter_choices(study, experiment),
        "states": Call.State.choices,
        "purposes": Call.Purpose.choices,
        "kinds": [(kind, words) for kind, words in KINDS.items() if kind not in NO_CALLS],
        "query": query.urlencode(),
        "file_query": file_query.urlencode(),
        # The newest page moves by itself while something is sent; a search would cost too much every time.
        "moving": page.number == 1
        and not wanted.text
        and (
            (going if experiment is None else going.filter(pk=experiment.pk)).exists()
            or (experiment is None and Judging.objects.filter(round__study=study, state=Judging.State.RUNNING).exists())
        ),
    }
    return render(request, "llmruns/call_list.html", context)


@login_required
@require_safe
def call_file(request: SignedIn, slug: str) -> StreamingHttpResponse:
    """All calls that are looked for, with their bodies, as they are read from the database."""
    study = unblinded_study(request.user, slug)
    lines = call_lines(study, filter_read(request.GET))
    response = StreamingHttpResponse(_pieces(lines), content_type="application/x-ndjson; charset=utf-8")
    name = f"{study.slug}{'-simulated' if study.simulated else ''}-calls.jsonl"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def _pieces(lines: Iterator[str]) -> Iterator[str]:
    kept: list[str] = []
    size = 0
    for line in lines:
        kept.append(line)
        size += len(line)
        if size > FLUSH_CHARACTERS:
            yield "".join(kept)
            kept, size = [], 0
    yield "".join(kept)


@login_required
@require_safe
def call_detail(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    study = unblinded_study(request.user, slug)
    call = (
        Call.objects.select_related(
            "config", "run__experiment", "stimulus", "price", "judging__model_judge__prompt", "answer__stimulus"
        )
        .filter(config__study=study, pk=pk)
        .first()
    )
    if call is None:
        raise Http404
    response = _pretty(call.response)
    row = call_row(call)
    context = {
        "study": study,
        "call": call,
        "experiment": call.run.experiment if call.run else None,
        "kind_words": row.kind_words,
        "cost": row.cost,
        "cost_words": row.cost_words,
        "parameters": parameter_rows(call.asked, without_secrets(call.request), call.used),
        "lenient": lenient_verdict(call),
        "difference": model_difference(call.config.model, call.model_reported),
        "request_text": _pretty(without_secrets(call.request)),
        "response_text": response[:SHOWN],
        "response_is_cut": len(response) > SHOWN,
        "seconds": (call.ended_at - call.sent_at).total_seconds() if call.ended_at and call.sent_at else None,
    }
    return render(request, "llmruns/call_detail.html", context)


def _pretty(document: Any) -> str:
    return "" if document is None else json.dumps(document, ensure_ascii=False, indent=2)
