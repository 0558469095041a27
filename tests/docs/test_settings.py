import re

from tests.conftest import ROOT


def test_every_setting_is_described() -> None:
    read = set(re.findall(r'env(?:\.\w+)?\("(\w+)"', (ROOT / "config" / "settings.py").read_text()))
    described = set(re.findall(r"`([A-Z_]{4,})`", (ROOT / "docs" / "settings.md").read_text()))
    assert read and read <= described, read - described
