"""The OpenAPI document, and whether the API does what it says."""

import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
import yaml
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.specs.openapi import checks as openapi_checks

from config import wsgi
from config.api import openapi_document
from tests.api.conftest import Ready
from tests.api.routes import ROUTES
from tests.conftest import ROOT

EXAMPLES = {GenerationMode.POSITIVE: 8, GenerationMode.NEGATIVE: 6}  # for each operation
CHECKS = [
    schemathesis.checks.not_a_server_error,
    openapi_checks.status_code_conformance,
    openapi_checks.content_type_conformance,
    openapi_checks.response_headers_conformance,
    openapi_checks.response_schema_conformance,
]


def test_the_committed_document_is_that_of_the_code() -> None:
    assert yaml.safe_load((ROOT / "docs" / "openapi.yaml").read_text()) == openapi_document()


def test_every_route_is_in_the_document() -> None:
    operations = [(path, method) for path, methods in openapi_document()["paths"].items() for method in methods]
    assert len(operations) == len([route for route in ROUTES if route.name != "api-schema"])
    for path, method in operations:
        operation = openapi_document()["paths"][path][method]
        assert operation["security"] == [{"token": []}]
        assert {"400", "401", "406", "429"} <= set(operation["responses"])


def test_every_field_is_typed() -> None:
    anything = {"request", "response"}  # of a call: whatever the provider's protocol has
    for name, schema in openapi_document()["components"]["schemas"].items():
        for own, described in schema.get("properties", {}).items():
            typed = {"type", "$ref", "allOf", "oneOf"} & set(described)
            assert typed or own in anything, f"{name}.{own}"


def test_it_is_served_to_whoever_has_a_token(ready: Ready) -> None:
    response = ready.client.get("/api/v1/schema/", headers={"accept-language": "ru"})
    assert response.json() == openapi_document()
    assert response.headers["Content-Type"] == "application/json"


@pytest.fixture
def application() -> Iterator[Any]:
    """The WSGI application, which does not close the test's connection after a request, as Django's client does not."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield wsgi.application
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


def operations(ready: Ready, application: Any) -> list[Any]:
    schema = schemathesis.openapi.from_wsgi("/api/v1/schema/", application, headers=authorization(ready))
    return [result.ok() for result in schema.get_all_operations()]


def authorization(ready: Ready) -> dict[str, str]:
    return {"Authorization": ready.client.defaults["HTTP_AUTHORIZATION"]}


def existing(ready: Ready, path: str) -> dict[str, Any]:
    """Parameters of an address that there is, so that not only 404 is tried."""
    samples = {name: str(value) for name, value in ready.samples.items()}
    parts = path.strip("/").split("/")
    if len(parts) > 4:
        samples["id"] = samples.get(f"api-{parts[4]}", "")
    return samples


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
def test_the_api_does_what_the_document_says(ready: Ready, application: Any, mode: GenerationMode) -> None:
    """Valid requests, most of them for what exists, and invalid ones: no 5xx, and every response as described."""
    seen: set[int] = set()
    for operation in operations(ready, application):
        seen |= asked(operation, mode, existing(ready, operation.path), authorization(ready))
    assert seen >= ({200, 404} if mode == GenerationMode.POSITIVE else {400, 404}), seen


def asked(operation: Any, mode: GenerationMode, known: dict[str, Any], headers: dict[str, str]) -> set[int]:
    """The statuses of some examples of an operation, each of them checked against the document."""
    seen = set()

    @settings(
        max_examples=EXAMPLES[mode],
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode), real=st.integers(0, 3))
    def ask(case: Any, real: int) -> None:
        if real:
            case.path_parameters = {name: known[name] for name in case.path_parameters or {}}
        if real > 1 and case.query:  # a cursor cannot be guessed, and many filters at once leave nothing
            case.query = {name: value for name, value in case.query.items() if real == 2 and name != "cursor"}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            response = case.call(headers=headers)
            case.validate_response(response, checks=CHECKS, headers=headers)
        seen.add(response.status_code)

    ask()
    return seen
