"""Stored keys: encrypted, written once, shown to nobody; and a look everywhere for one that got out."""

import json
import logging
import subprocess
import sys

import pytest
from cryptography.fernet import Fernet
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from llmruns.calls import provider_ask, question_body
from llmruns.credentials import (
    CredentialUnusableError,
    credential_create,
    credential_retire,
    key_of,
)
from llmruns.models import Call, Credential, ModelConfig
from llmruns.providers.base import KeyUnavailable
from llmruns.services import model_config_create
from llmruns.vault import VaultClosedError
from studies.models import AuditEntry
from studies.services import api_token_create
from tests import chat_server as chat
from tests.chat_server import ChatServer
from tests.conftest import Cast
from tests.llmruns.conftest import KEY, Launch, work
from tests.llmruns.test_pages import NEW_CREDENTIAL, NEW_MODEL
from tests.llmruns.workers import ROOT, worker_environment

pytestmark = pytest.mark.django_db

STORED = "sk-stored-fedcba9876543210fedcba9876543210"


@pytest.fixture(autouse=True)
def vault(settings: Settings) -> None:
    settings.CREDENTIAL_KEYS = [Fernet.generate_key().decode()]


@pytest.fixture
def alice(cast: Cast) -> Client:
    return cast.client(cast.alice)


@pytest.fixture
def credential(cast: Cast) -> Credential:
    return credential_create(
        study=cast.study, provider="openai_compatible", name="Ours", key=f" {STORED}\n", actor=cast.alice
    )


@pytest.fixture
def stored(cast: Cast, server: ChatServer, credential: Credential) -> ModelConfig:
    return model_config_create(
        study=cast.study,
        label="With a stored key",
        base_url=server.base_url,
        model="test-model",
        credential=credential,
        timeout=1,
        actor=cast.alice,
    )


def test_a_stored_key_is_sent_and_not_stored_in_clear(stored: ModelConfig, server: ChatServer) -> None:
    assert STORED.encode() not in bytes(stored.credential.ciphertext)
    provider_ask(stored, question_body(stored, "кошка"))
    assert server.seen[0].headers["Authorization"] == f"Bearer {STORED}"


def test_a_retired_key_is_gone(stored: ModelConfig, server: ChatServer, cast: Cast) -> None:
    assert credential_retire(credential=stored.credential, actor=cast.alice)
    assert not credential_retire(credential=stored.credential, actor=cast.alice)
    assert bytes(Credential.objects.get().ciphertext) == b""
    fresh = ModelConfig.objects.select_related("credential").get()
    outcome = provider_ask(fresh, question_body(fresh, "кошка"))
    assert isinstance(outcome, KeyUnavailable) and outcome.message == "Ours"
    assert server.seen == []
    assert AuditEntry.objects.filter(action="credential_retire").count() == 1


def test_without_a_key_of_the_environment_nothing_is_stored(cast: Cast, alice: Client, settings: Settings) -> None:
    settings.CREDENTIAL_KEYS = []
    with pytest.raises(VaultClosedError):
        credential_create(study=cast.study, provider="openai", name="x", key=KEY, actor=None)
    response = alice.post("/studies/ours/models/keys/new/", NEW_CREDENTIAL)
    page = response.content.decode()
    assert response.status_code == 200 and "LURIA_CREDENTIAL_KEYS" in page and KEY not in page
    assert "LURIA_CREDENTIAL_KEYS" in alice.get("/studies/ours/models/keys/").content.decode()
    assert not Credential.objects.exists()


@pytest.mark.parametrize(("keys", "reason"), [([], "closed"), ([Fernet.generate_key().decode()], "lost")])
def test_a_key_that_cannot_be_read_says_why(
    stored: ModelConfig, settings: Settings, keys: list[str], reason: str
) -> None:
    settings.CREDENTIAL_KEYS = keys
    with pytest.raises(CredentialUnusableError) as caught:
        key_of(stored)
    assert caught.value.reason == reason


def test_keys_of_the_environment_are_changed(stored: ModelConfig, settings: Settings) -> None:
    old, new = settings.CREDENTIAL_KEYS[0], Fernet.generate_key().decode()
    settings.CREDENTIAL_KEYS = [new, old]
    assert key_of(stored) == STORED
    call_command("credentials_reencrypt")
    settings.CREDENTIAL_KEYS = [new]
    assert key_of(ModelConfig.objects.select_related("credential").get()) == STORED
    settings.CREDENTIAL_KEYS = [old]
    with pytest.raises(CommandError):
        call_command("credentials_reencrypt")


@pytest.mark.parametrize("value", ["short", "not a key at all, and not base64 either =="])
def test_a_wrong_key_of_the_environment_stops_the_start(value: str) -> None:
    environment = worker_environment("x", LURIA_CREDENTIAL_KEYS=value) | {"DJANGO_SETTINGS_MODULE": "config.settings"}
    code = "import django; django.setup()"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode != 0 and "LURIA_CREDENTIAL_KEYS must hold Fernet keys" in done.stderr
    assert value not in done.stderr.replace("LURIA_CREDENTIAL_KEYS must hold Fernet keys", "")


