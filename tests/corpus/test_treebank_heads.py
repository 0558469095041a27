import io

import pytest

from corpus.treebank import TreebankUnreadableError, sentences

WORDS = "1\tКот\tкот\tNOUN\t_\t_\t{first}\tnsubj\t_\t_\n2\tспит\tспать\tVERB\t_\t_\t{second}\troot\t_\t_\n\n"


@pytest.mark.parametrize(("first", "second", "line"), [(99, 0, 1), (2, 3, 2)])
def test_a_head_beyond_the_sentence_is_named_with_its_line(first: int, second: int, line: int) -> None:
    stream = io.BytesIO(WORDS.format(first=first, second=second).encode())
    with pytest.raises(TreebankUnreadableError, match=rf"^line {line}: .*HEAD is {max(first, second)}"):
        list(sentences(stream, "ru"))


def test_heads_within_the_sentence_are_read() -> None:
    (sentence,) = sentences(io.BytesIO(WORDS.format(first=2, second=0).encode()), "ru")
    assert [word.head for word in sentence.words] == [2, 0]
