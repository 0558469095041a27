"""People who take the eighteen tasks: in Luria as `make up` runs it and, in the same run, in oTree.

One answer is what a person waits for: the POST and the page after it. docs/benchmarks.md says how to read the figures.
"""

import asyncio
import json
import os
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from typing import Protocol
from urllib.parse import quote, urlsplit
from uuid import uuid4

from benchmarks import otree
from benchmarks.crowd import Clock, Visitor
from benchmarks.server import Server, percentile, server
from embedded import postgres

TOGETHER, WAVES = 20, 3  # people without a pause, and how often; the servers take turns
THOUGHTFUL, THINK = (20, 100), 2.0  # people, and seconds to think on average
BURST = 200
TIMING = quote(
    json.dumps({"duration": 900, "first_key": 300, "away": 0, "pastes": 0, "pasted": 0, "device": "desktop"})
)
# `PEOPLE=0.1 make bench …`: a tenth of everybody, to try the benchmark out.
SCALE = float(os.environ.get("PEOPLE", "1"))


class Side(Protocol):
    name: str
    port: int
    words: Sequence[str]

    async def begin(self, visitor: Visitor) -> None: ...
    async def answer(self, visitor: Visitor, number: int, text: str) -> None: ...
    def seconds(self) -> list[float]: ...
    def stored(self) -> list[str]: ...


@dataclass
class Luria:
    server: Server
    words: Sequence[str]
    survey: str

    name = "Luria"

    @property
    def port(self) -> int:
        return self.server.port

    @cached_property
    def documents(self) -> str:
        """What the consent page's form carries: which documents it shows."""
        columns = "consent_document_id, publication_document_id, third_party_document_id"
        with postgres.connect(self.server.place, name="luria") as connection:
            row = connection.execute(f"SELECT {columns} FROM surveys_survey ORDER BY id LIMIT 1").fetchone()  # noqa: S608
        return "-".join(str(pk or 0) for pk in row or ())

    async def begin(self, visitor: Visitor) -> None:
        """The consent page, the instruction, the first task."""
        await visitor.open(self.survey)
        await visitor.send(self.survey, f"start_key={uuid4()}&documents={self.documents}")
        await visitor.open(f"{visitor.path}1/")

    async def answer(self, visitor: Visitor, number: int, text: str) -> None:
        await visitor.send(visitor.path, f"seen=0&timing={TIMING}&text={quote(text)}")

    def seconds(self) -> list[float]:
        return self.server.web_seconds()

    def stored(self) -> list[str]:
        with postgres.connect(self.server.place, name="luria") as connection:
            return [row[0] for row in connection.execute("SELECT text FROM corpus_answer")]


@dataclass
class Person:
    side: Side
    visitor: Visitor
    number: int

    async def begin(self, clock: Clock) -> None:
        begun = time.monotonic()
        await self.side.begin(self.visitor)
        clock.note(begun, self.visitor, self.side.words[0])

    async def take(self, clock: Clock, think: Callable[[], float] | None = None) -> None:
        for task, _ in enumerate(self.side.words, start=1):
            if think:
                await asyncio.sleep(think())
            begun = time.monotonic()
            await self.side.answer(self.visitor, task, text_of(self.number, task))
            clock.note(begun, self.visitor, self.side.words[task] if task < len(self.side.words) else "")


def text_of(person: int, task: int) -> str:
    return f"кошка сидит на столе и играет с мячом {person} {task}"


