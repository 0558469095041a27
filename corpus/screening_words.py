"""What speaks against a sentence because of one of its words. Each check yields (code, word concerned)."""

import re
import unicodedata

from corpus.languages import ARCHAIC, COLLOQUIAL, commonness, folded, is_known, is_name, marked, other_lemma, word_list
from corpus.sentences import Found, Screen, given_lemma, is_sign, words_of
from corpus.tokens import word_tokens
from corpus.treebank import SCRIPTS, Sentence, Word, script_of


def lemmas(sentence: Sentence, screen: Screen) -> Found:
    spelt = words_of(sentence)
    for word in sentence.words:
        if word.lemma is None and not is_sign(word):
            yield "lemma_missing", word.form
    given = [given_lemma(word, screen.language) for word in spelt]
    words = word_tokens(sentence.text)
    if sentence.joined or len(words) != len(spelt) or any(len(word_tokens(lemma)) != 1 for lemma in given):
        yield "lemma_count", f"{sum(len(word_tokens(lemma)) for lemma in given)} ≠ {len(words)}"
    for word, lemma in zip(spelt, given, strict=True):
        if word.feats.get("Degree") in ("Cmp", "Sup") and _stem(lemma) != _stem(word.form):
            yield "suppletive", f"{word.form}: {lemma}"
        if word.lemma is None or word.feats.get("Degree") in ("Cmp", "Sup"):
            continue  # better is a form of good in one treebank and a word of its own in another
        other = other_lemma(word.form, lemma, word.upos, screen.language.code)
        if other:
            yield "lemma_doubtful", f"{word.form}: {lemma} / {other}"


def _stem(word: str) -> str:
    """The first two letters without their marks: länger begins like lang, besser not like gut."""
    return "".join(char for char in unicodedata.normalize("NFD", word.lower()) if not unicodedata.combining(char))[:2]


def words_alone(sentence: Sentence, screen: Screen) -> Found:
    """What can be said of each word by itself."""
    code = screen.language.code
    for word in words_of(sentence):
        lemma = given_lemma(word, screen.language)
        both = (lemma, word.form)
        if screen.sensitive.has(*both):
            yield "sensitive", lemma
        if word_list("obscene", code).has(*both):
            yield "obscene", lemma
        if (
            word.feats.get("Style") in ("Arch", "Rare")
            or word_list("archaic", code).has(lemma)
            or marked(word.form, lemma, ARCHAIC, code)
        ):
            yield "archaic", lemma
        if (
            word.feats.get("Style") in ("Coll", "Slng", "Vulg", "Vrnc")
            or folded(lemma) in screen.language.colloquial
            or marked(word.form, lemma, COLLOQUIAL, code)
        ):
            yield "colloquial", lemma
        if folded(lemma) in screen.language.dates:
            yield "date", lemma
        yield from _rare(word, lemma, screen)


def _rare(word: Word, lemma: str, screen: Screen) -> Found:
    code = screen.language.code
    if word.upos == "PROPN" or any(char.isdigit() for char in word.form):
        return
    if not is_known(word.form, code) and (code != "fi" or not _is_common(lemma, screen)):
        yield "unknown_word", word.form
    if word.upos in ("NOUN", "VERB", "ADJ", "ADV"):
        known = [commonness(one.lower(), code) for one in {lemma, word.form}]
        if "#" in (word.lemma or ""):
            parts = [commonness(part.lower(), code) for part in str(word.lemma).split("#") if len(part) > 1]
            known.append(min((part for part in parts if part is not None), default=None))
        measured = [one for one in known if one is not None]
        if measured and max(measured) < screen.min_zipf:
            yield "rare", lemma


def _is_common(lemma: str, screen: Screen) -> bool:
    """Finnish forms with possessive or emphatic endings stand in no dictionary; their lemmas do."""
    return (commonness(lemma.lower(), screen.language.code) or 0.0) >= screen.min_zipf


def foreign(sentence: Sentence, screen: Screen) -> Found:
    script = SCRIPTS.get(screen.language.code)
    for word in sentence.words:
        marked_so = word.upos == "X" or word.feats.get("Foreign") == "Yes" or word.deprel == "flat:foreign"
        if marked_so or (script and script_of(word.form) - {script}):
            yield "foreign", word.form


def names(sentence: Sentence, screen: Screen) -> Found:
    spelt = words_of(sentence)
    for word in spelt:
        capital = word.form[:1].isupper() and word is not spelt[0]
        if (
            word.upos == "PROPN"
            or "NameType" in word.feats
            or word.deprel in ("flat:name",)
            or (capital and screen.language.code in ("ru", "fi"))
            or (word is spelt[0] and is_name(word.form, screen.language.code))
        ):
            yield "name", word.form


def numbers(sentence: Sentence, screen: Screen) -> Found:
    for word in words_of(sentence):
        lemma = folded(word.lemma or word.form)
        if any(char.isdigit() for char in word.form) or re.fullmatch(r"[IVXLCDM]{2,}", word.form):
            yield "numeral", word.form
        elif lemma in screen.language.not_numerals:
            continue
        elif word.upos == "NUM" or word.feats.get("NumType") == "Ord" or lemma in screen.language.quantities:
            yield "numeral", word.form
        if re.fullmatch(r"(1[0-9]|20)\d\d", word.form):
            yield "date", word.form


def abbreviations(sentence: Sentence, screen: Screen) -> Found:
    spelt = words_of(sentence)
    for word in spelt:
        short = len(word.form) == 1 and word.upos in ("NOUN", "PROPN", "X", "ADJ", "VERB")
        capitals = len(word.form) > 1 and word.form.isupper()
        vowels = re.search(r"[аеёиоуыэюяaeiouyäöüàéèæøå]", word.form.lower()) or word.upos in ("ADP", "PART")
        if word.feats.get("Abbr") == "Yes" or "." in word.form or short or capitals or not vowels:
            yield "abbreviation", word.form


def address(sentence: Sentence, screen: Screen) -> Found:
    for word in sentence.words:
        second = word.feats.get("Person") == "2" or word.feats.get("Person[psor]") == "2"
        if (
            second
            or word.feats.get("Mood") == "Imp"
            or word.feats.get("Polite") == "Form"
            or word.deprel == "vocative"
            or folded(word.lemma or "") in screen.language.second_person
        ):
            yield "address", word.form


def repetition(sentence: Sentence, screen: Screen) -> Found:
    seen: set[str] = set()
    for word in words_of(sentence):
        lemma = given_lemma(word, screen.language)
        if word.upos in ("NOUN", "VERB", "ADJ", "ADV") and lemma in seen:
            yield "repeated", lemma
        seen.add(lemma)
