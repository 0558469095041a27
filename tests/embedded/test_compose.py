"""docker-compose.yml is not run here, so it is read, and compared with what the settings read."""

import os
import re
import shlex

import pytest
import yaml

from embedded.application import ml_program, worker_program
from embedded.paths import REPO, Place, account_of

SETTINGS = (REPO / "config" / "settings.py").read_text()
READ = set(re.findall(r'\benv(?:\.\w+)?\(\s*"([A-Z_]+)"', SETTINGS))
REQUIRED = set(re.findall(r'\benv(?:\.\w+)?\(\s*"([A-Z_]+)"\s*\)', SETTINGS)) - {"CACHE_URL"}
NOT_FOR_SERVERS = {
    "LURIA_EMBEDDED",
    "ALLOWED_HOSTS",
    "STATIC_ROOT",
}  # the second follows PUBLIC_URL; the image sets the third


@pytest.fixture(scope="module")
def text():
    return (REPO / "docker-compose.yml").read_text()


@pytest.fixture(scope="module")
def services(text):
    return yaml.safe_load(text)["services"]


@pytest.fixture(scope="module")
def example():
    lines = (REPO / ".env.example").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def test_settings_are_found():
    assert {"SECRET_KEY", "DATABASE_URL", "BROKER_URL", "PUBLIC_URL"} <= REQUIRED <= READ


@pytest.mark.parametrize("name", ["migrate", "web", "worker", "ml"])
def test_every_setting_is_given_and_none_is_invented(services, name):
    given = set(services[name]["environment"])
    assert READ - given == NOT_FOR_SERVERS
    assert given - READ == set()


def test_image_sets_where_static_files_lie():
    assert re.search(r"\bSTATIC_ROOT=/\S+", (REPO / "Dockerfile").read_text())


def test_every_name_that_compose_asks_for_is_in_the_example(text, example):
    asked = set(re.findall(r"\$\{([A-Z_]+)", text))
    assert asked == set(example)


def test_secrets_have_no_default(text, example):
    for name in ("SECRET_KEY", "POSTGRES_PASSWORD", "PUBLIC_URL", "SITE_ADDRESS"):
        uses = re.findall(r"\$\{" + name + r"([^}]*)\}", text)
        assert uses and all(use.startswith(":?") for use in uses)
        assert example[name] == ""


def test_example_repeats_the_defaults_of_compose(text, example):
    defaults = dict(re.findall(r"\$\{([A-Z_]+):-([^}]*)\}", text))
    assert defaults and {name: example[name] for name in defaults} == defaults


def test_only_the_proxy_is_reachable(services):
    assert [name for name, service in services.items() if "ports" in service] == ["proxy"]


def test_parts_are_of_the_versions_that_are_tested(services):
    assert services["postgres"]["image"] == "postgres:18"
    assert services["valkey"]["image"].startswith("valkey/valkey:9")
    assert services["proxy"]["command"][-1] == "web:8000"


@pytest.mark.parametrize(("name", "make"), [("worker", worker_program), ("ml", ml_program)])
def test_workers_do_what_the_embedded_ones_do(services, tmp_path, name, make):
    account = account_of(os.geteuid())
    program = make(Place(REPO, tmp_path, tmp_path / "s", account), {})
    words = program.command[program.command.index("celery") :]
    for word in ("--without-gossip", "--without-mingle"):  # between several machines they may talk
        words.remove(word)
    nice = ["nice"] if program.niceness else []  # by 10 without a number
    assert services[name]["command"] == [*nice, *words]
    assert program.niceness in (0, 10)


def test_every_queue_has_a_worker(services):
    commands = [service["command"] for service in services.values() if "-Q" in service.get("command", [])]
    taken = [queue for words in commands for queue in words[words.index("-Q") + 1].split(",")]
    sent = set(re.findall(r'"queue": "(\w+)"', SETTINGS)) | {"default"}
    assert sorted(taken) == sorted(sent)


def test_dependencies_exist(services):
    for service in services.values():
        assert set(service.get("depends_on", [])) <= set(services)
        assert all(volume.split(":")[0] for volume in service.get("volumes", []))


def test_image_runs_what_is_copied_into_it():
    dockerfile = (REPO / "Dockerfile").read_text()
    (copied,) = re.findall(r"^COPY (requirements.*) \./$", dockerfile, re.M)
    assert all((REPO / name).exists() for name in shlex.split(copied))
    assert re.search(r"^USER luria$", dockerfile, re.M)
