"""The clients that are kept for as long as a process lives leave no connection open when it ends."""

import os
import subprocess
import sys

from llmruns.providers import provider_get, transport
from llmruns.providers.base import Endpoint
from tests.chat_server import ChatServer
from tests.llmruns.vendors import said
from tests.llmruns.workers import ROOT

BODY = {"model": "test-model", "max_tokens": 9, "messages": [{"role": "user", "content": "кошка"}]}
# What is registered first is done last.
ASK = f"""
import atexit, sys
atexit.register(lambda: print("open at the end:", connections()))
import django
django.setup()
from llmruns.providers import provider_get, transport
from llmruns.providers.base import Endpoint
def connections():
    return sum(len(one._inner._pool.connections) for one in transport._open)
for vendor, base_url in zip(("openai_compatible", "anthropic"), sys.argv[1:]):
    provider_get(vendor).ask(Endpoint(base_url=base_url, key="", timeout=60.0), {BODY!r})
print("open:", connections())
"""


def test_what_is_closed_opens_again() -> None:
    with ChatServer() as server:
        endpoint = Endpoint(base_url=server.base_url, key="", timeout=60.0)
        provider = provider_get("openai_compatible")
        for _ in range(2):
            assert provider.ask(endpoint, BODY).text == '{"results": "кошка сидит на столе"}'
            transport.transports_close()
            assert not any(one._inner._pool.connections for one in transport._open)


def test_a_process_that_ends_closes_what_it_kept() -> None:
    with ChatServer() as first, ChatServer(default=said("кошка сидит на столе")) as second:
        done = subprocess.run(
            [sys.executable, "-c", ASK, first.base_url, second.base_url],
            cwd=ROOT,
            env=os.environ | {"DJANGO_SETTINGS_MODULE": "config.settings"},
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert (done.returncode, done.stdout.splitlines()) == (0, ["open: 2", "open at the end: 0"]), done.stderr
