"""Twenty workers and an expired token: one request for a new one."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
from django.conf import settings as live
from django.db import connections
from pytest_django import Settings

from llmruns import tokens
from llmruns.models import AccessToken
from llmruns.providers import base, provider_get
from llmruns.vault import token_digest, token_seal
from tests import chat_server as chat
from tests.llmruns.conftest import KEY
from tests.llmruns.vendors import GigaServer, giga_error
from tests.llmruns.workers import ROOT, worker_environment

pytestmark = pytest.mark.django_db(transaction=True)

WORKERS = 20
QUESTION = base.Question(model="GigaChat-2", prompt="кошка")
PROCESSES = 4
PROCESS = """
import sys, django
django.setup()
from concurrent.futures import ThreadPoolExecutor
from llmruns.providers import base, provider_get
provider = provider_get("gigachat")
endpoint = base.Endpoint(sys.argv[1], sys.argv[2], 30.0)
body = provider.request_body(base.Question(model="GigaChat-2", prompt="кошка"))
print("ready", flush=True)
sys.stdin.readline()
with ThreadPoolExecutor(5) as pool:
    for reply in pool.map(lambda _: provider.ask(endpoint, body), range(5)):
        print(reply.text)
"""


def expired_token(auth_url: str) -> None:
    AccessToken.objects.create(
        digest=token_digest(auth_url, "GIGACHAT_API_PERS", KEY),
        ciphertext=token_seal("token-of-yesterday"),
        expires_at=datetime(2026, 1, 1, tzinfo=UTC),
    )


def ask(server: GigaServer) -> base.ProviderReply:
    provider = provider_get("gigachat")
    try:
        return provider.ask(base.Endpoint(server.base_url, KEY, 30.0), provider.request_body(QUESTION))
    finally:
        connections.close_all()  # this thread's


def test_twenty_threads_ask_once(settings: Settings) -> None:
    tokens._known.clear()
    with GigaServer(token_latency=0.3) as server, ThreadPoolExecutor(WORKERS) as pool:
        settings.GIGACHAT_AUTH_URL = server.auth_url
        expired_token(server.auth_url)
        replies = list(pool.map(lambda _: ask(server), range(WORKERS)))
        assert len(replies) == len(server.seen) == WORKERS
        assert len(server.token_requests) == 1
        assert {seen.headers["Authorization"] for seen in server.seen} == {"Bearer token-1-of-many-secret-letters"}


def test_twenty_workers_in_four_processes_ask_once() -> None:
    with GigaServer(token_latency=0.3) as server:
        expired_token(server.auth_url)
        environment = worker_environment(
            "tokens", GIGACHAT_AUTH_URL=server.auth_url, SECRET_KEY=live.SECRET_KEY, DATABASE_POOL_SIZE="2"
        ) | {"DJANGO_SETTINGS_MODULE": "config.settings", "LURIA_EMBEDDED": "1"}
        command = [sys.executable, "-c", PROCESS, server.base_url, KEY]
        processes = [
            subprocess.Popen(
                command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            for _ in range(PROCESSES)
        ]
        for process in processes:
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
        for process in processes:  # all are there: now they ask together
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        for process in processes:
            text, _ = process.communicate(timeout=60)
            assert process.returncode == 0 and text.count("кошка сидит на столе") == WORKERS // PROCESSES
        assert len(server.token_requests) == 1
        assert len(server.seen) == WORKERS


def test_who_comes_after_a_failure_asks_again(settings: Settings) -> None:
    tokens._known.clear()
    with GigaServer() as server:
        settings.GIGACHAT_AUTH_URL = server.auth_url
        server.token_behaviours = [giga_error(500, "no"), chat.CLOSES_EARLY]
        for kind in (base.ServerError, base.ConnectionFailed):
            with pytest.raises(kind):
                ask(server)
        assert ask(server).text
        assert AccessToken.objects.count() == 1
