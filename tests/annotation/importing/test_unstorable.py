"""Half a character or a NUL, which no database can keep, wherever a file may have it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from annotation.import_report import ImportReport
from annotation.models import Campaign, JudgementDraft, JudgementImport, Place
from corpus.models import Answer
from scoring.models import Judgement
from tests.annotation.importing.conftest import CRITERIA, WIDE, ls_annotation, ls_task, table
from tests.annotation.importing.test_command import run as command
from tests.annotation.importing.test_pages import BASE, choose, confirm, form_of, send
from tests.conftest import Cast

LONE = "\ud800"
WRITTEN = "\\ud800"  # six characters
LS = {"key": "answer", "criteria": CRITERIA}
DOCCANO = {"key": "answer", "labels": {"gram_yes": ["grammatical", 1], "order" + WRITTEN: ["order", 0]}}


@pytest.fixture(autouse=True)
def files_of_its_own(settings: Any, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path


def exported(answer: Answer, sign: str) -> bytes:
    """Label Studio's JSON with the sign as a control, a choice, in a text, in a name of data and in the annotator."""
    values = {"grammatical": ["да"], "logical": ["нет" + sign], sign: ["да"]}
    data = {"answer": str(answer.blind_id), "text": "кош" + sign, "x" + sign: 1}
    return json.dumps([ls_task(data, ls_annotation(1, 11, values), ls_annotation(2, "a" + sign, values))]).encode()


@pytest.mark.parametrize(("sign", "written"), [(LONE, WRITTEN), ("\0", "\\u0000")])
def test_the_rest_of_the_record_is_taken_and_the_record_named(
    run: Callable[..., ImportReport], answers: list[Answer], sign: str, written: str
) -> None:
    report = run(exported(answers[0], sign), settings=LS)
    assert report.imported and report.fault is None
    assert list(Judgement.objects.values_list("criterion__code", "value")) == [("grammatical", 1)]
    assert [(one.reason, one.criterion, one.value) for one in report.conflicts] == [
        ("unknown_value", "logical", "нет" + written)
    ]
    assert [(one.reason, one.annotation) for one in report.skipped] == [("unusable_annotator", "2")]
    assert [(one.reason, one.record, one.annotation) for one in report.warnings] == [
        ("escaped", 1, "1"),
        ("escaped", 1, "2"),
    ]
    assert report.plan.unused == [written]


def test_a_label_and_a_comment_are_kept_as_they_are_written(
    run: Callable[..., ImportReport], answers: list[Answer]
) -> None:
    record = {"answer": str(answers[0].blind_id), "label": ["gram_yes", "order" + LONE], "Comments": ["a" + LONE]}
    whole = {"answer": str(answers[1].blind_id), "label": ["gram_yes"]}
    report = run("\n".join(map(json.dumps, (whole, record))).encode(), settings=DOCCANO, format_name="doccano_jsonl")
    assert sorted(Judgement.objects.values_list("criterion__code", "value")) == [
        ("grammatical", 1),
        ("grammatical", 1),
        ("order", 0),
    ]
    assert [(one.reason, one.record) for one in report.warnings] == [("escaped", 2)]
    assert set(Place.objects.values_list("comment", flat=True)) == {"", "a" + WRITTEN}
    assert "order" + WRITTEN in JudgementImport.objects.get().settings["labels"]


def test_choices_within_a_cell(run: Callable[..., ImportReport], answers: list[Answer]) -> None:
    report = run(table((answers[0].blind_id, "anna", '{"choices": ["\\ud800"]}', "да", "нет")), settings=WIDE)
    assert [(one.criterion, one.value) for one in report.conflicts] == [("grammatical", WRITTEN)]
    assert report.imported


def test_a_pair_is_one_character_and_no_half(run: Callable[..., ImportReport], answers: list[Answer]) -> None:
    data = json.dumps(
        [ls_task({"answer": str(answers[0].blind_id), "t": "🙂"}, ls_annotation(1, "🙂", {"order": ["да"]}))]
    )
    assert "\\ud83d" in data
    report = run(data.encode(), settings=LS)
    assert not report.warnings and list(report.people) == ["🙂"]


