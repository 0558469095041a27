"""Make .venv as the constraints file says, then go on in it: `python -m embedded.install up|ml|dev -- MODULE …`.

Standard library only: it runs before .venv exists.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from embedded import paths
from embedded.child import die_with_parent

REPO = paths.REPO
VENV = REPO / ".venv"
PYTHON = VENV / "bin" / "python"
HALF_MADE = VENV / "luria-installing"
SETS = {
    "up": ["requirements.txt", "requirements-embedded.txt"],
    "ml": ["requirements.txt", "requirements-embedded.txt", "requirements-ml.txt"],
    "dev": ["requirements.txt", "requirements-embedded.txt", "requirements-ml.txt", "requirements-dev.txt"],
}
INCLUDES = {"up": ("ml", "dev"), "ml": ("dev",), "dev": ()}  # what else holds everything that a set holds
IS_TERMINAL = sys.stdout.isatty()


def stamp_text(name: str) -> str:
    """Changes with the requirements, the constraints and the place (scripts hold absolute paths)."""
    digest = hashlib.sha256()
    for file in [*SETS[name], "constraints.txt"]:
        digest.update((REPO / file).read_bytes())
    return f"{digest.hexdigest()} {VENV}\n"


def is_complete(name: str) -> bool:
    if HALF_MADE.exists() or not python_works():
        return False
    for candidate in (name, *INCLUDES[name]):
        stamp = VENV / f"luria-{candidate}"
        if stamp.exists() and stamp.read_text() == stamp_text(candidate):
            return True
    return False


def python_works() -> bool:
    """The Python that .venv was made from may have been removed or replaced since."""
    try:
        found = subprocess.run(
            [PYTHON, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, text=True
        )
    except OSError:
        return False
    recorded = VENV / "luria-python"
    return found.returncode == 0 and (not recorded.exists() or recorded.read_text() == found.stdout)


@contextmanager
def install_lock() -> Iterator[None]:
    """Two installs into one .venv wait for each other; the kernel frees the lock of a killed one."""
    with (REPO / "constraints.txt").open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            paths.say("Another install is at work in .venv; waiting for it …")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def wanted(name: str) -> str:
    """What is to be there: who has once asked for the larger set keeps it when versions change."""
    return "ml" if name == "up" and (VENV / "luria-ml").exists() else name


def ensure(name: str) -> None:
    if is_complete(name):
        return
    with install_lock():
        if is_complete(name):
            return
        started = time.monotonic()
        if HALF_MADE.exists() or (VENV.exists() and not python_works()):
            paths.say(".venv was left half-made or its Python is gone; making it anew")
            remove()
        if not VENV.exists():
            paths.say(f"Making .venv with Python {sys.version.split()[0]}")
            VENV.mkdir()
            HALF_MADE.touch()
            run([sys.executable, "-m", "venv", str(VENV)], "The virtual environment could not be made")
            version = f"{sys.version_info.major} {sys.version_info.minor}\n"
            (VENV / "luria-python").write_text(version)
        HALF_MADE.touch()
        pip_install(name)
        (VENV / f"luria-{name}").write_text(stamp_text(name))
        HALF_MADE.unlink()
        paths.say(f"Installed in {time.monotonic() - started:.0f} s")


def remove() -> None:
    """The mark goes last, so that a removal that is cut short is taken up again."""
    for entry in VENV.iterdir():
        if entry != HALF_MADE:
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
    shutil.rmtree(VENV)


def pip_install(name: str) -> None:
    """Run pip with one line of progress; its own words go to a log, shown when it fails."""
    log = VENV / "luria-pip.log"
    command = [str(PYTHON), "-m", "pip", "install", "--disable-pip-version-check", "--progress-bar", "off"]
    command += ["--constraint", "constraints.txt"]
    for file in SETS[name]:
        command += ["--requirement", file]
    progress = Progress()
    with log.open("w") as words, child(command) as process:
        for line in process.stdout or ():
            words.write(line)
            words.flush()
            progress.line(line.strip())
    progress.end()
    if process.returncode != 0:
        tail = "\n".join(f"    {line}" for line in log.read_text().splitlines()[-20:])
        sys.exit(f"pip failed:\n{tail}\n  Log: {log}\nThe next start begins the install anew.")


class Progress:
    """On a terminal one line that changes; elsewhere a line for every 20 packages."""

    def __init__(self) -> None:
        self.collected = 0
        self.total = 0
        self.finished = threading.Event()
        self.watcher: threading.Thread | None = None
        self.started = time.monotonic()

    def line(self, text: str) -> None:
        if text.startswith("Collecting "):
            self.collected += 1
            self.show(f"  fetching packages: {self.collected} ({text.split()[1]})", self.collected)
        elif text.startswith("Downloading "):
            self.show(f"  fetching packages: {self.collected} ({text.split(maxsplit=1)[1]})", 1)
        elif text.startswith("Installing collected packages:"):
            self.total = text.count(",") + 1
            self.watcher = threading.Thread(target=self.watch_installing, daemon=True)
            self.watcher.start()

    def watch_installing(self) -> None:
        """pip is silent while it unpacks: count the packages that have arrived."""

        def arrived() -> int:
            return sum(1 for _ in VENV.glob("lib/python*/site-packages/*.dist-info"))

        before = arrived()
        self.show(f"  unpacking {self.total} packages", 0)
        shown = 0
        while not self.finished.wait(0.5):
            done = min(arrived() - before, self.total)
            if IS_TERMINAL or done - shown >= 20:
                shown = done
                self.show(f"  unpacking packages: {done} of {self.total}", 0)

    def show(self, text: str, count: int) -> None:
        if IS_TERMINAL:
            width = max(20, shutil.get_terminal_size().columns - 1)
            sys.stdout.write(f"\r{text[:width]:<{width}}")
            sys.stdout.flush()
        elif count % 20 == 0:
            paths.say(text)

    def end(self) -> None:
        self.finished.set()
        if self.watcher is not None:
            self.watcher.join()
        if IS_TERMINAL:
            sys.stdout.write("\r\033[K")
            sys.stdout.flush()


def child(command: list[str]) -> subprocess.Popen[str]:
    """Start the command such that it dies with this process."""
    guard = [sys.executable, "-I", "-S", str(REPO / "embedded" / "child.py")]
    guard += ["--parent", str(os.getpid()), "--death-signal", "9", "--"]
    pipe = subprocess.PIPE
    return subprocess.Popen([*guard, *command], cwd=REPO, stdout=pipe, stderr=subprocess.STDOUT, text=True)


def run(command: list[str], complaint: str) -> None:
    with child(command) as process:
        output, _ = process.communicate()
    if process.returncode != 0:
        sys.exit(f"{complaint}:\n{output}")


def is_up() -> bool:
    """Whether a launcher holds the data folder: then its .venv is left alone."""
    try:
        with (paths.data_folder() / "lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def main(arguments: list[str]) -> None:
    if not (3, 11) <= sys.version_info[:2] <= (3, 13):
        sys.exit(f"Luria needs Python 3.11, 3.12 or 3.13; this is {sys.version.split()[0]}.")
    if not arguments or arguments[0] not in SETS or (arguments[1:] and (len(arguments) < 3 or arguments[1] != "--")):
        sys.exit("usage: python -m embedded.install up|ml|dev [-- COMMAND ...]")
    if os.environ.get("MAKELEVEL"):
        die_with_parent(15)  # survives the exec below, so it holds for the launcher too
    os.chdir(REPO)
    try:
        if arguments[2:] != ["embedded", "up"] or not (PYTHON.exists() and is_up()):
            ensure(wanted(arguments[0]))
    except KeyboardInterrupt:
        sys.exit("\nStopped. The next start takes it up again.")
    except paths.RefusedError as error:
        sys.exit(str(error))
    if not arguments[1:]:
        paths.say(f"Installed: {', '.join(SETS[arguments[0]])}")
        return
    os.execv(PYTHON, [str(PYTHON), "-m", *arguments[2:]])  # noqa: S606 (no shell is needed)


if __name__ == "__main__":
    main(sys.argv[1:])
