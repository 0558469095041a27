"""Words of an answer: what is counted, and what is too little to be an answer."""

import re
import unicodedata
from functools import lru_cache

HYPHENS = "\u002d\u2010\u2011"
"""Hyphen-minus, hyphen, non-breaking hyphen: the only signs that join two runs into one word."""

_WORD = re.compile(rf"[^\W_]+(?:[{HYPHENS}][^\W_]+)*")


# Latin, Cyrillic and the usual signs: no letter of them is a mark or a format character, and no look is needed.
_PLAIN = re.compile("[\x00-\xac\xae-\u02ff\u0370-\u0482\u048a-\u052f\u2010-\u2027\u2030-\u205e]*")


def _is_dropped(char: str) -> bool:
    """Combining marks (stress) and invisible format characters (soft hyphen, BOM) are no part of a word."""
    category = unicodedata.category(char)
    return category[0] == "M" or category == "Cf"


def word_tokens(text: str) -> list[str]:
    """The word tokens of a text, in its order and its case.

    The text is brought to NFC; combining marks and format characters are dropped. A token is a run of
    letters and digits; U+002D, U+2010 and U+2011 join two runs when nothing stands between. All else
    separates, the en and em dash included, and punctuation is not counted. Source: DESIGN, "Words"; the
    count is the paper's token length.
    """
    if text.isascii():
        return _WORD.findall(text)
    composed = unicodedata.normalize("NFC", text)
    if _PLAIN.fullmatch(composed):
        return _WORD.findall(composed)
    return _WORD.findall("".join(char for char in composed if not _is_dropped(char)))


def is_refusal(text: str, below: int = 4) -> bool:
    """Whether a text has fewer than `below` word tokens: by the paper's rule a refusal, whatever it says."""
    if below > 0 and _enough(below).match(text):
        return False
    return len(word_tokens(text)) < below


@lru_cache
def _enough(words: int) -> re.Pattern[str]:
    """A beginning with that many words, of letters that no mark or format character changes: most texts have it."""
    word = "[0-9A-Za-z\u0410-\u044f\u0401\u0451]+"
    return re.compile(f"(?:{word}[ ,.:;!?]+){{{words - 1}}}[0-9A-Za-z\u0410-\u044f\u0401\u0451]")
