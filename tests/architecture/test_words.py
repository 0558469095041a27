"""Words of the pages reach the translators."""

import re
from pathlib import Path

from django.apps import apps

from tests.conftest import ROOT

ALIAS = re.compile(r"\b(?:[nd]?p?gettext(?:_lazy|_noop)?) as (\w+)")


def sources() -> list[Path]:
    ours = [Path(app.path) for app in apps.get_app_configs() if Path(app.path).parent == ROOT]
    return [path for folder in [ROOT / "config", *ours] for path in folder.rglob("*.py")]


def test_gettext_has_no_name_that_makemessages_overlooks() -> None:
    """It finds `_` and gettext's own names; a message under another alias stays English without a word."""
    aliases = {
        (str(path.relative_to(ROOT)), name) for path in sources() for name in ALIAS.findall(path.read_text("utf-8"))
    }
    assert {path for path, _ in aliases} >= {"annotation/forms.py", "surveys/forms.py"}
    assert {(path, name) for path, name in aliases if name != "_"} == set()
