"""What differs between two versions of an instrument: word by word in the texts, stimulus by stimulus."""

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from corpus.importing import StimulusRow

Mark = Literal["same", "removed", "added"]
Kind = Literal["same", "changed", "moved", "added", "removed"]

# Two stimuli with less in common than this are two, not one that was changed.
ALIKE = 0.4
_WORD = re.compile(r"\S+\s*|\s+")


@dataclass(frozen=True)
class Piece:
    mark: Mark
    text: str


@dataclass(frozen=True)
class Change:
    """A stimulus in one version, the other, or both. `task`, `original` and `feedback` are the texts as pieces.

    `fields` names what differs beside the number, which is `moved` alone.
    """

    kind: Kind
    old: StimulusRow | None
    new: StimulusRow | None
    fields: tuple[str, ...] = ()
    task: tuple[Piece, ...] = ()
    original: tuple[Piece, ...] = ()
    feedback: tuple[Piece, ...] = ()

    @property
    def row(self) -> StimulusRow:
        """The stimulus as it is now, or as it was."""
        row = self.new or self.old
        assert row is not None  # noqa: S101 - one of the two is always there
        return row


def words_compared(old: str, new: str) -> tuple[Piece, ...]:
    """The new text with what was removed and added, in words; what stays the same joins up."""
    before, after = _WORD.findall(old), _WORD.findall(new)
    pieces: list[Piece] = []
    matcher = difflib.SequenceMatcher(None, [w.strip() for w in before], [w.strip() for w in after], autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "equal":
            pieces.append(Piece("same", "".join(after[j1:j2])))
            continue
        if i1 < i2:
            pieces.append(Piece("removed", _closed(before[i1:i2])))
        if j1 < j2:
            pieces.append(Piece("added", _closed(after[j1:j2])))
    return tuple(pieces)


def _closed(words: Sequence[str]) -> str:
    """A removed last word has no space after it; what follows must not run into it."""
    text = "".join(words)
    return text if text[-1].isspace() else text + " "


def text_compared(old: str, new: str) -> list[tuple[Piece, ...]]:
    """Line by line, and within lines that changed word by word. Cheap for texts of some thousand words."""
    before, after = old.splitlines(), new.splitlines()
    lines: list[tuple[Piece, ...]] = []
    for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            lines += [(Piece("same", line),) for line in after[j1:j2]]
            continue
        paired = min(i2 - i1, j2 - j1)
        lines += [words_compared(before[i1 + n], after[j1 + n]) for n in range(paired)]
        lines += [(Piece("removed", line),) for line in before[i1 + paired : i2]]
        lines += [(Piece("added", line),) for line in after[j1 + paired : j2]]
    return lines


def stimuli_compared(old: Sequence[StimulusRow], new: Sequence[StimulusRow]) -> list[Change]:
    """Every stimulus of both versions once, in the order of the new one, removed ones after their old neighbours.

    Stimuli belong together by the same given words and original, else by the same original, else by the same given
    words, else where they have most words in common, and enough.
    """
    pairs = _pairs(old, new)
    changes: list[Change] = []
    placed: set[int] = set()
    partner = {new_place: old_place for old_place, new_place in pairs.items()}
    for new_place, row in enumerate(new):
        old_place = partner.get(new_place)
        changes.append(_change(None if old_place is None else old[old_place], row))
        if old_place is None:
            continue
        placed.add(old_place)
        following = old_place + 1
        while following < len(old) and following not in pairs and following not in placed:
            changes.append(_change(old[following], None))
            placed.add(following)
            following += 1
    first = [_change(row, None) for place, row in enumerate(old) if place not in pairs and place not in placed]
    return first + changes


def _pairs(old: Sequence[StimulusRow], new: Sequence[StimulusRow]) -> dict[int, int]:
    pairs: dict[int, int] = {}
    taken: set[int] = set()
    keys = (
        lambda row: (row.text, row.original, row.is_practice),
        lambda row: (row.original,),
        lambda row: (row.text,),
    )
    for key in keys:
        waiting: dict[tuple[object, ...], list[int]] = {}
        for place, row in enumerate(new):
            if place not in taken:
                waiting.setdefault(key(row), []).append(place)
        for place, row in enumerate(old):
            if place not in pairs and waiting.get(key(row)):
                pairs[place] = waiting[key(row)].pop(0)
                taken.add(pairs[place])
    left = [place for place in range(len(old)) if place not in pairs]
    for place in left:
        row = old[place]
        free = [n for n, one in enumerate(new) if n not in taken and one.is_practice == row.is_practice]
        # Most in common first; of equals, the one with the same number.
        ranked = sorted((_likeness(row, new[n]), new[n].position == row.position, n) for n in free)
        if ranked and ranked[-1][0] >= ALIKE:
            pairs[place] = ranked[-1][2]
            taken.add(ranked[-1][2])
    return pairs


def _likeness(old: StimulusRow, new: StimulusRow) -> float:
    """Dice's coefficient of the words of two stimuli, 0 to 1."""
    before, after = (set(f"{row.text} {row.original}".lower().split()) for row in (old, new))
    return 2 * len(before & after) / (len(before) + len(after) or 1)


def _change(old: StimulusRow | None, new: StimulusRow | None) -> Change:
    if old is None or new is None:
        return Change("removed" if new is None else "added", old, new)
    names = ("text", "original", "complexity", "shuffled", "is_practice", "feedback", "source")
    fields = tuple(name for name in names if getattr(old, name) != getattr(new, name))
    if not fields:
        return Change("same" if old.position == new.position else "moved", old, new)
    return Change(
        "changed",
        old,
        new,
        fields,
        words_compared(old.text, new.text),
        words_compared(old.original, new.original),
        words_compared(old.feedback, new.feedback),
    )
