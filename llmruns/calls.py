"""One call: claimed in the database, sent, recorded. With services.py the only writer of what models answer.

A call is written as in flight before it is sent, under a constraint that allows one in flight per run and stimulus:
that row is the claim. Whoever dies after it leaves the row behind, and the sweeper turns it into `lost`.

Locks are taken in one order: runs (by id), run stimuli, the sitting, limits, calls, and the experiment last.
"""

import secrets
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import psycopg
import structlog
from django.db import IntegrityError, InterfaceError, OperationalError, connection, transaction
from django.utils import timezone

from corpus.models import Answer
from corpus.services import AnswerTooLongError, answer_record, sitting_finish
from corpus.storing import storable_text
from llmruns.budget import Purse, money_reserve, money_settle
from llmruns.credentials import key_of
from llmruns.keys import KeyMissingError, KeyNameRefusedError
from llmruns.limits import limit_admits
from llmruns.liveness import (
    living_workers,
    locks_dropped_at,
    own_name,
    worker_is_alive,
    worker_lock_check,
    worker_name,
)
from llmruns.models import Call, Experiment, JudgingItem, ModelConfig, Run, RunStimulus
from llmruns.pricing import bound, failure_may_be_billed, price_day, tokens_cost
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
from llmruns.queue import judgements_enqueue, stimuli_enqueue
from llmruns.replies import Reply, classify_reply
from llmruns.sending import experiment_send, judging_continue
from llmruns.statements import ToAsk, call_insert, call_lock, call_write, stimulus_lock, stimulus_next
from llmruns.storing import is_storable_json, storable_body

FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0  # seconds of exponential back-off
CLOCKS_DIFFER = timedelta(seconds=1)  # a message may come this much before the time written in the row
RECORD_WAITS = (0.2, 0.5, 1, 2, 5, 10, 20, 30, 30, 30, 30, 30, 30, 30, 30)  # seconds between tries
UNASKED_AFTER = timedelta(seconds=60)  # between the claim and the note in _asking lies no more than a moment
TAKEN_TRIES = 3  # of two that choose the same one at the same moment, one chooses again
ORPHANED_AFTER = timedelta(minutes=30)  # no call takes so long: the longest time-out and all of RECORD_WAITS

log = structlog.get_logger(__name__)
_random = secrets.SystemRandom()
_asking: set[int] = set()  # the calls that this process has under way, trials not among them


@dataclass(frozen=True)
class Claim:
    call_id: int
    run_id: int
    stimulus_id: int
    config: ModelConfig
    body: dict[str, Any]
    limit_id: int | None = None  # the limit under which it was sent


Outcome = ProviderReply | ProviderError


@dataclass(frozen=True)
class Asked:
    """A call that has ended, for whoever goes on in its place: see llmruns.turns."""

    call_id: int
    limit_id: int | None
    is_judgement: bool = False


def stimulus_work(*, run_id: int, stimulus_id: int) -> Asked | None:
    """Ask once, if there is something to ask now. Safe to repeat and to run twice at once."""
    claim = call_claim(run_id=run_id, stimulus_id=stimulus_id)
    return None if claim is None else call_ask(claim)


def call_ask(claim: Claim) -> Asked:
    ask_and_record(claim.call_id, claim.config, claim.body, partial(call_record, claim=claim))
    return Asked(claim.call_id, claim.limit_id)


def ask_and_record(call_id: int, config: ModelConfig, body: dict[str, Any], record: Callable[..., None]) -> None:
    """Send what is claimed and give the outcome to `record`, which is called with `outcome`."""
    if "pool" in connection.settings_dict["OPTIONS"]:
        connection.close()  # back to the pool: forty threads wait for replies with no more than a few connections
    _asking.add(call_id)
    try:
        _record_patiently(partial(record, outcome=provider_ask(config, body)), call_id)
    finally:
        _asking.discard(call_id)


def _record_patiently(record: Callable[[], None], call_id: int) -> None:
    """Keep a reply that was paid for while the database is away; about five minutes in all."""
    for wait in RECORD_WAITS:
        try:
            record()
            return
        except (OperationalError, InterfaceError) as error:
            log.warning("call_not_recorded_yet", call=call_id, error=type(error).__name__)
            connection.close()
            time.sleep(wait)
            with suppress(psycopg.Error):  # still away: then the next try says so too
                worker_lock_check(at_once=True)
    record()


def parameters_of(config: ModelConfig) -> dict[str, Any]:
    """What is asked for; None: the provider's default."""
    return {name: getattr(config, name) for name in ModelConfig.PARAMETERS}


