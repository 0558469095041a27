import re

from llmruns.judge_prompts import TEXTS
from reports.judging_agreement import COLUMNS
from tests.conftest import ROOT

DOC = (ROOT / "docs" / "judges.md").read_text(encoding="utf-8")


def test_every_prompt_is_shown_as_it_is() -> None:
    shown = set(re.findall(r"^```text\n(.*?)\n```$", DOC, flags=re.MULTILINE | re.DOTALL))
    kept = {path.read_text(encoding="utf-8").rstrip("\n") for path in TEXTS.iterdir()}
    assert kept and shown == kept


def test_every_column_of_the_file_is_described_in_its_order() -> None:
    table = DOC[DOC.index("| column | |") :]
    cells = re.findall(r"^\| (`[^|]+) \|", table, flags=re.MULTILINE)
    assert [name for cell in cells for name in re.findall(r"`(\w+)`", cell)] == list(COLUMNS)
