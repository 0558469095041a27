import io
import logging
import logging.config

import pytest
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.test import RequestFactory
from django.utils.log import log_response

from config.logs import logging_config, refusals_in_brief

SECRETS = ["sk-abcdefghijklmnop", "Xk3vQ9_mB7tR2wY5zLpN8sD4fG6hJ1cV0aE"]


@pytest.mark.parametrize("json", [True, False])
def test_secrets_are_blanked_and_tracebacks_kept(json: bool) -> None:
    formatter = logging_config(level="INFO", json=json)["formatters"]["structlog"]
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter.pop("()")(**formatter))
    logger = logging.getLogger("test.logs")
    logger.addHandler(handler)
    request = RequestFactory().get(f"/p/{SECRETS[1]}/3/")
    try:
        raise ValueError("the provider said: bearer abcdefgh.ijkl")
    except ValueError:
        logger.exception("Internal Server Error: %s key %s", request.path, SECRETS[0], extra={"request": request})
    finally:
        logger.removeHandler(handler)
    text = stream.getvalue()
    assert "ValueError" in text and "Traceback" in text and "[secret]" in text
    for secret in (*SECRETS, "abcdefgh.ijkl"):
        assert secret not in text


@pytest.mark.parametrize(("code", "error", "tracebacks"), [(403, PermissionDenied, 0), (500, ValueError, 1)])
def test_a_refusal_is_one_line(code: int, error: type[Exception], tracebacks: int) -> None:
    """As Django logs what a view raised."""
    config = logging_config(level="INFO", json=False)
    formatter = config["formatters"]["structlog"]
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter.pop("()")(**formatter))
    logger = logging.getLogger("django.request")
    before = logger.filters[:]
    logger.filters[:] = [config["filters"][name]["()"]() for name in config["loggers"]["django.request"]["filters"]]
    logger.addHandler(handler)
    try:
        try:
            raise error("blinded")
        except error as raised:
            log_response(
                "Forbidden: %s",
                "/studies/ours/",
                response=HttpResponse(status=code),
                request=RequestFactory().get("/studies/ours/"),
                exception=raised,
            )
    finally:
        logger.removeHandler(handler)
        logger.filters[:] = before
    text = stream.getvalue()
    assert "Forbidden: /studies/ours/" in text
    assert text.count("Traceback") == tracebacks and (len(text.splitlines()) == 1) == (tracebacks == 0)


def test_djangos_own_logger_has_the_filter() -> None:
    assert refusals_in_brief in logging.getLogger("django.request").filters
