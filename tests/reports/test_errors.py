"""Errors with the given words: counts derived by hand, hostile texts, and who may look or change."""

import csv
import io

import pytest
from django.urls import reverse
from django.utils import translation

from corpus.models import Answer
from reports.choice import default_choice
from reports.errors import Tally, errors_of
from reports.selectors import PEOPLE
from scoring.models import AcceptedForm
from studies.services import blinding_impose
from tests.reports.conftest import RIGHT, SECOND, Built, add_model, add_run

HOSTILE = "<script>alert(1)</script> кошка сидит на столе"


def page(built: Built, query: str = "") -> str:
    response = built.cast.client(built.cast.alice).get(reverse("errors", args=["ours"]) + f"?{query}")
    assert response.status_code == 200
    return response.content.decode()


def rows(built: Built, name: str) -> list[dict[str, str]]:
    response = built.cast.client(built.cast.alice).get(reverse(name, args=["ours"]))
    text = b"".join(response.streaming_content).decode().removeprefix("\ufeff")
    return list(csv.DictReader(io.StringIO(text)))


@pytest.fixture
def answered(bare: Built) -> Built:
    """Stimulus 1 is «кошка сидеть на стол», its original «Кошка сидит на столе».

    P1 as the original; P2 echoes it; P3 inserts; P4 leaves out; P5 replaces; P6 refuses; P7 did not finish.
    """
    for name, text in [
        ("P1", RIGHT[1]),
        ("P2", "кошка сидеть на стол"),
        ("P3", "кошка вчера сидит на столе"),
        ("P4", "кошка на столе"),
        ("P5", "кошка лежит на столе"),
        ("P6", "не знаю"),
    ]:
        bare.sitting(name, {1: text})
    bare.sitting("P7", {1: "кошка не сидит"}, state="open", finished_at=None)
    add_model(bare)
    add_run(bare, 1, {1: RIGHT[1], 2: SECOND, 3: Answer.Outcome.NO_VALID_REPLY})
    add_run(bare, 2, {1: "кошка сидеть на столе", 2: SECOND, 3: RIGHT[3]})
    return bare


def test_counts_and_denominators(answered):
    found = errors_of(answered.instrument, default_choice(answered.instrument))
    first = answered.instrument.stimuli.get(position=1)
    tally = found.tally(PEOPLE, first.pk)
    assert (tally.answers, tally.matching) == (5, 2)
    assert tally.n == {"inserted": 1, "missing": 1, "replaced": 1, "left_as_given": 1}
    (model,) = [key for key in found.groups if key != PEOPLE]
    assert (found.tally(model, first.pk).answers, found.total(model).answers, found.total(model).matching) == (2, 5, 5)
    words = {(word.kind, word.given, word.used): (word.n, word.examples) for word in found.words[PEOPLE, first.pk]}
    assert words["inserted", "", "вчера"] == (1, ["кошка вчера сидит на столе"])
    assert words["missing", "сидеть", ""] == (1, ["кошка на столе"])
    assert words["replaced", "сидеть", "лежит"] == (1, ["кошка лежит на столе"])
    assert words["left_as_given", "стол", "стол"] == (1, ["кошка сидеть на стол"])
    assert found.tally("nobody", first.pk) == Tally()


def test_the_page_and_its_words(answered):
    text = page(answered, "group=people&stimulus=1")
    assert "2 of 5" in text and "вчера" in text and "лежит" in text
    assert "Errors with the given words" in text


def test_files(answered):
    first = next(row for row in rows(answered, "errors_csv") if row["group"] == "people" and row["position"] == "1")
    assert (first["n_answers"], first["n_matching"], first["n_replaced"], first["n_pronoun_used"]) == (
        "5",
        "2",
        "1",
        "0",
    )
    words = rows(answered, "error_words_csv")
    inserted = [row for row in words if row["kind"] == "inserted"]
    assert [(row["used"], row["n_answers"], row["given"]) for row in inserted] == [("вчера", "1", "")]


def test_people_are_called_the_same_in_every_language_by_files_for_programs(answered):
    client = answered.cast.client(answered.cast.alice)

    def groups(name: str, *args: object, **query: str) -> set[str]:
        with translation.override("ru"):
            response = client.get(reverse(name, args=["ours", *args]), query, headers={"Accept-Language": "ru"})
        text = b"".join(response.streaming_content).decode().removeprefix("\ufeff")
        return {row["group"] for row in csv.DictReader(io.StringIO(text), delimiter=";" if query else ",")}

    for name, args in (("errors_csv", ()), ("error_words_csv", ()), ("figure_csv", (1,)), ("figure_csv", (3,))):
        assert "people" in groups(name, *args) and "Люди" not in groups(name, *args)
        assert "Люди" in groups(name, *args, **{"for": "excel"})


