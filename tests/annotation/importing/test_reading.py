"""What the readers make of files, with the faults that people's files have. Pure: no database."""

import io
import json
import tracemalloc
from datetime import datetime
from typing import Any

import openpyxl
import pytest

from annotation.importers import documents
from annotation.importers.plan import Plan, Source
from annotation.importers.planning import annotators_of, plan_files
from tests.annotation.importing.conftest import CRITERIA, WIDE, YES_NO, ls, ls_annotation, ls_task, table

LS = {"key": "id", "criteria": CRITERIA}
LABELS = {"g_yes": ["grammatical", 1], "g_no": ["grammatical", 0], "l_yes": ["logical", 1], "l_no": ["logical", 0]}
DOCCANO = {"key": "answer", "labels": LABELS}
YES = {"grammatical": ["да"], "logical": ["да"], "order": ["да"]}


def plan(data: bytes, settings: dict[str, Any], name: str = "lena.jsonl", **how: Any) -> Plan:
    return plan_files([Source(name, data)], format_name=how.get("format_name"), settings=settings)


def fault(data: bytes, settings: dict[str, Any] = LS, name: str = "x.json") -> str:
    found = plan(data, settings, name)
    assert found.error and not found.judgements
    return found.error.code


def values(found: Plan) -> list[dict[str, float | None]]:
    assert found.error is None, found.error
    return [one.values for one in found.judgements]


def reasons(named: list[Any]) -> list[str]:
    return [one.reason for one in named]


# --- Label Studio --------------------------------------------------------------------------------------------------


def test_a_task_with_its_annotations() -> None:
    data = ls(ls_task({"id": "a"}, ls_annotation(1, 7, YES), ls_annotation(2, 8, YES | {"order": ["нет"]})))
    found = plan(data, LS)
    assert found.formats == ["label_studio_json"]
    assert [(one.annotator, one.values["order"]) for one in found.judgements] == [("7", 1), ("8", 0)]
    assert found.judgements[0].made_at.isoformat() == "2024-05-01T10:05:00+00:00"
    assert found.judgements[0].seconds == 7.5


@pytest.mark.parametrize(
    ("who", "name"),
    [
        (11, "11"),
        ("lena@example.org", "lena@example.org"),
        ({"id": 11, "email": "lena@example.org"}, "lena@example.org"),
        ({"id": 11}, "11"),
    ],
)
def test_who_completed_it(who: Any, name: str) -> None:
    assert plan(ls(ls_task({"id": "a"}, ls_annotation(1, who, YES))), LS).judgements[0].annotator == name


@pytest.mark.parametrize("who", [None, "", {}, [], True, {"id": None}])
def test_nobody_completed_it(who: Any) -> None:
    assert reasons(plan(ls(ls_task({"id": "a"}, ls_annotation(1, who, YES))), LS).skipped) == ["no_annotator"]


@pytest.mark.parametrize("who", ["x" * 201, "a\0b", "\ud800"])
def test_a_name_that_cannot_be_kept(who: str) -> None:
    data = json.dumps([ls_task({"id": "a"}, ls_annotation(1, who, YES))]).encode()
    assert reasons(plan(data, LS).skipped) == ["unusable_annotator"]


def test_cancelled_ground_truth_drafts_and_predictions_are_no_votes() -> None:
    draft = {"id": 9, "result": ls_annotation(9, 7, YES)["result"]}
    task = ls_task(
        {"id": "a"},
        ls_annotation(1, 7, YES, was_cancelled=True),
        ls_annotation(2, 8, YES, ground_truth=True),
        ls_annotation(3, 9, {}),
        drafts=[draft],
        predictions=[draft, draft],
    )
    found = plan(ls(task), LS)
    assert [(one.annotation, one.reason) for one in found.skipped] == [
        ("1", "cancelled"),
        ("2", "ground_truth"),
        ("3", "no_annotation"),
    ]
    assert found.judgements == [] and (found.counts["drafts"], found.counts["predictions"]) == (1, 2)
    assert [one.annotator for one in plan(ls(task), LS | {"ground_truth": True}).judgements] == ["8"]


def test_several_choices_are_missing_and_the_rest_is_kept() -> None:
    data = ls(ls_task({"id": "a"}, ls_annotation(1, 7, {"grammatical": ["да", "нет"], "logical": ["да"]})))
    found = plan(data, LS)
    assert values(found) == [{"grammatical": None, "logical": 1, "order": None}]
    assert [(one.criterion, one.reason, one.value) for one in found.conflicts] == [
        ("grammatical", "several_choices", "да / нет")
    ]


