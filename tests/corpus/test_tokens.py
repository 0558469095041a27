import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.tokens import is_refusal, word_tokens
from tests.shared_cases import case_params, cases


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("дом, сад и лес.", ["дом", "сад", "и", "лес"]),
        ("кто-то пришёл", ["кто-то", "пришёл"]),
        ("кто\u2010то кто\u2011то", ["кто\u2010то", "кто\u2011то"]),
        ("кто–то", ["кто", "то"]),  # en dash
        ("кто—то", ["кто", "то"]),  # em dash
        ("кто - то", ["кто", "то"]),
        ("кто- то", ["кто", "то"]),
        ("кто--то", ["кто", "то"]),
        ("за\u0301мок", ["замок"]),  # stress mark
        ("еще\u0308", ["ещё"]),  # NFD ё is composed, not lost
        ("под\u00adъезд", ["подъезд"]),  # soft hyphen
        ("\ufeffдом\u200bик", ["домик"]),  # BOM, zero-width space
        ("дом\u00a0сад\u2009лес", ["дом", "сад", "лес"]),
        ("snake_case", ["snake", "case"]),
        ("1) дом", ["1", "дом"]),
        ("дoм", ["дoм"]),  # a Latin o stays inside its word
        ("дом\x00сад", ["дом", "сад"]),
        ("😊дом😊", ["дом"]),
        ("", []),
        ("-—!?", []),
    ],
)
def test_word_tokens(text, tokens):
    assert word_tokens(text) == tokens


def test_refusal_counts_words_and_not_signs():
    assert is_refusal("не знаю, как")
    assert not is_refusal("не знаю как правильно")
    assert is_refusal("")
    assert not is_refusal("не знаю, как", below=3)


@given(st.text())
def test_a_token_has_letters_or_digits_and_no_white_space(text):
    for token in word_tokens(text):
        assert token[0].isalnum()
        assert token[-1].isalnum()
        assert not any(char.isspace() for char in token)


@pytest.mark.parametrize("case", case_params("tokens"))
def test_shared_case(case):
    assert len(word_tokens(case["text"])) == case["n_words"], case["why"]
    assert is_refusal(case["text"]) is case["refusal"], case["why"]


def test_shared_answers_of_models():
    for case in cases("llm_outputs"):
        if "n_words" in case:
            assert len(word_tokens(case["answer"])) == case["n_words"], case["id"]
            assert is_refusal(case["answer"]) is case["refusal"], case["id"]
