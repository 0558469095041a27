"""What the workers of queue `default` do for compositions. A message carries an id; the rest is in the database."""

import time
from typing import Any

import structlog
from celery import shared_task
from celery.signals import worker_ready
from django.db import Error, connection

from corpus.composer import Parameters, Scan
from corpus.compositions import (
    STALE,
    composition_beat,
    composition_claim,
    composition_fail,
    composition_finish,
)
from corpus.models import Composition
from corpus.queue import composition_enqueue
from corpus.treebank import TreebankUnreadableError, sentences
from corpus.treebank_files import LeftOut, LeftOutFile, treebank_path

UNFORESEEN = "The file cannot be read: something in it was not foreseen. The worker's log has the detail."
BEAT = 1.0  # seconds between signs of life

log = structlog.get_logger(__name__)


@shared_task
def composition_read(composition_id: int) -> None:
    """Search a treebank for candidates. Twice at once, or once more after it is done, does nothing."""
    attempt = composition_claim(composition_id)
    if attempt is None:
        return
    composition = Composition.objects.select_related("treebank").get(pk=composition_id)
    left_out = LeftOutFile(composition_id, attempt)
    wanted = False
    try:
        wanted = _search(composition, attempt, left_out)
    except (TreebankUnreadableError, OSError) as error:
        composition_fail(composition_id=composition_id, attempt=attempt, problem=str(error))
    except Exception:
        composition_fail(composition_id=composition_id, attempt=attempt, problem=UNFORESEEN)
        raise  # for the worker's log
    finally:
        left_out.close() if wanted else left_out.discard()


def _search(composition: Composition, attempt: int, left_out: LeftOutFile) -> bool:
    """Read all, showing life. False: somebody has cancelled it, or another worker has taken over."""
    scan = Scan(Parameters.from_json(composition.parameters))
    read, beaten = 0, time.monotonic()

    def count(size: int) -> None:
        nonlocal read
        read += size

    with treebank_path(composition.treebank.sha256).open("rb") as stream:
        for sentence in sentences(stream, scan.parameters.language, read=count):
            found = scan.look(sentence)
            if found:
                left_out.write(LeftOut(sentence.line, sentence.sent_id, sentence.text, found))
            if time.monotonic() - beaten >= BEAT:
                beaten = time.monotonic()
                if not composition_beat(
                    composition_id=composition.pk, attempt=attempt, bytes_read=read, sentences=scan.sentences
                ):
                    return False
    left_out.close()
    return composition_finish(
        composition_id=composition.pk, attempt=attempt, scan=scan, bytes_read=read, n_left_out=left_out.count
    )


@worker_ready.connect
def unfinished_look_for(**_: Any) -> None:
    """Celery's hook at a worker's start: what waited for it, or was in the hands of one that died, is put in again."""
    try:
        for composition_id, state in Composition.objects.filter(
            state__in=[Composition.State.WAITING, Composition.State.READING]
        ).values_list("pk", "state"):
            waits = STALE.total_seconds() + 5 if state == Composition.State.READING else None
            composition_enqueue(composition_id, countdown=waits)
    except Error as error:
        log.warning("compositions_not_looked_for", error=type(error).__name__)
    finally:
        connection.close()
