"""What makes one doubt a file before it is imported: another test, a refused consent, a file that is here already."""

import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from pytest_django import Settings

from corpus.importing import read_stimuli
from corpus.models import Answer, Instrument
from corpus.services import instrument_create
from surveys.import_report import ImportReport
from surveys.import_words import TARGETS
from surveys.importers.checks import says_yes
from surveys.importing import ImportTargetError
from surveys.models import ImportBatch, Survey
from tests.conftest import ROOT, Cast
from tests.surveys.importing.test_answers_import import WHOLE
from tests.surveys.importing.test_import_pages import LIST, Desk
from tests.surveys.importing.test_rules import PROLIFIC, plan

OTHER_CSV = """id,task,original,complexity,shuffled
1,собака лежать под дерево .,собака лежит под деревом.,easy,false
2,птица петь рано утро .,птица поёт рано утром.,easy,false
3,старик читать длинный книга .,старик читает длинную книгу.,easy,false
"""
WORDS = (
    "INPUT:item_id\tINPUT:lemmas\tOUTPUT:answer\tASSIGNMENT:worker_id\tASSIGNMENT:status\n"
    "1\tкошка сидеть на стол .\tкошка сидит\tw1\tAPPROVED\n"
    "2\t. мышь бежать от кошка\tмышь бежит\tw1\tAPPROVED\n"
    "1\tкошка  сидеть на стол.\tкошка\tw2\tAPPROVED\n"
)
CONSENTED = (
    "Отметка времени,Согласны ли вы на публикацию?,Код,1. кошка сидеть на стол .\n"
    "05.03.2024 19:41:09,Да,с-01,кошка\n"
    "05.03.2024 19:42:09,нет,с-02,тайна\n"
)


@pytest.fixture(autouse=True)
def data_dir(settings: Settings, tmp_path: Any) -> None:
    settings.DATA_DIR = tmp_path


@pytest.fixture
def desk(cast: Cast, instrument: Instrument) -> Desk:
    return Desk(cast.client(cast.alice), instrument)


@pytest.fixture
def other(cast: Cast) -> Instrument:
    return instrument_create(
        study=cast.study,
        slug="other",
        title="Other",
        language="ru",
        instruction="…",
        stimuli=read_stimuli(OTHER_CSV.encode()),
        actor=cast.alice,
        refusal_below=2,
    )


def notices(found: Any) -> list[str]:
    return [notice.reason for notice in found.notices]


def warned(report: ImportReport) -> list[dict[str, Any]]:
    return report.as_json()["warnings"]


# Another test.


def test_a_file_of_another_test_is_told(run: Any, other: Instrument) -> None:
    report = run(WORDS.encode(), into=other, dry_run=True)
    assert report.counts["imported"] == 3  # it warns; it stops nothing
    assert warned(report) == [
        {
            "record": 1,
            "item": 1,
            "reason": "other_words",
            "column": "INPUT:lemmas",
            "wrong": 3,
            "of": 3,
            "in_file": "кошка сидеть на стол .",
            "in_test": "собака лежать под дерево .",
        }
    ]


def test_a_file_of_this_test_is_not_doubted(run: Any) -> None:
    assert warned(run(WORDS.encode(), dry_run=True)) == []
    originals = WORDS.replace("кошка сидеть на стол .", "На столе сидит кошка")
    assert warned(run(originals.encode(), dry_run=True)) == []


def test_numbers_that_stand_beside_other_tasks_words_are_told() -> None:
    swapped = WORDS.replace("2\t. мышь", "3\t. мышь")
    found = plan(swapped)
    assert [(one.reason, one.record, one.item, one.told["wrong"]) for one in found.notices] == [
        ("other_words", 2, 3, 1)
    ]


def test_a_column_that_is_only_like_tasks_is_compared_too() -> None:
    table = "who,n,answer,what was shown\n" + "".join(
        f"{who},{n},x,{words}\n" for who in "ab" for n, words in ((1, "one dog under a tree"), (2, "an old man reads"))
    )
    columns = {"respondent_column": "who", "item_column": "n", "answer_column": "answer"}
    found = plan(table, **columns)
    assert notices(found) == ["other_words"] and found.notices[0].told["in_file"] == "one dog under a tree"
    remarks = table.replace("b,1,x,one dog under a tree", "b,1,x,this was not very easy")
    assert notices(plan(remarks, **columns)) == []


