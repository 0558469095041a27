"""What a model's reply says, or the kind of its failure.

Strict on purpose: a repaired reply is an answer that we wrote. What is tolerated is what surrounds the JSON:
white space, a byte-order mark, one code fence around the whole reply, reasoning that ends in </think>.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

ErrorKind = Literal["format", "truncated", "empty", "refused", "filtered"]

KEY = "results"
_AROUND = "\ufeff"
_THOUGHT_END = "</think>"
_FENCE = re.compile(r"```(?:json)?(?![^\s{])(.*)```", re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Reply:
    """Exactly one of the two is None. An empty `answer` is one: format kept, no word given."""

    answer: str | None
    error: ErrorKind | None


def parse_reply(raw: str) -> Reply:
    """The answer in a reply, as parsed: nothing in it is decoded further, trimmed or repaired.

    Right is a strict JSON object whose key `results` holds one string, or a list of one element that is a
    string or an object with one string value; other keys do not matter. Duplicate keys, lone surrogates and
    NUL anywhere in the object are wrong. The whole is tried first and wrapping taken off only on failure,
    since fences and </think> also occur inside strings. `error` is `empty` for a blank reply (or nothing
    after the reasoning), else `format`. Never raises on a str. Source: DESIGN, "A model's reply".
    """
    parsed, error = reply_object(raw)
    if parsed is None:
        return Reply(None, error)
    answer = _answer(parsed)
    return Reply(None, "format") if answer is None else Reply(answer, None)


def reply_object(raw: str) -> tuple[dict[str, Any] | None, ErrorKind]:
    """The one strict JSON object that a reply is, numbers in it as floats; without one the kind of its failure."""
    whole = _trim(raw)
    if not whole:
        return None, "empty"
    for candidate in _candidates(whole):
        parsed = _load(candidate)
        if parsed is not None:
            return parsed, "format"
    return None, "empty" if whole.endswith(_THOUGHT_END) else "format"


def classify_reply(raw: str | None, finish_reason: str | None, refusal: str | None = None) -> Reply:
    """The answer of a chat completion, or the kind of failure that it costs an attempt with.

    `raw` is message.content (None where the provider sends null), `finish_reason` that of the
    chat-completions protocol (stop, length, content_filter), `refusal` is message.refusal. A refusal or a
    filter stands above the content, which is then a remnant. A reply that parses is an answer even at the
    length limit; one that does not is truncated. A refusal written as plain content is `format`: nobody
    judges what it means.
    """
    stopped = stopped_kind(finish_reason, refusal)
    if stopped is not None:
        return Reply(None, stopped)
    reply = parse_reply(raw or "")
    if reply.error is not None and finish_reason == "length":
        return Reply(None, "truncated")
    return reply


def stopped_kind(finish_reason: str | None, refusal: str | None) -> ErrorKind | None:
    """The kind of failure that stands above whatever the content is."""
    if refusal:
        return "refused"
    return "filtered" if finish_reason == "content_filter" else None


def _trim(text: str) -> str:
    """Without white space and byte-order marks around."""
    start, end = 0, len(text)
    while start < end and (text[start].isspace() or text[start] == _AROUND):
        start += 1
    while end > start and (text[end - 1].isspace() or text[end - 1] == _AROUND):
        end -= 1
    return text[start:end]


def _candidates(whole: str) -> Iterator[str]:
    """What may be the JSON: the whole, then the rest after each end of reasoning, each also out of its fence.

    Every </think> is tried, the first first: the reasoning may speak of the tag, and so may the answer.
    """
    yield from _unfenced(whole)
    end = whole.find(_THOUGHT_END)
    while end != -1:
        yield from _unfenced(_trim(whole[end + len(_THOUGHT_END) :]))
        end = whole.find(_THOUGHT_END, end + 1)


def _unfenced(text: str) -> Iterator[str]:
    if text.startswith("{"):
        yield text
    elif (fence := _FENCE.fullmatch(text)) is not None:
        yield _trim(fence[1])


class _StrictnessError(ValueError):
    """Python's parser would let it pass."""


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    unique = dict(pairs)
    if len(unique) != len(pairs):
        raise _StrictnessError("duplicate key")
    return unique


def _constant(name: str) -> None:
    raise _StrictnessError(name)  # NaN and Infinity are not JSON


def _load(text: str) -> dict[str, Any] | None:
    """The JSON object that the text is, or None."""
    try:
        # Integers become floats because int() refuses thousands of digits, and no number is an answer.
        value = json.loads(text, object_pairs_hook=_pairs, parse_constant=_constant, parse_int=float)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and _is_storable(value) else None


def _is_storable(value: Any) -> bool:
    """No string inside holds NUL or a lone surrogate. A stack of its own: replies nest deep."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            if "\x00" in item or _SURROGATE.search(item):
                return False
        elif isinstance(item, dict):
            stack.extend(item)
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)
    return True


def _answer(parsed: dict[str, Any]) -> str | None:
    """The one string under `results`; None where there is none or a choice of several."""
    found = parsed.get(KEY)
    if isinstance(found, list) and len(found) == 1:
        found = found[0]
        if isinstance(found, dict):
            strings = [value for value in found.values() if isinstance(value, str)]
            found = strings[0] if len(strings) == 1 else None
    return found if isinstance(found, str) else None


LENIENT_CHARACTERS = 20_000  # what is repaired: the repair of a long reply takes seconds


def lenient_answer(raw: str) -> str | None:
    """The answer that a lenient reader (json-repair) would find in a reply, or None. Shown beside the strict verdict.

    Never scored: a repaired reply is partly an answer of ours.
    """
    repair = import_module("json_repair")  # when used: no worker needs it
    try:
        value = repair.loads(raw.rpartition(_THOUGHT_END)[2][:LENIENT_CHARACTERS])
    except (ValueError, RecursionError):
        return None
    if isinstance(value, list):
        value = next((one for one in value if isinstance(one, dict) and KEY in one), None)
    return _answer(value) if isinstance(value, dict) and _is_storable(value) else None
