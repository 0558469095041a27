"""One cell or JSON value as what was chosen in it."""

import json
import math
import re
from typing import Any

from annotation.importers.plan import Chosen
from corpus.storing import storable_text

_NUMBER = re.compile(r"[+-]?\d{1,9}([.,]\d{1,9})?")


def plain(value: Any) -> str:
    """A value of the file as text that can be stored; nothing for what is no text or number."""
    if isinstance(value, str):
        return storable_text(value.strip())[0]
    if isinstance(value, bool) or value is None:
        return ""
    if isinstance(value, int):
        return str(value) if abs(value) < 10**18 else ""
    if isinstance(value, float):
        return f"{value:.15g}" if math.isfinite(value) else ""
    return ""


def chosen_in(value: Any) -> Chosen:
    """What a cell of a table, or a value of JSON-MIN, says was chosen.

    Label Studio writes one choice as text and several as `{"choices": […]}`, in CSV as that JSON in the cell; spans
    and boxes are lists of objects.
    """
    if isinstance(value, str):
        text = value.strip()
        if text[:1] in ("{", "["):
            try:
                return chosen_in(json.loads(text)) if len(text) < 10_000 else None
            except (ValueError, RecursionError):
                return None
        return (plain(text),) if text else ()
    if value is None:
        return ()
    if isinstance(value, bool):
        return (str(value).lower(),)
    if isinstance(value, int | float):
        text = plain(value)
        return (text,) if text else None
    if isinstance(value, list):
        return _several(value)
    if isinstance(value, dict) and len(value) == 1:
        (kind, inner), *_rest = value.items()
        if kind == "choices" and isinstance(inner, list):
            return _several(inner)
        if kind in ("rating", "number") and isinstance(inner, int | float):
            return chosen_in(inner)
    return None


def _several(values: list[Any]) -> Chosen:
    texts = tuple(plain(value) for value in values)
    return texts if all(texts) else None


def number_in(text: str) -> float | None:
    """The number that a text is; None where it is none."""
    return float(text.strip().replace(",", ".")) if _NUMBER.fullmatch(text.strip()) else None


def person(value: Any) -> str:
    """Who annotated: a number, an address, or an object that has one of them. Empty: nobody is named."""
    if isinstance(value, dict):
        for name in ("email", "username", "id"):
            if found := _as_it_stands(value.get(name)):
                return found
        return ""
    return _as_it_stands(value)


def _as_it_stands(value: Any) -> str:
    """A name that cannot be stored stays one, so that its records are left out and nobody becomes somebody else."""
    return value.strip() if isinstance(value, str) else plain(value)


def seconds_in(value: Any) -> float | None:
    if isinstance(value, str):
        value = number_in(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) and 0 <= value < 10_000_000 else None
