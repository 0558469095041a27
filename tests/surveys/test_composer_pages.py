"""A test from a treebank, as a researcher makes it in the browser, through HTTP."""

import csv
import io
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from corpus import compositions, queue, tasks
from corpus.composer import Parameters
from corpus.compositions import STALE, composition_claim, composition_create
from corpus.importing import read_stimuli
from corpus.models import Composition, CompositionCandidate, Instrument, Treebank
from corpus.tasks import composition_read
from studies.models import AuditEntry
from tests.conftest import Cast
from tests.corpus.treebanks import CAT, bands, changed, conllu

BASE = "/studies/ours/compositions/"
FIELDS = {
    "title": "First try",
    "language": "ru",
    "counts": "2, 2, 2",
    "bands": "4-6, 7-9, 10-12",
    "shuffled": "0, 1/2, 1/2",
    "min_zipf": "2.6",
    "seed": "1",
    "sensitive": "президент*",
    "licence": "CC0",
}
DATA = bands() + conllu(changed(CAT, 7, form="!", lemma="!"), changed(CAT, 6, form="президенте", lemma="президент"))


@pytest.fixture(autouse=True)
def folder(settings: Settings, tmp_path: Path) -> Path:
    settings.DATA_DIR = tmp_path
    return tmp_path


@pytest.fixture(autouse=True)
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Messages to the worker; the tests do its work themselves."""
    messages: list[int] = []
    monkeypatch.setattr(compositions, "composition_enqueue", messages.append)
    return messages


def upload(client: Client, data: bytes = DATA, address: str = BASE, **fields: object):
    file = SimpleUploadedFile("small.conllu", data)
    return client.post(f"{address}new/", {**FIELDS, "file": file, **fields})


@pytest.fixture
def ready(cast: Cast) -> Composition:
    """A composition whose treebank has been read: six slots, 39 candidates more."""
    assert upload(cast.client(cast.alice)).status_code == 302
    composition = Composition.objects.get()
    composition_read(composition.pk)
    composition.refresh_from_db()
    assert composition.state == "ready", composition.problem
    return composition


def standing(composition: Composition) -> dict[int, CompositionCandidate]:
    return {row.slot: row for row in composition.candidates.filter(slot__isnull=False)}


def decide(client: Client, composition: Composition, slot: int, action: str, candidate: int | None = None, **extra):
    pk = candidate or standing(composition)[slot].pk
    return client.post(f"{BASE}{composition.pk}/slots/{slot}/", {"action": action, "candidate": pk}, **extra)


def accept_all(client: Client, composition: Composition) -> None:
    for slot in standing(composition):
        decide(client, composition, slot, "accept")


def test_from_the_file_to_the_instrument(
    cast: Cast, folder: Path, sent: list[int], django_capture_on_commit_callbacks
) -> None:
    client = cast.client(cast.alice)
    with django_capture_on_commit_callbacks(execute=True):
        address = upload(client)["Location"]
    composition = Composition.objects.get()
    assert sent == [composition.pk] and address == f"{BASE}{composition.pk}/"
    assert "every 1s" in client.get(address).content.decode()
    composition_read(composition.pk)
    page = client.get(address).content.decode()
    assert "0 of 6 accepted" in page and "every 1s" not in page
    assert client.get(address, headers={"HX-Request": "true"})["HX-Refresh"] == "true"
    accept_all(client, composition)
    shown = client.get(f"{address}make/").content.decode()
    assert "An instrument of 6 tasks is made, 2 of them shuffled" in shown and "fewer than 3 words" in shown
    exported = client.get(f"{address}tasks.csv").content
    response = client.post(f"{address}make/", {"title": "Made", "slug": "made", "instruction": "Составьте."})
    assert response["Location"] == address
    instrument = Instrument.objects.get()
    rows = read_stimuli(exported)
    assert [(row.text, row.source) for row in rows] == list(instrument.stimuli.values_list("text", "source"))
    assert rows[0].source.startswith("small; s") and rows[0].source.endswith("; CC0")
    assert (instrument.language, instrument.refusal_below, instrument.lower_case) == ("ru", 3, True)
    assert "has been made of these tasks" in client.get(address).content.decode()
    assert client.get(f"{BASE}").content.decode().count("First try") == 1
    actions = set(AuditEntry.objects.values_list("action", flat=True))
    assert {"treebank_add", "composition_create", "composition_make_instrument", "instrument_create"} <= actions


def test_making_twice_is_making_once_and_nothing_changes_after(cast: Cast, ready: Composition) -> None:
    client = cast.client(cast.alice)
    accept_all(client, ready)
    for _ in range(2):
        client.post(f"{BASE}{ready.pk}/make/", {"title": "Made", "slug": "made", "instruction": "x"})
    assert Instrument.objects.count() == 1
    before = standing(ready)
    for action in ("undo", "swap", "reject"):
        page = decide(client, ready, 1, action, headers={"HX-Request": "true"}).content.decode()
        assert "Nothing was changed" in page
    assert standing(ready) == before


def test_only_accepted_tasks_make_an_instrument(cast: Cast, ready: Composition) -> None:
    client = cast.client(cast.alice)
    accept_all(client, ready)
    decide(client, ready, 3, "undo")
    assert "5 of 6 proposals are accepted" in client.get(f"{BASE}{ready.pk}/make/").content.decode()
    client.post(f"{BASE}{ready.pk}/make/", {"title": "Made", "slug": "made", "instruction": "x"})
    assert not Instrument.objects.exists()


def test_swap_brings_the_next_and_reject_never_comes_back(cast: Cast, ready: Composition) -> None:
    client = cast.client(cast.alice)
    first = standing(ready)[1]
    seen = []
    for _ in range(13):
        decide(client, ready, 1, "swap")
        seen.append(standing(ready)[1].place)
    assert seen == list(range(3, 16))  # 1 and 2 stand in the slots of the band at first
    decide(client, ready, 1, "swap")
    assert standing(ready)[1] == first  # all were seen: the first one comes again
    decide(client, ready, 1, "reject")
    for _ in range(20):
        decide(client, ready, 1, "swap")
        assert standing(ready)[1] != first
    first.refresh_from_db()
    assert (first.decision, first.slot) == ("rejected", None)


def test_when_the_band_is_used_up(cast: Cast, ready: Composition) -> None:
    client = cast.client(cast.alice)
    for _ in range(13):
        decide(client, ready, 1, "reject")
    page = decide(client, ready, 1, "swap", headers={"HX-Request": "true"}).content.decode()
    assert "There is no other candidate in this band." in page and 1 in standing(ready)
    decide(client, ready, 1, "reject")
    page = client.get(f"{BASE}{ready.pk}/").content.decode()
    assert 1 not in standing(ready) and "No candidate is left for this place" in page and "For 1 task" in page
    accept_all(client, ready)
    assert "1 task less than you asked for" in client.get(f"{BASE}{ready.pk}/make/").content.decode()


def test_the_same_seed_and_decisions_give_the_same_bytes(cast: Cast, ready: Composition) -> None:
    client = cast.client(cast.alice)
    other = composition_create(
        treebank=ready.treebank,
        title="Again",
        parameters=Parameters.from_json(ready.parameters),
        actor=cast.alice,
    )
    composition_read(other.pk)
    for composition in (ready, other):
        for slot, action in ((1, "swap"), (3, "reject"), (3, "swap"), (6, "accept")):
            decide(client, composition, slot, action)
    one, two = (client.get(f"{BASE}{composition.pk}/tasks.csv").content for composition in (ready, other))
    assert one == two and len(read_stimuli(one)) == 6


def test_a_decision_about_what_no_longer_stands_there(cast: Cast, ready: Composition) -> None:
    client = cast.client(cast.alice)
    old = standing(ready)[1].pk
    decide(client, ready, 1, "swap")
    now = standing(ready)[1]
    response = decide(client, ready, 1, "accept", candidate=old, headers={"HX-Request": "true"})
    page = response.content.decode()
    assert "another sentence stands here by now" in page and now.original in page and 'id="summary"' in page
    assert standing(ready)[1].decision == "open"


@pytest.mark.parametrize(
    "data", [{}, {"action": "delete", "candidate": "1"}, {"action": "accept", "candidate": "²"}, {"action": "accept"}]
)
def test_a_decision_that_says_nothing(cast: Cast, ready: Composition, data: dict[str, str]) -> None:
    response = cast.client(cast.alice).post(f"{BASE}{ready.pk}/slots/1/", data)
    assert response.status_code == 400
    response = cast.client(cast.alice).post(f"{BASE}{ready.pk}/slots/99/", {"action": "accept", "candidate": "1"})
    assert response.status_code == 302  # nothing stands there: said on the page


def test_what_was_left_out_and_why(cast: Cast, ready: Composition) -> None:
    client = cast.client(cast.alice)
    address = f"{BASE}{ready.pk}/left-out/"
    page = client.get(address).content.decode()
    assert "Кошка тихо сидит на большом столе!" in page and "президенте" in page
    only = client.get(address, {"reason": "sensitive"}).content.decode()
    assert "президенте" in only and "столе!" not in only
    assert ready.left_out["not_statement"] == 1 and ready.n_left_out == 2
    assert client.get(address, {"reason": "none", "page": "x"}).status_code == 200


def test_the_list_of_left_out_is_paged_and_may_be_gone(cast: Cast, folder: Path) -> None:
    client = cast.client(cast.alice)
    many = [changed(CAT, 7, form="!", lemma="!")] * 120
    upload(client, bands() + conllu(*many))
    composition = Composition.objects.get()
    composition_read(composition.pk)
    address = f"{BASE}{composition.pk}/left-out/?reason=not_statement"
    assert [client.get(f"{address}&page={n}").content.decode().count("столе!") for n in (1, 2, 3)] == [50, 50, 20]
    for path in (folder / "left-out").iterdir():
        path.unlink()
    assert "is not there any more" in client.get(address).content.decode()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "The submitted file is empty"),
        (b"<!doctype html>", "Nothing was stored. line 1: 1 columns instead of ten"),
        (bands().decode().encode("cp1251"), "Nothing was stored. line 2: not UTF-8"),
        (conllu(*[changed(CAT, 1, lemma="_")] * 1).replace(b"\tNOUN", b"\tNOUN\tx", 1), "line 3: 11 columns"),
        (b"x" * 2_000_000, "larger than 1 MB"),
    ],
)
def test_a_bad_file_stores_nothing(cast: Cast, folder: Path, settings: Settings, data: bytes, message: str) -> None:
    settings.TREEBANK_MAX_MB = 1
    response = upload(cast.client(cast.alice), data)
    assert response.status_code == 200 and message in response.content.decode()
    assert not Treebank.objects.exists() and not Composition.objects.exists()
    assert not [path for path in folder.rglob("*") if path.is_file()]


def test_a_file_that_breaks_off_late_fails_with_its_line(cast: Cast, folder: Path) -> None:
    upload(cast.client(cast.alice), conllu(*[CAT] * 300) + b"1\tx\n")
    composition = Composition.objects.get()
    composition_read(composition.pk)
    page = cast.client(cast.alice).get(f"{BASE}{composition.pk}/").content.decode()
    assert "line 3001: 2 columns instead of ten" in page and "Begin again" in page
    assert not list((folder / "left-out").iterdir()) and not CompositionCandidate.objects.exists()


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("counts", "4,6", "Write three whole numbers"),
        ("counts", "0,0,0", "Write three whole numbers"),
        ("bands", "4-6,5-9,10-12", "Write three rising ranges"),
        ("shuffled", "0,2,0", "Write three shares"),
        ("seed", "-1", "greater than or equal to 0"),
        ("min_zipf", "9", "less than or equal to 8"),
        ("language", "русский", "These parameters cannot be"),
        ("title", "a\x00b", "Null characters are not allowed"),
    ],
)
def test_parameters_that_cannot_be(cast: Cast, field: str, value: str, message: str) -> None:
    response = upload(cast.client(cast.alice), **{field: value})
    assert response.status_code == 200 and message in response.content.decode()
    assert not Composition.objects.exists()


def test_an_earlier_treebank_is_chosen_again(cast: Cast, ready: Composition) -> None:
    client = cast.client(cast.alice)
    response = client.post(f"{BASE}new/", {**FIELDS, "treebank": ready.treebank_id})
    assert response.status_code == 302 and Composition.objects.count() == 2 and Treebank.objects.count() == 1
    upload(client)  # the same file again is the same treebank
    assert Composition.objects.count() == 3 and Treebank.objects.count() == 1
    assert "Choose a file" in client.post(f"{BASE}new/", FIELDS).content.decode()
    theirs = cast.client(cast.bob).post("/studies/theirs/compositions/new/", {**FIELDS, "treebank": ready.treebank_id})
    assert theirs.status_code == 200 and Composition.objects.count() == 3


@pytest.mark.parametrize("language", ["ru", "de", "fi", "cs"])
def test_the_form_comes_with_the_languages_own_defaults(cast: Cast, language: str) -> None:
    page = cast.client(cast.alice).get(f"{BASE}new/", {"language": language}).content.decode()
    assert ("polit" in page or "политик" in page) is (language != "cs")
    assert ("there are no dictionaries" in page) is (language == "cs")


def test_a_worker_takes_a_composition_once(cast: Cast, ready: Composition) -> None:
    composition_read(ready.pk)
    assert composition_claim(ready.pk) is None and ready.candidates.count() == 45


def test_it_is_cancelled_in_the_middle_and_begun_again(
    cast: Cast, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    client = cast.client(cast.alice)
    upload(client)
    composition = Composition.objects.get()
    monkeypatch.setattr(tasks, "BEAT", 0.0)
    beat = tasks.composition_beat

    def stop_after_ten(**values: int) -> bool:
        if values["sentences"] == 10:
            client.post(f"{BASE}{composition.pk}/stop/")
        return beat(**values)

    monkeypatch.setattr(tasks, "composition_beat", stop_after_ten)
    composition_read(composition.pk)
    composition.refresh_from_db()
    assert (composition.state, composition.sentences) == ("cancelled", 9)
    assert not composition.candidates.exists() and not list((folder / "left-out").iterdir())
    monkeypatch.setattr(tasks, "composition_beat", beat)
    client.post(f"{BASE}{composition.pk}/again/")
    composition_read(composition.pk)
    composition.refresh_from_db()
    assert composition.state == "ready" and composition.sentences == 47


def test_a_dead_workers_work_is_taken_over_and_its_late_result_dropped(cast: Cast, ready: Composition) -> None:
    upload(cast.client(cast.alice))
    composition = Composition.objects.latest("pk")
    old = composition_claim(composition.pk)
    assert old == 1 and composition_claim(composition.pk) is None  # it lives
    Composition.objects.filter(pk=composition.pk).update(beat_at=timezone.now() - STALE * 2)
    page = cast.client(cast.alice).get(f"{BASE}{composition.pk}/").content.decode()
    assert "Nothing has moved for a minute" in page
    composition_read(composition.pk)
    assert not tasks.composition_beat(composition_id=composition.pk, attempt=old, bytes_read=1, sentences=1)
    compositions.composition_fail(composition_id=composition.pk, attempt=old, problem="late")
    composition.refresh_from_db()
    assert (composition.state, composition.attempt, composition.problem) == ("ready", 2, "")


def test_a_missing_file_fails_in_words(cast: Cast, folder: Path) -> None:
    upload(cast.client(cast.alice))
    for path in (folder / "treebanks").iterdir():
        path.unlink()
    composition = Composition.objects.get()
    composition_read(composition.pk)
    composition.refresh_from_db()
    assert composition.state == "failed" and "No such file" in composition.problem


def test_workers_look_for_what_waits(cast: Cast, monkeypatch: pytest.MonkeyPatch, ready: Composition) -> None:
    upload(cast.client(cast.alice))
    waiting = Composition.objects.latest("pk")
    put: list[tuple[int, float | None]] = []
    monkeypatch.setattr(tasks, "composition_enqueue", lambda pk, countdown=None: put.append((pk, countdown)))
    monkeypatch.setattr(tasks.connection, "close", lambda: None)
    tasks.unfinished_look_for()
    composition_claim(waiting.pk)
    tasks.unfinished_look_for()
    assert put == [(waiting.pk, None), (waiting.pk, STALE.total_seconds() + 5)]


def test_the_message_names_a_task_that_exists() -> None:
    assert composition_read.name == queue.TASK


@pytest.mark.parametrize(
    ("method", "tail"),
    [
        ("get", ""),
        ("get", "new/"),
        ("post", "new/"),
        ("get", "{pk}/"),
        ("post", "{pk}/slots/1/"),
        ("post", "{pk}/stop/"),
        ("post", "{pk}/again/"),
        ("get", "{pk}/left-out/"),
        ("get", "{pk}/tasks.csv"),
        ("get", "{pk}/make/"),
        ("post", "{pk}/make/"),
    ],
)
def test_it_refuses_others(cast: Cast, ready: Composition, method: str, tail: str) -> None:
    accept_all(cast.client(cast.alice), ready)
    address = BASE + tail.format(pk=ready.pk)
    data = {**FIELDS, "treebank": ready.treebank_id, "slug": "x", "instruction": "x", "action": "undo"}
    data["candidate"] = standing(ready)[1].pk
    for user in (cast.bob, cast.rita):
        assert getattr(cast.client(user), method)(address, data).status_code == 404
    if tail:  # in the other study's address the composition does not exist either
        theirs = address.replace("/ours/", "/theirs/")
        if "{pk}" in tail:
            assert getattr(cast.client(cast.bob), method)(theirs, data).status_code == 404
    assert getattr(Client(), method)(address, data)["Location"].startswith("/login/")
    assert Composition.objects.count() == 1 and not Instrument.objects.exists()
    assert standing(ready)[1].decision == "accepted"


def test_the_review_costs_the_same_however_many_tasks(cast: Cast) -> None:
    client = cast.client(cast.alice)
    counts = []
    for number in ("2, 2, 2", "10, 10, 10"):
        upload(client, counts=number)
        composition = Composition.objects.latest("pk")
        composition_read(composition.pk)
        with CaptureQueriesContext(connection) as queries:
            client.get(f"{BASE}{composition.pk}/")
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 8


def test_what_a_treebank_says_is_shown_as_text(cast: Cast) -> None:
    client = cast.client(cast.alice)
    upload(client, title="<script>x</script>", name="<b>UD</b>")
    composition = Composition.objects.get()
    composition_read(composition.pk)
    page = client.get(f"{BASE}{composition.pk}/").content.decode()
    assert "<script>x" not in page and "&lt;b&gt;UD" in page
    rows = list(csv.DictReader(io.StringIO(client.get(f"{BASE}{composition.pk}/tasks.csv").content.decode())))
    assert rows[0]["source"].startswith("<b>UD</b>; s")
