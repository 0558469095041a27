"""Any server that speaks chat completions: OpenAI, OpenRouter, vLLM, llama.cpp, Ollama, Yandex."""

import json
import math
import threading
from email.utils import parsedate_to_datetime
from typing import Any

import httpx2
import openai
from django.utils import timezone

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
    Redirected,
    ServerError,
    Timeout,
    UnknownModel,
)
from llmruns.providers.transport import EXCHANGE, GuardedTransport

QUOTA_CODES = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "insufficient_balance"}
LONGEST_RETRY_AFTER = 366 * 24 * 3600.0  # seconds: beyond any deadline, and a date can still be written
FILTER_CODES = {"content_filter", "content_policy_violation"}


class OpenAICompatible:
    def __init__(self) -> None:
        self._clients: dict[Endpoint, openai.OpenAI] = {}
        self._lock = threading.Lock()

    def request_body(self, question: Question) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": question.model,
            "messages": [{"role": "user", "content": question.prompt}],
            "temperature": question.temperature,
        }
        if question.max_output_tokens is not None:
            body["max_tokens"] = question.max_output_tokens
        return body

    def ask(self, endpoint: Endpoint, body: dict[str, Any]) -> ProviderReply:
        client = self._client(endpoint)
        try:
            raw = client.chat.completions.with_raw_response.create(**body)
        except openai.APITimeoutError as error:
            raise Timeout("no reply in time", exchange=_exchange(error)) from error
        except openai.APIConnectionError as error:
            raise ConnectionFailed(_cause(error), exchange=_exchange(error)) from error
        except openai.APIStatusError as error:
            exchange = _exchange(error)
            if _is_filtered(exchange):
                return _filtered_reply(exchange)
            headers = error.response.headers
            raise _status_error(
                error.status_code, exchange, _retry_after(headers), headers.get("location", "")
            ) from error
        return _read_reply(raw.http_request.extensions[EXCHANGE], _retry_after(raw.headers))

    def _client(self, endpoint: Endpoint) -> openai.OpenAI:
        with self._lock:
            client = self._clients.get(endpoint)
            if client is None:
                client = self._clients[endpoint] = _new_client(endpoint)
            return client


def _new_client(endpoint: Endpoint) -> openai.OpenAI:
    timeout = httpx2.Timeout(endpoint.timeout, connect=min(endpoint.timeout, 10.0))
    return openai.OpenAI(
        # The transport puts the key in. None here would make the SDK look for keys in the environment.
        api_key="set-by-the-transport",
        admin_api_key="",
        organization="",
        project="",
        webhook_secret="",
        base_url=endpoint.base_url,
        max_retries=0,
        timeout=timeout,
        http_client=httpx2.Client(
            transport=GuardedTransport(key=endpoint.key, timeout=endpoint.timeout),
            timeout=timeout,
            follow_redirects=False,
            trust_env=False,
        ),
    )


def _exchange(error: openai.APIError) -> Exchange:
    found: Exchange = error.request.extensions.get(EXCHANGE) or Exchange()
    return found


def _cause(error: Exception) -> str:
    cause = error.__cause__
    if isinstance(cause, httpx2.LocalProtocolError):
        return type(cause).__name__  # it quotes the header that cannot be sent, the key in it
    return f"{type(cause).__name__}: {cause}"[:300] if cause is not None else str(error)[:300]


def _load(exchange: Exchange) -> Any:
    """The body as JSON, or None. `null` is no reply either."""
    try:
        return json.loads(exchange.body.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None


def _error_object(exchange: Exchange) -> dict[str, Any]:
    document = _load(exchange)
    error = document.get("error") if isinstance(document, dict) else None
    if isinstance(error, str):
        return {"message": error}
    return error if isinstance(error, dict) else {}


def _codes(error: dict[str, Any]) -> set[str]:
    return {value for value in (error.get("code"), error.get("type")) if isinstance(value, str)}


def _is_filtered(exchange: Exchange) -> bool:
    """A provider that refuses the prompt itself answers 400: a decision about this text, not a technical failure."""
    return exchange.http_status == 400 and bool(_codes(_error_object(exchange)) & FILTER_CODES)


def _filtered_reply(exchange: Exchange) -> ProviderReply:
    return ProviderReply(None, None, "content_filter", "", None, None, exchange, _load(exchange))


def _status_error(status: int, exchange: Exchange, retry_after: float | None, location: str = "") -> ProviderError:
    error = _error_object(exchange)
    message = f"HTTP {status}" + (f": {error['message']}"[:300] if isinstance(error.get("message"), str) else "")
    kind: type[ProviderError]
    if status == 402 or _codes(error) & QUOTA_CODES:
        kind = QuotaExhausted
    elif status in (401, 403):
        kind = AuthenticationFailed
    elif status == 429:
        kind = RateLimited
    elif status == 408:
        kind = Timeout
    elif status in (409, 425) or status >= 500:
        kind = ServerError
    elif status == 404:
        kind = UnknownModel
    elif 300 <= status < 400:
        kind, message = Redirected, f"HTTP {status} → {location}"[:300]
    else:
        kind = BadRequest
    return kind(message, exchange=exchange, retry_after=retry_after)


def _retry_after(headers: httpx2.Headers) -> float | None:
    """Seconds to wait: Retry-After as a number or as an HTTP date; never negative, a year at most."""
    value = headers.get("retry-after", "").strip()
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(value) - timezone.now()).total_seconds()
        except (ValueError, TypeError, OverflowError):  # no date; one without a zone; a year of twenty digits
            return None
    return min(max(0.0, seconds), LONGEST_RETRY_AFTER) if math.isfinite(seconds) else None


def _read_reply(exchange: Exchange, retry_after: float | None) -> ProviderReply:
    document = _load(exchange)
    if not isinstance(document, dict):
        raise NotAModel("the reply is not a JSON object", exchange=exchange)
    error = document.get("error")
    if error and not document.get("choices"):  # some routers answer 200 and put the failure inside
        code = error.get("code") if isinstance(error, dict) else None
        status = code if isinstance(code, int) and 300 <= code < 600 else 500
        raise _status_error(status, exchange, retry_after)
    choice = _first(document.get("choices"))
    message = choice.get("message")
    if not isinstance(message, dict) or not isinstance(message.get("content"), str | None):
        raise NotAModel("the reply has no choices[0].message.content", exchange=exchange)
    usage = document.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    return ProviderReply(
        text=message.get("content"),
        refusal=_text(message.get("refusal")),
        finish_reason=_text(choice.get("finish_reason")),
        model=_text(document.get("model")) or "",
        input_tokens=_count(usage.get("prompt_tokens")),
        output_tokens=_count(usage.get("completion_tokens")),
        exchange=exchange,
        document=document,
    )


def _first(choices: Any) -> dict[str, Any]:
    return choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _count(value: Any) -> int | None:
    """A number of tokens that the column can hold; anything else is not one."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31 else None


PROVIDER = OpenAICompatible()
