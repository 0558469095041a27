"""The researcher's way through the pages, and everybody who may not go it."""

import json
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from annotation.import_drafts import draft_folder, judgement_drafts_discard
from annotation.models import Campaign, JudgementDraft, JudgementImport, Rater
from corpus.models import Answer
from scoring.models import Judgement
from tests.annotation.factories import make_rater
from tests.annotation.importing.conftest import ls, ls_annotation, ls_task, table
from tests.conftest import Cast

BASE = "/studies/ours/campaigns/imports/"


@pytest.fixture(autouse=True)
def files_of_its_own(settings: Any, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path


@pytest.fixture
def alice(cast: Cast) -> Client:
    return cast.client(cast.alice)


def send(client: Client, *files: tuple[str, bytes], **fields: Any) -> str:
    """Upload; the address of the draft."""
    uploads = [SimpleUploadedFile(name, data) for name, data in files]
    response = client.post(BASE + "new/", {"uploads": uploads, "format": "", **fields})
    assert response.status_code == 302, response.content.decode()
    return response["Location"]


def form_of(page: str) -> dict[str, Any]:
    """What the page's first form would post as it stands."""
    form = page[page.index('<form method="post" autocomplete') : page.index('<section id="check"')]
    fields: dict[str, Any] = {}
    for select in re.finditer(r'<select[^>]* name="([^"]+)"[^>]*>(.*?)</select>', form, re.DOTALL):
        chosen = re.search(r'<option value="([^"]*)" selected', select[2])
        first = re.search(r'<option value="([^"]*)"', select[2])
        fields[select[1]] = (chosen or first)[1] if (chosen or first) else ""
    for tag in re.findall(r"<input[^>]*>", form):
        name, value = re.search(r'name="([^"]+)"', tag), re.search(r'value="([^"]*)"', tag)
        if name and 'type="checkbox"' not in tag:
            fields[name[1]] = value[1] if value else ""
    return fields


def choose(client: Client, address: str, **fields: Any) -> str:
    """Post the page's form with these changes; the page after it."""
    posted = form_of(client.get(address).content.decode()) | fields
    response = client.post(address, posted)
    assert response.status_code == 302, response.content.decode()
    return client.get(address).content.decode()


def confirm(client: Client, address: str, page: str) -> Any:
    shown = re.search(r'name="shown" value="([0-9a-f]{64})"', page)
    assert shown, page
    return client.post(address + "confirm/", {"shown": shown[1]})


@pytest.fixture
def good(answers: list[Answer]) -> bytes:
    return table(
        (answers[0].blind_id, "lena@example.org", "да", "нет", "да"),
        (answers[1].blind_id, "<b>миша</b>", "да", "", "нет"),
        (uuid4(), "lena@example.org", "да", "нет", "да"),
        header=("answer", "annotator", "grammatical", "logical", "order"),
    )


def test_from_the_list_to_the_campaign(alice: Client, cast: Cast, good: bytes) -> None:
    assert BASE in alice.get("/studies/ours/campaigns/").content.decode()
    assert "Label Studio" in alice.get(BASE).content.decode()
    address = send(alice, ("table.csv", good))
    page = alice.get(address).content.decode()
    for told in ("Nothing is imported yet", "no such answer in this study", "&lt;b&gt;миша&lt;/b&gt;"):
        assert told in page
    assert "<b>миша" not in page
    assert "what the campaign that holds the judgements is called" in page and 'name="shown"' not in page
    page = choose(alice, address, title="Весна 2024")
    assert not Campaign.objects.exists(), "a look imports nothing"
    done = confirm(alice, address, page)
    found = JudgementImport.objects.get()
    assert done["Location"] == f"{BASE}{found.pk}/"
    assert (found.campaign.title, found.actor, found.counts["imported"]) == ("Весна 2024", cast.alice, 2)
    assert Judgement.objects.count() == 5 and not JudgementDraft.objects.exists()
    page = alice.get(done["Location"]).content.decode()
    assert "lena@example.org" in page and "&lt;b&gt;миша" in page and "no such answer in this study" in page
    assert "Весна 2024" in alice.get(BASE).content.decode()
    for tail in ("", "answers/?show=all"):
        assert alice.get(f"/studies/ours/campaigns/{found.campaign_id}/{tail}").status_code == 200


def test_pressed_twice_it_imports_once(alice: Client, good: bytes) -> None:
    address = send(alice, ("table.csv", good))
    page = choose(alice, address, title="T")
    first, second = confirm(alice, address, page), confirm(alice, address, page)
    assert first["Location"] == second["Location"] == alice.get(address)["Location"]
    assert Campaign.objects.count() == 1


def test_what_changed_meanwhile_is_shown_again(alice: Client, answers: list[Answer], good: bytes) -> None:
    address = send(alice, ("table.csv", good))
    page = choose(alice, address, title="T")
    answers[0].sitting.standing = "withdrawn"
    answers[0].sitting.save(update_fields=["standing"])
    assert confirm(alice, address, page)["Location"] == address
    assert "no longer what you saw" in alice.get(address).content.decode() and not Campaign.objects.exists()


def test_the_same_files_again(alice: Client, good: bytes) -> None:
    first = send(alice, ("table.csv", good))
    confirm(alice, first, choose(alice, first, title="Весна"))
    page = choose(alice, send(alice, ("again.csv", good)), title="Again")
    assert "“Весна” has these judgements already" in page and 'name="shown"' not in page
    assert page.count("R1 · lena@example.org") == 2, "both annotators are offered the raters who are here"


def test_label_studio_is_read_without_a_choice(alice: Client, answers: list[Answer]) -> None:
    data = {"answer_id": str(answers[0].blind_id), "item": 1, "text": answers[0].text}
    yes = {"gram": ["да"], "logic": ["нет"], "order": ["да"], "style": ["ой"]}
    address = send(alice, ("export.json", ls(ls_task(data, ls_annotation(1, 11, yes)))))
    page = alice.get(address).content.decode()
    assert "Label Studio: JSON" in page and "Choices left aside: style" in page
    fields = form_of(page)
    assert {value for name, value in fields.items() if name.startswith("role-")} == {
        "key",
        "text",
        "",
        "c-grammatical",
        "c-logical",
        "c-order",
    }
    confirm(alice, address, choose(alice, address, title="T"))
    assert sorted(Judgement.objects.values_list("criterion__code", "value")) == [
        ("grammatical", 1),
        ("logical", 0),
        ("order", 1),
    ]


def test_doccano_files_and_labels(alice: Client, answers: list[Answer]) -> None:
    def file(*records: tuple[int, list[str]]) -> bytes:
        return "\n".join(
            json.dumps({"id": n, "text": "x", "answer_id": str(answers[n].blind_id), "label": labels})
            for n, labels in records
        ).encode()

    address = send(
        alice,
        ("ann_a.jsonl", file((0, ["gram_yes", "logic_no"]), (1, []))),
        ("ann_b.jsonl", file((0, ["gram_no", "logic_no"]))),
    )
    page = alice.get(address).content.decode()
    fields = form_of(page)
    labels = [value for name, value in fields.items() if name.startswith("label-")]
    assert labels == ["grammatical=1", "logical=0", "grammatical=0"]
    role = next(name for name, value in fields.items() if value == "text")
    page = choose(alice, address, title="T", **{role: "", "label-1": "logical=1"})
    confirm(alice, address, page)
    assert sorted(Judgement.objects.values_list("judge__rater__imported_name", "criterion__code", "value")) == [
        ("ann_a", "grammatical", 1),
        ("ann_a", "logical", 1),
        ("ann_b", "grammatical", 0),
        ("ann_b", "logical", 1),
    ]


def test_shared_labels_are_refused_with_the_reason(alice: Client) -> None:
    data = b"id,text,label,Comments,answer_id\r\n301,x,gram_yes#logic_yes,,c-301\r\n"
    page = alice.get(send(alice, ("all.csv", data))).content.decode()
    assert "does not say who annotated" in page and 'name="shown"' not in page


def test_unusual_names_are_mapped_by_hand(alice: Client, cast: Cast, answers: list[Answer]) -> None:
    """Columns and values that suggest nothing, annotators who are raters here or one person."""
    lena = make_rater(cast.study, "lena")
    data = table(
        (answers[0].blind_id, "11", "хорошо"),
        (answers[1].blind_id, "l@example.org", "плохо"),
        (answers[2].blind_id, "12", "так себе"),
        header=("код", "кто", "грамматика"),
    )
    address = send(alice, ("table.csv", data))
    assert "Choose below, then look again" in alice.get(address).content.decode()
    page = choose(alice, address, **{"role-1": "annotator", "role-2": "c-grammatical", "title": "T"})
    assert "value that has no meaning here" in page or "on no criterion" in page
    page = choose(alice, address, **{"value-0-0": "1", "value-0-1": "0"})
    fields = form_of(page)
    assert (fields["value-0-0"], fields["value-0-1"], fields["value-0-2"]) == ("1", "0", "")
    page = choose(alice, address, **{"rater-0": lena.pseudonym, "rater-1": "=0"})
    confirm(alice, address, page)
    assert sorted(Judgement.objects.values_list("judge__rater__pseudonym", "value")) == [("R1", 0), ("R1", 1)]
    assert Rater.objects.count() == 1


def test_a_record_per_criterion_is_mapped(alice: Client, answers: list[Answer]) -> None:
    key = answers[0].blind_id
    data = table(
        (key, "лена", "грамматика", "да"),
        (key, "лена", "order", "нет"),
        header=("answer", "rater", "criterion", "value"),
    )
    address = send(alice, ("long.csv", data))
    page = choose(alice, address, title="T", **{"code-0": "grammatical"})
    confirm(alice, address, page)
    assert sorted(Judgement.objects.values_list("criterion__code", "value")) == [("grammatical", 1), ("order", 0)]


def test_a_table_of_keys(alice: Client, answers: list[Answer]) -> None:
    keys = table(("a-001", answers[0].blind_id), header=("key", "answer"))
    data = table(("a-001", "лена", "да", "да", "да"))
    address = send(alice, ("t.csv", data), keys=SimpleUploadedFile("keys.csv", keys))
    page = choose(alice, address, title="T", **{"role-1": "annotator"})
    confirm(alice, address, page)
    assert {one.answer_id for one in Judgement.objects.all()} == {answers[0].pk}
    assert "a-001" not in json.dumps(JudgementImport.objects.get().settings)


@pytest.mark.parametrize("keys", [b"%PDF", b"key,answer\na,1\na,2\n", b"key\na\n"])
def test_a_table_of_keys_that_is_none(alice: Client, good: bytes, keys: bytes) -> None:
    fields = {"uploads": [SimpleUploadedFile("t.csv", good)], "keys": SimpleUploadedFile("k.csv", keys)}
    response = alice.post(BASE + "new/", fields)
    assert response.status_code == 400 and not JudgementDraft.objects.exists()


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("<script>.csv", b""),
        ("x.json", b"[{"),
        ("x.json", b'{"detail": "no"}'),
        ("x.csv", b"<!DOCTYPE html><html>"),
        ("x.xlsx", b"PK\x03\x04nonsense"),
        ("x.json", b"[" * 100_000),
        ("x.csv", b"a,b\n=1+1,<script>alert(1)</script>\n"),
        ("x.csv", b"a,a,,\n1,2,3,4\n"),
    ],
)
def test_any_file_gets_a_page(alice: Client, answers: list[Answer], name: str, data: bytes) -> None:
    address = send(alice, (name, data))
    page = alice.get(address)
    assert page.status_code == 200 and b"<script>alert" not in page.content and b"<script>." not in page.content
    assert 'role="alert"' in page.content.decode() and alice.post(address + "confirm/", {}).status_code == 302
    assert not Campaign.objects.exists()