def test_pronouns_of_the_original_are_counted(bare):
    """Stimulus 3 is «дети , который играть во двор , быть счастливый»: only которые has to change as a pronoun."""
    bare.sitting("P1", {3: RIGHT[3]})
    bare.sitting("P2", {3: "дети который играли во дворе были счастливы"})
    bare.sitting("P3", {3: "ребенок играл во дворе и был счастлив"})  # leaves the pronoun out: not used, not missed
    found = errors_of(bare.instrument, default_choice(bare.instrument))
    tally = found.total(PEOPLE)
    assert (tally.n["pronoun"], tally.used["pronoun"]) == (1, 2)
    assert (tally.answers, tally.matching, tally.n["missing"]) == (3, 2, 1)
    assert (tally.used["suppletion"], tally.used["number"], tally.used["aspect"]) == (0, 0, 0)


def test_what_people_and_models_write_is_text(bare):
    bare.sitting("P1", {1: HOSTILE, 2: '=HYPERLINK("http://evil") мышь бежит от кошки'})
    add_model(bare, label="<script>alert(2)</script>")
    add_run(bare, 1, RIGHT)
    text = page(bare, "stimulus=1")
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(2)" in text and "&lt;script&gt;alert(1)" in text
    response = bare.cast.client(bare.cast.alice).get(reverse("error_words_csv", args=["ours"]) + "?for=excel")
    assert "'=HYPERLINK" in b"".join(response.streaming_content).decode()


def test_an_empty_study_and_one_without_an_instrument(cast, instrument):
    client = cast.client(cast.alice)
    assert client.get(reverse("errors", args=["ours"])).status_code == 200
    assert cast.client(cast.bob).get(reverse("errors", args=["theirs"])).status_code == 404


@pytest.mark.parametrize(
    "query", ["group=nobody", "stimulus=77", "stimulus=x", "basis=judges-1", "people=from:nowhere"]
)
def test_what_does_not_exist_is_not_found(answered, query):
    address = reverse("errors", args=["ours"])
    assert answered.cast.client(answered.cast.alice).get(f"{address}?{query}").status_code == 404


@pytest.mark.parametrize("name", ["errors", "errors_csv", "error_words_csv"])
def test_only_unblinded_researchers_look(answered, name):
    cast, address = answered.cast, reverse(name, args=["ours"])
    assert cast.client(cast.alice).get(address).status_code == 200
    assert cast.client(cast.bob).get(address).status_code == 404
    assert cast.client(cast.rita).get(address).status_code == 404
    blinding_impose(user=cast.alice, study=cast.study, cause="campaign 1")
    assert cast.client(cast.alice).get(address).status_code == 403


def test_accepting_and_taking_back(answered):
    cast, stimulus = answered.cast, answered.instrument.stimuli.get(position=1)
    add = reverse("accepted_add", args=["ours", stimulus.pk])
    form = {"given": "сидеть", "form": "лежать"}
    for user, status in [(cast.bob, 404), (cast.rita, 404)]:
        assert cast.client(user).post(add, form).status_code == status
    assert cast.client(cast.bob).post(reverse("accepted_add", args=["theirs", stimulus.pk]), form).status_code == 404
    assert not AcceptedForm.objects.exists()
    alice = cast.client(cast.alice)
    assert alice.get(add).status_code == 405
    response = alice.post(add, form, follow=True)
    assert "“лежать” now stands for “сидеть”." in response.content.decode()
    accepted = AcceptedForm.objects.get()
    assert accepted.made_by == cast.alice
    found = errors_of(answered.instrument, default_choice(answered.instrument))
    assert found.tally(PEOPLE, stimulus.pk).matching == 3
    again = alice.post(add, form, follow=True)
    assert "accepted already" in again.content.decode()

    retire = reverse("accepted_retire", args=["ours", accepted.pk])
    assert cast.client(cast.bob).post(retire).status_code == 404
    assert cast.client(cast.bob).post(reverse("accepted_retire", args=["theirs", accepted.pk])).status_code == 404
    assert cast.client(cast.rita).post(retire).status_code == 404
    assert AcceptedForm.objects.get().retired_at is None
    alice.post(retire)
    assert AcceptedForm.objects.get().retired_at is not None
    found = errors_of(answered.instrument, default_choice(answered.instrument))
    assert found.tally(PEOPLE, stimulus.pk).matching == 2
