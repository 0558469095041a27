"""OpenAI, Anthropic, GigaChat and Yandex, each through its real SDK against a server that speaks its protocol."""

import base64
import ipaddress
import ssl
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from pytest_django import Settings

from llmruns import tokens
from llmruns.models import AccessToken
from llmruns.providers import base, provider_get
from llmruns.replies import classify_reply
from tests import chat_server as chat
from tests.chat_server import Behaviour, ChatServer
from tests.llmruns import vendors
from tests.llmruns.conftest import KEY
from tests.llmruns.vendors import GigaServer, claude_error, giga_error, message

pytestmark = pytest.mark.django_db

FOLDER = "b1gfolder"
ENVIRONMENT = {
    "OPENAI_API_KEY": "sk-of-somebody-else",
    "OPENAI_ORG_ID": "org-of-somebody-else",
    "OPENAI_PROJECT_ID": "project-of-somebody-else",
    "OPENAI_CUSTOM_HEADERS": "X-Secret: of-somebody-else",
    "OPENAI_BASE_URL": "http://127.0.0.1:9/of-somebody-else",
    "ANTHROPIC_API_KEY": "sk-of-somebody-else",
    "ANTHROPIC_AUTH_TOKEN": "token-of-somebody-else",
    "ANTHROPIC_CUSTOM_HEADERS": "X-Secret: of-somebody-else",
    "ANTHROPIC_BASE_URL": "http://127.0.0.1:9/of-somebody-else",
    "GIGACHAT_CREDENTIALS": "of-somebody-else",
    "GIGACHAT_ACCESS_TOKEN": "token-of-somebody-else",
    "GIGACHAT_BASE_URL": "http://127.0.0.1:9/of-somebody-else",
    "GIGACHAT_PROFANITY_CHECK": "true",
    "GIGACHAT_FLAGS": '["of-somebody-else"]',
    "GIGACHAT_MAX_RETRIES": "3",
    "GIGACHAT_MODEL": "of-somebody-else",
    "HTTP_PROXY": "http://127.0.0.1:9",
    "ALL_PROXY": "http://127.0.0.1:9",
}


@pytest.fixture(autouse=True)
def nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No token of another test; and whatever the environment says, nothing of it may be sent."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    tokens._known.clear()
    yield
    tokens._known.clear()


@pytest.fixture
def server(settings: Settings) -> Iterator[GigaServer]:
    """GigaChat's server is one for all: without a request for a token it is a plain one."""
    with GigaServer() as server:
        settings.GIGACHAT_AUTH_URL = server.auth_url
        yield server


@pytest.fixture
def plain() -> Iterator[ChatServer]:
    with ChatServer() as server:
        yield server


