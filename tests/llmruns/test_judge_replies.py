"""A judge's reply is a whole judgement on the scale, or it is none."""

import pytest

from llmruns.judge_replies import JudgeReply, classify_judgement, parse_judgement

SCALES = {"grammatical": [1, 0], "order": [1, 0]}
GRADED = {"sentence": [1, 0.5, 0.25, 0]}
BOTH = JudgeReply({"grammatical": 1.0, "order": 0.0}, None)


@pytest.mark.parametrize(
    "raw",
    [
        '{"grammatical": 1, "order": 0}',
        '{"order": 0, "grammatical": 1.0}',
        ' \n\ufeff{"grammatical": 1, "order": 0}\n',
        '```json\n{"grammatical": 1, "order": 0}\n```',
        '<think>{"grammatical": 0, "order": 0}</think>{"grammatical": 1, "order": 0}',
        '{"grammatical": 1, "order": 0, "why": "потому что \\"{\\""}',
        '{"grammatical": 1e0, "order": -0.0}',
    ],
)
def test_it_is_read(raw: str) -> None:
    assert parse_judgement(raw, SCALES) == BOTH


@pytest.mark.parametrize(
    ("raw", "fault"),
    [
        ('{"grammatical": 1}', "order: missing"),
        ('{"grammatical": 1, "order": null}', "order: None"),
        ('{"grammatical": 1, "order": true}', "order: True"),
        ('{"grammatical": 1, "order": "1"}', "order: 1"),
        ('{"grammatical": 1, "order": 0.9}', "order: 0.9"),
        ('{"grammatical": 1, "order": 2}', "order: 2.0"),
        ('{"grammatical": 1, "order": [1]}', "order: [1.0]"),
        ('{"grammatical": 1, "Order": 1}', "order: missing"),
        ('{"results": {"grammatical": 1, "order": 1}}', "grammatical: missing"),
        ("{}", "grammatical: missing"),
    ],
)
def test_one_wrong_value_leaves_nothing_and_is_named(raw: str, fault: str) -> None:
    assert parse_judgement(raw, SCALES) == JudgeReply(None, "format", fault)


@pytest.mark.parametrize(
    "raw",
    [
        'Оценка: {"grammatical": 1, "order": 1}',
        '{"grammatical": 1, "order": 1} Готово.',
        '{"grammatical": 1, "order": 1}{"grammatical": 0, "order": 0}',
        '[{"grammatical": 1, "order": 1}]',
        '{"grammatical": 1, "grammatical": 0, "order": 1}',
        '{"grammatical": NaN, "order": 1}',
        '{"grammatical": 1, "order": 1',
        "{'grammatical': 1, 'order': 1}",
        "1 1",
        '{"grammatical": 1, "order": 1, "x": "\\u0000"}',
        "[" * 100_000,
    ],
)
def test_what_is_no_single_strict_object_is_in_the_wrong_format(raw: str) -> None:
    assert parse_judgement(raw, SCALES) == JudgeReply(None, "format")


def test_blank_is_empty() -> None:
    assert parse_judgement(" \n", SCALES).error == parse_judgement("<think>x</think>", SCALES).error == "empty"


@pytest.mark.parametrize(("raw", "value"), [("0.25", 0.25), ("0.5", 0.5), ("1", 1.0), ("0", 0.0), ("0.75", None)])
def test_a_grade_is_one_of_its_scale(raw: str, value: float | None) -> None:
    found = parse_judgement(f'{{"sentence": {raw}}}', GRADED)
    assert found.values == (None if value is None else {"sentence": value})


def test_a_refusal_and_a_filter_stand_above_the_content() -> None:
    whole = '{"grammatical": 1, "order": 0}'
    assert classify_judgement(whole, "stop", None, SCALES) == BOTH
    assert classify_judgement(whole, "stop", "no", SCALES) == JudgeReply(None, "refused")
    assert classify_judgement(whole, "content_filter", None, SCALES) == JudgeReply(None, "filtered")
    assert classify_judgement(whole, "length", None, SCALES) == BOTH, "whole at the limit is whole"
    assert classify_judgement(whole[:10], "length", None, SCALES).error == "truncated"
    assert classify_judgement(None, "stop", None, SCALES).error == "empty"
