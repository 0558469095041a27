import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus.composer import (
    Candidate,
    Parameters,
    ParametersError,
    Scan,
    Slot,
    bands_of,
    candidate_of,
    chosen,
    counts_of,
    given_words,
    shares_of,
    shuffled_tokens,
    slots_of,
    source_of,
)
from corpus.compositions import refusal_below, task_rows
from corpus.importing import read_stimuli, stimuli_csv
from corpus.languages import LANGUAGES, WordList, language_gaps, word_list_text
from corpus.reasons import REASONS, reasons_text
from corpus.screening import CHECKS, DOUBTS
from corpus.sentences import given_lemma
from corpus.tokens import word_tokens
from corpus.treebank import sentences
from tests.corpus.treebanks import CAT, COMPOUND, bands, changed, conllu, one, read

RU = Parameters(language="ru")


def found(text: str, parameters: Parameters = RU, genre: str = "") -> set[str]:
    _candidate, reasons = candidate_of(one(text, parameters.language, genre), parameters.screen())
    return {code for code, _detail in reasons}


def the_candidate(text: str, language: str = "ru") -> Candidate:
    candidate, reasons = candidate_of(one(text, language), Parameters(language=language).screen())
    assert candidate, reasons
    return candidate


def test_a_plain_sentence_is_a_candidate() -> None:
    cat = the_candidate(CAT)
    assert " ".join(cat.given) == "кошка тихо сидеть на большой стол ."
    assert (cat.original, cat.band, cat.compound) == ("кошка тихо сидит на большом столе.", 0, False)


def test_a_compound_sentence_is_known_by_its_relations() -> None:
    children = the_candidate(COMPOUND)
    assert children.compound and children.band == 1
    assert " ".join(children.given) == "ребенок , который играть в двор увидеть большой собака ."


IMPERATIVE = "Mood=Imp|Number=Sing|Person=2|VerbForm=Fin"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (CAT.replace("большом большой ADJ Case=Loc|Number=Sing 6 amod\n", "").replace("6 case", "5 case"), None),
        ("Стоп стоп NOUN _ 0 root\n. . PUNCT _ 1 punct", "length"),
        (changed(CAT, 6, lemma="_"), "lemma_missing"),
        (changed(CAT, 6, lemma="письменный стол").replace("письменный стол", "письменный_стол"), "lemma_count"),
        (changed(CAT, 3, lemma="сидит"), "lemma_doubtful"),
        (changed(CAT, 6, form="столле"), "unknown_word"),
        (changed(CAT, 2, form="«тихо»"), "direct_speech"),
        (changed(CAT, 3, deprel="root", form="сидишь", feats="Person=2|VerbForm=Fin"), "address"),
        (changed(CAT, 3, form="сиди", feats=IMPERATIVE), "address"),
        (changed(CAT, 1, form="Мама", lemma="мама", deprel="vocative"), "address"),
        (changed(CAT, 6, upos="X"), "foreign"),
        (changed(CAT, 6, feats="Foreign=Yes"), "foreign"),
        (changed(CAT, 6, form="table", lemma="table"), "foreign"),
        (changed(CAT, 6, form="дормезе", lemma="дормез"), "rare"),
        (changed(CAT, 2, form="вельми", lemma="вельми"), "archaic"),
        (changed(CAT, 6, feats="Case=Loc|Style=Arch"), "archaic"),
        (changed(CAT, 1, form="Мурка", lemma="Мурка", upos="PROPN"), "name"),
        (changed(CAT, 1, form="Москва", lemma="москва"), "name"),
        (changed(CAT, 6, form="Столе"), "name"),
        (changed(CAT, 5, form="пятом", lemma="пятый", feats="Case=Loc|NumType=Ord"), "numeral"),
        (changed(CAT, 5, form="двух", lemma="два", upos="NUM"), "numeral"),
        (changed(CAT, 5, form="5", lemma="5", upos="NUM"), "numeral"),
        (changed(CAT, 6, form="миллионе", lemma="миллион"), "numeral"),
        (changed(CAT, 5, form="обоих", lemma="оба", upos="NUM"), None),
        (changed(CAT, 6, form="апреле", lemma="апрель"), "date"),
        (changed(CAT, 5, form="1917", lemma="1917", upos="ADJ"), "date"),
        (changed(CAT, 5, form="русском", lemma="русский"), "sensitive"),
        (changed(CAT, 6, form="президенте", lemma="президент"), "sensitive"),
        (changed(CAT, 6, form="говне", lemma="говно"), "obscene"),
        (changed(CAT, 5, form="прикольном", lemma="прикольный"), "colloquial"),
        (changed(CAT, 2, upos="INTJ"), "interjection"),
        (changed(CAT, 2, form="😀", lemma="😀", upos="SYM"), "interjection"),
        (changed(CAT, 6, form="ТВ", lemma="ТВ"), "abbreviation"),
        (changed(CAT, 6, feats="Abbr=Yes"), "abbreviation"),
        (changed(CAT, 2, form="—", lemma="—", upos="PUNCT"), "signs"),
        (changed(CAT, 6, form="site.ru", lemma="site.ru"), "signs"),
        (changed(CAT, 7, form="?", lemma="?"), "not_statement"),
        (changed(CAT, 7, form="…", lemma="…"), "no_full_stop"),
        (changed(CAT, 1, form="кошка"), "no_capital"),
        (changed(CAT, 3, form="сидеть", feats="VerbForm=Inf"), "no_predicate"),
        (changed(CAT, 1, deprel="obl"), "no_subject"),
        (changed(CAT, 3, form="сидел", feats="Gender=Masc|Number=Sing|Tense=Past|VerbForm=Fin")
         .replace("3 nsubj", "3 obl"), "no_subject"),
        (changed(CAT, 3, form="оставляет", lemma="оставлять"), "no_object"),
        (changed(CAT, 6, deprel="orphan"), "elliptic"),
        (changed(CAT, 1, form="Но", lemma="но", upos="CCONJ", deprel="cc"), "begins_dependent"),
        (changed(CAT, 2, form="Поэтому", lemma="поэтому").replace("Кошка кошка", "Поэтому поэтому"), "context"),
        (changed(CAT, 5, form="этом", lemma="этот", upos="DET", deprel="det"), "context"),
        (changed(CAT, 2, head="6").replace("6 amod", "1 amod"), "word_order"),
        (changed(CAT, 5, feats="Case=Dat|Number=Sing"), "agreement"),
        (changed(COMPOUND, 2, form="—", lemma="—"), "signs"),
        (changed(COMPOUND, 2, form="и", lemma="и", upos="CCONJ"), "comma"),
    ],
)  # fmt: skip
def test_each_reason(text: str, code: str | None) -> None:
    codes = found(text)
    assert (code in codes) if code else not codes, codes


