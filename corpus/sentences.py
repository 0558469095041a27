"""What a sentence of a treebank consists of: its words as given words, its predicates and clauses."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from corpus.languages import LANGUAGES, Language, WordList, folded
from corpus.tokens import word_tokens
from corpus.treebank import Sentence, Word

Found = Iterator[tuple[str, str]]
CLAUSE_LINKS = frozenset({"ccomp", "advcl", "acl:relcl", "parataxis", "csubj"})
SUBJECTS = ("nsubj", "csubj", "expl")
PREDICATIVES = frozenset(word for language in LANGUAGES.values() for word in language.predicatives)


@dataclass(frozen=True)
class Screen:
    """What sentences are looked at with. `bands` are pairs (least, most) of word tokens."""

    language: Language
    bands: tuple[tuple[int, int], ...]
    min_zipf: float
    sensitive: WordList

    def band_of(self, sentence: Sentence) -> int | None:
        length = len(word_tokens(sentence.text))
        return next((place for place, (least, most) in enumerate(self.bands) if least <= length <= most), None)


def given_lemma(word: Word, language: Language) -> str:
    """The lemma as a given word: compound marks out, the first of several variants, the language's own capitals.

    A hyphen that the form has where the lemma has a compound mark is kept: aamu#uninen of aamu-unisille.
    """
    lemma = word.lemma or ""
    if len(lemma) > 1:
        variants = [variant for variant in lemma.split("|") if variant]
        lemma = next((one for one in variants if one == word.form.lower()), variants[0] if variants else lemma)
    if "#" in lemma.strip("#"):
        lemma = _unmarked(lemma, word.form)
    if language.code != "de" or word.upos not in ("NOUN", "PROPN"):
        return lemma.lower()
    return lemma[:1].upper() + lemma[1:]


def _unmarked(lemma: str, form: str) -> str:
    parts, heads, built = lemma.split("#"), form.split("-"), ""
    for part in parts[:-1]:
        built += part
        if len(heads) > 1 and folded(built).endswith(folded(heads[0])):
            built, heads = built + "-", heads[1:]
    return built + parts[-1]


def words_of(sentence: Sentence) -> list[Word]:
    return [word for word in sentence.words if not is_sign(word)]


def is_sign(word: Word) -> bool:
    return not any(char.isalnum() for char in word.form)


def children(sentence: Sentence, number: int) -> list[Word]:
    return [word for word in sentence.words if word.head == number]


def root_of(sentence: Sentence) -> Word:
    return next((word for word in sentence.words if word.head == 0), sentence.words[0])


def is_finite(sentence: Sentence, word: Word) -> bool:
    """Whether a word, or an auxiliary or copula of it, is a finite verb."""
    return word.feats.get("VerbForm") == "Fin" or any(
        child.feats.get("VerbForm") == "Fin"
        for child in children(sentence, word.number)
        if child.deprel.split(":")[0] in ("aux", "cop")
    )


def has_subject(sentence: Sentence, word: Word) -> bool:
    return any(child.deprel.split(":")[0] in SUBJECTS for child in children(sentence, word.number))


def is_predicate(sentence: Sentence, word: Word) -> bool:
    if is_finite(sentence, word):
        return True
    if (word.lemma or "").lower() in PREDICATIVES:
        return True
    return word.feats.get("Variant") == "Short" and has_subject(sentence, word)


def is_compound(sentence: Sentence) -> bool:
    """Whether the sentence has more clauses than one, by its dependency relations."""
    for word in sentence.words:
        if word.deprel in CLAUSE_LINKS and is_predicate(sentence, word):
            return True
        if word.deprel == "conj" and is_finite(sentence, word) and is_finite(sentence, sentence.words[word.head - 1]):
            return True
    return False


def printed(tokens: list[str]) -> str:
    """Forms put together as a sentence, commas and stops at the word before them."""
    return re.sub(r" (?=[,.])", "", " ".join(tokens))
