"""Which stimulus of the instrument a record speaks of: by its number, by its given words, by a form's question."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from corpus.tables.faults import FaultError

_NUMBERING = re.compile(r"^\s*\d{1,3}\s*[.)]\s*")


@dataclass(frozen=True, slots=True)
class Item:
    """A stimulus as importers know it."""

    number: int
    text: str
    is_practice: bool = False
    original: str = ""


def words_key(text: str) -> str:
    """The given words without capitals and without spaces, which tools add, drop and double around punctuation."""
    return "".join(unicodedata.normalize("NFC", text).split()).casefold()


class Items:
    def __init__(self, items: Sequence[Item], codes: dict[str, int] | None = None) -> None:
        self._by_number = {item.number: item for item in items}
        self._by_words: dict[str, list[Item]] = {}
        for item in items:
            self._by_words.setdefault(words_key(item.text), []).append(item)
        self._codes = codes or {}
        unknown = sorted(set(self._codes.values()) - set(self._by_number))
        if unknown:
            raise FaultError("unknown_items", detail=", ".join(map(str, unknown)))

    def numbered(self, number: int) -> Item | None:
        return self._by_number.get(number)

    def coded(self, text: str) -> Item | None:
        """By the number or code in an item column."""
        text = text.strip()
        if text in self._codes:
            return self._by_number.get(self._codes[text])
        number = re.fullmatch(r"(\d{1,4})(\.0)?", text)
        return self._by_number.get(int(number[1])) if number else None

    def worded(self, text: str) -> Item | None:
        """By the given words. Words that two stimuli share decide nothing."""
        found = self._by_words.get(words_key(text), [])
        return found[0] if len(found) == 1 else None

    def asked(self, question: str) -> Item | None:
        """By a form's question, which holds the given words, perhaps numbered or with a request before them."""
        exact = self.worded(question) or self.worded(_NUMBERING.sub("", question))
        if exact:
            return exact
        key = words_key(question)
        within = [words for words in self._by_words if len(words) >= 8 and words in key]
        longest = max(within, key=len, default="")
        if any(words not in longest for words in within):
            return None  # a question that holds the words of two stimuli
        found = self._by_words.get(longest, [])
        return found[0] if len(found) == 1 else None
