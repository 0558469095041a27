"""What the baseline sees of a text: its words' morphology, and its letters."""

import re
from collections.abc import Iterator
from functools import lru_cache

from corpus.languages import parses

TAGS, LETTERS = (1, 3), (1, 4)  # shortest and longest n-gram
# Words of these classes say more by themselves than by their tags.
_THEMSELVES = frozenset({"PREP", "CONJ", "PRCL", "NPRO", "ADVB", "PRED", ""})
_CASES = {"nomn", "gent", "datv", "accs", "ablt", "loct", "voct", "gen2", "acc2", "loc2"}
_FORMS = {"sing", "plur", "masc", "femn", "neut", "1per", "2per", "3per"}
_VERBS = {"past", "pres", "futr", "perf", "impf", "indc", "impr"}
_KEPT = _CASES | _FORMS | _VERBS
_PIECE = re.compile(r"[^\W_]+(?:-[^\W_]+)*|[^\w\s]")
LONGEST = 20_000  # characters; what follows changes nothing that a sentence could show


@lru_cache(60_000)
def _tag(word: str) -> str:
    """Part of speech and inflection of the likeliest reading by pymorphy3; a word of a closed class is itself."""
    first = parses(word)[0]
    return word if first.pos in _THEMSELVES else ",".join([first.pos, *sorted(first.marks & _KEPT)])


def tag_terms(text: str, *, language: str = "ru") -> Iterator[str]:
    """n-grams of tags with sentence edges and punctuation; of no language but Russian."""
    if language != "ru":
        return
    pieces = (piece.lower() for piece in _PIECE.findall(text[:LONGEST]))
    row = ["<", *(_tag(piece) if piece[0].isalnum() else piece for piece in pieces), ">"]
    for size in range(TAGS[0], TAGS[1] + 1):
        for start in range(len(row) - size + 1):
            yield " ".join(row[start : start + size])


def letter_terms(text: str) -> Iterator[str]:
    """n-grams of letters within words, edges as spaces."""
    for word in text[:LONGEST].lower().split():
        padded = f" {word} "
        for size in range(LETTERS[0], LETTERS[1] + 1):
            for start in range(len(padded) - size + 1):
                yield padded[start : start + size]
