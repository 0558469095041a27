"""What the importers of tables share: fields by the names of their columns."""

from collections import Counter
from collections.abc import Iterator, Sequence

from annotation.importers.plan import Source
from annotation.importers.settings import Field, Settings
from corpus.storing import is_storable, storable_text
from corpus.tables.faults import FaultError
from corpus.tables.table import Record, Table, folded, open_table


def table_of(source: Source, settings: Settings) -> Table:
    return open_table(source.data, encoding=settings.encoding, delimiter=settings.delimiter, sheet=settings.sheet)


def field_names(header: Sequence[str]) -> list[str]:
    """The headers; the position from 0 stands for one that is blank or there twice."""
    known = Counter(folded(name) for name in header)
    return [
        storable_text(name.strip())[0] if name.strip() and known[folded(name)] == 1 else str(place)
        for place, name in enumerate(header)
    ]


def field_of(names: Sequence[str], field: Field | None) -> str | None:
    """The field's own spelling; a number is a position. Raises FaultError `missing_column`."""
    if field is None:
        return None
    if isinstance(field, str):
        for name in names:
            if folded(name) == folded(field):
                return name
    if (isinstance(field, int) or (field.isascii() and field.isdecimal())) and 0 <= int(field) < len(names):
        return names[int(field)]
    raise FaultError("missing_column", 1, str(field))


def rows_of(
    table: Table, names: Sequence[str], counts: Counter[str], escaped: set[int]
) -> Iterator[tuple[Record, dict[str, str]]]:
    """Every record that has anything in it, with its cells by field. `escaped` as in `Reading`."""
    for record in table.records:
        if record.is_blank:
            counts["records"] += 1
            counts["blank_records"] += 1
        else:
            if not all(map(is_storable, record.cells)):
                escaped.add(record.number)
            yield record, dict(zip(names, record.cells, strict=False))


def damaged_in(record: Record, names: Sequence[str]) -> dict[str, str]:
    return {names[place]: reason for place, reason in record.damaged.items() if place < len(names)}
