"""Putting work into the queue. What is to be done stands in the database; a message only says: look there now."""

from collections.abc import Iterable
from typing import Any

import structlog
from celery import current_app
from kombu.exceptions import OperationalError

log = structlog.get_logger(__name__)

QUEUE = "llm"
TASK = "llmruns.tasks.stimulus_ask"
JUDGE_TASK = "llmruns.tasks.answer_judge"
WAKE_TASK = "llmruns.tasks.limit_wake"


def stimuli_enqueue(pairs: Iterable[tuple[int, int]], *, countdown: float | None = None) -> None:
    """One message for each (run id, stimulus id). A broker that is away loses nothing: workers look for lost work."""
    _enqueue(TASK, pairs, countdown)


def judgements_enqueue(pairs: Iterable[tuple[int, int]], *, countdown: float | None = None) -> None:
    """One message for each (judging id, answer id), likewise."""
    _enqueue(JUDGE_TASK, pairs, countdown)


def _enqueue(task: str, pairs: Iterable[tuple[int, int]], countdown: float | None) -> None:
    try:
        with current_app.producer_pool.acquire(block=True) as producer:
            for pair in pairs:
                current_app.send_task(task, args=list(pair), queue=QUEUE, countdown=countdown, producer=producer)
    except (OperationalError, OSError) as error:
        log.warning("broker_unreachable", error=type(error).__name__)


def limit_enqueue(limit_id: int, *, countdown: float) -> None:
    """One message that arrives when a limit per minute has room again."""
    try:
        with current_app.producer_pool.acquire(block=True) as producer:
            current_app.send_task(WAKE_TASK, args=[limit_id], queue=QUEUE, countdown=countdown, producer=producer)
    except (OperationalError, OSError) as error:
        log.warning("broker_unreachable", error=type(error).__name__)


def queue_length() -> int | None:
    """Messages that no worker has taken yet; None where the broker is away."""
    with current_app.connection_for_read() as broker:
        away: Any = (OperationalError, OSError, *broker.connection_errors)
        missing: Any = broker.channel_errors  # Redis has no empty lists: a queue without messages is not there
        try:
            channel: Any = broker.channel()
            return int(channel.queue_declare(queue=QUEUE, passive=True).message_count)
        except missing:
            return 0
        except away:
            return None