def test_a_key_is_stored_on_a_page_and_used_by_a_model(cast: Cast, alice: Client, server: ChatServer) -> None:
    response = alice.post("/studies/ours/models/keys/new/", NEW_CREDENTIAL | {"provider": "openai_compatible"})
    assert response.status_code == 302
    credential = Credential.objects.get()
    data = NEW_MODEL | {"key_variable": "", "credential": str(credential.pk), "base_url": server.base_url}
    assert alice.post("/studies/ours/models/new/", data).status_code == 302
    page = alice.get("/studies/ours/models/").content.decode()
    assert "Ours" in page and "is stored" in page
    assert alice.post(f"/studies/ours/models/keys/{credential.pk}/retire/").status_code == 302
    assert "cannot be used" in alice.get("/studies/ours/models/").content.decode()


@pytest.mark.parametrize(
    "change", [{"key": ""}, {"key": "два слова"}, {"key": "a\nb"}, {"name": ""}, {"provider": "simulated"}]
)
def test_a_wrong_key_is_refused_in_words(alice: Client, change: dict[str, str]) -> None:
    response = alice.post("/studies/ours/models/keys/new/", NEW_CREDENTIAL | change)
    assert response.status_code == 200 and "text-danger" in response.content.decode()
    assert not Credential.objects.exists()


def test_a_name_is_taken_once(alice: Client) -> None:
    alice.post("/studies/ours/models/keys/new/", NEW_CREDENTIAL)
    response = alice.post("/studies/ours/models/keys/new/", NEW_CREDENTIAL)
    assert response.status_code == 200 and KEY not in response.content.decode()
    assert Credential.objects.count() == 1


@pytest.mark.parametrize("change", [{"provider": "openai"}, {"key_variable": "TEST_API_KEY"}])
def test_a_key_goes_to_its_own_provider_alone(alice: Client, credential: Credential, change: dict[str, str]) -> None:
    data = NEW_MODEL | {"key_variable": "", "credential": str(credential.pk)} | change
    assert alice.post("/studies/ours/models/new/", data).status_code == 200
    assert not ModelConfig.objects.exists()


def test_a_key_of_another_study_is_no_choice(cast: Cast, credential: Credential) -> None:
    data = NEW_MODEL | {"key_variable": "", "credential": str(credential.pk)}
    assert cast.client(cast.bob).post("/studies/theirs/models/new/", data).status_code == 200
    with pytest.raises(CredentialUnusableError):
        model_config_create(
            study=cast.other_study,
            label="x",
            base_url="http://127.0.0.1:9/v1",
            model="m",
            credential=credential,
            actor=None,
        )
    assert not ModelConfig.objects.exists()


def test_a_launch_with_a_retired_key_says_so(alice: Client, stored: ModelConfig, launch: Launch, cast: Cast) -> None:
    credential_retire(credential=stored.credential, actor=cast.alice)
    with pytest.raises(CredentialUnusableError):
        launch(configs=[ModelConfig.objects.get(pk=stored.pk)])


def test_a_key_is_nowhere(
    cast: Cast,
    alice: Client,
    stored: ModelConfig,
    server: ChatServer,
    launch: Launch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rows, pages, the API, exports, messages to the workers, logs and errors, after all that can go wrong."""
    caplog.set_level(logging.DEBUG)
    sent: list[object] = []
    monkeypatch.setattr("llmruns.calls.stimuli_enqueue", lambda *args, **kwargs: sent.append((args, kwargs)))
    server.script(
        "кошка",
        chat.Behaviour(status=401, echo_headers=True),
        chat.HTML,
        chat.Behaviour(status=503, echo_headers=True),
        chat.answer(f"мой ключ {STORED}"),
    )
    experiment = launch(configs=[stored])
    for _ in range(4):
        alice.post(f"/studies/ours/models/{stored.pk}/try/")
    work(experiment)
    alice.post("/studies/ours/models/keys/new/", NEW_CREDENTIAL | {"key": STORED, "name": "Ours"})
    alice.post("/studies/ours/models/keys/new/", NEW_CREDENTIAL | {"key": STORED, "provider": "x"})
    assert any(f"Bearer {STORED}" in str(seen.headers) for seen in server.seen)
    at = f"/studies/ours/experiments/{experiment.pk}/"
    run = experiment.runs.get()
    pages = ["/studies/ours/models/", "/studies/ours/models/keys/", at, f"{at}calls/", f"{at}runs/{run.pk}/"]
    pages += [f"/studies/ours/calls/{pk}/" for pk in Call.objects.values_list("pk", flat=True)]
    pages += [f"{reverse('study_dashboard', args=['ours'])}"]
    for path in pages:
        response = alice.get(path)
        assert response.status_code == 200, path
        assert STORED not in response.content.decode(), path
    api = Client(headers={"authorization": f"Token {api_token_create(user=cast.alice)}"})
    for path in ("models/", "experiments/", f"experiments/{experiment.pk}/", "calls/", "answers/"):
        response = api.get(f"/api/v1/studies/ours/{path}")
        assert response.status_code == 200, path
        assert STORED not in response.content.decode(), path
    with connection.cursor() as cursor:
        for model in apps.get_models(include_auto_created=True):
            table = connection.ops.quote_name(model._meta.db_table)
            cursor.execute("SELECT count(*) FROM " + table + " t WHERE t::text LIKE %s", [f"%{STORED}%"])  # noqa: S608
            assert cursor.fetchone()[0] == 0, model
    assert STORED not in str(sent)
    out, err = capfd.readouterr()
    assert STORED not in caplog.text and STORED not in out and STORED not in err
    assert STORED not in json.dumps(list(AuditEntry.objects.values("detail")))
