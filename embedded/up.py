"""`make up` and `make manage`: the commands, and what they tell the reader."""

import contextlib
import json
import os
import signal
import sys
import time
from typing import NoReturn
from urllib.parse import urlsplit

from embedded import postgres, state
from embedded.application import FIRST_PORT, application_account, application_environment, port_choose
from embedded.child import die_with_parent
from embedded.launcher import Launcher, Signals, StopAskedError, step
from embedded.paths import Place, RefusedError, place_find, say
from embedded.processes import log_end
from embedded.services import Services


def links_of(output: str) -> dict[str, str]:
    """The JSON line that luria_setup prints."""
    for line in reversed(output.splitlines()):
        if line.startswith("{"):
            with contextlib.suppress(ValueError):
                return {str(name): str(value) for name, value in json.loads(line).items()}
    raise RefusedError("manage.py luria_setup printed no links.")


def already_running(place: Place) -> str:
    running = state.running_read(place.data)
    if running is None or not running.address:
        return f"Luria is just being started by another make up (data: {place.data})."
    return "\n".join(
        [
            f"Luria is already running: {running.address} (process {running.pid})",
            *([f"  Participants' link  {running.survey}"] if running.survey else []),
            f"  Data                {place.data}",
            f"  To stop it, press Ctrl-C where it runs, or: kill {running.pid}",
        ]
    )


def block(launcher: Launcher, links: dict[str, str]) -> str:
    place = launcher.place
    lines = [
        "",
        "Luria is running.",
        "",
        f"  Address             {launcher.running.address}",
        f"  Participants' link  {links.get('survey_url', '(none)')}",
        f"  Researcher's login  {links.get('login_url', '(none)')}",
        "                      (works once and sets a password; afterwards log in as researcher at /login/)",
        f"  Data                {place.data}",
        f"  Logs                {place.logs}",
        "  Stop                Ctrl-C",
        "",
    ]
    return "\n".join(lines)


def up() -> int:
    started = time.monotonic()
    place = place_find()
    lock = state.lock_take(place)
    if lock is None:
        say(already_running(place))
        return 0
    with lock:
        if os.environ.get("MAKELEVEL"):
            die_with_parent(signal.SIGTERM)
        return _run(place, started)


def _run(place: Place, started: float) -> int:
    signals = Signals()
    launcher = Launcher(place, signals, state.Running(pid=os.getpid()), host=os.environ.get("HOST", "127.0.0.1"))
    try:
        say(f"Starting Luria. Data: {place.data}")
        if os.geteuid() == 0:
            rest = (
                "and so do web server and workers" if application_account(place) else "web server and workers as root"
            )
            say(f"  started by root: PostgreSQL and Valkey run as {place.account.name}, {rest}")
        state.leftovers_end(place, signals.pause)
        postgres.leftover_await(place, signals.pause)
        launcher.port = port_choose(launcher.host)
        with step("PostgreSQL and Valkey"):
            launcher.start()
        with step("database migrations"):
            launcher.manage("migrate", "--no-input")
        with step("the built-in study"):
            links = links_of(launcher.manage("luria_setup"))
        with step("web server and workers"):
            status = launcher.serve(urlsplit(links.get("survey_url", "/")).path)
        if status >= 500:
            say(f"  the participants' page answers with an error ({status}):\n{log_end(place.logs / 'web.log')}")
        launcher.running.address = launcher.environment["PUBLIC_URL"]
        launcher.running.survey = links.get("survey_url", "")  # the login link is a secret, and is not kept
        launcher.note()
        say(f"  ready after {time.monotonic() - started:.1f} s")
        say(block(launcher, links))
        launcher.watch()
    except StopAskedError:
        pass
    finally:
        launcher.stop()
    say("Luria has stopped.")
    return 0


def manage(arguments: list[str]) -> int:
    """Run one management command beside a running Luria, or on services started for it alone."""
    place = place_find()
    lock = state.lock_take(place)
    if lock is None:
        running = state.running_read(place.data)
        services = Services(place)
        port = int(running.address.rsplit(":", 1)[-1].strip("/")) if running and running.address else FIRST_PORT
        _become(place, arguments, application_environment(place, services.env, "127.0.0.1", port))
    # Beside what the command prints, which may go into a file.
    print(f"No Luria runs on {place.data}: its services start for this command alone.", file=sys.stderr, flush=True)
    signals = Signals()
    launcher = Launcher(place, signals, state.Running(pid=os.getpid()))
    with lock:
        try:
            state.leftovers_end(place, signals.pause)
            launcher.start()
            launcher.manage("migrate", "--no-input")
            launcher.manage("luria_setup")
            say(launcher.manage(*arguments).rstrip())
        except StopAskedError:
            return 130
        finally:
            launcher.stop()
    return 0


def _become(place: Place, arguments: list[str], environment: dict[str, str]) -> NoReturn:
    account = application_account(place)
    if account is not None:
        os.setgroups([account.gid])
        os.setgid(account.gid)
        os.setuid(account.uid)
    os.chdir(place.repo)
    os.execve(sys.executable, [sys.executable, "manage.py", *arguments], environment)  # noqa: S606 (no shell)
