"""ZIPs of exports: what is in them is read, and what only looks like one is refused."""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from django.core.management import call_command
from django.test import Client

from annotation.importers import archive
from annotation.importers.archive import MAX_MEMBERS, unpacked
from annotation.importers.plan import Source
from annotation.importers.planning import plan_files
from annotation.models import JudgementImport, Rater
from corpus.models import Answer
from tests.annotation.importing.test_pages import choose, confirm, send
from tests.conftest import Cast


def packed(*files: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as made:
        for name, data in files:
            made.writestr(name, data)
    return out.getvalue()


def names(*sources: Source) -> list[str]:
    return [one.name for one in unpacked(sources)]


def fault(data: bytes) -> str:
    error = plan_files(unpacked([Source("x.zip", data)]), format_name=None, settings={"key": "answer"}).error
    assert error
    return f"{error.code} {error.detail}"


def line(answer: object, *labels: str) -> bytes:
    return json.dumps({"answer": str(answer), "label": labels}).encode()


def test_files_stay_files_and_archives_become_theirs() -> None:
    data = packed(
        ("anna.jsonl", b"{}"), ("dir/ольга.jsonl", b"{}"), ("__MACOSX/._anna.jsonl", b"x"), (".DS_Store", b"x")
    )
    assert names(Source("a.csv", b"a"), Source("x.zip", data)) == ["a.csv", "anna.jsonl", "ольга.jsonl"]


def test_a_workbook_is_no_archive() -> None:
    out = io.BytesIO()
    openpyxl.Workbook().save(out)
    assert names(Source("table.xlsx", out.getvalue())) == ["table.xlsx"]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"PK\x03\x04nonsense", "archive_unreadable "),
        (packed(("a.jsonl", b"{}"))[:-30], "archive_unreadable "),
        (packed(), "archive_empty "),
        (packed(("only/", b"")), "archive_empty "),
        (packed(("inner.zip", packed(("a.jsonl", b"{}")))), "archive_within inner.zip"),
        (packed(*((f"{n}.jsonl", b"{}") for n in range(MAX_MEMBERS + 1))), f"archive_too_many {MAX_MEMBERS}"),
    ],
    ids=["nonsense", "cut", "empty", "folder", "nested", "many"],
)
def test_what_cannot_be_unpacked_is_refused_with_the_reason(data: bytes, why: str) -> None:
    assert fault(data) == why


def test_the_page_says_why_an_archive_is_refused(
    cast: Cast, monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path
) -> None:
    settings.DATA_DIR = tmp_path
    monkeypatch.setattr(archive, "MAX_BYTES", 2 * 1024**2)
    alice = cast.client(cast.alice)
    bomb = packed(("a.jsonl", b" " * (2 * 1024**2 + 1)))
    page = alice.get(send(alice, ("bomb.zip", bomb))).content.decode()
    assert "unpacked, the archive has more than 2 MB" in page and "this is not a table" not in page
    page = alice.get(send(alice, ("nested.zip", packed(("inner.zip", bomb))))).content.decode()
    assert "the archive holds an archive (inner.zip)" in page and "this is not a table" not in page


def test_a_workbook_within_is_read(answers: list[Answer]) -> None:
    book = openpyxl.Workbook()
    book.active.append(["answer", "who", "grammatical"])
    book.active.append([str(answers[0].blind_id), "anna", 1])
    out = io.BytesIO()
    book.save(out)
    settings = {"key": "answer", "annotator": "who", "criteria": {"grammatical": {}}}
    plan = plan_files(
        unpacked([Source("x.zip", packed(("t.xlsx", out.getvalue())))]), format_name=None, settings=settings
    )
    assert plan.error is None and [one.values for one in plan.judgements] == [{"grammatical": 1}]


def test_a_locked_one_is_refused() -> None:
    data = bytearray(packed(("a.jsonl", b"{}"), method=zipfile.ZIP_STORED))
    for start, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(start) + place] |= 1  # the flag that says so
    assert fault(bytes(data)) == "archive_unreadable "


def test_a_bomb_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    """What counts is what comes out, together, and not what the archive says."""
    monkeypatch.setattr(archive, "MAX_BYTES", 1_000)
    bomb, small = packed(("a.jsonl", b" " * 1_001)), packed(("a.jsonl", b" " * 600))
    assert names(Source("x.zip", bomb)) == ["x.zip"]
    assert names(Source("1.zip", small), Source("2.zip", small)) == ["a.jsonl", "2.zip"]
    lying = bytearray(small)
    place = lying.index(b"PK\x01\x02") + 24
    lying[place : place + 4] = (10).to_bytes(4, "little")
    assert sum(len(one.data) for one in unpacked([Source("x.zip", bytes(lying))])) <= 1_000


def test_doccanos_zip_on_the_pages(cast: Cast, answers: list[Answer], settings: Any, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path
    alice: Client = cast.client(cast.alice)
    data = packed(*((f"{who}.jsonl", line(answers[0].blind_id, "gram_yes")) for who in ("anna", "olga")))
    address = send(alice, ("export.zip", data))
    page = choose(alice, address, title="doccano")
    assert "export.zip" in page
    confirm(alice, address, page)
    assert set(Rater.objects.values_list("imported_name", flat=True)) == {"anna", "olga"}
    assert [one["name"] for one in JudgementImport.objects.get().files] == ["anna.jsonl", "olga.jsonl"]


def test_doccanos_zip_by_command(cast: Cast, answers: list[Answer], tmp_path: Path) -> None:
    """Two projects, each about one criterion: an annotator's two files are one judgement."""
    paths = []
    for name in ("grammatical", "order"):
        paths.append(tmp_path / f"{name}.zip")
        paths[-1].write_bytes(packed(("anna.jsonl", line(answers[0].blind_id, f"{name}_yes"))))
    labels = ["--label=grammatical_yes=grammatical:1", "--label=order_yes=order:1"]
    out = io.StringIO()
    call_command(
        "judgements_import", "--study=ours", "--title=T", "--key=answer", *labels, *map(str, paths), stdout=out
    )
    assert "annotator anna: answers 1, a new rater (anna)" in out.getvalue()
    assert JudgementImport.objects.get().counts["values"] == 2 and Rater.objects.count() == 1
