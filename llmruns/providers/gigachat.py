"""GigaChat through its SDK: a key is changed for a token of half an hour, and the token goes with each request.

The token is shared between all workers (llmruns.tokens). Sber's servers show certificates of a Russian root that no
browser or library carries: GIGACHAT_CA_FILE names it, and it is trusted for these connections and for no others.
Sources: https://developers.sber.ru/docs/ru/gigachat/api/errors-description and …/gigachat/limitations.
"""

import base64
import ssl
import threading
import uuid
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

import gigachat
import httpx
from django.conf import settings
from gigachat.api.auth import auth_sync
from gigachat.exceptions import ResponseError
from gigachat.settings import Settings

from llmruns.providers.base import (
    AuthenticationFailed,
    ConnectionFailed,
    Endpoint,
    Exchange,
    NotAModel,
    ProviderError,
    ProviderReply,
    Question,
    Timeout,
)
from llmruns.providers.transport import Guard
from llmruns.providers.wire import (
    as_count,
    as_object,
    cause_text,
    filtered_reply,
    is_filtered,
    read_chat_completion,
    retry_after,
    status_error,
)
from llmruns.tokens import Token, token_forget, token_get
from llmruns.vault import token_digest

NAMED = {"model", "messages", "temperature", "top_p", "max_tokens"}
SENT_AS = {"temperature": "temperature", "top_p": "top_p", "max_output_tokens": "max_tokens"}
SCOPE = "GIGACHAT_API_PERS"  # of private persons; a configuration names another one as its folder
FINISH_REASONS = {"blacklist": "content_filter"}
PLACEHOLDER = base64.b64encode(b"set by the transport").decode()  # the SDK warns of what is no base64
TOKEN_SECONDS = 15.0  # for one request for a token: others wait for it


class TokenRefused(AuthenticationFailed):
    """A token that ended before its time. A new one is asked for at the next try; refused too, it is the account."""

    transient, tries = True, 2


@dataclass(slots=True)
class _Sending:
    """What the transport must know of the request under way in this thread, and what it says of the reply."""

    token: str = field(repr=False)
    exchange: Exchange = field(default_factory=Exchange)


_sending: ContextVar[_Sending] = ContextVar("gigachat_sending")


class _Transport(Guard, httpx.BaseTransport):
    library = httpx

    def own_headers(self) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {_sending.get().token}"}

    def own_secrets(self) -> tuple[str, ...]:
        return (*super().own_secrets(), _sending.get().token)

    def new_exchange(self) -> Exchange:
        return _sending.get().exchange


class _TokenTransport(Guard, httpx.BaseTransport):
    library = httpx

    def own_headers(self) -> Mapping[str, str]:
        return {
            **super().own_headers(),
            "Content-Type": "application/x-www-form-urlencoded",
            "RqUID": str(uuid.uuid4()),
        }

    def new_exchange(self) -> Exchange:
        return _sending.get().exchange


class _Client(gigachat.GigaChatSyncClient):
    """The SDK's client without its settings of the environment: they would change what is sent, and to whom."""

    def __init__(self, *, base_url: str, http_client: httpx.Client) -> None:
        super().__init__(base_url=base_url)
        self._settings = Settings.model_construct(base_url=base_url, max_retries=0)
        self._client_instance = http_client


class GigaChat:
    def __init__(self) -> None:
        self._clients: dict[Endpoint, tuple[_Client, httpx.Client]] = {}
        self._lock = threading.Lock()

    def request_body(self, question: Question) -> dict[str, Any]:
        sent = {name: question.sent(own) for own, name in SENT_AS.items()}
        return {
            "model": question.model,
            "messages": [{"role": "user", "content": question.prompt}],
            **{name: value for name, value in sent.items() if value is not None},
            **question.extra_body,
        }

    def ask(self, endpoint: Endpoint, body: dict[str, Any]) -> ProviderReply:
        client, token_client = self._pair(endpoint)
        scope = endpoint.folder or SCOPE
        digest = token_digest(settings.GIGACHAT_AUTH_URL, scope, endpoint.key)
        try:
            token = token_get(digest=digest, fetch=lambda: _token_fetch(token_client, endpoint.key, scope))
        except ProviderError as error:
            error.exchange.sent = False  # a request for a token is no question to a model
            raise
        sending = _Sending(token)
        try:
            return _ask(client, body, sending)
        except TokenRefused:
            token_forget(digest=digest, secret=token)
            raise

    def _pair(self, endpoint: Endpoint) -> tuple[_Client, httpx.Client]:
        with self._lock:
            pair = self._clients.get(endpoint)
            if pair is None:
                tls = _tls_context()
                seconds = min(endpoint.timeout, TOKEN_SECONDS)
                basic = {"Authorization": f"Basic {endpoint.key}"}
                secrets = (endpoint.key,)
                transport = _Transport(headers={}, secrets=secrets, timeout=endpoint.timeout, tls=tls)
                for_tokens = _TokenTransport(headers=basic, secrets=secrets, timeout=seconds, tls=tls)
                http_client = _http_client(transport, endpoint.timeout, base_url=endpoint.base_url)
                pair = self._clients[endpoint] = (
                    _Client(base_url=endpoint.base_url, http_client=http_client),
                    _http_client(for_tokens, seconds),
                )
            return pair


