import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmruns.replies import Reply, classify_reply, parse_reply
from tests.shared_cases import case_params

FORMAT = Reply(None, "format")
EMPTY = Reply(None, "empty")
SENTENCE = "кошка сидит на столе."
BARE = '{"results": "кошка сидит на столе."}'


@pytest.mark.parametrize("case", case_params("llm_outputs"))
def test_shared_case(case):
    reply = parse_reply(case["raw"])
    if case["verdict"] == "ok":
        assert reply == Reply(case["answer"], None), case["why"]
    else:
        assert reply.answer is None, case["why"]
        assert reply.error in {"format", "empty"}, case["why"]


@pytest.mark.parametrize(
    "raw",
    [
        BARE,
        f"\ufeff\n {BARE}\u00a0\r\n",
        f"```json\n{BARE}\n```",
        f"```\r\n{BARE}\r\n```",
        f"```{BARE}```",
        f"<think>подумаю</think>{BARE}",
        f"подумаю</think>\n\n{BARE}",
        f'<think>{{"results": "черновик"}}</think>```json\n{BARE}\n```',
        f"<think>закрою тегом </think> и отвечу</think>{BARE}",
        '{"results": ["кошка сидит на столе."]}',
        '{"results": [{"sentence": "кошка сидит на столе."}]}',
        '{"results": [{"id": 1, "sentence": "кошка сидит на столе."}]}',
        '{"results": "кошка сидит на столе.", "n": 4, "comment": ["а", null]}',
        '{"n": ' + "9" * 5000 + ', "results": "кошка сидит на столе."}',
    ],
)
def test_the_answer_is_found(raw):
    assert parse_reply(raw) == Reply(SENTENCE, None)


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "  с краёв \n",
        "```json\nкод\n```",
        "<think>а</think> б",
        'x</think>{"results": "y"}',
        "«ёлка» \\u0438 \ufeff",
        "null",
    ],
)
def test_the_answer_is_kept_as_it_is(answer):
    raw = json.dumps({"results": answer})
    for wrapped in (raw, f"```json\n{raw}\n```", f"<think>так</think>{raw}", f"</think>```\n{raw}\n```"):
        assert parse_reply(wrapped) == Reply(answer, None)


@pytest.mark.parametrize(
    "raw",
    [
        SENTENCE,
        f"Вот ответ: {BARE}",
        f"{BARE} Готово.",
        f"{BARE}{BARE}",
        f"[{BARE}]",
        f"```json\n{BARE}\n``` Готово.",
        f"Готово. ```json\n{BARE}\n```",
        f"```json\n```json\n{BARE}\n```\n```",
        f"```python\n{BARE}\n```",
        f"```json5\n{BARE}\n```",
        f"```json\n{BARE}",
        f"<think>{BARE}",
        f"<thinking>так</thinking>{BARE}",
        '{"results": "a", "results": "a"}',
        '{"results": "a", "x": {"y": 1, "y": 2}}',
        '{"result": "a"}',
        '{"results": 1}',
        '{"results": true}',
        '{"results": null}',
        '{"results": {"sentence": "a"}}',
        '{"results": []}',
        '{"results": ["a", "b"]}',
        '{"results": [["a"]]}',
        '{"results": [{}]}',
        '{"results": [{"a": 1}]}',
        '{"results": [{"a": "б", "в": "г"}]}',
        '{"results": "a", "x": NaN}',
        '{"results": "a", "x": -Infinity}',
        '{"results": "a\\u0000"}',
        '{"results": "a\x00"}',
        '{"results": "a\\ud83d"}',
        '{"results": "a\ud83d"}',
        '{"results": "a", "comment": "\\udc00"}',
        '{"results": "a", "\\u0000": 1}',
        '{"results": "a\tb"}',
        "{'results': 'a'}",
        '{"results": "a",}',
        '{"results": "a" // так\n}',
        '"results"',
        "null",
        "1" * 5000,
    ],
)
def test_everything_else_is_bad_format(raw):
    assert parse_reply(raw) == FORMAT


def test_a_pair_of_surrogate_escapes_is_one_character():
    assert parse_reply('{"results": "\\ud83d\\ude0a"}') == Reply("😊", None)


@pytest.mark.parametrize("raw", ["", " \n\u00a0\ufeff", "<think>долго</think>\n"])
def test_a_blank_reply_is_empty(raw):
    assert parse_reply(raw) == EMPTY


@pytest.mark.parametrize(
    "raw",
    [
        "[" * 100_000,
        '{"a":' * 100_000,
        '{"results": "a", "x": ' + "[" * 100_000 + "]" * 100_000 + "}",
        "</think>{" * 10_000,
        "```" * 10_000,
    ],
    ids=["lists", "objects", "deep and closed", "thoughts", "fences"],
)
def test_a_hostile_reply_is_bad_format(raw):
    assert parse_reply(raw) == FORMAT


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_gives_a_reply(raw):
    reply = parse_reply(raw)
    assert (reply.answer is None) != (reply.error is None)


pieces = st.sampled_from(
    [
        "{",
        "}",
        "[",
        "]",
        '"',
        ":",
        ",",
        "results",
        '"results"',
        "```",
        "json",
        "\n",
        "<think>",
        "</think>",
        "a",
        "\\",
    ]
)


@given(st.lists(pieces).map("".join))
@settings(max_examples=300)
def test_any_json_like_text_gives_a_reply(raw):
    reply = parse_reply(raw)
    assert (reply.answer is None) != (reply.error is None)


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00")), st.booleans())
def test_what_a_strict_writer_writes_comes_back(answer, ascii_only):
    assert parse_reply(json.dumps({"results": answer}, ensure_ascii=ascii_only)) == Reply(answer, None)


@pytest.mark.parametrize(
    ("raw", "finish", "refusal", "reply"),
    [
        (BARE, "stop", None, Reply(SENTENCE, None)),
        (BARE, None, None, Reply(SENTENCE, None)),
        (BARE, "length", None, Reply(SENTENCE, None)),  # complete, the limit notwithstanding
        ('{"results": "кошка си', "length", None, Reply(None, "truncated")),
        ("<think>долго", "length", None, Reply(None, "truncated")),
        ("", "length", None, Reply(None, "truncated")),
        (None, "length", None, Reply(None, "truncated")),
        ('{"results": "кошка си', "stop", None, FORMAT),
        ("", "stop", None, EMPTY),
        (None, "stop", None, EMPTY),
        (None, "stop", "Не могу помочь.", Reply(None, "refused")),
        (BARE, "stop", "Не могу помочь.", Reply(None, "refused")),
        (BARE, "stop", "", Reply(SENTENCE, None)),
        (None, "content_filter", None, Reply(None, "filtered")),
        ("кошка", "content_filter", None, Reply(None, "filtered")),
        ("Извините, я не могу.", "stop", None, FORMAT),
        ("кошка", "something_new", None, FORMAT),
    ],
)
def test_classify_reply(raw, finish, refusal, reply):
    assert classify_reply(raw, finish, refusal) == reply
