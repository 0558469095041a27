"""Every reason why a sentence of a treebank is not proposed as a task. Each check yields (code, word concerned)."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from corpus.languages import (
    ARCHAIC,
    COLLOQUIAL,
    Language,
    WordList,
    commonness,
    folded,
    is_known,
    is_name,
    is_transitive,
    marked,
    other_lemma,
    word_list,
)
from corpus.tokens import HYPHENS, word_tokens
from corpus.treebank import SCRIPTS, Sentence, Word, script_of

Found = Iterator[tuple[str, str]]

CLAUSE_LINKS = frozenset({"ccomp", "advcl", "acl:relcl", "parataxis", "csubj"})
SUBJECTS = ("nsubj", "csubj", "expl")
BROKEN = frozenset({"orphan", "dislocated", "reparandum", "list", "goeswith", "dep"})
MANY = 3
"""Conjuncts of one head: a list of four things can be put in any order, so its words say little about grammar."""
QUOTES = frozenset("\"«»“”„‟‘’‚‹›'`")
DASHES = frozenset("-–—―−")
URL = re.compile(r"https?:|www\.|@|#|\w\.(?:ru|com|org|de|fi|рф)\b", re.IGNORECASE)


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


def reasons(sentence: Sentence, screen: Screen) -> list[tuple[str, str]]:
    """All that speaks against a sentence, in the order of the checks; empty: it can be proposed."""
    found: dict[tuple[str, str], None] = {}
    for check in CHECKS:
        found.update(dict.fromkeys(check(sentence, screen)))
    return list(found)


def is_compound(sentence: Sentence) -> bool:
    """Whether the sentence has more clauses than one, by its dependency relations."""
    for word in sentence.words:
        if word.deprel in CLAUSE_LINKS and _is_predicate(sentence, word):
            return True
        if word.deprel == "conj" and _is_finite(sentence, word) and _is_finite(sentence, sentence.words[word.head - 1]):
            return True
    return False


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


def _spelt(sentence: Sentence) -> list[Word]:
    return [word for word in sentence.words if not _is_sign(word)]


def _is_sign(word: Word) -> bool:
    return not any(char.isalnum() for char in word.form)


def _children(sentence: Sentence, number: int) -> list[Word]:
    return [word for word in sentence.words if word.head == number]


def _is_finite(sentence: Sentence, word: Word) -> bool:
    """Whether a word, or an auxiliary or copula of it, is a finite verb."""
    return word.feats.get("VerbForm") == "Fin" or any(
        child.feats.get("VerbForm") == "Fin"
        for child in _children(sentence, word.number)
        if child.deprel.split(":")[0] in ("aux", "cop")
    )


def _has_subject(sentence: Sentence, word: Word) -> bool:
    return any(child.deprel.split(":")[0] in SUBJECTS for child in _children(sentence, word.number))


_RU_PREDICATIVES = frozenset("нет можно нужно надо нельзя необходимо возможно невозможно следует жаль пора".split())


def _is_predicate(sentence: Sentence, word: Word) -> bool:
    if _is_finite(sentence, word):
        return True
    if (word.lemma or "").lower() in _RU_PREDICATIVES:
        return True
    return word.feats.get("Variant") == "Short" and _has_subject(sentence, word)


def _root(sentence: Sentence) -> Word:
    return next((word for word in sentence.words if word.head == 0), sentence.words[0])


def length(sentence: Sentence, screen: Screen) -> Found:
    if screen.band_of(sentence) is None:
        yield "length", str(len(word_tokens(sentence.text)))


def lemmas(sentence: Sentence, screen: Screen) -> Found:
    spelt = _spelt(sentence)
    for word in sentence.words:
        if word.lemma is None and not _is_sign(word):
            yield "lemma_missing", word.form
    given = [given_lemma(word, screen.language) for word in spelt]
    words = word_tokens(sentence.text)
    if sentence.joined or len(words) != len(spelt) or any(len(word_tokens(lemma)) != 1 for lemma in given):
        yield "lemma_count", f"{sum(len(word_tokens(lemma)) for lemma in given)} ≠ {len(words)}"
    for word, lemma in zip(spelt, given, strict=True):
        if word.feats.get("Degree") == "Cmp" and folded(lemma)[:3] != folded(word.form)[:3]:
            yield "suppletive", f"{word.form}: {lemma}"
        if word.lemma is None or word.feats.get("Degree") in ("Cmp", "Sup"):
            continue  # better is a form of good in one treebank and a word of its own in another
        other = other_lemma(word.form, lemma, word.upos, screen.language.code)
        if other:
            yield "lemma_doubtful", f"{word.form}: {lemma} / {other}"


def words_alone(sentence: Sentence, screen: Screen) -> Found:
    """What can be said of each word by itself."""
    code = screen.language.code
    for word in _spelt(sentence):
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
        if word.upos == "X" or word.feats.get("Foreign") == "Yes" or word.deprel == "flat:foreign":
            yield "foreign", word.form
        elif script and script_of(word.form) - {script}:
            yield "foreign", word.form


def names(sentence: Sentence, screen: Screen) -> Found:
    spelt = _spelt(sentence)
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
    for word in _spelt(sentence):
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
    spelt = _spelt(sentence)
    for word in spelt:
        short = len(word.form) == 1 and word.upos in ("NOUN", "PROPN", "X", "ADJ", "VERB")
        capitals = len(word.form) > 1 and word.form.isupper()
        vowels = re.search(r"[аеёиоуыэюяaeiouyäöüàéèæøå]", word.form.lower()) or word.upos in ("ADP", "PART")
        if word.feats.get("Abbr") == "Yes" or "." in word.form or short or capitals or not vowels:
            yield "abbreviation", word.form


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
        if word.upos in ("INTJ", "SYM") or (_is_sign(word) and word.upos != "PUNCT") or link == "discourse":
            yield "interjection", word.form
        if _is_sign(word) and word.form not in (",", ".") and word.form not in QUOTES:
            yield "signs", word.form
    if URL.search(text):
        yield "signs", "URL @ #"


def spelling(sentence: Sentence, screen: Screen) -> Found:
    if printed([word.form for word in sentence.words]) != sentence.text:
        yield "spacing", ""
    if not sentence.text[:1].isupper():
        yield "no_capital", sentence.text.split(" ")[0][:30]
    body = sentence.text.rstrip("\"»“)”")
    if body.endswith(("?", "!")) or "?" in body or "!" in body:
        yield "not_statement", ""
    elif not body.endswith(".") or body.endswith("..") or "." in body[:-1]:
        yield "no_full_stop", ""


def printed(tokens: list[str]) -> str:
    """Forms put together as a sentence, commas and stops at the word before them."""
    return re.sub(r" (?=[,.])", "", " ".join(tokens))


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


def predicate(sentence: Sentence, screen: Screen) -> Found:
    root = _root(sentence)
    if not _is_predicate(sentence, root):
        yield "no_predicate", root.form
    elif not _has_subject(sentence, root):
        yield from _no_subject(sentence, root, screen)


_RU_ABSOLUTE = frozenset(
    "читать писать рисовать петь есть пить понимать понять слушать видеть знать ждать учить готовить играть помнить"
    " начинать начать кончить закончить продолжать забыть узнать смотреть думать решать решить молчать убирать".split()
)


def object_missing(sentence: Sentence, screen: Screen) -> Found:
    """A Russian transitive verb whose object only the context names: я оставляю на ночь."""
    root = _root(sentence)
    if screen.language.code != "ru" or root.upos != "VERB" or root.feats.get("Voice", "Act") != "Act":
        return
    if folded(root.lemma or "") in _RU_ABSOLUTE or not is_transitive(root.form, root.lemma or ""):
        return
    family = [root, *(word for word in _children(sentence, root.number) if word.deprel == "conj")]
    objects = ("obj", "ccomp", "xcomp", "csubj", "iobj", "obl:arg", "parataxis")
    if not any(child.deprel in objects for word in family for child in _children(sentence, word.number)):
        yield "no_object", root.form


def _no_subject(sentence: Sentence, root: Word, screen: Screen) -> Found:
    """A predicate whose subject is in the sentence before. Impersonal ones, and Finnish first persons, are whole."""
    code = screen.language.code
    verbs = [root, *(word for word in _children(sentence, root.number) if word.deprel[:3] in ("aux", "cop"))]
    finite = next((word for word in verbs if word.feats.get("VerbForm") == "Fin"), None)
    if code == "de":
        yield "no_subject", root.form
    if code != "ru" or finite is None or folded(root.lemma or "") in _RU_PREDICATIVES:
        return
    feats = finite.feats
    if feats.get("Person") == "1":
        yield "no_subject", root.form
    elif feats.get("Number") == "Plur":
        if feats.get("Tense") == "Past" or feats.get("Person") == "3":
            # Indefinite subjects (его применяют) are whole; who went or was born is known from before.
            if not any(word.deprel in ("obj", "ccomp", "csubj") for word in _children(sentence, root.number)):
                yield "no_subject", root.form
    elif feats.get("Gender") in ("Masc", "Fem") or feats.get("Person") == "3":
        if feats.get("Person") == "3" and _is_impersonal(sentence, root):
            return
        yield "no_subject", root.form
    elif feats.get("Gender") == "Neut" and not _is_impersonal(sentence, root):
        yield "no_subject", root.form


_RU_IMPERSONAL = frozenset(
    "хотеться казаться следовать стоить приходиться прийтись удаться удаваться нравиться понравиться пахнуть хватать"
    " хватить оказаться случиться остаться оставаться стать становиться нездоровиться темнеть светать моросить"
    " доводиться довестись требоваться потребоваться".split()
)


def _is_impersonal(sentence: Sentence, root: Word) -> bool:
    if folded(root.lemma or "") in _RU_IMPERSONAL or root.upos in ("ADV", "ADJ"):
        return True
    return any(word.deprel in ("csubj", "xcomp") for word in _children(sentence, root.number)) and any(
        word.feats.get("Case") == "Dat" for word in _children(sentence, root.number)
    )


def wholeness(sentence: Sentence, screen: Screen) -> Found:
    spelt = _spelt(sentence)
    for word in sentence.words:
        if word.deprel.split(":")[0] in BROKEN:
            yield "elliptic", word.form
    if not spelt:
        yield "elliptic", ""
        return
    for word in sentence.words:
        if word.deprel == "parataxis" and _is_finite(sentence, word):
            yield "loose", word.form
        if len([one for one in _children(sentence, word.number) if one.deprel == "conj"]) >= MANY:
            yield "enumeration", word.form
        if word.deprel == "fixed":
            head = sentence.words[word.head - 1]
            for one in (head, word):
                if folded(given_lemma(one, screen.language)) != folded(one.form):
                    yield "set_phrase", f"{head.form} {word.form}"
                    break
    if spelt[-1].upos in ("ADP", "CCONJ", "SCONJ"):
        yield "elliptic", spelt[-1].form
    first, root = spelt[0], _root(sentence)
    if first.upos == "CCONJ":
        yield "begins_dependent", first.form
    elif any(word.deprel == "mark" for word in _children(sentence, root.number)):
        yield "begins_dependent", first.form
    if sentence.genre in ("poetry", "verse"):
        yield "verse", ""


def context(sentence: Sentence, screen: Screen) -> Found:
    spelt = _spelt(sentence)
    if not spelt:
        return
    starts, first = screen.language.leaning_starts, spelt[0]
    if folded(first.form) in starts or folded(given_lemma(first, screen.language)) in starts:
        yield "context", first.form
    for word in spelt:
        points = folded(word.lemma or "") in screen.language.leaning and word.upos in ("DET", "PRON", "ADV")
        if points and not _is_completed(sentence, word):
            yield "context", word.form


def _is_completed(sentence: Sentence, word: Word) -> bool:
    """Whether what a demonstrative points to is said by a clause of the sentence itself: the one who, there where."""
    heads = {word.number, word.head} if word.deprel == "det" else {word.number}
    return any(one.head in heads and one.deprel.startswith(("acl", "advcl", "ccomp")) for one in sentence.words)


def order(sentence: Sentence, screen: Screen) -> Found:
    """Crossing dependencies, and in Russian an attribute behind its noun or a genitive before it: verse, mostly."""
    arcs = [(min(w.number, w.head), max(w.number, w.head)) for w in sentence.words if w.head and not _is_sign(w)]
    for left, right in arcs:
        if any(left < other_left < right < other_right for other_left, other_right in arcs):
            yield "word_order", ""
            break
    if screen.language.code != "ru":
        return
    root = _root(sentence)
    spelt = _spelt(sentence)
    place = spelt.index(root) if root in spelt else 0
    if root.upos == "VERB" and len(spelt) > 2:
        neighbour = spelt[place - 1] if place else spelt[1]
        late = place == len(spelt) - 1 and neighbour.upos == "NOUN" and neighbour.head == root.number
        early = not place and neighbour.upos == "PRON" and neighbour.deprel == "nsubj"
        if (late and not neighbour.deprel.startswith("nsubj")) or early:
            yield "word_order", root.form
    for word in sentence.words:
        behind = 0 < word.head < word.number
        bare = not [child for child in _children(sentence, word.number) if child.deprel not in ("punct",)]
        if behind and bare and word.deprel in ("amod", "det") and word.upos in ("ADJ", "DET", "VERB"):
            if sentence.words[word.head - 1].upos == "NOUN":
                yield "word_order", word.form
        elif not behind and word.deprel == "nmod" and word.feats.get("Case") == "Gen" and word.upos == "NOUN":
            yield "word_order", word.form


def grammar(sentence: Sentence, screen: Screen) -> Found:
    """Faults that the annotation itself shows: attributes in another case than their noun, clauses without a comma."""
    if screen.language.code != "ru":
        return
    for word in sentence.words:
        if not word.head:
            continue
        head = sentence.words[word.head - 1]
        cases = word.feats.get("Case"), head.feats.get("Case")
        agrees = word.upos in ("ADJ", "DET") and word.deprel in ("amod", "det") and head.upos == "NOUN"
        if agrees and all(cases) and cases[0] != cases[1] and "NumType" not in word.feats:
            if not any(child.upos == "NUM" for child in _children(sentence, head.number)):
                yield "agreement", f"{word.form} {head.form}"
        clause = word.deprel in ("acl:relcl", "ccomp", "advcl") and _is_finite(sentence, word)
        between = sentence.words[min(word.number, word.head) : max(word.number, word.head) - 1]
        if clause and not any(one.form in (",", ":", "—", "–", "-") for one in between):
            yield "comma", word.form


def repetition(sentence: Sentence, screen: Screen) -> Found:
    seen: set[str] = set()
    for word in _spelt(sentence):
        lemma = given_lemma(word, screen.language)
        if word.upos in ("NOUN", "VERB", "ADJ", "ADV") and lemma in seen:
            yield "repeated", lemma
        seen.add(lemma)


CHECKS: list[Callable[[Sentence, Screen], Found]] = [
    length, lemmas, signs, address, foreign, words_alone, names, numbers, abbreviations,
    spelling, predicate, object_missing, wholeness, context, order, grammar, repetition,
]  # fmt: skip


def weakness(sentence: Sentence, screen: Screen) -> int:
    """How far a sentence that can be proposed is from the best ones: 0 is neutral and stands by itself."""
    points = 0
    spelt = _spelt(sentence)
    root = _root(sentence)
    subject = [word for word in _children(sentence, root.number) if word.deprel.startswith("nsubj")]
    points += 0 if subject else 1
    points += sum(word.upos == "PRON" for word in subject)
    points += sum(word.feats.get("Person") == "1" for word in spelt) > 0
    points += sum(word.feats.get("PronType") in ("Dem", "Prs") for word in spelt) // 2
    points += any(word.feats.get("PronType") == "Prs" and word.feats.get("Person") == "3" for word in spelt)
    points += sum(folded(word.form) in ("тоже", "также", "auch", "myös") for word in spelt)
    points += sum(word.upos == "PART" and folded(word.form) not in ("не", "бы", "ни", "zu", "nicht") for word in spelt)
    points += any(word.deprel.startswith(("appos", "parataxis")) for word in spelt)
    return points


__all__ = ["HYPHENS", "Screen", "given_lemma", "is_compound", "printed", "reasons", "weakness"]
