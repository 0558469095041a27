"""Sending a file, looking at it, importing it once, putting it aside; and who may."""

import re
import uuid
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import resolve
from django.utils import timezone
from pytest_django import Settings

from corpus.drafts import draft_file, draft_folder
from corpus.models import Answer, Instrument, Sitting
from llmruns.importers import records
from llmruns.models import Experiment, ModelConfig, ReplyDraft, ReplyImport, Run
from llmruns.urls import urlpatterns
from studies.models import Membership
from studies.services import blinding_impose
from tests.conftest import Cast
from tests.llmruns.replay.conftest import Replay, as_file, good, record, whole

pytestmark = pytest.mark.django_db
BASE = "/studies/ours/experiments/imports/"


@pytest.fixture(autouse=True)
def data_dir(tmp_path: Path, settings: Settings) -> Path:
    settings.DATA_DIR = tmp_path
    return tmp_path


@pytest.fixture
def alice(cast: Cast) -> Client:
    return cast.client(cast.alice)


def send(client: Client, data: bytes, instrument: Instrument, name: str = "old.jsonl") -> str:
    file = SimpleUploadedFile(name, data)
    response = client.post(f"{BASE}new/", {"instrument": instrument.pk, "file": file})
    assert response.status_code == 302, response.context["form"].errors
    return str(response["Location"])


def shown(page: str) -> str:
    found = re.search(r'name="shown" value="(\w+)"', page)
    assert found is not None
    return found[1]


