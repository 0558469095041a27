"""Start everything in order, watch over it, stop it in order."""

import contextlib
import http.client
import select
import signal
import socket
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from embedded import state
from embedded.application import (
    FIRST_PORT,
    application_account,
    application_environment,
    ml_program,
    web_program,
    worker_program,
)
from embedded.paths import Place, RefusedError, say
from embedded.processes import LOG_LIMIT, Program, log_end, log_rotate, wait_until
from embedded.services import Services

WEB_SECONDS = 60
RESTARTS = 5  # of one program within RESTART_WINDOW seconds; then something is wrong for good
RESTART_WINDOW = 60.0
TICK = 30.0


class StopAskedError(Exception):
    """Ctrl-C, or a signal to end."""


class Signals:
    """Signals turned into wake-ups of one waiting loop, so that a stop is orderly wherever it comes."""

    def __init__(self) -> None:
        self.stopping = False
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)
        signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._stop)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def _stop(self, number: int, frame: object) -> None:
        if not self.stopping:
            say("\nStopping …")
        self.stopping = True

    def wait(self, seconds: float) -> None:
        """Sleep until something happens. Does not raise."""
        if select.select([self._reader], [], [], seconds)[0]:
            self._reader.recv(4096)

    def pause(self, seconds: float) -> None:
        """Sleep; raise StopAskedError if a stop was asked for."""
        self.wait(seconds)
        if self.stopping:
            raise StopAskedError


@contextlib.contextmanager
def step(name: str) -> Iterator[None]:
    """One line per step: its name while it is at work, then its time."""
    started = time.monotonic()
    say(f"  {name} … ", end="")
    try:
        yield
    except BaseException:
        say("")
        raise
    say(f"{time.monotonic() - started:.1f} s")


@dataclass
class Launcher:
    place: Place
    signals: Signals
    running: state.Running
    host: str = "127.0.0.1"
    port: int = FIRST_PORT
    restarts: dict[str, list[float]] = field(default_factory=dict)
    programs: list[Program] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.services = Services(self.place)

    def start(self) -> None:
        state.running_write(self.place, self.running)
        self.services.start(self.signals.pause)
        self.note()

    def note(self) -> None:
        services = [program for program in (self.services.valkey, self.services.postgres) if program is not None]
        state.children_note(self.running, [*services, *self.programs])
        state.running_write(self.place, self.running)

    @property
    def environment(self) -> dict[str, str]:
        return application_environment(self.place, self.services.env, self.host, self.port)

    def manage(self, *arguments: str) -> str:
        """Run one management command to its end; its output. Breaks off when a stop is asked for."""
        program = Program(
            arguments[0],
            [sys.executable, "manage.py", *arguments],
            log=self.place.logs / "setup.log",
            environment=self.environment,
            folder=self.place.repo,
            account=application_account(self.place),
        )
        program.start()
        try:
            wait_until(lambda: not program.is_running, float("inf"), self.signals.pause)
            if program.exit_code != 0:
                raise program.failure(f"manage.py {' '.join(arguments)} failed:")
        finally:
            program.stop()
        return program.said()

    def serve(self, path: str) -> int:
        """Start workers and web server; the status that the page at `path` answers with."""
        worker, ml = (make(self.place, self.environment) for make in (worker_program, ml_program))
        web = self.web_program()
        self.programs = [worker, ml, web]
        self.run(worker, web)
        end = time.monotonic() + WEB_SECONDS
        while web.is_running and time.monotonic() < end:
            status = self.status_of(path)
            if status is not None:
                self.run(ml)  # only now: what it does takes long anyway, and somebody waits for the page
                return status
            self.signals.pause(0.05)
        raise web.failure("The web server did not start:")

    def run(self, *programs: Program) -> None:
        for program in programs:
            log_rotate(program.log)
            program.start()
        self.note()

    def web_program(self) -> Program:
        return web_program(self.place, self.environment, self.host, self.port)

    def status_of(self, path: str) -> int | None:
        """The status of a page; None while nothing answers. Not urllib: it might ask a proxy."""
        host = "127.0.0.1" if self.host in ("0.0.0.0", "::", "") else self.host  # noqa: S104 (compared, not bound)
        connection = http.client.HTTPConnection(host.strip("[]"), self.port, timeout=10)
        try:
            connection.request("GET", path, headers={"Host": f"127.0.0.1:{self.port}"})
            return connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()

    def watch(self) -> None:
        """Return when a stop is asked for; raise RefusedError when going on makes no sense."""
        last_tick = time.monotonic()
        while not self.signals.stopping:
            postgres = self.services.postgres
            if postgres is None or not postgres.is_running:
                raise RefusedError(f"PostgreSQL has ended unexpectedly:\n{log_end(self.place.logs / 'postgres.log')}")
            for program in self.supervised():
                if not program.is_running and not self.signals.stopping:
                    self.restart(program)
            if time.monotonic() - last_tick > TICK:
                last_tick = time.monotonic()
                for log in self.place.logs.glob("*.log"):
                    if not log.name.endswith(".1.log"):
                        log_rotate(log, 4 * LOG_LIMIT)
            self.signals.wait(TICK)

    def supervised(self) -> list[Program]:
        return [*([self.services.valkey] if self.services.valkey else []), *self.programs]

    def restart(self, program: Program) -> None:
        now = time.monotonic()
        recent = [moment for moment in self.restarts.get(program.name, []) if now - moment < RESTART_WINDOW]
        self.restarts[program.name] = [*recent, now]
        code = program.exit_code
        if len(recent) >= RESTARTS:
            raise program.failure(f"{program.name} has ended {RESTARTS + 1} times within a minute (exit code {code}):")
        say(f"  {program.name} has ended unexpectedly (exit code {code}); starting it again")
        say(log_end(program.log))
        with contextlib.suppress(StopAskedError):
            self.signals.pause(min(len(recent), 3))
            program.start()
            self.note()

    def stop(self) -> None:
        """Web first, so that nothing new comes in; PostgreSQL last. Signals that come now change nothing."""
        self.signals.stopping = True
        for program in reversed(self.programs):
            program.stop()
        self.services.stop()
        with contextlib.suppress(OSError):
            (self.place.data / "run.json").unlink()
        with contextlib.suppress(OSError):  # not empty: something is still stopping, and the next start sees to it
            self.place.sockets.rmdir()
