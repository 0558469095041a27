"""An installation of the test's own, to be killed in parts: PostgreSQL, Valkey and what is launched on them.

The test's process has another database; it looks into this one with SQL, as a person would who does not trust Luria.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.rows import dict_row

from embedded import postgres, valkey
from embedded.services import Services, temporary
from tests.llmruns.workers import ROOT, database_url, worker_environment

PREPARE = """
import json, sys, django
django.setup()
from datetime import date
from decimal import Decimal
from corpus.importing import read_stimuli
from corpus.services import instrument_create
from llmruns.models import Price
from llmruns.services import experiment_launch, model_config_create, prompt_ensure
from pathlib import Path
from studies.models import User
from studies.services import study_create

base_url, models, stimuli, cap = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
alice = User.objects.create_user("alice", password="correct horse")
study = study_create(slug="ours", title="Ours", actor=alice)
rows = read_stimuli(Path("study/stimuli.csv").read_bytes())[:stimuli]
instrument = instrument_create(
    study=study, slug="paper", title="Paper", language="ru", instruction="Составьте предложение.", stimuli=rows,
    actor=alice,
)
configs = []
for number in range(models):
    name = f"model-{number:02}"
    Price.objects.create(
        study=study, provider="openai_compatible", model=name, currency="USD", input_million=Decimal(2),
        output_million=Decimal(8), valid_from=date(2026, 1, 1),
    )
    configs.append(model_config_create(
        study=study, label=name, base_url=base_url, model=name, key_variable="TEST_API_KEY", timeout=20,
        max_output_tokens=1000, actor=alice,
    ))
experiment = experiment_launch(
    study=study, instrument=instrument, prompt=prompt_ensure(study=study), configs=configs, runs=1, actor=alice,
    cap=Decimal(cap), currency="USD",
)
print(json.dumps(experiment.pk))
"""


class Installation:
    def __init__(self, services: Services, **environment: str) -> None:
        self.services = services
        self.extra = {
            "DATABASE_URL": postgres.database_url(services.place),
            "BROKER_URL": valkey.broker_url(services.place),
            **environment,
        }

    def python(self, *arguments: str) -> str:
        environment = worker_environment("", **self.extra) | {"DJANGO_SETTINGS_MODULE": "config.settings"}
        command = [sys.executable, *arguments]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    def copy_in(self, source: str) -> None:
        """The tables of another database with what is in them: half a minute of migrations in a second."""
        programs = postgres.binaries(self.services.place)
        dump = [programs / "pg_dump", "--no-owner", "--no-privileges", source]
        restore = [programs / "psql", "--quiet", "--no-psqlrc", "--set=ON_ERROR_STOP=1", self.extra["DATABASE_URL"]]
        tables = subprocess.run(dump, capture_output=True, check=True, timeout=300).stdout
        subprocess.run(restore, input=tables, stdout=subprocess.DEVNULL, check=True, timeout=300)

    def launch(self, base_url: str, *, models: int, stimuli: int, cap: str) -> int:
        """An experiment of one run of each model; returns its id. Every model has a price."""
        printed = self.python("-c", PREPARE, base_url, str(models), str(stimuli), cap)
        return int(json.loads(printed.splitlines()[-1]))

    def rows(self, query: str, *values: Any) -> list[dict[str, Any]]:
        with psycopg.connect(self.extra["DATABASE_URL"], row_factory=dict_row) as connection:
            return connection.execute(query, values).fetchall()

    def postgres_kill(self) -> None:
        """kill -9 of the server and of every process of it."""
        assert self.services.postgres is not None
        self.services.postgres.kill()

    def postgres_start(self) -> None:
        """On the same folder: it finds its own lock file and repairs itself from its log."""
        postgres.leftover_await(self.services.place)
        self.services.postgres = postgres.program_make(self.services.place, durable=True)
        self.services.postgres.start()
        postgres.ready_await(self.services.place, self.services.postgres)

    def valkey_kill(self) -> None:
        assert self.services.valkey is not None
        self.services.valkey.kill()

    def valkey_start(self) -> None:
        """Empty: nothing of it was saved."""
        self.services.valkey = valkey.program_make(self.services.place, durable=False)
        self.services.valkey.start()
        valkey.ready_await(self.services.place, self.services.valkey)
        assert not list(self.services.place.valkey.iterdir()), "it has come back with what it had"


@contextmanager
def installation(**environment: str) -> Iterator[Installation]:
    """PostgreSQL durable, as in earnest: what it says it has written survives kill -9. Valkey writes nothing down."""
    with temporary(durable=False) as services:
        found = Installation(services, **environment)
        found.copy_in(database_url())
        assert services.postgres is not None
        services.postgres.stop()
        found.postgres_start()
        yield found
