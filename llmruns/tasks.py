"""What the workers of queue `llm` do. A message carries ids; what is to be done stands in the database."""

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import psycopg
import structlog
from celery import shared_task
from celery.signals import worker_ready
from celery.worker import state
from django.db import Error, InterfaceError, OperationalError, connection

from llmruns import sending
from llmruns.calls import Asked, stimulus_work
from llmruns.judge_calls import answer_work
from llmruns.liveness import worker_lock_check
from llmruns.services import work_recover
from llmruns.turns import IN_A_ROW, turn_pass, turn_take

LOOK_EVERY = 10.0  # seconds between looks for lost work
CLAIM_WAITS = (0.5, 1, 2, 5, 10)  # seconds between tries while the database is away

log = structlog.get_logger(__name__)


@shared_task
def stimulus_ask(run_id: int, stimulus_id: int) -> None:
    """One call of one run for one stimulus. Repeating it, or running it twice at once, sends nothing twice."""
    work = partial(stimulus_work, run_id=run_id, stimulus_id=stimulus_id)
    _go_on(_claim_patiently(work, run=run_id, stimulus=stimulus_id))


@shared_task
def answer_judge(judging_id: int, answer_id: int) -> None:
    """One call of one model judge about one answer, likewise."""
    work = partial(answer_work, judging_id=judging_id, answer_id=answer_id)
    _go_on(_claim_patiently(work, judging=judging_id, answer=answer_id))


def _go_on(asked: Asked | None) -> None:
    """Under a limit some more calls in its place, until the worker is to stop or it is the turn of others."""
    for _ in range(IN_A_ROW - 1):
        if asked is None or asked.limit_id is None or _is_stopping():
            break
        asked = _claim_patiently(partial(turn_take, asked), limit=asked.limit_id)
    turn_pass(asked)


def _is_stopping() -> bool:
    """Whether this process was asked to stop once what it does has ended. 0 is an exit code."""
    return state.should_stop is not None and state.should_stop is not False


def _claim_patiently(work: Callable[[], Asked | None], **named: int) -> Asked | None:
    """While the database is away the message is held here for a moment.

    A worker that fails at once would throw the whole queue away in seconds, and the look for lost work would find it
    only half a minute after the database is back.
    """
    for wait in CLAIM_WAITS:
        try:
            return work()
        except (OperationalError, InterfaceError, psycopg.OperationalError) as error:
            log.warning("call_not_claimed_yet", error=type(error).__name__, **named)
            connection.close()
            time.sleep(wait)
    return work()


@shared_task
def limit_wake(limit_id: int) -> None:
    """A limit per minute has room again."""
    sending.limit_wake(limit_id=limit_id)


@worker_ready.connect
def lost_work_look_for(**_: Any) -> None:
    """Celery's hook at a worker's start: after kill -9 the broker gives messages back only after an hour.

    So every worker looks into the database itself, at its start and from then on.
    """
    threading.Thread(target=_look_for_lost_work, name="luria-lost-work", daemon=True).start()


def _look_for_lost_work() -> None:
    everything = True
    while True:
        try:
            worker_lock_check()
            work_recover(everything=everything)
            everything = False
        except (Error, psycopg.Error) as error:
            log.warning("lost_work_not_looked_for", error=type(error).__name__)
        except Exception:  # what went wrong in one look must not be the end of all later ones
            log.exception("lost_work_not_looked_for")
        finally:
            connection.close()
        time.sleep(LOOK_EVERY)