def test_words_that_find_the_stimulus_are_doubted_only_when_most_find_none() -> None:
    lemmas = {"lemmas_column": "INPUT:lemmas"}
    one = WORDS.replace("мышь бежать от кошка", "слон стоять у река")
    assert notices(plan(one, **lemmas)) == []  # it is named as unknown_item
    both = one.replace("кошка  сидеть", "слон лежать").replace("кошка сидеть", "слон лежать")
    found = plan(both.replace("на стол", "у река"), **lemmas)
    assert notices(found) == ["other_words"] and not found.answers


def test_questions_of_a_form_with_other_words() -> None:
    head = "Timestamp,1. собака лежать под дерево .,2. птица петь рано утро .\n"
    row = "05.03.2024 12:00:00,собака,птица\n"
    found = plan(head + row, answer_columns={"1": 1, "2": 2})
    assert notices(found) == ["other_questions"] and found.notices[0].told["wrong"] == 2
    plain = "Timestamp,Составьте предложение номер 1,Составьте предложение номер 2\n"
    assert notices(plan(plain + row, answer_columns={"1": 1, "2": 2})) == []
    right = "Timestamp,1. кошка сидеть на стол .,. мышь бежать от кошка\n"
    assert notices(plan(right + row, answer_columns={"1": 1, "2": 2})) == []


def test_the_page_tells_it_and_shows_the_task_beside_the_answer(desk: Desk, other: Instrument) -> None:
    desk.instrument = other
    page = desk.send(WORDS.encode(), "pool.tsv")
    assert "The words in the file are not the words of this test" in page
    first = page[page.index("The first answers") :]
    assert "собака лежать под дерево ." in first and "собака лежит под деревом." in first
    assert not ImportBatch.objects.exists()


def test_the_command_warns_in_sentences_and_in_json(cast: Cast, other: Instrument, tmp_path: Any, capsys: Any) -> None:
    path = tmp_path / "pool.tsv"
    path.write_text(WORDS, encoding="utf-8")
    call_command("answers_import", str(path), "--study=ours", "--instrument=other", "--dry-run")
    assert "WARNING: other_words: The words in the file are not the words of this test" in capsys.readouterr().out
    call_command("answers_import", str(path), "--study=ours", "--instrument=other", "--dry-run", "--json")
    assert json.loads(capsys.readouterr().out)["warnings"][0]["reason"] == "other_words"


def test_no_instrument_is_chosen_for_one(desk: Desk, other: Instrument) -> None:
    page = desk.client.get(f"{LIST}new/").content.decode()
    assert '<option value="" selected>choose</option>' in page
    response = desk.client.post(f"{LIST}new/", {"instrument": "", "file": SimpleUploadedFile("a.csv", WHOLE)})
    assert response.status_code == 200 and "This field is required" in response.content.decode()
    other.stimuli.all().delete()
    other.delete()
    assert '<option value=""' not in desk.client.get(f"{LIST}new/").content.decode().partition('name="format"')[0]


# Consent.


def test_a_column_of_consent_is_seen_and_a_no_stays_out(desk: Desk) -> None:
    page = desk.send(CONSENTED.encode())
    assert desk.form()["role-1"] == "consent"
    assert 'value="Да" checked' in page and 'value="нет">' in page
    page = desk.choose(consent_yes=["Да"])
    assert "тайна" not in page[page.index('id="check"') :] and "seems to ask for consent" not in page
    desk.confirm(page)
    assert list(Answer.objects.values_list("text", flat=True)) == ["кошка"]


def test_who_leaves_the_consent_aside_is_warned(desk: Desk) -> None:
    desk.send(CONSENTED.encode())
    page = desk.choose(**{"role-1": ""})
    assert "seems to ask for consent and is not used" in page


def test_the_command_is_warned_of_a_consent_that_is_not_used() -> None:
    found = plan(CONSENTED)
    assert len(found.answers) == 2  # as it was told to
    assert [notice.as_json() for notice in found.notices] == [
        {"reason": "consent_not_used", "column": "Согласны ли вы на публикацию?", "values": ["Да", "нет"]}
    ]
    assert plan(CONSENTED, consent_column=1, consent_yes=["да"]).notices == []


@pytest.mark.parametrize("values", ["5 4", "почти скорее совсем ничуть никак"])
def test_a_scale_is_no_consent(values: str) -> None:
    rows = "".join(f"05.03.2024 19:4{n}:09,{value},с,кошка\n" for n, value in enumerate(values.split()))
    assert plan(CONSENTED.partition("\n")[0] + "\n" + rows).notices == []