def test_spans_boxes_and_texts_are_no_choices() -> None:
    annotation = ls_annotation(1, 7, {"logical": ["да"]})
    span = {"start": 0, "end": 3, "text": "кот", "labels": ["да"]}
    box = {"x": 1.5, "y": 2, "width": 3, "height": 4, "rectanglelabels": ["да"]}
    region = {"start": 0, "end": 3, "choices": ["да"]}  # a choice about a span, not about the answer
    annotation["result"] += [
        {"type": "labels", "from_name": "grammatical", "value": span},
        {"type": "rectanglelabels", "from_name": "boxes", "value": box},
        {"type": "choices", "from_name": "order", "value": region},
        {"type": "choices", "from_name": "order", "value": {"choices": ["да"]}},
        "nonsense",
        {"type": "choices"},
    ]
    found = plan(ls(ls_task({"id": "a"}, annotation)), LS)
    assert values(found) == [{"grammatical": None, "logical": 1, "order": None}]
    assert reasons(found.conflicts) == ["not_a_choice", "not_a_choice"]
    assert found.unused == ["boxes"]


def test_an_unknown_value_is_missing_and_named() -> None:
    annotation = ls_annotation(1, 7, {"grammatical": ["может быть"], "logical": [" ДА "]})
    found = plan(ls(ls_task({"id": "a"}, annotation)), LS)
    assert values(found) == [{"grammatical": None, "logical": 1, "order": None}]
    assert [(one.reason, one.value) for one in found.conflicts] == [("unknown_value", "может быть")]


def test_nothing_usable_is_no_judgement() -> None:
    found = plan(ls(ls_task({"id": "a"}, ls_annotation(1, 7, {"grammatical": ["?"]}))), LS)
    assert found.judgements == [] and reasons(found.skipped) == ["nothing_usable"]


def test_ratings_and_numbers_are_their_own_value() -> None:
    annotation = ls_annotation(1, 7, {})
    annotation["result"] = [
        {"type": "rating", "from_name": "sentence", "value": {"rating": 1}},
        {"type": "number", "from_name": "other", "value": {"number": 0.25}},
    ]
    found = plan(ls(ls_task({"id": "a"}, annotation)), {"key": "id", "criteria": {"sentence": {}, "other": {}}})
    assert values(found) == [{"sentence": 1, "other": 0.25}]


def test_json_min_has_text_objects_and_absent_fields() -> None:
    records = [
        {"answer": "a", "annotator": 7, "annotation_id": 1, "grammatical": "да", "logical": {"choices": ["да", "нет"]}},
        {"answer": "b", "annotator": {"id": 8, "email": "b@example.org"}, "annotation_id": 2, "order": ["нет"]},
        {"answer": "c", "annotator": None, "annotation_id": None, "order": None},
        {"answer": "d", "annotator": 7, "annotation_id": 3, "order": [{"start": 1, "end": 2, "labels": ["x"]}]},
        {"answer": "e", "annotator": 7, "annotation_id": 4, "order": {"choices": ["да"], "extra": 1}},
        {"answer": {"a": 1}, "annotator": 7, "annotation_id": 5, "order": "да"},
    ]
    found = plan(json.dumps(records).encode(), {"key": "answer", "criteria": CRITERIA})
    assert found.formats == ["label_studio_json_min"]
    assert values(found) == [
        {"grammatical": 1, "logical": None, "order": None},
        {"grammatical": None, "logical": None, "order": 0},
    ]
    assert [(one.record, one.reason) for one in found.skipped] == [
        (3, "no_annotation"),
        (4, "nothing_usable"),
        (5, "nothing_usable"),
        (6, "no_key"),
    ]


def test_csv_cells_may_hold_json() -> None:
    header = ("annotation_id", "annotator", "answer", "grammatical", "logical", "updated_at")
    rows = [
        (1, "lena", "a", '{"choices":["да","нет"]}', "да", "2024-05-01T10:00:00Z"),
        (2, "lena", "b", '{"choices":["нет"]}', '[{"start":0,"end":2,"labels":["да"]}]', ""),
        (3, "lena", "c", "{не json", "да", ""),
        ("", "", "d", "", "", ""),
    ]
    found = plan(table(*rows, header=header), {"key": "answer", "criteria": {"grammatical": YES_NO, "logical": YES_NO}})
    assert found.formats == ["label_studio_csv"]
    assert values(found) == [
        {"grammatical": None, "logical": 1},
        {"grammatical": 0, "logical": None},
        {"grammatical": None, "logical": 1},
    ]
    assert reasons(found.conflicts) == ["several_choices", "not_a_choice", "not_a_choice"]
    assert reasons(found.skipped) == ["no_annotation"]


