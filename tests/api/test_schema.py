"""The OpenAPI document, and whether the API does what it says."""

import warnings
from typing import Any

import pytest
import schemathesis
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.specs.openapi import checks as openapi_checks

from config.api import openapi_document
from config.wsgi import application
from tests.api.conftest import Ready
from tests.api.routes import ROUTES
from tests.conftest import ROOT

POSITIVE, NEGATIVE = 8, 6  # examples for each operation
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


def operations(ready: Ready) -> list[Any]:
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
def test_the_api_does_what_the_document_says(ready: Ready, mode: GenerationMode) -> None:
    """Valid requests, most of them for what exists, and invalid ones: no 5xx, and every response as described."""
    number = POSITIVE if mode == GenerationMode.POSITIVE else NEGATIVE
    seen = set()
    for operation in operations(ready):
        known = existing(ready, operation.path)

        @settings(
            max_examples=number, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
        )
        @given(case=operation.as_strategy(generation_mode=mode), real=st.integers(0, 3))
        def ask(case: Any, real: int, known: dict[str, Any] = known) -> None:
            if real:
                case.path_parameters = {name: known[name] for name in case.path_parameters or {}}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                response = case.call(headers=authorization(ready))
                case.validate_response(response, checks=CHECKS, headers=authorization(ready))
            seen.add(response.status_code)

        ask()
    assert seen >= ({200, 404} if mode == GenerationMode.POSITIVE else {400, 404}), seen
