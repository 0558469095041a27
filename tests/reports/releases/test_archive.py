"""What stands in a release and what does not: Psych-DS, the same bytes again, and nothing that names anybody."""

import csv
import io
import json
import zipfile
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction

from corpus.models import Answer, Respondent, Sitting
from reports.models import Release
from reports.releases import layout
from reports.releases.building import release_write
from reports.releases.services import ReleaseEmptyError
from surveys.models import Consent
from surveys.rights import receipt_issue
from tests.conftest import ROOT
from tests.reports.releases.conftest import (
    PLATFORM_ID,
    REASON,
    WRITTEN,
    Released,
    archive_of,
    files_of,
)


def table(files: dict[str, bytes], name: str) -> list[dict[str, str]]:
    text = files[layout.TABLES[name].path].decode()
    return list(csv.DictReader(io.StringIO(text, newline="")))


@pytest.mark.django_db
def test_who_is_in_it_and_who_is_not(released: Released) -> None:
    release = released.release()
    files = files_of(archive_of(release))
    people = {row["respondent"] for row in table(files, "sittings") if row["kind"] == "human"}
    assert len(people) == 2
    assert release.counts["left_out"] == {"withdrawn": 0, "pilot": 1, "excluded": 1, "open": 1, "no_consent": 1}
    assert set(release.members.values_list("respondent", flat=True)) == {
        released.people["ann"].respondent_id,
        released.people["ben"].respondent_id,
    }
    texts = {row["text"] for row in table(files, "answers") if row["kind"] == "human"}
    assert texts == {"кошка сидит на столе", "мышь бежит от кошки", ""}
    readme = files[layout.README].decode()
    assert "1 did not agree to publication" in readme and "1 only tried the survey out" in readme
    calls = table(files, "calls")
    assert [(row["n_calls"], row["n_attempts"], row["n_first_valid"], row["n_bad_replies"]) for row in calls] == [
        ("2", "2", "0", "1"),
        ("1", "1", "1", "0"),
    ]
    assert calls[0]["cost"] == "0.00002250" and calls[0]["currency"] == "USD"
    # Votes: two raters on each text once, the adjudicator on one answer; labels of every released answer.
    labels = {(row["answer"], row["criterion"]): row for row in table(files, "labels")}
    assert len(labels) == 5 * len(table(files, "answers"))
    assert sum(row["basis"] == "adjudication" for row in labels.values()) == 3
    judges = {"R1", "R2", "R3", "sequence_equal", "vocabulary_match", "model-1", "classifier-1"}
    assert {row["judge"] for row in table(files, "judgements")} == judges
    asked = {row["judge"]: (row["model"], row["prompt"]) for row in table(files, "judges")}
    assert set(asked) == judges and asked["model-1"] == ("Model M", "judge") and asked["R1"] == ("", "")


@pytest.mark.django_db
def test_nothing_in_it_names_anybody(released: Released) -> None:
    """Every file is searched for what the database knows of people beside their answers."""
    ann = released.people["ann"]
    secrets = {
        PLATFORM_ID,
        "CODE7K9Q",
        receipt_issue(participant=ann),
        REASON,
        WRITTEN,
        "lena-ivanova",
        "nina-sidorova",
        "alice",
        "Группа Ивановой",
        "Разметка Лены",
        "203.0.113.7",
        "sk-secret",
        "OPENAI_API_KEY",
        "10.1.2.3",
        "secret-server",
        "полный ответ модели",
        "browser_again",
        "непубликуемый",
        "пробный ответ",
        "исключённый",
        "незаконченный",
    }
    secrets |= {str(one) for one in Respondent.objects.values_list("public_id", flat=True)}
    secrets |= {str(one) for one in Answer.objects.values_list("blind_id", flat=True)}
    secrets |= set(Consent.objects.values_list("participant__digest", flat=True))
    release = released.release(questionnaire="closed")
    secrets.add(str(release.salt))
    for path, data in files_of(archive_of(release)).items():
        text = data.decode()
        assert [secret for secret in secrets if secret.casefold() in text.casefold()] == [], path
        assert f"{Sitting.objects.first().started_at:%H:%M}:" not in text, path


