"""The researcher's pages of instruments, through HTTP."""

import base64
import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from corpus.builtin import builtin_instrument_create
from corpus.importing import stimulus_rows
from corpus.models import Instrument, Sitting
from corpus.services import instrument_freeze
from studies.models import AuditEntry
from studies.services import api_token_create
from surveys.models import Survey
from tests.conftest import SMALL_CSV, Cast
from tests.surveys.conftest import Visitor, agreeing
from tests.surveys.test_survey_pages import FIELDS

ROOT = "/studies/ours/instruments/"
TASK = {
    "text": "лодка плыть по река",
    "original": "лодка плывет по реке",
    "complexity": "easy",
    "feedback": "",
    "source": "",
}
SETTINGS = {"title": "Small", "language": "ru", "refusal_below": 3, "instruction": "Раз.\r\n\r\n- два"}


@pytest.fixture
def alice(cast: Cast) -> Client:
    return cast.client(cast.alice)


def page(client: Client, address: str, status: int = 200, **data: object) -> str:
    response = client.get(address, data)
    assert response.status_code == status, response.status_code
    return response.content.decode()


def upload(text: str) -> SimpleUploadedFile:
    return SimpleUploadedFile("s.csv", text.encode(), content_type="text/csv")


# --- making one ------------------------------------------------------------------------------------------------------


def test_an_instrument_is_made_from_nothing_by_hand(cast: Cast, alice: Client) -> None:
    response = alice.post(
        ROOT + "new/", {"begin": "empty", "empty-title": "New", "empty-slug": "new", "empty-language": "ru"}
    )
    made = Instrument.objects.get()
    home = f"{ROOT}{made.pk}/"
    assert response["Location"] == home and (made.state, made.version) == ("draft", 1)
    shown = page(alice, home)
    assert "there is no instruction" in shown and "there is no task yet" in shown
    alice.post(home + "edit/", {"seen": 1, **SETTINGS, "lower_case": "on"})
    alice.post(home + "stimuli/new/", {"seen": 2, **TASK, "shuffled": "on"})
    alice.post(home + "stimuli/new/", {"seen": 3, **TASK, "is_practice": "on", "feedback": "раз\r\nдва"})
    made.refresh_from_db()
    assert (made.instruction, made.refusal_below, made.lower_case) == ("Раз.\n\n- два", 3, True)
    real, practice = stimulus_rows(made.stimuli.all())
    assert (real.position, real.text, real.shuffled, real.is_practice) == (1, TASK["text"], True, False)
    assert (practice.position, practice.feedback, practice.is_practice) == (2, "раз\nдва", True)
    assert "Before anybody can take it" not in page(alice, home)


def test_it_begins_with_what_is_built_in_once(cast: Cast, alice: Client) -> None:
    for way, slug, number in (("study", "luria-18", 18), ("children", "children-example", 10)):
        assert alice.post(ROOT + "new/", {"begin": way}).status_code == 302
        assert Instrument.objects.get(slug=slug).stimuli.count() == number
        again = alice.post(ROOT + "new/", {"begin": way})
        assert again.status_code == 400 and "has an instrument with this address" in again.content.decode()
    assert Instrument.objects.count() == 2


def test_it_begins_with_a_file_and_says_what_is_wrong_with_it(cast: Cast, alice: Client) -> None:
    fields = {"begin": "file", "file-title": "F", "file-slug": "f", "file-language": "ru", "file-refusal_below": 3}
    bad = alice.post(ROOT + "new/", {**fields, "file-file": upload(SMALL_CSV.replace("easy", "simple"))})
    assert bad.status_code == 400 and "line 2: complexity must be easy" in bad.content.decode()
    high = alice.post(ROOT + "new/", {**fields, "file-file": upload(SMALL_CSV), "file-refusal_below": 4})
    assert high.status_code == 400 and "shortest original in the file is not longer" in high.content.decode()
    assert not Instrument.objects.exists()
    assert alice.post(ROOT + "new/", {**fields, "file-file": upload(SMALL_CSV)}).status_code == 302
    assert Instrument.objects.get().stimuli.count() == 3