# --- doccano -------------------------------------------------------------------------------------------------------


def jsonl(*records: Any) -> bytes:
    return b"".join(json.dumps(record, ensure_ascii=False).encode() + b"\n" for record in records)


def test_a_file_is_its_annotator() -> None:
    data = jsonl(
        {"id": 1, "answer": "a", "label": ["g_yes", "l_no"], "Comments": ["странно", "но так говорят"]},
        {"id": 2, "answer": "b", "label": []},
        {"id": 3, "answer": "c", "label": ["g_yes", "g_no", "l_yes"]},
        {"id": 4, "answer": "d", "label": [[0, 4, "g_yes"]]},
        {"id": 5, "answer": "e", "labels": ["g_no"], "meta": {"answer": "e"}},
        {"id": 6, "answer": "f", "label": ["g_yes", "сомневаюсь"]},
    )
    found = plan(data, DOCCANO, "C:\\exports\\Лена.jsonl")
    assert found.formats == ["doccano_jsonl"] and {one.annotator for one in found.judgements} == {"Лена"}
    assert values(found) == [
        {"grammatical": 1, "logical": 0},
        {"grammatical": None, "logical": 1},
        {"grammatical": 0, "logical": None},
        {"grammatical": 1, "logical": None},
    ]
    assert found.judgements[0].comment == "странно\nно так говорят"
    assert [(one.record, one.reason) for one in found.skipped] == [(2, "no_annotation"), (4, "nothing_usable")]
    assert [(one.reason, one.value) for one in found.warnings] == [("unknown_label", "сомневаюсь")]


def test_a_label_that_stands_twice_is_two_peoples() -> None:
    found = plan(jsonl({"answer": "a", "label": ["g_no", "g_no", "l_yes"]}), DOCCANO)
    assert values(found) == [{"grammatical": None, "logical": 1}] and reasons(found.conflicts) == ["several_choices"]


@pytest.mark.parametrize("name", ["all.jsonl", "ALL.jsonl", "unknown.jsonl", "folder/all.jsonl"])
def test_shared_labels_name_nobody(name: str) -> None:
    assert fault(jsonl({"answer": "a", "label": ["g_yes"]}), DOCCANO, name) == "annotator_unknown"


def test_doccano_csv_of_one_annotator_and_of_all() -> None:
    data = table(
        (1, "текст", "g_yes#l_no", "", "a"), (2, "т", "", "", "b"), header=("id", "text", "label", "Comments", "answer")
    )
    found = plan(data, DOCCANO, "lena.csv")
    assert found.formats == ["doccano_csv"] and values(found) == [{"grammatical": 1, "logical": 0}]
    assert fault(data, DOCCANO, "all.csv") == "annotator_unknown"
    assert [one.annotator for one in plan(data, DOCCANO | {"annotator": "file name"}, "all.csv").judgements] == ["all"]


def test_lines_end_at_line_feeds_only() -> None:
    """U+2028 and U+0085 stand in texts."""
    data = jsonl({"answer": "a", "text": "одно\u2028два\u0085три", "label": ["g_yes"]}) + b"\r\n\n  \n"
    found = plan(data, DOCCANO)
    assert len(found.judgements) == 1 and (found.counts["records"], found.counts["blank_records"]) == (4, 3)


def test_a_list_instead_of_lines() -> None:
    assert len(plan(json.dumps([{"answer": "a", "label": ["g_yes"]}]).encode(), DOCCANO).judgements) == 1


# --- tables --------------------------------------------------------------------------------------------------------


def test_columns_by_name_and_by_position() -> None:
    data = table(("a", "лена", "да", "", "Нет"))
    assert values(plan(data, WIDE)) == [{"grammatical": 1, "logical": None, "order": 0}]
    by_place = {"key": 0, "annotator": 1, "criteria": {"2": YES_NO, "4": YES_NO}}
    assert values(plan(data, by_place)) == [{"2": 1, "4": 0}]


def test_numbers_need_no_mapping() -> None:
    data = table(("a", "лена", "1", "0,5", "0.25"))
    found = plan(data, WIDE | {"criteria": {"grammatical": {}, "logical": {}, "order": {}}})
    assert values(found) == [{"grammatical": 1, "logical": 0.5, "order": 0.25}]