@pytest.mark.django_db
def test_more_is_in_it_only_where_it_was_asked_for(released: Released) -> None:
    least = files_of(archive_of(released.release()))
    assert table(least, "responses") == table(least, "questions") == []
    assert {row["duration_ms"] for row in table(least, "answers")} == {""}
    closed = files_of(archive_of(released.release(questionnaire="closed")))
    assert [row["response"] for row in table(closed, "responses")] == ['"f"']
    most = files_of(archive_of(released.release(questionnaire="all", timings=True)))
    assert WRITTEN in most[layout.TABLES["responses"].path].decode()
    assert "4321" in {row["duration_ms"] for row in table(most, "answers")}
    assert {row["device"] for row in table(most, "answers") if row["kind"] == "model"} == {""}


@pytest.mark.django_db
def test_the_same_facts_give_the_same_bytes(released: Released) -> None:
    release = released.release()
    again = io.BytesIO()
    release_write(release, again)
    assert again.getvalue() == archive_of(release)
    with zipfile.ZipFile(io.BytesIO(archive_of(release))) as archive:
        assert archive.namelist() == list(layout.PATHS)
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


@pytest.mark.django_db
def test_a_next_version_keeps_the_numbers_and_tells_its_history(released: Released) -> None:
    first = released.release()
    second = released.release(note="Пересчитано")
    one, two = files_of(archive_of(first)), files_of(archive_of(second))
    path = layout.TABLES["answers"].path
    assert one[path] == two[path]
    changes = two[layout.CHANGES].decode()
    assert second.replaces == first and "Пересчитано" in changes and changes.index("## 2") < changes.index("## 1")


@pytest.mark.django_db
def test_what_was_given_out_is_not_changed(released: Released) -> None:
    release = released.release()
    for change in ({"counts": {}}, {"sha256": "0" * 64}, {"state": "waiting"}):
        with pytest.raises(IntegrityError, match="is kept"), transaction.atomic():
            Release.objects.filter(pk=release.pk).update(**change)
    with pytest.raises(IntegrityError), transaction.atomic():
        release.members.all().delete()


@pytest.mark.django_db
def test_nothing_to_publish_is_no_release(released: Released, tmp_path: Path) -> None:
    Consent.objects.filter(document__purpose="publication").delete()
    Sitting.objects.filter(respondent__kind="model").update(standing="excluded")
    with pytest.raises(ReleaseEmptyError):
        released.release()
    with pytest.raises(CommandError, match="no answer may be published"):
        call_command("release", study="ours", out=tmp_path / "r.zip")
    assert not Release.objects.exists()


@pytest.mark.django_db
def test_the_command_overwrites_nothing(released: Released, tmp_path: Path) -> None:
    out = tmp_path / "r.zip"
    out.write_text("mine")
    with pytest.raises(CommandError, match="exists already"):
        call_command("release", study="ours", out=out)
    with pytest.raises(CommandError, match="no folder"):
        call_command("release", study="ours", out=tmp_path / "nowhere" / "r.zip")
    with pytest.raises(CommandError, match="no study"):
        call_command("release", study="nobody", out=tmp_path / "s.zip")
    assert out.read_text() == "mine" and not Release.objects.exists()


@pytest.mark.django_db
def test_beside_each_table_stands_what_its_own_columns_mean(released: Released) -> None:
    files = files_of(archive_of(released.release()))
    for one in layout.TABLES.values():
        told = json.loads(files[one.sidecar])
        assert told["description"] == one.about
        assert [(its["name"], its["description"]) for its in told["variableMeasured"]] == [
            (column.name, column.meaning) for column in one.columns
        ]


def test_every_column_is_described_in_the_docs() -> None:
    text = (ROOT / "docs" / "releases.md").read_text()
    for one in layout.TABLES.values():
        assert f"`{one.name}`" in text, one.name
        assert all(column.meaning for column in one.columns)
