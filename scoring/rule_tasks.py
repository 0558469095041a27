"""What workers of queue `default` do for the counting rules: they look, every so often, for what has come in."""

import threading
import time
from datetime import datetime
from typing import Any

import psycopg
import structlog
from celery.signals import worker_ready
from django.db import Error, connection

from scoring.counting import rules_look

LOOK_EVERY = 30.0  # seconds
QUEUE = "default"

log = structlog.get_logger(__name__)


@worker_ready.connect
def look_begin(sender: Any = None, **_: Any) -> None:
    """Celery's hook at a worker's start. Nobody is told of an answer, so no message can be lost."""
    if sender is not None and QUEUE in sender.app.amqp.queues.consume_from:
        threading.Thread(target=_look, name="luria-rules", daemon=True).start()


def _look() -> None:
    since: datetime | None = None  # at the start everything
    while True:
        try:
            since = rules_look(since)
        except (Error, psycopg.Error) as error:
            log.warning("rules_not_applied", error=type(error).__name__)
        except Exception:  # what went wrong in one look must not be the end of all later ones
            log.exception("rules_not_applied")
        finally:
            connection.close()
        time.sleep(LOOK_EVERY)
