"""What a request says about its charset, through config.wsgi's own wrapper."""

import pytest
from django.test import Client

from config.wsgi import utf8_only
from surveys.models import Survey
from tests.surveys.conftest import Visitor

ODD = ["base64", "idna", "utf-7", "unicode_escape", "utf-16", "latin-1", "no-such", '"rot13"']


@pytest.fixture
def client() -> Client:
    client = Client(raise_request_exception=False)
    inner = client.handler
    client.handler = lambda environ: utf8_only(lambda given, _: inner(given))(environ, None)
    return client


@pytest.mark.parametrize("charset", ODD)
def test_a_query_is_utf8_whatever_is_said(db: None, client: Client, charset: str) -> None:
    response = client.get("/login/?next=/x%2BAA-", headers={"Content-Type": f"text/plain; charset={charset}"})
    assert response.status_code == 200


@pytest.mark.parametrize("charset", ODD)
def test_a_form_in_another_charset_is_refused(client: Client, survey: Survey, charset: str) -> None:
    visitor = Visitor(survey).start()
    form = b'--x\r\nContent-Disposition: form-data; name="text"\r\n\r\n+2AA- \\ud800\r\n--x--\r\n'
    for kind, body in (
        (f"multipart/form-data; boundary=x; charset={charset}", form),
        (f"application/x-www-form-urlencoded; charset={charset}", b"text=%D0%BA+2AA-"),
        ("application/x-www-form-urlencoded; charset*=no-such''utf-8", b"text=%D0%BA+2AA-"),
    ):
        response = client.generic("POST", f"{visitor.address}1/", body, content_type=kind)
        assert response.status_code == 400 and "ничего не сохранено" in response.content.decode()
    assert not visitor.sitting.answers.exists()


@pytest.mark.parametrize("charset", ["utf-8", "UTF-8", '"utf-8"', "utf8"])
def test_a_form_in_utf8_is_read(client: Client, survey: Survey, charset: str) -> None:
    visitor = Visitor(survey).start()
    form = f'--x\r\nContent-Disposition: form-data; name="text"\r\n\r\nкошка {charset}\r\n--x--\r\n'
    kind = f"multipart/form-data; boundary=x; charset={charset}"
    assert client.generic("POST", f"{visitor.address}1/", form.encode(), content_type=kind).status_code == 302
    assert visitor.texts() == {1: f"кошка {charset}"}


@pytest.mark.parametrize("charset", ODD)
def test_the_api_answers_in_its_own_form(db: None, client: Client, charset: str) -> None:
    kind = f"application/json; charset={charset}"
    response = client.generic("POST", "/api/v1/studies/", b"{}", content_type=kind)
    assert response.status_code == 401 and response.json()["code"] == "not_authenticated"
