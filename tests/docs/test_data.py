import re

import pytest

from reports.exports import EXPORTS
from reports.figures import FIGURE_COLUMNS
from reports.flow import FLOW_COLUMNS
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
    assert described() == written | {"figure1": list(FIGURE_COLUMNS), "flow": list(FLOW_COLUMNS)}