def test_it_begins_with_an_instrument_of_ones_own_studies_only(
    cast: Cast, alice: Client, instrument: Instrument
) -> None:
    fields = {"begin": "copy", "copy-title": "C", "copy-slug": "c"}
    assert alice.post(ROOT + "new/", {**fields, "copy-instrument": instrument.pk}).status_code == 302
    assert Instrument.objects.get(slug="c").stimuli.count() == 3
    theirs = cast.client(cast.bob).post(
        "/studies/theirs/instruments/new/", {**fields, "copy-instrument": instrument.pk}
    )
    assert theirs.status_code == 400 and not cast.other_study.instruments.exists()


@pytest.mark.parametrize("begin", ["", "other"])
def test_an_unknown_way_to_begin_is_not_found(cast: Cast, alice: Client, begin: str) -> None:
    assert alice.post(ROOT + "new/", {"begin": begin}).status_code == 404


# --- editing one -----------------------------------------------------------------------------------------------------


def test_preview_of_the_instruction_saves_nothing(alice: Client, instrument: Instrument) -> None:
    data = {"seen": 1, **SETTINGS, "instruction": "**Жирно** <script>", "preview": "1"}
    shown = alice.post(f"{ROOT}{instrument.pk}/edit/", data).content.decode()
    assert "<strong>Жирно</strong> &lt;script&gt;" in shown
    instrument.refresh_from_db()
    assert instrument.instruction == "Составьте предложение." and instrument.revision == 1


@pytest.mark.parametrize("what", ["edit/", "stimuli/new/", "stimuli/{first}/"])
def test_an_outdated_page_loses_nothing_that_was_typed(alice: Client, instrument: Instrument, what: str) -> None:
    first = instrument.stimuli.get(position=1)
    address = f"{ROOT}{instrument.pk}/" + what.format(first=first.pk)
    alice.post(f"{ROOT}{instrument.pk}/stimuli/new/", {"seen": 1, **TASK})  # meanwhile, in another window
    typed = {**SETTINGS, **TASK, "seen": 1, "title": "Моё", "text": "моё слово тут"}
    response = alice.post(address, typed)
    shown = response.content.decode()
    assert response.status_code == 409 and "was changed meanwhile" in shown
    assert ("Моё" if what == "edit/" else "моё слово тут") in shown
    assert instrument.stimuli.count() == 4 and not instrument.stimuli.filter(text__startswith="моё").exists()
    # the form now knows the newer revision: sending it again is a decision, and is saved
    (seen,) = re.findall(r'name="seen" value="(\d+)"', shown)
    assert seen == "2"
    assert alice.post(address, {**typed, "seen": seen}).status_code == 302


@pytest.mark.parametrize("what", ["edit/", "stimuli/new/", "stimuli/{first}/"])
def test_a_frozen_instrument_answers_in_words_and_keeps_what_was_typed(
    alice: Client, instrument: Instrument, what: str
) -> None:
    first = instrument.stimuli.get(position=1)
    address = f"{ROOT}{instrument.pk}/" + what.format(first=first.pk)
    instrument_freeze(instrument=instrument, actor=None)
    typed = {**SETTINGS, **TASK, "seen": 1, "title": "Моё", "text": "моё слово тут"}
    response = alice.post(address, typed)
    shown = response.content.decode()
    assert response.status_code == 409 and "is frozen" in shown and "Copy to a new version" in shown
    assert ("Моё" if what == "edit/" else "моё слово тут") in shown
    assert alice.get(address).status_code == 302  # back to the instrument: there is nothing to edit


def test_moving_removing_and_examples_of_a_frozen_one_are_refused_in_words(
    alice: Client, instrument: Instrument
) -> None:
    home = f"{ROOT}{instrument.pk}/"
    first = instrument.stimuli.get(position=1).pk
    instrument_freeze(instrument=instrument, actor=None)
    for tail in (f"stimuli/{first}/move/", f"stimuli/{first}/delete/", "examples/"):
        response = alice.post(home + tail, {"seen": 1, "to": 2}, follow=True)
        assert "is frozen" in response.content.decode()
    response = alice.post(home + "delete/", {"seen": 1}, follow=True)
    assert "Not deleted: the instrument is frozen" in response.content.decode()
    assert stimulus_rows(instrument.stimuli.all())[0].text.startswith("кошка")


