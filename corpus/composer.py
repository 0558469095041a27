"""Composing a test from a treebank: what is proposed, in which order, and how the given words are shown.

Pure: the same sentences, parameters and decisions give the same tasks. Chance comes from SHA-256 of the seed and the
sentence, so neither the Python version nor the sentence's place in the file changes it.
"""

import hashlib
import heapq
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from decimal import ROUND_HALF_UP, Decimal
from itertools import pairwise
from typing import Any

from corpus.languages import WordList, language_of, word_list_text
from corpus.screening import DOUBTS, reasons, weakness
from corpus.sentences import Screen, given_lemma, is_compound, is_sign, printed
from corpus.tokens import word_tokens
from corpus.treebank import Sentence

BANDS = ("easy", "medium", "hard")
DEFAULT_BANDS = ((4, 6), (7, 9), (10, 12))
DEFAULT_COUNTS = (4, 6, 8)
DEFAULT_SHUFFLED = (0.0, 0.5, 0.5)
MAX_COUNT = 100  # tasks of one band
MAX_WORDS = 40
MAX_SEED = 2**31 - 1
KEPT = 1_000
"""Candidates kept of each band, the best ones; a person swaps through dozens, and a large treebank has thousands."""
TRIES = 24
LEANING = 3  # weakness from which a sentence comes after all others without a doubt, compound or not


class ParametersError(ValueError):
    """A parameter that cannot be. The message says which and why."""


@dataclass(frozen=True)
class Parameters:
    language: str
    seed: int = 1
    bands: tuple[tuple[int, int], ...] = DEFAULT_BANDS
    counts: tuple[int, ...] = DEFAULT_COUNTS
    shuffled: tuple[float, ...] = DEFAULT_SHUFFLED  # share of each band, 0 to 1
    min_zipf: float | None = None  # None: the language's own
    sensitive: str | None = None  # lines of a word list; None: the delivered one

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})?", self.language):
            raise ParametersError(f"language must be a code such as ru, de or fi, not {self.language!r}")
        if not 0 <= self.seed <= MAX_SEED:
            raise ParametersError(f"seed must be a whole number from 0 to {MAX_SEED}")
        for name, values in (("bands", self.bands), ("counts", self.counts), ("shuffled", self.shuffled)):
            if len(values) != len(BANDS):
                raise ParametersError(f"{name} must be three: for easy, medium and hard")
        _check_bands(self.bands)
        if any(not 0 <= count <= MAX_COUNT for count in self.counts) or not sum(self.counts):
            raise ParametersError(f"counts must be from 0 to {MAX_COUNT}, and not all 0")
        if any(not (math.isfinite(share) and 0 <= share <= 1) for share in self.shuffled):
            raise ParametersError("shuffled must be shares from 0 to 1")
        if self.min_zipf is not None and not (math.isfinite(self.min_zipf) and 0 <= self.min_zipf <= 8):
            raise ParametersError("min_zipf must be from 0 (no word is rare) to 8")

    def screen(self) -> Screen:
        language = language_of(self.language)
        text = word_list_text("sensitive", self.language) if self.sensitive is None else self.sensitive
        zipf = language.min_zipf if self.min_zipf is None else self.min_zipf
        return Screen(language, self.bands, zipf, WordList(text.splitlines()))

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Parameters":
        return cls(
            **{
                **data,
                "bands": tuple((least, most) for least, most in data["bands"]),
                "counts": tuple(data["counts"]),
                "shuffled": tuple(data["shuffled"]),
            }
        )


def _check_bands(bands: Sequence[tuple[int, int]]) -> None:
    before = 1
    for least, most in bands:
        if not before < least <= most <= MAX_WORDS:
            raise ParametersError(
                f"bands must rise and not overlap, with 2 to {MAX_WORDS} words, such as 4-6,7-9,10-12"
            )
        before = most


def bands_of(text: str) -> tuple[tuple[int, int], ...]:
    """`4-6,7-9,10-12`. Raises ParametersError."""
    parts = [re.fullmatch(r"\s*(\d{1,3})\s*[-–]\s*(\d{1,3})\s*", part) for part in text.split(",")]
    if not all(parts):
        raise ParametersError("bands must be written like 4-6,7-9,10-12")
    return tuple((int(part[1]), int(part[2])) for part in parts if part)


