"""Putting releases into the queue. What is to be made stands in the database; a message only says: look there."""

import structlog
from celery import current_app
from kombu.exceptions import OperationalError

log = structlog.get_logger(__name__)

TASK = "reports.tasks.release_make"


def release_enqueue(release_id: int) -> None:
    """A broker that is away loses nothing: workers look for waiting releases at their start, and pages can."""
    try:
        current_app.send_task(TASK, args=[release_id], queue="default")
    except (OperationalError, OSError) as error:
        log.warning("broker_unreachable", error=type(error).__name__)