def body(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200
    return response.content.decode()


def test_a_file_is_sent_looked_at_and_imported_once(alice: Client, instrument: Instrument) -> None:
    address = send(alice, as_file([*whole(), *whole(2)[:2]]), instrument)
    page = body(alice, address)
    assert "Nothing is imported yet." in page and "GPT-0, 2: 3" in page and not Experiment.objects.exists()
    alice.post(address, {"title": "Old models", "prompt": "", "max_attempts": "4"})
    page = body(alice, address)
    response = alice.post(address + "confirm/", {"shown": shown(page)})
    experiment = Experiment.objects.get()
    assert response["Location"] == f"/studies/ours/experiments/{experiment.pk}/"
    assert (experiment.title, experiment.max_attempts, Answer.objects.count()) == ("Old models", 4, 5)
    assert not ReplyDraft.objects.exists()
    again = alice.post(address + "confirm/", {"shown": shown(page)})
    assert again["Location"] == response["Location"], "the button was pressed twice"
    assert Experiment.objects.count() == 1
    second = send(alice, as_file([*whole(), *whole(2)[:2]]), instrument, "copy.jsonl")
    page = body(alice, second)
    assert "these replies are here already" in page.lower() and 'name="shown"' not in page
    assert f"/studies/ours/experiments/{experiment.pk}/" in page


def test_a_file_with_problems_shows_them_by_line_and_cannot_be_imported(alice: Client, instrument: Instrument) -> None:
    address = send(alice, as_file([record(1), b"<script>", record(9), record(2, raw_reply=5)]), instrument)
    page = body(alice, address)
    assert "cannot be imported as it is" in page and 'name="shown"' not in page
    for words in ("line 2: 1: &lt;script&gt;", "line 3: 9", "line 4: raw_reply: string"):
        assert words in page
    assert alice.post(address + "confirm/", {"shown": ""}).status_code == 302
    assert not Experiment.objects.exists()


def test_what_is_in_a_file_is_shown_as_text(alice: Client, instrument: Instrument) -> None:
    evil = "<img src=x onerror=alert(1)>"
    lines = [record(1, model=evil, raw_reply=good(evil)), record(2, model=evil), record(3, model=evil, **{evil: 1})]
    address = send(alice, as_file(lines), instrument, "<b>.jsonl")
    page = body(alice, address)
    assert evil not in page and "&lt;img" in page
    alice.post(address + "confirm/", {"shown": shown(page)})
    experiment = Experiment.objects.get()
    run = Run.objects.get()
    for tail in ("", f"runs/{run.pk}/", "calls/"):
        assert evil not in body(alice, f"/studies/ours/experiments/{experiment.pk}/{tail}")


def test_what_changed_since_it_was_shown_is_not_imported(alice: Client, instrument: Instrument) -> None:
    address = send(alice, as_file(whole()), instrument)
    page = body(alice, address)
    path = draft_file(ReplyDraft, ReplyDraft.objects.get().key)
    data = path.read_bytes()
    path.write_bytes(data.replace(b"GPT-0", b"GPT-1"))  # the length stays
    assert alice.post(address + "confirm/", {"shown": shown(page)})["Location"] == address
    path.write_bytes(data + b"\n")
    assert alice.post(address + "confirm/", {"shown": shown(page)})["Location"] == f"{BASE}new/"
    path.unlink()
    assert alice.get(address)["Location"] == f"{BASE}new/"
    assert not Experiment.objects.exists()


def test_a_file_that_is_too_large_is_refused_at_the_door(
    alice: Client, instrument: Instrument, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("llmruns.replay_forms.MAX_BYTES", 10)
    file = SimpleUploadedFile("a.jsonl", b"x" * 11)
    response = alice.post(f"{BASE}new/", {"instrument": instrument.pk, "file": file})
    assert response.status_code == 400 and records.MAX_BYTES > 10 and not ReplyDraft.objects.exists()


def test_files_go_when_they_are_thrown_away_or_a_day_old(
    alice: Client, instrument: Instrument, django_capture_on_commit_callbacks: Callable
) -> None:
    address = send(alice, as_file(whole()), instrument)
    folder = draft_folder(ReplyDraft, ReplyDraft.objects.get().key)
    assert "old.jsonl" in body(alice, BASE) and folder.exists()
    with django_capture_on_commit_callbacks(execute=True):
        alice.post(address + "discard/")
    assert not folder.exists() and alice.get(address).status_code == 404
    send(alice, as_file(whole()), instrument)
    ReplyDraft.objects.update(made_at=timezone.now() - timedelta(hours=25))
    with django_capture_on_commit_callbacks(execute=True):
        body(alice, BASE)
    assert not ReplyDraft.objects.exists()


def test_an_import_is_marked_wherever_it_is_shown_and_offers_nothing_to_send(alice: Client, replay: Replay) -> None:
    experiment = replay(whole()[:2]).made.experiment
    run, config = Run.objects.get(), ModelConfig.objects.get()
    here = f"/studies/ours/experiments/{experiment.pk}/"
    mark = 'came in as a file.">imported</span>'
    for address in (
        "/studies/ours/experiments/",
        here,
        f"{here}runs/{run.pk}/",
        f"{here}calls/",
        "/studies/ours/calls/",
    ):
        assert mark in body(alice, address), address
    page = body(alice, here) + body(alice, f"{here}runs/{run.pk}/")
    for action in ("resume", "pause", "cancel", "cap"):
        assert f'action="{here}{action}/"' not in page
    assert "the imported file holds no reply" in page.lower()
    assert f"/models/{config.pk}/try/" not in body(alice, "/studies/ours/models/")
    assert alice.post(f"/studies/ours/models/{config.pk}/try/")["Location"] == "/studies/ours/models/"
    form = alice.get("/studies/ours/experiments/new/").context["form"]
    assert not form.fields["configs"].queryset.exists(), "nobody can launch it"
    alice.post(f"{here}resume/")
    alice.post(f"{here}pause/")
    experiment.refresh_from_db()
    run.refresh_from_db()
    assert (experiment.state, run.state) == ("finished", "incomplete")
    assert "time unknown" in body(alice, f"{here}calls/")


def test_an_import_is_put_aside_and_counted_again(alice: Client, replay: Replay) -> None:
    made = replay(whole()).made
    here = f"/studies/ours/experiments/{made.experiment_id}/"
    page = alice.post(f"{BASE}{made.pk}/aside/", {"reason": ""}, follow=True).content.decode()
    assert "Say why" in page and Sitting.objects.get().standing == "counted"
    page = alice.post(f"{BASE}{made.pk}/aside/", {"reason": "<b>wrong"}, follow=True).content.decode()
    assert "&lt;b&gt;wrong" in page and Sitting.objects.get().standing == "excluded"
    assert "put aside" in body(alice, "/studies/ours/experiments/") and "put aside" in body(alice, BASE)
    assert alice.post(f"{BASE}{made.pk}/count/")["Location"] == here
    assert Sitting.objects.get().standing == "counted"


def test_imports_are_closed_to_others_and_to_whoever_rates(
    cast: Cast, alice: Client, replay: Replay, instrument: Instrument
) -> None:
    made = replay(whole()).made
    draft = send(alice, as_file(whole(model="B")), instrument)
    only_posts = [f"{draft}confirm/", f"{draft}discard/", f"{BASE}{made.pk}/aside/", f"{BASE}{made.pk}/count/"]
    posts = [f"{BASE}new/", draft, *only_posts]
    asked = {resolve(address).url_name for address in (BASE, *posts)}
    assert asked == {pattern.name for pattern in urlpatterns if pattern.name.startswith("reply_")}
    for address in only_posts:
        assert alice.get(address).status_code == 405, "a GET starts nothing"
    for address in (BASE, *posts):
        assert "/login/" in Client().get(address)["Location"], address
    for user, status in ((cast.bob, 404), (cast.rita, 404)):
        client = cast.client(user)
        for address in posts:
            assert client.post(address, {"reason": "x"}).status_code == status, (user, address)
        for address in (BASE, f"{BASE}new/", draft):
            assert client.get(address).status_code == status, (user, address)
    assert cast.client(cast.bob).post(f"/studies/theirs/experiments/imports/{made.pk}/aside/").status_code == 404
    blinding_impose(study=cast.study, user=cast.alice, cause="campaign 1")
    for address in posts:
        assert alice.post(address, {"reason": "x"}).status_code == 403, address
    assert ReplyImport.objects.get().set_aside_at is None and ReplyDraft.objects.exists()


def test_a_draft_is_its_senders_alone(cast: Cast, alice: Client, instrument: Instrument) -> None:
    address = send(alice, as_file(whole()), instrument)
    Membership.objects.filter(user=cast.rita).update(role="researcher")
    assert cast.client(cast.rita).get(address).status_code == 404
    assert alice.get(f"{BASE}files/{uuid.uuid4()}/").status_code == 404
