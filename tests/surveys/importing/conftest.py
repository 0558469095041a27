import io
from collections.abc import Callable
from typing import Any

import openpyxl
import pytest

from corpus.models import Instrument
from surveys.import_report import ImportReport, SourceFile
from surveys.importers.items import Item
from surveys.importing import Target, answers_import
from tests.conftest import Cast

STATEMENT = "Участники согласились на анкете; подписанные листы хранятся на кафедре."
ITEMS = [
    Item(1, "кошка сидеть на стол ."),
    Item(2, ". мышь бежать от кошка"),
    Item(3, "дети , который играть во двор , быть счастливый"),
]

TOLOKA_HEADER = (
    "INPUT:item_id\tOUTPUT:answer\tGOLDEN:answer\tHINT:text\tHINT:default_language\tASSIGNMENT:assignment_id\t"
    "ASSIGNMENT:worker_id\tASSIGNMENT:status\tASSIGNMENT:started"
)


def toloka(*rows: tuple[object, ...]) -> bytes:
    """Rows of (item, answer, worker, status, assignment) as Toloka writes them."""
    lines = [TOLOKA_HEADER]
    for item, answer, worker, status, assignment in rows:
        lines.append(f"{item}\t{answer}\t\t\t\t{assignment}\t{worker}\t{status}\t2024-03-12T09:00:04.118")
    return ("\n".join(lines) + "\n").encode()


def workbook(*rows: list[Any], sheets: dict[str, list[list[Any]]] | None = None, edit: Any = None) -> bytes:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for name, more in (sheets or {}).items():
        sheet = book.create_sheet(name)
        for row in more:
            sheet.append(row)
    if edit:
        edit(book)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


@pytest.fixture
def run(cast: Cast, instrument: Instrument) -> Callable[..., ImportReport]:
    """Import files into the survey “Old data”."""

    def do(*files: bytes, title: str = "Old data", statement: str = STATEMENT, **how: Any) -> ImportReport:
        return answers_import(
            instrument=how.pop("into", instrument),
            files=[SourceFile(f"file{number}.csv", data) for number, data in enumerate(files, start=1)],
            format_name=how.pop("format_name", None),
            settings=how.pop("settings", {}),
            target=Target(title, statement, **how.pop("covers", {})),
            actor=cast.alice,
            **how,
        )

    return do
