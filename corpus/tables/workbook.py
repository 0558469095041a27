"""XLSX, read a row at a time, without trusting what the archive says of itself."""

import io
import re
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from typing import IO, Any

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import iterparse
from openpyxl import load_workbook

from corpus.tables.faults import FaultError

MAX_UNPACKED = 200 * 1024 * 1024  # of all parts that are read
MAX_RATIO = 300  # of one part larger than RATIO_FROM; real sheets come to 10 to 60
RATIO_FROM = 4 * 1024 * 1024
MAX_PARTS = 2_000
MAX_ROWS = 200_000
MAX_COLUMNS = 300  # each is a field of the form that says what it is; a request may have 1,000
# The parts that hold cells; pictures, macros and the rest are not even unpacked.
_READ = re.compile(r"(\[Content_Types\]\.xml|_rels/\.rels|xl/.*\.(xml|rels)|docProps/.*\.xml)")
_NOT_READ = re.compile(r"xl/(media|drawings|charts|embeddings|printerSettings|theme|externalLinks|pivot\w*)/")


@dataclass(slots=True)
class Row:
    line: int
    cells: list[str]
    dates: dict[int, datetime] = field(default_factory=dict)
    damaged: dict[int, str] = field(default_factory=dict)  # what a spreadsheet has made unreadable, by reason


def sheet_names(data: bytes) -> list[str]:
    """The visible sheets that hold anything. Raises FaultError."""
    with _clean(data) as archive, _book(archive) as book:
        return [sheet.title for sheet in _sheets(book) if not _is_empty(sheet)]


def sheet_rows(data: bytes, chosen: str | None) -> Iterator[Row]:
    """The rows of the chosen sheet, or of the only one that holds anything.

    Raises FaultError: `not_a_table`, `zip_bomb`, `choose_sheet`, `no_sheet`, `merged_cells`, `too_many_rows`,
    `too_many_columns`, `formula_without_value`.
    """
    with _clean(data) as archive, _book(archive) as values, _book(archive, formulas=True) as formulas:
        full = [sheet for sheet in _sheets(values) if chosen is not None or not _is_empty(sheet)]
        if not full:
            return
        names = [sheet.title for sheet in full]
        if chosen is not None and chosen not in names:
            raise FaultError("no_sheet", detail=", ".join(names))
        if chosen is None and len(names) > 1:
            raise FaultError("choose_sheet", detail=", ".join(names))
        sheet = full[0] if chosen is None else full[names.index(chosen)]
        _refuse_merged(archive, sheet)
        twin = formulas[sheet.title]
        twin.reset_dimensions()
        both = zip(sheet.iter_rows(min_row=1, min_col=1), twin.iter_rows(min_row=1, min_col=1), strict=True)
        for line, (row, source) in enumerate(both, start=1):
            if line > MAX_ROWS:
                raise FaultError("too_many_rows", line, str(MAX_ROWS))
            if len(row) > MAX_COLUMNS:
                raise FaultError("too_many_columns", line, str(MAX_COLUMNS))
            yield _row(line, row, source)


def _row(line: int, row: tuple[Any, ...], source: tuple[Any, ...]) -> Row:
    found = Row(line, [])
    for index, (cell, formula) in enumerate(zip(row, source, strict=True)):
        value = cell.value
        if formula.data_type == "f" and value is None:
            raise FaultError("formula_without_value", line, formula.coordinate)
        if cell.data_type == "e":
            found.damaged[index] = "spreadsheet_error"
        elif isinstance(value, date | datetime | time | timedelta):
            found.damaged[index] = "turned_into_date"
            if isinstance(value, date):  # a datetime is one too
                value = found.dates[index] = _whole_seconds(value)
        found.cells.append(_text(value))
    return found


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _whole_seconds(value: date) -> datetime:
    """Excel counts in binary fractions of a day: what it shows as a whole second can be off by some milliseconds."""
    moment = value if isinstance(value, datetime) else datetime.combine(value, time())
    return (moment + timedelta(milliseconds=500)).replace(microsecond=0)


@contextmanager
def _clean(data: bytes) -> Iterator[IO[bytes]]:
    """A copy whose parts have been unpacked and measured, so that no reader after it can be surprised."""
    with tempfile.TemporaryFile() as copy:
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(copy, "w") as target:
                _copy(source, target)
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError) as error:
            raise FaultError("not_a_table", detail="zip") from error
        yield copy


def _copy(source: zipfile.ZipFile, target: zipfile.ZipFile) -> None:
    parts = source.infolist()
    if len(parts) > MAX_PARTS:
        raise FaultError("zip_bomb", detail=f"{len(parts)} parts")
    if "xl/workbook.xml" not in source.namelist():
        raise FaultError("not_a_table", detail="zip")
    wanted = [part for part in parts if _READ.fullmatch(part.filename) and not _NOT_READ.match(part.filename)]
    if sum(part.file_size for part in wanted) > MAX_UNPACKED:
        raise FaultError("zip_bomb", detail=f"{sum(part.file_size for part in wanted)} bytes")
    for part in wanted:
        if part.file_size > RATIO_FROM and part.file_size > MAX_RATIO * max(1, part.compress_size):
            raise FaultError("zip_bomb", detail=part.filename[:80])
    for name in {part.filename: part for part in wanted}:
        # Piece by piece: a part that is larger than it says ends where it says, and its checksum is then wrong.
        with source.open(name) as read, target.open(name, "w", force_zip64=False) as write:
            while piece := read.read(65_536):
                write.write(piece)


@contextmanager
def _book(archive: IO[bytes], *, formulas: bool = False) -> Iterator[Any]:
    archive.seek(0)
    try:
        book = load_workbook(archive, read_only=True, data_only=not formulas, keep_links=False)
    except FaultError:
        raise
    except Exception as error:  # openpyxl raises whatever its XML handling raises; the file is at fault
        raise FaultError("not_a_table", detail="xlsx") from error
    try:
        yield book
    except (DefusedXmlException, SyntaxError, ValueError, KeyError, TypeError, IndexError, zipfile.BadZipFile) as error:
        raise FaultError("not_a_table", detail="xlsx") from error
    finally:
        book.close()


def _sheets(book: Any) -> list[Any]:
    sheets = [sheet for sheet in book.worksheets if sheet.sheet_state == "visible"]
    for sheet in sheets:
        sheet.reset_dimensions()  # a sheet may claim any size; its rows are what counts
    return sheets


def _is_empty(sheet: Any) -> bool:
    for line, row in enumerate(sheet.iter_rows(min_row=1, min_col=1, values_only=True)):
        if any(value is not None for value in row):
            return False
        if line > MAX_ROWS:
            break
    return True


def _refuse_merged(archive: IO[bytes], sheet: Any) -> None:
    """A merged cell keeps one value for several places: whose it is cannot be said."""
    path = sheet._worksheet_path
    archive.seek(0)
    with zipfile.ZipFile(archive) as parts, parts.open(path.lstrip("/")) as part:
        for _event, element in iterparse(part, events=("end",)):
            if element.tag.endswith("}mergeCell"):
                place = element.get("ref", "")[:40]
                line = re.search(r"\d+", place)
                raise FaultError("merged_cells", int(line.group()[:9]) if line else None, place)
            element.clear()
