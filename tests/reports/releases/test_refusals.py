"""Archives that somebody has tampered with, or made to do harm: each is refused with a reason; nothing is stored."""

import csv
import hashlib
import io
import stat
import zipfile
from collections.abc import Callable

import pytest

from reports.releases import archive, layout
from reports.releases.archive import ArchiveRefusedError
from reports.releases.importing import release_import
from reports.releases.words import FAULTS, fault_text
from studies.models import AuditEntry, Study
from tests.reports.releases.conftest import Released, archive_of, files_of

Files = dict[str, bytes]


@pytest.fixture
def files(released: Released) -> Files:
    return files_of(archive_of(released.release(questionnaire="all")))


def packed(files: Files, *, sums: bool = True, more: Callable[[zipfile.ZipFile], None] | None = None) -> bytes:
    """An archive, with the list of digests that fits it where `sums` says so."""
    if sums:
        told = (f"{hashlib.sha256(data).hexdigest()}  {path}\n" for path, data in files.items() if path != layout.SUMS)
        files = files | {layout.SUMS: "".join(told).encode()}
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as target:
        for path, data in files.items():
            target.writestr(path, data)
        if more:
            more(target)
    return stream.getvalue()


def refused(data: bytes) -> ArchiveRefusedError:
    studies, entries = Study.objects.count(), AuditEntry.objects.count()
    with pytest.raises(ArchiveRefusedError) as caught:
        release_import(stream=io.BytesIO(data), name="r.zip", slug="copy", actor=None)
    assert (Study.objects.count(), AuditEntry.objects.count()) == (studies, entries)
    assert len(fault_text(caught.value)) > 20
    return caught.value


def edited(files: Files, table: str, change: Callable[[list[dict[str, str]]], None]) -> Files:
    path = layout.TABLES[table].path
    rows = list(csv.DictReader(io.StringIO(files[path].decode(), newline="")))
    change(rows)
    stream = io.StringIO(newline="")
    writer = csv.DictWriter(stream, layout.TABLES[table].header)
    writer.writeheader()
    writer.writerows(rows)
    return files | {path: stream.getvalue().encode()}


def test_every_reason_has_a_word_of_its_own() -> None:
    assert len(set(FAULTS.values())) == len(FAULTS)


@pytest.mark.django_db
def test_what_is_whole_is_taken(files: Files) -> None:
    done = release_import(stream=io.BytesIO(packed(files)), name="r.zip", slug="copy", actor=None)
    assert done.study is not None


@pytest.mark.django_db
def test_what_luria_does_not_read_may_be_absent(files: Files) -> None:
    assert set(layout.BESIDE) < set(files)
    left = {path: data for path, data in files.items() if path not in layout.BESIDE}
    done = release_import(stream=io.BytesIO(packed(left)), name="r.zip", slug="copy", actor=None)
    assert done.study is not None
    assert refused(packed(files | {"data/description-other_data.json": b"{}"})).code == "unexpected"


@pytest.mark.django_db
def test_no_archive_or_no_release(files: Files) -> None:
    assert refused(b"").code == "unreadable"
    assert refused(b"PK\x03\x04" + b"\0" * 100).code == "unreadable"
    assert refused(packed(files)[:-200]).code == "unreadable"
    assert refused(packed({"hello.txt": b"x"}, sums=False)).code == "unexpected"
    lacking = {path: data for path, data in files.items() if path != layout.TABLES["labels"].path}
    assert refused(packed(lacking)).code == "absent"


@pytest.mark.django_db
def test_members_that_do_harm(files: Files) -> None:
    def add(name: str, mode: int = stat.S_IFREG | 0o644) -> Callable[[zipfile.ZipFile], None]:
        def more(target: zipfile.ZipFile) -> None:
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            target.writestr(info, b"/etc/passwd")

        return more

    assert refused(packed(files, more=add("../../evil.csv"))).code == "unexpected"
    assert refused(packed(files, more=add("/etc/cron.d/x"))).code == "unexpected"
    assert refused(packed(files, more=add("data/", stat.S_IFDIR | 0o755))).code == "no_plain_file"
    link = {path: data for path, data in files.items() if path != layout.README}
    assert refused(packed(link, more=add(layout.README, stat.S_IFLNK | 0o777))).code == "no_plain_file"
    with pytest.warns(UserWarning, match="Duplicate name"):
        doubled = packed(files, more=add(layout.README))
    assert refused(doubled).code == "doubled"
    many = packed(files, more=lambda target: [target.writestr(f"{n}.csv", b"") for n in range(60)])
    assert refused(many).code == "too_many"


