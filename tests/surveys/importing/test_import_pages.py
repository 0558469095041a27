"""The researcher's pages, through HTTP: send, choose, look, import, look again."""

import re
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from corpus.models import Answer, Instrument
from corpus.tables.workbook import MAX_COLUMNS
from reports.withdrawal import participant_withdraw
from studies.services import blinding_impose, membership_set
from surveys.import_drafts import draft_path, drafts_sweep
from surveys.models import ImportBatch, ImportDraft, PlatformRecord, Survey
from tests.conftest import Cast
from tests.surveys.importing.conftest import STATEMENT, toloka, workbook
from tests.surveys.importing.test_answers_import import LATER, WHOLE, participant, stored
from tests.surveys.importing.test_rules import FORM, PROLIFIC

LIST = "/studies/ours/imports/"
TARGET = {"title": "Old data", "statement": STATEMENT}


@pytest.fixture(autouse=True)
def data_dir(settings: Settings, tmp_path: Path) -> Path:
    settings.DATA_DIR = tmp_path
    return tmp_path


class Desk:
    """A researcher importing a file."""

    def __init__(self, client: Client, instrument: Instrument) -> None:
        self.client, self.instrument, self.address = client, instrument, ""

    def send(self, data: bytes, name: str = "file.csv", format_name: str = "") -> str:
        file = SimpleUploadedFile(name, data)
        response = self.client.post(
            f"{LIST}new/", {"instrument": self.instrument.pk, "file": file, "format": format_name}
        )
        assert response.status_code == 302, response.content.decode()
        self.address = response["Location"]
        return self.page()

    def page(self) -> str:
        response = self.client.get(self.address)
        assert response.status_code == 200
        return response.content.decode()

    def choose(self, **fields: Any) -> str:
        """Press the button of the form as the page has it, with these fields changed."""
        response = self.client.post(self.address, self.form() | TARGET | fields)
        assert response.status_code == 302, response.content.decode()
        return self.page()

    def form(self) -> dict[str, Any]:
        page = self.page()
        columns = re.search(r'name="columns" value="(\w+)"', page)
        fields: dict[str, Any] = {"columns": columns[1]} if columns else {}
        for name, body in re.findall(r'<select[^>]*name="([\w-]+)"[^>]*>(.*?)</select>', page, flags=re.DOTALL):
            chosen = re.search(r'<option value="([^"]*)" selected', body)
            fields[name] = chosen[1] if chosen else ""
        return fields

    def confirm(self, page: str) -> Any:
        shown = re.search(r'name="shown" value="(\w+)"', page)
        assert shown, page
        return self.client.post(f"{self.address}import/", {"shown": shown[1]})


@pytest.fixture
def desk(cast: Cast, instrument: Instrument) -> Desk:
    return Desk(cast.client(cast.alice), instrument)


def test_from_the_file_to_the_batch(desk: Desk, data_dir: Path) -> None:
    assert "Import a file" in desk.client.get(LIST).content.decode()
    page = desk.send(WHOLE, "pool.tsv")
    assert "Toloka" in page and "UTF-8" in page and "tab" in page
    assert "say above which survey" in page and 'name="shown"' not in page
    page = desk.choose()
    assert ">4</td>" in page and "rejected" in page and "кошка сидит на столе" in page
    assert not Answer.objects.exists()
    response = desk.confirm(page)
    batch = ImportBatch.objects.get()
    assert response["Location"] == f"{LIST}{batch.pk}/" and len(stored()) == 4
    page = desk.client.get(response["Location"]).content.decode()
    for text in ("pool.tsv", batch.files[0]["sha256"], STATEMENT, "does not cover publication", "rejected"):
        assert text in page
    assert not ImportDraft.objects.exists()
    assert f"{LIST}{batch.pk}/" in desk.client.get(LIST).content.decode()
    assert LIST in desk.client.get("/studies/ours/surveys/").content.decode()
    survey = Survey.objects.get()
    assert desk.client.get(f"/studies/ours/surveys/{survey.pk}/")["Location"] == LIST
    assert desk.client.get(f"/studies/ours/surveys/{survey.pk}/edit/").status_code == 404
    assert Client().get(f"/s/{survey.slug}/").status_code == 403