def test_speech_verbs_beside_the_clause_are_direct_speech() -> None:
    text = changed(COMPOUND, 4, lemma="сказать", form="сказали", deprel="parataxis")
    assert {"direct_speech", "loose"} <= found(text)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (changed(COMPOUND, 4, deprel="parataxis"), "loose"),
        (changed(COMPOUND, 9, lemma="ребенок", form="ребенка"), "repeated"),
        (changed(CAT, 2, form="хуже", lemma="плохой", feats="Degree=Cmp"), "suppletive"),
        (changed(CAT, 5, deprel="fixed", head="4"), "set_phrase"),
    ],
)
def test_a_doubt_does_not_leave_out(text: str, code: str) -> None:
    candidate = the_candidate(text)
    assert [doubt for doubt, _detail in candidate.doubts] == [code] and code in DOUBTS


def test_verse_is_left_out_by_its_genre() -> None:
    assert found(CAT, genre="poetry") == {"verse"} and not found(CAT, genre="fiction")


def test_every_reason_is_given_at_once() -> None:
    text = changed(changed(CAT, 6, form="президенте", lemma="президент"), 5, form="7", lemma="7", upos="NUM")
    assert {"sensitive", "numeral"} <= found(changed(text, 7, form="!", lemma="!")) >= {"not_statement"}


def test_every_code_is_explained() -> None:
    used = set()
    for check in CHECKS:
        names = [name for name in check.__code__.co_consts if isinstance(name, str)]
        used |= {name for name in names if name in REASONS}
    assert set(REASONS) >= DOUBTS and len(used) > 20
    assert reasons_text([("rare", "чижик"), ("verse", "")]) == "rare word: чижик; verse"


def test_the_threshold_and_the_list_are_the_persons() -> None:
    rare = changed(CAT, 6, form="ликовании", lemma="ликование")
    assert not found(rare) and "rare" in found(rare, Parameters(language="ru", min_zipf=4.0))
    assert not found(changed(CAT, 6, form="дормезе", lemma="дормез"), Parameters(language="ru", min_zipf=0))
    assert found(CAT, Parameters(language="ru", sensitive="кошк*  # cats\n")) == {"sensitive"}
    assert not found(changed(CAT, 6, form="президенте", lemma="президент"), Parameters(language="ru", sensitive=""))


