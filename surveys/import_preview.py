"""The first look at a sent file: what it is, its first rows, and what its columns may be."""

from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from corpus.tables.faults import Fault, FaultError
from corpus.tables.table import Table, folded, is_workbook, open_table
from corpus.tables.workbook import sheet_names
from surveys.importers.checks import MAX_CONSENT, Asked, says_yes
from surveys.importers.formats import FORMATS, recognised
from surveys.importers.items import Item, Items
from surveys.importers.plan import Settings
from surveys.importers.toloka import with_defaults

SAMPLE_ROWS = 3
MAX_VALUES = 12  # of a consent column: more than that is no consent


@dataclass
class Preview:
    format: str = "columns"
    kind: str = ""
    encoding: str | None = None
    delimiter: str | None = None
    sheets: list[str] = field(default_factory=list)
    header: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    consents: list[str] = field(default_factory=list)  # what stands in the consent column
    asked: dict[int, list[str]] = field(default_factory=dict)  # by column that seems to ask for consent: what was said
    fault: Fault | None = None


def preview_of(data: bytes, format_name: str, chosen: dict[str, Any]) -> Preview:
    """A fault of the file is in `fault`; what was seen before it is there all the same."""
    preview = Preview()
    try:
        if is_workbook(data):
            preview.sheets = sheet_names(data)
        settings = Settings.read(chosen)
        table = open_table(data, encoding=settings.encoding, delimiter=settings.delimiter, sheet=settings.sheet)
        found = FORMATS[format_name] if format_name else recognised(table.header) or FORMATS["columns"]
        preview.format, preview.kind = found.name, table.kind
        preview.encoding, preview.delimiter, preview.header = table.encoding, table.delimiter, table.header
        _rows(table, preview, settings.consent_column)
    except FaultError as error:
        preview.fault = error.fault
    return preview


def suggested(preview: Preview, items: list[Item]) -> dict[str, Any]:
    """Settings that the header itself suggests; the person sees them in the table and can change them."""
    table = Table(preview.encoding, preview.delimiter, preview.header, iter(()))
    if preview.format == "toloka":
        try:
            chosen = with_defaults(table, Settings())
        except FaultError:
            return {}
        named = {"item_column": chosen.item_column, "lemmas_column": chosen.lemmas_column}
        named["answer_column"] = chosen.answer_column
        return {name: table.column(column) for name, column in named.items() if column is not None}
    if preview.format not in ("google_forms", "columns"):
        return {}
    known = Items(items)
    asked = {str(place): known.asked(name) for place, name in enumerate(preview.header)}
    columns = {place: item.number for place, item in asked.items() if item and not item.is_practice}
    chosen_columns: dict[str, Any] = {"answer_columns": columns} if columns else {}
    if preview.format == "google_forms":
        chosen_columns["timestamp_column"] = 0
    for place, said in preview.asked.items():
        if str(place) not in columns:
            # Who said no must not come in because nobody looked at the column.
            chosen_columns |= {"consent_column": place, "consent_yes": [value for value in said if says_yes(value)]}
            break
    return chosen_columns


def _rows(table: Table, preview: Preview, consent: str | int | None) -> None:
    place = table.column(consent) if consent is not None else None
    values: dict[str, str] = {}
    asked = Asked(table.header)
    for record in table.records if place is not None or asked.values else islice(table.records, 200):
        if record.is_blank:
            continue
        if len(preview.rows) < SAMPLE_ROWS:
            preview.rows.append([cell[:120] for cell in record.cells])
        elif place is None and not asked.values:
            return
        asked.note(record)
        if place is not None and place < len(record.cells) and len(values) <= MAX_VALUES:
            values.setdefault(folded(record.cells[place]), record.cells[place].strip()[:MAX_CONSENT])
    preview.asked = asked.consents()
    preview.consents = [value for value in values.values() if value][:MAX_VALUES]
