"""The log of calls: what is looked for, a page of it, and all of it as JSON lines."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.core.paginator import Page, Paginator
from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import QuerySet
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from corpus.models import Stimulus
from llmruns.keys import without_secrets
from llmruns.models import Call, Experiment, ModelConfig
from llmruns.pricing import Amount, call_cost
from llmruns.replies import lenient_answer
from llmruns.wording import KINDS, kind_words
from studies.models import Study

PER_PAGE = 50
LONGEST_SEARCH = 200
CHUNK = 200  # rows with their bodies that are in memory at once
HEAVY = ("request", "response", "raw_body", "raw_reply")

COST_REASONS = {
    "no_price": _("no price known"),
    "no_tokens": _("no token count"),
    "absurd": _("the provider's count cannot be right"),
    "lost": _("possibly billed"),
    "not_billed": _("not billed as a rule"),
    "in_flight": _("in flight"),
}


@dataclass(frozen=True)
class Filter:
    """What is looked for. Empty and None: everything."""

    experiment: int | None = None
    model: int | None = None
    run: int | None = None
    stimulus: int | None = None
    state: str = ""
    kind: str = ""
    purpose: str = ""
    text: str = ""
    judging: int | None = None

    @property
    def is_set(self) -> bool:
        return self != Filter(experiment=self.experiment)


def whole(value: str) -> int | None:
    """A row's number, or None: the length first, since int() refuses thousands of digits."""
    return int(value) if value.isascii() and value.isdigit() and len(value) < 18 else None


def filter_read(query: QueryDict, *, experiment: int | None = None) -> Filter:
    """From an address. What means nothing is left out."""

    def one_of(name: str, allowed: Any) -> str:
        value = str(query.get(name, ""))
        return value if value in allowed else ""

    return Filter(
        experiment=experiment if experiment is not None else whole(query.get("experiment", "")),
        model=whole(query.get("model", "")),
        run=whole(query.get("run", "")),
        stimulus=whole(query.get("stimulus", "")),
        state=one_of("state", Call.State.values),
        kind=one_of("kind", KINDS),
        purpose=one_of("purpose", Call.Purpose.values),
        judging=whole(query.get("judging", "")),
        text=str(query.get("text", "")).replace("\x00", "").strip()[:LONGEST_SEARCH],
    )


def calls_found(study: Study, wanted: Filter) -> QuerySet[Call]:
    """The study's calls that are looked for, in no order. Text is looked for in replies, letter case ignored."""
    if wanted.experiment is None:
        calls = Call.objects.filter(config__study=study)
    else:  # without a look at the configurations: of 50,000 calls only the index is read
        calls = Call.objects.filter(run__experiment=wanted.experiment, run__experiment__study=study)
    exact = {
        "config_id": wanted.model,
        "run_id": wanted.run,
        "stimulus_id": wanted.stimulus,
        "state": wanted.state,
        "kind": wanted.kind,
        "purpose": wanted.purpose,
        "judging_id": wanted.judging,
    }
    calls = calls.filter(**{name: value for name, value in exact.items() if value not in (None, "")})
    return calls.filter(raw_reply__icontains=wanted.text) if wanted.text else calls


@dataclass(frozen=True)
class CallRow:
    call: Call
    kind_words: str
    cost: Amount
    cost_words: str


def call_row(call: Call) -> CallRow:
    cost = call_cost(call)
    return CallRow(
        call, kind_words(call.kind) if call.kind else "", cost, str(COST_REASONS[cost.reason]) if cost.reason else ""
    )


def call_page(study: Study, wanted: Filter, number: Any) -> tuple[Page[Any], list[CallRow]]:
    """A page, newest first. Three queries; the rows themselves are read for one page only, without their bodies."""
    page = Paginator(calls_found(study, wanted).order_by("-pk").values_list("pk", flat=True), PER_PAGE).get_page(number)
    rows = (
        Call.objects.filter(pk__in=list(page.object_list))
        .defer(*HEAVY)
        .select_related("config", "run__experiment", "stimulus", "price", "judging", "answer__stimulus")
        .order_by("-pk")
    )
    return page, [call_row(call) for call in rows]


