"""Putting work for classifiers into the queue. What is to be done stands in the database; a message says: look."""

import structlog
from celery import current_app
from kombu.exceptions import OperationalError

log = structlog.get_logger(__name__)

QUEUE = "ml"
TRAIN, APPLY = "scoring.tasks.classifier_train", "scoring.tasks.classifier_apply"


def classifier_enqueue(classifier_id: int) -> None:
    """A broker that is away loses nothing: workers look for waiting work at their start, and pages can."""
    _send(TRAIN, classifier_id)


def application_enqueue(application_id: int) -> None:
    _send(APPLY, application_id)


def _send(task: str, pk: int) -> None:
    try:
        current_app.send_task(task, args=[pk], queue=QUEUE)
    except (OperationalError, OSError) as error:
        log.warning("broker_unreachable", error=type(error).__name__)
