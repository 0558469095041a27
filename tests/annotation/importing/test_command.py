import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from annotation.models import Campaign, Rater
from corpus.models import Answer
from scoring.models import Judgement
from tests.annotation.importing.conftest import WIDE, table
from tests.conftest import Cast


@pytest.fixture
def path(answers: list[Answer], tmp_path: Path) -> Path:
    path = tmp_path / "table.csv"
    path.write_bytes(
        table(
            (answers[0].blind_id, "лена", "да", "нет", ""),
            (answers[1].blind_id, "миша", "да", "да / нет", "да"),
            ("a-001", "лена", "да", "да", "да"),
        )
    )
    return path


def run(*arguments: Any) -> str:
    out = io.StringIO()
    call_command("judgements_import", *map(str, arguments), "--study", "ours", stdout=out)
    return out.getvalue()


OPTIONS = [
    *("--key", "answer", "--annotator", "who", "--value", "да=1", "--value", "нет=0"),
    *("--criterion", "grammatical=grammatical", "--criterion", "logical=logical", "--criterion", "order=order"),
]


def test_a_dry_run_tells_and_stores_nothing(path: Path) -> None:
    told = run(path, *OPTIONS, "--dry-run")
    assert "annotator лена: answers 1, a new rater (лена)" in told
    assert "skipped: record 3: unknown_answer" in told
    assert "missing: record 2, logical: unknown_value" in told and "(да / нет)" in told
    assert "imported 2" in told and "this was a dry run" in told
    assert not Campaign.objects.exists() and not Rater.objects.exists()


def test_it_imports_once(path: Path) -> None:
    told = run(path, *OPTIONS, "--title", "Весна")
    campaign = Campaign.objects.get()
    assert f"Stored: 2 judgements, as the closed campaign “Весна” (number {campaign.pk})." in told
    assert Campaign.objects.get().title == "Весна" and Judgement.objects.count() == 4
    assert "“Весна” has these judgements already" in run(path, *OPTIONS, "--title", "Again")
    assert Campaign.objects.count() == 1


def test_settings_from_a_file_and_json(path: Path, answers: list[Answer], tmp_path: Path) -> None:
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps(WIDE | {"keys": {"a-001": str(answers[2].blind_id)}}), encoding="utf-8")
    told = json.loads(run(path, "--mapping", settings, "--json", "--dry-run", "--rater", "миша==лена"))
    assert (told["format"], told["encoding"], told["delimiter"]) == ("columns_csv", "utf-8", ",")
    assert told["counts"]["imported"] == 3 and told["counts"]["annotators"] == 2
    assert told["labels"][2] == {
        "record": 3,
        "answer": str(answers[2].blind_id),
        "key": "a-001",
        "annotator": "лена",
        "values": {"grammatical": 1.0, "logical": 1.0, "order": 1.0},
    }


def test_a_fault_says_where(path: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.json"
    broken.write_bytes(b'[{"data": {}, "annotations": [')
    out = io.StringIO()
    with pytest.raises(CommandError, match=r"Nothing was imported\. broken\.json: line 1: the file ends in the middle"):
        call_command("judgements_import", str(path), str(broken), *OPTIONS, "--study", "ours", "--json", stdout=out)
    told = json.loads(out.getvalue())
    assert (told["error"], told["error_file"], told["error_line"]) == ("truncated", "broken.json", 1)
    assert told["counts"] == {"imported": 0} and not Campaign.objects.exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["--mapping", "{"],
        ["--mapping", "[1]"],
        ["--mapping", "/nowhere/at/all"],
        ["--value", "да"],
        ["--value", "да=x"],
        ["--rater", "лена"],
        ["--title", ""],
    ],
)
def test_options_that_cannot_be(path: Path, arguments: list[str]) -> None:
    with pytest.raises(CommandError):
        run(path, *OPTIONS, *arguments)
    assert not Campaign.objects.exists()


def test_what_is_not_there(path: Path, cast: Cast) -> None:
    with pytest.raises(CommandError, match="no study"):
        call_command("judgements_import", str(path), "--study", "none")
    with pytest.raises(CommandError, match="Cannot read"):
        run("/nowhere.csv", *OPTIONS)