def test_tasks_are_moved_and_removed(alice: Client, instrument: Instrument) -> None:
    home = f"{ROOT}{instrument.pk}/"
    first = instrument.stimuli.get(position=1).pk
    assert alice.post(f"{home}stimuli/{first}/move/", {"seen": 1, "to": 3})["Location"] == home
    assert instrument.stimuli.get(pk=first).position == 3
    assert "good; the tasks after it move up" in page(alice, f"{home}stimuli/{first}/delete/")
    assert instrument.stimuli.count() == 3  # looking removes nothing
    alice.post(f"{home}stimuli/{first}/delete/", {"seen": 2})
    assert list(instrument.stimuli.values_list("position", flat=True)) == [1, 2]
    # a task that is no more
    assert alice.get(f"{home}stimuli/{first}/").status_code == 404
    gone = alice.post(f"{home}stimuli/{first}/", {"seen": 3, **TASK})
    assert gone.status_code == 409 and "has been removed meanwhile" in gone.content.decode()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"text": "..."}, "There is no word in it."),
        ({"original": " "}, "This field is required."),
        ({"complexity": "simple"}, "Select a valid choice"),
        ({"text": "я" * 1001}, "at most 1000 characters"),
        ({"text": "а\x00б"}, "Null characters are not allowed"),
        ({"seen": "9" * 30}, ""),
    ],
)
def test_a_task_that_cannot_be_is_refused(alice: Client, instrument: Instrument, change: dict, message: str) -> None:
    response = alice.post(f"{ROOT}{instrument.pk}/stimuli/new/", {"seen": 1, **TASK, **change})
    assert response.status_code == 400 and message in response.content.decode()
    assert instrument.stimuli.count() == 3


def test_a_form_without_what_it_carries_hidden_is_refused(alice: Client, instrument: Instrument) -> None:
    home = f"{ROOT}{instrument.pk}/"
    first = instrument.stimuli.get(position=1).pk
    for tail in (f"stimuli/{first}/move/", f"stimuli/{first}/delete/", "examples/", "delete/"):
        assert alice.post(home + tail, {"seen": "x"}).status_code == 400
    assert instrument.stimuli.count() == 3


def test_the_instructions_examples_are_one_button(cast: Cast, alice: Client) -> None:
    built_in = builtin_instrument_create(study=cast.study, actor=None)
    home = f"{ROOT}{built_in.pk}/"
    assert (
        "3 tasks for practice have been added"
        in alice.post(home + "examples/", {"seen": 1}, follow=True).content.decode()
    )
    shown = page(alice, home)
    assert "забыв обо всем, он помчался" in shown
    assert "words given: 8, in the original: 7" in shown and "Practice task 2: words given" in page(
        alice, home + "freeze/"
    )


# --- CSV -------------------------------------------------------------------------------------------------------------


def test_export_import_export_is_the_same_to_the_byte(alice: Client, instrument: Instrument) -> None:
    home = f"{ROOT}{instrument.pk}/"
    hostile = "=СУММ(1;2), +7\r\n'слово'"
    alice.post(home + "stimuli/new/", {"seen": 1, **TASK, "text": hostile, "is_practice": "on", "feedback": "-1 @x"})
    first = alice.get(home + "stimuli.csv").content
    assert "=СУММ(1;2), +7\n'слово'".encode() in first
    other = alice.post(
        ROOT + "new/",
        {"begin": "file", "file-title": "F", "file-slug": "f", "file-language": "ru", "file-refusal_below": 3,
         "file-file": SimpleUploadedFile("s.csv", first)},
    )  # fmt: skip
    assert alice.get(other["Location"] + "stimuli.csv").content == first
    # into a draft that has other tasks, by way of the comparison
    instrument.stimuli.get(position=1).delete()
    compared = alice.post(home + "import/", {"seen": 2, "file": SimpleUploadedFile("s.csv", first)}).content.decode()
    (content,) = re.findall(r'name="content" value="([^"]+)"', compared)
    assert "1 added" in compared and instrument.stimuli.count() == 3  # nothing yet
    assert alice.post(home + "import/", {"seen": 2, "step": "replace", "content": content}).status_code == 302
    assert alice.get(home + "stimuli.csv").content == first


