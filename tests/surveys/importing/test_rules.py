"""Which records become answers, and why the others do not."""

from datetime import datetime
from typing import Any

import pytest

from surveys.importers.formats import plan_file
from surveys.importers.items import Item
from surveys.importers.plan import Plan
from tests.surveys.importing.conftest import ITEMS, toloka, workbook


def plan(data: bytes | str, format_name: str | None = None, items: list[Item] = ITEMS, **settings: Any) -> Plan:
    data = data.encode() if isinstance(data, str) else data
    return plan_file(data, format_name=format_name, settings=settings, items=items)


def reasons(found: Plan) -> list[tuple[int, str]]:
    return [(skip.record, skip.reason) for skip in found.skipped]


def texts(found: Plan) -> list[tuple[str, int, str]]:
    return [(answer.respondent, answer.item, answer.text) for answer in found.answers]


# Toloka.


def test_toloka_takes_what_was_sent_in_and_names_the_rest() -> None:
    found = plan(
        toloka(
            (1, "кошка сидит", "w1", "APPROVED", "a1"),
            (2, "", "w1", "SUBMITTED", "a1"),  # sent in empty: a refusal
            (3, "дети", "w1", "ACCEPTED", "a1"),
            (1, "ещё раз", "w1", "APPROVED", "a2"),
            (1, "ааа", "w2", "REJECTED", "a3"),
            (1, "", "w3", "SKIPPED", "a4"),
            (1, "", "w4", "EXPIRED", "a5"),
            (1, "", "w5", "ACTIVE", "a6"),
            (1, "", "w6", "LOST", "a7"),
            (9, "нет такого", "w7", "APPROVED", "a8"),
            (1, "кто?", "", "APPROVED", "a9"),
            (2, "я" * 2_001, "w8", "APPROVED", "a10"),
            (2, "ё", "w" * 101, "APPROVED", "a11"),
        )
    )
    assert found.format == "toloka_tsv" and found.error is None
    assert texts(found) == [("w1", 1, "кошка сидит"), ("w1", 2, ""), ("w1", 3, "дети")]
    assert reasons(found) == [
        (4, "duplicate"),
        (5, "rejected"),
        (6, "skipped_assignment"),
        (7, "expired_assignment"),
        (8, "active_assignment"),
        (9, "unknown_status"),
        (10, "unknown_item"),
        (11, "no_respondent"),
        (12, "too_long"),
        (13, "unusable_respondent"),
    ]
    first = found.answers[0]
    assert (first.status, first.assignment, first.started) == ("APPROVED", "a1", "2024-03-12T09:00:04.118")
    assert first.started_at is not None and first.started_at.isoformat() == "2024-03-12T09:00:04.118000+00:00"


def test_toloka_training_and_control_tasks_are_no_answers() -> None:
    rows = [(number, text, "w", "APPROVED", "x") for number, text in enumerate("абв", start=1)]
    lines = toloka(*rows).decode().splitlines()
    lines[1] = lines[1].replace("а\t\t\t\t", "а\tа\tпример: …\t\t")
    lines[2] = lines[2].replace("б\t\t\t\t", "б\tб\t\t\t")
    lines[3] = lines[3].replace("в\t\t\t\t", "в\t\t\tRU\t")  # a language is no hint
    found = plan("\n".join(lines) + "\n")
    assert reasons(found) == [(1, "training_task"), (2, "control_task")]
    assert texts(found) == [("w", 3, "в")]


def test_items_by_their_words_whatever_the_spaces() -> None:
    head = "INPUT:lemmas\tOUTPUT:answer\tASSIGNMENT:worker_id\tASSIGNMENT:status\n"
    rows = "кошка  сидеть на\u00a0стол.\tкошка сидит\tw\tAPPROVED\nрыба плавать\tрыба\tw\tAPPROVED\n"
    found = plan(head + rows)
    assert texts(found) == [("w", 1, "кошка сидит")] and reasons(found) == [(2, "unknown_item")]
    twice = [Item(1, "кошка сидеть"), Item(2, "кошка сидеть")]
    assert reasons(plan(head + "кошка сидеть\tкошка\tw\tAPPROVED\n", items=twice)) == [(1, "unknown_item")]


