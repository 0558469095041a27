"""calls.csv: every request to a model's provider, with what was asked, sent and used, and what it cost."""

from collections.abc import Iterator, Sequence
from typing import Any

from django.db.models import QuerySet

from llmruns.keys import without_secrets
from llmruns.models import Call
from llmruns.parameters import PARAMETER_COLUMNS, parameter_columns
from llmruns.pricing import call_cost
from studies.models import Study

CHUNK = 500  # rows with their bodies that are in memory at once
COLUMNS = (
    "purpose",
    "experiment_id",
    "experiment",
    "imported",
    "model",
    "provider",
    "model_requested",
    *PARAMETER_COLUMNS,
    "run",
    "position",
    "attempt",
    "state",
    "kind",
    "detail",
    "http_status",
    "model_reported",
    "finish_reason",
    "input_tokens",
    "cached_tokens",
    "output_tokens",
    "reasoning_tokens",
    "cost",
    "currency",
    "cost_unknown_because",
    "cost_at_most",
    "sent_at",
    "ended_at",
    "escaped",
    "raw_reply",
    "raw_body",
    "request",
)


def calls_of(study: Study) -> QuerySet[Call]:
    """Trials of a model belong to no run, so the study is the configuration's."""
    return Call.objects.filter(config__study=study)


def call_rows(study: Study) -> Iterator[Sequence[Any]]:
    calls = calls_of(study).select_related("config", "run__experiment", "stimulus", "price").defer("response")
    for call in calls.order_by("pk").iterator(chunk_size=CHUNK):
        values = call_values(call)
        # What is missing is empty, as in every file.
        row = [None if values[name] == "" else values[name] for name in COLUMNS[:-1]]
        yield [study.slug, study.simulated, *row, values["request"]]


def call_values(call: Call) -> dict[str, Any]:
    run, cost = call.run, call_cost(call)
    return {
        "purpose": call.purpose,
        "experiment_id": run.experiment_id if run else None,
        "experiment": run.experiment.title if run else None,
        "imported": run.experiment.imported if run else False,
        "model": call.config.label,
        "provider": call.config.provider,
        "model_requested": call.config.model,
        **parameter_columns(call.asked, call.request, call.used),
        "run": run.ordinal if run else None,
        "position": call.stimulus.position if call.stimulus else None,
        "attempt": call.attempt,
        "state": call.state,
        "kind": call.kind,
        "detail": call.detail,
        "http_status": call.http_status,
        "model_reported": call.model_reported,
        "finish_reason": call.finish_reason,
        "input_tokens": call.input_tokens,
        "cached_tokens": call.cached_tokens,
        "output_tokens": call.output_tokens,
        "reasoning_tokens": call.reasoning_tokens,
        "cost": cost.value,
        "currency": cost.currency,
        "cost_unknown_because": cost.reason if cost.value is None else "",
        "cost_at_most": call.reserved if cost.value is None else None,
        "sent_at": call.sent_at,
        "ended_at": call.ended_at,
        "escaped": call.escaped,
        "raw_reply": call.raw_reply,
        "raw_body": call.raw_body,
        "request": without_secrets(call.request),
    }
