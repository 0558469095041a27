import csv
import io
from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.csvfile import BOM, MAX_CELL, cell, guarded, stream

# Scenario SG3.
TEXTS = ["- не знаю", "=СУММ(1;2)", "+7", "@мысль", "1-3", '«ёлка»; "да"', "первая строка\nвторая", "'апостроф"]


def written(rows, header=("text",), **form) -> str:
    return "".join(stream(header, rows, **form))


def read(text: str, delimiter: str = ",") -> list[list[str]]:
    assert text.startswith(BOM)  # what makes Excel read Cyrillic on a double click
    return list(csv.reader(io.StringIO(text[1:], newline=""), delimiter=delimiter, strict=True))


def test_exact_texts_come_back_character_for_character():
    assert [row[0] for row in read(written([[text] for text in TEXTS]))[1:]] == TEXTS


@given(st.lists(st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), min_size=1), min_size=1))
def test_any_text_comes_back(texts):
    assert [row[1] for row in read(written([["x", text] for text in texts]))[1:]] == texts


@pytest.mark.parametrize("decimal_comma", [False, True])
def test_nothing_is_evaluated_in_the_file_for_excel(decimal_comma):
    delimiter = ";" if decimal_comma else ","
    text = written([[text] for text in TEXTS], ("=header",), for_excel=True, decimal_comma=decimal_comma)
    (header,), *rows = read(text, delimiter)
    assert header == "'=header"
    for original, (shown,) in zip(TEXTS, rows, strict=True):
        assert shown[0] not in "=+-@0123456789"
        assert (shown[1:] if shown.startswith("'") else shown) == original


@pytest.mark.parametrize("text", ["=1", " =1", "\t=1", "\ufeff=1", "＝1", "'x", "2026", "1-3", "|cmd", "-x"])
def test_dangerous_texts_are_guarded(text):
    assert guarded(text) == f"'{text}"


@pytest.mark.parametrize("text", ["", "слово", "a=b", "«1»", "(1)"])
def test_harmless_texts_are_left_alone(text):
    assert guarded(text) == text


def test_values():
    when = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)
    values = [None, 0.0, 1.0, 0.25, True, False, 7, when, UUID(int=1), {"ё": 1}]
    assert [cell(value) for value in values] == [
        "",
        "0",
        "1",
        "0.25",
        "true",
        "false",
        "7",
        "2026-01-02T03:04:05.678+00:00",
        "00000000-0000-0000-0000-000000000001",
        '{"ё": 1}',
    ]


def test_decimals_for_a_russian_spreadsheet():
    assert read(written([[0.25, 1.0]], ("a", "b"), for_excel=True, decimal_comma=True), ";")[1] == ["0,25", "1"]


def test_a_cell_for_excel_is_cut_where_excel_would_break_the_row():
    ((_head,), (shown,)) = read(written([["я" * 40_000]], for_excel=True))
    assert len(shown) == MAX_CELL


def test_a_long_file_comes_in_pieces():
    pieces = list(stream(("n", "text"), ([number, "слово" * 20] for number in range(5_000))))
    assert len(pieces) > 5
    assert max(len(piece) for piece in pieces) < 70_000
    assert len(read("".join(pieces))) == 5_001
