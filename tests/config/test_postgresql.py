"""What Luria adds to Django's PostgreSQL backend."""

import pytest
from django.db import connection, connections
from django.test import Client
from django.test.utils import CaptureQueriesContext

from config.postgresql import base

pytestmark = pytest.mark.django_db(transaction=True)


def backend_pid() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])


@pytest.fixture
def persistent(monkeypatch):
    """A connection kept between requests, as the web server has it."""
    monkeypatch.setitem(connection.settings_dict, "CONN_HEALTH_CHECKS", True)
    connection.close()
    yield
    connection.close()


def request_begins() -> None:
    """What Django does to the connection before each request."""
    connection.close_if_unusable_or_obsolete()
    connection.health_check_enabled = connection.settings_dict["CONN_HEALTH_CHECKS"]
    connection.health_check_done = False


@pytest.mark.parametrize("trusted", [True, False], ids=["asked just now", "asked long ago"])
def test_a_connection_the_server_has_ended_is_replaced(persistent, monkeypatch, trusted: bool) -> None:
    """As after a restart of the database: the next request gets a new connection, and no error."""
    monkeypatch.setattr(base, "TRUSTED_SECONDS", 1e9 if trusted else -1)
    connection.ensure_connection()
    assert connection.is_usable()
    ended = backend_pid()
    other = connections.create_connection("default")
    try:
        with other.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [ended])
            assert cursor.fetchone() == (True,)
    finally:
        other.close()
    request_begins()
    assert backend_pid() != ended
    assert Client().get("/login/").status_code == 200


def test_a_silent_connection_is_not_asked_twice(persistent, monkeypatch) -> None:
    connection.ensure_connection()
    assert connection.is_usable()  # asks: it has not lately
    monkeypatch.setattr(base.base.DatabaseWrapper, "is_usable", lambda self: pytest.fail("asked the server"))
    assert connection.is_usable()
    monkeypatch.setattr(base, "TRUSTED_SECONDS", -1)
    with pytest.raises(pytest.fail.Exception):
        connection.is_usable()


def test_a_planned_statement_is_prepared_once_and_counted() -> None:
    with CaptureQueriesContext(connection) as queries:
        for text in ("кошка", "o'clock"):
            with connection.planned_cursor() as cursor:
                cursor.execute("SELECT %s::text", [text])
                assert cursor.fetchone() == (text,)
    assert [query["sql"] for query in queries] == ["SELECT 'кошка'::text", "SELECT 'o''clock'::text"]
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_prepared_statements WHERE statement = 'SELECT $1::text'")
        assert cursor.fetchone() == (1,)
