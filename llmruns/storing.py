"""What came over the wire, in a form that PostgreSQL takes: text and jsonb refuse U+0000 and lone surrogates."""

import json
import re
from typing import Any

from corpus.storing import storable_text

DEEPEST = 100  # levels of nesting; whoever walks or prints a document can do so
BODY_KEPT = 100_000  # characters of a body that is no JSON
_ESCAPED_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


def storable_body(body: bytes) -> tuple[str, bool]:
    """The beginning of a body as text; bytes that are no UTF-8 written as \\xff."""
    text = body.decode("utf-8", "backslashreplace")
    stored, escaped = storable_text(text[:BODY_KEPT])
    return stored, escaped or text.encode("utf-8", "replace") != body


def is_storable_json(document: Any) -> bool:
    """False where jsonb would refuse it: NUL, lone surrogates, NaN, infinity, nesting too deep, or no document."""
    if document is None:
        return False
    try:
        text = json.dumps(document, ensure_ascii=False, allow_nan=False)
        text.encode("utf-8")
    except (ValueError, RecursionError):
        return False
    return _ESCAPED_NUL.search(text) is None and not is_deeper(document, DEEPEST)


def is_deeper(document: Any, levels: int) -> bool:
    """Whether lists and objects are nested in one another more than so many levels."""
    level = [document]
    for _ in range(levels + 1):
        level = [one for one in level if isinstance(one, dict | list)]
        if not level:
            return False
        level = [child for one in level for child in (one.values() if isinstance(one, dict) else one)]
    return True