def question_body(config: ModelConfig, prompt: str) -> dict[str, Any]:
    question = Question(
        model=config.model,
        prompt=prompt,
        temperature=config.temperature,
        top_p=config.top_p,
        max_output_tokens=config.max_output_tokens,
        accepts=None if config.accepts is None else frozenset(config.accepts),
        extra_body=config.extra_body,
        folder=config.folder,
    )
    return provider_get(config.provider).request_body(question)


def call_claim(*, run_id: int, stimulus_id: int) -> Claim | None:
    """Write the call that is about to be sent. None where nothing is to be asked, or may be asked, now.

    Two queries; more under a limit or a cap.
    """
    try:
        return _claimed(lambda: (run_id, stimulus_id))
    except IntegrityError:  # call_at_most_one_in_flight: somebody else is asking
        return None


class NothingDueError(Exception):
    """There is nothing to be asked now."""


def call_claim_next(*, limit_id: int) -> Claim | None:
    """The same of whatever is due under a limit. Raises NothingDueError; None where something is, but not for us."""
    for _ in range(TAKEN_TRIES):
        with suppress(IntegrityError):
            return _claimed(lambda: stimulus_next(limit_id=limit_id, now=timezone.now()))
    return None


def _claimed(choose: Callable[[], tuple[int, int] | None]) -> Claim | None:
    worker = worker_name()
    with transaction.atomic():
        chosen = choose()
        if chosen is None:
            raise NothingDueError
        run_id, stimulus_id = chosen
        found = stimulus_lock(run_id=run_id, stimulus_id=stimulus_id, day=price_day(timezone.now()))
        claim = None if found is None else _claim(run_id, stimulus_id, found, worker)
    if claim is not None and found is not None and found.run_state == Run.State.PENDING:
        Run.objects.filter(pk=run_id, state=Run.State.PENDING).update(state=Run.State.RUNNING)
    return claim


def _claim(run_id: int, stimulus_id: int, found: ToAsk, worker: str) -> Claim | None:
    now = timezone.now()
    if found.state != RunStimulus.State.TODO or found.due_at > now + CLOCKS_DIFFER:
        return None
    if found.run_state not in (Run.State.PENDING, Run.State.RUNNING):
        return None
    if found.experiment_state != Experiment.State.RUNNING:
        return None
    if found.limit_id is not None and not limit_admits(limit_id=found.limit_id, now=now):
        return None
    config = found.config
    body = question_body(config, found.prompt.replace("{words}", found.words))
    call = Call(
        run_id=run_id,
        config=config,
        stimulus_id=stimulus_id,
        asked=parameters_of(config),
        request=body,
        price=found.price,
        worker=worker,
    )
    if found.is_capped:
        call.reserved = bound(body, found.price, currency=found.currency).value
        call.currency = found.currency
        # The last lock before the call is written; a call that exists already gives the money back by rolling back.
        if money_reserve(experiment_id=found.experiment_id, most=call.reserved) != "granted":
            return None
    call_insert(call)
    return Claim(call.pk, run_id, stimulus_id, config, body, found.limit_id)


def provider_ask(config: ModelConfig, body: dict[str, Any], *, longest: float = 600.0) -> Outcome:
    """Send it. What goes wrong at the provider is an outcome and not an exception. `longest` bounds the time-out."""
    try:
        key = key_of(config)
    except KeyMissingError as error:
        return KeyUnavailable(error.name)
    except KeyNameRefusedError:
        return KeyUnavailable(config.key_variable)
    endpoint = Endpoint(
        base_url=config.base_url, key=key, timeout=min(float(config.timeout), longest), folder=config.folder
    )
    try:
        return provider_get(config.provider).ask(endpoint, body)
    except ProviderError as error:
        return error
    except Exception as error:
        # Without an outcome the call would stay in flight, and the experiment would never end.
        # Its text may hold what was sent, the key in it: not logged, not kept. And who knows how far it came.
        where = "".join(traceback.format_tb(error.__traceback__))
        log.error("provider_failed_unexpectedly", config=config.pk, error=type(error).__name__, where=where)
        return Unexpected(type(error).__name__, exchange=Exchange(sent=True))


