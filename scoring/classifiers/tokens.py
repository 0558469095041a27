"""Texts as rows of tokens, and rows as batches without much padding."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

LETTERS = 40  # of one token, generously: what lies beyond max_tokens times this is not even looked at


@dataclass(frozen=True)
class Encoded:
    ids: list[list[int]]
    cut: list[bool]  # the text is longer than what is read of it


def encode(tokenizer: Any, texts: Sequence[str], max_tokens: int) -> Encoded:
    """At most `max_tokens` tokens of each text, and no more than the model has places for."""
    most = min(max_tokens, tokenizer.model_max_length)
    shortened = [text[: most * LETTERS] for text in texts]
    if not shortened:
        return Encoded([], [])
    rows = tokenizer(shortened, truncation=True, max_length=most)["input_ids"]
    full = [row for row, ids in enumerate(rows) if len(ids) == most]
    over = {row: len(shortened[row]) < len(texts[row]) for row in range(len(texts))}
    if full:
        whole = tokenizer([shortened[row] for row in full], verbose=False)["input_ids"]
        over |= {row: over[row] or len(ids) > most for row, ids in zip(full, whole, strict=True)}
    return Encoded(rows, [over[row] for row in range(len(texts))])


def batches_of(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Places sorted by length, the longest first (so that too little memory shows at once), in batches of at most
    `budget` tokens with their padding; a row longer than that is alone."""
    order = sorted(range(len(lengths)), key=lambda place: -lengths[place])
    batches: list[list[int]] = []
    for place in order:
        if batches and lengths[batches[-1][0]] * (len(batches[-1]) + 1) <= budget:
            batches[-1].append(place)
        else:
            batches.append([place])
    return batches


def padded(rows: Sequence[Sequence[int]], pad: int) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Rows × longest, and the mask of what is no padding; None where there is none, which is faster."""
    longest = max(map(len, rows))
    ids = torch.tensor([[*row, *[pad] * (longest - len(row))] for row in rows])
    if all(len(row) == longest for row in rows):
        return ids, None
    return ids, torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows])