def test_the_form_for_excel_guards_what_it_would_calculate(alice: Client, instrument: Instrument) -> None:
    home = f"{ROOT}{instrument.pk}/"
    alice.post(home + "stimuli/new/", {"seen": 1, **TASK, "text": "=СУММ(1;2)", "feedback": "'да"})
    text = alice.get(home + "stimuli.csv?for=excel").content.decode("utf-8-sig")
    assert "'=СУММ(1;2)" in text and "''да" in text and "\n4,'=" in text.replace("\r", "")


def test_a_faulty_or_outdated_file_replaces_nothing(alice: Client, instrument: Instrument) -> None:
    address = f"{ROOT}{instrument.pk}/import/"
    bad = alice.post(address, {"seen": 1, "file": upload("<!doctype html>")})
    assert bad.status_code == 400 and "these columns are missing" in bad.content.decode()
    for content in ("не base64", base64.b64encode(b"id").decode()):
        broken = alice.post(address, {"seen": 1, "step": "replace", "content": content})
        assert broken.status_code == 400 and "did not arrive as it was sent" in broken.content.decode()
    content = base64.b64encode(SMALL_CSV.replace("кошка", "собака").encode()).decode()
    stale = alice.post(address, {"seen": 7, "step": "replace", "content": content})
    assert stale.status_code == 409 and "was changed meanwhile" in stale.content.decode()
    instrument_freeze(instrument=instrument, actor=None)
    frozen = alice.post(address, {"seen": 1, "step": "replace", "content": content})
    assert frozen.status_code == 409 and "is frozen" in frozen.content.decode()
    assert instrument.stimuli.get(position=1).text.startswith("кошка")


# --- freezing, copying, deleting, comparing --------------------------------------------------------------------------


def test_freezing_says_what_will_happen_and_needs_a_complete_instrument(alice: Client, instrument: Instrument) -> None:
    address = f"{ROOT}{instrument.pk}/freeze/"
    Instrument.objects.update(refusal_below=4)
    assert "shortest original has 4" in page(alice, address)
    assert "Not frozen" in alice.post(address, follow=True).content.decode()
    Instrument.objects.update(refusal_below=3)
    assert "there is no way back" in page(alice, address)
    instrument.refresh_from_db()
    assert instrument.state == "draft"
    alice.post(address)
    instrument.refresh_from_db()
    assert instrument.state == "frozen"
    assert alice.post(address).status_code == 302  # frozen already
    assert AuditEntry.objects.filter(action="instrument_freeze").count() == 1


def test_a_copy_is_the_next_version_and_a_double_click_makes_one(alice: Client, instrument: Instrument) -> None:
    address = f"{ROOT}{instrument.pk}/copy/"
    assert "Copy to version 2" in page(alice, address)
    first = alice.post(address, {"version": 2})
    copy = Instrument.objects.get(version=2)
    assert first["Location"] == f"{ROOT}{copy.pk}/"
    second = alice.post(address, {"version": 2})
    assert second.status_code == 400 and "has been made meanwhile" in second.content.decode()
    assert "Copy to version 3" in second.content.decode() and Instrument.objects.count() == 2


def test_a_copy_goes_to_ones_own_studies_only(cast: Cast, alice: Client, instrument: Instrument) -> None:
    address = f"{ROOT}{instrument.pk}/copy/"
    fields = {"title": "T", "slug": "elsewhere"}
    assert alice.post(address, {**fields, "study": cast.other_study.pk}).status_code == 400
    assert alice.post(address, {**fields, "study": cast.study.pk}).status_code == 302
    taken = alice.post(address, {**fields, "study": cast.study.pk})
    assert taken.status_code == 400 and "has an instrument with this address" in taken.content.decode()
    assert Instrument.objects.count() == 2 and not cast.other_study.instruments.exists()