def call_record(*, claim: Claim, outcome: Outcome) -> None:
    """Write down what came of a call and what is to be done next. About four queries; more where a run ends."""
    columns = reply_columns(outcome)
    with transaction.atomic():
        call, run, item = call_lock(claim.call_id)
        if call.state not in (Call.State.IN_FLIGHT, Call.State.LOST):
            return  # recorded by a try of which the database, going away, could no longer say that it had succeeded
        columns |= cost_columns(call, outcome, claim.body)
        is_left = True
        if not _may_decide(call, item):
            # The sweeper took this worker for dead and somebody else has asked again. What came is kept all the same.
            Call.objects.filter(pk=claim.call_id).update(**columns, kind="late")
        elif isinstance(outcome, ProviderReply):
            is_left = _reply_apply(claim.call_id, columns, outcome, run, item)
        else:
            is_left = _failure_apply(claim.call_id, columns, outcome, run, item)
        ended = not is_left and item.state != RunStimulus.State.TODO and _run_settle(run)
        call_money_settle(call, columns["cost"], run.experiment)
    if isinstance(outcome, ProviderError) and not outcome.transient:
        runs_pause(experiment_id=run.experiment_id, config_id=run.config_id, error=outcome)
    if ended:
        experiment_settle(experiment_id=run.experiment_id)


def cost_columns(call: Call, outcome: Outcome, body: dict[str, Any]) -> dict[str, Any]:
    """What a call has cost. `reserved` stays where it may have been billed and nobody says how much."""
    if isinstance(outcome, ProviderReply):
        amount = tokens_cost(
            call.price,
            input_tokens=outcome.input_tokens,
            output_tokens=outcome.output_tokens,
            cached_tokens=outcome.cached_tokens,
        )
        cost = amount.value
    elif failure_may_be_billed(outcome.kind, outcome.exchange.http_status, sent=outcome.exchange.sent):
        cost = None
    else:
        cost = Decimal(0) if call.price is not None else None
        return {"cost": cost, "currency": call.price.currency if call.price else "", "reserved": None}
    most = None
    if cost is None:
        most = call.reserved if call.reserved is not None else bound(body, call.price).value
    return {"cost": cost, "currency": call.price.currency if call.price else "", "reserved": most}


def call_money_settle(call: Call, cost: Decimal | None, purse: Purse) -> None:
    """`call` as it was before the record. Every call under a cap has reserved something."""
    if purse.cap is None or call.reserved is None:
        return
    woken = money_settle(
        experiment_id=purse.pk,
        held=call.reserved,
        cost=cost,
        was_lost=call.state != Call.State.IN_FLIGHT,
        of=type(purse),
    )
    if woken:
        send = experiment_send if isinstance(purse, Experiment) else judging_continue
        transaction.on_commit(partial(send, purse.pk, at_most=woken, call_id=call.pk))


def reply_columns(outcome: Outcome) -> dict[str, Any]:
    """The columns of a call that hold what came back."""
    exchange: Exchange = outcome.exchange
    columns: dict[str, Any] = {"ended_at": timezone.now(), "http_status": exchange.http_status, "sent": exchange.sent}
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
            "cached_tokens": outcome.cached_tokens,
            "reasoning_tokens": outcome.reasoning_tokens,
            "used": dict(outcome.used),
            "detail": storable_text(outcome.refusal or "")[0],
        }
        escaped = escaped or escaped_reply
    else:
        columns["detail"] = storable_text(outcome.message)[0]
    return columns | {"escaped": escaped}


def _may_decide(call: Call, item: RunStimulus) -> bool:
    """Whether this call may still decide. One that was given up as lost may, while nobody has asked again."""
    if call.state == Call.State.IN_FLIGHT:
        return True
    newer = Call.objects.filter(run_id=item.run_id, stimulus_id=item.stimulus_id, pk__gt=call.pk)
    return call.state == Call.State.LOST and item.state != RunStimulus.State.DONE and not newer.exists()


def _reply_apply(call_id: int, columns: dict[str, Any], reply: ProviderReply, run: Run, item: RunStimulus) -> bool:
    """A completed reply: it costs an attempt, and gives an answer or the kind of its failure.

    Returns whether anything else of the run is to be asked; a failure below does too.
    """
    verdict = classify_reply(reply.text, reply.finish_reason, reply.refusal)
    kind = _answer_give(run, item, verdict)
    item.attempts += 1
    item.failures, item.failing_since, item.problem = 0, None, ""
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
    state = Call.State.BAD_REPLY if kind else Call.State.OK
    return call_write(call_id, {**columns, "state": state, "kind": kind, "attempt": item.attempts}, item)


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


def _failure_apply(call_id: int, columns: dict[str, Any], error: ProviderError, run: Run, item: RunStimulus) -> bool:
    """No reply of a model: costs no attempt. Ask again later, or give up for now."""
    now = timezone.now()
    item.failures += 1
    item.failing_since = item.failing_since or now
    item.problem = error.kind
    if error.transient:
        due_at = now + timedelta(seconds=wait_seconds(item.failures, error.retry_after))
        if is_hopeless(error, item, due_at, run.experiment.deadline):
            item.state = RunStimulus.State.GIVEN_UP
            run.reason = storable_text(error.message)[0][:500]
            run.save(update_fields=["reason"])
        else:
            item.due_at = due_at
            wait = (due_at - now).total_seconds()
            transaction.on_commit(partial(stimuli_enqueue, [(run.pk, item.stimulus_id)], countdown=wait))
    return call_write(call_id, {**columns, "state": Call.State.FAILED, "kind": error.kind}, item)


