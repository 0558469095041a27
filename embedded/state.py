"""One launcher per data folder, and what it leaves for the next one. Standard library and psutil."""

import fcntl
import json
import os
from dataclasses import asdict, dataclass, field
from io import TextIOWrapper
from pathlib import Path

import psutil

from embedded.paths import Place, say
from embedded.processes import Pause, Program, is_same_process, wait_until


@dataclass
class Running:
    """What run.json says: who runs here, where it answers, its children by name (process id, start time)."""

    pid: int
    address: str = ""
    survey: str = ""
    children: dict[str, tuple[int, float]] = field(default_factory=dict)


def lock_take(place: Place) -> TextIOWrapper | None:
    """The lock on the data folder, held as long as the file is open; None if somebody has it.

    The kernel frees it when the launcher dies, however it dies. Children do not inherit it.
    """
    lock = (place.data / "lock").open("a")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    return lock


def running_write(place: Place, running: Running) -> None:
    half = place.data / "run.json.half"
    half.touch(mode=0o600)
    half.write_text(json.dumps(asdict(running)))
    half.replace(place.data / "run.json")


def running_read(data: Path) -> Running | None:
    try:
        facts = json.loads((data / "run.json").read_text())
        facts["children"] = {name: (pid, started) for name, (pid, started) in facts["children"].items()}
        return Running(**facts)
    except (OSError, ValueError, TypeError, KeyError):
        return None


def children_note(running: Running, programs: list[Program]) -> None:
    running.children = {}
    for program in programs:
        if program.process is not None and program.is_running:
            pid = program.process.pid
            try:
                running.children[program.name] = (pid, psutil.Process(pid).create_time())
            except psutil.Error:
                continue


def leftovers_end(place: Place, pause: Pause, seconds: float = 15) -> None:
    """End the children of a launcher that was killed, known by id and start time. Called under the lock.

    On Linux they are already ending by themselves (embedded/child.py). PostgreSQL is only asked, never killed:
    waiting for it is the work of `postgres.leftover_await`.
    """
    earlier = running_read(place.data)
    if earlier is None or earlier.pid == os.getpid():
        return
    alive = {name: pid for name, (pid, started) in earlier.children.items() if is_same_process(pid, started)}
    if not alive:
        return
    say(f"  the last run was killed; its {', '.join(alive)} still stopping")
    for name, pid in alive.items():
        _signal(pid, "terminate" if name != "postgres" else "interrupt")
    rest = {name: earlier.children[name] for name in alive if name != "postgres"}
    if not wait_until(lambda: not any(is_same_process(*child) for child in rest.values()), seconds, pause):
        for child in rest.values():
            if is_same_process(*child):
                _signal(child[0], "kill")


def _signal(pid: int, how: str) -> None:
    try:
        process = psutil.Process(pid)
        if how == "kill":
            process.kill()
        elif how == "interrupt":
            process.send_signal(2)
        else:
            process.terminate()
    except psutil.Error:  # it has just ended
        return