def test_a_draft_is_deleted_unless_a_survey_uses_it(cast: Cast, alice: Client, instrument: Instrument) -> None:
    alice.post(f"{ROOT}{instrument.pk}/copy/", {"version": 2})
    copy = Instrument.objects.get(version=2)
    assert page(alice, f"{ROOT}{copy.pk}/delete/") and Instrument.objects.count() == 2
    stale = alice.post(f"{ROOT}{copy.pk}/delete/", {"seen": 9}, follow=True)
    assert "was changed meanwhile" in stale.content.decode()
    assert alice.post(f"{ROOT}{copy.pk}/delete/", {"seen": 1})["Location"] == ROOT
    assert not Instrument.objects.filter(pk=copy.pk).exists()
    alice.post("/studies/ours/surveys/new/", {**FIELDS, "instrument": instrument.pk})
    assert Survey.objects.count() == 1
    used = alice.post(f"{ROOT}{instrument.pk}/delete/", {"seen": 1}, follow=True)
    assert "a survey or an experiment uses it" in used.content.decode() and instrument.stimuli.count() == 3


def test_two_versions_are_compared_word_by_word(alice: Client, instrument: Instrument) -> None:
    alice.post(f"{ROOT}{instrument.pk}/copy/", {"version": 2})
    copy = Instrument.objects.get(version=2)
    home = f"{ROOT}{copy.pk}/"
    assert "The tasks are the same" in page(alice, home + "compare/")
    first, second = (copy.stimuli.get(position=number) for number in (1, 2))
    changed = {**TASK, "text": "кошка сидеть на стол .", "original": "кошка <b>лежит</b> на столе."}
    alice.post(f"{home}stimuli/{first.pk}/", {"seen": 1, **changed})
    alice.post(f"{home}stimuli/{second.pk}/delete/", {"seen": 2})
    alice.post(home + "stimuli/new/", {"seen": 3, **TASK})
    alice.post(home + "edit/", {"seen": 4, **SETTINGS, "instruction": "Составьте верное предложение."})
    shown = page(alice, home + "compare/")
    assert "1 added · 1 removed · 1 changed · 1 with another number only" in shown
    assert "<del>сидит </del><ins>&lt;b&gt;лежит&lt;/b&gt; </ins>" in shown
    assert "Составьте <ins>верное </ins>предложение." in shown
    assert "answers no longer shown in lower case" in shown
    # the other way round, by name
    assert "<ins>сидит </ins>" in page(alice, f"{ROOT}{instrument.pk}/compare/", **{"with": copy.pk})
    assert alice.get(home + "compare/", {"with": 10**9}).status_code == 404


# --- using one -------------------------------------------------------------------------------------------------------


def test_a_survey_says_whether_its_instrument_can_still_change_and_opens_only_a_complete_one(
    cast: Cast, alice: Client, instrument: Instrument
) -> None:
    alice.post("/studies/ours/surveys/new/", {**FIELDS, "instrument": instrument.pk})
    survey = Survey.objects.get()
    address = f"/studies/ours/surveys/{survey.pk}/"
    assert "a draft: its first sitting freezes it" in page(alice, address)
    Instrument.objects.update(refusal_below=4)
    refused = alice.post(address + "state/", {"state": "open"}, follow=True).content.decode()
    assert "Not opened" in refused and "shortest original has 4" in refused
    Instrument.objects.update(refusal_below=3)
    alice.post(address + "state/", {"state": "open"})
    # made incomplete afterwards: the newcomer reads that it is not open, and nothing is left of the attempt
    Instrument.objects.update(refusal_below=4)
    assert "A survey with this draft is open" in page(alice, f"{ROOT}{instrument.pk}/")
    turned_away = Client().post(f"/s/{survey.slug}/", agreeing(survey))
    assert turned_away.status_code == 403 and not Sitting.objects.exists() and not survey.participants.exists()
    Instrument.objects.update(refusal_below=3)
    Visitor(survey).start()
    instrument.refresh_from_db()
    assert instrument.state == "frozen" and "frozen: everybody takes exactly this version" in page(alice, address)


