"""A file of recorded replies, one JSON object a line: the project's own log of calls, or what docs/replaying.md says.

Read as a stream, so that a file of a hundred megabytes takes the memory of its longest line.
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, BinaryIO

from corpus.storing import is_storable
from llmruns.storing import is_storable_json

MAX_BYTES = 100 * 1024 * 1024
MAX_LINE = 12 * 1024 * 1024  # bytes: a body of 5 MB, escaped, with the request beside it
MAX_RUN = 100
MAX_COST = Decimal("99999999.99999999")
CURRENCIES = ("RUB", "USD")
PARAMETERS = ("temperature", "top_p", "max_output_tokens")

# Field: what it must be. The names are those of the log of calls.
TEXTS = {
    "model": 100,
    "model_requested": 200,
    "model_reported": 200,
    "instrument": 60,
    "stimulus": 2_000,
    "finish_reason": 40,
    "currency": 3,
    "kind": 40,
    "state": 20,
    "purpose": 20,
    "outcome": 20,
    "final_answer": 0,  # its length is the planning's to judge
    "detail": 0,
}
REPLIES = ("raw_reply", "raw_body", "refusal")  # text that may hold what the database cannot
COUNTS = {
    "experiment_id": (1, 2**63 - 1),
    "run": (1, MAX_RUN),
    "position": (0, 32_767),
    "attempt": (1, 1_000),
    "instrument_version": (1, 2_147_483_647),
    "max_attempts": (1, 50),
    "runs_planned": (1, MAX_RUN),
    "http_status": (100, 999),
    "input_tokens": (0, 2_147_483_647),
    "cached_tokens": (0, 2_147_483_647),
    "output_tokens": (0, 2_147_483_647),
    "reasoning_tokens": (0, 2_147_483_647),
}
OBJECTS = ("parameters_asked", "parameters_sent", "parameters_used")
TIMES = ("sent_at", "ended_at")
AMOUNTS = ("cost", "cost_at_most")
# Of the log of calls, and of no use here.
PASSED_OVER = {
    "call", "experiment", "provider", "answer", "cost_unknown_because", "price", "prompt",
    "prompt_version", "imported", "judging_id", "judging",
}  # fmt: skip
KNOWN = {*TEXTS, *REPLIES, *COUNTS, *OBJECTS, *TIMES, *AMOUNTS, *PASSED_OVER, "request", "response", "escaped", "sent"}


Wrong = Callable[[str, str], Any]  # notes a problem and returns None


@dataclass(frozen=True, slots=True)
class Problem:
    """A code that `llmruns.replay_words` has words for; the line from 1; what exactly, as plain text."""

    code: str
    line: int
    detail: str = ""


@dataclass(slots=True)
class Line:
    """A line that is a record, or what is wrong with it. `values` has every known field, checked; None where absent."""

    number: int
    values: dict[str, Any] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    is_log: bool = False  # of the project's own log of calls
    call: int | None = None  # its number there
    digest: bytes = b""  # of the record, however its line is written


def read_lines(file: BinaryIO) -> Iterator[Line]:
    """Every line that is not blank. Never raises on what stands in it."""
    number = 0
    while raw := file.readline(MAX_LINE + 1):
        number += 1
        if len(raw) > MAX_LINE:
            while raw and not raw.endswith(b"\n"):
                raw = file.readline(MAX_LINE)
            yield _wrong(number, "line_too_long", str(MAX_LINE // 1024**2))
            continue
        if number == 1:
            raw = raw.removeprefix(b"\xef\xbb\xbf")
        if raw.strip():
            yield _line(number, raw)


def _wrong(number: int, code: str, detail: str = "") -> Line:
    return Line(number, problems=[Problem(code, number, detail)])


class _NotJsonError(ValueError):
    """Python's parser would let it pass."""


def _constant(name: str) -> None:
    raise _NotJsonError(f"{name} is no JSON")


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    unique = dict(pairs)
    if len(unique) != len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _value in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]  # add() is None
        raise _NotJsonError(f"{twice!r:.60} stands there twice")
    return unique