@dataclass(frozen=True)
class Choices:
    experiments: list[Experiment]
    models: list[ModelConfig]
    stimuli: list[Stimulus]


def filter_choices(study: Study, experiment: Experiment | None) -> Choices:
    """What can be chosen. Two or three queries."""
    models = ModelConfig.objects.filter(study=study).order_by("label")
    if experiment is None:
        experiments = list(Experiment.objects.filter(study=study).order_by("-pk").only("pk", "title", "launched_at"))
        return Choices(experiments, list(models), [])
    stimuli = Stimulus.objects.filter(instrument=experiment.instrument_id, is_practice=False).order_by("position")
    return Choices([], list(models.filter(runs__experiment=experiment).distinct()), list(stimuli))


def call_lines(study: Study, wanted: Filter) -> Iterator[str]:
    """One JSON object a line, oldest first, with everything that was sent and came back. Keys are blanked."""
    calls = (
        calls_found(study, wanted)
        .select_related(
            "config",
            "run__experiment__instrument",
            "run__experiment__prompt",
            "stimulus",
            "price",
            "answer__stimulus",
            "judging",
        )
        .order_by("pk")
    )
    for call in calls.iterator(chunk_size=CHUNK):
        yield json.dumps(_line(call), ensure_ascii=False, cls=DjangoJSONEncoder) + "\n"


def _line(call: Call) -> dict[str, Any]:
    cost = call_cost(call)
    run = call.run
    stimulus = call.stimulus or (
        call.answer.stimulus if call.answer else None
    )  # what the judged answer is an answer to
    experiment = run.experiment if run else None
    return {
        "call": call.pk,
        "purpose": call.purpose,
        "experiment_id": experiment.pk if experiment else None,
        "experiment": experiment.title if experiment else None,
        "imported": experiment.imported if experiment else False,
        "instrument": experiment.instrument.slug if experiment else None,
        "instrument_version": experiment.instrument.version if experiment else None,
        "prompt": experiment.prompt.slug if experiment else None,
        "prompt_version": experiment.prompt.version if experiment else None,
        "runs_planned": experiment.runs_planned if experiment else None,
        "max_attempts": experiment.max_attempts if experiment else None,
        "model": call.config.label,
        "provider": call.config.provider,
        "model_requested": call.config.model,
        "model_reported": call.model_reported,
        "run": run.ordinal if run else None,
        "position": stimulus.position if stimulus else None,
        "stimulus": stimulus.text if stimulus else None,
        "judging_id": call.judging_id,
        "judging": call.judging.title if call.judging else None,
        "answer": call.answer.blind_id if call.answer else None,
        "attempt": call.attempt,
        "state": call.state,
        "kind": call.kind,
        "detail": call.detail,
        "http_status": call.http_status,
        "finish_reason": call.finish_reason,
        "input_tokens": call.input_tokens,
        "cached_tokens": call.cached_tokens,
        "output_tokens": call.output_tokens,
        "reasoning_tokens": call.reasoning_tokens,
        "cost": cost.value,
        "currency": cost.currency,
        "cost_unknown_because": cost.reason if cost.value is None else "",
        "cost_at_most": call.reserved if cost.value is None else None,
        "price": call.price_id,
        "sent": call.sent,
        "sent_at": call.sent_at,
        "ended_at": call.ended_at,
        "parameters_asked": call.asked,
        "parameters_used": call.used,
        "request": without_secrets(call.request),
        "response": call.response,
        "raw_reply": call.raw_reply,
        "raw_body": call.raw_body,
        "escaped": call.escaped,
    }


def lenient_verdict(call: Call) -> str | None:
    """What a lenient reader would take out of a reply that is none of ours. Shown, never scored. Not of judges."""
    if call.purpose == Call.Purpose.JUDGE:
        return None
    return lenient_answer(call.raw_reply) if call.state == Call.State.BAD_REPLY and call.raw_reply else None