def test_the_list_shows_versions_and_states(alice: Client, instrument: Instrument) -> None:
    alice.post(f"{ROOT}{instrument.pk}/copy/", {"version": 2})
    instrument_freeze(instrument=instrument, actor=None)
    shown = page(alice, ROOT)
    assert shown.count("<code>small</code>") == 2 and "frozen" in shown and "draft" in shown
    assert "/studies/ours/instruments/" in page(alice, "/studies/ours/")


def test_the_page_costs_the_same_however_many_tasks(
    cast: Cast, alice: Client, instrument: Instrument, django_assert_max_num_queries
) -> None:
    big = builtin_instrument_create(study=cast.study, actor=None)
    alice.get(f"{ROOT}{big.pk}/")
    for found in (instrument, big):
        with django_assert_max_num_queries(9):
            alice.get(f"{ROOT}{found.pk}/")


def test_the_api_tells_state_and_practice(cast: Cast, alice: Client, instrument: Instrument) -> None:
    alice.post(f"{ROOT}{instrument.pk}/examples/", {"seen": 1})
    api = Client(headers={"authorization": f"Token {api_token_create(user=cast.alice)}"})
    (row,) = api.get("/api/v1/studies/ours/instruments/").json()["results"]
    assert (row["state"], row["n_practice"], len(row["stimuli"])) == ("draft", 3, 6)
    assert row["stimuli"][3]["practice"] is True and row["stimuli"][3]["feedback"].startswith("Порядок слов")


# --- who may ---------------------------------------------------------------------------------------------------------

READS = ["", "new/", "{pk}/", "{pk}/edit/", "{pk}/import/", "{pk}/freeze/", "{pk}/copy/", "{pk}/delete/"]
READS += ["{pk}/compare/", "{pk}/practice/", "{pk}/stimuli.csv", "{pk}/stimuli/new/", "{pk}/stimuli/{first}/"]
READS += ["{pk}/stimuli/{first}/delete/"]
WRITES = {
    "new/": {"begin": "children"},
    "{pk}/edit/": SETTINGS,
    "{pk}/examples/": {},
    "{pk}/import/": {"step": "replace", "content": base64.b64encode(SMALL_CSV.encode()).decode()},
    "{pk}/freeze/": {},
    "{pk}/copy/": {"version": 2},
    "{pk}/delete/": {},
    "{pk}/stimuli/new/": TASK,
    "{pk}/stimuli/{first}/": TASK,
    "{pk}/stimuli/{first}/move/": {"to": 2},
    "{pk}/stimuli/{first}/delete/": {},
}


@pytest.mark.parametrize("tail", READS)
def test_reading_refuses_others(cast: Cast, alice: Client, instrument: Instrument, tail: str) -> None:
    first = instrument.stimuli.get(position=1).pk
    address = ROOT + tail.format(pk=instrument.pk, first=first)
    for user in (cast.bob, cast.rita):
        assert cast.client(user).get(address).status_code == 404
    assert Client().get(address)["Location"].startswith("/login/")
    assert alice.get(address).status_code == 200


@pytest.mark.parametrize("tail", WRITES)
def test_writing_refuses_others(cast: Cast, alice: Client, instrument: Instrument, tail: str) -> None:
    first = instrument.stimuli.get(position=1).pk
    before = Instrument.objects.count(), AuditEntry.objects.count()
    data = {"seen": 1, **WRITES[tail]}
    address = ROOT + tail.format(pk=instrument.pk, first=first)
    for user in (cast.bob, cast.rita):
        assert cast.client(user).post(address, data).status_code == 404
    if "{pk}" in tail:  # by way of one's own study
        assert cast.client(cast.bob).post(address.replace("ours", "theirs"), data).status_code == 404
    assert Client().post(address, data)["Location"].startswith("/login/")
    instrument.refresh_from_db()
    assert (Instrument.objects.count(), AuditEntry.objects.count()) == before
    assert (instrument.revision, instrument.state, instrument.stimuli.count()) == (1, "draft", 3)
    alice.post(address, data)
    assert AuditEntry.objects.count() > before[1]  # the same post by the right person does write