def counts_of(text: str) -> tuple[int, ...]:
    """`4,6,8`. Raises ParametersError."""
    parts = [part.strip() for part in text.split(",")]
    if not all(re.fullmatch(r"\d{1,4}", part, re.ASCII) for part in parts):
        raise ParametersError("counts must be written like 4,6,8")
    return tuple(map(int, parts))


def shares_of(text: str) -> tuple[float, ...]:
    """`0,.5,.5`, also `0, 1/2, 1/2`. Raises ParametersError."""
    shares = []
    for part in text.split(","):
        found = re.fullmatch(r"\s*(\d*\.?\d+)\s*(?:/\s*(\d+))?\s*", part, re.ASCII)
        if not found or (found[2] and not int(found[2])):
            raise ParametersError("shuffled must be written like 0,0.5,0.5")
        shares.append(float(found[1]) / int(found[2] or 1))
    return tuple(shares)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sentence that can be a task. `given` are its lemmas and signs in the sentence's order."""

    sent_id: str
    line: int
    text: str
    original: str
    given: tuple[str, ...]
    band: int  # place in BANDS
    compound: bool
    weakness: int
    doubts: tuple[tuple[str, str], ...] = ()
    origin: str = ""  # which treebank, where several are read


def candidate_of(sentence: Sentence, screen: Screen) -> tuple[Candidate | None, list[tuple[str, str]]]:
    """The candidate, or None and every reason why not. Duplicates are the business of `Scan`."""
    found = reasons(sentence, screen)
    if any(code not in DOUBTS for code, _detail in found):
        return None, found
    original = printed([word.form for word in sentence.words])
    signs = [is_sign(word) for word in sentence.words]
    given = tuple(
        word.form if sign else given_lemma(word, screen.language)
        for word, sign in zip(sentence.words, signs, strict=True)
    )
    if len(set(_only_words(given))) < 2:
        return None, [*found, ("unshufflable", "")]
    band = screen.band_of(sentence)
    assert band is not None  # noqa: S101 (else `length` is among the reasons)
    candidate = Candidate(
        sent_id=sentence.sent_id,
        line=sentence.line,
        text=sentence.text,
        original=original.lower() if screen.language.lower_case else original,
        given=given,
        band=band,
        compound=is_compound(sentence),
        weakness=weakness(sentence, screen),
        doubts=tuple(found),
    )
    return candidate, found


def _only_words(tokens: Iterable[str]) -> list[str]:
    return [token for token in tokens if word_tokens(token)]


def _chance(*parts: object) -> int:
    return int.from_bytes(hashlib.sha256("\x1f".join(map(str, parts)).encode()).digest()[:8], "big")


def rank(candidate: Candidate, seed: int) -> tuple[Any, ...]:
    """The order of proposals within a band, the best first.

    Those without a doubt; those that do not lean on others too much; in medium and hard the compound ones; those that
    stand best by themselves; then by lot.
    """
    plain = candidate.band > 0 and not candidate.compound
    chance = _chance(seed, "rank", candidate.sent_id, candidate.original)
    leaning = candidate.weakness >= LEANING
    return (bool(candidate.doubts), leaning, plain, candidate.weakness, chance, candidate.sent_id, candidate.line)


@dataclass
class Scan:
    """Goes through a treebank's sentences one by one and keeps what is bounded: counts, and the best candidates."""

    parameters: Parameters
    sentences: int = 0
    passed: Counter[int] = field(default_factory=Counter)  # by band
    left_out: Counter[str] = field(default_factory=Counter)  # sentences by reason; one may have several

    def __post_init__(self) -> None:
        self.screen = self.parameters.screen()
        self._seen: set[int] = set()
        self._best: list[list[tuple[_Backwards, int, Candidate]]] = [[] for _ in BANDS]

    def look(self, sentence: Sentence, origin: str = "") -> list[tuple[str, str]]:
        """Why the sentence is left out; empty where it is a candidate."""
        self.sentences += 1
        candidate, found = candidate_of(sentence, self.screen)
        if candidate is not None:
            # Two sentences of the same lemmas are the same task, whatever their forms.
            key = _chance(*sorted(_only_words(candidate.given)))
            if key not in self._seen:
                self._seen.add(key)
                self._keep(replace(candidate, origin=origin))
                return []
            found = [*found, ("duplicate", "")]
        self.left_out.update({code for code, _detail in found})
        return found

    def _keep(self, candidate: Candidate) -> None:
        self.passed[candidate.band] += 1
        best = self._best[candidate.band]
        entry = (_Backwards(rank(candidate, self.parameters.seed)), self.sentences, candidate)
        if len(best) < KEPT:
            heapq.heappush(best, entry)
        else:
            heapq.heappushpop(best, entry)

    def candidates(self) -> list[list[Candidate]]:
        """The candidates of each band, the best first."""
        seed = self.parameters.seed
        return [sorted((entry[2] for entry in best), key=lambda one: rank(one, seed)) for best in self._best]


