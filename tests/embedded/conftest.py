"""Real processes: a copy of the launcher beside a small application, in a path with a space."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from embedded import state
from embedded.paths import REPO
from embedded.processes import wait_until

SECONDS = 240  # a limit for a machine under load, not a time that is measured
STANDIN = Path(__file__).with_name("standin")


@dataclass
class Launch:
    """One run of the launcher, with the terminal's output in a file."""

    repo: Path
    process: subprocess.Popen
    log: Path

    def output(self) -> str:
        return self.log.read_text()

    def wait_for(self, pattern: str) -> re.Match:
        """Wait for a line of output; fail with the whole output if the launcher ends before."""
        found = None

        def look() -> bool:
            nonlocal found
            found = re.search(pattern, self.output())
            return found is not None or self.process.poll() is not None

        in_time = wait_until(look, SECONDS)
        found = found or re.search(pattern, self.output())
        assert in_time and found, f"no {pattern!r} in:\n{self.output()}"
        return found

    def address(self) -> str:
        return self.wait_for(r"Address +(http://\S+)[\s\S]*Stop +Ctrl-C")[1]

    def wait(self) -> int:
        return self.process.wait(SECONDS)

    def interrupt(self) -> None:
        """Ctrl-C: the terminal signals the whole foreground group."""
        os.killpg(self.process.pid, signal.SIGINT)


@dataclass
class Copy:
    repo: Path
    port: int
    launches: list[Launch] = field(default_factory=list)

    def up(self, *, wrapper: tuple[str, ...] = (), **environment: str) -> Launch:
        log = self.repo.parent / f"terminal-{len(self.launches)}.txt"
        with log.open("wb") as file:
            process = subprocess.Popen(
                [*wrapper, sys.executable, "-m", "embedded", "up"],
                cwd=self.repo,
                env={**plain_environment(), "PORT": str(self.port), **environment},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        launch = Launch(self.repo, process, log)
        self.launches.append(launch)
        return launch

    def manage(self, *arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [sys.executable, "-m", "embedded", "manage", *arguments],
            cwd=self.repo,
            env=plain_environment(),
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )

    def child(self, name: str) -> psutil.Process:
        running = state.running_read(self.repo / "data")
        assert running is not None
        return psutil.Process(running.children[name][0])

    def processes(self) -> list[psutil.Process]:
        """Everything alive that works in the copy: launcher, web, worker, PostgreSQL, Valkey."""
        return processes_under(self.repo)

    def wait_for_none(self) -> None:
        assert wait_until(lambda: not self.processes(), SECONDS), [p.cmdline() for p in self.processes()]


def processes_under(folder: Path) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE and Path(process.cwd()).is_relative_to(folder):
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found


def plain_environment() -> dict[str, str]:
    """As in a person's shell: without what the test run itself has set."""
    names = ("PATH", "HOME", "LANG", "USER", "VIRTUAL_ENV")
    return {name: os.environ[name] for name in names if name in os.environ}


@pytest.fixture
def copy():
    """The launcher beside the small application."""

    def fill(repo: Path) -> None:
        shutil.copytree(STANDIN, repo)
        shutil.copytree(REPO / "embedded", repo / "embedded", ignore=shutil.ignore_patterns("__pycache__"))

    with copied(fill) as made:
        yield made


@pytest.fixture
def real_copy():
    """All of Luria."""
    ignored = shutil.ignore_patterns(".*", "data", "tests", "docs", "__pycache__")
    with copied(lambda repo: shutil.copytree(REPO, repo, ignore=ignored)) as made:
        yield made


@contextmanager
def copied(fill: Callable[[Path], object]) -> Iterator[Copy]:
    # Not tmp_path: it is closed to other users, and root's PostgreSQL runs as another.
    root = Path(tempfile.mkdtemp(prefix="luria-launch-", dir="/tmp"))
    root.chmod(0o755)
    repo = root / "a b" / "luria"
    fill(repo)
    with socket.create_server(("127.0.0.1", 0)) as free:  # tests in parallel must not take each other's
        port = free.getsockname()[1]
    made = Copy(repo, port)
    try:
        yield made
    finally:
        for launch in made.launches:
            if launch.process.poll() is None:
                launch.process.terminate()
            launch.process.wait(SECONDS)
    made.wait_for_none()
    shutil.rmtree(root)


def names(processes: list[psutil.Process]) -> set[str]:
    """Without those that end meanwhile, as PostgreSQL's helpers do."""
    found = set()
    for process in processes:
        with suppress(psutil.Error):
            found.add(process.name())
    return found


def get(address: str, *, post: bool = False) -> str:
    with urllib.request.urlopen(address, data=b"" if post else None, timeout=10) as response:  # noqa: S310
        return response.read().decode()
