"""Start programs that die with us, watch them, stop them, and show the end of their logs."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from embedded.paths import Account, RefusedError, hand_over

CHILD = Path(__file__).with_name("child.py")
LOG_LIMIT = 5_000_000

Pause = Callable[[float], None]


@dataclass
class Program:
    """How one program is started and stopped."""

    name: str
    command: list[str]
    log: Path
    environment: Mapping[str, str]
    folder: Path
    account: Account | None = None  # None: as we are
    stop_signal: signal.Signals = signal.SIGTERM
    death_signal: signal.Signals = signal.SIGTERM
    stop_seconds: float = 10
    niceness: int = 0  # how far others come first
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    log_start: int = 0  # where in the log the last start begins

    def start(self) -> None:
        """Start in a session of its own: Ctrl-C reaches the launcher alone, and it orders the stop."""
        command = [sys.executable, "-I", "-S", str(CHILD), "--parent", str(os.getpid())]
        command += ["--death-signal", str(int(self.death_signal)), "--nice", str(self.niceness)]
        if self.account is not None and self.account.is_other:
            command += ["--uid", str(self.account.uid), "--gid", str(self.account.gid)]
        self.log.touch()
        hand_over(self.log)
        self.log_start = self.log.stat().st_size
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*command, "--", *self.command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env=dict(self.environment),
                start_new_session=True,
            )

    @property
    def pid(self) -> int | None:
        return self.process.pid if self.process is not None else None

    @property
    def exit_code(self) -> int | None:
        return self.process.poll() if self.process is not None else None

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def stop(self) -> None:
        """Ask, wait, and kill what does not listen. Safe to call twice."""
        if self.process is None:
            return
        if self.process.poll() is None:
            self.process.send_signal(self.stop_signal)
            try:
                self.process.wait(self.stop_seconds)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process = None

    def kill(self) -> None:
        """kill -9 of the program and of its children: none of them has a moment to say anything."""
        if self.pid is None:
            return
        main = psutil.Process(self.pid)
        for process in [main, *main.children(recursive=True)]:
            with suppress(psutil.NoSuchProcess):  # gone with the one before it
                process.kill()
        self.stop()

    def failure(self, what: str) -> RefusedError:
        return RefusedError(f"{what}\n{log_end(self.log, since=self.log_start)}")

    def said(self) -> str:
        """What it has written since it was started."""
        with self.log.open("rb") as file:
            file.seek(self.log_start)
            return file.read().decode(errors="replace")


def log_end(log: Path, lines: int = 15, since: int = 0) -> str:
    """The last lines of a log, none from before the byte `since`, and where it lies."""
    try:
        with log.open("rb") as file:
            size = log.stat().st_size
            file.seek(max(since if since <= size else 0, size - 20_000))  # a rotated log begins anew
            text = file.read().decode(errors="replace")
    except OSError:
        text = ""
    shown = [f"    {line}" for line in text.splitlines()[-lines:]] or ["    (the log is empty)"]
    return "\n".join([*shown, f"  Log: {log}"])


def log_rotate(log: Path, limit: int = LOG_LIMIT) -> None:
    """Keep one earlier part of a log that is over the limit. The writer appends, so it may go on writing."""
    if not log.exists() or log.stat().st_size <= limit:
        return
    with log.open("r+b") as file:
        file.seek(-limit, os.SEEK_END)
        earlier = log.with_suffix(".1.log")
        earlier.write_bytes(file.read())
        hand_over(earlier)
        file.truncate(0)


def wait_until(check: Callable[[], bool], seconds: float, pause: Pause = time.sleep) -> bool:
    """Poll until the check holds; False when the time is over. `pause` may raise to break off."""
    end = time.monotonic() + seconds
    while not check():
        if time.monotonic() > end:
            return False
        pause(0.05)
    return True


def processes_in(folder: Path) -> list[psutil.Process]:
    """Living processes that work in the folder: all of PostgreSQL's work in its data folder."""
    found = []
    target = str(folder.resolve())
    for process in psutil.process_iter():
        try:
            if process.cwd() == target and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (psutil.Error, OSError):  # gone meanwhile, or another user's
            continue
    return found


def is_same_process(pid: int, started: float) -> bool:
    """Whether the process of that id is still the one that was started then (ids are used again)."""
    try:
        process = psutil.Process(pid)
        is_alive = process.status() != psutil.STATUS_ZOMBIE
        return bool(is_alive and abs(process.create_time() - started) < 1)
    except psutil.Error:
        return False


def clean_environment(extra: Mapping[str, str]) -> dict[str, str]:
    """Our environment without PGHOST, PGDATA and so on, which lead PostgreSQL and its clients astray."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    return {**kept, **extra}
