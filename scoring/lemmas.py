"""Lemmas and grammatical marks of single word forms: Russian by pymorphy3, other languages by simplemma."""

from functools import lru_cache

import simplemma

from corpus import languages
from corpus.languages import Parse
from corpus.tokens import HYPHENS

CACHE = 60_000
LONGEST = 80
"""A longer token has no lemma but itself: it is no word, and the dictionaries would take it apart for seconds."""

UNLIKELY = 0.05  # of the probability that pymorphy3 gives a reading

RUSSIAN = "ru"
_HYPHENS = str.maketrans(dict.fromkeys(HYPHENS, "-"))
_CLASSES = {
    "NOUN": "noun",
    "NPRO": "pronoun",
    "VERB": "verb",
    "INFN": "verb",
    "PRTF": "verb",
    "PRTS": "verb",
    "GRND": "verb",
    "ADJF": "adjective",
    "ADJS": "adjective",
    "COMP": "adjective",
    "ADVB": "adverb",
    "PRED": "adverb",
    "NUMR": "numeral",
}


def folded(word: str) -> str:
    """Small letters, ё as е, one hyphen: how words are compared."""
    return languages.folded(word).translate(_HYPHENS)


@lru_cache(CACHE)
def readings(form: str, language: str) -> tuple[Parse, ...]:
    """A form's morphological readings; only Russian has any."""
    return languages.parses(folded(form)) if language == RUSSIAN and len(form) <= LONGEST else ()


@lru_cache(CACHE)
def lemmas(form: str, language: str) -> frozenset[str]:
    """Every lemma that the form can have, folded, and the form itself: what stands as given fits as given.

    A language that neither dictionary knows has the form alone. In others than Russian the form is looked up as it
    stands, in small letters and with a capital, since a sentence may begin with it and German writes its nouns so.
    """
    own = folded(form)
    if len(form) > LONGEST:
        return frozenset({own})
    if language == RUSSIAN:
        return frozenset({own, *(folded(parse.lemma) for parse in readings(own, language))})
    if not _has_dictionary(language):
        return frozenset({own})
    written = {form, form.lower(), form.capitalize()}
    return frozenset({own, *(folded(simplemma.lemmatize(one, lang=language)) for one in written)})


@lru_cache(CACHE)
def word_classes(form: str, language: str) -> frozenset[str]:
    """The parts of speech that a Russian form may well be, participles among verbs; empty in other languages.

    Unlikely readings are left out: the dictionary has "и" as the name of a letter, too.
    """
    likely = [parse for parse in readings(form, language) if parse.score >= UNLIKELY]
    return frozenset(_CLASSES.get(parse.pos, "other") for parse in likely)


@lru_cache(1000)
def _has_dictionary(language: str) -> bool:
    try:
        simplemma.lemmatize("a", lang=language)
    except ValueError:
        return False
    return True