def test_toloka_says_which_column_it_needs() -> None:
    found = plan("INPUT:x\tOUTPUT:a\tOUTPUT:b\tASSIGNMENT:worker_id\tASSIGNMENT:status\n1\t2\t3\tw\tAPPROVED\n")
    assert found.error and (found.error.code, found.error.detail) == ("missing_setting", "answer_column")
    found = plan("INPUT:x\tOUTPUT:a\tASSIGNMENT:worker_id\tASSIGNMENT:status\n1\t2\tw\tAPPROVED\n")
    assert found.error and (found.error.code, found.error.detail) == ("missing_setting", "item_column")
    found = plan("INPUT:x\tOUTPUT:a\tASSIGNMENT:worker_id\tASSIGNMENT:status\n1\t2\tw\tAPPROVED\n", item_column="нет")
    assert found.error and (found.error.code, found.error.detail) == ("missing_column", "нет")


def test_practice_tasks_of_the_instrument_are_no_answers() -> None:
    items = [Item(1, "а б", is_practice=True), Item(2, "в г")]
    found = plan(toloka((1, "а", "w", "APPROVED", "x"), (2, "в", "w", "APPROVED", "x")), items=items)
    assert texts(found) == [("w", 2, "в")] and reasons(found) == [(1, "practice_task")]


# Forms.

FORM = (
    "Отметка времени,Согласны?,Код,1. кошка сидеть на стол .,"
    '"Составьте: дети , который играть во двор , быть счастливый"\n'
)


def test_a_form_is_matched_by_its_questions() -> None:
    found = plan(FORM + "05.03.2024 19:41:09,да,с-01,кошка,дети\n,,,,\n06.03.2024 8:05:41,да,с-02,,\n")
    assert found.format == "google_forms_csv" and found.blank_records == 1
    assert texts(found)[:2] == [("row:1", 1, "кошка"), ("row:1", 3, "дети")]
    assert texts(found)[2:] == [("row:3", 1, ""), ("row:3", 3, "")]  # sent in, and nothing written
    assert found.answers[0].submitted == "2024-03-05T19:41:09" and found.answers[0].submitted_at is None
    assert found.unused == ["Согласны?", "Код"]


def test_a_naive_time_becomes_a_moment_only_with_a_zone() -> None:
    found = plan(FORM + "05.03.2024 19:41:09,да,с-01,кошка,дети\n", time_zone="Europe/Moscow")
    assert found.answers[0].submitted == "2024-03-05T19:41:09"
    assert found.answers[0].submitted_at and found.answers[0].submitted_at.isoformat() == "2024-03-05T16:41:09+00:00"


def test_the_order_of_day_and_month_is_that_of_the_whole_file() -> None:
    found = plan(FORM + "3/5/2024 19:41:09,да,а,к,д\n3/25/2024 19:41:09,да,б,к,д\n")
    assert [answer.submitted for answer in found.answers][::2] == ["2024-03-05T19:41:09", "2024-03-25T19:41:09"]
    unknown = plan(FORM + "3/5/2024 19:41:09,да,а,к,д\n")
    assert unknown.answers[0].submitted is None
    assert [(w.record, w.reason) for w in unknown.warnings] == [(1, "time_unreadable")]
    told = plan(FORM + "3/5/2024 19:41:09,да,а,к,д\n", date_order="day_first")
    assert told.answers[0].submitted == "2024-05-03T19:41:09"


def test_who_did_not_agree_leaves_nothing_behind() -> None:
    rows = "05.03.2024 19:41:09, ДА ,с-01,кошка,дети\n05.03.2024 19:42:09,нет,с-02,кошка,дети\n"
    rows += "05.03.2024 19:43:09,,с-03,к,д\n"
    found = plan(FORM + rows, consent_column=1, consent_yes=["да"], respondent_column="Код")
    assert {answer.respondent for answer in found.answers} == {"с-01"}
    assert reasons(found) == [(2, "no_consent"), (3, "no_consent")] and list(found.external_ids) == ["с-01"]
    forgotten = plan(FORM + rows, consent_column=1)
    assert forgotten.error and forgotten.error.detail == "consent_yes"


