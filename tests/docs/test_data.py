import re

import pytest

from reports.error_views import ERROR_COLUMNS, ERROR_WORD_COLUMNS
from reports.exports import EXPORTS
from reports.figure_contrasts import CONTRAST_COLUMNS
from reports.figures import FIGURE_COLUMNS
from reports.flow import FLOW_COLUMNS
from reports.result_file import TABLE_COLUMNS
from scoring.services import paper_rubric
from tests.conftest import ROOT


def described() -> dict[str, list[str]]:
    """The columns that docs/data.md describes, by file, in its order."""
    parts = re.split(r"^## (\w+)\.csv$", (ROOT / "docs" / "data.md").read_text(), flags=re.MULTILINE)
    return {
        name: re.findall(r"^\| `(\w+)` \| \S", text, flags=re.MULTILINE)
        for name, text in zip(parts[1::2], parts[2::2], strict=True)
    }


@pytest.mark.django_db
def test_every_column_is_described_in_its_order() -> None:
    rubric = paper_rubric()
    written = {export.name: list(export.columns(None, rubric)) for export in EXPORTS.values()}
    others = {
        "figure1": FIGURE_COLUMNS,
        "figure4": CONTRAST_COLUMNS,
        "results": TABLE_COLUMNS,
        "errors": ERROR_COLUMNS,
        "error_words": ERROR_WORD_COLUMNS,
        "flow": FLOW_COLUMNS,
    }
    assert described() == written | {name: list(columns) for name, columns in others.items()}
