"""Keys and tokens, looked for everywhere after servers have sent them back in every way that came to mind."""

import json
import logging
import uuid
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from celery import current_app
from cryptography.fernet import Fernet
from django.apps import apps
from django.db import connection
from django.test import Client
from pytest_django import Settings

from corpus.models import Instrument
from llmruns import queue, tokens
from llmruns.calls import provider_ask, question_body
from llmruns.models import Call, Experiment, ModelConfig
from llmruns.providers import provider_get
from llmruns.providers.transport import key_blank
from llmruns.services import experiment_launch, model_config_create, model_try, prompt_ensure, work_recover
from reports.exports import EXPORTS
from studies.models import AuditEntry
from studies.services import api_token_create
from tests import chat_server as chat
from tests.chat_server import Behaviour, ChatServer
from tests.conftest import Cast
from tests.llmruns import vendors
from tests.llmruns.conftest import work
from tests.llmruns.vendors import GigaServer

pytestmark = pytest.mark.django_db

# In the form of each vendor's own, so that nothing is found by its form.
KEYS = {
    "openai": "sk-proj-0aB1cD2eF3gH4iJ5kL6mN7oP8qR9",
    "anthropic": "sk-ant-api03-0aB1cD2eF3gH4iJ5kL6m",
    "gigachat": "MGFCMWNE/mVGM2dINGlKNWtMNm1ON+9QOHFSOQ==",
    "yandex": "AQVN0aB1cD2eF3gH4iJ5kL6mN7oP8qR9",
    "openai_compatible": "plain/secret+0aB1cD2eF3gH4iJ5k==",
}
TOKEN = "token-1-of-many-secret-letters"  # the first one that the local GigaChat gives out


def escapes(secret: str) -> list[str]:
    return [
        secret,
        secret.replace("/", "\\/"),
        json.dumps(secret)[1:-1],
        quote(secret, safe=""),
        "".join(f"\\u{ord(letter):04x}" for letter in secret),
        "".join(f"\\u{ord(letter):04X}" if letter in "+/=-" else letter for letter in secret),
    ]


def hostile(vendor: str, secret: str) -> list[Behaviour]:
    """What servers do to a key: careless ones, and those that want it in the log."""
    quoted = json.dumps({"error": {"message": f"no such key: {secret}", "code": secret, "type": secret}}).encode()
    texts = [f"мой ключ {secret}", secret]
    said = [vendors.message(text, model=secret, stop_reason=secret) for text in texts]
    if vendor != "anthropic":
        said = [chat.completion(text, model=secret, finish_reason=secret, refusal=secret) for text in texts]
        said.append(Behaviour(body=said[0].body[:-1] + f', "service_tier": {json.dumps(secret)}}}'.encode()))
    replies = [
        chat.failure(503, one).body.replace(json.dumps(one)[1:-1].encode(), one.encode()) for one in escapes(secret)
    ]
    return [
        Behaviour(status=400, body=quoted),
        Behaviour(status=400, echo_headers=True),
        Behaviour(status=503, body=secret.encode(), headers={"X-Echo": f"Bearer {secret}", "Retry-After": secret}),
        *(Behaviour(status=503, body=body) for body in replies),
        *(Behaviour(body=body) for body in replies),
        Behaviour(status=307, headers={"Location": f"http://127.0.0.1:9/{secret}?key={quote(secret, safe='')}"}),
        Behaviour(headers={"Not a header": secret}),
        Behaviour(headers={"Transfer-Encoding": secret}),
        Behaviour(headers={"Content-Encoding": secret}),
        Behaviour(body=f"<html>{secret}</html>".encode()),
        Behaviour(body=f"<html>{secret}{' ' * 200}</html>".encode(), close_early=True),
        Behaviour(body=b"\xff" + secret.encode()),
        *said,
        *(Behaviour(body=one.body.replace(json.dumps(secret)[1:-1].encode(), escaped.encode()))
          for one in said for escaped in escapes(secret)),
    ]  # fmt: skip


