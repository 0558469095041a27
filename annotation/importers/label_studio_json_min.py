"""Label Studio's JSON-MIN: a flat record per annotation, with the task's data and the choices side by side."""

from collections.abc import Iterator
from typing import Any

from annotation.importers.documents import elements, text_of
from annotation.importers.plan import Raw, Reading, Source
from annotation.importers.settings import Settings
from annotation.importers.values import person, plain, seconds_in
from corpus.tables.faults import FaultError

NAME = "label_studio_json_min"
OWN = ("annotator", "annotation_id", "created_at", "updated_at", "lead_time", "id")
"""What Label Studio adds to the data and the choices."""


def recognises(first: Any) -> bool:
    return isinstance(first, dict) and "annotator" in first and "annotation_id" in first


def read(source: Source, settings: Settings) -> Reading:
    text, encoding = text_of(source.data, settings.encoding)
    escaped: set[int] = set()
    return Reading(NAME, encoding, None, _records(text, escaped), escaped=escaped)


def _records(text: str, escaped: set[int]) -> Iterator[Raw]:
    for number, record in elements(text, escaped):
        if not isinstance(record, dict):
            raise FaultError("not_an_export", detail=str(number))
        yield flat(number, record)


def flat(number: int, record: dict[str, Any]) -> Raw:
    """JSON-MIN and CSV name the same things alike. Whether an annotation is cancelled they do not say."""
    return Raw(
        number,
        record,
        annotator=person(record.get("annotator")),
        time=plain(record.get("updated_at")) or plain(record.get("created_at")),
        seconds=seconds_in(record.get("lead_time")),
    )