@dataclass
class Bench:
    """One server's people, figures and CPU seconds."""

    side: Side
    server: Server
    numbers: Iterator[int] = field(default_factory=count)
    lines: list[str] = field(default_factory=list)
    taken: list[int] = field(default_factory=list)  # who took the test to its end
    answers: int = 0  # without a pause, in `span` seconds
    span: float = 0.0
    clock: Clock = field(default_factory=Clock)
    cpu: Counter[str] = field(default_factory=Counter)

    @property
    def rate(self) -> float:
        return self.answers / self.span

    def reset(self) -> None:
        """Forget what was measured so far, but not who took the test."""
        self.answers, self.span, self.clock.seconds = 0, 0.0, []
        self.cpu.clear()

    def people(self, number: int) -> list[Person]:
        return [Person(self.side, Visitor(self.side.port), next(self.numbers)) for _ in range(number)]

    @contextmanager
    def measured(self) -> Iterator[None]:
        before = [*self.side.seconds(), self.server.postgres_seconds(), time.process_time()]
        begun = time.monotonic()
        yield
        self.span += time.monotonic() - begun
        after = [*self.side.seconds(), self.server.postgres_seconds(), time.process_time()]
        names = [*(f"web {number}" for number in range(1, len(before) - 1)), "PostgreSQL", "driver"]
        self.cpu.update(dict(zip(names, (now - then for now, then in zip(after, before, strict=True)), strict=True)))

    async def wave(self) -> None:
        """Everybody at once without a pause; starts are not on the clock."""
        people = self.people(scaled(TOGETHER))
        await together(person.begin(Clock(errors=self.clock.errors)) for person in people)
        with self.measured():
            await together(person.take(self.clock) for person in people)
        self.answers += len(people) * len(self.side.words)
        await self.leave(people)

    async def leave(self, people: list[Person]) -> None:
        self.taken += [person.number for person in people]
        for person in people:
            await person.visitor.close()

    async def thoughtful(self, number: int) -> Clock:
        people, clock, dice = self.people(number), Clock(errors=self.clock.errors), random.Random(number)
        await together(person.begin(Clock(errors=clock.errors)) for person in people)
        await together(person.take(clock, lambda: dice.uniform(0.5 * THINK, 1.5 * THINK)) for person in people)
        await self.leave(people)
        return clock

    async def burst(self) -> Clock:
        """Everybody opens the link in the same moment; after the first task nobody goes on."""
        people, clock = self.people(scaled(BURST)), Clock(errors=self.clock.errors)
        await together(person.begin(clock) for person in people)
        for person in people:
            await person.visitor.close()
        return clock

    def kept(self) -> str:
        """Stored against sent, text by text."""
        sent = Counter(text_of(person, task) for person in self.taken for task in range(1, len(self.side.words) + 1))
        stored = Counter(self.side.stored())
        lost, more = (sent - stored).total(), (stored - sent).total()
        return f"stored {stored.total()} of {sent.total()}, lost {lost}, doubled or strange {more}"


async def together(doings: Iterator[Awaitable[None]]) -> None:
    await asyncio.gather(*doings)


def scaled(people: int) -> int:
    return max(2, round(SCALE * people))


def times(clock: Clock, *shares: float) -> str:
    found = [f"p{100 * share:.0f} {percentile(clock.seconds, share):.0f}" for share in shares]
    return f"{', '.join(found)}, max {1000 * max(clock.seconds):.0f} ms"


async def crowds(benches: list[Bench]) -> None:
    """Each load on one server and at once on the other, so that both meet the machine in the same mood."""
    for _ in range(WAVES):
        for bench in benches:
            await bench.wave()
    for bench in benches:
        cpu = ", ".join(f"{name} {1000 * seconds / bench.answers:.1f}" for name, seconds in bench.cpu.items())
        bench.lines += [
            f"{scaled(TOGETHER)} at once, no pause: {bench.rate:.0f} answers/s; {times(bench.clock, 0.5, 0.95, 0.99)}",
            f"  CPU ms per answer: {cpu}",
        ]
    for people in map(scaled, THOUGHTFUL):
        for bench in benches:
            clock = await bench.thoughtful(people)
            bench.lines.append(f"{people} at {THINK:.0f} s: {times(clock, 0.5, 0.95, 0.99)}")
    for bench in benches:
        clock = await bench.burst()
        bench.lines.append(f"burst of {scaled(BURST)} starts, to the first task: {times(clock, 0.5, 0.99)}")


def measure() -> str:
    with server() as found:
        survey = urlsplit(json.loads(found.manage("luria_setup"))["survey_url"]).path
        with postgres.connect(found.place, name="luria") as connection:
            rows = connection.execute("SELECT text FROM corpus_stimulus WHERE NOT is_practice ORDER BY position")
            words = [row[0] for row in rows]
        found.web_start()
        benches = [Bench(Luria(found, words, survey), found)]
        places = scaled(TOGETHER) * (WAVES + 1) + sum(map(scaled, THOUGHTFUL)) + scaled(BURST)
        other, problem = None, ""
        try:
            other = otree.started(found, words, places)
        except otree.NoOTreeError as error:
            problem = f"\n  oTree is not measured: {error}"
        try:
            return _measured(benches + ([Bench(other, found)] if other else [])) + problem
        finally:
            if other:
                other.program.stop()


def _measured(benches: list[Bench]) -> str:
    load = os.getloadavg()[0]
    for bench in benches:
        asyncio.run(bench.wave())  # every process has loaded its code
        bench.reset()
    asyncio.run(crowds(benches))
    lines = [f"load of the machine before: {load:.1f}"]
    for bench in benches:
        lines.append(bench.side.name)
        lines += [f"  {line}" for line in bench.lines]
        errors = bench.clock.errors
        lines.append(f"  errors {len(errors)}{f' ({errors[0]}, …)' if errors else ''}; {bench.kept()}")
    if len(benches) == 2:
        ours, theirs = benches
        lines.append(f"Luria's answers/s are {ours.rate / theirs.rate:.1f} times oTree's")
    return "\n  ".join(["", *lines])
