"""Which characters the bytes of a text file are, without guessing where a guess would change what people wrote."""

import codecs
import re

from corpus.tables.faults import FaultError

ENCODINGS = {"utf-8": "UTF-8", "utf-16": "UTF-16", "cp1251": "Windows-1251", "cp1252": "Windows-1252"}
SAMPLE = 65_536
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Letters of two alphabets in one word: a Western text read as if it were Cyrillic.
_MIXED = re.compile(r"[A-Za-z][А-яЁёЂ-џҐґ]|[А-яЁёЂ-џҐґ][A-Za-z]")
_CYRILLIC = re.compile(r"[А-яЁё]")


def encoding_of(data: bytes, chosen: str | None = None) -> str:
    """The codec that reads all of `data`: utf-8, utf-8-sig, utf-16-le, utf-16-be, cp1251 or the chosen one.

    Raises FaultError `truncated`, `undecodable` or `nul`.
    """
    encoding = _encoding(data, chosen)
    try:
        text_check(data, encoding)
    except UnicodeDecodeError as error:
        code = "truncated" if error.end >= len(data) and encoding.startswith("utf") else "undecodable"
        raise FaultError(code, line_of(data, error.start), f"{encoding}: byte {error.start}") from error
    if not encoding.startswith("utf-16") and (place := data.find(b"\0")) >= 0:
        raise FaultError("nul", line_of(data, place))
    return encoding


def without_mark(data: bytes, encoding: str) -> tuple[int, str]:
    """How many bytes of a byte-order mark to skip, and the codec for what follows."""
    for mark, name in _MARKS:
        if name == encoding and data.startswith(mark):
            return len(mark), "utf-8" if name == "utf-8-sig" else name
    return 0, "utf-8" if encoding == "utf-8-sig" else encoding


def text_check(data: bytes, encoding: str) -> None:
    """Read everything once, a piece at a time. Raises UnicodeDecodeError with places in the whole file."""
    decoder = codecs.getincrementaldecoder(encoding)()
    for start in range(0, len(data), 1 << 20):
        held = len(decoder.getstate()[0])  # bytes of a character that the last piece cut in two
        piece = data[start : start + (1 << 20)]
        try:
            decoder.decode(piece, final=start + len(piece) >= len(data))
        except UnicodeDecodeError as error:
            offset = start - held
            raise UnicodeDecodeError(encoding, data, offset + error.start, offset + error.end, error.reason) from error


def line_of(data: bytes, place: int) -> int:
    return data.count(b"\n", 0, place) + 1


def _encoding(data: bytes, chosen: str | None) -> str:
    for mark, name in _MARKS:
        if data.startswith(mark) and (chosen is None or name.startswith(chosen)):
            return name
    if chosen == "utf-16":
        return _wide(data) or "utf-16-le"
    if chosen:
        return chosen
    if wide := _wide(data):
        return wide
    try:
        text_check(data, "utf-8")
    except UnicodeDecodeError as error:
        if not _is_broken_utf8(data) and _is_cyrillic(data):
            return "cp1251"
        if error.end >= len(data):
            raise FaultError("truncated", line_of(data, error.start)) from error
        raise FaultError("undecodable", line_of(data, error.start), f"byte {error.start}") from error
    return "utf-8"


def _wide(data: bytes) -> str | None:
    """UTF-16 without a mark: every other byte of its ASCII (separators, digits, line ends) is zero."""
    sample = data[:SAMPLE]
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    if odd > len(sample) // 20 and odd > 10 * even:
        return "utf-16-le"
    if even > len(sample) // 20 and even > 10 * odd:
        return "utf-16-be"
    return None


def _is_broken_utf8(data: bytes) -> bool:
    """Mostly right: a damaged or cut UTF-8 file, which another encoding would turn into nonsense."""
    text = data.decode("utf-8", errors="replace")
    bad = text.count("\ufffd")
    good = len(text) - bad - sum(map(text.count, map(chr, range(128))))
    return good > bad


def _is_cyrillic(data: bytes) -> bool:
    """Read as cp1251 it is Russian: Cyrillic words, small letters rather than capitals, no word in two alphabets."""
    try:
        text = data.decode("cp1251")
    except UnicodeDecodeError:
        return False
    letters = _CYRILLIC.findall(text)
    small = sum(letter.islower() for letter in letters)
    mixed = len(_MIXED.findall(text))
    return len(letters) > 0 and small * 2 > len(letters) and mixed * 20 <= len(letters)
