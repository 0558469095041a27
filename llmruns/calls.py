"""One call: claimed in the database, sent, recorded. With services.py the only writer of what models answer.

A call is written as in flight before it is sent, under a constraint that allows one in flight per run and stimulus:
that row is the claim. Whoever dies after it leaves the row behind, and the sweeper turns it into `lost`.

Locks are taken in one order: runs (by id), then run stimuli, then the sitting. Experiments are locked alone.
"""

import secrets
import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import structlog
from django.db import IntegrityError, InterfaceError, OperationalError, connection, transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone

from corpus.models import Answer, Sitting
from corpus.services import AnswerTooLongError, answer_record, sitting_finish
from corpus.storing import storable_text
from llmruns.keys import KeyMissingError, KeyNameRefusedError, key_read
from llmruns.liveness import living_workers, worker_is_alive, worker_name
from llmruns.models import Call, Experiment, ModelConfig, Run, RunStimulus
from llmruns.providers import provider_get
from llmruns.providers.base import (
    Endpoint,
    Exchange,
    KeyUnavailable,
    ProviderError,
    ProviderReply,
    Question,
    Unexpected,
)
from llmruns.queue import stimuli_enqueue
from llmruns.replies import Reply, classify_reply
from llmruns.storing import is_storable_json, storable_body

FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0  # seconds of exponential back-off
CLOCKS_DIFFER = timedelta(seconds=1)  # a message may come this much before the time written in the row
RECORD_WAITS = (0.2, 0.5, 1, 2, 5, 10, 20, 30, 30, 30, 30, 30, 30, 30, 30)  # seconds between tries
ORPHANED_AFTER = timedelta(minutes=30)  # no call takes so long: the longest time-out and all of RECORD_WAITS

log = structlog.get_logger(__name__)
_random = secrets.SystemRandom()


@dataclass(frozen=True)
class Claim:
    call_id: int
    run_id: int
    stimulus_id: int
    config: ModelConfig
    body: dict[str, Any]


Outcome = ProviderReply | ProviderError


def stimulus_work(*, run_id: int, stimulus_id: int) -> None:
    """Ask once, if there is something to ask now. Safe to repeat and to run twice at once."""
    claim = call_claim(run_id=run_id, stimulus_id=stimulus_id)
    if claim is None:
        return
    if "pool" in connection.settings_dict["OPTIONS"]:
        connection.close()  # back to the pool: forty threads wait for replies with no more than a few connections
    outcome = provider_ask(claim.config, claim.body)
    _record_patiently(claim, outcome)


def _record_patiently(claim: Claim, outcome: Outcome) -> None:
    """Keep a reply that was paid for while the database is away; about five minutes in all."""
    for wait in RECORD_WAITS:
        try:
            call_record(claim=claim, outcome=outcome)
            return
        except (OperationalError, InterfaceError) as error:
            log.warning("call_not_recorded_yet", call=claim.call_id, error=type(error).__name__)
            connection.close()
            time.sleep(wait)
    call_record(claim=claim, outcome=outcome)


def question_body(config: ModelConfig, prompt: str) -> dict[str, Any]:
    question = Question(
        model=config.model,
        prompt=prompt,
        temperature=config.temperature,
        max_output_tokens=config.max_output_tokens,
    )
    return provider_get(config.provider).request_body(question)


def call_claim(*, run_id: int, stimulus_id: int) -> Claim | None:
    """Write the call that is about to be sent. None where nothing is to be asked (now). Two queries."""
    now = timezone.now()
    worker = worker_name()
    try:
        with transaction.atomic():
            item = (
                RunStimulus.objects.select_for_update(of=("self",))
                .select_related("stimulus", "run__config", "run__experiment__prompt")
                .filter(run_id=run_id, stimulus_id=stimulus_id)
                .first()
            )
            if item is None or item.state != RunStimulus.State.TODO or item.due_at > now + CLOCKS_DIFFER:
                return None
            run = item.run
            if run.state not in (Run.State.PENDING, Run.State.RUNNING):
                return None
            body = question_body(run.config, run.experiment.prompt.text.replace("{words}", item.stimulus.text))
            call = Call.objects.create(
                run_id=run_id, config=run.config, stimulus_id=stimulus_id, request=body, worker=worker, sent_at=now
            )
    except IntegrityError:  # call_at_most_one_in_flight: somebody else is asking
        return None
    if run.state == Run.State.PENDING:
        Run.objects.filter(pk=run_id, state=Run.State.PENDING).update(state=Run.State.RUNNING)
    return Claim(call.pk, run_id, stimulus_id, run.config, body)


