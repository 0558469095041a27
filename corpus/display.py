"""The form in which an answer is judged.

Raters, classifiers and model judges get exactly this, and identical answers are recognised by it. Habits of
typing that tell a model from a person (bold, typographic quotes and dashes, capitals, final stops, invisible
characters) are evened out. Words are not: letters, ё, stress marks, inner punctuation, numbering and misspelt
hyphens stay, and the word tokens are those of the stored text. The stored text is untouched.
"""

import re
import unicodedata
from collections.abc import Iterator

from corpus.tokens import HYPHENS

_DOUBLE_QUOTES = "«»“”„‟″‶〝〞＂‹›「」『』❝❞"
_SINGLE_QUOTES = "‘’‚‛′´＇❛❜"
_DASHES = "\u2012\u2013\u2014\u2015\u2212\u2e3a\u2e3b\ufe31\ufe32\ufe58\uff0d"
_UNIFIED = str.maketrans(
    dict.fromkeys(_DOUBLE_QUOTES, '"')
    | dict.fromkeys(_SINGLE_QUOTES, "'")
    | dict.fromkeys(_DASHES, "—")
    | dict.fromkeys(HYPHENS, "-")
    | {"…": "...", "‥": ".."}
)

_FENCE_OPENS = re.compile(r"(`{3,}|~{3,})[A-Za-z0-9+.-]*[ \t]*\n")
_MARKS = re.compile(r"[*_~`]+")
_APOSTROPHES = re.compile(r"'+")
_RUNS = re.compile(r"\*+|_+|~~+|`+|'+")
_LINE_MARKER = re.compile(r"(?:(?:[-—*+•‣◦▪●·>]|#{1,6}) )+(?=.)")
_TYPED_DASH = re.compile(r"--+|(?<!\S)-(?!\S)")
_DASH_RUN = re.compile(r"—(?: ?—)+")
_DASH_AFTER_WORD = re.compile(r"(?<=[\w.,:;!?)\]])—")
_DASH_BEFORE_WORD = re.compile(r"—(?=[\w(\[])")
_MINUS = re.compile(r"(?<!\S)\u2212(?=\d)")
_ANY_MARK = re.compile(r"[*_~`\"']")

_PASSES = 16
"""Wrappings inside each other that are taken off one by one; people and models write two or three."""


def display_text(text: str, *, lower_case: bool) -> str:
    """The text as judges see it; `lower_case` is the instrument's.

    In order: NFC, with format characters out and control characters as spaces; a code fence around the
    whole; white space to one space; bold, italics, code and strike-through around words; quotation marks to
    `"` (an apostrophe to `'`), the ellipsis character to three dots; dashes to ` — `, also a hyphen that
    stands alone or is doubled, while a hyphen next to a word stays one; bullet, heading or quotation signs
    in front; a pair of quotation marks around the whole; the final full stop, but not an ellipsis. This
    repeats until nothing changes, so the display of a display is itself. Source: DESIGN, "Display text".
    """
    shown = _unfenced(_readable(text))
    for _ in range(_PASSES):
        before = shown
        shown = _evened(shown, lower_case=lower_case)
        if shown == before:
            return shown
    # Nobody wraps an answer so deep in earnest: without marks and quotes it settles.
    return display_text(_ANY_MARK.sub(" ", shown), lower_case=lower_case)


def _readable(text: str) -> str:
    """NFC without what cannot be seen; a control character or lone surrogate parts words like a space."""
    if text.isascii() and text.isprintable():
        return text
    kept = (_visible(char) for char in unicodedata.normalize("NFC", text))
    return unicodedata.normalize("NFC", "".join(kept))


def _visible(char: str) -> str:
    category = unicodedata.category(char)
    if category == "Cf" or "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef":
        return ""
    if char == "\u034f":  # combining grapheme joiner
        return ""
    return " " if category in {"Cc", "Cs"} and char != "\n" else char


def _unfenced(text: str) -> str:
    """Without a fence around the whole and the language it names; lines still matter here, and only here."""
    whole = text.strip()
    opening = _FENCE_OPENS.match(whole)
    if opening is None or not whole.endswith(opening[1]) or len(whole) < opening.end() + len(opening[1]):
        return text
    return whole[opening.end() : -len(opening[1])]


def _evened(text: str, *, lower_case: bool) -> str:
    """One pass over a text; the caller repeats it."""
    if lower_case:
        text = text.lower()
    text = _MINUS.sub("-", unicodedata.normalize("NFC", text)).translate(_UNIFIED)
    text = _unmarked(" ".join(text.split()))
    text = _spaced_dashes(_quoted(text.replace("`", "'")))
    marker = _LINE_MARKER.match(text.strip())
    text = text.strip()[marker.end() if marker else 0 :]
    return _without_stop(_unquoted(text)).strip()


def _is_wordish(char: str) -> bool:
    return char.isalnum() or char == "-" or unicodedata.category(char)[0] == "M"


def _pairs(text: str, clusters: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """Spans of equal runs of signs that open before a word and close after one, as Markdown's emphasis does.

    A cluster of signs between two words is neither (2*3, snake_case, д'Артаньян), so that taking signs away
    never joins words. Linear in the text, whatever it holds.
    """
    opened: dict[str, list[tuple[int, int]]] = {}
    for cluster in clusters.finditer(text):
        before = text[cluster.start() - 1] if cluster.start() else " "
        after = text[cluster.end()] if cluster.end() < len(text) else " "
        may_open = not _is_wordish(before) and not after.isspace()
        may_close = not _is_wordish(after) and not before.isspace()
        for run in _RUNS.finditer(text, cluster.start(), cluster.end()):
            if may_close and opened.get(run[0]):
                yield opened[run[0]].pop()
                yield run.span()
            elif may_open:
                opened.setdefault(run[0], []).append(run.span())


def _replaced(text: str, spans: list[tuple[int, int]], sign: str) -> str:
    """The text with each character of the spans replaced by `sign`."""
    parts, end = [], 0
    for start, stop in sorted(spans):
        parts += [text[end:start], sign * (stop - start)]
        end = stop
    return "".join([*parts, text[end:]])


def _unmarked(text: str) -> str:
    return _replaced(text, list(_pairs(text, _MARKS)), "")


def _quoted(text: str) -> str:
    """Single quotation marks that come in a pair are quotation marks; a lone one stays an apostrophe."""
    return _replaced(text, list(_pairs(text, _APOSTROPHES)), '"')


def _spaced_dashes(text: str) -> str:
    """A dash stands between spaces; typed without them it parts words all the same, and still does."""
    text = _DASH_RUN.sub("—", _TYPED_DASH.sub("—", text))
    return _DASH_BEFORE_WORD.sub("— ", _DASH_AFTER_WORD.sub(" —", text))


def _unquoted(text: str) -> str:
    """Without the quotation marks around the whole, if they are one pair: not for `"а" и "б"`.

    An inner mark opens after a space, a bracket, a dash or another opening mark; otherwise it closes.
    """
    last = len(text) - 1
    if last < 1 or text[0] != '"' or text[last] != '"':
        return text
    depth, opened_before = 1, True
    for place in range(1, last):
        if text[place] != '"':
            opened_before = False
            continue
        opens = (opened_before or text[place - 1] in " ([{—-") and not text[place + 1].isspace()
        depth += 1 if opens else -1
        opened_before = opens
        if depth == 0:
            return text
    return text[1:last] if depth == 1 else text


def _without_stop(text: str) -> str:
    """Without the full stop at the end; two dots or more are another sign."""
    while text.endswith((".", "。")) and not text.endswith(("..", ".。")):
        text = text[:-1].rstrip()
    return text
