"""Criteria that are counted, not judged."""

from corpus.tokens import word_tokens


def sequence_equal(text: str, original: str) -> bool:
    """Whether an answer has as many word tokens as the original sentence.

    This is the paper's *sequence equality*: "we require only that the token lengths of the submitted and
    original sentences match". Neither vocabulary nor order is compared, so an echo of the stimulus holds
    too.
    """
    return len(word_tokens(text)) == len(word_tokens(original))