def test_a_word_list() -> None:
    words = WordList(["# all", "Полит*", "ёлка", "*", "", "a.b*"])
    assert words.has("политика") and words.has("Елка") and not words.has("елки") and not words.has("всё")
    assert words.has("a.bc") and not words.has("axbc")
    for code in LANGUAGES:
        assert word_list_text("sensitive", code).count("\n# ") >= 6


@pytest.mark.parametrize(
    ("form", "lemma", "given_word"),
    [
        ("aamupalaa", "aamu#pala", "aamupala"),
        ("aamu-unisille", "aamu#uninen", "aamu-uninen"),
        ("keskustelee", "keskustella|keskustelu", "keskustella"),
        ("Helsinkiin", "Helsinki", "helsinki"),
    ],
)
def test_given_words_in_finnish(form: str, lemma: str, given_word: str) -> None:
    sentence = one(f"Se se PRON _ 2 nsubj\n{form} {lemma} VERB _ 0 root", "fi")
    assert given_lemma(sentence.words[1], LANGUAGES["fi"]) == given_word


GERMAN = """
Der der DET Case=Nom|PronType=Art 3 det
alte alt ADJ Case=Nom 3 amod
Mann Mann NOUN Case=Nom|Number=Sing 4 nsubj
kauft kaufen VERB Mood=Ind|Number=Sing|Person=3|VerbForm=Fin 0 root
ein ein DET Case=Acc|NumType=Card|PronType=Art 7 det
neues neu ADJ Case=Acc 7 amod
Buch Buch NOUN Case=Acc|Number=Sing 4 obj
. . PUNCT _ 4 punct
"""


def test_german_nouns_keep_their_capitals_and_sentences_theirs() -> None:
    book = the_candidate(GERMAN, "de")
    assert " ".join(book.given) == "der alt Mann kaufen ein neu Buch ."
    assert book.original == "Der alte Mann kauft ein neues Buch."


def test_a_contraction_has_more_lemmas_than_words() -> None:
    data = conllu(GERMAN).replace(b"1\tDer", b"1-2\tDer alte\t_\t_\t_\t_\t_\t_\t_\t_\n1\tDer")
    _candidate, reasons = candidate_of(read(data, "de")[0], Parameters(language="de").screen())
    assert "lemma_count" in {code for code, _detail in reasons}


def test_another_language_says_what_is_not_checked() -> None:
    assert language_gaps("ru") == language_gaps("de") == language_gaps("fi") == []
    assert "sensitive" in language_gaps("es") and "rare" not in language_gaps("es")
    assert "rare" in language_gaps("eu") and the_candidate(GERMAN, "eu").given[0] == "der"


def scanned(parameters: Parameters, data: bytes) -> Scan:
    scan = Scan(parameters)
    for sentence in sentences(io.BytesIO(data), parameters.language):
        scan.look(sentence)
    return scan


def test_duplicates_are_left_out_by_their_lemmas() -> None:
    again = changed(CAT, 3, form="сидела", feats="Gender=Fem|Number=Sing|Tense=Past|VerbForm=Fin")
    scan = scanned(RU, conllu(CAT, CAT, again, COMPOUND))
    assert scan.passed == {0: 1, 1: 1} and scan.left_out == {"duplicate": 2} and scan.sentences == 4


def test_the_same_seed_gives_the_same_bytes_and_another_one_others() -> None:
    def made(seed: int, data: bytes) -> bytes:
        parameters = Parameters(language="ru", seed=seed)
        tasks = chosen(scanned(parameters, data).candidates(), parameters)
        return stimuli_csv(task_rows(tasks, parameters, licence="CC0"))

    data = bands()
    turned = b"\n\n".join(reversed(data.strip().split(b"\n\n"))) + b"\n\n"
    assert made(1, data) == made(1, data) != made(2, data)
    assert made(1, turned) == made(1, data)  # the place in the file does not matter
    rows = read_stimuli(made(1, data))
    assert [row.complexity for row in rows] == ["easy"] * 4 + ["medium"] * 6 + ["hard"] * 8
    assert [row.shuffled for row in rows].count(True) == 7 and not any(row.shuffled for row in rows[:4])
    assert rows[0].source.endswith("; CC0") and refusal_below(rows) == 3