@pytest.fixture(params=list(KEYS))
def vendor(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def vendor_server(vendor: str, settings: Settings) -> Iterator[ChatServer]:
    settings.CREDENTIAL_KEYS = [Fernet.generate_key().decode()]
    tokens._known.clear()
    server = GigaServer() if vendor == "gigachat" else ChatServer()
    with server:
        if isinstance(server, GigaServer):
            settings.GIGACHAT_AUTH_URL = server.auth_url
        if vendor == "anthropic":
            server.default = vendors.said("кошка сидит на столе")
        yield server
    tokens._known.clear()


@pytest.fixture
def vendor_config(vendor: str, vendor_server: ChatServer, cast: Cast, monkeypatch: pytest.MonkeyPatch) -> ModelConfig:
    monkeypatch.setenv("TEST_API_KEY", KEYS[vendor])
    return model_config_create(
        study=cast.study,
        label="Test model",
        provider=vendor,
        base_url=vendor_server.base_url,
        model="test-model",
        key_variable="TEST_API_KEY",
        folder="b1gfolder" if vendor == "yandex" else "",
        timeout=5,
        actor=cast.alice,
    )


@pytest.fixture
def own_queue(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    name = f"test-{uuid.uuid4().hex}"
    monkeypatch.setattr(queue, "QUEUE", name)
    yield name
    with current_app.connection_for_write() as broker:
        broker.channel().queue_delete(name)


def needles(secret: str) -> list[str]:
    """What must be nowhere: the secret itself, its half, and what JSON, a page or an address makes of it."""
    return [*escapes(secret), secret[4:-4], secret.lower(), secret.upper(), quote(secret)]


def in_tables(needle: str) -> list[str]:
    found = []
    with connection.cursor() as cursor:
        for model in apps.get_models(include_auto_created=True):
            table = connection.ops.quote_name(model._meta.db_table)
            cursor.execute("SELECT count(*) FROM " + table + " t WHERE position(%s in t::text) > 0", [needle])  # noqa: S608
            if cursor.fetchone()[0]:
                found.append(table)
    return found


def shown(cast: Cast, experiment: Experiment) -> dict[str, str]:
    """Every page, file and answer of the API that has to do with models and their calls."""
    alice = cast.client(cast.alice)
    study = "/studies/ours/"
    at = f"{study}experiments/{experiment.pk}/"
    run = experiment.runs.get()
    paths = [study, f"{study}models/", f"{study}models/keys/", f"{study}models/catalogue/", f"{study}limits/"]
    paths += [f"{study}experiments/", at, f"{at}calls/", f"{at}runs/{run.pk}/", f"{study}calls/", f"{study}calls.jsonl"]
    paths += [f"{study}calls/{pk}/" for pk in Call.objects.values_list("pk", flat=True)]
    paths += [f"{study}results/", f"{study}exports/"]
    paths += [f"{study}exports/{name}.csv" for name in EXPORTS]
    cast.alice.is_staff = cast.alice.is_superuser = True
    cast.alice.save(update_fields=["is_staff", "is_superuser"])
    paths += ["/admin/", "/admin/studies/auditentry/", "/admin/studies/user/"]
    found: dict[str, str] = {}
    for path in paths:
        response = alice.get(path)
        if path.startswith("/admin/") and response.status_code == 404:
            continue  # not registered there: nothing is shown
        assert response.status_code == 200, path
        content = b"".join(response.streaming_content) if response.streaming else response.content
        found[path] = content.decode()
    api = Client(headers={"authorization": f"Token {api_token_create(user=cast.alice)}"})
    for path in ("models/", "experiments/", f"experiments/{experiment.pk}/", "calls/", "answers/"):
        response = api.get(f"/api/v1{study}{path}")
        assert response.status_code == 200, path
        found[f"api {path}"] = response.content.decode()
    return found


def test_a_key_is_nowhere_whatever_servers_do_with_it(
    cast: Cast,
    instrument: Instrument,
    vendor: str,
    vendor_server: ChatServer,
    vendor_config: ModelConfig,
    own_queue: str,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    secrets = [KEYS[vendor], *([TOKEN] if vendor == "gigachat" else [])]
    behaviours = [one for secret in secrets for one in hostile(vendor, secret)]
    vendor_server.script("", *behaviours, vendor_server.default)
    for _ in behaviours:
        model_try(config=vendor_config, actor=cast.alice)
    kinds = set(Call.objects.values_list("kind", flat=True))
    assert {"bad_request", "server_error", "redirect", "connection", "not_a_model"} <= kinds, kinds
    assert "unexpected" not in kinds
    experiment = experiment_launch(
        study=cast.study,
        instrument=instrument,
        prompt=prompt_ensure(study=cast.study),
        configs=[vendor_config],
        runs=1,
        actor=cast.alice,
    )
    assert work_recover(everything=True) == 3
    with current_app.connection_for_read() as broker:
        messages = b"".join(broker.channel().client.lrange(own_queue, 0, -1)).decode()
    assert messages.count("stimulus_ask") >= 3
    if isinstance(vendor_server, GigaServer):  # and the place that gives out tokens
        tokens._known.clear()
        connection.cursor().execute("UPDATE llmruns_accesstoken SET expires_at = '1970-01-01'")
        vendor_server.token_behaviours = [
            Behaviour(status=400, body=KEYS[vendor].encode(), headers={"X-Echo": KEYS[vendor], "Bad Header": "x"}),
            Behaviour(status=503, echo_headers=True),
            Behaviour(body=json.dumps({"access_token": TOKEN}).encode()),
        ]
        for _ in range(3):
            model_try(config=vendor_config, actor=cast.alice)
        assert vendor_server.token_behaviours == []
    vendor_server.script("", vendor_server.default)
    vendor_server.script("кошка", Behaviour(status=503, body=KEYS[vendor].encode()), vendor_server.default)
    work(experiment)
    sent = str([seen.headers for seen in vendor_server.seen]) + str(getattr(vendor_server, "token_requests", ""))
    assert all(secret in sent for secret in secrets), "it was there to be sent back"

    places = shown(cast, experiment) | {"broker": messages, "log": caplog.text, "out": "".join(capfd.readouterr())}
    places["audit"] = json.dumps(list(AuditEntry.objects.values("detail")))
    for secret in secrets:
        for needle in needles(secret):
            assert in_tables(needle) == [], needle
            assert [place for place, text in places.items() if needle in text] == [], needle
    assert Call.objects.filter(raw_body__contains="[key]").exists() and Call.objects.filter(raw_reply__contains="[key]")


def test_an_error_that_nobody_foresaw_is_logged_without_its_words(
    vendor: str, vendor_config: ModelConfig, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    def fails(*_: object) -> None:
        raise RuntimeError(f"cannot send {KEYS[vendor]}")

    monkeypatch.setattr(type(provider_get(vendor)), "ask", fails)
    error = provider_ask(vendor_config, question_body(vendor_config, "кошка"))
    out = "".join(capfd.readouterr()) + caplog.text
    assert "provider_failed_unexpectedly" in out and "in fails" in out
    assert KEYS[vendor] not in out and KEYS[vendor] not in repr(error) + str(error)


@pytest.mark.parametrize("key", [*KEYS.values(), 'sk-quo"ted\\and-slashed/0aB1'])
def test_a_key_is_blanked_however_it_is_escaped(key: str) -> None:
    for escaped in escapes(key):
        assert key_blank(f"a {escaped} b".encode(), key) == b"a [key] b"
    other = key[:-1].encode() + b"\\u0000"
    assert key_blank(other, key) == other


def test_a_word_that_stands_for_no_key_is_left_alone() -> None:
    assert key_blank(b"EMPTY", "EMPTY") == b"EMPTY"
