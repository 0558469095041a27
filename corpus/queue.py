"""Putting compositions into the queue. What is to be done stands in the database; a message only says: look there."""

import structlog
from celery import current_app
from kombu.exceptions import OperationalError

log = structlog.get_logger(__name__)

TASK = "corpus.tasks.composition_read"


def composition_enqueue(composition_id: int, *, countdown: float | None = None) -> None:
    """A broker that is away loses nothing: workers look for waiting compositions at their start, and pages can."""
    try:
        current_app.send_task(TASK, args=[composition_id], queue="default", countdown=countdown)
    except (OperationalError, OSError) as error:
        log.warning("broker_unreachable", error=type(error).__name__)
