"""What all vendors' answers have in common: how JSON, errors, waits and chat completions are read. No SDK in here."""

import json
import math
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from django.utils import timezone

from llmruns.providers.base import (
    AuthenticationFailed,
    BadRequest,
    Exchange,
    NotAModel,
    ProviderError,
    ProviderReply,
    QuotaExhausted,
    RateLimited,
    Redirected,
    ServerError,
    Timeout,
    UnknownModel,
)

LONGEST_RETRY_AFTER = 366 * 24 * 3600.0  # seconds: beyond any deadline, and a date can still be written
QUOTA_CODES = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "insufficient_balance"}
UNKNOWN_MODEL_CODES = {"model_not_found"}
FILTER_CODES = {"content_filter", "content_policy_violation"}
# What a server may say about the parameters that it used; mostly it says nothing.
REPORTED = ("temperature", "top_p", "max_tokens", "max_completion_tokens", "service_tier", "system_fingerprint", "seed")


def load_json(exchange: Exchange) -> Any:
    """The body as JSON, or None. `null` is no reply either."""
    try:
        return json.loads(exchange.body.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None


def error_object(exchange: Exchange) -> dict[str, Any]:
    """What the server says of an error; {} where it says nothing. GigaChat puts it at the top."""
    document = load_json(exchange)
    if not isinstance(document, dict):
        return {}
    error = document.get("error")
    if isinstance(error, str):
        return {"message": error}
    if isinstance(error, dict):
        return error
    return document if isinstance(document.get("message"), str) else {}


def error_codes(error: dict[str, Any]) -> set[str]:
    return {value for value in (error.get("code"), error.get("type")) if isinstance(value, str)}


def error_message(status: int, error: dict[str, Any]) -> str:
    return f"HTTP {status}" + (f": {error['message']}"[:300] if isinstance(error.get("message"), str) else "")


def status_kind(status: int, codes: set[str]) -> type[ProviderError]:
    if status == 402 or codes & QUOTA_CODES:
        return QuotaExhausted
    if status == 404 or codes & UNKNOWN_MODEL_CODES:
        return UnknownModel
    if status in (401, 403):
        return AuthenticationFailed
    if status == 429:
        return RateLimited
    if status == 408:
        return Timeout
    if status in (409, 425) or status >= 500:
        return ServerError
    return Redirected if 300 <= status < 400 else BadRequest


def status_error(
    status: int,
    exchange: Exchange,
    retry_after: float | None,
    location: str = "",
    kind: type[ProviderError] | None = None,
) -> ProviderError:
    error = error_object(exchange)
    kind = kind or status_kind(status, error_codes(error))
    message = f"HTTP {status} → {location}"[:300] if kind is Redirected else error_message(status, error)
    return kind(message, exchange=exchange, retry_after=retry_after)


def retry_after(headers: Mapping[str, str]) -> float | None:
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


def is_filtered(exchange: Exchange) -> bool:
    """A provider that refuses the prompt itself answers 400: a decision about this text, not a technical failure."""
    return exchange.http_status == 400 and bool(error_codes(error_object(exchange)) & FILTER_CODES)


def filtered_reply(exchange: Exchange) -> ProviderReply:
    return ProviderReply(None, None, "content_filter", "", None, None, exchange, load_json(exchange))


def cause_text(error: Exception, unsendable: type[Exception]) -> str:
    """Why a connection failed. An `unsendable` error quotes the header that cannot be sent, the key in it."""
    cause = error.__cause__ or error
    if isinstance(error, unsendable) or isinstance(cause, unsendable):
        return unsendable.__name__
    return f"{type(cause).__name__}: {cause}"[:300]


def json_reply(exchange: Exchange) -> dict[str, Any]:
    document = load_json(exchange)
    if not isinstance(document, dict):
        raise NotAModel("the reply is not a JSON object", exchange=exchange)
    return document


def read_chat_completion(exchange: Exchange, wait: float | None) -> ProviderReply:
    document = json_reply(exchange)
    error = document.get("error")
    if error and not document.get("choices"):  # some routers answer 200 and put the failure inside
        code = error.get("code") if isinstance(error, dict) else None
        raise status_error(code if isinstance(code, int) and 300 <= code < 600 else 500, exchange, wait)
    choice = first_object(document.get("choices"))
    message = choice.get("message")
    if not isinstance(message, dict) or not isinstance(message.get("content"), str | None):
        raise NotAModel("the reply has no choices[0].message.content", exchange=exchange)
    usage = as_object(document.get("usage"))
    prompt, completion = (as_object(usage.get(f"{name}_tokens_details")) for name in ("prompt", "completion"))
    return ProviderReply(
        text=message.get("content"),
        refusal=as_text(message.get("refusal")),
        finish_reason=as_text(choice.get("finish_reason")),
        model=as_text(document.get("model")) or "",
        input_tokens=as_count(usage.get("prompt_tokens")),
        output_tokens=as_count(usage.get("completion_tokens")),
        exchange=exchange,
        document=document,
        cached_tokens=as_count(prompt.get("cached_tokens")),
        reasoning_tokens=as_count(completion.get("reasoning_tokens")),
        used=reported(document),
    )


def reported(document: dict[str, Any]) -> dict[str, Any]:
    """The parameters that a reply names at its top, as far as they are plain values of a sane size."""
    found = {name: document.get(name) for name in REPORTED}
    return {
        name: value
        for name, value in found.items()
        if (isinstance(value, int | float) and math.isfinite(value))
        or (isinstance(value, str) and 0 < len(value) < 200)
    }


def first_object(values: Any) -> dict[str, Any]:
    return as_object(values[0]) if isinstance(values, list) and values else {}


def as_object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def as_text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def as_count(value: Any) -> int | None:
    """A number of tokens that the column can hold; anything else is not one."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31 else None
