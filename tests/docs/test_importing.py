import re

from surveys.import_words import FAULTS, REASONS
from surveys.importers import luria, prolific, toloka
from surveys.importers.formats import FORMATS
from surveys.importers.plan import Settings
from surveys.management.commands.answers_import import COLUMNS
from tests.conftest import ROOT

TEXT = (ROOT / "docs" / "importing.md").read_text()
CODE = "".join(
    path.read_text()
    for place, files in (("surveys", "import*/*.py"), ("surveys", "import*.py"), ("corpus", "tables/*.py"))
    for path in (ROOT / place).glob(files)
)


def test_every_reason_is_described_and_said() -> None:
    described = set(re.findall(r"`(\w+)`", TEXT))
    assert set(REASONS) <= described, set(REASONS) - described
    assert {*toloka.SKIPPED.values(), *prolific.SKIPPED.values()} <= set(REASONS)
    used = set(re.findall(r'skip\([\w.]+, "(\w+)"', CODE)) | set(re.findall(r'return "(\w+)"\n', luria_source()))
    assert used and used <= set(REASONS), used - set(REASONS)


def luria_source() -> str:
    assert luria.__file__
    return (ROOT / "surveys" / "importers" / "luria.py").read_text()


def test_every_fault_has_words() -> None:
    raised = set(re.findall(r'FaultError\(\s*"(\w+)"', CODE))
    assert raised and raised <= set(FAULTS), raised - set(FAULTS)


def test_every_format_setting_and_option_is_described() -> None:
    for name in (*FORMATS, *Settings.__dataclass_fields__, *(f"--{column}-column" for column in COLUMNS)):
        assert f"`{name}`" in TEXT, name
