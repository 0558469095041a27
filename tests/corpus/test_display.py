import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from corpus.display import display_text
from corpus.tokens import word_tokens
from tests.shared_cases import cases

PLAIN = "пусть сначала устранит свои недостатки"

# Signs that mean something to the rules, so that random texts meet every one of them.
SIGNS = "*_~`\"'«»“”„‘’-‐‑–—−…..。•#> \n\t\u00a0\u00ad\u200b\ufeff\x00\u0301\u0308\ufe0f()[]{}!?,:;"
hostile = st.text(st.sampled_from("абё5aE" + SIGNS), max_size=40)
texts = st.one_of(st.text(), hostile)


@pytest.mark.parametrize(
    "text",
    [
        "Пусть сначала устранит свои недостатки.",
        "ПУСТЬ СНАЧАЛА УСТРАНИТ СВОИ НЕДОСТАТКИ",
        "  пусть\u00a0сначала\tустранит  свои\nнедостатки . ",
        "**Пусть сначала устранит свои недостатки.**",
        "***пусть сначала устранит свои недостатки***",
        "_Пусть сначала устранит свои недостатки_.",
        "`пусть сначала устранит свои недостатки`",
        "~~пусть сначала устранит свои недостатки~~",
        "пусть **сначала** устранит _свои_ `недостатки`",
        "```\nпусть сначала устранит свои недостатки\n```",
        "```text\r\nПусть сначала устранит свои недостатки.\r\n```",
        "«Пусть сначала устранит свои недостатки.»",
        "“пусть сначала устранит свои недостатки”.",
        "„пусть сначала устранит свои недостатки“",
        '"пусть сначала устранит свои недостатки."',
        "'пусть сначала устранит свои недостатки'",
        "**«Пусть сначала устранит свои недостатки.»**",
        "- пусть сначала устранит свои недостатки",
        "— Пусть сначала устранит свои недостатки.",
        "* пусть сначала устранит свои недостатки",
        "• пусть сначала устранит свои недостатки",
        "> пусть сначала устранит свои недостатки",
        "## Пусть сначала устранит свои недостатки",
        "\ufeffпусть сначала устра\u00adнит\u200b свои недостатки\u200e",
        "пусть сначала устранит свои недостатки\x00",
        "пусть сначала устранит свои недостатки。",
    ],
)
def test_habits_of_typing_are_evened_out(text):
    assert display_text(text, lower_case=True) == PLAIN


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        # A quoted word in each way that people and models type it.
        ("для «гран-при» монако", 'для "гран-при" монако'),
        ("для „гран-при“ монако", 'для "гран-при" монако'),
        ("для ‘гран-при’ монако", 'для "гран-при" монако'),
        ("для 'гран‑при' монако", 'для "гран-при" монако'),
        ("«для «гран-при» монако».", 'для "гран-при" монако'),
        # Two quoted words are not one quotation, and a lone mark is not a pair.
        ("«гран-при» и «монако»", '"гран-при" и "монако"'),
        ('"гран-при" монако и "шины"', '"гран-при" монако и "шины"'),
        ('гран-при"', 'гран-при"'),
        ("д’артаньян", "д'артаньян"),
        ("об`ект", "об'ект"),
        # Dashes look alike, hyphens stay in their words, and nothing is joined or parted.
        ("чижик — с интересом", "чижик — с интересом"),
        ("чижик - с интересом", "чижик — с интересом"),
        ("чижик – с интересом", "чижик — с интересом"),
        ("чижик -- с интересом", "чижик — с интересом"),
        ("чижик—с интересом", "чижик — с интересом"),
        ("чижик,–с интересом", "чижик, — с интересом"),
        ("как-то, как\u2010то, как\u2011то", "как-то, как-то, как-то"),
        ("как–то", "как — то"),
        ("куда- то", "куда- то"),
        ("\u22125 градусов", "-5 градусов"),
        # The end.
        ("не знаю…", "не знаю..."),
        ("не знаю...", "не знаю..."),
        ("не знаю?", "не знаю?"),
        ("и т.д.", "и т.д"),
        ("он ушёл. она тоже.", "он ушёл. она тоже"),
        # What is not markup.
        ("2*3*4 = 24", "2*3*4 = 24"),
        ("snake_case", "snake_case"),
        ("слово* и другое", "слово* и другое"),
        ("п**ц", "п**ц"),
        ("1) дом, сад и лес", "1) дом, сад и лес"),
        ("ответ: дом", "ответ: дом"),
        ("<b>дом</b> & <исправленное предложение>", "<b>дом</b> & <исправленное предложение>"),
        ("дом 😊", "дом 😊"),
        ("=сумм(1;2)", "=сумм(1;2)"),
        ("+7", "+7"),
        # Letters stay: ё, a stress mark, a Latin look-alike; only their composition is one.
        ("еще\u0308", "ещё"),
        ("все и всё", "все и всё"),
        ("за\u0301мок", "за\u0301мок"),
        ("дoм", "дoм"),
        ("дом\x00сад\x1bлес", "дом сад лес"),
        # What has no word keeps a sign where there is one.
        ("-", "—"),
        ("**", "**"),
        ("?", "?"),
        ("", ""),
        (" \n", ""),
    ],
)
def test_display_text(text, shown):
    assert display_text(text, lower_case=True) == shown


