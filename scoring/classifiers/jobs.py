"""Training and applying as work that is claimed, shown, cancelled, killed and taken up again.

Who works holds a lock that PostgreSQL drops when the process dies, so that after kill -9 the next worker goes on at
once and nobody waits for a silence to be long enough. Should the lock's connection be lost while its owner lives on,
the number of the attempt keeps the older one from writing.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any, TypeVar

import psycopg
from django.db import Error, connection, transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from scoring.classifiers.problems import ClassifierError, StoppedError
from scoring.models import UNFINISHED, Application, Classifier, JobState
from studies.models import User
from studies.services import audit_record

J = TypeVar("J", Classifier, Application)
# The first half of the locks' names: "LUCA" and "LUCB".
LOCKS: dict[type[Classifier] | type[Application], int] = {Classifier: 0x4C554341, Application: 0x4C554342}
SHOWN_EVERY = 1.0  # seconds between writes of the progress
SOON = timedelta(minutes=10)  # a worker that dies so soon after it has begun may have died of the job itself
MOST_DEATHS = 4  # of that kind in a row; fewer than the launcher lets a program end within a minute

HELD = """
SELECT objid::bigint FROM pg_locks
WHERE locktype = 'advisory' AND classid = %s AND objsubid = 2 AND granted
AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


@contextmanager
def job_lock(model: type[J], pk: int) -> Iterator[bool]:
    """Whether this process has the job to itself, on a connection of its own. Not through a pooler of sessions."""
    own = connection.copy()
    name = [LOCKS[model], pk % 2**31]
    try:
        with own.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", name)
            (taken,) = cursor.fetchone()
        try:
            yield bool(taken)
        finally:
            # A pool takes the connection back, locks and all. A connection that is gone has none.
            if taken:
                with suppress(Error), own.cursor() as cursor:
                    cursor.execute("SELECT pg_advisory_unlock(%s, %s)", name)
    finally:
        own.close()


def job_claim(model: type[J], pk: int) -> int | None:
    """Begin, or go on where somebody was killed: the number of the attempt; None where there is nothing to do.

    For whoever holds the job's lock: what runs then has lost its worker. Where that came soon, several times in a row,
    the job is given up, since it may be what kills them (most often by taking all memory). Up to five queries.
    """
    now = timezone.now()
    left = model.objects.filter(pk=pk, state=JobState.RUNNING)
    left.filter(started_at__gt=now - SOON).update(deaths=F("deaths") + 1)
    left.filter(started_at__lte=now - SOON).update(deaths=0)
    if left.filter(deaths__gte=MOST_DEATHS).update(
        state=JobState.FAILED,
        problem="worker_died",
        problem_detail={"times": str(MOST_DEATHS)},
        finished_at=now,
        deaths=0,
    ):
        return None
    taken = model.objects.filter(pk=pk, state__in=UNFINISHED).update(
        state=JobState.RUNNING, attempt=F("attempt") + 1, started_at=now, problem="", problem_detail={}
    )
    return model.objects.values_list("attempt", flat=True).get(pk=pk) if taken else None


def jobs_held(model: type[Classifier] | type[Application]) -> set[int]:
    """The second halves of the names of the locks that somebody holds now. One query; see `is_held`."""
    with connection.cursor() as cursor:
        cursor.execute(HELD, [LOCKS[model]])
        return {number for (number,) in cursor.fetchall()}


def is_held(held: set[int], pk: int) -> bool:
    """Whether somebody is at this job, told from the locks that are held."""
    return pk % 2**31 in held


class JobProgress:
    """Told how much is done; writes it down now and then. Raises StoppedError where the job is not wanted any more."""

    def __init__(self, model: type[J], pk: int, attempt: int, also: Any = None) -> None:
        self.mine: QuerySet[Any] = model.objects.filter(pk=pk, attempt=attempt, state=JobState.RUNNING)
        self.also = also
        self.written: float | None = None

    def __call__(self, done: int, total: int) -> None:
        if self.also is not None:
            self.also(done, total)
        now = time.monotonic()
        if self.written is not None and done < total and now - self.written < SHOWN_EVERY:
            return
        self.written = now
        if not self.mine.update(done=done, total=total):
            raise StoppedError


def job_fail(model: type[J], pk: int, attempt: int, error: BaseException) -> None:
    """Say why it failed. Whatever was there before (an earlier classifier, judgements made) stays as it is."""
    if isinstance(error, ClassifierError):
        code, detail = error.code, {name: str(value) for name, value in error.detail.items()}
    elif _is_out_of_memory(error):
        code, detail = "out_of_memory", {}
    elif isinstance(error.__cause__, psycopg.errors.DiskFull):
        code, detail = "database_full", {}
    else:
        code, detail = "unforeseen", {"error": type(error).__name__}
    model.objects.filter(pk=pk, attempt=attempt, state=JobState.RUNNING).update(
        state=JobState.FAILED, problem=code, problem_detail=detail, finished_at=timezone.now()
    )


def _is_out_of_memory(error: BaseException) -> bool:
    """PyTorch says so by an error of its own for a graphics card, and by words for the processor."""
    said = "can't allocate memory" in str(error) or type(error).__name__ == "OutOfMemoryError"
    return isinstance(error, MemoryError) or said


@transaction.atomic
def job_cancel(*, job: J, actor: User | None) -> bool:
    """Stop it; its worker notices at the next batch. False: there was nothing to stop."""
    model = type(job)
    taken = model.objects.filter(pk=job.pk, state__in=UNFINISHED).update(
        state=JobState.CANCELLED, finished_at=timezone.now()
    )
    if taken:
        name = model.__name__.lower()
        audit_record(actor=actor, study=_study_of(job), action=f"{name}_cancel", target=job)
    return bool(taken)


def _study_of(job: Classifier | Application) -> Any:
    return job.study if isinstance(job, Classifier) else job.classifier.study
