import io
import tracemalloc

import pytest

from corpus.treebank import TreebankUnreadableError, sentences
from tests.corpus.treebanks import CAT, COMPOUND, changed, conllu, read

GOOD = conllu(CAT, COMPOUND)


def fails(data: bytes, language: str = "ru") -> str:
    with pytest.raises(TreebankUnreadableError) as caught:
        read(data, language)
    return str(caught.value)


def test_sentences_come_with_their_lines_and_words() -> None:
    cat, children = read(GOOD)
    assert (cat.sent_id, cat.line, cat.text) == ("s1", 1, "Кошка тихо сидит на большом столе.")
    assert (children.sent_id, children.line) == ("s2", 11)
    assert [word.lemma for word in cat.words] == ["кошка", "тихо", "сидеть", "на", "большой", "стол", "."]
    assert cat.words[5].feats == {"Case": "Loc", "Gender": "Masc", "Number": "Sing"}
    assert (cat.words[0].head, cat.words[0].deprel) == (3, "nsubj")


def test_comments_are_not_needed() -> None:
    cat, children = read(conllu(CAT, COMPOUND, comments=False))
    assert (cat.sent_id, cat.text) == ("line 1", "Кошка тихо сидит на большом столе.")
    assert (children.sent_id, children.line) == ("line 9", 9)


@pytest.mark.parametrize(
    "data",
    [b"\xef\xbb\xbf" + GOOD, GOOD.replace(b"\n", b"\r\n"), GOOD.rstrip(b"\n"), b"\n\n" + GOOD, b"# newdoc\n\n" + GOOD],
    ids=["byte-order mark", "CRLF", "no line end", "blank lines first", "comments alone"],
)
def test_it_reads_what_is_unusual(data: bytes) -> None:
    assert [sentence.text for sentence in read(data)] == [sentence.text for sentence in read(GOOD)]


def test_multiword_tokens_and_empty_nodes() -> None:
    line = "{}\t{}\t{}\tADP\t_\t_\t0\troot\t_\t_\n"
    data = line.format("1-2", "zum", "_") + line.format("1", "zu", "zu") + line.format("2", "dem", "der")
    data += line.format("2.1", "leer", "leer") + line.format("3", "Haus", "Haus")
    sentence = read(data.encode(), "de")[0]
    assert sentence.joined and sentence.text == "zum Haus" and len(sentence.words) == 3


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "there is no sentence in the file"),
        (b"# text = x\n\n", "there is no sentence in the file"),
        (b"<!doctype html>\n<html>", "line 1: 1 columns instead of ten"),
        (GOOD + b"1\tx\tx\n", "line 24: 3 columns instead of ten separated by tabs"),
        (GOOD[: len(GOOD) - 14], "line 22: 6 columns instead of ten"),
        (GOOD.replace(b"\t", b" "), "line 3: 1 columns instead of ten"),
        (GOOD.decode().encode("cp1251"), "line 2: not UTF-8 (byte 10 of the line)"),
        (GOOD.decode().encode("utf-16"), "line 1: not UTF-8 (byte 1 of the line)"),
        (b"PK\x03\x04" + GOOD, "line 1: 1 columns instead of ten"),
        (GOOD.replace("сидит".encode(), b"\x00"), "line 2: a NUL character"),
        (b"x" * 200_000, "line 1: the line is longer than 100000 bytes"),
        (GOOD.replace(b"\n5\t", b"\n7\t", 1), "line 7: the columns cannot be read: the word's number is 7, 5 was"),
        (GOOD.replace(b"\n5\t", b"\nfive\t", 1), "line 7: the columns cannot be read"),
        (GOOD.replace(b"\t3\tnsubj", b"\tthree\tnsubj", 1), "line 3: the columns cannot be read"),
        (b"1\t.\t.\tPUNCT\t_\t_\t0\troot\t_\t_\n\n", "there is no word in the file, only numbers and signs"),
    ],
)
def test_it_says_which_line_and_why(data: bytes, message: str) -> None:
    assert message in fails(data)


def test_a_sentence_without_end_is_not_read_into_memory() -> None:
    line = "1\tа\tа\tX\t_\t_\t0\troot\t_\t_\n"
    assert "line 1: a sentence of more than 5000 lines" in fails((line * 6_000).encode())


def test_missing_lemmas_are_told_of() -> None:
    bare = CAT
    for number in range(1, 7):
        bare = changed(bare, number, lemma="_")
    message = fails(conllu(COMPOUND, *[bare] * 5))
    assert message.startswith("line 14: 30 of the first 38 words have no lemma")
    assert len(read(conllu(CAT, changed(CAT, 1, lemma="_")))) == 2  # a few only leave out their sentences


def test_another_script_is_told_of() -> None:
    assert fails(GOOD, "de").startswith("line 1: 14 of the first 14 words are not in Latin letters; is this the right")
    assert len(read(GOOD, "el")) == 2  # a language whose script is not known is taken as it is


def test_a_wrong_file_is_told_of_before_it_is_read_whole() -> None:
    stream = io.BytesIO(conllu(*[CAT] * 3_000))
    with pytest.raises(TreebankUnreadableError):
        list(sentences(stream, "fi"))
    assert stream.tell() < len(stream.getvalue()) / 4


def test_progress_adds_up_to_the_file() -> None:
    read_bytes: list[int] = []
    list(sentences(io.BytesIO(GOOD), "ru", read=read_bytes.append))
    assert sum(read_bytes) == len(GOOD)


def test_memory_does_not_grow_with_the_file() -> None:
    peaks = []
    for times in (100, 1_000):
        stream = io.BytesIO(GOOD * times)
        tracemalloc.start()
        assert sum(1 for _ in sentences(stream, "ru")) == 2 * times
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 2 * peaks[0]
