"""PostgreSQL and Valkey for the tests, started before Django reads its settings (`-p tests.services_plugin`).

Once, in the process that was started; xdist's workers inherit its environment. `DATABASE_URL` from outside
wins. pytest-django gives each worker a database of its own; a Valkey database of its own is given here.
"""

import os
from contextlib import ExitStack

import pytest

from embedded import services

_stack = ExitStack()


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    if worker:
        broker, _, number = os.environ["BROKER_URL"].partition("?virtual_host=")
        if number:
            os.environ["BROKER_URL"] = f"{broker}?virtual_host={int(worker.removeprefix('gw')) + 1}"
        return
    if early_config.known_args_namespace.help or early_config.known_args_namespace.version:
        return
    defaults = {"ALLOWED_HOSTS": "testserver,localhost,127.0.0.1", "PUBLIC_URL": "http://testserver"}
    if "DATABASE_URL" not in os.environ:
        running = _stack.enter_context(services.temporary())
        os.environ.update(running.env)
    for name, value in defaults.items():
        os.environ.setdefault(name, value)


def pytest_unconfigure() -> None:
    _stack.close()