def provider_ask(config: ModelConfig, body: dict[str, Any], *, longest: float = 600.0) -> Outcome:
    """Send it. What goes wrong at the provider is an outcome and not an exception. `longest` bounds the time-out."""
    try:
        key = key_read(config.key_variable)
    except (KeyMissingError, KeyNameRefusedError):
        return KeyUnavailable(config.key_variable)
    endpoint = Endpoint(base_url=config.base_url, key=key, timeout=min(float(config.timeout), longest))
    try:
        return provider_get(config.provider).ask(endpoint, body)
    except ProviderError as error:
        return error
    except Exception as error:
        # Without an outcome the call would stay in flight, and the experiment would never end.
        log.exception("provider_failed_unexpectedly", provider=config.provider, config=config.pk)
        return Unexpected(type(error).__name__)  # the text may hold what was sent, the key in it


def call_record(*, claim: Claim, outcome: Outcome) -> None:
    """Write down what came of a call and what is to be done next. About ten queries."""
    columns = reply_columns(outcome)
    with transaction.atomic():
        run = Run.objects.select_for_update(of=("self",)).select_related("experiment").get(pk=claim.run_id)
        item = RunStimulus.objects.select_for_update().get(run=run, stimulus_id=claim.stimulus_id)
        if not _call_is_open(claim.call_id, item):
            # The sweeper took this worker for dead and somebody else has asked again. What came is kept all the same.
            Call.objects.filter(pk=claim.call_id).update(**columns, kind="late")
            return
        if isinstance(outcome, ProviderReply):
            _reply_apply(claim.call_id, columns, outcome, run, item)
        else:
            _failure_apply(claim.call_id, columns, outcome, run, item)
        ended = item.state != RunStimulus.State.TODO and _run_settle(run)
    if isinstance(outcome, ProviderError) and not outcome.transient:
        runs_pause(experiment_id=run.experiment_id, config_id=run.config_id, error=outcome)
    if ended:
        experiment_settle(experiment_id=run.experiment_id)


def reply_columns(outcome: Outcome) -> dict[str, Any]:
    """The columns of a call that hold what came back."""
    exchange: Exchange = outcome.exchange
    columns: dict[str, Any] = {"ended_at": timezone.now(), "http_status": exchange.http_status}
    document = outcome.document if isinstance(outcome, ProviderReply) else None
    if is_storable_json(document):
        columns["response"] = document
        escaped = False
    else:
        columns["raw_body"], escaped = storable_body(exchange.body)
    if isinstance(outcome, ProviderReply):
        columns["raw_reply"], escaped_reply = storable_text(outcome.text or "")
        columns |= {
            "model_reported": storable_text(outcome.model)[0][:200],
            "finish_reason": storable_text(outcome.finish_reason or "")[0][:40],
            "input_tokens": outcome.input_tokens,
            "output_tokens": outcome.output_tokens,
            "detail": storable_text(outcome.refusal or "")[0],
        }
        escaped = escaped or escaped_reply
    else:
        columns["detail"] = storable_text(outcome.message)[0]
    return columns | {"escaped": escaped}


def _call_is_open(call_id: int, item: RunStimulus) -> bool:
    """Whether this call may still decide. One that was given up as lost may, while nobody has asked again."""
    state = Call.objects.values_list("state", flat=True).get(pk=call_id)
    if state == Call.State.IN_FLIGHT:
        return True
    newer = Call.objects.filter(run_id=item.run_id, stimulus_id=item.stimulus_id, pk__gt=call_id)
    return state == Call.State.LOST and item.state != RunStimulus.State.DONE and not newer.exists()


