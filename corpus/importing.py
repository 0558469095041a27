"""An instrument's stimuli as CSV, read and written."""

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from corpus.models import Complexity, Stimulus
from corpus.tokens import word_tokens

COLUMNS = ("id", "task", "original", "complexity", "shuffled")
OPTIONAL_COLUMNS = ("is_practice", "feedback", "source")  # a file without them has real tasks of unnamed source
ALL_COLUMNS = (*COLUMNS, *OPTIONAL_COLUMNS)
MAX_BYTES = 1_000_000
MAX_SOURCE = 200  # what the column holds


@dataclass(frozen=True)
class StimulusRow:
    position: int
    text: str
    original: str
    complexity: str
    shuffled: bool
    is_practice: bool = False
    feedback: str = ""
    source: str = ""


@dataclass(frozen=True)
class Problem:
    """What is wrong with a file: a code, the line (1 is the header) and the detail."""

    code: str
    line: int | None = None
    detail: str = ""


PROBLEMS = {
    "too_large": _("the file is larger than %(detail)s bytes"),
    "not_utf8": _("the file is not UTF-8 (byte %(detail)s)"),
    "missing_columns": _("these columns are missing: %(detail)s"),
    "other_separator": _("the fields must be separated by commas, not by semicolons or tabs"),
    "not_csv": _("this is not CSV: %(detail)s"),
    "doubled_position": _("the id %(detail)s stands more than once"),
    "no_stimuli": _("there is no stimulus in the file"),
    "broken_row": _("more fields than columns, or a NUL character"),
    "bad_position": _("the id must be a whole number from 1 to 9999, not %(detail)r"),
    "no_words": _("there is no word in the column %(detail)s"),
    "bad_complexity": _("complexity must be easy, medium or hard, not %(detail)r"),
    "bad_shuffled": _("shuffled must be true or false, not %(detail)r"),
    "bad_is_practice": _("is_practice must be true, false or empty, not %(detail)r"),
    "long_source": _("the source is longer than %(detail)s characters"),
}


def problem_text(problem: Problem) -> str:
    """One line for a person: `line 3: …`."""
    text = str(PROBLEMS[problem.code]) % {"detail": problem.detail}
    return gettext("line %(line)s: %(text)s") % {"line": problem.line, "text": text} if problem.line else text


class StimuliUnreadableError(Exception):
    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("; ".join(map(problem_text, problems)))
        self.problems = problems


def read_stimuli(data: bytes) -> list[StimulusRow]:
    """The stimuli of a UTF-8 CSV with COLUMNS and, where it has them, OPTIONAL_COLUMNS; others are ignored.

    Raises StimuliUnreadableError with every problem found; then nothing of the file is to be used.
    """
    if len(data) > MAX_BYTES:
        raise StimuliUnreadableError([Problem("too_large", detail=str(MAX_BYTES))])
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise StimuliUnreadableError([Problem("not_utf8", detail=str(error.start))]) from error
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        missing = [name for name in COLUMNS if name not in (reader.fieldnames or [])]
        if missing:
            code = "other_separator" if is_separated_otherwise(reader.fieldnames or []) else "missing_columns"
            raise StimuliUnreadableError([Problem(code, 1, ", ".join(missing))])
        rows: list[StimulusRow] = []
        problems: list[Problem] = []
        for record in reader:
            row = _row(record, reader.line_num, problems)
            if row:
                rows.append(row)
    except csv.Error as error:
        raise StimuliUnreadableError([Problem("not_csv", reader.line_num, str(error))]) from error
    seen: set[int] = set()
    for row in rows:
        if row.position in seen:
            problems.append(Problem("doubled_position", None, str(row.position)))
        seen.add(row.position)
    if not rows and not problems:
        problems.append(Problem("no_stimuli"))
    if problems:
        raise StimuliUnreadableError(problems)
    return rows


def is_separated_otherwise(header: Sequence[str]) -> bool:
    """Whether the header is one field that would be several if it were cut at semicolons or tabs."""
    return len(header) == 1 and any(sign in header[0] for sign in ";\t")


def _row(record: dict[str, str | None], line: int, problems: list[Problem]) -> StimulusRow | None:
    before = len(problems)
    value = {name: (record.get(name) or "").strip() for name in ALL_COLUMNS}
    if None in record or any("\x00" in text for text in value.values()):
        problems.append(Problem("broken_row", line))
    if not value["id"].isascii() or not value["id"].isdigit() or not 1 <= int(value["id"][:6]) <= 9_999:
        problems.append(Problem("bad_position", line, value["id"][:40]))
    for name in ("task", "original"):
        if not word_tokens(value[name]):
            problems.append(Problem("no_words", line, name))
    if value["complexity"] not in Complexity.values:
        problems.append(Problem("bad_complexity", line, value["complexity"][:40]))
    if value["shuffled"].lower() not in ("true", "false"):
        problems.append(Problem("bad_shuffled", line, value["shuffled"][:40]))
    if value["is_practice"].lower() not in ("true", "false", ""):
        problems.append(Problem("bad_is_practice", line, value["is_practice"][:40]))
    if len(value["source"]) > MAX_SOURCE:
        problems.append(Problem("long_source", line, str(MAX_SOURCE)))
    if len(problems) > before:
        return None
    return StimulusRow(
        position=int(value["id"]),
        text=value["task"],
        original=value["original"],
        complexity=value["complexity"],
        shuffled=value["shuffled"].lower() == "true",
        is_practice=value["is_practice"].lower() == "true",
        feedback=value["feedback"],
        source=value["source"],
    )


def stimulus_rows(stimuli: Iterable[Stimulus]) -> list[StimulusRow]:
    return [
        StimulusRow(
            position=one.position,
            text=one.text,
            original=one.original,
            complexity=one.complexity,
            shuffled=one.shuffled,
            is_practice=one.is_practice,
            feedback=one.feedback,
            source=one.source,
        )
        for one in stimuli
    ]


def stimulus_cells(row: StimulusRow) -> list[str]:
    """The values of ALL_COLUMNS, as the file has them."""
    return [
        str(row.position),
        row.text,
        row.original,
        row.complexity,
        "true" if row.shuffled else "false",
        "true" if row.is_practice else "false",
        row.feedback,
        row.source,
    ]


def stimuli_csv(rows: Iterable[StimulusRow]) -> bytes:
    """What `read_stimuli` reads back as the same rows: UTF-8 with a byte-order mark, comma, CRLF, RFC 4180 quotes.

    Texts stand in it character for character; `reports.csvfile` has the form that a spreadsheet cannot misread.
    """
    buffer = io.StringIO(newline="")
    buffer.write("\ufeff")
    writer = csv.writer(buffer, lineterminator="\r\n")
    writer.writerow(ALL_COLUMNS)
    writer.writerows(map(stimulus_cells, rows))
    return buffer.getvalue().encode()
