"""References as a CSV file: what the pages give out, and what they read back.

One row for an answer: `answer` is its blind number, as in *answers.csv*; then what it is for, a column for each
question by its code, `not_attempt`, `explanation`. `task`, `text` and `in_use` are there to be read and are ignored
when the file comes back.
"""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from annotation.errors import ReferencesRefusedError
from annotation.models import Reference
from annotation.reference_selectors import shown
from annotation.reference_services import MAX_EXPLANATION, FileRow, Right
from corpus import importing
from corpus.importing import Problem, is_separated_otherwise
from scoring.models import Criterion

MAX_BYTES = 2_000_000
MAX_ROWS = 500
TRUE, FALSE = ("1", "true", "yes", "да"), ("", "0", "false", "no", "нет")

PROBLEMS = importing.PROBLEMS | {
    "too_many_rows": _("the file has more than %(detail)s rows"),
    "no_rows": _("the file has no rows"),
    "no_blind_number": _("“%(detail)s” is not the number of an answer"),
    "doubled_answer": _("the answer stands in the file twice"),
    "unknown_purpose": _("purpose is training or gold, not “%(detail)s”"),
    "outside_scale": _("%(detail)s is empty or not a value of this question"),
    "not_a_mark": _("not_attempt is true, false or empty, not “%(detail)s”"),
    "long_explanation": _("the explanation is longer than %(detail)s characters"),
    "unknown_answer": _("the study has no such answer"),
    "unusable_answer": _("the answer is withdrawn, not counted or not finished"),
    "used_reference": _("a campaign has copied this reference, so it cannot be changed"),
}


def problem_text(problem: Problem) -> str:
    """One line for a person: `line 3: …`."""
    text = str(PROBLEMS[problem.code]) % {"detail": problem.detail}
    return gettext("line %(line)s: %(text)s") % {"line": problem.line, "text": text} if problem.line else text


def columns_of(criteria: Sequence[Criterion]) -> list[str]:
    codes = [criterion.code for criterion in criteria]
    return ["answer", "task", "text", "purpose", *codes, "not_attempt", "explanation", "in_use"]


def rows_of(references: Iterable[Reference], criteria: Sequence[Criterion]) -> Iterator[list[Any]]:
    """Cells in the order of `columns_of`, none of them about who answered. No query: see `references_of`."""
    for one in references:
        seen = shown(one.answer)
        values = [one.expected.get(criterion.code) for criterion in criteria]
        yield [
            str(one.answer.blind_id),
            seen.stimulus_text,
            seen.display,
            str(one.purpose),
            *values,
            one.not_attempt,
            one.explanation,
            one.is_active,
        ]


def read_references(data: bytes, criteria: Sequence[Criterion]) -> list[FileRow]:
    """The rows of a UTF-8 CSV with commas; columns that nobody knows are ignored.

    Raises ReferencesRefusedError with every problem found; then nothing of the file is to be used.
    """
    if len(data) > MAX_BYTES:
        raise ReferencesRefusedError([Problem("too_large", detail=str(MAX_BYTES))])
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ReferencesRefusedError([Problem("not_utf8", detail=str(error.start))]) from error
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    problems: list[Problem] = []
    rows: dict[UUID, FileRow] = {}
    try:
        _header_check(reader.fieldnames or [], criteria)
        for record in reader:
            if len(rows) + len(problems) >= MAX_ROWS:
                raise ReferencesRefusedError([Problem("too_many_rows", detail=str(MAX_ROWS))])
            row = _row(record, reader.line_num, criteria, problems)
            if row is not None and row.blind_id in rows:
                problems.append(Problem("doubled_answer", row.line))
            elif row is not None:
                rows[row.blind_id] = row
    except csv.Error as error:
        raise ReferencesRefusedError([Problem("not_csv", reader.line_num, str(error))]) from error
    if not rows and not problems:
        problems.append(Problem("no_rows"))
    if problems:
        raise ReferencesRefusedError(problems)
    return list(rows.values())


def _header_check(header: Sequence[str], criteria: Sequence[Criterion]) -> None:
    needed = ["answer", "purpose", *(criterion.code for criterion in criteria)]
    missing = [name for name in needed if name not in header]
    if missing:
        code = "other_separator" if is_separated_otherwise(header) else "missing_columns"
        raise ReferencesRefusedError([Problem(code, 1, ", ".join(missing))])


def _row(
    record: Mapping[str, str | None], line: int, criteria: Sequence[Criterion], problems: list[Problem]
) -> FileRow | None:
    """None where something is wrong with it, which is then among the problems."""
    if None in record or any("\x00" in (value or "") for value in record.values()):
        problems.append(Problem("broken_row", line))
        return None
    cells = {name: (value or "").strip() for name, value in record.items()}
    found: list[Problem] = []
    blind_id = _blind_id(cells["answer"])
    if blind_id is None:
        found.append(Problem("no_blind_number", line, cells["answer"][:40]))
    if cells["purpose"] not in Reference.Purpose.values:
        found.append(Problem("unknown_purpose", line, cells["purpose"][:40]))
    mark = cells.get("not_attempt", "").casefold()
    if mark not in TRUE + FALSE:
        found.append(Problem("not_a_mark", line, mark[:40]))
    values = {} if mark in TRUE else _values(cells, line, criteria, found)
    explanation = cells.get("explanation", "").replace("\r\n", "\n").replace("\r", "\n")
    if len(explanation) > MAX_EXPLANATION:
        found.append(Problem("long_explanation", line, str(MAX_EXPLANATION)))
    problems += found
    if found or blind_id is None:
        return None
    right = Right(purpose=cells["purpose"], values=values, not_attempt=mark in TRUE, explanation=explanation)
    return FileRow(line, blind_id, right)


def _values(
    cells: Mapping[str, str], line: int, criteria: Sequence[Criterion], problems: list[Problem]
) -> dict[str, float]:
    values = {}
    for criterion in criteria:
        try:
            values[criterion.code] = float(cells[criterion.code].replace(",", "."))
        except ValueError:
            problems.append(Problem("outside_scale", line, criterion.code))
            continue
        if values[criterion.code] not in criterion.scale:
            problems.append(Problem("outside_scale", line, criterion.code))
    return values


def _blind_id(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
