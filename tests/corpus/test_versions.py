from dataclasses import replace

from corpus.importing import StimulusRow
from corpus.versions import Piece, stimuli_compared, text_compared, words_compared

A = StimulusRow(1, "кошка сидеть на стол", "кошка сидит на столе", "easy", False)
B = StimulusRow(2, "лодка плыть по река", "лодка плывет по реке", "medium", False)
C = StimulusRow(3, "дети играть во двор", "дети играют во дворе", "hard", True)


def test_words_are_compared_and_the_rest_joins_up() -> None:
    assert words_compared("кошка сидит на столе", "кошка лежит на столе") == (
        Piece("same", "кошка "), Piece("removed", "сидит "), Piece("added", "лежит "), Piece("same", "на столе"),
    )  # fmt: skip
    # what comes after the last word does not run into it
    assert words_compared("кот", "кот спит") == (Piece("same", "кот "), Piece("added", "спит "))
    assert words_compared("", "") == ()


def test_lines_are_compared_and_within_them_words() -> None:
    lines = text_compared("раз\n\nдва три", "раз\n\nдва четыре\nпять")
    assert lines[0] == (Piece("same", "раз"),)
    assert [piece.mark for piece in lines[2]] == ["same", "removed", "added"]
    assert lines[3] == (Piece("added", "пять"),)


def kinds(old: list[StimulusRow], new: list[StimulusRow]) -> list[tuple[str, str]]:
    return [(change.kind, change.row.text.split()[0]) for change in stimuli_compared(old, new)]


def test_each_stimulus_of_both_versions_stands_once() -> None:
    changed = replace(A, original="кошка сидела на столе")
    other = StimulusRow(2, "мама мыть посуда", "мама моет посуду", "easy", False)
    assert kinds([A, B, C], [A, B, C]) == [("same", "кошка"), ("same", "лодка"), ("same", "дети")]
    assert kinds([A, B, C], [changed, B, C])[0] == ("changed", "кошка")
    # another sentence under the same number is not a change of the first one
    assert kinds([A, B, C], [A, other, C]) == [
        ("same", "кошка"), ("removed", "лодка"), ("added", "мама"), ("same", "дети"),
    ]  # fmt: skip
    assert kinds([A, B, C], [replace(B, position=1), replace(C, position=2)]) == [
        ("removed", "кошка"), ("moved", "лодка"), ("moved", "дети"),
    ]  # fmt: skip
    # a change is seen behind a number that moved too
    assert kinds([A, B, C], [replace(B, position=1), replace(C, position=2, original="дети играли во дворе")]) == [
        ("removed", "кошка"), ("moved", "лодка"), ("changed", "дети"),
    ]  # fmt: skip
    lake = replace(B, position=1, text="лодка плыть по озеро", original="лодка плывет по озеру")
    assert kinds([A, B, C], [lake])[1:] == [("changed", "лодка"), ("removed", "дети")]
    assert kinds([], [A]) == [("added", "кошка")] and kinds([A], []) == [("removed", "кошка")]


def test_what_differs_is_named() -> None:
    (change,) = stimuli_compared([A], [replace(A, shuffled=True, is_practice=True, feedback="так", source="UD")])
    assert change.kind == "changed" and change.fields == ("shuffled", "is_practice", "feedback", "source")


def test_the_same_sentence_twice_pairs_one_to_one() -> None:
    assert kinds([A, replace(A, position=2)], [A]) == [("same", "кошка"), ("removed", "кошка")]