def _reply_apply(call_id: int, columns: dict[str, Any], reply: ProviderReply, run: Run, item: RunStimulus) -> None:
    """A completed reply: it costs an attempt, and gives an answer or the kind of its failure."""
    verdict = classify_reply(reply.text, reply.finish_reason, reply.refusal)
    kind = _answer_give(run, item, verdict)
    item.attempts += 1
    item.failures, item.failing_since, item.problem = 0, None, ""
    Call.objects.filter(pk=call_id).update(
        **columns,
        state=Call.State.BAD_REPLY if kind else Call.State.OK,
        kind=kind,
        attempt=item.attempts,
    )
    if not kind:
        item.state = RunStimulus.State.DONE
    elif item.attempts >= run.experiment.max_attempts:
        item.state = RunStimulus.State.DONE
        if run.state != Run.State.CANCELLED:
            answer_record(
                sitting_id=run.sitting_id, stimulus_id=item.stimulus_id, outcome=Answer.Outcome.NO_VALID_REPLY
            )
    else:
        item.due_at = timezone.now()
        transaction.on_commit(partial(stimuli_enqueue, [(run.pk, item.stimulus_id)]))
    item.save(update_fields=["attempts", "failures", "failing_since", "problem", "state", "due_at"])


def _answer_give(run: Run, item: RunStimulus, verdict: Reply) -> str:
    """Record the answer. Returns "" or the kind of failure."""
    if verdict.answer is None:
        return verdict.error or "format"
    if run.state == Run.State.CANCELLED:
        return ""  # paid for and kept in the call; the sitting is closed
    try:
        answer_record(
            sitting_id=run.sitting_id,
            stimulus_id=item.stimulus_id,
            outcome=Answer.Outcome.GIVEN,
            text=verdict.answer,
            may_be_empty=True,
        )
    except AnswerTooLongError:
        return "too_long"
    return ""


def _failure_apply(call_id: int, columns: dict[str, Any], error: ProviderError, run: Run, item: RunStimulus) -> None:
    """No reply of a model: costs no attempt. Ask again later, or give up for now."""
    now = timezone.now()
    Call.objects.filter(pk=call_id).update(**columns, state=Call.State.FAILED, kind=error.kind)
    item.failures += 1
    item.failing_since = item.failing_since or now
    item.problem = error.kind
    if error.transient:
        due_at = now + timedelta(seconds=wait_seconds(item.failures, error.retry_after))
        if _is_hopeless(error, item, due_at, run.experiment.deadline):
            item.state = RunStimulus.State.GIVEN_UP
            run.reason = storable_text(error.message)[0][:500]
            run.save(update_fields=["reason"])
        else:
            item.due_at = due_at
            wait = (due_at - now).total_seconds()
            transaction.on_commit(partial(stimuli_enqueue, [(run.pk, item.stimulus_id)], countdown=wait))
    item.save(update_fields=["failures", "failing_since", "problem", "state", "due_at"])


def wait_seconds(failures: int, retry_after: float | None) -> float:
    """How long to wait after this many failures in a row: what the server asks for, else 1, 2, 4 … 60 s; jittered.

    Never less than the server asks for: the jitter is added to it (so that forty threads do not come back at once), and
    spreads an own delay between a half and one and a half of it.
    """
    if retry_after is not None:
        return retry_after + _random.uniform(0.0, min(1.0 + retry_after / 10, 10.0))
    delay = min(LONGEST_WAIT, FIRST_WAIT * 2 ** min(failures - 1, 10))
    return delay * _random.uniform(0.5, 1.5)


def _is_hopeless(error: ProviderError, item: RunStimulus, due_at: datetime, deadline: int) -> bool:
    assert item.failing_since is not None  # noqa: S101 - set by the caller
    if error.tries is not None and item.failures >= error.tries:
        return True
    return due_at > item.failing_since + timedelta(seconds=deadline)