@pytest.mark.parametrize(
    ("value", "yes"),
    [
        ("Да", True),
        ("да, согласна", True),
        ("Я согласен(на)", True),
        ("I agree", True),
        ("Yes", True),
        ("нет", False),
        ("Не согласна", False),
        ("я не согласен", False),
        ("I do not agree", False),
        ("I disagree", False),
        ("дайте подумать", False),
        ("No", False),
    ],
)
def test_what_means_yes(value: str, yes: bool) -> None:
    assert says_yes(value) is yes


# Here already.


def test_this_very_file_under_another_title_is_told(desk: Desk, run: Any) -> None:
    batch = run(WHOLE, title="First").batches[0]
    report = run(WHOLE, title="Second", dry_run=True)
    told = {one["reason"]: one for one in warned(report)}
    assert (told["same_file"]["batch"], told["same_file"]["survey"]) == (batch.pk, "First")
    assert (told["known_people"]["people"], told["known_people"]["surveys"]) == (2, ["First"])
    desk.send(WHOLE, "again.tsv")
    page = desk.choose(title="Second")
    assert "This very file was imported on" in page and "“First”" in page and f'href="{LIST}{batch.pk}/"' in page
    assert "2 of 2 people are here already under another title" in page


def test_people_of_the_same_title_and_of_another_study_are_no_news(run: Any, cast: Cast) -> None:
    run(WHOLE)
    more = WHOLE + b"2\tx\t\t\t\ta5\tw2\tAPPROVED\t2024-03-12T09:00:04\n"
    assert warned(run(more, dry_run=True)) == []
    theirs = instrument_create(
        study=cast.other_study,
        slug="theirs",
        title="Theirs",
        language="ru",
        instruction="…",
        stimuli=read_stimuli(OTHER_CSV.encode()),
        actor=cast.bob,
        refusal_below=2,
    )
    assert warned(run(WHOLE, into=theirs, dry_run=True)) == []


def test_another_statement_says_how_to_add(run: Any) -> None:
    run(WHOLE)
    with pytest.raises(ImportTargetError) as refused:
        run(WHOLE, statement="Иначе.")
    assert "leave the statement empty to add to it" in str(TARGETS[refused.value.code])
    assert run(WHOLE, statement="").counts["already"] == 4


# After the import.


def test_the_batch_leads_on(desk: Desk) -> None:
    desk.send(WHOLE, "pool.tsv")
    response = desk.confirm(desk.choose())
    page = desk.client.get(response["Location"]).content.decode()
    assert "4 answers imported" in page and "record imported" not in page and "records imported" not in page
    survey = Survey.objects.get()
    sittings = survey.participants.order_by("external_id").values_list("respondent__sittings", flat=True)
    addresses = [f"/studies/ours/surveys/{survey.pk}/sittings/{pk}/" for pk in sittings]
    assert len(addresses) == 2
    for address in (f"/studies/ours/surveys/{survey.pk}/watch/", LIST, "/studies/ours/exports/", *addresses):
        assert f'href="{address}"' in page
        assert desk.client.get(address).status_code == 200
    assert "3 answers" in page and "1 answer<" in page
    assert "кошка сидит на столе" in desk.client.get(addresses[0]).content.decode()


def test_a_batch_of_platform_records_leads_to_its_people(desk: Desk, run: Any) -> None:
    run(WHOLE)
    desk.send((PROLIFIC + "s1,w1,APPROVED,,1148,25,Female,Russian\n").encode())
    page = desk.client.get(desk.confirm(desk.choose())["Location"]).content.decode()
    assert "1 person marked" in page and "People marked" in page
    sitting = Survey.objects.get().participants.get(external_id="w1").respondent.sittings.get()
    assert f"/sittings/{sitting.pk}/" in page


def test_a_reason_is_said_once(desk: Desk) -> None:
    page = desk.send(WHOLE, "pool.tsv")
    assert '<span title="rejected">rejected</span>' in page and "<code" not in page


def test_exports_and_import_say_the_same_of_the_file_for_excel(desk: Desk) -> None:
    page = desk.client.get("/studies/ours/exports/").content.decode()
    assert "not for import" not in page and "the exact file is the better one" in page


def test_on_a_phone_the_tables_stack_and_warnings_come_before_the_counts(desk: Desk, other: Instrument) -> None:
    desk.instrument = other
    page = desk.send(WORDS.encode(), "pool.tsv")
    check = page[page.index('id="check"') :]
    assert check.index("not the words of this test") < check.index("Records in the file")
    assert page.count("roomy stacks") == 2 and 'data-label="Answer in the file"' in page
    css = (ROOT / "static" / "luria" / "luria.css").read_text(encoding="utf-8")
    phone = css[css.index("@media (max-width: 575.98px)") :]
    assert ".table.stacks td { display: block" in phone
