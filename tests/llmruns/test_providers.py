"""Every way in which a server can fail, through the real SDK."""

import json
from datetime import timedelta

import pytest
from django.utils import timezone
from pytest_django import Settings

from llmruns.calls import wait_seconds
from llmruns.providers import base, provider_get
from tests import chat_server as chat
from tests.chat_server import ChatServer
from tests.llmruns.conftest import KEY

PROVIDER = provider_get("openai_compatible")
QUESTION = base.Question(model="test-model", prompt="кошка", temperature=1.0, max_output_tokens=None)
PLENTY = 30.0  # seconds that no server here takes, but for those that hang


def ask(server: ChatServer, *, key: str = KEY, timeout: float = PLENTY) -> base.ProviderReply:
    endpoint = base.Endpoint(base_url=server.base_url, key=key, timeout=timeout)
    return PROVIDER.ask(endpoint, PROVIDER.request_body(QUESTION))


def error_of(server: ChatServer, behaviour: chat.Behaviour, **options: float) -> base.ProviderError:
    server.script("кошка", behaviour)
    with pytest.raises(base.ProviderError) as caught:
        ask(server, **options)
    assert len(server.seen) == 1, "one question is one request: nothing below us may ask again"
    return caught.value


def test_it_asks(server: ChatServer) -> None:
    reply = ask(server)
    assert (reply.text, reply.finish_reason, reply.model) == (
        '{"results": "кошка сидит на столе"}',
        "stop",
        "test-model",
    )
    assert (reply.input_tokens, reply.output_tokens, reply.exchange.http_status) == (300, 12, 200)
    assert server.seen[0].path == "/v1/chat/completions"
    assert server.seen[0].json == PROVIDER.request_body(QUESTION)