class _Backwards:
    """An order turned round, so that the heap drops the worst candidate."""

    __slots__ = ("key",)

    def __init__(self, key: tuple[Any, ...]) -> None:
        self.key = key

    def __lt__(self, other: "_Backwards") -> bool:
        return other.key < self.key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Backwards) and other.key == self.key

    def __hash__(self) -> int:
        return hash(self.key)


@dataclass(frozen=True, slots=True)
class Slot:
    """A place in the test, whichever sentence will stand there."""

    position: int  # from 1
    band: int
    shuffled: bool


def slots_of(parameters: Parameters) -> list[Slot]:
    """Easy, then medium, then hard; which ones of a band are shuffled is drawn by the seed. Half of 5 is 3."""
    slots: list[Slot] = []
    for band, (count, share) in enumerate(zip(parameters.counts, parameters.shuffled, strict=True)):
        many = int((Decimal(str(share)) * count).to_integral_value(ROUND_HALF_UP))
        drawn = sorted(range(count), key=lambda place: _chance(parameters.seed, "shuffled", band, place))[:many]
        slots += [Slot(len(slots) + place + 1, band, place in drawn) for place in range(count)]
    return slots


def shuffled_tokens(tokens: Sequence[str], *, seed: int, key: str) -> list[str]:
    """The given words and signs in another order, in which the words never follow each other as in the sentence.

    Of some draws the first that keeps few neighbours is taken, else the one that keeps the fewest. Raises ValueError
    where all words are the same.
    """
    words = _only_words(tokens)
    pairs = set(pairwise(words))
    best: tuple[int, list[str]] | None = None
    for attempt in range(TRIES):
        drawn = sorted(range(len(tokens)), key=lambda place: _chance(seed, "order", key, attempt, place))
        order = [tokens[place] for place in drawn]
        now = _only_words(order)
        if now == words:
            continue
        kept = sum(pair in pairs for pair in pairwise(now))
        if best is None or kept < best[0]:
            best = (kept, order)
        if kept * 4 <= len(words) - 1:
            break
    if best is not None:
        return best[1]
    other = next((place for place, word in enumerate(tokens) if word_tokens(word) and word != words[0]), None)
    if other is None:
        raise ValueError("all words are the same")
    order = list(tokens)
    first = next(place for place, word in enumerate(tokens) if word_tokens(word))
    order[first], order[other] = order[other], order[first]
    return order


def given_words(candidate: Candidate, slot: Slot, seed: int) -> str:
    """The given words as printed: signs stand apart, in their place or shuffled among the words."""
    if not slot.shuffled:
        return " ".join(candidate.given)
    return " ".join(shuffled_tokens(candidate.given, seed=seed, key=f"{candidate.sent_id} {candidate.original}"))


def source_of(treebank: str, sent_id: str, licence: str) -> str:
    """Treebank, sentence and licence on one line of at most 200 characters."""
    parts = [part for part in (treebank.strip()[:80], sent_id.strip()[:60], licence.strip()[:50]) if part]
    return "; ".join(parts)


def chosen(candidates: Sequence[Sequence[Candidate]], parameters: Parameters) -> list[tuple[Slot, Candidate]]:
    """The unreviewed proposals: the best candidate for each slot. Slots that no candidate is left for are missing."""
    queues = [iter(band) for band in candidates]
    proposals = ((slot, next(queues[slot.band], None)) for slot in slots_of(parameters))
    return [(slot, candidate) for slot, candidate in proposals if candidate is not None]
