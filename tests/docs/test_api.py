import re

from tests.api.routes import ROUTES
from tests.api.test_access import OPEN_TO_BLINDED
from tests.conftest import ROOT

TEXT = (ROOT / "docs" / "api.md").read_text()


def test_every_endpoint_is_described_with_what_stays_open() -> None:
    """The last segment of each address, by the words of its row."""
    rows = {}
    for address, closed in re.findall(r"^\| `([^`]+)` \|.*\| (open|closed) \|$", TEXT, flags=re.MULTILINE):
        path = address.removeprefix("/api/v1/").strip("/").replace("<id>/", "").split("/")
        rows["-".join(part for part in path)] = closed
    for route in ROUTES:
        _api, name, *rest = route.name.split("-")
        key = "-".join([name, *(part for part in rest if part not in ("list", "detail"))]).replace("study", "studies")
        expected = "open" if (route.name, route.action) in OPEN_TO_BLINDED else "closed"
        assert rows.get(key) == expected, (route.name, key)
