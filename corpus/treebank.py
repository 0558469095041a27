"""Reading a treebank in CoNLL-U, sentence by sentence, so that its size does not matter."""

import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO, cast

from conllu.exceptions import ParseException
from conllu.parser import parse_token_and_metadata

COLUMNS = 10
MAX_LINE = 100_000
"""Bytes. A line of a real treebank has some hundreds; a file without line ends must not be read into memory whole."""
MAX_SENTENCE = 5_000
"""Lines of one sentence. Where blank lines are missing, the whole file would be one."""
LOOKED_AT = 2_000
"""Words after which it is first asked whether the file has lemmas and the language's script."""

SCRIPTS = {"ru": "CYRILLIC", "de": "LATIN", "fi": "LATIN"}
SCRIPT_NAMES = {"CYRILLIC": "Cyrillic", "LATIN": "Latin"}


@dataclass(frozen=True, slots=True)
class Word:
    """A syntactic word. `number` and `head` count from 1 within the sentence; head 0 is the root."""

    number: int
    form: str
    lemma: str | None
    upos: str
    feats: dict[str, str]
    head: int
    deprel: str
    space_after: bool


@dataclass(frozen=True, slots=True)
class Sentence:
    sent_id: str  # the comment's, else `line N`
    text: str  # the comment's, else put together from the forms
    line: int  # of the sentence's first line in the file
    words: list[Word] = field(repr=False)
    joined: bool  # whether surface words stand for several syntactic ones (`zum` = zu + der)
    genre: str = ""


PROBLEMS = {
    "not_utf8": "not UTF-8 (byte %(detail)s of the line); save the treebank as UTF-8",
    "columns": "%(detail)s columns instead of ten separated by tabs; this is not CoNLL-U, or the line is broken off",
    "broken_token": "the columns cannot be read: %(detail)s",
    "nul": "a NUL character",
    "long_line": "the line is longer than %(detail)s bytes; this is not CoNLL-U",
    "long_sentence": "a sentence of more than %(detail)s lines; are the blank lines between sentences missing?",
    "no_sentences": "there is no sentence in the file",
    "no_lemmas": "%(detail)s; the given words of a task are lemmas, so a treebank without them cannot be used",
    "other_script": "%(detail)s; is this the right file, and the right language?",
    "no_forms": "there is no word in the file, only %(detail)s",
}


class TreebankUnreadableError(Exception):
    """The file as a whole cannot be used. `code` is one of PROBLEMS."""

    def __init__(self, code: str, line: int | None = None, detail: str = "") -> None:
        self.code, self.line, self.detail = code, line, detail
        text = PROBLEMS[code] % {"detail": detail}
        super().__init__(f"line {line}: {text}" if line else text)


def sentences(stream: BinaryIO, language: str, *, read: Callable[[int], None] | None = None) -> Iterator[Sentence]:
    """The sentences of a CoNLL-U file, one in memory at a time. `read` is told how many bytes each one took.

    Multi-word tokens (`3-4`) are known by `joined`, empty nodes (`3.1`) are left away. Texts are NFC. Comments
    are optional. Raises TreebankUnreadableError, with the line, for what is no CoNLL-U in UTF-8, for a file whose
    words mostly have no lemma, and for one that is mostly in another script than the language's.
    """
    check = _Check(language)
    found = False
    for first, lines, size in _blocks(stream):
        sentence = _sentence(first, lines)
        if read is not None:
            read(size)
        if sentence is None:
            continue
        found = True
        check.look(sentence)
        yield sentence
    if not found:
        raise TreebankUnreadableError("no_sentences")
    check.end()


def script_of(text: str) -> set[str]:
    """The scripts of a text's letters, as the first words of their Unicode names: CYRILLIC, LATIN, GREEK …"""
    return {unicodedata.name(char, "?").split()[0] for char in set(text) if char.isalpha()}


class _Check:
    """Whether the file as a whole has lemmas and the language's script; asked early, so that 100 MB are not read."""

    def __init__(self, language: str) -> None:
        self.script = SCRIPTS.get(language)
        self.words = self.without_lemma = self.foreign = 0
        self.asked = False
        self.first_without = self.first_foreign = 0

    def look(self, sentence: Sentence) -> None:
        for word in sentence.words:
            if not any(char.isalpha() for char in word.form):
                continue
            self.words += 1
            if word.lemma is None:
                self.without_lemma += 1
                self.first_without = self.first_without or sentence.line
            if self.script and self.script not in script_of(word.form):
                self.foreign += 1
                self.first_foreign = self.first_foreign or sentence.line
        if self.words >= LOOKED_AT and not self.asked:
            self.asked = True
            self.end()

    def end(self) -> None:
        if not self.words:
            raise TreebankUnreadableError("no_forms", detail="numbers and signs")
        share = f"of the first {self.words} words"
        if self.without_lemma > self.words / 2:
            detail = f"{self.without_lemma} {share} have no lemma"
            raise TreebankUnreadableError("no_lemmas", self.first_without, detail)
        if self.script and self.foreign > self.words / 2:
            detail = f"{self.foreign} {share} are not in {SCRIPT_NAMES[self.script]} letters"
            raise TreebankUnreadableError("other_script", self.first_foreign, detail)


