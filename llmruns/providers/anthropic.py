"""Anthropic: the messages API through its SDK.

`max_tokens` is not optional there: where a configuration names no maximum, MAX_TOKENS is sent, and the call says so
(asked for: nothing; sent: 4096). It is the largest that every model of the family has taken.
"""

import re
import threading
from typing import Any

import anthropic
import httpx2

from llmruns.providers.base import (
    AuthenticationFailed,
    BadRequest,
    ConnectionFailed,
    Endpoint,
    Exchange,
    NotAModel,
    ProviderError,
    ProviderReply,
    Question,
    QuotaExhausted,
    RateLimited,
    ServerError,
    Timeout,
    UnknownModel,
)
from llmruns.providers.transport import EXCHANGE, guarded_client
from llmruns.providers.wire import (
    as_count,
    as_object,
    as_text,
    cause_text,
    error_object,
    filtered_reply,
    json_reply,
    retry_after,
    status_error,
)

MAX_TOKENS = 4096
API_VERSION = "2023-06-01"
NAMED = {"model", "messages", "max_tokens"}  # the SDK has no word for temperature any more; older models take it
# As classify_reply knows them. Other words (tool_use, pause_turn) are kept as they are.
FINISH_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
}
KINDS: dict[str, type[ProviderError]] = {
    "authentication_error": AuthenticationFailed,
    "permission_error": AuthenticationFailed,
    "billing_error": QuotaExhausted,
    "rate_limit_error": RateLimited,
    "not_found_error": UnknownModel,
    "request_too_large": BadRequest,
    "timeout_error": Timeout,
    "api_error": ServerError,
    "overloaded_error": ServerError,
}
# An exhausted account and a filtered text both come as invalid_request_error; only the words tell.
NO_CREDIT = re.compile(r"credit balance|usage limits", re.IGNORECASE)
FILTERED = re.compile(r"content filter", re.IGNORECASE)


class Anthropic:
    def __init__(self) -> None:
        self._clients: dict[Endpoint, anthropic.Anthropic] = {}
        self._lock = threading.Lock()

    def request_body(self, question: Question) -> dict[str, Any]:
        sent = {name: question.sent(name) for name in ("temperature", "top_p")}
        return {
            "model": question.model,
            "max_tokens": question.max_output_tokens or MAX_TOKENS,
            "messages": [{"role": "user", "content": question.prompt}],
            **{name: value for name, value in sent.items() if value is not None},
            **question.extra_body,
        }

    def ask(self, endpoint: Endpoint, body: dict[str, Any]) -> ProviderReply:
        client = self._client(endpoint)
        named = {name: value for name, value in body.items() if name in NAMED}
        rest = {name: value for name, value in body.items() if name not in NAMED}
        try:
            raw = client.messages.with_raw_response.create(**named, extra_body=rest or None)
        except anthropic.APITimeoutError as error:
            raise Timeout("no reply in time", exchange=_exchange(error)) from error
        except anthropic.APIConnectionError as error:
            if isinstance(error.__cause__, ProviderError):  # the SDK wraps whatever the transport raises
                raise error.__cause__ from None
            message = cause_text(error, httpx2.LocalProtocolError)
            raise ConnectionFailed(message, exchange=_exchange(error)) from error
        except anthropic.APIStatusError as error:
            exchange, headers = _exchange(error), error.response.headers
            if error.status_code == 400 and FILTERED.search(_message(exchange)):
                return filtered_reply(exchange)
            raise _failure(error.status_code, exchange, retry_after(headers), headers.get("location", "")) from error
        return _read(raw.http_request.extensions[EXCHANGE], retry_after(raw.headers))

    def _client(self, endpoint: Endpoint) -> anthropic.Anthropic:
        with self._lock:
            client = self._clients.get(endpoint)
            if client is None:
                client = self._clients[endpoint] = _new_client(endpoint)
            return client


def _new_client(endpoint: Endpoint) -> anthropic.Anthropic:
    headers = {"anthropic-version": API_VERSION} | ({"x-api-key": endpoint.key} if endpoint.key else {})
    http_client = guarded_client(headers=headers, secrets=(endpoint.key,), timeout=endpoint.timeout)
    return anthropic.Anthropic(
        api_key="set-by-the-transport",
        # The SDK adds /v1 itself; other providers' addresses end in it, so that people write it here too.
        base_url=endpoint.base_url.removesuffix("/v1"),
        max_retries=0,
        timeout=http_client.timeout,
        http_client=http_client,
    )


def _exchange(error: anthropic.APIError) -> Exchange:
    found: Exchange = error.request.extensions.get(EXCHANGE) or Exchange()
    return found


def _message(exchange: Exchange) -> str:
    return as_text(error_object(exchange).get("message")) or ""


def _failure(status: int, exchange: Exchange, wait: float | None, location: str = "") -> ProviderError:
    kind = KINDS.get(str(error_object(exchange).get("type")))
    if status == 400 and NO_CREDIT.search(_message(exchange)):
        kind = QuotaExhausted
    return status_error(status, exchange, wait, location, kind)


def _read(exchange: Exchange, wait: float | None) -> ProviderReply:
    document = json_reply(exchange)
    if document.get("type") == "error":
        raise _failure(500, exchange, wait)
    content = document.get("content")
    if not isinstance(content, list) or not all(isinstance(block, dict) for block in content):
        raise NotAModel("the reply has no list of content", exchange=exchange)
    texts = [block.get("text") for block in content if block.get("type") == "text"]
    if not all(isinstance(text, str) for text in texts):
        raise NotAModel("the reply has a block of text without text", exchange=exchange)
    usage = as_object(document.get("usage"))
    reason = as_text(document.get("stop_reason"))
    return ProviderReply(
        text="".join(str(text) for text in texts),
        refusal=_refusal(document) if reason == "refusal" else None,
        finish_reason=FINISH_REASONS.get(reason, reason) if reason else None,
        model=as_text(document.get("model")) or "",
        input_tokens=_input_tokens(usage),
        output_tokens=as_count(usage.get("output_tokens")),
        exchange=exchange,
        document=document,
        cached_tokens=as_count(usage.get("cache_read_input_tokens")),
        reasoning_tokens=as_count(as_object(usage.get("output_tokens_details")).get("thinking_tokens")),
        used={"service_tier": tier} if (tier := as_text(usage.get("service_tier"))) else {},
    )


def _refusal(document: dict[str, Any]) -> str:
    details = as_object(document.get("stop_details"))
    return as_text(details.get("explanation")) or as_text(details.get("category")) or "refusal"


def _input_tokens(usage: dict[str, Any]) -> int | None:
    """All of the input: what was written to the cache or read from it is not in `input_tokens`."""
    fresh = as_count(usage.get("input_tokens"))
    if fresh is None:
        return None
    cached = [as_count(usage.get(f"cache_{name}_input_tokens")) or 0 for name in ("creation", "read")]
    return as_count(fresh + sum(cached))


PROVIDER = Anthropic()