def _line(number: int, raw: bytes) -> Line:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        return _wrong(number, "not_utf8", str(error.start + 1))
    if "\x00" in text:
        return _wrong(number, "nul_in_line")
    try:
        value = json.loads(text, parse_constant=_constant, object_pairs_hook=_pairs)
    except RecursionError:
        return _wrong(number, "too_deep")
    except json.JSONDecodeError as error:
        return _wrong(number, "not_json", f"{error.pos + 1}: {text[error.pos : error.pos + 40].strip()}")
    except ValueError as error:  # a number of thousands of digits, or NaN
        return _wrong(number, "not_json", str(error)[:100])
    if not isinstance(value, dict):
        return _wrong(number, "not_an_object")
    try:
        return _checked(number, value)
    except RecursionError:
        return _wrong(number, "too_deep")


def _checked(number: int, value: dict[str, Any]) -> Line:
    line = Line(number, is_log="call" in value and "purpose" in value)
    if line.is_log and isinstance(value["call"], int) and 0 < value["call"] < 2**63:
        line.call = value["call"]
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"))
    line.digest = hashlib.sha256(canonical.encode()).digest()
    line.unknown = [name for name in value if name not in KNOWN]

    def wrong(code: str, detail: str) -> Any:
        line.problems.append(Problem(code, number, detail))
        return None

    def take(name: str) -> Any:
        return value.get(name)

    found = line.values
    for name, longest in TEXTS.items():
        found[name] = _text(name, take(name), longest, wrong)
    for name in REPLIES:
        found[name] = take(name)
        if found[name] is not None and not isinstance(found[name], str):
            found[name] = wrong("wrong_type", f"{name}: string")
    for name, (least, most) in COUNTS.items():
        found[name] = _count(name, take(name), least, most, wrong)
    for name in OBJECTS:
        found[name] = _object(name, take(name), wrong)
    for name in TIMES:
        found[name] = _time(name, take(name), wrong)
    for name in AMOUNTS:
        found[name] = _amount(name, take(name), wrong)
    found["request"] = _object("request", take("request"), wrong)
    found["response"] = take("response")
    found["escaped"] = take("escaped") is True
    found["sent"] = take("sent") is not False
    currency = found["currency"]
    if currency not in (None, "", *CURRENCIES):
        found["currency"] = wrong("unknown_currency", f"{currency}; {', '.join(CURRENCIES)}")
    elif any(found[name] for name in AMOUNTS) and not currency:
        wrong("no_currency", "currency")
    return line


def _text(name: str, value: Any, longest: int, wrong: Wrong) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        return wrong("wrong_type", f"{name}: string")
    if not is_storable(value):
        return wrong("unstorable", name)
    if longest and len(value) > longest:
        return wrong("too_long", f"{name}: {longest}")
    return value


def _count(name: str, value: Any, least: int, most: int, wrong: Wrong) -> int | None:
    if value is None:
        return None
    if isinstance(value, float) and value.is_integer():  # pandas writes 3 as 3.0 where a column has gaps
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return wrong("wrong_type", f"{name}: integer")
    if not least <= value <= most:
        return wrong("out_of_range", f"{name}: {least}–{most}")
    return value


def _object(name: str, value: Any, wrong: Wrong) -> dict[str, Any] | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        return wrong("wrong_type", f"{name}: object")
    if not is_storable_json(value):
        return wrong("unstorable", name)
    return value


def _time(name: str, value: Any, wrong: Wrong) -> datetime | None:
    if value is None or value == "":
        return None
    try:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is None:
            return wrong("no_time_zone", name)
        return moment.astimezone(UTC)  # what a time zone takes out of the years 1 to 9999 overflows here
    except (TypeError, ValueError, OverflowError):
        return wrong("wrong_type", f"{name}: 2024-05-01T12:00:00+03:00")


def _amount(name: str, value: Any, wrong: Wrong) -> Decimal | None:
    if value is None or value == "":
        return None
    try:
        amount = Decimal(str(value)) if isinstance(value, str | int | float) and not isinstance(value, bool) else None
        if amount is None or not amount.is_finite():
            return wrong("wrong_type", f"{name}: number")
        if not 0 <= amount <= MAX_COST:
            return wrong("out_of_range", f"{name}: 0–{MAX_COST}")
        return amount.quantize(Decimal("0.00000001"))
    except (InvalidOperation, ValueError):
        return wrong("wrong_type", f"{name}: number")