def _lines(stream: BinaryIO) -> Iterator[tuple[int, str, int]]:
    """Number, text and size in bytes of each line."""
    number = 0
    while raw := stream.readline(MAX_LINE + 1):
        number += 1
        if len(raw) > MAX_LINE:
            raise TreebankUnreadableError("long_line", number, str(MAX_LINE))
        try:
            text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise TreebankUnreadableError("not_utf8", number, str(error.start + 1)) from error
        if "\x00" in text:
            raise TreebankUnreadableError("nul", number)
        yield number, unicodedata.normalize("NFC", text).rstrip("\r\n"), len(raw)


def _blocks(stream: BinaryIO) -> Iterator[tuple[int, list[str], int]]:
    """Lines between blank lines: the number of the first, the lines, and the bytes up to here."""
    block: list[str] = []
    first = size = 0
    for number, text, length in _lines(stream):
        size += length
        if text.strip():
            if not block:
                first = number
            block.append(text)
            if not text.startswith("#") and text.count("\t") != COLUMNS - 1:
                raise TreebankUnreadableError("columns", number, str(text.count("\t") + 1))
            if len(block) > MAX_SENTENCE:
                raise TreebankUnreadableError("long_sentence", first, str(MAX_SENTENCE))
        elif block:
            yield first, block, size
            block, size = [], 0
    if block:
        yield first, block, size


def _sentence(first: int, lines: list[str]) -> Sentence | None:
    """The sentence of a block; None for a block of comments only."""
    tokens = [(first + place, line) for place, line in enumerate(lines) if not line.startswith("#")]
    if not tokens:
        return None
    try:
        parsed = parse_token_and_metadata("\n".join(lines))
    except ParseException as error:
        raise TreebankUnreadableError("broken_token", _broken_line(tokens), str(error)[:200]) from error
    words: list[Word] = []
    spans: dict[int, tuple[int, str, bool]] = {}
    for token, (line, _raw) in zip(parsed, tokens, strict=True):
        number = token["id"]
        misc = cast(dict[str, str], token.get("misc") or {})
        space = misc.get("SpaceAfter") != "No"
        if isinstance(number, tuple):
            if number[1] == "-":
                spans[number[0]] = (number[2], str(token["form"]), space)
        else:
            if number != len(words) + 1:
                detail = f"the word's number is {number}, {len(words) + 1} was expected"
                raise TreebankUnreadableError("broken_token", line, detail)
            words.append(_word(token, number, space))
    if not words:
        return None
    for word, (line, _raw) in zip(parsed, tokens, strict=True):
        if isinstance(word["head"], int) and not 0 <= word["head"] <= len(words):
            detail = f"HEAD is {word['head']}, and the sentence has {len(words)} words"
            raise TreebankUnreadableError("broken_token", line, detail)
    metadata = cast(dict[str, str], parsed.metadata)
    return Sentence(
        sent_id=(metadata.get("sent_id") or f"line {first}").strip()[:100],
        text=" ".join(str(metadata.get("text") or _text(words, spans)).split()),
        line=first,
        words=words,
        joined=bool(spans),
        genre=(metadata.get("genre") or "").strip(),
    )


def _word(token: dict, number: int, space: bool) -> Word:
    form = str(token["form"])
    lemma = token["lemma"]
    return Word(
        number=number,
        form=form,
        lemma=None if lemma in (None, "", "_") and form != "_" else str(lemma),
        upos=str(token["upos"] or "_"),
        feats={name: value or "" for name, value in (token["feats"] or {}).items()},
        head=token["head"] if isinstance(token["head"], int) else 0,
        deprel=str(token["deprel"] or "_"),
        space_after=space,
    )


def _broken_line(tokens: Iterable[tuple[int, str]]) -> int:
    """The line that the parser does not take: it names none, so it is asked again line by line."""
    line = 0
    for line, text in tokens:  # noqa: B007 (the last one, should none of them fail alone)
        try:
            parse_token_and_metadata(text)
        except ParseException:
            break
    return line


def _text(words: list[Word], spans: dict[int, tuple[int, str, bool]]) -> str:
    """The sentence put together from the forms, for a treebank without `text` comments."""
    parts: list[str] = []
    until = 0
    for word in words:
        if word.number <= until:
            continue
        form, space = word.form, word.space_after
        if word.number in spans:
            until, form, space = spans[word.number]
        parts.append(form + (" " if space else ""))
    return "".join(parts).strip()
