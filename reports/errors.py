"""What people and models do with the given words: inserted, left out, left as given, and changes of form not made."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from django.db.models import Count, Q

from corpus.models import Answer, Instrument, Respondent, Sitting, Stimulus
from corpus.tokens import is_refusal
from reports.choice import Chosen
from reports.selectors import PEOPLE, of_people_chosen, row_labels
from scoring.accepted import tasks_of
from scoring.vocabulary import KINDS, Reading, Task, given_words, read

WordKind = Literal["inserted", "missing", "replaced", "left_as_given", "pronoun", "aspect", "number", "suppletion"]
OF_ANSWERS: tuple[WordKind, ...] = ("inserted", "missing", "replaced", "left_as_given")
OF_WORDS: tuple[WordKind, ...] = KINDS
EXAMPLES = 3
REMEMBERED = 500
"""Characters of an answer up to which its reading is remembered; longer ones are rare and read anew."""


@dataclass(slots=True)
class Tally:
    """Of a group of answers. `answers`: given ones that are no refusals; `matching`: that use just the given words.

    `n`: in how many answers words were inserted and so on; of the four kinds of change, how many words were used
    without it. `used`: of these, how many words that need the change were used at all.
    """

    answers: int = 0
    matching: int = 0
    n: Counter[str] = field(default_factory=Counter)
    used: Counter[str] = field(default_factory=Counter)

    def of(self, kind: WordKind) -> int:
        """The denominator of a count."""
        return self.answers if kind in OF_ANSWERS else self.used[kind]

    def add(self, other: "Tally") -> None:
        self.answers += other.answers
        self.matching += other.matching
        self.n.update(other.n)
        self.used.update(other.used)


@dataclass(slots=True)
class Word:
    """One thing done with one word, by one group to one stimulus: in how many answers, and some of them."""

    kind: WordKind
    given: str  # empty of an inserted word
    used: str  # empty of a missing one
    needed: str  # only of the kinds of change, and of words left as given
    n: int = 0
    examples: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Errors:
    """By group (the keys of the results' rows) and stimulus id. `words`: the most frequent first."""

    groups: dict[str, str]  # key to label; people first
    stimuli: list[Stimulus]
    tallies: dict[tuple[str, int], Tally]
    words: dict[tuple[str, int], list[Word]]

    def total(self, group: str) -> Tally:
        found = Tally()
        for stimulus in self.stimuli:
            found.add(self.tallies.get((group, stimulus.pk), Tally()))
        return found

    def tally(self, group: str, stimulus: int) -> Tally:
        return self.tallies.get((group, stimulus), Tally())


def errors_of(instrument: Instrument, chosen: Chosen) -> Errors:
    """The answers of finished counted sittings, each text of a stimulus read once. Six queries."""
    tasks = tasks_of(instrument.study, instrument)
    stimuli = list(instrument.stimuli.filter(is_practice=False))
    needed = {
        stimulus.pk: {word.word: word.needed or "" for word in given_words(tasks[stimulus.pk])} for stimulus in stimuli
    }
    tallies: dict[tuple[str, int], Tally] = defaultdict(Tally)
    words: dict[tuple[str, int], dict[tuple[str, ...], Word]] = defaultdict(dict)
    for group, stimulus, text, n in _texts(instrument, chosen):
        task = tasks[stimulus]
        reading = reading_of(text, task)
        _count(tallies[group, stimulus], reading, task, n)
        for kind, given, used, wanted in _events(reading, needed[stimulus]):
            known = words[group, stimulus]
            word = known.setdefault((kind, given, used, wanted), Word(kind, given, used, wanted))
            word.n += n
            if len(word.examples) < EXAMPLES:
                word.examples.append(text)
    ranked = {
        key: sorted(found.values(), key=lambda word: (-word.n, word.kind, word.given, word.used))
        for key, found in words.items()
    }
    return Errors(row_labels(instrument), stimuli, dict(tallies), ranked)


def reading_of(text: str, task: Task) -> Reading:
    return _remembered(text, task) if len(text) <= REMEMBERED else read(text, task)


@lru_cache(20_000)
def _remembered(text: str, task: Task) -> Reading:
    return read(text, task)


def _texts(instrument: Instrument, chosen: Chosen) -> Iterator[tuple[str, int, str, int]]:
    """Group, stimulus, text and in how many answers it stands, the most frequent first. Refusals are left out."""
    people = Q(sitting__respondent__kind=Respondent.Kind.HUMAN)
    rows = (
        Answer.objects.filter(
            of_people_chosen(chosen),
            people | Q(sitting__run__isnull=False),
            sitting__instrument=instrument,
            sitting__standing=Sitting.Standing.COUNTED,
            sitting__state=Sitting.State.FINISHED,
            stimulus__is_practice=False,
            outcome=Answer.Outcome.GIVEN,
        )
        .order_by()
        .values_list("sitting__run__config", "sitting__run__experiment", "stimulus", "text")
        .annotate(n=Count("pk"))
        .order_by("-n", "text")
    )
    for config, experiment, stimulus, text, n in rows:
        if not is_refusal(text, instrument.refusal_below):
            yield PEOPLE if config is None else f"model-{config}-{experiment}", stimulus, text, n


def _count(tally: Tally, reading: Reading, task: Task, n: int) -> None:
    tally.answers += n
    tally.matching += n * reading.matches
    for kind in OF_ANSWERS:
        tally.n[kind] += n * bool(getattr(reading, kind))
    for missed in reading.missed:
        tally.n[missed.kind] += n
    for place, word in enumerate(given_words(task)):
        if place in reading.used:
            for changed in word.kinds:
                tally.used[changed] += n


def _events(reading: Reading, needed: dict[str, str]) -> Iterator[tuple[WordKind, str, str, str]]:
    """Each once for an answer, however often the word stands in it."""
    found: list[tuple[WordKind, str, str, str]] = [("inserted", "", word.lower(), "") for word in reading.inserted]
    found += [("missing", word, "", "") for word in reading.missing]
    found += [("replaced", given, used.lower(), "") for given, used in reading.replaced]
    found += [("left_as_given", word, word, needed.get(word, "")) for word in reading.left_as_given]
    found += [(missed.kind, missed.given, missed.used.lower(), missed.needed) for missed in reading.missed]
    yield from dict.fromkeys(found)