def test_a_record_per_criterion() -> None:
    rows = [
        ("a", "лена", "grammatical", "да"),
        ("a", "лена", "logical", "нет"),
        ("a", "миша", "grammatical", "нет"),
        ("a", "лена", "стиль", "да"),
        ("b", "лена", "logical", ""),
        ("a", "лена", "logical", "да"),
        ("c", "лена", "logical", "?"),
    ]
    data = table(*rows, header=("answer", "who", "what", "said"))
    settings = WIDE | {"criterion_column": "what", "value_column": "said"}
    settings["criteria"] = {"grammatical": YES_NO, "logical": YES_NO}
    found = plan(data, settings)
    assert [(one.annotator, one.values) for one in found.judgements] == [
        ("лена", {"grammatical": 1}),
        ("лена", {"logical": 0}),
        ("миша", {"grammatical": 0}),
        ("лена", {"logical": 1}),
    ]
    assert annotators_of(found.judgements) == {"лена": 1, "миша": 1}
    assert [(one.record, one.reason) for one in found.skipped] == [(5, "no_annotation"), (7, "nothing_usable")]
    assert [(one.record, one.reason) for one in found.conflicts] == [(4, "unknown_criterion"), (7, "unknown_value")]


def workbook(*rows: list[Any]) -> bytes:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def test_a_workbook_and_its_dates() -> None:
    data = workbook(
        ["answer", "who", "grammatical", "when"],
        ["a", "лена", "да", datetime(2024, 5, 1, 13, 5)],  # noqa: DTZ001 (a workbook has no zones)
        ["b", "лена", datetime(2024, 5, 1), None],  # noqa: DTZ001
    )
    settings = {"key": "answer", "annotator": "who", "time": "when", "criteria": {"grammatical": YES_NO}}
    found = plan(data, settings | {"time_zone": "Europe/Moscow"})
    assert found.formats == ["columns_xlsx"]
    assert [one.made_at.isoformat() for one in found.judgements] == ["2024-05-01T10:05:00+00:00"]
    assert reasons(found.conflicts) == ["turned_into_date"] and reasons(found.skipped) == ["nothing_usable"]
    assert reasons(plan(data, settings).warnings) == ["time_unreadable"], "without a zone the moment is not known"


def test_a_formula_without_a_value_is_refused() -> None:
    data = workbook(["answer", "who", "grammatical"], ["a", "лена", "=1+1"])
    assert (
        fault(data, {"key": "answer", "annotator": "who", "criteria": {"grammatical": {}}}) == "formula_without_value"
    )


def test_a_formula_in_a_csv_is_a_text() -> None:
    found = plan(table(("a", "=HYPERLINK(1)", "=1+1", "да", "")), WIDE)
    assert found.judgements[0].annotator == "=HYPERLINK(1)"
    assert [(one.reason, one.value) for one in found.conflicts] == [("unknown_value", "=1+1")]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1251"])
def test_encodings(encoding: str) -> None:
    text = table(("a", "лена", "да", "нет", "да"), ("b", "миша", "нет", "нет", "да")).decode()
    found = plan(text.encode(encoding), WIDE)
    assert [one.annotator for one in found.judgements] == ["лена", "миша"] and not found.conflicts
    both = [ls_task({"id": "я"}, ls_annotation(1, "лена", YES))]
    assert len(plan(json.dumps(both, ensure_ascii=False).encode(encoding), LS).judgements) == 1


# --- files that are none -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "empty"),
        (b" \r\n\0", "empty"),
        (b"<!DOCTYPE html><html><body>log in</body></html>", "not_a_table"),
        (b"%PDF-1.7", "not_a_table"),
        (b"\x1f\x8b\x08", "not_a_table"),
        (b"[]", "no_records"),
        (b"answer,who\n", "no_records"),
        (b'{"detail": "Authentication credentials were not provided."}', "not_an_export"),
        (b'[{"id": 1}]', "not_an_export"),
        (b"[1, 2]", "not_an_export"),
        (b'[{"id": 1, "annotations": {}, "data": {}}]', "not_an_export"),
        (b'[{"data": {}, "annotations": []}, 5]', "not_an_export"),
        (b'[{"data": {}, "annotations": []}, {"a": 1, "a": 2}]', "doubled_key"),
        (b'[{"data": {}, "annotations": []}, {"a": NaN}]', "bad_json"),
        (b'[{"data": {}, "annotations": []}] tail that is longer', "bad_json"),
        (b'[{"data": {}, "annotations": []} {"data": {}, "annotations": []}]', "bad_json"),
        (b'[{"data": {}, "annotations": []},, {"data": {}, "annotations": []}]', "bad_json"),
        (b'[{"data": {"n": ' + b"9" * 5000 + b'}, "annotations": []}]', "endless_number"),
        (b'[{"data": {}, "annotations": ' + b"[" * 200_000 + b"]" * 200_000 + b"}]", "too_deep"),
        (b'[{"data": {"a": "x\0y"}, "annotations": []}]', "nul"),
        (b'{"label": ["g_yes"], "answer": "a"}\n[1, 2]\n', "not_an_export"),
        (b'{"label": ["g_yes"], "answer": "a"} {"label": []}\n{"label": [], "answer": "b"}\n', "bad_json"),
        (b'{"label": ["g_yes"],\n "answer": "a"}\n{"label": [], "answer": "b"}\n', "bad_json"),
    ],
)
def test_what_is_no_export_is_refused(data: bytes, code: str) -> None:
    settings = {"key": "answer", "annotator": None, "criteria": CRITERIA, "labels": LABELS}
    assert fault(data, settings, "lena") == code