def test_columns_are_chosen_with_their_first_values_in_sight(desk: Desk) -> None:
    text = "кто;номер;слова;когда\nа-1;1;кошка сидит;05.03.2024 19:41\nа-1;2;мышь;05.03.2024 19:42\n"
    page = desk.send(text.encode("cp1251"))
    assert "Windows-1251" in page and "semicolon" in page and "а-1" in page
    assert "not said yet which" in page  # nothing is guessed
    roles = {"role-0": "respondent", "role-1": "item", "role-2": "answer", "role-3": "timestamp"}
    page = desk.choose(**roles, time_zone="Europe/Moscow")
    assert "2024-03-05T19:41:00" in page
    desk.confirm(page)
    assert stored() == {("а-1", 1): "кошка сидит", ("а-1", 2): "мышь"}
    assert ImportBatch.objects.get().settings["time_zone"] == "Europe/Moscow"


def test_a_form_with_consent(desk: Desk) -> None:
    rows = "05.03.2024 19:41:09,да,с-01,кошка,дети\n05.03.2024 19:42:09,нет,с-02,тайна,секрет\n"
    desk.send((FORM + rows).encode())
    assert desk.form()["role-3"] == "s1" and desk.form()["role-4"] == "s3"  # seen from the questions
    page = desk.choose(**{"role-1": "consent", "role-2": "respondent"})
    assert "Which of these mean" in page and 'value="нет"' in page and "the values that mean" in page
    page = desk.choose(consent_yes=["да"])
    assert "no_consent" in page and "тайна" not in page[page.index('id="check"') :]
    desk.confirm(page)
    assert stored() == {("с-01", 1): "кошка", ("с-01", 3): "дети"}


def test_a_sheet_of_a_workbook_is_chosen(desk: Desk) -> None:
    header = ["Отметка времени", "кошка сидеть на стол ."]
    data = workbook(["заметки"], ["просто так"], sheets={"Ответы": [header, ["05.03.2024 10:00:00", "кошка"]]})
    page = desk.send(data, "book.xlsx")
    assert "several sheets" in page and 'name="sheet"' in page
    desk.choose(sheet="Ответы", format="google_forms")
    page = desk.page()
    assert "кошка" in page and "XLSX" in page
    desk.confirm(page)
    assert list(stored().values()) == ["кошка"]


def test_prolific(desk: Desk, survey: Survey) -> None:
    participant(survey, "p1")
    page = desk.send((PROLIFIC + "s1,p1,APPROVED,,1148,25,Female,Russian\ns2,p2,APPROVED,,1,,,\n").encode())
    assert "Prolific" in page and "1148" in page and "unknown_participant" in page
    desk.choose(**{"role-7": "keep"})
    desk.confirm(desk.page())
    assert PlatformRecord.objects.get().data == {"age": 25, "sex": "Female", "Fluent languages": "Russian"}
    assert desk.client.get(f"{LIST}{ImportBatch.objects.get().pk}/").status_code == 200


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("answers.csv", b"<!DOCTYPE html><html>", "not a table"),
        ("empty.csv", b"", "empty"),
        ("cut.csv", b'a,b\n1,"x', "line 2: the file ends"),
        ("bomb.xlsx", b"PK\x03\x04", "not a table"),
        ("header.tsv", toloka(), "not a single record"),
    ],
)
def test_a_broken_file_says_so_and_offers_no_import(desk: Desk, name: str, data: bytes, message: str) -> None:
    page = desk.send(data, name)
    assert message in page and 'name="shown"' not in page
    assert desk.client.post(f"{desk.address}import/", {"shown": ""}).status_code == 302
    assert not Answer.objects.exists() and not Survey.objects.exists()


