"""The field's cases: everything that their expectations say, read and stored."""

import json
from pathlib import Path
from typing import Any

import pytest

from annotation.import_report import ImportReport
from annotation.importers.plan import Source
from annotation.importing import Target, judgements_import
from annotation.models import Campaign, JudgementImport, Rater
from corpus.models import Answer, Instrument
from scoring.models import Criterion, Judgement, Round
from tests.annotation.factories import many_answers
from tests.conftest import Cast
from tests.shared_cases import ABSENT, SHARED

IMPORTS = SHARED / "cases" / "imports"
CODES = {"gram": "grammatical", "logic": "logical", "order": "order"}
BROKEN = ("broken_html", "broken_header_only")
GOOD = ("ls_csv", "ls_json", "ls_json_min", "doccano_individual")

pytestmark = [pytest.mark.django_db, pytest.mark.skipif(not IMPORTS.exists(), reason=ABSENT)]


def case_of(name: str) -> tuple[dict[str, Any], list[Source]]:
    folder: Path = IMPORTS / name
    expected = json.loads((folder / "expected.json").read_text())
    files = sorted(path for path in folder.iterdir() if path.name != "expected.json")
    return expected, [Source(path.name, path.read_bytes()) for path in files]


def settings_of(expected: dict[str, Any], instrument: Instrument) -> dict[str, Any]:
    """What the case's person chooses, with its keys joined to answers of the study."""
    keys = [
        f"{letter}-{number}" for letter, numbers in (("a", range(1, 5)), ("c", range(301, 304))) for number in numbers
    ]
    keys = [key if key.startswith("c") else f"a-00{key[2:]}" for key in keys]
    ids = Answer.objects.filter(sitting__instrument=instrument).order_by("pk").values_list("blind_id", flat=True)
    mapping = {key: str(blind_id) for key, blind_id in zip(keys, ids, strict=False)}
    return {**expected["settings"], "codes": CODES, "keys": mapping}


def imported(cast: Cast, instrument: Instrument, name: str, **how: Any) -> tuple[dict[str, Any], ImportReport]:
    many_answers(instrument, sittings=3)
    expected, files = case_of(name)
    settings = settings_of(expected, instrument) if "settings" in expected else {"key": "x", "criteria": {"y": {}}}
    target = Target(name)
    report = judgements_import(
        study=cast.study, files=files, format_name=None, settings=settings, target=target, actor=cast.alice, **how
    )
    return expected, report


@pytest.mark.parametrize("name", GOOD)
def test_what_is_expected_is_read(cast: Cast, instrument: Instrument, name: str) -> None:
    expected, report = imported(cast, instrument, name, dry_run=True)
    told = report.as_json()
    for part in ("format", "encoding", "delimiter"):
        assert told[part] == expected.get(part), part
    labels = [{"answer_id": one["key"], "annotator": one["annotator"], **one["values"]} for one in told["labels"]]
    assert labels == expected["labels"]
    assert told["skipped"] == expected["skipped"]
    conflicts = [{name: value for name, value in one.items() if name != "value"} for one in told["conflicts"]]
    assert conflicts == expected.get("conflicts", [])
    for part, number in expected["counts"].items():
        assert told["counts"].get(part, 0) == number, part
    assert not JudgementImport.objects.exists() and not Rater.objects.exists()


@pytest.mark.parametrize("name", GOOD)
def test_what_is_expected_is_stored(cast: Cast, instrument: Instrument, name: str) -> None:
    """Every value that is not missing is a judgement, and nothing else is."""
    expected, report = imported(cast, instrument, name)
    codes = dict(Criterion.objects.values_list("pk", "code"))
    keys = {v.answer.pk: v.planned.answer.key for v in report.votes}
    stored = {
        (keys[one.answer_id], one.judge.rater.imported_name, codes[one.criterion_id], one.value)
        for one in Judgement.objects.select_related("judge__rater")
    }
    wanted = {
        (label["answer_id"], label["annotator"], CODES[name], float(label[name]))
        for label in expected["labels"]
        for name in CODES
        if label[name] is not None
    }
    assert stored == wanted and Judgement.objects.count() == len(wanted)
    assert Rater.objects.count() == expected["counts"]["annotators"]


@pytest.mark.parametrize("name", ["doccano_csv_shared", *BROKEN])
def test_what_cannot_be_imported_leaves_nothing(cast: Cast, instrument: Instrument, name: str) -> None:
    expected, report = imported(cast, instrument, name)
    assert report.fault and report.fault[1].code == expected["error"]
    assert report.as_json()["error"] == expected["error"] and report.counts["imported"] == 0
    if name == "doccano_csv_shared":
        told = report.as_json()
        assert all(told[part] == expected[part] for part in ("format", "encoding", "delimiter", "labels", "skipped"))
    for model in (Campaign, Round, Rater, Judgement, JudgementImport):
        assert not model.objects.exists()
