"""What the workers of queue `default` do for releases. A message carries an id; the rest is in the database."""

from typing import Any

import structlog
from celery import shared_task
from celery.signals import worker_ready
from django.db import Error, connection

from reports.models import Release
from reports.releases.files import files_sweep
from reports.releases.queue import release_enqueue
from reports.releases.services import ReleaseOvertakenError, release_build

log = structlog.get_logger(__name__)


@shared_task
def release_make(release_id: int) -> None:
    """Make the archive of a release. Twice at once, or once more after it is done, does nothing."""
    try:
        release_build(release_id=release_id)
    except ReleaseOvertakenError:
        log.info("release_overtaken", release=release_id)  # its page says so


@worker_ready.connect
def unfinished_look_for(**_: Any) -> None:
    """Celery's hook at a worker's start: what waits, or was in the hands of one that died, is put in again."""
    try:
        files_sweep()
        unfinished = [Release.State.WAITING, Release.State.BUILDING]
        for release_id in Release.objects.filter(state__in=unfinished).values_list("pk", flat=True):
            release_enqueue(release_id)
    except (Error, OSError) as error:
        log.warning("releases_not_looked_for", error=type(error).__name__)
    finally:
        connection.close()
