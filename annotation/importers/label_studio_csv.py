"""Label Studio's CSV and TSV: a row per annotation."""

from collections import Counter
from collections.abc import Iterator, Sequence

from annotation.importers.label_studio_json_min import flat
from annotation.importers.plan import Raw, Reading, Source
from annotation.importers.settings import Settings
from annotation.importers.tables import damaged_in, field_names, rows_of, table_of
from corpus.tables.table import Table

NAME = "label_studio_csv"


def recognises(header: Sequence[str]) -> bool:
    return {"annotation_id", "annotator"} <= {name.strip() for name in header}


def read(source: Source, settings: Settings) -> Reading:
    table = table_of(source, settings)
    names = field_names(table.header)
    counts: Counter[str] = Counter()
    escaped: set[int] = set()
    records = _rows(table, names, counts, escaped)
    return Reading(NAME, table.encoding, table.delimiter, records, names, counts, escaped=escaped)


def _rows(table: Table, names: Sequence[str], counts: Counter[str], escaped: set[int]) -> Iterator[Raw]:
    for record, cells in rows_of(table, names, counts, escaped):
        raw = flat(record.number, cells)
        raw.damaged = damaged_in(record, names)
        yield raw
