"""The formats by name, and what a file is, seen from the file itself."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from annotation.importers import (
    columns,
    doccano_csv,
    doccano_jsonl,
    label_studio_csv,
    label_studio_json,
    label_studio_json_min,
)
from annotation.importers.documents import elements, lines, looks_like_json, text_of
from annotation.importers.plan import Reading, Source
from annotation.importers.settings import Settings
from annotation.importers.tables import table_of
from corpus.tables.faults import FaultError


@dataclass(frozen=True)
class Format:
    name: str
    read: Callable[[Source, Settings], Reading]


FORMATS = {
    module.NAME: Format(module.NAME, module.read)
    for module in (
        label_studio_json,
        label_studio_json_min,
        label_studio_csv,
        doccano_jsonl,
        doccano_csv,
        columns,
    )
}
_DOCUMENTS: Sequence[Any] = (label_studio_json, label_studio_json_min, doccano_jsonl)
_TABLES: Sequence[Any] = (label_studio_csv, doccano_csv)


def recognised(source: Source, settings: Settings) -> Format:
    """The format that the file shows: by its first record, or its header; any table is one of columns.

    Raises FaultError: `not_an_export` for JSON of another make, and whatever makes the file unreadable.
    """
    begins = looks_like_json(source.data)
    if not begins:
        header = table_of(source, settings).header
        return FORMATS[next((module.NAME for module in _TABLES if module.recognises(header)), columns.NAME)]
    text, _encoding = text_of(source.data, settings.encoding)
    _number, first = next(elements(text) if begins == "[" else lines(text), (0, None))
    if first is None:
        raise FaultError("no_records")
    for module in _DOCUMENTS:
        if module.recognises(first):
            return FORMATS[module.NAME]
    raise FaultError("not_an_export", 1)


def opened(source: Source, format_name: str | None, settings: Settings) -> Reading:
    """Raises FaultError."""
    if source.fault:
        raise FaultError(source.fault.code, source.fault.line, source.fault.detail)
    format_ = FORMATS[format_name] if format_name else recognised(source, settings)
    return format_.read(source, settings)