def test_ranking() -> None:
    doubtful = changed(COMPOUND, 4, deprel="parataxis")
    plain = changed(changed(COMPOUND, 4, deprel="amod"), 3, feats="Case=Nom")
    scan = scanned(RU, conllu(doubtful, plain, COMPOUND.replace("большую большой", "новую новый")))
    texts = [candidate.text for candidate in scan.candidates()[1]]
    assert "новую" in texts[0]  # a compound sentence without a doubt
    assert len(texts) <= 3


@settings(deadline=None, max_examples=300)
@given(st.lists(st.sampled_from(["а", "б", "в", "г-д", ",", "."]), min_size=2, max_size=14), st.integers(0, 2**31 - 1))
def test_a_shuffled_task_never_keeps_the_order(tokens: list[str], seed: int) -> None:
    words = [token for token in tokens if word_tokens(token)]
    if len(set(words)) < 2:
        with pytest.raises((ValueError, IndexError)):
            shuffled_tokens(tokens, seed=seed, key="k")
        return
    order = shuffled_tokens(tokens, seed=seed, key="k")
    assert sorted(order) == sorted(tokens)
    assert [token for token in order if word_tokens(token)] != words
    assert order == shuffled_tokens(tokens, seed=seed, key="k")


def test_words_that_are_all_the_same_are_no_task() -> None:
    text = "\n".join(["Да да PART _ 0 root"] + ["да да PART _ 1 discourse"] * 3 + [". . PUNCT _ 1 punct"])
    candidate, _reasons = candidate_of(one(text), RU.screen())
    assert candidate is None


def test_unshuffled_signs_stand_in_their_place() -> None:
    children = the_candidate(COMPOUND)
    plain = given_words(children, Slot(1, 1, False), 1)
    assert plain == "ребенок , который играть в двор увидеть большой собака ."
    assert sorted(given_words(children, Slot(1, 1, True), 1).split()) == sorted(plain.split())


@pytest.mark.parametrize(
    ("counts", "shares", "expected"),
    [
        ((4, 6, 8), (0, 0.5, 0.5), (0, 3, 4)),
        ((5, 5, 5), (0.5, 1, 0.1), (3, 5, 1)),
        ((0, 1, 3), (1, 1, 1 / 3), (0, 1, 1)),
    ],
)
def test_shares(counts: tuple[int, ...], shares: tuple[float, ...], expected: tuple[int, ...]) -> None:
    slots = slots_of(Parameters(language="ru", counts=counts, shuffled=shares))
    assert [slot.position for slot in slots] == list(range(1, sum(counts) + 1))
    assert tuple(sum(slot.shuffled for slot in slots if slot.band == band) for band in range(3)) == expected


def test_parameters_are_written_as_people_write_them() -> None:
    assert bands_of("4-6, 7–9,10-12") == ((4, 6), (7, 9), (10, 12))
    assert counts_of(" 4, 6,8") == (4, 6, 8) and shares_of("0, .5, 1/2") == (0.0, 0.5, 0.5)
    parameters = Parameters(language="fi", seed=7, sensitive="x", min_zipf=2)
    assert Parameters.from_json(parameters.as_json()) == parameters


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: bands_of("4-6,x"), "bands must be written"),
        (lambda: counts_of("4,6,-8"), "counts must be written"),
        (lambda: shares_of("0,1/0,1"), "shuffled must be written"),
        (lambda: Parameters("ru", counts=(1, 2)), "counts must be three"),
        (lambda: Parameters("ru", counts=(0, 0, 0)), "not all 0"),
        (lambda: Parameters("ru", counts=(1, 1, 101)), "from 0 to 100"),
        (lambda: Parameters("ru", shuffled=(0, 1, 1.1)), "shares from 0 to 1"),
        (lambda: Parameters("ru", bands=((4, 6), (6, 9), (10, 12))), "not overlap"),
        (lambda: Parameters("ru", bands=((1, 6), (7, 9), (10, 12))), "not overlap"),
        (lambda: Parameters("ru", bands=((4, 6), (7, 9), (10, 99))), "2 to 40"),
        (lambda: Parameters("ru", seed=-1), "seed must"),
        (lambda: Parameters("ru", min_zipf=float("nan")), "min_zipf must"),
        (lambda: Parameters("русский"), "language must"),
    ],
)
def test_parameters_that_cannot_be(wrong, message: str) -> None:
    with pytest.raises(ParametersError, match=message):
        wrong()


def test_a_source_is_one_line_that_fits() -> None:
    assert source_of("UD", "s1", "") == "UD; s1"
    assert len(source_of("x" * 300, "y" * 300, "z" * 300)) <= 200
