"""Raters at 20,000 answers: in Luria as `make up` runs it and, in the same run, in Label Studio.

One save is what the judging page does between two answers: here one POST, which brings the next answer with it; in
Label Studio the POST of the annotation and the request for the next task. docs/benchmarks.md says how to read it.
"""

import asyncio
import json
import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from benchmarks import label_studio
from benchmarks.crowd import Clock, Visitor
from benchmarks.participants import times, together
from benchmarks.server import Server, server
from embedded import postgres

SITTINGS, STIMULI, PER_ANSWER = 1_112, 18, 3
CROWDS = (3, 30)  # raters at once
THINK = 2.0  # seconds on average
# `SHORT=0.1 make bench …`: a tenth of every wave, to try the benchmark out.
SCALE = float(os.environ.get("SHORT", "1"))
SECONDS = 15.0 * SCALE  # of a wave without a pause
THOUGHTFUL = max(2, round(12 * SCALE))  # saves by each rater who thinks

CONFIGURE = """
import json
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from django.utils import timezone
from annotation.layout import Plan
from annotation.opening import campaign_open
from annotation.services import rater_ensure
from corpus.models import Answer, Instrument, Respondent, Sitting
from corpus.services import instrument_freeze
from studies.models import Role, User
from studies.services import membership_set

instrument = Instrument.objects.first()
study, now = instrument.study, timezone.now()
people = Respondent.objects.bulk_create(Respondent(study=study, kind="human") for _ in range({sittings}))
instrument_freeze(instrument=instrument, actor=None)
stimuli = list(instrument.stimuli.filter(is_practice=False))
sittings = Sitting.objects.bulk_create(
    Sitting(respondent=one, instrument=instrument, source_label="benchmark", state="finished",
            order=[stimulus.pk for stimulus in stimuli], started_at=now, finished_at=now)
    for one in people
)
Answer.objects.bulk_create(
    (Answer(sitting=one, stimulus=stimulus, outcome="given", text=f"{{stimulus.original}} {{number}}")
     for number, one in enumerate(sittings) for stimulus in stimuli),
    batch_size=5000,
)
sessions = []
for number in range(30):
    user = User.objects.create_user(f"rater{{number}}")
    membership_set(user=user, study=study, role=Role.RATER, actor=None)
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.create()
    sessions.append(session.session_key)
campaign = campaign_open(study=study, title="benchmark", raters_per_answer={k}, seed=1, actor=user,
                         plan=Plan(identical="separately"))
print(json.dumps([sessions, campaign.pk, campaign.n_places]))
"""


class Side(Protocol):
    """A tool with its raters, each of whom saves one judgement after another."""

    name: str

    async def begin(self, rater: int) -> "Rater": ...
    def seconds(self) -> list[float]: ...
    def stored(self) -> str: ...


class Rater(Protocol):
    async def save(self) -> bool:
        """Save one judgement and have the next answer. False: it went wrong."""

    async def leave(self) -> None: ...


@dataclass
class LuriaRater:
    visitor: Visitor
    token: str
    cards: list[dict[str, str]]

    async def save(self) -> bool:
        card = self.cards.pop(0)
        have = ",".join(other["place"] for other in self.cards)
        form = f"csrfmiddlewaretoken={self.token}&version=0&c-grammatical=1&c-logical=1&c-order=0&seconds=2&have={have}"
        await self.visitor.send(card["url"], form)
        if self.visitor.status != 200:
            return False
        self.cards += json.loads(self.visitor.page)["ahead"]
        return bool(self.cards)

    async def leave(self) -> None:
        await self.visitor.close()


@dataclass
class Luria:
    server: Server
    sessions: list[str]
    campaign: int

    name = "Luria"

    async def begin(self, rater: int) -> LuriaRater:
        token = "t" * 32
        visitor = Visitor(self.server.port, cookies={"luria_session": self.sessions[rater], "csrftoken": token})
        visitor.headers = "Accept: application/json\r\nAccept-Language: ru,en;q=0.8\r\n"
        await visitor.send(f"/rate/c/{self.campaign}/next/", f"csrfmiddlewaretoken={token}")
        return LuriaRater(visitor, token, json.loads(visitor.page)["ahead"])

    def seconds(self) -> list[float]:
        return self.server.web_seconds()

    def stored(self) -> str:
        with postgres.connect(self.server.place, name="luria") as connection:
            query = """
            SELECT count(*), count(*) FILTER (WHERE n > %s), count(*) FILTER (WHERE raters <> n), sum(n)
            FROM (SELECT count(*) AS n, count(DISTINCT rater_id) AS raters FROM annotation_place
                  WHERE state = 'done' GROUP BY item_id) AS judged"""
            items, over, twice, saved = connection.execute(query, [PER_ANSWER]).fetchone() or ()
            (judgements,) = connection.execute("SELECT count(*) FROM scoring_judgement").fetchone() or ()
        return (
            f"{saved} saves stored as {judgements} judgements at {items} answers; "
            f"more than {PER_ANSWER} raters: {over}, a rater twice: {twice}"
        )