def _run_settle(run: Run) -> bool:
    """End the run if nothing is left to ask. The caller holds its lock. Returns whether it has ended."""
    if run.state not in (Run.State.RUNNING, Run.State.PENDING, Run.State.PAUSED):
        return False
    items = RunStimulus.objects.filter(run=run)
    if items.filter(state=RunStimulus.State.TODO).exists():
        return False
    given_up = items.filter(state=RunStimulus.State.GIVEN_UP).exclude(problem="").order_by("pk").first()
    if given_up is not None:
        run.state, run.problem = Run.State.INCOMPLETE, given_up.problem
    else:
        sitting_finish(sitting_id=run.sitting_id)
        run.state, run.problem, run.reason = Run.State.FINISHED, "", ""
    run.save(update_fields=["state", "problem", "reason"])
    return True


@transaction.atomic
def runs_pause(*, experiment_id: int, config_id: int, error: ProviderError) -> None:
    """Stop all runs of one configuration in an experiment: every further call would fail like this one."""
    runs = list(
        Run.objects.select_for_update()
        .filter(experiment_id=experiment_id, config_id=config_id, state__in=[Run.State.PENDING, Run.State.RUNNING])
        .order_by("pk")
    )
    for run in runs:
        run.state, run.problem = Run.State.PAUSED, error.kind
        run.reason = storable_text(error.message)[0][:500]
        run.save(update_fields=["state", "problem", "reason"])
    if runs:
        log.warning("runs_paused", experiment=experiment_id, config=config_id, kind=error.kind, runs=len(runs))


ENDED = [Run.State.FINISHED, Run.State.INCOMPLETE, Run.State.CANCELLED]


@transaction.atomic
def experiment_settle(*, experiment_id: int) -> None:
    """Finish an experiment whose runs have all ended. Safe to repeat."""
    experiment = Experiment.objects.select_for_update().get(pk=experiment_id)
    if experiment.state != Experiment.State.RUNNING:
        return
    if not Run.objects.filter(experiment=experiment).exclude(state__in=ENDED).exists():
        experiment.state, experiment.ended_at = Experiment.State.FINISHED, timezone.now()
        experiment.save(update_fields=["state", "ended_at"])


def calls_sweep() -> int:
    """Mark the calls of dead workers as lost, possibly billed, and ask again. Returns how many. Safe anywhere."""
    in_flight = list(
        Call.objects.filter(state=Call.State.IN_FLIGHT).values_list("pk", "worker", "run_id", "stimulus_id", "sent_at")
    )
    if not in_flight:
        return 0
    # Read after the calls: a worker holds its lock before it writes its first call.
    living = living_workers()
    now = timezone.now()
    lost: list[tuple[int, int]] = []
    for call_id, worker, run_id, stimulus_id, sent_at in in_flight:
        if sent_at > now - ORPHANED_AFTER and (worker == "" or worker_is_alive(worker, living)):
            continue
        taken = Call.objects.filter(pk=call_id, state=Call.State.IN_FLIGHT).update(
            state=Call.State.LOST, kind="lost", ended_at=now
        )
        if taken and run_id is not None:
            lost.append((run_id, stimulus_id))
    if lost:
        log.warning("calls_lost", count=len(lost))
        stimuli_enqueue(lost)
    return len(lost)


def due_stimuli(*, overdue: timedelta = timedelta(0), experiment_id: int | None = None) -> list[tuple[int, int]]:
    """(run, stimulus) to be asked now and not in flight, in the order of runs and positions. One query."""
    items = RunStimulus.objects.filter(
        state=RunStimulus.State.TODO,
        due_at__lte=timezone.now() - overdue,
        run__state__in=[Run.State.PENDING, Run.State.RUNNING],
        run__sitting__state=Sitting.State.OPEN,
    ).exclude(
        Exists(
            Call.objects.filter(run=OuterRef("run_id"), stimulus=OuterRef("stimulus_id"), state=Call.State.IN_FLIGHT)
        )
    )
    if experiment_id is not None:
        items = items.filter(run__experiment_id=experiment_id)
    return list(items.order_by("run__ordinal", "run_id", "stimulus__position").values_list("run_id", "stimulus_id"))
