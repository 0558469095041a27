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
# Twenty processes that share nothing but the database: forked before any of them has opened anything.
PROCESS = """
import os, sys, django
django.setup()
from llmruns.providers import base, provider_get
provider = provider_get("gigachat")
endpoint = base.Endpoint(sys.argv[1], sys.argv[2], 60.0)
body = provider.request_body(base.Question(model="GigaChat-2", prompt="кошка"))
start, starter = os.pipe()
children = []
for _ in range(int(sys.argv[3])):
    pid = os.fork()
    if pid == 0:
        os.close(starter)
        os.read(start, 1)  # until the parent opens the gate for all
        os.write(1, (provider.ask(endpoint, body).text + "\\n").encode())
        os._exit(0)
    children.append(pid)
os.close(starter)
for pid in children:
    if os.waitpid(pid, 0)[1]:
        sys.exit(1)
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


def test_twenty_processes_ask_once() -> None:
    with GigaServer(token_latency=0.3) as server:
        expired_token(server.auth_url)
        environment = worker_environment(
            "tokens", GIGACHAT_AUTH_URL=server.auth_url, SECRET_KEY=live.SECRET_KEY, DATABASE_POOL_SIZE="0"
        ) | {"DJANGO_SETTINGS_MODULE": "config.settings", "LURIA_EMBEDDED": "1"}
        command = [sys.executable, "-c", PROCESS, server.base_url, KEY, str(WORKERS)]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr[-2000:]
        assert done.stdout.count("кошка сидит на столе") == WORKERS
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