def test_a_file_that_is_too_large_is_refused_before_it_is_kept(
    desk: Desk, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("surveys.import_forms.MAX_BYTES", 1_000)
    file = SimpleUploadedFile("big.csv", b"a" * 1_001)
    response = desk.client.post(f"{LIST}new/", {"instrument": desk.instrument.pk, "file": file})
    assert response.status_code == 200 and "Split it" in response.content.decode()
    assert not ImportDraft.objects.exists() and not (data_dir / "imports").exists()


def test_hostile_text_is_shown_as_text(desk: Desk) -> None:
    evil = '<script>alert("1")</script>'
    page = desk.send(f"кто,{evil},номер\n{evil},{evil},1\n".replace('"', "'").encode(), f"{evil[:20]}.csv")
    page = desk.choose(**{"role-0": "respondent", "role-1": "answer", "role-2": "item"})
    assert "<script>alert" not in page and "&lt;script&gt;" in page
    desk.confirm(page)
    page = desk.client.get(f"{LIST}{ImportBatch.objects.get().pk}/").content.decode()
    assert "<script>alert" not in page


def test_a_stale_confirmation_is_refused(desk: Desk, run: Any) -> None:
    desk.send(LATER, "pool.tsv")
    page = desk.choose()
    run(WHOLE)  # somebody else imports into the same survey meanwhile
    before = stored()
    response = desk.confirm(page)
    assert response["Location"] == desk.address and stored() == before
    page = desk.page()
    assert "no longer what you saw" in page
    desk.confirm(page)
    assert len(stored()) == 6


def test_other_choices_in_a_second_tab_make_a_confirmation_stale(desk: Desk) -> None:
    desk.send(WHOLE, "pool.tsv")
    page = desk.choose()
    desk.choose(publication="on")
    desk.confirm(page)
    assert not Answer.objects.exists()


def test_importing_twice_says_there_is_nothing_new(desk: Desk) -> None:
    for expected in (True, False):
        desk.send(WHOLE, "pool.tsv")
        page = desk.choose()
        assert ("There is nothing new" not in page) is expected
        if expected:
            desk.confirm(page)
    assert ImportBatch.objects.count() == 1


def test_a_changed_or_lost_file_is_not_imported(desk: Desk) -> None:
    desk.send(WHOLE, "pool.tsv")
    page = desk.choose()
    path = draft_path(ImportDraft.objects.get().key)
    path.write_bytes(LATER)
    assert desk.confirm(page)["Location"] == f"{LIST}new/"
    path.unlink()
    assert desk.client.get(desk.address)["Location"] == f"{LIST}new/"
    assert not Answer.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_files_go_when_they_are_imported_discarded_or_a_day_old(desk: Desk, data_dir: Path) -> None:
    desk.send(WHOLE, "pool.tsv")
    desk.confirm(desk.choose())
    assert list((data_dir / "imports").iterdir()) == []
    desk.send(WHOLE, "pool.tsv")
    modes = [path.stat().st_mode & 0o777 for path in (data_dir / "imports").rglob("*")]
    assert modes == [0o700, 0o600], "a folder of its own, and the file in it"
    desk.client.post(f"{desk.address}discard/")
    assert list((data_dir / "imports").iterdir()) == []
    desk.send(WHOLE, "pool.tsv")
    ImportDraft.objects.update(made_at=timezone.now() - timedelta(hours=25))
    drafts_sweep()
    assert list((data_dir / "imports").iterdir()) == [] and not ImportDraft.objects.exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("tail", ["", "new/", "draft"])
def test_any_page_of_imports_takes_old_files_away(desk: Desk, cast: Cast, data_dir: Path, tail: str) -> None:
    membership_set(user=cast.bob, study=cast.study, role="researcher", actor=cast.alice)
    desk.send(WHOLE, "pool.tsv")
    ImportDraft.objects.update(made_at=timezone.now() - timedelta(hours=25))
    if tail == "draft":
        assert desk.client.get(desk.address).status_code == 404
    else:
        assert cast.client(cast.bob).get(LIST + tail).status_code == 200
    assert list((data_dir / "imports").iterdir()) == [] and not ImportDraft.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_withdrawal_takes_every_file_of_the_study_away(desk: Desk, survey: Survey, data_dir: Path) -> None:
    desk.send(WHOLE, "pool.tsv")
    participant_withdraw(participant_id=participant(survey, "p1").pk, way="request")
    assert list((data_dir / "imports").iterdir()) == [] and not ImportDraft.objects.exists()


def test_ones_own_files_stand_in_the_list_and_can_be_thrown_away(desk: Desk, cast: Cast) -> None:
    membership_set(user=cast.bob, study=cast.study, role="researcher", actor=cast.alice)
    assert "not imported" not in desk.client.get(LIST).content.decode()
    desk.send(WHOLE, "pool.tsv")
    page = desk.client.get(LIST).content.decode()
    assert "pool.tsv" in page and f'action="{desk.address}discard/"' in page
    assert "pool.tsv" not in cast.client(cast.bob).get(LIST).content.decode()
    desk.client.post(f"{desk.address}discard/")
    assert "pool.tsv" not in desk.client.get(LIST).content.decode()


@pytest.mark.django_db(transaction=True)
def test_pressed_several_times_it_is_imported_once_and_everybody_lands_there(desk: Desk, cast: Cast) -> None:
    desk.send(WHOLE, "pool.tsv")
    shown = re.search(r'name="shown" value="(\w+)"', desk.choose())[1]  # type: ignore[index]
    clients = [cast.client(cast.alice) for _ in range(4)]
    found: list[str] = []

    def press(client: Client) -> None:
        try:
            found.append(client.post(f"{desk.address}import/", {"shown": shown})["Location"])
        finally:
            connection.close()

    threads = [threading.Thread(target=press, args=[client]) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    batch = ImportBatch.objects.get()
    assert found == [f"{LIST}{batch.pk}/"] * 4 and len(stored()) == 4
    assert desk.client.get(desk.address)["Location"] == f"{LIST}{batch.pk}/"
    for client in clients:
        assert "Nothing was imported" not in client.get(f"{LIST}{batch.pk}/").content.decode()
    membership_set(user=cast.bob, study=cast.study, role="researcher", actor=cast.alice)
    assert cast.client(cast.bob).post(f"{desk.address}import/", {"shown": shown}).status_code == 404


def test_an_instrument_that_is_not_complete_is_told_on_the_page(desk: Desk) -> None:
    desk.send(WHOLE, "pool.tsv")
    page = desk.choose()
    desk.instrument.instruction = ""
    desk.instrument.save(update_fields=["instruction"])
    assert desk.confirm(page)["Location"] == desk.address
    page = desk.page()
    assert page.count("the instrument is not complete yet") == 2 and 'name="shown"' not in page


def test_as_many_columns_as_are_allowed_can_be_chosen_among(desk: Desk) -> None:
    def table(columns: int) -> bytes:
        header = ["кто", "номер", "слова", *(f"x{n}" for n in range(3, columns))]
        return (",".join(header) + "\n" + ",".join(["а-1", "1", "кошка", *"-" * (columns - 3)]) + "\n").encode()

    desk.send(table(MAX_COLUMNS))
    page = desk.choose(**{"role-0": "respondent", "role-1": "item", "role-2": "answer"})
    desk.confirm(page)
    assert stored() == {("а-1", 1): "кошка"}
    assert f"more than {MAX_COLUMNS} columns" in desk.send(table(MAX_COLUMNS + 1))


def test_others_see_and_write_nothing(desk: Desk, cast: Cast, run: Any) -> None:
    page = desk.send(WHOLE, "pool.tsv")
    page = desk.choose()
    shown = re.search(r'name="shown" value="(\w+)"', page)[1]  # type: ignore[index]
    batch = run(WHOLE, title="Mine").batches[0]
    posts = {
        f"{LIST}new/": {"instrument": desk.instrument.pk, "file": SimpleUploadedFile("a.csv", WHOLE)},
        desk.address: {**TARGET, "title": "Hijacked"},
        f"{desk.address}import/": {"shown": shown},
        f"{desk.address}discard/": {},
    }
    for user in (cast.bob, cast.rita):
        client = cast.client(user)
        for address, data in posts.items():
            assert client.post(address, data).status_code == 404
        for address in (LIST, f"{LIST}new/", desk.address, f"{LIST}{batch.pk}/"):
            assert client.get(address).status_code == 404
    for address, data in posts.items():
        assert Client().post(address, data)["Location"].startswith("/login/")
    assert Survey.objects.count() == 1 and ImportDraft.objects.get().settings["target"]["title"] == "Old data"


def test_a_colleagues_draft_is_not_mine(desk: Desk, cast: Cast) -> None:
    membership_set(user=cast.bob, study=cast.study, role="researcher", actor=cast.alice)
    page = desk.send(WHOLE, "pool.tsv")
    page = desk.choose()
    shown = re.search(r'name="shown" value="(\w+)"', page)[1]  # type: ignore[index]
    client = cast.client(cast.bob)
    assert client.get(desk.address).status_code == 404
    assert client.post(f"{desk.address}import/", {"shown": shown}).status_code == 404
    assert client.post(f"{desk.address}discard/").status_code == 404
    assert ImportDraft.objects.exists() and not Answer.objects.exists()


def test_another_studys_draft_and_instrument_are_not_found(desk: Desk, cast: Cast) -> None:
    client = cast.client(cast.bob)
    data = {"instrument": desk.instrument.pk, "file": SimpleUploadedFile("a.csv", WHOLE)}
    response = client.post("/studies/theirs/imports/new/", data)
    assert response.status_code == 200 and not ImportDraft.objects.exists()
    desk.send(WHOLE)
    key = ImportDraft.objects.get().key
    assert client.get(f"/studies/theirs/imports/{key}/").status_code == 404


def test_who_rates_in_an_open_campaign_does_not_see_who_answered(desk: Desk, cast: Cast) -> None:
    desk.send(WHOLE)
    blinding_impose(user=cast.alice, study=cast.study, cause="campaign 1")
    for address in (LIST, f"{LIST}new/", desk.address):
        assert desk.client.get(address).status_code == 403
    assert desk.client.post(f"{desk.address}import/", {"shown": ""}).status_code == 403