def wait_seconds(failures: int, retry_after: float | None) -> float:
    """How long to wait after this many failures in a row: what the server asks for, else 1, 2, 4 … 60 s; jittered.

    Never less than the server asks for: the jitter is added to it (so that forty threads do not come back at once), and
    spreads an own delay between a half and one and a half of it.
    """
    if retry_after is not None:
        return retry_after + _random.uniform(0.0, min(1.0 + retry_after / 10, 10.0))
    delay = min(LONGEST_WAIT, FIRST_WAIT * 2 ** min(failures - 1, 10))
    return delay * _random.uniform(0.5, 1.5)


def is_hopeless(error: ProviderError, item: RunStimulus | JudgingItem, due_at: datetime, deadline: int) -> bool:
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


def experiment_settle(*, experiment_id: int) -> None:
    """Finish an experiment whose runs have all ended. Safe to repeat."""
    going = Run.objects.filter(experiment=experiment_id).exclude(state__in=ENDED)
    # Without the lock first: most runs are not the last one, and of two that end at once the later one sees the other.
    if not going.exists():
        _experiment_settle(experiment_id)


@transaction.atomic
def _experiment_settle(experiment_id: int) -> None:
    experiment = Experiment.objects.select_for_update().get(pk=experiment_id)
    if experiment.state not in (Experiment.State.RUNNING, Experiment.State.PAUSED):
        return
    if not Run.objects.filter(experiment=experiment).exclude(state__in=ENDED).exists():
        experiment.state, experiment.problem, experiment.ended_at = Experiment.State.FINISHED, "", timezone.now()
        experiment.save(update_fields=["state", "problem", "ended_at"])


def calls_sweep() -> int:
    """Mark the calls of dead workers as lost, possibly billed, and ask again. Returns how many. Safe anywhere."""
    in_flight = list(
        Call.objects.filter(state=Call.State.IN_FLIGHT).values_list(
            "pk", "worker", "run_id", "stimulus_id", "judging_id", "answer_id", "sent_at"
        )
    )
    if not in_flight:
        return 0
    # Read after the calls: a worker holds its lock before it writes its first call.
    living, dropped_at, own = living_workers(), locks_dropped_at(), own_name()
    now = timezone.now()
    stimuli: list[tuple[int, int]] = []
    judgements: list[tuple[int, int]] = []
    for call_id, worker, run_id, stimulus_id, judging_id, answer_id, sent_at in in_flight:
        if sent_at is None:  # of imported calls alone, which are never in flight
            continue
        # A claim of this very process whose thread never learned of it: the database went away as it was written.
        is_trial = run_id is None and judging_id is None
        unasked = worker == own and not is_trial and call_id not in _asking and sent_at < now - UNASKED_AFTER
        alive = worker == "" or worker_is_alive(worker, living) or (dropped_at is not None and sent_at < dropped_at)
        if sent_at > now - ORPHANED_AFTER and alive and not unasked:
            continue
        if not _call_lose(call_id, now):
            continue
        if run_id is not None:
            stimuli.append((run_id, stimulus_id))
        elif judging_id is not None:
            judgements.append((judging_id, answer_id))
    if stimuli or judgements:
        log.warning("calls_lost", count=len(stimuli) + len(judgements))
        stimuli_enqueue(stimuli)
        judgements_enqueue(judgements)
    return len(stimuli) + len(judgements)


@transaction.atomic
def _call_lose(call_id: int, now: datetime) -> bool:
    """Mark a call as lost, unless its reply has come in the meantime. It counts with the most that it can cost."""
    call = (
        Call.objects.select_for_update(of=("self",), no_key=True)
        .select_related("price", "run__experiment", "judging")
        .filter(pk=call_id, state=Call.State.IN_FLIGHT)
        .first()
    )
    if call is None:
        return False
    purse = call.run.experiment if call.run is not None else call.judging
    if purse is not None:
        call_money_settle(call, None, purse)
    held = call.reserved if call.reserved is not None else bound(call.request, call.price).value
    Call.objects.filter(pk=call_id).update(
        state=Call.State.LOST,
        kind="lost",
        ended_at=now,
        reserved=held,
        currency=call.price.currency if call.price else "",
    )
    return True
