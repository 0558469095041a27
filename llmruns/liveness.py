"""A process that has calls in flight says so by a lock that PostgreSQL drops when the process dies.

The lock is a session-level advisory lock on a connection of its own. It needs a direct connection: behind a pooler that
shares sessions between clients (PgBouncer in transaction mode) it would mean nothing.

A restart of PostgreSQL drops the locks of the living too. They take them again within tasks.LOOK_EVERY, and until
SETTLED_AFTER nobody is taken for dead because of a call from before.
"""

import os
import secrets
import socket
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import structlog
from django.db import connection

CLASS = 0x4C55_5249  # "LURI": the first half of the lock's name
CHECK_EVERY = 5.0  # seconds between looks at the lock's own connection
SETTLED_AFTER = timedelta(seconds=30)

log = structlog.get_logger(__name__)


class _Lock:
    """One per process. A forked child makes its own."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.number = secrets.randbelow(2**31)
        self.connection: psycopg.Connection | None = None
        self.checked = 0.0
        self.was_lost = False
        self.taken_again: datetime | None = None

    def name(self) -> str:
        return f"{socket.gethostname()[:60]}:{self.pid}:{self.number}"

    def hold(self) -> None:
        """Make sure that the lock is held, on a new connection if the old one is gone. Raises psycopg.Error."""
        if self.connection is not None and time.monotonic() - self.checked < CHECK_EVERY:
            return
        if self.connection is not None:
            try:
                self.connection.execute("SELECT 1")
            except psycopg.Error:
                log.warning("worker_lock_lost", worker=self.number)
                self.connection.close()
                self.connection, self.was_lost = None, True
        if self.connection is None:
            self.connection = _connect()
            self.connection.execute("SELECT pg_advisory_lock(%s, %s)", [CLASS, self.number])
            if self.was_lost:
                self.was_lost, self.taken_again = False, datetime.now(UTC)
        self.checked = time.monotonic()


_mutex = threading.Lock()
_lock: _Lock | None = None


def worker_name() -> str:
    """The name of this process, with its lock held. The number after the last colon is the lock's."""
    global _lock
    with _mutex:
        if _lock is None or _lock.pid != os.getpid():
            _lock = _Lock()  # a parent's connection is the parent's: it is left alone, not closed
        _lock.hold()
        return _lock.name()


def worker_lock_check(*, at_once: bool = False) -> None:
    """Hold the lock again after the database was away, if this process has one. Raises psycopg.Error.

    `at_once`: it has just been seen to be away, whenever the lock was last looked at.
    """
    if _lock is not None and _lock.pid == os.getpid():
        if at_once:
            _lock.checked = 0.0
        worker_name()


def own_name() -> str:
    """The name of this process if it holds a lock, else ""."""
    held = _lock
    return held.name() if held is not None and held.pid == os.getpid() else ""


def worker_lock_release() -> None:
    """This process has nothing in flight any more."""
    global _lock
    with _mutex:
        if _lock is not None and _lock.connection is not None and _lock.pid == os.getpid():
            with suppress(psycopg.Error):  # already gone, and the lock with it
                _lock.connection.execute("SELECT pg_advisory_unlock_all()")
            _lock.connection.close()
        _lock = None


def living_workers() -> set[int]:
    """The numbers of the processes that live. One query."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT objid FROM pg_locks WHERE locktype = 'advisory' AND classid = %s AND objsubid = 2 AND granted"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
            [CLASS],
        )
        return {int(row[0]) for row in cursor.fetchall()}


def locks_dropped_at() -> datetime | None:
    """When the locks of the living were dropped with all others, if some may not have been taken again. One query.

    PostgreSQL has started a moment ago; or this process has found its own lock gone.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT at, extract(epoch FROM clock_timestamp() - at) < %s FROM pg_postmaster_start_time() AS at",
            [SETTLED_AFTER.total_seconds()],
        )
        started, is_fresh = cursor.fetchone()
    own = _lock.taken_again if _lock is not None and _lock.pid == os.getpid() else None
    moments = [started] if is_fresh else []
    if own is not None and datetime.now(UTC) - own < SETTLED_AFTER:
        moments.append(own)
    return max(moments, default=None)


def worker_is_alive(name: str, living: set[int]) -> bool:
    number = name.rpartition(":")[2]
    return number.isascii() and number.isdigit() and int(number) in living


def _connect() -> psycopg.Connection:
    named = ("dbname", "user", "password", "host", "port", "service")
    params: dict[str, Any] = dict(connection.get_connection_params())
    plain = {name: value for name, value in params.items() if name in named or name.startswith("ssl")}
    # A worker's machine that vanishes must be noticed in about half a minute, not in two hours.
    return psycopg.connect(
        **plain,
        autocommit=True,
        application_name="luria worker lock",
        connect_timeout=10,
        options="-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3",
    )
