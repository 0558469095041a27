"""oTree beside Luria: installed from pip into the throwaway folder, run as its documentation says for a server."""

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psutil
from psycopg import sql

from benchmarks.crowd import Visitor
from benchmarks.server import HOST, Server, answers_on, free_port
from embedded import postgres
from embedded.processes import Program, clean_environment

VERSION = "6.0.15"
PROJECT = Path(__file__).with_name("otree_project")
DATABASE = "otree"


class NoOTreeError(Exception):
    """oTree cannot be installed or started here; the text says why."""


@dataclass
class OTree:
    """A running oTree with one session, whose places are made beforehand, as oTree does it."""

    server: Server
    words: Sequence[str]
    port: int
    program: Program
    link: str = ""

    name = "oTree"

    async def begin(self, visitor: Visitor) -> None:
        await visitor.open(self.link)

    async def answer(self, visitor: Visitor, number: int, text: str) -> None:
        await visitor.send(visitor.path, f"text_{number}={quote(text)}")

    def seconds(self) -> list[float]:
        """CPU seconds of the server; its other process only watches for pages that time out."""
        return [sum(psutil.Process(self.program.pid).cpu_times()[:2])]

    def stored(self) -> list[str]:
        columns = sql.SQL(", ").join(sql.Identifier(f"text_{number}") for number in range(1, len(self.words) + 1))
        query = sql.SQL("SELECT text FROM sentences_player, unnest(ARRAY[{}]) AS text WHERE text IS NOT NULL")
        with postgres.connect(self.server.place, name=DATABASE) as connection:
            return [row[0] for row in connection.execute(query.format(columns))]


def started(server: Server, words: Sequence[str], places: int) -> OTree:
    """Install, make its database and its session, start. Raises NoOTreeError."""
    folder = server.place.data / "otree"
    shutil.copytree(PROJECT, folder / "project")
    (folder / "project" / "_static").mkdir()  # oTree wants the folder; there is nothing to put into it
    (folder / "project" / "words.json").write_text(json.dumps(list(words)))
    programs = _installed(folder)
    with postgres.connect(server.place) as connection:
        connection.execute(f"CREATE DATABASE {DATABASE} OWNER luria")
    environment = _environment(server, programs)
    _run([str(programs / "otree"), "create_session", "sentences", str(places)], folder / "project", environment)
    port = free_port()
    program = Program(
        "otree",
        [str(programs / "otree"), "prodserver", f"{HOST}:{port}"],
        log=server.place.logs / "otree.log",
        environment=environment,
        folder=folder / "project",
    )
    program.start()
    if not answers_on(port, "/demo"):
        raise NoOTreeError(str(program.failure("oTree did not start.")))
    with postgres.connect(server.place, name=DATABASE) as connection:
        row = connection.execute("SELECT _anonymous_code FROM otree_session").fetchone()
    assert row is not None
    return OTree(server, words, port, program, link=f"/join/{row[0]}")


def _installed(folder: Path) -> Path:
    """The folder of the programs of a virtual environment of its own, gone with the throwaway folder."""
    programs = folder / "venv" / "bin"
    _run([sys.executable, "-m", "venv", str(folder / "venv")], folder)
    packages = [f"otree=={VERSION}", "psycopg2-binary"]
    _run(
        [str(programs / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages], folder
    )
    return programs


def _environment(server: Server, programs: Path) -> dict[str, str]:
    sockets = quote(str(server.place.sockets), safe="")
    outer = clean_environment({})
    return {
        **outer,
        "PATH": f"{programs}:{outer['PATH']}",  # oTree starts its second process by its bare name
        "DATABASE_URL": f"postgresql://luria@/{DATABASE}?host={sockets}",
        "OTREE_PRODUCTION": "1",
        "OTREE_AUTH_LEVEL": "STUDY",
        "OTREE_ADMIN_PASSWORD": "for-this-run-only",
        "SECRET_KEY": "for-this-run-only",
    }


def _run(command: list[str], folder: Path, environment: dict[str, str] | None = None) -> None:
    done = subprocess.run(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode != 0:
        raise NoOTreeError(f"{' '.join(command)}: {done.stdout.strip()[-500:]}")