@pytest.fixture(params=["openai", "anthropic", "gigachat", "yandex"])
def vendor(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def any_server(vendor: str, request: pytest.FixtureRequest) -> ChatServer:
    found: ChatServer = request.getfixturevalue("server" if vendor == "gigachat" else "plain")
    if vendor == "anthropic":
        found.default = vendors.said("кошка сидит на столе")
    return found


def question(vendor: str, **changes: Any) -> base.Question:
    folder = {"yandex": FOLDER, "gigachat": "GIGACHAT_API_CORP"}.get(vendor, "")
    return base.Question(model="test-model", prompt="кошка", temperature=0.7, folder=folder, **changes)


def ask(
    vendor: str, server: ChatServer, *, timeout: float = 30.0, key: str = KEY, **changes: Any
) -> base.ProviderReply:
    asked = question(vendor, **changes)
    provider = provider_get(vendor)
    endpoint = base.Endpoint(base_url=server.base_url, key=key, timeout=timeout, folder=asked.folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return provider.ask(endpoint, provider.request_body(asked))


def error_of(vendor: str, server: ChatServer, behaviour: Behaviour, **options: Any) -> base.ProviderError:
    server.script("кошка", behaviour)
    with pytest.raises(base.ProviderError) as caught:
        ask(vendor, server, **options)
    assert len(server.seen) == 1, "one question is one request: nothing below us may ask again"
    return caught.value


# --- what all have in common -------------------------------------------------------------------------------------


def test_it_asks_and_sends_exactly_the_body_that_is_stored(vendor: str, any_server: ChatServer) -> None:
    extra = {"chat_template_kwargs": {"enable_thinking": False}}
    reply = ask(vendor, any_server, max_output_tokens=77, top_p=0.9, extra_body=extra)
    assert classify_reply(reply.text, reply.finish_reason, reply.refusal).answer == "кошка сидит на столе"
    assert (reply.finish_reason, reply.input_tokens, reply.output_tokens) == ("stop", 300, 12)
    assert reply.exchange.http_status == 200
    body = provider_get(vendor).request_body(question(vendor, max_output_tokens=77, top_p=0.9, extra_body=extra))
    assert any_server.seen[0].json == body
    assert body["temperature"] == 0.7 and body["top_p"] == 0.9 and body["chat_template_kwargs"]
    assert 77 in body.values()


def test_nothing_of_the_environment_is_sent(vendor: str, any_server: ChatServer) -> None:
    ask(vendor, any_server)
    seen = [*any_server.seen, *getattr(any_server, "token_requests", [])]
    assert seen
    for one in seen:
        assert "somebody-else" not in str(one.headers) and b"somebody-else" not in one.body


def test_a_parameter_that_the_model_refuses_is_not_sent(vendor: str) -> None:
    body = provider_get(vendor).request_body(question(vendor, accepts=frozenset({"max_output_tokens"}), top_p=0.5))
    assert "temperature" not in body and "top_p" not in body


@pytest.mark.parametrize(
    ("behaviour", "kind"),
    [
        (chat.failure(500), base.ServerError),
        (chat.failure(503), base.ServerError),
        (chat.failure(402), base.QuotaExhausted),
        (chat.failure(403), base.AuthenticationFailed),
        (chat.failure(404), base.UnknownModel),
        (chat.failure(400), base.BadRequest),
        (chat.failure(422), base.BadRequest),
        (chat.HTML, base.NotAModel),
        (chat.STREAM, base.NotAModel),
        (chat.NOT_UTF8, base.NotAModel),
        (chat.NUL_BODY, base.NotAModel),
        (chat.CLOSES_EARLY, base.ConnectionFailed),
        (Behaviour(body=b"[]"), base.NotAModel),
        (Behaviour(body=b"null"), base.NotAModel),
        (Behaviour(body=b"{}"), base.NotAModel),
        (Behaviour(body=b"[" * 100_000), base.NotAModel),
        (Behaviour(body=b""), base.NotAModel),
    ],
)
def test_it_says_what_failed(
    vendor: str, any_server: ChatServer, behaviour: Behaviour, kind: type[base.ProviderError]
) -> None:
    error = error_of(vendor, any_server, behaviour)
    assert type(error) is kind
    if kind is base.NotAModel:
        assert error.exchange.body == behaviour.body


def test_it_waits_as_long_as_it_is_asked(vendor: str, any_server: ChatServer) -> None:
    error = error_of(vendor, any_server, chat.rate_limited(2.5))
    assert type(error) is base.RateLimited and error.retry_after == 2.5


def test_a_server_that_hangs_is_left(vendor: str, any_server: ChatServer) -> None:
    assert type(error_of(vendor, any_server, chat.HANG, timeout=0.5)) is base.Timeout


def test_ten_megabytes_are_not_read(vendor: str, any_server: ChatServer) -> None:
    error = error_of(vendor, any_server, chat.HUGE, timeout=20)
    assert type(error) is base.BodyTooLarge
    assert len(error.exchange.body) == 5 * 1024 * 1024


def test_it_follows_no_redirect(vendor: str, any_server: ChatServer) -> None:
    with ChatServer() as other:
        error = error_of(vendor, any_server, chat.redirect(other.base_url + "/chat/completions"))
        assert type(error) is base.Redirected and other.base_url in error.message
        assert other.seen == []


def test_a_private_address_is_asked_only_where_allowed(vendor: str, any_server: ChatServer, settings: Settings) -> None:
    settings.ALLOW_PRIVATE_ENDPOINTS = False
    with pytest.raises(base.PrivateAddress):
        ask(vendor, any_server)
    assert any_server.seen == [] and getattr(any_server, "token_requests", []) == []


def test_a_server_that_is_not_there(vendor: str, settings: Settings) -> None:
    settings.GIGACHAT_AUTH_URL = "http://127.0.0.1:9/oauth"
    provider = provider_get(vendor)
    with pytest.raises(base.ConnectionFailed):
        provider.ask(base.Endpoint("http://127.0.0.1:9/v1", "", 0.5), provider.request_body(question(vendor)))


def test_a_key_that_comes_back_is_not_kept(vendor: str, any_server: ChatServer) -> None:
    error = error_of(vendor, any_server, Behaviour(status=400, echo_headers=True))
    for secret in (KEY, "token-1-of-many-secret-letters"):
        assert secret.encode() not in error.exchange.body
        assert secret not in error.message and secret not in repr(error.__cause__) + str(error.__cause__)
    assert b"[key]" in error.exchange.body


def test_a_key_that_no_header_holds_is_not_shown(vendor: str, any_server: ChatServer) -> None:
    with pytest.raises(base.ConnectionFailed) as caught:
        ask(vendor, any_server, key=f"{KEY}\nsecond line")
    assert KEY not in caught.value.message


# --- OpenAI ------------------------------------------------------------------------------------------------------


def test_openai_takes_the_new_name_of_the_maximum(plain: ChatServer) -> None:
    ask("openai", plain, max_output_tokens=50)
    assert plain.seen[0].json["max_completion_tokens"] == 50
    assert "max_tokens" not in plain.seen[0].json
    assert plain.seen[0].headers["Authorization"] == f"Bearer {KEY}"


def test_openai_says_what_it_used_where_it_says_so(plain: ChatServer) -> None:
    document = chat.answer("кошка").body[:-1] + b', "temperature": 1.0, "service_tier": "default", "seed": null}'
    plain.script("кошка", Behaviour(body=document))
    assert ask("openai", plain).used == {"temperature": 1.0, "service_tier": "default"}


@pytest.mark.parametrize(
    ("behaviour", "kind"),
    [
        (chat.OUT_OF_QUOTA, base.QuotaExhausted),
        (chat.failure(403, "no access", code="model_not_found"), base.UnknownModel),
        (chat.failure(400, "Unsupported value: 'temperature'", code="unsupported_value"), base.BadRequest),
        (chat.WRONG_KEY, base.AuthenticationFailed),
    ],
)
def test_openai_failures(plain: ChatServer, behaviour: Behaviour, kind: type[base.ProviderError]) -> None:
    assert type(error_of("openai", plain, behaviour)) is kind


# --- Anthropic ---------------------------------------------------------------------------------------------------


def test_anthropic_is_always_told_a_maximum(plain: ChatServer) -> None:
    plain.default = vendors.said("кошка")
    ask("anthropic", plain)
    seen = plain.seen[0]
    assert seen.path == "/v1/messages"
    assert seen.json["max_tokens"] == 4096
    assert seen.headers["x-api-key"] == KEY and seen.headers["anthropic-version"] == "2023-06-01"
    assert "Authorization" not in seen.headers


@pytest.mark.parametrize(
    ("behaviour", "verdict"),
    [
        (message('{"results": "кош', stop_reason="max_tokens"), "truncated"),
        (message('{"results": "кош', stop_reason="model_context_window_exceeded"), "truncated"),
        (message("", stop_reason="refusal"), "refused"),
        (message(None, stop_reason="refusal", stop_details={"type": "refusal", "category": "bio"}), "refused"),
        (message(None), "empty"),
        (message("вот ответ"), "format"),
        (claude_error(400, "invalid_request_error", "Output blocked by content filtering policy"), "filtered"),
    ],
)
def test_anthropic_replies_in_our_words(plain: ChatServer, behaviour: Behaviour, verdict: str) -> None:
    plain.script("кошка", behaviour)
    reply = ask("anthropic", plain)
    assert classify_reply(reply.text, reply.finish_reason, reply.refusal).error == verdict


@pytest.mark.parametrize(
    ("behaviour", "kind"),
    [
        (claude_error(401, "authentication_error", "invalid x-api-key"), base.AuthenticationFailed),
        (claude_error(403, "permission_error"), base.AuthenticationFailed),
        (claude_error(402, "billing_error"), base.QuotaExhausted),
        (claude_error(400, "invalid_request_error", "Your credit balance is too low"), base.QuotaExhausted),
        (claude_error(400, "invalid_request_error", "temperature is not supported"), base.BadRequest),
        (claude_error(404, "not_found_error", "model: claude-9"), base.UnknownModel),
        (claude_error(413, "request_too_large"), base.BadRequest),
        (claude_error(500, "api_error"), base.ServerError),
        (claude_error(504, "timeout_error"), base.Timeout),
        (claude_error(529, "overloaded_error"), base.ServerError),
        (claude_error(200, "overloaded_error"), base.ServerError),
        (Behaviour(body=b'{"content": [{"type": "text"}]}'), base.NotAModel),
        (Behaviour(body=b'{"content": "text"}'), base.NotAModel),
    ],
)
def test_anthropic_failures(plain: ChatServer, behaviour: Behaviour, kind: type[base.ProviderError]) -> None:
    assert type(error_of("anthropic", plain, behaviour)) is kind


def test_anthropic_counts_all_of_the_input_and_the_thinking_apart(plain: ChatServer) -> None:
    usage = {
        "input_tokens": 10,
        "cache_creation_input_tokens": 20,
        "cache_read_input_tokens": 30,
        "output_tokens": 9,
        "output_tokens_details": {"thinking_tokens": 4},
    }
    plain.script("кошка", message("x", usage=usage))
    reply = ask("anthropic", plain)
    assert (reply.input_tokens, reply.cached_tokens, reply.output_tokens, reply.reasoning_tokens) == (60, 30, 9, 4)


def test_anthropic_thinking_is_no_answer(plain: ChatServer) -> None:
    content = [{"type": "thinking", "thinking": "хм", "signature": "s"}, {"type": "text", "text": "да"}]
    plain.script("кошка", message("", content=content))
    assert ask("anthropic", plain).text == "да"


def test_anthropic_address_may_end_in_v1(plain: ChatServer) -> None:
    plain.default = vendors.said("кошка")
    ask("anthropic", plain)
    assert plain.base_url.endswith("/v1") and plain.seen[0].path == "/v1/messages"


# --- Yandex ------------------------------------------------------------------------------------------------------


def test_yandex_names_folder_and_model_and_forbids_keeping(plain: ChatServer) -> None:
    ask("yandex", plain)
    seen = plain.seen[0]
    assert seen.json["model"] == f"gpt://{FOLDER}/test-model"
    assert seen.headers["Authorization"] == f"Api-Key {KEY}"
    assert seen.headers["x-data-logging-enabled"] == "false"
    assert seen.headers["OpenAI-Project"] == FOLDER


def test_yandex_takes_a_whole_name_as_it_is() -> None:
    asked = base.Question(model="ds://another/model", prompt="п", folder=FOLDER)
    assert provider_get("yandex").request_body(asked)["model"] == "ds://another/model"


def test_yandex_filter_is_a_decision_about_the_text(plain: ChatServer) -> None:
    plain.script("кошка", chat.FILTERED)
    reply = ask("yandex", plain)
    assert classify_reply(reply.text, reply.finish_reason, reply.refusal).error == "filtered"


# --- GigaChat ----------------------------------------------------------------------------------------------------


def test_gigachat_changes_the_key_for_a_token(server: GigaServer) -> None:
    ask("gigachat", server)
    ask("gigachat", server)
    (request,) = server.token_requests
    assert request.headers["Authorization"] == f"Basic {KEY}"
    assert request.body == b"scope=GIGACHAT_API_CORP"
    assert len(request.headers["RqUID"]) == 36
    assert [seen.headers["Authorization"] for seen in server.seen] == ["Bearer token-1-of-many-secret-letters"] * 2
    assert KEY not in str(server.seen[0].headers)


def test_gigachat_asks_anew_for_a_token_that_has_ended(server: GigaServer) -> None:
    server.life = 30.0  # less than the buffer: it counts as expired at once
    ask("gigachat", server)
    ask("gigachat", server)
    assert len(server.token_requests) == 2


def test_gigachat_another_process_takes_the_token_from_the_database(server: GigaServer) -> None:
    ask("gigachat", server)
    tokens._known.clear()
    ask("gigachat", server)
    assert len(server.token_requests) == 1


def test_gigachat_another_key_has_another_token(server: GigaServer) -> None:
    ask("gigachat", server)
    ask("gigachat", server, key=base64.b64encode(b"another:secret").decode())
    assert len(server.token_requests) == 2


def test_gigachat_a_token_refused_before_its_time_is_asked_for_again(server: GigaServer) -> None:
    server.refused.add("Bearer token-1-of-many-secret-letters")
    with pytest.raises(base.AuthenticationFailed) as caught:
        ask("gigachat", server)
    assert caught.value.transient and caught.value.tries == 2
    ask("gigachat", server)
    assert len(server.token_requests) == 2


def test_gigachat_a_token_is_not_readable_in_the_database(server: GigaServer) -> None:
    ask("gigachat", server)
    row = AccessToken.objects.get()
    assert b"token-1" not in bytes(row.ciphertext) and KEY not in row.digest


@pytest.mark.parametrize(
    ("behaviour", "kind"),
    [
        (giga_error(401, "credentials doesn't match db data"), base.AuthenticationFailed),
        (giga_error(400, "scope from db not fully includes consumed scope"), base.BadRequest),
        (giga_error(429, "too many", Retry_After="7"), base.RateLimited),
        (giga_error(500, "no"), base.ServerError),
        (chat.HTML, base.NotAModel),
        (Behaviour(body=b'{"access_token": "token-in-a-strange-shape"}'), base.NotAModel),
        (Behaviour(body=b"[]"), base.NotAModel),
        (chat.CLOSES_EARLY, base.ConnectionFailed),
    ],
)
def test_gigachat_without_a_token_nothing_is_asked(
    server: GigaServer, behaviour: Behaviour, kind: type[base.ProviderError]
) -> None:
    server.token_behaviours = [behaviour]
    with pytest.raises(base.ProviderError) as caught:
        ask("gigachat", server)
    assert type(caught.value) is kind and server.seen == []
    assert b"strange-shape" not in caught.value.exchange.body
    ask("gigachat", server)  # and the next one begins anew
    assert len(server.token_requests) == 2


@pytest.mark.parametrize(
    ("behaviour", "kind"),
    [
        (giga_error(402, "Payment Required"), base.QuotaExhausted),
        (giga_error(404, "No such model"), base.UnknownModel),
        (giga_error(403, "Permission denied"), base.AuthenticationFailed),
        (giga_error(413, "Payload too large"), base.BadRequest),
        (giga_error(429, "Too many requests"), base.RateLimited),
    ],
)
def test_gigachat_failures(server: GigaServer, behaviour: Behaviour, kind: type[base.ProviderError]) -> None:
    error = error_of("gigachat", server, behaviour)
    assert type(error) is kind and error.message.startswith(f"HTTP {behaviour.status}: ")


def test_gigachat_blacklist_is_the_filter_and_cached_tokens_are_input(server: GigaServer) -> None:
    document = chat.completion("Не люблю менять тему", finish_reason="blacklist").body
    usage = b'"usage": {"prompt_tokens": 1, "completion_tokens": 4, "precached_prompt_tokens": 37}'
    document = document[: document.index(b'"usage"')] + usage + b"}"
    server.script("кошка", Behaviour(body=document))
    reply = ask("gigachat", server)
    assert classify_reply(reply.text, reply.finish_reason, reply.refusal).error == "filtered"
    assert (reply.input_tokens, reply.cached_tokens) == (38, 37)


# --- the certificate of GigaChat's root --------------------------------------------------------------------------


def authority(folder: Path) -> tuple[Path, Path]:
    """A root that nobody trusts, and a server's certificate under it (with its key) for 127.0.0.1."""
    now = datetime.now(UTC)

    def named(name: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])

    def certificate(name: str, key: Any, issuer: str, issuer_key: Any, *, ca: bool) -> x509.Certificate:
        builder = x509.CertificateBuilder(named(issuer), named(name), key.public_key(), x509.random_serial_number())
        builder = builder.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
        builder = builder.add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        builder = builder.add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False
        )
        if ca:
            builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        else:
            address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
            builder = builder.add_extension(x509.SubjectAlternativeName([address]), critical=False)
        return builder.sign(issuer_key, hashes.SHA256())

    root_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    root, chain = folder / "root.pem", folder / "server.pem"
    encoding = serialization.Encoding.PEM
    root.write_bytes(certificate("Test root", root_key, "Test root", root_key, ca=True).public_bytes(encoding))
    chain.write_bytes(
        certificate("server", key, "Test root", root_key, ca=False).public_bytes(encoding)
        + key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return root, chain


def test_gigachat_alone_trusts_its_root(tmp_path: Path, settings: Settings) -> None:
    root, chain = authority(tmp_path)
    with GigaServer() as server:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(chain)
        server.httpd.socket = tls.wrap_socket(server.httpd.socket, server_side=True)
        server.base_url = server.base_url.replace("http:", "https:")
        settings.GIGACHAT_AUTH_URL = server.auth_url.replace("http:", "https:")
        with pytest.raises(base.ConnectionFailed) as caught:
            ask("gigachat", server)
        assert "GIGACHAT_CA_FILE is not set" in caught.value.message and server.token_requests == []
        settings.GIGACHAT_CA_FILE = str(root)
        assert ask("gigachat", server, timeout=2.5).text  # another time-out is another client
        with pytest.raises(base.ConnectionFailed):
            ask("openai", server)
        assert len(server.seen) == 1


# --- whether anything was sent, and so may have been billed ------------------------------------------------------


@pytest.mark.parametrize("behaviour", [chat.HANG, chat.CLOSES_EARLY, chat.HTML, chat.failure(500), chat.HUGE])
def test_what_went_out_is_said_to_be_sent(vendor: str, any_server: ChatServer, behaviour: Behaviour) -> None:
    assert error_of(vendor, any_server, behaviour, timeout=1.0 if behaviour.hang else 30.0).exchange.sent


def test_without_a_connection_nothing_is_sent(vendor: str, any_server: ChatServer, settings: Settings) -> None:
    """For GigaChat with a token at hand: it is the model that cannot be reached."""
    ask(vendor, any_server)
    asked = question(vendor)
    provider = provider_get(vendor)
    with pytest.raises(base.ConnectionFailed) as caught:
        provider.ask(base.Endpoint("http://127.0.0.1:9/v1", KEY, 0.5, asked.folder), provider.request_body(asked))
    assert not caught.value.exchange.sent
    with pytest.raises(base.ConnectionFailed) as caught:
        ask(vendor, any_server, key=f"{KEY}\nsecond line")
    assert not caught.value.exchange.sent


@pytest.mark.parametrize("behaviour", [chat.CLOSES_EARLY, chat.HTML, chat.HANG])
def test_gigachat_a_request_for_a_token_asks_no_model(server: GigaServer, behaviour: Behaviour) -> None:
    server.token_behaviours = [behaviour]
    with pytest.raises(base.ProviderError) as caught:
        ask("gigachat", server, timeout=0.5 if behaviour.hang else 30.0)
    assert not caught.value.exchange.sent and server.seen == []
