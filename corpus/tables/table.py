"""A file as a header and numbered records, whatever encoding, separator or container it has."""

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice

from corpus.tables.decoding import SAMPLE, encoding_of, without_mark
from corpus.tables.faults import FaultError
from corpus.tables.workbook import MAX_COLUMNS, MAX_ROWS, sheet_rows

MAX_BYTES = 50 * 1024 * 1024
DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab"}

_WEB = re.compile(rb"\s*<(!doctype|html|head|body|\?xml|!--|script|div|svg)\b", re.IGNORECASE)
_OTHER = {
    b"%PDF": "pdf",
    b"\xd0\xcf\x11\xe0": "old_excel",
    b"\x1f\x8b": "gzip",
    b"\x89PNG": "picture",
    b"\xff\xd8\xff": "picture",
    b"Rar!": "archive",
    b"7z\xbc\xaf": "archive",
}
_SEPARATOR_LINE = re.compile(r'"?sep=([,;\t])"?\r?\n', re.IGNORECASE)  # what Excel writes for itself


@dataclass(frozen=True, slots=True)
class Record:
    """One record after the header. `number` counts records, blank ones included; `line` is that of the file."""

    number: int
    line: int
    cells: list[str]
    dates: dict[int, datetime] = field(default_factory=dict)  # cells that a spreadsheet holds as a time
    damaged: dict[int, str] = field(default_factory=dict)  # cells whose text a spreadsheet has replaced

    @property
    def is_blank(self) -> bool:
        return not any(cell.strip() for cell in self.cells)

    def cell(self, column: int) -> str:
        """Raises FaultError `short_record`: the record ends before a column that is needed."""
        if column >= len(self.cells):
            raise FaultError("short_record", self.line, str(self.number))
        return self.cells[column]


@dataclass
class Table:
    encoding: str | None  # None: a workbook, which has none
    delimiter: str | None
    header: list[str]
    records: Iterator[Record]

    @property
    def kind(self) -> str:
        if self.delimiter is None:
            return "xlsx"
        return "tsv" if self.delimiter == "\t" else "csv"

    def column(self, name: str | int) -> int:
        """The position of a column named by its header or its position. Raises FaultError."""
        if isinstance(name, int) or (name.isdecimal() and name not in self.header):
            position = int(name)
            if not 0 <= position < len(self.header):
                raise FaultError("missing_column", 1, str(name))
            return position
        found = self.find(name)
        if found is None:
            raise FaultError("missing_column", 1, name)
        return found

    def find(self, name: str) -> int | None:
        """The position of the column with this header, None where there is none. Raises FaultError `doubled_column`."""
        places = [place for place, header in enumerate(self.header) if folded(header) == folded(name)]
        if len(places) > 1:
            raise FaultError("doubled_column", 1, name)
        return places[0] if places else None


def folded(text: str) -> str:
    """For comparing names: without the capitals, the spaces around and how many there are between."""
    return " ".join(text.split()).casefold()


def is_workbook(data: bytes) -> bool:
    return data.startswith(b"PK")


def open_table(
    data: bytes, *, encoding: str | None = None, delimiter: str | None = None, sheet: str | None = None
) -> Table:
    """The table in the file. Its records are read as they are asked for, and may then raise FaultError too.

    Raises FaultError.
    """
    if len(data) > MAX_BYTES:
        raise FaultError("too_large", detail=str(MAX_BYTES))
    if not data.strip(b"\0 \t\r\n"):
        raise FaultError("empty")
    if is_workbook(data):
        return _workbook(data, sheet)
    refuse_what_is_no_text_file(data)
    name = encoding_of(data, encoding)
    skip, codec = without_mark(data, name)
    sample = data[skip : skip + SAMPLE].decode(codec, errors="ignore")
    _refuse_what_is_no_text(sample)
    line = 0
    if told := _SEPARATOR_LINE.match(sample):
        delimiter, line = delimiter or told[1], 1
        skip += len(told[0].encode(codec))
        sample = sample[told.end() :]
    chosen = delimiter or delimiter_of(sample)
    stream = io.TextIOWrapper(io.BytesIO(data), encoding=codec, newline="")
    stream.buffer.seek(skip)
    rows = _rows(stream, chosen, line)
    header = next(rows, None)
    if header is None or not any(cell.strip() for cell in header.cells):
        raise FaultError("no_header", line + 1)
    ends_cleanly = data.endswith((b"\n", b"\r", "\n".encode(codec), "\r".encode(codec)))
    return Table(name, chosen, header.cells, _checked(rows, len(header.cells), ends_cleanly))