def test_a_second_submission_of_one_person_is_a_duplicate() -> None:
    found = plan(FORM + "1,да,с-01,кошка,дети\n2,да, С-01 ,другое,другое\n3,да,,х,х\n", respondent_column=2)
    assert texts(found) == [("с-01", 1, "кошка"), ("с-01", 3, "дети")]
    assert reasons(found) == [(2, "duplicate_respondent"), (3, "no_respondent")]


def test_one_header_three_times() -> None:
    text = "Timestamp,Ваш вариант,Ваш вариант,Ваш вариант\n1,а,б,в\n"
    assert plan(text).error and plan(text).error.code == "no_answer_columns"  # type: ignore[union-attr]
    found = plan(text, answer_columns={"1": 3, "2": 1, "3": 2})
    assert texts(found) == [("row:1", 3, "а"), ("row:1", 1, "б"), ("row:1", 2, "в")]
    wrong = [({"1": 3, "2": 3}, "doubled_item"), ({"1": 44}, "unknown_items"), ({"9": 1}, "missing_column")]
    for columns, code in wrong:
        error = plan(text, answer_columns=columns).error
        assert error and error.code == code
    error = plan(text, answer_columns={"Ваш вариант": 1}).error
    assert error and error.code == "doubled_column"


def test_unnamed_people_keep_their_pseudonym_in_a_longer_export() -> None:
    rows = ["05.03.2024 19:41:09,да,,кошка,дети\n", "05.03.2024 19:41:09,да,,мышь,двор\n"]
    rows.append("06.03.2024 8:00:00,да,,а,б\n")
    short, long = plan(FORM + "".join(rows[:2])), plan(FORM + "".join(rows))
    assert list(short.external_ids.values()) == list(long.external_ids.values())[:2]
    assert len(set(long.external_ids.values())) == 3
    edited = plan(FORM + rows[0].replace("кошка", "кот"))
    assert not set(edited.external_ids.values()) & set(long.external_ids.values()), "other words at that second"


def test_unnamed_people_stay_who_they_are_when_the_form_is_reworded_or_its_columns_move() -> None:
    row = "05.03.2024 19:41:09,да,,кошка,дети\n"
    before = list(plan(FORM + row, consent_column=1, consent_yes=["да"]).external_ids.values())
    reworded = (FORM + row).replace("Согласны?", "Согласие").replace("Код", "Ваш код").replace("Составьте", "Напишите")
    moved = (
        'Отметка времени,"2. дети , который играть во двор , быть счастливый",Новый вопрос,кошка сидеть на стол .,'
        "Согласие\n05.03.2024 19:41:09,дети,что угодно, кошка,Да\n"
    )
    assert list(plan(reworded, consent_column=1, consent_yes=["да"]).external_ids.values()) == before
    assert list(plan(moved, consent_column=4, consent_yes=["да"]).external_ids.values()) == before


def test_a_form_as_a_workbook() -> None:
    when = datetime(2024, 3, 5, 19, 41, 9)  # noqa: DTZ001
    header = ["Отметка времени", "кошка сидеть на стол .", ". мышь бежать от кошка"]
    spoilt = datetime(2024, 3, 1)  # noqa: DTZ001
    found = plan(workbook(header, [when, "кошка", spoilt], [None, None, None], [when, None, "две\r\nстроки"]))
    assert found.format == "google_forms_xlsx" and found.encoding is None
    assert texts(found) == [("row:1", 1, "кошка"), ("row:3", 1, ""), ("row:3", 2, "две\nстроки")]
    assert [(s.record, s.reason, s.item) for s in found.skipped] == [(1, "turned_into_date", 2)]
    assert found.answers[0].submitted == "2024-03-05T19:41:09"