def test_a_form_that_is_not_ours(alice: Client, good: bytes) -> None:
    address = send(alice, ("table.csv", good))
    ours = form_of(alice.get(address).content.decode())
    for posted in (
        {},
        {"rubric": "paper", "looks": "x", "role-0": "c-sequence", "rater-0": "=9", "value-0-0": "77"},
        {"rubric": "nonsense"},
        {"rubric": "children", "title": "x" * 300},
        ours | {"role-0": "drop", "rater-0": "R99", "value-0-0": "7", "rater-1": "=x"},
    ):
        assert alice.post(address, posted).status_code in (302, 400)
        assert alice.get(address).status_code == 200
    assert not Campaign.objects.exists()


def test_too_many_files(alice: Client, good: bytes) -> None:
    uploads = [SimpleUploadedFile(f"{n}.csv", b"x") for n in range(51)]
    assert alice.post(BASE + "new/", {"uploads": uploads}).status_code == 400
    assert alice.post(BASE + "new/", {}).status_code == 400


# --- files that wait ------------------------------------------------------------------------------------------------


def test_files_are_thrown_away(alice: Client, good: bytes) -> None:
    address = send(alice, ("table.csv", good))
    draft = JudgementDraft.objects.get()
    assert draft_folder(draft.key).exists()
    alice.post(address + "discard/")
    assert not JudgementDraft.objects.exists()
    assert alice.get(address).status_code == 404


