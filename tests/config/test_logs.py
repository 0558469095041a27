import io
import logging
import logging.config

import pytest
from django.test import RequestFactory

from config.logs import logging_config

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