def delimiter_of(sample: str) -> str:
    """The separator under which the first records have as many fields as the header."""
    best: tuple[float, int, str] = (0.0, 1, ",")
    for delimiter in DELIMITERS:
        try:
            rows = list(islice(csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter), 50))
        except csv.Error:
            continue
        width = len(rows[0]) if rows else 0
        if width < 2:
            continue
        # The last record of the sample may be cut.
        others = [row for row in (rows[1:-1] or rows[1:]) if any(cell.strip() for cell in row)]
        fit = sum(len(row) == width for row in others) / len(others) if others else 1.0
        best = max(best, (fit, width, delimiter))
    return best[2]


def _rows(stream: io.TextIOWrapper, delimiter: str, before: int) -> Iterator[Record]:
    """Every record, the header as number 0."""
    reader = csv.reader(stream, delimiter=delimiter, strict=True)
    number = 0
    line = before + 1
    while True:
        try:
            cells = next(reader, None)
        except csv.Error as error:
            code = "truncated" if "end of data" in str(error) else "bad_csv"
            raise FaultError(code, line, "" if code == "truncated" else str(error)) from error
        if cells is None:
            return
        if number > MAX_ROWS:
            raise FaultError("too_many_rows", line, str(MAX_ROWS))
        if len(cells) > MAX_COLUMNS:
            raise FaultError("too_many_columns", line, str(MAX_COLUMNS))
        yield Record(number, line, cells)
        number += 1
        line = before + reader.line_num + 1


def _checked(rows: Iterator[Record], width: int, ends_cleanly: bool) -> Iterator[Record]:
    """No record has more fields than the header, and the last one is whole."""
    last = None
    for row in rows:
        if len(row.cells) > width:
            raise FaultError("too_many_fields", row.line, f"{len(row.cells)} > {width}")
        if last is not None:
            yield last
        last = row
    if last is not None:
        if len(last.cells) < width and not ends_cleanly:
            raise FaultError("truncated", last.line)
        yield last


def _workbook(data: bytes, sheet: str | None) -> Table:
    rows = sheet_rows(data, sheet)
    header = next(rows, None)
    if header is None:
        raise FaultError("empty")
    names = header.cells
    while names and not names[-1].strip():
        names.pop()  # formatted, never filled
    if not names:
        raise FaultError("no_header", 1)

    def records() -> Iterator[Record]:
        for number, row in enumerate(rows, start=1):
            if any(cell.strip() for cell in row.cells[len(names) :]):
                raise FaultError("too_many_fields", row.line, f"{len(row.cells)} > {len(names)}")
            cells = row.cells[: len(names)] + [""] * (len(names) - len(row.cells))
            yield Record(number, row.line, cells, row.dates, row.damaged)

    return Table(None, None, names, _without_tail(records()))


def _without_tail(records: Iterator[Record]) -> Iterator[Record]:
    """Sheets are often formatted far below their last row: blank rows at the end are none of the file's records."""
    blank: list[Record] = []
    for record in records:
        if record.is_blank:
            blank.append(record)
        else:
            yield from blank
            blank.clear()
            yield record


def refuse_what_is_no_text_file(data: bytes) -> None:
    """A web page, a picture, an archive under the name of an export. Raises FaultError `not_a_table`."""
    head = data[:1_024].removeprefix(b"\xef\xbb\xbf")
    if _WEB.match(head):
        raise FaultError("not_a_table", 1, "html")
    for start, kind in _OTHER.items():
        if head.startswith(start):
            raise FaultError("not_a_table", detail=kind)


def _refuse_what_is_no_text(sample: str) -> None:
    if re.match(r"\s*<(!doctype|html|\?xml)", sample, re.IGNORECASE):
        raise FaultError("not_a_table", 1, "html")
    if re.match(r'\s*(\{\s*["}]|\[\s*[\[{"])', sample):
        raise FaultError("not_a_table", 1, "json")
    strange = sum(ord(sign) < 32 and sign not in "\t\r\n" for sign in sample)
    if strange * 20 > len(sample):
        raise FaultError("not_a_table", detail="binary")
