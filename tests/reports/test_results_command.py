import csv
import io
import json

import pytest
from django.core.management import CommandError, call_command

from tests.reports.conftest import Built


def run(*arguments: str) -> str:
    out = io.StringIO()
    call_command("results", *arguments, stdout=out, stderr=io.StringIO())
    return out.getvalue()


def table(built: Built, *arguments: str) -> dict[tuple[str, ...], dict[str, str]]:
    rows = csv.DictReader(io.StringIO(run("--study", "ours", "--table", *arguments).removeprefix("\ufeff")))
    return {(row["group"], row["measure"], row["factor"], row["level"]): row for row in rows}


@pytest.mark.parametrize("number", ["1", "2", "3", "4"])
@pytest.mark.parametrize(
    ("kind", "begins"),
    [("svg", b"<svg"), ("pdf", b"%PDF"), ("png", b"\x89PNG"), ("csv", b"\xef\xbb\xbfstudy"), ("json", b"{")],
)
def test_figures(built, tmp_path, number, kind, begins):
    path = tmp_path / f"figure.{kind}"
    run("--study", "ours", "--figure", number, "--out", str(path))
    assert path.read_bytes().startswith(begins)


def test_a_figure_in_russian(built, tmp_path):
    path = tmp_path / "figure.svg"
    run("--study", "ours", "--figure", "1", "--language", "ru", "--out", str(path))
    assert "0,583" in path.read_text()


def test_the_table_has_the_numbers_of_the_page(built):
    found = table(built)
    people = found["people", "mean", "all", ""]
    assert float(people["value"]) == pytest.approx(7 / 12)  # see conftest
    assert (people["n"], people["n_undecided"], people["low"]) == ("1", "1", "")
    bounds = found["people", "mean_bounds", "all", ""]
    assert (bounds["value"], bounds["range"]) == ("", "bounds")
    assert float(bounds["low"]) == pytest.approx(8 / 12)
    assert float(found["Model M", "majority", "all", ""]["value"]) == pytest.approx(11 / 12)
    assert float(found["Model M", "sd_over_runs", "all", ""]["value"]) == pytest.approx((13 / 3) ** 0.5 / 12)
    assert float(found["Model M", "difference", "all", ""]["value"]) == pytest.approx(13 / 18 - 7 / 12)
    assert found["Model M", "percentile", "all", ""]["value"] == "100"
    # Three given answers are as long as the original and one is not, one is declined: 4 of 6 in sequence.
    assert float(found["people", "criterion", "criterion", "sequence"]["value"]) == pytest.approx(4 / 6)
    assert found["people", "stimulus", "stimulus", "3"]["n_undecided"] == "1"
    assert found["people", "band_mean", "complexity", ""]["value"] != ""


def test_vega_is_json(built, tmp_path):
    path = tmp_path / "figure.json"
    run("--study", "ours", "--figure", "2", "--out", str(path))
    assert "marks" in json.loads(path.read_text())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--study", "nowhere", "--table"], "There is no study"),
        (["--study", "theirs", "--table"], "no instrument yet"),
        (["--study", "ours", "--table", "--instrument", "other"], "no such instrument"),
        (["--study", "ours", "--table", "--basis", "judges-9"], "no such basis"),
        (["--study", "ours", "--table", "--out", "table.svg"], "must be one of: csv"),
        (["--study", "ours", "--figure", "1", "--out", "figure.exe"], "must be one of"),
        (["--study", "ours", "--figure", "1", "--out", "/nowhere/figure.svg"], "could not be written"),
    ],
)
def test_what_cannot_be_done_is_said(built, arguments, said):
    with pytest.raises(CommandError, match=said):
        run(*arguments)


def test_nothing_to_draw(cast, instrument, tmp_path):
    path = tmp_path / "figure.svg"
    for number in ("1", "2", "3", "4"):
        with pytest.raises(CommandError, match="nothing to draw"):
            run("--study", "ours", "--figure", number, "--out", str(path))
    assert not path.exists()
