"""CSV as a stream: exact for programs, and a second form that a spreadsheet cannot misread.

The exact form keeps every text character for character (UTF-8 with a byte-order mark, comma, CRLF, RFC 4180 quotes).
The form for Excel guards texts that a spreadsheet would calculate or turn into a date with an apostrophe, and has the
separator and the decimal sign that the reader's language expects.
"""

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

BOM = "\ufeff"
FLUSH_CHARACTERS = 65_536
MAX_CELL = 32_767  # Excel breaks a longer cell over rows
CUT = "…"

# What starts a formula in a spreadsheet, also in full width and behind blanks; digits, which become dates and numbers;
# and the apostrophe itself, so that the guard can be told from a text's own.
_DANGEROUS = re.compile(r"[\s\u200b-\u200f\ufeff]*[=+\-@|'\d＝＋－＠]")


def stream(
    header: Sequence[str], rows: Iterable[Sequence[Any]], *, for_excel: bool = False, decimal_comma: bool = False
) -> Iterator[str]:
    """The file in pieces of some 64 K characters; memory does not grow with the rows."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, delimiter=";" if for_excel and decimal_comma else ",", lineterminator="\r\n")
    buffer.write(BOM)
    writer.writerow([guarded(name) if for_excel else name for name in header])
    for row in rows:
        cells = [cell(value) for value in row]
        if for_excel:
            cells = [_for_excel(value, text, decimal_comma) for value, text in zip(row, cells, strict=True)]
        writer.writerow(cells)
        if buffer.tell() > FLUSH_CHARACTERS:
            yield buffer.getvalue()
            buffer.seek(0)
            buffer.truncate()
    yield buffer.getvalue()


def cell(value: Any) -> str:
    """One value as text. None is empty, never 0; whole numbers have no decimal point; times are ISO 8601 in UTC."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value)
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds")
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def guarded(text: str) -> str:
    """The text with an apostrophe before it where a spreadsheet would not take it as text."""
    return f"'{text}" if _DANGEROUS.match(text) else text


def _for_excel(value: Any, text: str, decimal_comma: bool) -> str:
    if isinstance(value, float):
        return text.replace(".", ",") if decimal_comma else text
    if not isinstance(value, str | dict | list):
        return text
    text = guarded(text.replace("\r\n", "\n").replace("\r", "\n"))
    return text if len(text) <= MAX_CELL else text[: MAX_CELL - len(CUT)] + CUT
