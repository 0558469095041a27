"""The tasks that a composition comes to."""

from collections.abc import Iterable, Sequence

from corpus.composer import BANDS, Candidate, Parameters, Slot, given_words, source_of
from corpus.importing import StimulusRow
from corpus.tokens import word_tokens


def task_rows(chosen: Iterable[tuple[Slot, Candidate]], parameters: Parameters, *, licence: str) -> list[StimulusRow]:
    """The stimuli of the chosen candidates, numbered from 1 without gaps."""
    return [
        StimulusRow(
            position=position,
            text=given_words(candidate, slot, parameters.seed),
            original=candidate.original,
            complexity=BANDS[slot.band],
            shuffled=slot.shuffled,
            source=source_of(candidate.origin, candidate.sent_id, licence),
        )
        for position, (slot, candidate) in enumerate(chosen, start=1)
    ]


def refusal_below(rows: Sequence[StimulusRow]) -> int:
    """Four words, as in the study; fewer where an original is so short that a right answer would be a refusal."""
    return max(1, min(4, min(len(word_tokens(row.original)) for row in rows) - 1))