def test_it_sends_no_header_that_the_environment_adds(server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = {
        "OPENAI_API_KEY": "sk-of-somebody-else",
        "OPENAI_ADMIN_KEY": "sk-admin-of-somebody-else",
        "OPENAI_ORG_ID": "org-of-somebody-else",
        "OPENAI_PROJECT_ID": "project-of-somebody-else",
        "OPENAI_CUSTOM_HEADERS": "Authorization: Bearer of-somebody-else\nX-Secret: of-somebody-else",
        "OPENAI_BASE_URL": "http://127.0.0.1:9/of-somebody-else",
        "HTTP_PROXY": "http://127.0.0.1:9",
        "HTTPS_PROXY": "http://127.0.0.1:9",
        "ALL_PROXY": "http://127.0.0.1:9",
    }
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    ask(server, key="")
    headers = server.seen[0].headers
    assert {name.lower() for name in headers} == {
        "host",
        "content-type",
        "content-length",
        "accept",
        "accept-encoding",
        "user-agent",
        "connection",
    } - ({"connection"} - {name.lower() for name in headers})
    assert "somebody-else" not in str(headers)


@pytest.mark.parametrize(
    ("behaviour", "kind", "transient"),
    [
        (chat.rate_limited(3), base.RateLimited, True),
        (chat.BROKEN, base.ServerError, True),
        (chat.failure(503), base.ServerError, True),
        (chat.failure(529), base.ServerError, True),
        (chat.failure(408), base.Timeout, True),
        (chat.HANG, base.Timeout, True),
        (chat.CLOSES_EARLY, base.ConnectionFailed, True),
        (chat.HTML, base.NotAModel, True),
        (chat.STREAM, base.NotAModel, True),
        (chat.HUGE, base.BodyTooLarge, True),
        (chat.NOT_UTF8, base.NotAModel, True),
        (chat.NUL_BODY, base.NotAModel, True),
        (chat.Behaviour(body=b"[]"), base.NotAModel, True),
        (chat.Behaviour(body=b"null"), base.NotAModel, True),
        (chat.Behaviour(body=b'{"choices": []}'), base.NotAModel, True),
        (chat.Behaviour(body=b'{"choices": [{"message": {"content": 5}}]}'), base.NotAModel, True),
        (chat.Behaviour(body=b"[" * 100_000), base.NotAModel, True),
        (chat.Behaviour(body=b'{"error": {"message": "busy", "code": 429}}'), base.RateLimited, True),
        (chat.OUT_OF_QUOTA, base.QuotaExhausted, False),
        (chat.failure(402), base.QuotaExhausted, False),
        (chat.WRONG_KEY, base.AuthenticationFailed, False),
        (chat.failure(403), base.AuthenticationFailed, False),
        (chat.UNKNOWN_MODEL, base.UnknownModel, False),
        (chat.failure(400), base.BadRequest, False),
        (chat.failure(422), base.BadRequest, False),
    ],
)
def test_it_says_what_failed(
    server: ChatServer, behaviour: chat.Behaviour, kind: type[base.ProviderError], transient: bool
) -> None:
    error = error_of(server, behaviour, timeout=0.5 if behaviour.hang else PLENTY)
    assert type(error) is kind
    assert error.transient is transient


def test_it_waits_as_long_as_it_is_asked(server: ChatServer) -> None:
    assert error_of(server, chat.rate_limited(2.5)).retry_after == 2.5


def test_it_reads_a_date_to_wait_for(server: ChatServer) -> None:
    waits = error_of(server, chat.rate_limited_until(100)).retry_after
    assert waits is not None and 90 < waits <= 101


@pytest.mark.parametrize("value", ["soon", "nan", "inf", ""])
def test_it_reads_no_wait_in_nonsense(server: ChatServer, value: str) -> None:
    assert error_of(server, chat.failure(429, Retry_After=value)).retry_after is None


@pytest.mark.parametrize(
    "value",
    ["1e12", "99999999999999999999", "1e300", "Fri, 31 Dec 9999 23:59:59 GMT", "Mon, 01 Jan 99999999999 00:00:00 GMT"],
)
def test_a_wait_without_end_is_a_date_that_can_be_written(server: ChatServer, value: str) -> None:
    asked = error_of(server, chat.failure(429, Retry_After=value)).retry_after
    due_at = timezone.now() + timedelta(seconds=wait_seconds(1, asked))
    assert due_at.year < 9999


@pytest.mark.parametrize(("value", "asked"), [("-5", 0.0), ("Mon, 01 Jan 2001 00:00:00 GMT", 0.0)])
def test_a_wait_is_never_negative(server: ChatServer, value: str, asked: float) -> None:
    assert error_of(server, chat.failure(429, Retry_After=value)).retry_after == asked


def test_it_follows_no_redirect(server: ChatServer) -> None:
    with ChatServer() as other:
        error = error_of(server, chat.redirect(other.base_url + "/chat/completions"))
        assert type(error) is base.Redirected
        assert other.seen == []


def test_it_keeps_what_does_not_parse(server: ChatServer) -> None:
    assert error_of(server, chat.HTML).exchange.body == chat.HTML.body


def test_it_keeps_what_came_before_the_end(server: ChatServer) -> None:
    exchange = error_of(server, chat.CLOSES_EARLY).exchange
    assert exchange.body.startswith(b'{"choices": [') and exchange.http_status == 200


def test_it_keeps_no_more_than_the_limit(server: ChatServer) -> None:
    assert len(error_of(server, chat.HUGE).exchange.body) <= 5 * 1024 * 1024


@pytest.mark.parametrize(
    ("behaviour", "text", "finish_reason", "refusal"),
    [
        (chat.TRUNCATED, '{"results": "кош', "length", None),
        (chat.REFUSED, None, "stop", "I cannot help with that"),
        (chat.FILTERED, "", "content_filter", None),
        (chat.FILTERED_PROMPT, None, "content_filter", None),
        (chat.EMPTY, "", "stop", None),
    ],
)
def test_a_completed_reply_is_a_reply(
    server: ChatServer, behaviour: chat.Behaviour, text: str | None, finish_reason: str, refusal: str | None
) -> None:
    server.script("кошка", behaviour)
    reply = ask(server)
    assert (reply.text, reply.finish_reason, reply.refusal) == (text, finish_reason, refusal)


def test_a_server_that_sends_the_key_back_does_not_get_it_stored(server: ChatServer) -> None:
    error = error_of(server, chat.Behaviour(status=401, echo_headers=True))
    assert KEY in str(server.seen[0].headers)
    assert KEY.encode() not in error.exchange.body
    assert KEY not in error.message and KEY not in repr(error.__cause__)
    assert b"[key]" in error.exchange.body


@pytest.mark.parametrize("charset", ["base64", "idna", "no-such-one"])
def test_a_charset_that_nobody_can_read_is_not_read(server: ChatServer, charset: str) -> None:
    kind = f"application/json; charset={charset}"
    error = error_of(server, chat.Behaviour(status=503, body=b"\xff{", headers={"Content-Type": kind}))
    assert type(error) is base.ServerError


def test_a_key_that_no_header_holds_is_not_shown(server: ChatServer) -> None:
    with pytest.raises(base.ConnectionFailed) as caught:
        ask(server, key=f"{KEY}\nsecond line")
    assert KEY not in caught.value.message


def test_a_server_that_is_not_there(server: ChatServer) -> None:
    endpoint = base.Endpoint(base_url="http://127.0.0.1:9/v1", key="", timeout=0.5)
    with pytest.raises(base.ConnectionFailed):
        PROVIDER.ask(endpoint, PROVIDER.request_body(QUESTION))


def test_a_private_address_is_asked_only_where_allowed(server: ChatServer, settings: Settings) -> None:
    settings.ALLOW_PRIVATE_ENDPOINTS = False
    with pytest.raises(base.PrivateAddress):
        ask(server)
    assert server.seen == []


def test_the_body_is_what_was_asked_for() -> None:
    question = base.Question(model="m", prompt="п", temperature=0.5, max_output_tokens=7)
    assert json.loads(json.dumps(PROVIDER.request_body(question))) == {
        "model": "m",
        "messages": [{"role": "user", "content": "п"}],
        "temperature": 0.5,
        "max_tokens": 7,
    }
