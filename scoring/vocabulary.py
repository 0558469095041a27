"""Vocabulary match: whether an answer uses every given word once, and which words it inserts, leaves out or leaves.

The study's paper leaves this for future work: "this would require an accurate lemmatizer". Here a token fits a given
word if any of its readings has that lemma, so that no reading has to be chosen (DESIGN, "Sequence equality").
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from corpus.tokens import word_tokens
from scoring.lemmas import RUSSIAN, folded, lemmas, readings, word_classes

Kind = Literal["pronoun", "aspect", "number", "suppletion"]
KINDS: tuple[Kind, ...] = ("pronoun", "aspect", "number", "suppletion")

_VERBS = frozenset({"VERB", "INFN", "PRTF", "PRTS", "GRND"})


@dataclass(frozen=True, slots=True)
class Task:
    """A stimulus for the comparison. `accepted`: pairs of a given word and what else it may be.

    An accepted form is taken as the given word itself is: it fits as it stands, and where it is a dictionary form, in
    all its forms.
    """

    text: str
    original: str
    language: str
    accepted: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Given:
    """A given word. `needed` is the form that it has in the original, None where the original has none that fits.

    `kinds`: what makes that form hard to find (Russian only):
    pronoun     a pronoun, pronominal adjectives among them, that changes (он → его, тот → той);
    aspect      a verb that the original has in the other aspect (браться → взялись);
    number      a noun that the original has in the plural; forms that could be singular do not count;
    suppletion  another stem, pronouns apart (человек → люди).
    """

    word: str
    needed: str | None
    kinds: frozenset[Kind]


@dataclass(frozen=True, slots=True)
class Missed:
    kind: Kind
    given: str
    used: str
    needed: str


@dataclass(frozen=True, slots=True)
class Reading:
    """What an answer does with the given words. Words are written as given and as answered.

    `matches`: every given word is used exactly once and no other word is. `used`: the places of the given words that
    are in the answer. `replaced`: a given word that is missing and the inserted word of the same part of speech that
    stands for it; the others are `missing` and `inserted`. `left_as_given`: used unchanged where the original changes
    it. `missed`: used, and without the change of that kind.
    """

    matches: bool
    used: frozenset[int]
    inserted: tuple[str, ...]
    missing: tuple[str, ...]
    replaced: tuple[tuple[str, str], ...]
    left_as_given: tuple[str, ...]
    missed: tuple[Missed, ...]


def vocabulary_match(text: str, task: Task) -> bool:
    """Whether the answer uses every given word exactly once, in whatever form, and no other word.

    The given words echoed back match: whether a word has been changed is `Reading.left_as_given`.
    """
    tokens = word_tokens(text)
    places = _fits(task)
    return len(tokens) == len(places) == len(_matched(tokens, task))


def read(text: str, task: Task) -> Reading:
    tokens, words = word_tokens(text), given_words(task)
    pairs = _matched(tokens, task)
    taken = set(pairs.values())
    missing = [place for place in range(len(words)) if place not in pairs]
    extra = [place for place in range(len(tokens)) if place not in taken]
    replaced = _replacements(missing, extra, tokens, words, task.language)
    used = [(words[place], tokens[pairs[place]]) for place in sorted(pairs)]
    return Reading(
        matches=not missing and not extra,
        used=frozenset(pairs),
        inserted=tuple(tokens[place] for place in extra if place not in replaced.values()),
        missing=tuple(words[place].word for place in missing if place not in replaced),
        replaced=tuple((words[place].word, tokens[other]) for place, other in replaced.items()),
        left_as_given=tuple(given.word for given, token in used if _is_left(given, token)),
        missed=tuple(missed for given, token in used for missed in _missed(given, token)),
    )


@lru_cache(4096)
def given_words(task: Task) -> tuple[Given, ...]:
    """The given words in their order, each with the form that the original needs."""
    original, given = word_tokens(task.original), word_tokens(task.text)
    pairs = _pairs(original, task)
    words = []
    for place, word in enumerate(given):
        needed = original[pairs[place]] if place in pairs else None
        kinds = _kinds(word, needed) if needed is not None and task.language == RUSSIAN else frozenset[Kind]()
        words.append(Given(word, needed, kinds))
    return tuple(words)


@lru_cache(4096)
def _fits(task: Task) -> tuple[frozenset[str], ...]:
    """For each given word, the lemmas that a token must have one of to fit it.

    A word that is given in a form which is nobody's dictionary form (дети) stands for the lemmas of its readings.
    """
    others: dict[str, set[str]] = {}
    for word, form in task.accepted:
        others.setdefault(folded(word), set()).add(folded(form))
    fits = []
    for word in map(folded, word_tokens(task.text)):
        read_as = {folded(parse.lemma) for parse in readings(word, task.language)}
        fits.append(frozenset({word, *others.get(word, ()), *(set() if word in read_as else read_as)}))
    return tuple(fits)


def _matched(tokens: Sequence[str], task: Task) -> dict[int, int]:
    """As `_pairs`; a token in just the needed form is tried first, so that the right он is the one left as given."""
    needed = [folded(word.needed) if word.needed is not None else None for word in given_words(task)]
    return _pairs(tokens, task, needed)


def _pairs(tokens: Sequence[str], task: Task, needed: Sequence[str | None] = ()) -> dict[int, int]:
    """Places of given words and of the tokens that stand for them, one to one and as many as can be.

    Augmenting paths (H. W. Kuhn, 1955): a word whose tokens are taken moves another word to a token of its own.
    """
    own = [lemmas(token, task.language) for token in tokens]
    fits = [[place for place, known in enumerate(own) if known & wanted] for wanted in _fits(task)]
    pairs: dict[int, int] = {}
    holders: dict[int, int] = {}
    for word, form in enumerate(needed):
        exact = (place for place in fits[word] if place not in holders and folded(tokens[place]) == form)
        if (found := next(exact, None)) is not None:
            pairs[word], holders[found] = found, word
    for word in range(len(fits)):
        if word not in pairs:
            _augment(word, fits, pairs, holders, set())
    return pairs


def _augment(
    word: int, fits: Sequence[Sequence[int]], pairs: dict[int, int], holders: dict[int, int], seen: set[int]
) -> bool:
    """Recursion is as deep as there are given words, at most."""
    for place in fits[word]:
        if place in seen:
            continue
        seen.add(place)
        if place not in holders or _augment(holders[place], fits, pairs, holders, seen):
            pairs[word], holders[place] = place, word
            return True
    return False


def _replacements(
    missing: Sequence[int], extra: Sequence[int], tokens: Sequence[str], words: Sequence[Given], language: str
) -> dict[int, int]:
    """A missing word and the first inserted one of its part of speech; where those are not known, the first one."""
    free = list(extra)
    found: dict[int, int] = {}
    for place in missing:
        own = word_classes(words[place].word, language)
        alike = (
            other for other in free if language != RUSSIAN or own & word_classes(tokens[other], language) - {"other"}
        )
        if (other := next(alike, None)) is not None:
            found[place] = other
            free.remove(other)
    return found


def _is_left(given: Given, token: str) -> bool:
    own = folded(given.word)
    return given.needed is not None and folded(given.needed) != own and folded(token) == own


def _kinds(word: str, needed: str) -> frozenset[Kind]:
    if folded(word) == folded(needed):
        return frozenset()
    if _is_pronoun(word):
        return frozenset({"pronoun"})
    found: set[Kind] = set()
    given_aspects, needed_aspects = _aspects(word), _aspects(needed)
    if len(given_aspects) == len(needed_aspects) == 1 and given_aspects != needed_aspects:
        found.add("aspect")
    if _numbers(word) >= {"sing"} and _numbers(needed) == {"plur"}:
        found.add("number")
    if _is_other_stem(word, needed):
        found.add("suppletion")
    return frozenset(found)


def _missed(given: Given, token: str) -> list[Missed]:
    """The changes that the answer's form does not make. A form that may have made it is not counted as missed."""
    if given.needed is None:
        return []
    unchanged = folded(token) == folded(given.word)
    misses = {
        "pronoun": lambda: unchanged,
        "aspect": lambda: bool(_aspects(token)) and _aspects(token) <= _aspects(given.word),
        "number": lambda: unchanged or _numbers(token) == {"sing"},
        "suppletion": lambda: not _is_other_stem(given.word, token),
    }
    return [Missed(kind, given.word, token, given.needed) for kind in KINDS if kind in given.kinds and misses[kind]()]


def _is_pronoun(word: str) -> bool:
    own = [parse for parse in readings(word, RUSSIAN) if folded(parse.lemma) == folded(word)]
    return any(parse.pos == "NPRO" or "Apro" in parse.marks for parse in own)


def _aspects(word: str) -> frozenset[str]:
    verbs = [parse for parse in readings(word, RUSSIAN) if parse.pos in _VERBS]
    return frozenset[str]().union(*(parse.marks & {"perf", "impf"} for parse in verbs))


def _numbers(word: str) -> frozenset[str]:
    nouns = [parse for parse in readings(word, RUSSIAN) if parse.pos == "NOUN"]
    return frozenset[str]().union(*(parse.marks & {"sing", "plur"} for parse in nouns))


def _is_other_stem(word: str, form: str) -> bool:
    """Nothing in common at the beginning, nor a prefix before the same stem (чистить → почистил)."""
    one, other = folded(word), folded(form)
    return one[:1] != other[:1] and one[:3] not in other
