"""Made-up answers for the demonstration study. Nobody said any of this, and every page that shows it says so.

An answer is the original, or the original with one fault of a known kind; so it is also known what a perfect judge
would say of it.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass

from corpus.tokens import word_tokens


@dataclass(frozen=True)
class Truth:
    """What a perfect judge says: 1 or 0 on each judged criterion of the paper's rubric."""

    grammatical: int
    logical: int
    order: int


TRUTHS = {
    "right": Truth(1, 1, 1),
    "unusual_order": Truth(1, 1, 0),
    "uninflected": Truth(0, 1, 1),
    "illogical": Truth(1, 0, 1),
    "inserted": Truth(1, 1, 1),  # the counting rule sees it
    "left_out": Truth(0, 1, 1),
    "echoed": Truth(0, 0, 0),
    "refused": Truth(0, 0, 0),
}
FAULTS = {
    "unusual_order": 22,
    "uninflected": 22,
    "illogical": 14,
    "inserted": 18,
    "left_out": 12,
    "echoed": 4,
    "refused": 8,
}


def variants(text: str, original: str) -> dict[str, str]:
    """Every kind of answer to a stimulus: kind to text. `text` is the given words, `original` the sentence."""
    words = original.rstrip(".").split()
    middle = len(words) // 2
    swapped = [*words]
    swapped[0], swapped[-1] = swapped[-1], swapped[0]
    return {
        "right": original,
        "unusual_order": " ".join([*words[middle:], *words[:middle]]),
        "uninflected": " ".join(_uninflected(words, text)),
        "illogical": " ".join(swapped),
        "inserted": " ".join([*words[:middle], "вот", *words[middle:]]),
        "left_out": " ".join([*words[:-2], words[-1]]),
        "echoed": text,
        "refused": "не знаю",
    }


def _uninflected(words: list[str], text: str) -> list[str]:
    """The sentence with one word in its given form: the first word of which a given word shares the beginning."""
    given = word_tokens(text)
    for index, word in enumerate(words):
        for lemma in given:
            if lemma != word.strip(".,") and lemma[:4] == word[:4]:
                return [*words[:index], lemma, *words[index + 1 :]]
    return [*words[:-1], words[-1][:-1]]


def simulated_kind(*, skill: float, complexity: str, shuffled: bool, rng: random.Random) -> str:
    """The kind of the next answer. `skill` is the chance of a right answer to an easy task in its own order."""
    hardship = {"easy": 0.0, "medium": 0.06, "hard": 0.1}[complexity] + (0.2 if shuffled else 0.0)
    if rng.random() < skill - hardship * (1.15 - skill) * 2:
        return "right"
    return rng.choices(list(FAULTS), weights=list(FAULTS.values()))[0]


def truth_of(answer: str, stimulus_variants: Mapping[str, str]) -> Truth:
    """What a perfect judge says of a simulated answer; a text of no known kind is taken for nonsense."""
    for kind, text in stimulus_variants.items():
        if text == answer:
            return TRUTHS[kind]
    return Truth(0, 0, 0)