def test_the_pages_import_it_and_throw_it_away(cast: Cast, answers: list[Answer]) -> None:
    alice: Client = cast.client(cast.alice)
    data = exported(answers[0], LONE)
    first = send(alice, ("export.json", data))
    page = alice.get(first)
    assert page.status_code == 200 and "half a character" in page.content.decode()
    roles = [name for name in form_of(page.content.decode()) if name.startswith("role-")]
    for name in roles:  # whatever field is taken for a criterion, it can be stored with the draft
        assert alice.post(first, form_of(page.content.decode()) | {name: "c-order"}).status_code == 302
        assert alice.get(first).status_code == 200
    assert alice.post(first + "discard/").status_code == 302 and not JudgementDraft.objects.exists()
    second = send(alice, ("export.json", data))
    text = next(name for name, value in form_of(page.content.decode()).items() if value == "text")
    confirm(alice, second, choose(alice, second, title="T", **{text: ""}))
    assert Judgement.objects.count() == 1 and Campaign.objects.get().title == "T"


def test_doccanos_label_on_the_pages(cast: Cast, answers: list[Answer]) -> None:
    alice: Client = cast.client(cast.alice)
    record = {"answer": str(answers[0].blind_id), "label": ["gram_yes", "order" + LONE]}
    address = send(alice, ("anna.jsonl", json.dumps(record).encode()))
    confirm(alice, address, choose(alice, address, title="T", **{"label-1": "order=0"}))
    assert sorted(Judgement.objects.values_list("criterion__code", "value")) == [("grammatical", 1), ("order", 0)]


def test_a_table_of_keys_with_a_nul(cast: Cast, answers: list[Answer]) -> None:
    """UTF-16, in which a NUL is a character like any other."""
    keys = f"key,answer\na\0,{answers[0].blind_id}\n".encode("utf-16")
    fields = {"uploads": [SimpleUploadedFile("t.csv", table())], "keys": SimpleUploadedFile("k.csv", keys)}
    assert cast.client(cast.alice).post(BASE + "new/", fields).status_code in (302, 400)


def test_a_doubled_name_and_an_endless_number_are_said_in_our_words(cast: Cast) -> None:
    alice: Client = cast.client(cast.alice)
    for data, told in (
        (b'[{"\\ud800": 1, "\\ud800": 2, "data": {}, "annotations": []}]', "stands twice in one object"),
        (b'[{"data": {"n": ' + b"9" * 100_000 + b'}, "annotations": []}]', "a number of thousands of digits"),
    ):
        page = alice.get(send(alice, ("x.json", data)))
        assert page.status_code == 200 and told in page.content.decode()
        assert "Exceeds the limit" not in page.content.decode()


def test_the_command_names_the_record(answers: list[Answer], tmp_path: Path) -> None:
    path = tmp_path / "export.json"
    path.write_bytes(exported(answers[0], LONE))
    told = command(path, "--key", "answer", "--title", "T", "--mapping", json.dumps(LS))
    assert "note: annotation 1: escaped: the record holds half a character" in told
    assert "skipped: annotation 2: unusable_annotator" in told
    assert f"missing: annotation 1, logical: unknown_value: a value that has no meaning here (нет{WRITTEN})" in told
    number = Campaign.objects.get().pk
    assert f"Stored: 1 judgement, as the closed campaign “T” (number {number})." in told


def test_the_command_takes_names_that_are_no_text(answers: list[Answer], tmp_path: Path) -> None:
    path = tmp_path / "a\udcff.json"
    path.write_bytes(exported(answers[0], LONE))
    told = command(
        path,
        "--title",
        "T" + LONE,
        "--mapping",
        json.dumps({"key": "answer", "criteria": {LONE: {"да": 1}}, "codes": {LONE: "order"}}),
    )
    assert "Stored: 1 judgement" in told and Campaign.objects.get().title == "T" + WRITTEN
    assert JudgementImport.objects.get().files[0]["name"] == "a\\udcff.json"