def _http_client(transport: httpx.BaseTransport, timeout: float, *, base_url: str = "") -> httpx.Client:
    return httpx.Client(
        transport=transport,
        base_url=base_url,
        timeout=httpx.Timeout(timeout, connect=min(timeout, 10.0)),
        follow_redirects=False,
        trust_env=False,
    )


def _tls_context() -> ssl.SSLContext:
    context = httpx.create_ssl_context(trust_env=False)
    if settings.GIGACHAT_CA_FILE:
        context.load_verify_locations(cafile=settings.GIGACHAT_CA_FILE)
    return context


def _token_fetch(client: httpx.Client, key: str, scope: str) -> Token:
    """One request to the address for tokens. What came back is kept only where it is an error: a token is a secret."""
    sending = _Sending("")
    exchange = sending.exchange
    reset = _sending.set(sending)
    try:
        got = auth_sync(client, url=settings.GIGACHAT_AUTH_URL, credentials=PLACEHOLDER, scope=scope)
        return Token(got.access_token, got.expires_at / 1000)
    except httpx.TimeoutException as error:
        raise Timeout("no token in time", exchange=exchange) from error
    except httpx.TransportError as error:
        raise ConnectionFailed(_cause(error), exchange=exchange) from error
    except ResponseError as error:
        headers = error.headers or httpx.Headers()
        raise status_error(
            error.status_code, exchange, retry_after(headers), str(headers.get("location", ""))
        ) from error
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise NotAModel("no token in the reply", exchange=Exchange(http_status=exchange.http_status)) from error
    finally:
        _sending.reset(reset)


def _ask(client: _Client, body: dict[str, Any], sending: _Sending) -> ProviderReply:
    exchange = sending.exchange
    reset = _sending.set(sending)
    payload = {name: value for name, value in body.items() if name in NAMED}
    payload["additional_fields"] = {name: value for name, value in body.items() if name not in NAMED} or None
    try:
        client.chat(payload)
    except httpx.TimeoutException as error:
        raise Timeout("no reply in time", exchange=exchange) from error
    except httpx.TransportError as error:
        raise ConnectionFailed(_cause(error), exchange=exchange) from error
    except ResponseError as error:
        if is_filtered(exchange):
            return filtered_reply(exchange)
        headers = error.headers or httpx.Headers()
        kind = TokenRefused if error.status_code == 401 else None
        raise status_error(
            error.status_code, exchange, retry_after(headers), str(headers.get("location", "")), kind
        ) from error
    except (ValueError, TypeError, KeyError, RecursionError):
        if exchange.http_status is None:  # nothing was sent: a fault of ours
            raise
        # What the SDK cannot read may still be a reply: the reader below is more patient, and says what is wrong.
    finally:
        _sending.reset(reset)
    return _read(exchange)


def _read(exchange: Exchange) -> ProviderReply:
    """Cached tokens are not among GigaChat's prompt_tokens, and are not billed; here they are part of the input."""
    reply = read_chat_completion(exchange, None)
    usage = as_object(reply.document.get("usage"))
    cached = as_count(usage.get("precached_prompt_tokens"))
    return replace(
        reply,
        finish_reason=FINISH_REASONS.get(reply.finish_reason or "", reply.finish_reason),
        input_tokens=None if reply.input_tokens is None else reply.input_tokens + (cached or 0),
        cached_tokens=cached,
    )


def _cause(error: httpx.TransportError) -> str:
    text = cause_text(error, httpx.LocalProtocolError)
    if "CERTIFICATE_VERIFY_FAILED" in str(error) and not settings.GIGACHAT_CA_FILE:
        return f"{text[:200]} (GIGACHAT_CA_FILE is not set)"
    return text


PROVIDER = GigaChat()