@dataclass
class Bench:
    """One tool's figures and CPU seconds."""

    side: Side
    server: Server
    lines: list[str] = field(default_factory=list)
    rates: dict[int, float] = field(default_factory=dict)
    errors: int = 0

    @contextmanager
    def measured(self, clock: Clock, people: int) -> Iterator[None]:
        before = [*self.side.seconds(), self.server.postgres_seconds(), time.process_time()]
        begun = time.monotonic()
        yield
        span, saves = time.monotonic() - begun, len(clock.seconds)
        after = [*self.side.seconds(), self.server.postgres_seconds(), time.process_time()]
        names = [*(f"web {number}" for number in range(1, len(before) - 1)), "PostgreSQL", "driver"]
        cpu = Counter({name: now - then for name, now, then in zip(names, after, before, strict=True)})
        self.rates[people] = saves / span
        spent = ", ".join(f"{name} {1000 * seconds / saves:.1f}" for name, seconds in cpu.items())
        self.lines += [
            f"{people} at once, no pause: {saves / span:.0f} saves/s (n {saves}); {times(clock, 0.5, 0.95)}",
            f"  CPU ms per save: {spent}",
        ]

    async def wave(self, people: int, *, seconds: float = SECONDS, silent: bool = False) -> None:
        raters = [await self.side.begin(number) for number in range(people)]
        clock, end = Clock(), time.monotonic() + seconds

        async def work(rater: Rater) -> None:
            while time.monotonic() < end and await self.save(rater, clock):
                pass

        if silent:
            await together(work(rater) for rater in raters)
        else:
            with self.measured(clock, people):
                await together(work(rater) for rater in raters)
        for rater in raters:
            await rater.leave()

    async def save(self, rater: Rater, clock: Clock) -> bool:
        begun = time.monotonic()
        is_saved = await rater.save()
        clock.seconds.append(time.monotonic() - begun)
        self.errors += not is_saved
        return is_saved

    async def thoughtful(self, people: int) -> None:
        raters = [await self.side.begin(number) for number in range(people)]
        clock, dice = Clock(), random.Random(people)

        async def work(rater: Rater) -> None:
            for _ in range(THOUGHTFUL):
                await asyncio.sleep(dice.uniform(0.5 * THINK, 1.5 * THINK))
                if not await self.save(rater, clock):
                    break

        await together(work(rater) for rater in raters)
        for rater in raters:
            await rater.leave()
        self.lines.append(f"{people} at {THINK:.0f} s: {times(clock, 0.5, 0.95)} (n {len(clock.seconds)})")


async def crowds(benches: list[Bench]) -> None:
    """Each load on one tool and at once on the other, so that both meet the machine in the same mood."""
    for people in CROWDS:
        for bench in benches:
            await bench.wave(people)
    for people in CROWDS:
        for bench in benches:
            await bench.thoughtful(people)


def measure() -> str:
    with server() as found:
        found.manage("luria_setup")
        configure = CONFIGURE.format(sittings=SITTINGS, k=PER_ANSWER)
        begun = time.monotonic()
        sessions, campaign, places = json.loads(found.manage("shell", "-v0", "-c", configure))
        ready = (
            f"{SITTINGS * STIMULI} answers, {places} places (made in {time.monotonic() - begun:.0f} s with the data)"
        )
        found.web_start()
        benches = [Bench(Luria(found, sessions, campaign), found)]
        other, problem = None, ""
        try:
            other = label_studio.started(found, SITTINGS * STIMULI, PER_ANSWER, max(CROWDS))
        except label_studio.NoLabelStudioError as error:
            problem = f"\n  Label Studio is not measured: {error}"
        try:
            return "\n  ".join(["", ready, *_measured(benches + ([Bench(other, found)] if other else []))]) + problem
        finally:
            if other:
                other.program.stop()


def _measured(benches: list[Bench]) -> list[str]:
    lines = [f"load of the machine before: {os.getloadavg()[0]:.1f}"]
    for bench in benches:
        asyncio.run(bench.wave(3, seconds=3, silent=True))  # every process has loaded its code
    asyncio.run(crowds(benches))
    for bench in benches:
        lines += [bench.side.name, *(f"  {line}" for line in bench.lines)]
        lines.append(f"  errors {bench.errors}; {bench.side.stored()}")
    if len(benches) == 2:
        ours, theirs = benches
        ratios = ", ".join(f"{ours.rates[people] / theirs.rates[people]:.1f} with {people}" for people in CROWDS)
        lines.append(f"Luria's saves/s are times Label Studio's: {ratios}")
    return lines
