"""doccano's CSV: labels of an example in one cell, joined by #."""

from collections import Counter
from collections.abc import Iterator, Sequence

from annotation.importers.doccano_jsonl import MAX_COMMENT, annotator_of
from annotation.importers.plan import Raw, Reading, Source
from annotation.importers.settings import Settings
from annotation.importers.tables import field_names, rows_of, table_of
from annotation.importers.values import plain
from corpus.tables.table import Table

NAME = "doccano_csv"


def recognises(header: Sequence[str]) -> bool:
    return {"id", "text", "label"} <= {name.strip() for name in header}


def read(source: Source, settings: Settings) -> Reading:
    """Its records raise FaultError `annotator_unknown` where the project's members share their labels."""
    table = table_of(source, settings)
    names = field_names(table.header)
    counts: Counter[str] = Counter()
    escaped: set[int] = set()
    records = _rows(table, names, source, settings, counts, escaped)
    return Reading(NAME, table.encoding, table.delimiter, records, names, counts, uses_labels=True, escaped=escaped)


def _rows(
    table: Table,
    names: Sequence[str],
    source: Source,
    settings: Settings,
    counts: Counter[str],
    escaped: set[int],
) -> Iterator[Raw]:
    annotator = annotator_of(source, settings)
    for record, cells in rows_of(table, names, counts, escaped):
        labels = tuple(plain(label) for label in cells.get("label", "").split("#") if label.strip())
        comment = plain(cells.get("Comments"))[:MAX_COMMENT]
        yield Raw(record.number, cells, annotator, verdicts={}, labels=labels, comment=comment)