def test_an_export_that_is_cut_off_anywhere_is_refused() -> None:
    whole = ls(*(ls_task({"id": f"ключ {n}"}, ls_annotation(n, 7, YES)) for n in range(3)))
    codes = {fault(whole[:end]) for end in range(2, len(whole) - 1, 7)}
    assert codes <= {"truncated", "empty", "bad_json", "not_an_export"} and "truncated" in codes
    lines = jsonl({"answer": "a", "label": ["g_yes"]}, {"answer": "b", "label": ["g_no"]})
    assert fault(lines[:-9], DOCCANO, "lena.jsonl") == "truncated"


def test_a_file_that_is_too_large_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MAX_BYTES", 100)
    assert fault(ls(ls_task({"id": "a"}, ls_annotation(1, 7, YES)))) == "too_large"


@pytest.mark.parametrize(
    ("chosen", "code"),
    [
        ({"criteria": CRITERIA}, "missing_setting"),
        ({"key": "id"}, "missing_setting"),
        ({"respondent": "id", "criteria": CRITERIA}, "missing_setting"),
        ({"key": "nowhere", "criteria": CRITERIA}, "missing_column"),
        ({"key": "id", "criteria": {"order": {"да": "1"}}}, "bad_setting"),
        ({"key": "id", "criteria": {"order": {"да": True}}}, "bad_setting"),
        ({"key": "id", "criteria": {"order": {"x" * 201: 1}}}, "bad_setting"),
        ({"key": "id", "criteria": [1]}, "bad_setting"),
        ({"key": "id", "criteria": {"order": {}, "ORDER": {}}}, "bad_setting"),
        ({"key": ["id"], "criteria": CRITERIA}, "bad_setting"),
        ({"key": "id", "criteria": CRITERIA, "encoding": "rot13"}, "bad_setting"),
        ({"key": "id", "criteria": CRITERIA, "time_zone": "../etc"}, "bad_setting"),
        ({"key": "id", "criteria": CRITERIA, "ground_truth": "yes"}, "bad_setting"),
        ({"key": "id", "criteria": CRITERIA, "sheet": 3}, "bad_setting"),
        ({"key": "id", "criteria": CRITERIA, "surprise": 1}, "bad_setting"),
        ({"key": "id", "labels": {"a": ["g"]}, "criteria": CRITERIA}, "bad_setting"),
        ({"key": "id", "criterion_column": "id", "criteria": CRITERIA}, "missing_setting"),
    ],
)
def test_settings_that_cannot_be(chosen: dict[str, Any], code: str) -> None:
    assert fault(ls(ls_task({"id": "a"}, ls_annotation(1, 7, YES))), chosen) == code


def test_one_faulty_file_of_several_stops_all() -> None:
    good = ls(ls_task({"id": "a"}, ls_annotation(1, 7, YES)))
    found = plan_files([Source("a.json", good), Source("b.json", b"[{")], format_name=None, settings=LS)
    assert found.error and found.error_file == 1 and found.judgements == []


def test_many_annotations_are_read_piece_by_piece() -> None:
    """Only one task is held as objects at a time: what is planned is all that grows."""
    one = ls_task({"id": "a"}, *(ls_annotation(n, n, YES) for n in range(10)))
    data = b"[" + b",".join([json.dumps(one, ensure_ascii=False).encode()] * 500) + b"]"
    tracemalloc.start()
    found = plan(data, LS)
    _size, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found.judgements) == 5_000
    assert peak < 5 * len(data), "as objects the whole file would be several times that"