# Any columns.

LONG = "person;task;text;sent\n"


def test_a_row_per_answer() -> None:
    chosen = {"respondent_column": "person", "item_column": "task", "answer_column": "text", "timestamp_column": "sent"}
    found = plan(LONG + "a;1;да;2024-03-12 09:00\na;s-2;нет;\nb;7;;\n", **chosen)
    assert texts(found) == [("a", 1, "да")] and reasons(found) == [(2, "unknown_item"), (3, "unknown_item")]
    coded = plan_file(
        (LONG + "a;1;да;2024-03-12 09:00\na;s-2;нет;\n").encode(),
        format_name="columns",
        settings={**chosen, "items": {"s-2": 2}},
        items=ITEMS,
    )
    assert texts(coded) == [("a", 1, "да"), ("a", 2, "нет")]
    assert coded.format == "columns_csv" and coded.delimiter == ";"
    for missing in ("respondent_column", "answer_column"):
        error = plan(LONG + "a;1;да;\n", **{name: value for name, value in chosen.items() if name != missing}).error
        assert error and (error.code, error.detail) == ("missing_setting", missing)


def test_a_row_that_ends_before_a_column_that_is_needed() -> None:
    chosen = {"respondent_column": 0, "item_column": 1, "answer_column": 2}
    assert texts(plan(LONG + "a;1;да\n", **chosen)) == [("a", 1, "да")]  # the time is not asked for
    error = plan(LONG + "a;1;да;\na;2\n", **chosen).error
    assert error and (error.code, error.line) == ("short_record", 3)


@pytest.mark.parametrize(
    "chosen",
    [
        {"colour": "red"},
        {"encoding": "rot13"},
        {"delimiter": "|"},
        {"time_zone": "Mars/Olympus"},
        {"answer_columns": {"1": "one"}},
        {"answer_columns": [1]},
        {"consent_yes": "да"},
        {"item_column": ["x"]},
        {"date_order": "backwards"},
        {"sheet": 3},
        {"keep": [None]},
    ],
)
def test_settings_that_cannot_be(chosen: dict[str, Any]) -> None:
    error = plan_file(b"a,b\n1,2\n", format_name=None, settings=chosen, items=ITEMS).error
    assert error and error.code == "bad_setting"


def test_settings_for_stimuli_that_are_not_there() -> None:
    error = plan_file((LONG + "a;1;да;\n").encode(), format_name=None, settings={"items": {"x": 99}}, items=ITEMS).error
    assert error and error.code == "unknown_items"


# Prolific.

PROLIFIC = "Submission id,Participant id,Status,Started at,Time taken,Age,Sex,Fluent languages\n"


def test_prolific_names_people_and_leaves_out_what_was_taken_back() -> None:
    found = plan(
        PROLIFIC
        + "s1,p1,APPROVED,2024-06-01T10:00:00.179000Z,1148,25,Female,Russian\n"
        + "s2,p2,AWAITING REVIEW,,1740,CONSENT_REVOKED,DATA_EXPIRED,CONSENT_REVOKED\n"
        + "s3,p3,RETURNED,,,,,\ns4,p4,TIMED-OUT,,,,,\ns5,p5,REJECTED,,,,,\ns6,p1,APPROVED,,9,,,\ns7,,APPROVED,,,,,\n"
        + "s8,p8,NEW STATUS,,,,,\n",
        keep=["Fluent languages"],
    )
    assert [(p.respondent, p.status, p.seconds, p.data) for p in found.people] == [
        ("p1", "APPROVED", 1148, {"age": 25, "sex": "Female", "Fluent languages": "Russian"}),
        ("p2", "AWAITING REVIEW", 1740, {"age": None, "sex": None, "Fluent languages": None}),
    ]
    assert reasons(found) == [
        (3, "returned"),
        (4, "timed_out"),
        (5, "rejected"),
        (6, "duplicate_respondent"),
        (7, "no_respondent"),
        (8, "unknown_status"),
    ]
