"""Any table, by saying which column is what: a column per criterion, or a record per criterion (long)."""

from collections import Counter
from collections.abc import Iterator, Sequence

from annotation.importers.plan import Raw, Reading, Source
from annotation.importers.settings import FILE_NAME, Settings
from annotation.importers.tables import damaged_in, field_names, field_of, rows_of, table_of
from annotation.importers.values import person
from corpus.tables.faults import FaultError
from corpus.tables.table import Record

NAME = "columns"


def read(source: Source, settings: Settings) -> Reading:
    """Raises FaultError."""
    table = table_of(source, settings)
    names = field_names(table.header)
    by_file = settings.annotator == FILE_NAME and FILE_NAME not in names
    column = None if by_file else field_of(names, settings.annotator)
    time = field_of(names, settings.time)
    counts: Counter[str] = Counter()
    escaped: set[int] = set()
    cells = rows_of(table, names, counts, escaped)
    records = _rows(cells, names, source.stem if by_file else "", column, time)
    return Reading(
        f"{NAME}_{table.kind}",
        table.encoding,
        table.delimiter,
        records,
        names,
        counts,
        names_annotators=by_file or column is not None,
        escaped=escaped,
    )


def _rows(
    rows: Iterator[tuple[Record, dict[str, str]]],
    names: Sequence[str],
    annotator: str,
    column: str | None,
    time: str | None,
) -> Iterator[Raw]:
    for record, cells in rows:
        if len(record.cells) < len(names):
            raise FaultError("short_record", record.line, str(record.number))
        raw = Raw(record.number, cells, annotator or (person(cells[column]) if column else ""))
        if time is not None:
            raw.time = record.dates.get(names.index(time)) or cells[time].strip()
        raw.damaged = {name: reason for name, reason in damaged_in(record, names).items() if name != time}
        yield raw
