"""Label Studio beside Luria: installed from pip into the throwaway folder, with the same PostgreSQL, under gunicorn."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.crowd import Visitor
from benchmarks.server import HOST, Server, answers_on, free_port
from embedded import postgres
from embedded.processes import Program, clean_environment

VERSION = "1.23.2"
DATABASE = "label_studio"
WORKERS = 4
SITE = Path(__file__).with_name("label_studio_site")
CONFIG = """<View><Text name="t" value="$text"/>
<Choices name="gram" toName="t"><Choice value="1"/><Choice value="0"/></Choices>
<Choices name="logic" toName="t"><Choice value="1"/><Choice value="0"/></Choices>
<Choices name="order" toName="t"><Choice value="1"/><Choice value="0"/></Choices></View>"""
RESULT = [
    {"from_name": name, "to_name": "t", "type": "choices", "value": {"choices": ["1"]}}
    for name in ("gram", "logic", "order")
]
CONFIGURE = """
import json
from django.contrib.auth import get_user_model
from rest_framework.authtoken.models import Token
from organizations.models import Organization
from projects.models import Project
from tasks.models import Task

n_tasks, k, n_raters = {tasks}, {k}, {raters}
User = get_user_model()
users = [User.objects.create_user(f"rater{{n}}@example.org", "for-this-run-only") for n in range(n_raters)]
organization = Organization.create_organization(created_by=users[0], title="benchmark")
for user in users:
    if user != users[0]:
        organization.add_user(user)
    user.active_organization = organization
    user.save()
jwt = getattr(organization, "jwt", None)
if jwt is not None:
    jwt.legacy_api_tokens_enabled = True
    jwt.save()
project = Project.objects.create(title="benchmark", created_by=users[0], organization=organization,
    label_config={config!r}, maximum_annotations=k)
Task.objects.bulk_create(
    (Task(project=project, data={{"text": f"кошка сидит на столе и играет с мячом {{n}}"}}, overlap=k,
          inner_id=n + 1) for n in range(n_tasks)), batch_size=5000)
tokens = [Token.objects.get_or_create(user=user)[0].key for user in users]
print("RESULT=" + json.dumps([project.pk, tokens]))
"""


class NoLabelStudioError(Exception):
    """Label Studio cannot be installed or started here; the text says why."""


@dataclass
class LabelStudioRater:
    visitor: Visitor
    project: int
    task: int = 0

    async def next(self) -> bool:
        await self.visitor.open(f"/api/projects/{self.project}/next")
        if self.visitor.status != 200:
            return False
        self.task = json.loads(self.visitor.page)["id"]
        return True

    async def save(self) -> bool:
        body = json.dumps({"result": RESULT, "lead_time": 2.0})
        await self.visitor.send(f"/api/tasks/{self.task}/annotations/?project={self.project}", body)
        return self.visitor.status == 201 and await self.next()

    async def leave(self) -> None:
        await self.visitor.close()


@dataclass
class LabelStudio:
    server: Server
    port: int
    program: Program
    project: int
    tokens: list[str]
    k: int

    name = f"Label Studio {VERSION}"

    async def begin(self, rater: int) -> LabelStudioRater:
        visitor = Visitor(self.port, content="application/json")
        visitor.headers = f"Authorization: Token {self.tokens[rater]}\r\nAccept: application/json\r\n"
        found = LabelStudioRater(visitor, self.project)
        if not await found.next():
            raise NoLabelStudioError(f"no task: {visitor.status} {visitor.page[:300]}")
        return found

    def seconds(self) -> list[float]:
        workers = psutil.Process(self.program.pid).children()
        return [sum(worker.cpu_times()[:2]) for worker in workers]

    def stored(self) -> str:
        with postgres.connect(self.server.place, name=DATABASE) as connection:
            query = """
            SELECT sum(n), count(*) FILTER (WHERE n > %s), count(*) FILTER (WHERE raters <> n)
            FROM (SELECT count(*) AS n, count(DISTINCT completed_by_id) AS raters FROM task_completion GROUP BY task_id)
            AS judged"""
            saved, over, twice = connection.execute(query, [self.k]).fetchone() or ()
        return f"{saved} annotations stored; more than {self.k} raters: {over}, a rater twice: {twice}"


def started(server: Server, tasks: int, k: int, raters: int) -> LabelStudio:
    """Install, make its database and its project, start. Raises NoLabelStudioError."""
    folder = server.place.data / "label_studio"
    folder.mkdir()
    programs = _installed(folder)
    with postgres.connect(server.place) as connection:
        connection.execute(f"CREATE DATABASE {DATABASE} OWNER luria")
    (package,) = (folder / "venv" / "lib").glob("python*/site-packages/label_studio")
    environment = _environment(server, folder) | {"PYTHONPATH": str(package)}
    manage = [str(programs / "python"), str(package / "manage.py")]
    site = {"PYTHONPATH": f"{SITE}:{package}"}
    _run([*manage, "migrate", "--no-input"], folder, environment | site)
    configure = CONFIGURE.format(tasks=tasks, k=k, raters=raters, config=CONFIG)
    printed = _run([*manage, "shell", "-c", configure], folder, environment)
    if "RESULT=" not in printed:
        raise NoLabelStudioError(f"making the project printed: {printed.strip()[-800:]}")
    project, tokens = json.loads(printed.rpartition("RESULT=")[2].splitlines()[0])
    port = free_port()
    program = Program(
        "label-studio",
        [str(programs / "gunicorn"), "--workers", str(WORKERS), "--bind", f"{HOST}:{port}", "core.wsgi"],
        log=server.place.logs / "label-studio.log",
        environment=environment,
        folder=folder,
    )
    program.start()
    if not answers_on(port, "/version"):
        raise NoLabelStudioError(str(program.failure("Label Studio did not start.")))
    return LabelStudio(server, port, program, project, tokens, k)


def _installed(folder: Path) -> Path:
    """The folder of the programs of a virtual environment of its own, gone with the throwaway folder."""
    programs = folder / "venv" / "bin"
    _run([sys.executable, "-m", "venv", str(folder / "venv")], folder)
    packages = [f"label-studio=={VERSION}", "gunicorn"]
    _run(
        [str(programs / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages], folder
    )
    return programs


def _environment(server: Server, folder: Path) -> dict[str, str]:
    return {
        **clean_environment({}),
        "DJANGO_SETTINGS_MODULE": "core.settings.label_studio",
        "DJANGO_DB": "default",
        "POSTGRE_NAME": DATABASE,
        "POSTGRE_USER": "luria",
        "POSTGRE_PASSWORD": "",
        "POSTGRE_HOST": str(server.place.sockets),
        "POSTGRE_PORT": "5432",
        "LABEL_STUDIO_BASE_DATA_DIR": str(folder / "data"),
        "SECRET_KEY": "for-this-run-only",
        "COLLECT_ANALYTICS": "0",
        "LATEST_VERSION_CHECK": "0",
        "DEBUG": "0",
        "SENTRY_DSN": "",
        "FRONTEND_SENTRY_DSN": "",
        "LOG_LEVEL": "WARNING",
    }


def _run(command: list[str], folder: Path, environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode != 0:
        raise NoLabelStudioError(f"{' '.join(command)[:200]}: {done.stdout.strip()[-800:]}")
    return done.stdout
