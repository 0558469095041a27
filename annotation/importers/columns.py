"""Any table, by saying which column is what: a column per criterion, or a record per criterion (long)."""

from collections import Counter
from collections.abc import Iterator, Sequence

from annotation.importers.plan import Raw, Reading, Source
from annotation.importers.settings import FILE_NAME, Settings
from annotation.importers.tables import damaged_in, field_names, field_of, rows_of, table_of
from annotation.importers.values import plain
from corpus.tables.faults import FaultError
from corpus.tables.table import Table

NAME = "columns"


def read(source: Source, settings: Settings) -> Reading:
    """Raises FaultError."""
    table = table_of(source, settings)
    names = field_names(table.header)
    by_file = settings.annotator == FILE_NAME and FILE_NAME not in names
    column = None if by_file else field_of(names, settings.annotator)
    time = field_of(names, settings.time)
    counts: Counter[str] = Counter()
    records = _rows(table, names, source.stem if by_file else "", column, time, counts)
    return Reading(
        f"{NAME}_{table.kind}",
        table.encoding,
        table.delimiter,
        records,
        names,
        counts,
        names_annotators=by_file or column is not None,
    )


def _rows(
    table: Table, names: Sequence[str], annotator: str, column: str | None, time: str | None, counts: Counter[str]
) -> Iterator[Raw]:
    for record, cells in rows_of(table, names, counts):
        if len(record.cells) < len(names):
            raise FaultError("short_record", record.line, str(record.number))
        raw = Raw(record.number, cells, annotator or (plain(cells[column]) if column else ""))
        if time is not None:
            raw.time = record.dates.get(names.index(time)) or cells[time].strip()
        raw.damaged = {name: reason for name, reason in damaged_in(record, names).items() if name != time}
        yield raw
