"""Luria as `make up` runs it, on durable throwaway services, for a benchmark to press on."""

import http.client
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import psutil

from embedded import services
from embedded.application import application_environment, web_program
from embedded.paths import Place
from embedded.processes import Program, processes_in, wait_until

HOST = "127.0.0.1"


@dataclass
class Server:
    place: Place
    port: int
    env: dict[str, str]
    web: Program
    services: services.Services

    def manage(self, *arguments: str) -> str:
        """A management command in the server's environment; returns what it printed."""
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=self.place.repo,
            env=self.env,
            check=True,
            stdout=subprocess.PIPE,
        )
        return done.stdout.decode()

    def web_start(self) -> None:
        self.web.start()
        if not answers_on(self.port, "/login/"):
            raise self.web.failure("The web server did not start.")

    def kill(self) -> None:
        """kill -9 of the web server, PostgreSQL and Valkey, with all their processes."""
        for program in (self.web, self.services.postgres, self.services.valkey):
            if program is not None:
                program.kill()

    def web_seconds(self) -> list[float]:
        """CPU seconds of each web worker so far: a lopsided share shows here."""
        workers = psutil.Process(self.web.pid).children()
        return [sum(worker.cpu_times()[:2]) for worker in workers]

    def postgres_seconds(self) -> float:
        """CPU seconds of all of PostgreSQL's processes so far, those that have ended included."""
        while True:
            with suppress(psutil.NoSuchProcess):  # it ended while it was looked at: its seconds are its parent's now
                return sum(sum(process.cpu_times()[:4]) for process in processes_in(self.place.postgres))


@contextmanager
def server() -> Iterator[Server]:
    """PostgreSQL that forces every commit to disk, and Valkey, migrated; the caller starts the web server."""
    with services.temporary(durable=True) as running:
        port = free_port()
        env = application_environment(running.place, running.env, HOST, port) | {"LOG_LEVEL": "WARNING"}
        found = Server(running.place, port, env, web_program(running.place, env, HOST, port), running)
        found.manage("migrate", "--no-input", "--verbosity", "0")
        try:
            yield found
        finally:
            found.web.stop()


def answers_on(port: int, path: str, seconds: float = 60) -> bool:
    """Wait until a server answers; False if it does not."""

    def asked() -> bool:
        connection = http.client.HTTPConnection(HOST, port, timeout=60)
        try:
            connection.request("GET", path)
            connection.getresponse().read()
        except OSError:
            return False
        finally:
            connection.close()
        return True

    return wait_until(asked, seconds)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass
class Browser:
    """One person's connection, kept alive; cookies and timings are kept, redirects are the caller's."""

    server: Server
    cookies: dict[str, str] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)
    errors: int = 0

    def __post_init__(self) -> None:
        self.connection = http.client.HTTPConnection(HOST, self.server.port, timeout=60)

    def send(self, method: str, path: str, body: str = "") -> tuple[int, str, str]:
        headers = {"Cookie": "; ".join(f"{k}={v}" for k, v in self.cookies.items())}
        if method == "POST":
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        begun = time.monotonic()
        try:
            self.connection.request(method, path, body.encode(), headers)
            response = self.connection.getresponse()
        except (BrokenPipeError, ConnectionResetError, http.client.RemoteDisconnected):
            # The server had closed the idle connection; a browser opens a new one too.
            self.connection.close()
            self.connection.request(method, path, body.encode(), headers)
            response = self.connection.getresponse()
        text = response.read().decode()
        self.seconds.append(time.monotonic() - begun)
        for name, value in response.getheaders():
            if name.lower() == "set-cookie":
                key, _, rest = value.partition("=")
                self.cookies[key] = rest.partition(";")[0]
        if response.status >= 400:
            self.errors += 1
        return response.status, response.headers.get("Location", ""), text

    def get(self, path: str) -> str:
        return self.send("GET", path)[2]

    def post(self, path: str, body: str) -> str:
        """The address that the answer redirects to."""
        return self.send("POST", path, body)[1]


def percentile(values: Sequence[float], share: float) -> float:
    """Nearest rank, in milliseconds for values in seconds."""
    ordered = sorted(values)
    return 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]
