"""Votes on what raters are not asked about: empty in files now, and counted in releases of older formats."""

import csv
import io
from functools import partial
from pathlib import Path

import pytest
from django.core.management import call_command

from reports.exports import LABELS, label_rows
from reports.label_votes import votes_counted
from reports.releases import layout
from reports.releases.archive import ArchiveRefusedError
from reports.releases.importing import release_import
from scoring.services import paper_rubric
from studies.models import Study
from tests.reports.releases.conftest import Released, archive_of, everything_is_gone, files_of


@pytest.mark.django_db
def test_raters_were_not_asked_about_what_a_rule_counts(released: Released) -> None:
    data = archive_of(released.release())
    told = files_of(data)[layout.TABLES["labels"].path].decode()
    rows = list(csv.DictReader(io.StringIO(told)))
    mine = [dict(zip(LABELS, row, strict=True)) for row in label_rows(released.study, paper_rubric())]
    judged = set(paper_rubric().criteria.filter(kind="judged").values_list("code", flat=True))
    assert len(judged) == 3 and len({row["criterion"] for row in mine}) > len(judged)
    for row in mine:
        asked = row["criterion"] in judged or row["basis"] in ("not_attempt", "adjudication")
        assert (row["votes"] is not None, row["votes_for"] is not None) == (asked, asked), row
    by_rule = [row for row in rows if row["basis"] == "rule"]
    assert by_rule and {(row["votes"], row["votes_for"]) for row in by_rule} == {("", "")}
    assert {row["votes"] for row in rows if row["basis"] == "majority"} == {"2"}


@pytest.mark.django_db
@pytest.mark.parametrize("number", [2, 3])
def test_an_older_release_is_checked_by_what_held_for_it(
    released: Released, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr("reports.releases.tables.label_rows", partial(label_rows, votes=votes_counted))
    monkeypatch.setattr("reports.releases.building.FORMAT", number)
    data = archive_of(released.release())
    everything_is_gone()
    if number == 2:
        assert release_import(stream=io.BytesIO(data), name="r.zip", actor=None).study is not None
    else:
        with pytest.raises(ArchiveRefusedError) as refused:
            release_import(stream=io.BytesIO(data), name="r.zip", actor=None)
        assert refused.value.code == "labels" and not Study.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize("timings", [False, True])
@pytest.mark.parametrize("questionnaire", ["none", "closed", "all"])
def test_what_is_said_beside_it(released: Released, tmp_path: Path, timings: bool, questionnaire: str) -> None:
    said, file = io.StringIO(), tmp_path / "r.zip"
    call_command("release", study="ours", out=file, timings=timings, questionnaire=questionnaire, stdout=said)
    assert "left out: 1 sitting (" in said.getvalue()
    readme = files_of(file.read_bytes())[layout.README].decode()
    items = readme.partition("## What is not in it\n\n")[2].partition("\n\n")[0].split("\n")
    assert len(items) > 4 and items[-1].endswith(".") and not items[-1].endswith(";.")
    assert all(item.startswith("- ") and item.endswith(";") for item in items[:-1])
    call_command("release_import", file, slug="copy", dry_run=True, stdout=said)
    assert "judgements of the counting rules (sequence, vocabulary) are counted anew" in said.getvalue()
