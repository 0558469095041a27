"""The web server and the two workers: how they start, as whom, and what Django's settings read."""

import os
import signal
import socket
import sys
from pathlib import Path

from embedded import valkey
from embedded.paths import Account, Place, RefusedError, may_enter, say
from embedded.processes import Program, clean_environment

FIRST_PORT = 8000


def web_program(place: Place, environment: dict[str, str], host: str, port: int) -> Program:
    command = [sys.executable, "-m", "gunicorn", "config.wsgi", "--bind", f"{url_host(host)}:{port}"]
    # A socket for each process, so that kept-alive connections are shared out, and few threads, which would only wait
    # for each other (docs/benchmarks.md).
    command += ["--worker-class", "gthread", "--workers", "2", "--threads", "4", "--reuse-port"]
    # A page and what follows on it share a connection; two seconds, gunicorn's own choice, are over sooner.
    command += ["--keep-alive", "15", "--graceful-timeout", "5"]
    command += ["--no-control-socket", "--log-level", "warning"]
    return Program(
        "web",
        command,
        log=place.logs / "web.log",
        environment=environment,
        folder=place.repo,
        account=application_account(place),
    )


def worker_program(place: Place, environment: dict[str, str]) -> Program:
    """Stopped within 10 s: calls then still in flight are cut off, and are marked as possibly billed."""
    return _worker(
        place,
        "worker",
        ["-Q", "default,llm", "-c", "40"],
        # Forty threads wait for replies; a task that has none to send or to record needs no connection.
        {"DATABASE_POOL_SIZE": "8", **environment},
    )


def ml_program(place: Place, environment: dict[str, str]) -> Program:
    """Trains classifiers and lets them judge, in a process of its own: it takes processors and memory for hours, and
    what it does to them must not reach the calls. Pages and calls come first, so it is nice. A second thread answers
    messages while the first is at work. Stopped, it goes on after its last whole epoch at the next start."""
    program = _worker(place, "ml", ["-Q", "ml", "-c", "2"], {"DATABASE_POOL_SIZE": "4", **environment})
    program.niceness, program.stop_seconds = 10, 3
    return program


def _worker(place: Place, name: str, options: list[str], environment: dict[str, str]) -> Program:
    command = [sys.executable, "-m", "celery", "-A", "config", "worker", "-P", "threads", *options]
    command += ["-n", f"{name}@%h", "--without-gossip", "--without-mingle", "--loglevel", "INFO"]
    return Program(
        name,
        command,
        log=place.logs / f"{name}.log",
        # The migrations have just run Django's checks. Once more they would load every page: a second and 60 MB.
        environment={"CELERY_SKIP_CHECKS": "1", **environment},
        folder=place.repo,
        account=application_account(place),
        death_signal=signal.SIGKILL,  # SIGTERM would finish its tasks first, for minutes, without a database
    )


def application_account(place: Place) -> Account | None:
    """Root's web server and workers run as the data's owner too, if it can reach the code and Python."""
    account = place.account
    readable = (place.repo, Path(sys.prefix), Path(sys.base_prefix) / "bin")
    return account if account.is_other and all(may_enter(path, account) for path in readable) else None


def application_environment(place: Place, services: dict[str, str], host: str, port: int) -> dict[str, str]:
    """What Django's settings read. ALLOWED_HOSTS and PUBLIC_URL may come from outside, for another name."""
    names = ["127.0.0.1", "localhost", "[::1]"]
    shown = "127.0.0.1" if host in ("0.0.0.0", "::", "") else host  # noqa: S104 (compared, not bound)
    if shown != host:
        names += [socket.gethostname(), socket.getfqdn()]
    names += [url_host(shown)] if url_host(shown) not in names else []
    own = {
        **services,
        "CACHE_URL": f"unix://{valkey.socket_path(place)}?db=1",
        "ALLOWED_HOSTS": os.environ.get("ALLOWED_HOSTS", ",".join(names)),
        "PUBLIC_URL": os.environ.get("PUBLIC_URL", f"http://{url_host(shown)}:{port}"),
        "PYTHONUNBUFFERED": "1",
        "PYTHONUTF8": "1",
    }
    if application_account(place) is not None:
        own["HOME"] = str(place.files)
    return clean_environment(own)


def url_host(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def port_choose(host: str) -> int:
    """`PORT`, or the first free one from 8000 on."""
    wanted = os.environ.get("PORT")
    if wanted:
        if not wanted.isdecimal() or not 0 < int(wanted) < 65536:
            raise RefusedError(f"PORT={wanted} is not a port number.")
        if error := port_taken(host, int(wanted)):
            raise RefusedError(f"Cannot listen on {host}:{wanted}: {error}. Choose another PORT.")
        return int(wanted)
    for port in range(FIRST_PORT, FIRST_PORT + 50):
        if not port_taken(host, port):
            if port != FIRST_PORT:
                say(f"  port {FIRST_PORT} is taken; using {port}")
            return port
    raise RefusedError(f"Ports {FIRST_PORT} to {FIRST_PORT + 49} are all taken on {host}. Set PORT.")


def port_taken(host: str, port: int) -> str:
    """Why we cannot listen there; empty if we can."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except (OSError, socket.gaierror) as error:
            return error.strerror or str(error)
    return ""
