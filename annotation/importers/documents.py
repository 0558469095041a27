"""JSON that others send: read an element at a time, never trusted to be what it says."""

import json
import re
from collections.abc import Iterator
from typing import Any, NoReturn

from corpus.storing import storable_text
from corpus.tables.decoding import encoding_of, without_mark
from corpus.tables.faults import FaultError
from corpus.tables.table import refuse_what_is_no_text_file

MAX_BYTES = 200 * 1024 * 1024  # a Label Studio export has about a kilobyte per annotation
_BLANK = re.compile(r"[ \t\r\n]*")
_ESCAPED = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")  # how NUL, and half a pair of surrogates, can get in


class _DoubledKeyError(Exception):
    pass


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _value in pairs]
        raise _DoubledKeyError(storable_text(next(name for name in names if names.count(name) > 1))[0][:80])
    return found


class _NoNumberError(ValueError):
    pass


def _no_number(text: str) -> NoReturn:
    raise _NoNumberError(f"{text} is no number of JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_no_number)


def text_of(data: bytes, encoding: str | None) -> tuple[str, str]:
    """The file's text without a byte-order mark, and its encoding. Raises FaultError."""
    if len(data) > MAX_BYTES:
        raise FaultError("too_large", detail=str(MAX_BYTES))
    if not data.strip(b"\0 \t\r\n"):
        raise FaultError("empty")
    refuse_what_is_no_text_file(data)
    name = encoding_of(data, encoding)
    skip, codec = without_mark(data, name)
    return data[skip:].decode(codec), name


def looks_like_json(data: bytes) -> str:
    """`[` or `{` where the file begins so, whatever its encoding; else nothing."""
    head = data[:64].removeprefix(b"\xef\xbb\xbf").removeprefix(b"\xff\xfe").removeprefix(b"\xfe\xff")
    first = head.replace(b"\0", b"").lstrip(b" \t\r\n")[:1].decode("ascii", errors="replace")
    return first if first and first in "[{" else ""


def elements(text: str, escaped: set[int] | None = None) -> Iterator[tuple[int, Any]]:
    """The elements of the one array that the text is, with their numbers from 1. Raises FaultError.

    `escaped` gets the numbers of those that hold what no database can keep.
    """
    place = _past_blank(text, 0)
    if text[place : place + 1] != "[":
        raise FaultError("not_an_export", 1)
    place = _past_blank(text, place + 1)
    number = 0
    while text[place : place + 1] != "]" or number:
        number += 1
        begin = place
        found, place = _decoded(text, begin)
        _note(escaped, number, text, begin, place, found)
        yield number, found
        place = _past_blank(text, place)
        sign = text[place : place + 1]
        if sign == "]":
            break
        if sign != ",":
            raise _broken(text, place, "a comma or the end of the list is missing")
        place = _past_blank(text, place + 1)
    rest = _past_blank(text, place + 1)
    if rest < len(text):
        raise _broken(text, rest, "something follows the list")


def lines(text: str, escaped: set[int] | None = None) -> Iterator[tuple[int, Any]]:
    """JSON Lines: a value per line, numbered from 1; None for a blank line; `escaped` as above. Raises FaultError."""
    start = 0
    number = 0
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        number += 1
        begin = _past_blank(text, start)
        if begin >= end:
            yield number, None
        else:
            found, after = _decoded(text, begin)
            rest = _past_blank(text, after)
            if after > end:
                raise FaultError("bad_json", number, "a record is one line")
            if rest < end:
                raise _broken(text, rest, "something follows the record")
            _note(escaped, number, text, begin, after, found)
            yield number, found
        start = end + 1


def _note(escaped: set[int] | None, number: int, text: str, begin: int, end: int, found: Any) -> None:
    if escaped is None or not _ESCAPED.search(text, begin, end):
        return
    left = [found]  # a stack of its own: values nest deep
    while left:
        value = left.pop()
        if isinstance(value, dict):
            left += [*value, *value.values()]
        elif isinstance(value, list):
            left += value
        elif isinstance(value, str) and storable_text(value)[1]:
            escaped.add(number)
            return


def _decoded(text: str, place: int) -> tuple[Any, int]:
    """Raises FaultError: `doubled_key`, `too_deep`, `truncated`, `bad_json`, `endless_number`."""
    try:
        return _DECODER.raw_decode(text, place)
    except _DoubledKeyError as error:
        raise FaultError("doubled_key", _line(text, place), str(error)) from error
    except RecursionError as error:
        raise FaultError("too_deep", _line(text, place)) from error
    except json.JSONDecodeError as error:
        raise _broken(text, error.pos, error.msg) from error
    except ValueError as error:  # NaN, or a number of thousands of digits
        if isinstance(error, _NoNumberError):
            raise FaultError("bad_json", _line(text, place), str(error)[:100]) from error
        raise FaultError("endless_number", _line(text, place)) from error


def _broken(text: str, place: int, why: str) -> FaultError:
    line = _line(text, place)
    if place >= len(text.rstrip()) - 6 or why.startswith("Unterminated"):
        return FaultError("truncated", line)
    return FaultError("bad_json", line, why)


def _line(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


def _past_blank(text: str, place: int) -> int:
    found = _BLANK.match(text, place)
    return found.end() if found else place
