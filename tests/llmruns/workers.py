"""A real Celery worker on the test's database and broker, under a prefix of its own."""

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from django.conf import settings
from django.db import connection

ROOT = Path(__file__).resolve().parents[2]


def database_url() -> str:
    """Of the database that this process uses now: under pytest the test's own."""
    values = connection.settings_dict
    password = f":{quote(values['PASSWORD'], safe='')}" if values["PASSWORD"] else ""
    user = f"{quote(values['USER'], safe='')}{password}"
    name = quote(values["NAME"])
    folder = values["OPTIONS"].get("host", "")  # of a socket
    if folder:
        return f"postgres://{user}@/{name}?host={quote(folder, safe='')}"
    port = f":{values['PORT']}" if values["PORT"] else ""
    return f"postgres://{user}@{values['HOST']}{port}/{name}"


def worker_environment(prefix: str, **extra: str) -> dict[str, str]:
    return os.environ | {
        "DATABASE_URL": database_url(),
        "BROKER_URL": settings.CELERY_BROKER_URL,
        "BROKER_PREFIX": prefix,
        "DATABASE_POOL_SIZE": "8",
        "LOG_LEVEL": "WARNING",
        **extra,
    }


class Worker:
    """One process with a pool of threads, as in embedded mode, for some queues."""

    def __init__(self, *, prefix: str, log: Path, threads: int = 32, queues: str = "llm", **extra: str) -> None:
        self._log = log.open("ab")
        command = [sys.executable, "-m", "celery", "-A", "config", "worker", "-P", "threads", "-c", str(threads)]
        command += [
            "-Q",
            queues,
            "--without-gossip",
            "--without-mingle",
            "--without-heartbeat",
            "--loglevel",
            "WARNING",
        ]
        command += ["-n", f"{uuid.uuid4().hex}@test"]
        self.process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=worker_environment(prefix, **extra),
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def kill(self) -> None:
        """kill -9: the process has no moment to say anything."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(timeout=30)
        self._log.close()


@contextmanager
def worker(*, prefix: str, log: Path, threads: int = 32, queues: str = "llm", **extra: str) -> Iterator[Worker]:
    running = Worker(prefix=prefix, log=log, threads=threads, queues=queues, **extra)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.kill()


def wait_for(condition: Callable[[], bool], *, seconds: float, log: Path | None = None) -> None:
    """Look until it holds. The seconds are a limit for a machine under load, not a time that is measured."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            tail = log.read_text(encoding="utf-8", errors="replace")[-3000:] if log else ""
            raise AssertionError(f"it did not come about in {seconds} s\n{tail}")
        time.sleep(0.05)