def test_old_files_are_swept(alice: Client, good: bytes, django_capture_on_commit_callbacks: Callable) -> None:
    send(alice, ("table.csv", good))
    draft = JudgementDraft.objects.get()
    JudgementDraft.objects.update(made_at=timezone.now() - timedelta(hours=25))
    with django_capture_on_commit_callbacks(execute=True):
        alice.get(BASE)
    assert not JudgementDraft.objects.exists() and not draft_folder(draft.key).exists()


def test_a_withdrawal_takes_waiting_files(
    alice: Client, cast: Cast, good: bytes, django_capture_on_commit_callbacks: Callable
) -> None:
    send(alice, ("table.csv", good))
    folder = draft_folder(JudgementDraft.objects.get().key)
    with django_capture_on_commit_callbacks(execute=True):
        assert judgement_drafts_discard(study=cast.other_study) == 0 and judgement_drafts_discard(study=cast.study) == 1
    assert not folder.exists()


def test_a_file_that_was_swapped_is_lost(alice: Client, good: bytes) -> None:
    address = send(alice, ("table.csv", good))
    (draft_folder(JudgementDraft.objects.get().key) / "0").write_bytes(good + b"x")
    assert alice.get(address)["Location"] == BASE + "new/"


# --- what is whose ----------------------------------------------------------------------------------------------------


def addresses(draft: str, found: JudgementImport) -> list[str]:
    return [BASE, BASE + "new/", f"{BASE}{found.pk}/", draft, draft + "confirm/", draft + "discard/"]


@pytest.fixture
def everything(alice: Client, good: bytes, answers: list[Answer]) -> list[str]:
    first = send(alice, ("table.csv", good))
    confirm(alice, first, choose(alice, first, title="T"))
    waiting = send(alice, ("other.csv", table((answers[2].blind_id, "лена", "да", "да", "да"))))
    return addresses(waiting, JudgementImport.objects.get())


def test_a_look_starts_nothing(alice: Client, everything: list[str]) -> None:
    tables = (Campaign, Rater, Judgement, JudgementDraft)
    before = [table.objects.count() for table in tables]
    for address in everything:
        alice.get(address)
    assert [table.objects.count() for table in tables] == before


def test_no_export_has_a_name_of_the_file(alice: Client, everything: list[str]) -> None:
    for name in ("judgements", "annotations"):
        body = b"".join(alice.get(f"/studies/ours/exports/{name}.csv").streaming_content).decode()
        assert "R1" in body and "example.org" not in body and "миша" not in body