def test_case_is_the_instruments():
    assert display_text("**Он летит на Марс.**", lower_case=False) == "Он летит на Марс"
    assert display_text("**Он летит на Марс.**", lower_case=True) == "он летит на марс"


@given(texts, st.booleans())
@settings(max_examples=400)
def test_the_display_of_a_display_is_itself(text, lower_case):
    shown = display_text(text, lower_case=lower_case)
    assert display_text(shown, lower_case=lower_case) == shown


@given(texts, st.booleans())
@settings(max_examples=400)
@example("как-**то**", False)
@example("а*_б_", False)
@example("*б а*_в_", False)
@example("как*-то*", False)
@example("как\x00то", False)
def test_the_words_are_those_of_the_stored_text(text, lower_case):
    if "```" in text or "~~~" in text:
        return  # the language that a fence names is markup, the only word that display takes away
    shown = display_text(text, lower_case=lower_case)
    assert len(word_tokens(shown)) == len(word_tokens(text))


@given(hostile)
def test_the_words_keep_their_letters(text):
    if "```" in text or "~~~" in text:
        return
    hyphens = str.maketrans("‐‑", "--")
    plain = text.translate(dict.fromkeys(map(ord, "\u0301\u0308")))  # marks may compose once a sign between is gone
    expected = [token.translate(hyphens) for token in word_tokens(plain)]
    assert word_tokens(display_text(plain, lower_case=False)) == expected


@given(texts, st.booleans())
def test_nothing_invisible_is_left(text, lower_case):
    shown = display_text(text, lower_case=lower_case)
    assert {unicodedata.category(char) for char in shown}.isdisjoint({"Cc", "Cf", "Cs", "Zl", "Zp"})
    assert shown == " ".join(shown.split())
    assert unicodedata.is_normalized("NFC", shown)


WRAPPINGS = [("**", "**"), ("_", "_"), ("«", "»"), ("“", "”"), ('"', '"'), ("`", "`"), ("- ", "")]


@given(
    st.lists(st.sampled_from(["как-то", "раз", "пришёл", "домой"]), min_size=1, max_size=6),
    st.lists(st.sampled_from(WRAPPINGS), unique=True),
    st.integers(0, len(WRAPPINGS)),
)
def test_any_wrapping_looks_like_the_bare_sentence(words, wrappings, depth_of_stop):
    sentence = wrapped = " ".join(words)
    for depth, (before, after) in enumerate(wrappings):
        stop = "." if depth == depth_of_stop else ""
        wrapped = f"{before}{wrapped}{stop}{after}"
    assert display_text(wrapped, lower_case=True) == sentence


@pytest.mark.parametrize(
    "text",
    [
        '"' * 50_000 + "x" + '".' * 50_000,
        '*"' * 25_000 + "x" + '"*' * 25_000,
        "'*\"" * 20_000 + "x" + "\"*'" * 20_000,
        "*а " * 33_000,
        "```\n" + " " * 100_000,
        "- " * 50_000 + "x",
        " ." * 50_000,
    ],
    ids=["quotes and stops", "quotes and bold", "all marks", "open bold", "open fence", "bullets", "stops"],
)
def test_a_hostile_text_settles(text):
    shown = display_text(text, lower_case=True)
    assert display_text(shown, lower_case=True) == shown
    assert len(word_tokens(shown)) == len(word_tokens(text))


def test_shared_answers_keep_their_words():
    for case in cases("tokens"):
        assert len(word_tokens(display_text(case["text"], lower_case=True))) == case["n_words"], case["why"]