@pytest.mark.django_db
def test_an_encrypted_and_a_strangely_packed_member(files: Files) -> None:
    data = bytearray(packed(files))
    data[data.index(b"PK\x01\x02") + 8] |= 1  # the flag in the directory
    assert refused(bytes(data)).code == "encrypted"
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_LZMA) as target:
        for path, content in files.items():
            target.writestr(path, content)
    assert refused(stream.getvalue()).code == "compression"


@pytest.mark.django_db
def test_a_bomb_is_not_unpacked(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small archive of a large file, whether its directory tells its size or lies about it."""
    monkeypatch.setattr(archive, "MAX_UNPACKED", 2_000_000)
    bomb = packed(files | {layout.README: b"0" * 3_000_000})
    assert len(bomb) < 200_000 and refused(bomb).code == "bomb"
    lying = bytearray(bomb)
    place = lying.rindex(layout.README.encode()) - 46  # of its entry in the directory
    assert lying[place : place + 4] == b"PK\x01\x02"
    lying[place + 24 : place + 28] = (10).to_bytes(4, "little")
    assert refused(bytes(lying)).code in ("bomb", "unreadable", "changed")
    monkeypatch.setattr(archive, "MAX_ARCHIVE", 1_000)
    assert refused(packed(files)).code == "too_large"


@pytest.mark.django_db
def test_a_changed_file_is_told_by_its_digest(files: Files) -> None:
    changed = files | {layout.README: files[layout.README] + b"!"}
    error = refused(packed(changed, sums=False))
    assert (error.code, error.detail) == ("changed", layout.README)
    assert refused(packed(files | {layout.SUMS: b"nothing"}, sums=False)).code == "no_sums"
    short = b"\n".join(files[layout.SUMS].splitlines()[1:])
    assert refused(packed(files | {layout.SUMS: short}, sums=False)).code == "no_sums"


@pytest.mark.django_db
def test_a_changed_row_is_told_by_what_it_comes_to(files: Files) -> None:
    """With new digests, by the same hand: labels and scores are counted again."""

    def vote(rows: list[dict[str, str]]) -> None:
        row = next(row for row in rows if row["judge"] == "R1" and row["value"] == "1")
        row["value"] = "0"

    def label(rows: list[dict[str, str]]) -> None:
        rows[0]["votes"] = "17"

    def score(rows: list[dict[str, str]]) -> None:
        row = next(row for row in rows if row["score"])
        row["score"] = "4"

    def text(rows: list[dict[str, str]]) -> None:
        row = next(row for row in rows if row["outcome"] == "given")
        row["text"] = "два слова"

    assert refused(packed(edited(files, "judgements", vote))).code == "labels"
    assert refused(packed(edited(files, "labels", label))).code == "labels"
    assert refused(packed(edited(files, "scores", score))).code == "scores"
    assert refused(packed(edited(files, "answers", text))).code == "labels"
    assert refused(packed(edited(files, "labels", lambda rows: rows.pop()))).code == "labels"


ROWS: list[tuple[str, str, dict[str, str], str]] = [
    ("answers", "answer", {"answer": "no uuid"}, "value"),
    ("answers", "outcome", {"outcome": "withdrawn", "text": ""}, "sitting"),
    ("answers", "outcome", {"outcome": "declined"}, "sitting"),
    ("answers", "long", {"text": "а" * 2_001}, "sitting"),
    ("answers", "position", {"position": "99"}, "reference"),
    ("answers", "respondent", {"respondent": "5b0e7f5e-0000-4000-8000-000000000000"}, "reference"),
    ("answers", "nul", {"text": "a\0b"}, "no_utf8"),
    ("answers", "study", {"study": "theirs"}, "mixed"),
    ("answers", "simulated", {"simulated": "true"}, "mixed"),
    ("sittings", "order", {"order": "[1, 1]"}, "sitting"),
    ("sittings", "order", {"order": "{"}, "value"),
    ("sittings", "order", {"order": "7"}, "value"),
    ("sittings", "state", {"sitting_state": "withdrawn"}, "value"),
    ("sittings", "survey", {"survey": ""}, "value"),
    ("stimuli", "complexity", {"complexity": "mild"}, "value"),
    ("stimuli", "position", {"position": "2"}, "twice"),
    ("stimuli", "original", {"original": ""}, "instrument"),
    ("stimuli", "shuffled", {"shuffled": "yes"}, "value"),
    ("instruments", "limit", {"refusal_below": "9"}, "instrument"),
    ("instruments", "rubric", {"rubric": "other"}, "reference"),
    ("criteria", "scale", {"scale": "[5, 0]"}, "rubric"),
    ("criteria", "version", {"rubric_version": "2"}, "rubric"),
    ("judgements", "value", {"value": "nan"}, "value"),
    ("judgements", "value", {"value": "0.5"}, "scale"),
    ("judgements", "round", {"round": "77"}, "reference"),
    ("judgements", "judge", {"judge": "R9"}, "reference"),
    ("judges", "name", {"judge": "R" * 21}, "value"),
    ("judges", "kind", {"judge_kind": "oracle"}, "value"),
    ("judgements", "answer", {"answer": "5b0e7f5e-0000-4000-8000-000000000000"}, "reference"),
    ("judgements", "confidence", {"confidence": "7"}, "rule"),
    ("models", "body", {"extra_body": "[]"}, "value"),
    ("models", "accepts", {"accepts": "[1e400]"}, "rule"),
    ("instruments", "version", {"instrument_version": "2147483648"}, "rule"),
    ("sittings", "order", {"order": "[[]]"}, "reference"),
    ("judgements", "order", {"order": "9" * 18}, "rule"),
    ("experiments", "runs", {"runs_planned": "0"}, "rule"),
    ("experiments", "prompt", {"prompt_version": "9"}, "reference"),
    ("prompts", "words", {"text": "nothing to fill in"}, "rule"),
    ("questions", "kind", {"question_kind": "essay"}, "value"),
    ("responses", "respondent", {"respondent": "5b0e7f5e-0000-4000-8000-000000000000"}, "reference"),
]


@pytest.mark.django_db
def test_a_row_that_cannot_be(files: Files) -> None:
    """One study for all of them: each is made from the same good archive."""
    found = {}
    for table, what, change, code in ROWS:

        def spoil(rows: list[dict[str, str]], change: dict[str, str] = change) -> None:
            next(row for row in rows if row.get("judge_kind", "rater") == "rater").update(change)

        told = refused(packed(edited(files, table, spoil))).code
        if told != code:
            found[table, what, str(change)[:40]] = told
    assert found == {}


@pytest.mark.django_db
def test_a_file_that_is_none(files: Files) -> None:
    path = layout.TABLES["labels"].path
    assert refused(packed(files | {path: b"a,b\r\n1,2\r\n"})).code == "columns"
    assert refused(packed(files | {path: b"\xff\xfe"})).code == "no_utf8"
    assert refused(packed(files | {path: files[path] + b"1,2\r\n"})).code == "cells"
    assert refused(packed(files | {path: files[path] + b'"open'})).code == "no_csv"
    for manifest in (b"{}", b"[", b'{"study": 1}', files[layout.MANIFEST].replace(b'"ours"', b'"new"')):
        assert refused(packed(files | {layout.MANIFEST: manifest})).code in ("no_manifest", "mixed")
    other = files[layout.MANIFEST].replace(b'"format": 3', b'"format": 4')
    assert refused(packed(files | {layout.MANIFEST: other})).code == "format"
