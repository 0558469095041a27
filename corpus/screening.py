"""Every reason why a sentence of a treebank is not proposed as a task."""

import re
from collections.abc import Callable

from corpus import screening_clauses as in_clauses
from corpus import screening_words as in_words
from corpus.languages import folded
from corpus.sentences import Found, Screen, children, is_sign, printed, root_of, words_of
from corpus.tokens import word_tokens
from corpus.treebank import Sentence

DOUBTS = frozenset({"loose", "enumeration", "set_phrase", "suppletive", "repeated"})
"""Reasons that do not leave a sentence out: it is proposed only after those without, and the person sees the doubt."""
QUOTES = frozenset("\"«»“”„‟‘’‚‹›'`")
DASHES = frozenset("-–—―−")
URL = re.compile(r"https?:|www\.|@|#|\w\.(?:ru|com|org|de|fi|рф)\b", re.IGNORECASE)


def length(sentence: Sentence, screen: Screen) -> Found:
    if screen.band_of(sentence) is None:
        yield "length", str(len(word_tokens(sentence.text)))


def signs(sentence: Sentence, screen: Screen) -> Found:
    text = sentence.text
    if any(char in QUOTES for char in text):
        yield "direct_speech", ""
    elif text[:1] in DASHES:
        yield "direct_speech", text[:1]
    for word in sentence.words:
        link = word.deprel.split(":")[0]
        if link == "parataxis" and (word.lemma or "").lower() in screen.language.speech_verbs:
            yield "direct_speech", word.form
        if word.upos in ("INTJ", "SYM") or (is_sign(word) and word.upos != "PUNCT") or link == "discourse":
            yield "interjection", word.form
        if is_sign(word) and word.form not in (",", ".") and word.form not in QUOTES:
            yield "signs", word.form
    if URL.search(text):
        yield "signs", "URL @ #"


def spelling(sentence: Sentence, screen: Screen) -> Found:
    if printed([word.form for word in sentence.words]) != sentence.text:
        yield "spacing", ""
    if not sentence.text[:1].isupper():
        yield "no_capital", sentence.text.split(" ")[0][:30]
    body = sentence.text.rstrip('"»“)”')
    if body.endswith(("?", "!")) or "?" in body or "!" in body:
        yield "not_statement", ""
    elif not body.endswith(".") or body.endswith("..") or "." in body[:-1]:
        yield "no_full_stop", ""


CHECKS: list[Callable[[Sentence, Screen], Found]] = [
    length,
    in_words.lemmas,
    signs,
    in_words.address,
    in_words.foreign,
    in_words.words_alone,
    in_words.names,
    in_words.numbers,
    in_words.abbreviations,
    spelling,
    in_clauses.predicate,
    in_clauses.object_missing,
    in_clauses.wholeness,
    in_clauses.context,
    in_clauses.order,
    in_clauses.grammar,
    in_words.repetition,
]


def reasons(sentence: Sentence, screen: Screen) -> list[tuple[str, str]]:
    """All that speaks against a sentence, in the order of the checks; empty: it can be proposed."""
    found: dict[tuple[str, str], None] = {}
    for check in CHECKS:
        found.update(dict.fromkeys(check(sentence, screen)))
    return list(found)


def weakness(sentence: Sentence, screen: Screen) -> int:
    """How far a sentence that can be proposed is from the best ones: 0 is neutral and stands by itself."""
    spelt, root = words_of(sentence), root_of(sentence)
    subject = [word for word in children(sentence, root.number) if word.deprel.startswith("nsubj")]
    pronouns = [word for word in spelt if word.feats.get("PronType") == "Prs"]
    plain_particles = ("не", "бы", "ни", "zu", "nicht", "ei")
    points = 0 if subject else 2
    points += any(word.upos == "PRON" for word in subject)
    points += any(word.feats.get("Person") == "1" for word in spelt)
    points += any(word.feats.get("Person") == "3" and word not in subject for word in pronouns)
    points += sum(folded(word.form) in ("тоже", "также", "auch", "myös") for word in spelt)
    points += sum(word.upos == "PART" and folded(word.form) not in plain_particles for word in spelt)
    points += any(word.deprel.startswith(("appos", "parataxis")) for word in spelt)
    return points
