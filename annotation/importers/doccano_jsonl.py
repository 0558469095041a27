"""doccano's JSONL (or JSON): one file per annotator, an example per line, labels that belong to no criterion."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from annotation.importers.documents import elements, lines, looks_like_json, text_of
from annotation.importers.plan import Chosen, Raw, Reading, Source
from annotation.importers.settings import FILE_NAME, Settings
from annotation.importers.values import plain
from corpus.tables.faults import FaultError

NAME = "doccano_jsonl"
SHARED = ("all", "unknown")
"""What doccano calls the file of a project in which annotators share their labels: nobody is named."""
MAX_COMMENT = 2_000


def recognises(first: Any) -> bool:
    return isinstance(first, dict) and any(isinstance(first.get(name), list) for name in ("label", "labels"))


def annotator_of(source: Source, settings: Settings) -> str:
    """Whoever the file is named after. Raises FaultError `annotator_unknown`."""
    if settings.annotator not in (None, FILE_NAME):
        raise FaultError("bad_setting", detail="annotator")
    if not source.stem or (settings.annotator is None and source.stem.lower() in SHARED):
        raise FaultError("annotator_unknown", detail=source.name[:200])
    return source.stem


def read(source: Source, settings: Settings) -> Reading:
    """Raises FaultError."""
    text, encoding = text_of(source.data, settings.encoding)
    escaped: set[int] = set()
    found = elements(text, escaped) if looks_like_json(source.data) == "[" else lines(text, escaped)
    counts: Counter[str] = Counter()
    records = _records(found, source, settings, counts)
    return Reading(NAME, encoding, None, records, counts=counts, uses_labels=True, escaped=escaped)


def _records(
    found: Iterator[tuple[int, Any]], source: Source, settings: Settings, counts: Counter[str]
) -> Iterator[Raw]:
    annotator = annotator_of(source, settings)  # asked for here, when it is known what the file is
    for number, record in found:
        if record is None:
            counts["records"] += 1
            counts["blank_records"] += 1
            continue
        if not isinstance(record, dict):
            raise FaultError("not_an_export", number)
        given = record.get("label", record.get("labels"))
        raw = Raw(number, _data(record), annotator, verdicts={}, labels=_labels(given))
        raw.comment = _comment(record.get("Comments"))
        yield raw


def _data(record: dict[str, Any]) -> dict[str, Any]:
    """What the project was given with the texts is merged into the record; older versions keep it under `meta`."""
    meta = record.get("meta")
    return {**meta, **record} if isinstance(meta, dict) else record


def _labels(given: Any) -> Chosen:
    """No list, or an empty one: nobody opened the example. A span is `[start, end, label]`."""
    if not isinstance(given, list):
        return () if given is None else None
    labels = tuple(plain(label) for label in given)
    return labels if all(labels) else None


def _comment(given: Any) -> str:
    if not isinstance(given, list):
        return ""
    return "\n".join(filter(None, map(plain, given)))[:MAX_COMMENT]
