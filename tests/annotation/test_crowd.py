"""Sixty raters at once on a real server of several processes, which is killed in the middle."""

import asyncio
import json
import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from benchmarks.crowd import Visitor
from benchmarks.raters import CONFIGURE
from benchmarks.server import Server, server
from embedded import postgres

SITTINGS, STIMULI, K, RATERS = 112, 18, 3, 60  # 2,016 answers
KILL_AFTER = 1_500  # saves
LATE = range(40, 60)  # raters who join in the middle
HANGS = 1_500  # seconds, after which the queue has not ended; a healthy run on two free cores takes 40
GONE = range(0, 10)  # raters who go away with answers in their hands

FORM = "csrfmiddlewaretoken={token}&version=0&c-grammatical={value}&c-logical=1&c-order=0&seconds=2&have={have}"
TOKEN = "t" * 32


@dataclass
class Crowd:
    found: Server
    sessions: list[str]
    campaign: int
    acknowledged: dict[str, int] = field(default_factory=dict)  # place → the value that was chosen
    refused: list[str] = field(default_factory=list)
    dice: random.Random = field(default_factory=lambda: random.Random(1))
    up: asyncio.Event = field(default_factory=asyncio.Event)

    async def rate(self, rater: int) -> None:
        visitor = Visitor(
            self.found.port,
            cookies={"luria_session": self.sessions[rater], "csrftoken": TOKEN},
            headers="Accept: application/json\r\n",
        )
        if rater in LATE:
            while len(self.acknowledged) < KILL_AFTER // 2:
                await asyncio.sleep(0.1)
        leaves_after = self.dice.randrange(5, 20) if rater in GONE else 10_000
        while hand := await self.begin(visitor):
            if await self.judge(visitor, hand, leaves_after):
                break
        await visitor.close()

    async def begin(self, visitor: Visitor) -> list[dict[str, str]]:
        """What the queue gives; empty when it says that nothing is left and nothing will come back."""
        while True:
            data = await self.sent(visitor, f"/rate/c/{self.campaign}/next/", f"csrfmiddlewaretoken={TOKEN}")
            if data["ahead"] or not data["later"]:
                return list(data["ahead"])
            await asyncio.sleep(0.2)

    async def judge(self, visitor: Visitor, hand: list[dict[str, str]], leaves_after: int) -> bool:
        """Judge until the hand is empty. True: went away."""
        for _ in range(leaves_after):
            card = hand.pop(0)
            value = self.dice.randrange(2)
            form = FORM.format(token=TOKEN, value=value, have=",".join(one["place"] for one in hand))
            data = await self.sent(visitor, card["url"], form)
            if "saved" in data:
                self.acknowledged[card["place"]] = value
                held = set(data["held"])  # what lay too long in this hand is with somebody else now
                hand = [one for one in hand if one["place"] in held] + data["ahead"]
            else:
                self.refused.append(data["error"])
            if not hand:
                return False
        return True

    async def sent(self, visitor: Visitor, path: str, form: str) -> dict:
        """As the page does it: what got no answer is sent again, word for word."""
        while True:
            await self.up.wait()
            try:
                await visitor.send(path, form)
                return dict(json.loads(visitor.page))
            except (OSError, asyncio.IncompleteReadError):
                await visitor.close()
                await asyncio.sleep(0.05)

    async def misfortunes(self, gone: list[asyncio.Task[None]]) -> None:
        """The web server is killed and started again; once those who go away are gone, they have been for too long."""
        while len(self.acknowledged) < KILL_AFTER:
            await asyncio.sleep(0.05)
        self.up.clear()
        await asyncio.to_thread(self.found.web.kill)
        await asyncio.to_thread(self.found.web_start)
        self.up.set()
        await asyncio.wait(gone)  # whom a busy server kept waiting goes away later, and holds answers from then on
        with postgres.connect(self.found.place, name="luria") as connection:
            connection.execute(
                "UPDATE annotation_seat AS seat SET active_at = active_at - interval '31 minutes' "
                "FROM annotation_rater AS rater JOIN studies_user AS person ON person.id = rater.user_id "
                "WHERE rater.id = seat.rater_id AND person.username = ANY(%s)",
                [[f"rater{number}" for number in GONE]],
            )

    async def everybody(self) -> None:
        self.up.set()
        async with asyncio.timeout(HANGS), asyncio.TaskGroup() as everyone:
            raters = [everyone.create_task(self.rate(rater)) for rater in range(RATERS)]
            everyone.create_task(self.misfortunes([raters[rater] for rater in GONE]))


def test_sixty_raters_with_joins_leaves_timeouts_and_a_kill() -> None:
    with server() as found:
        found.manage("luria_setup")
        configure = CONFIGURE.format(sittings=SITTINGS, k=K).replace("range(30)", f"range({RATERS})")
        sessions, campaign, places = json.loads(found.manage("shell", "-v0", "-c", configure))
        assert places == SITTINGS * STIMULI * K
        found.web_start()
        crowd = Crowd(found, sessions, campaign)
        # In a thread of its own: the browser's tests leave a running loop in this one.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(lambda: asyncio.run(crowd.everybody())).result()
        with postgres.connect(found.place, name="luria") as connection:
            done = connection.execute(
                "SELECT item_id, count(*), count(DISTINCT rater_id) FROM annotation_place "
                "WHERE state = 'done' GROUP BY item_id"
            ).fetchall()
            values = connection.execute(
                "SELECT place.uuid::text, one.value FROM annotation_place AS place "
                "JOIN annotation_item AS item ON item.id = place.item_id "
                "JOIN annotation_rater AS rater ON rater.id = place.rater_id "
                "JOIN scoring_judgement AS one ON one.answer_id = item.answer_id AND one.judge_id = rater.judge_id "
                "JOIN scoring_criterion AS criterion ON criterion.id = one.criterion_id "
                "WHERE criterion.code = 'grammatical' AND one.retracted_at IS NULL"
            ).fetchall()
            (judgements,) = connection.execute("SELECT count(*) FROM scoring_judgement").fetchone() or (0,)
            (counted,) = connection.execute("SELECT sum(done) FROM annotation_seat").fetchone() or (0,)
    assert len(done) == SITTINGS * STIMULI  # every answer
    assert Counter((n, raters) for _, n, raters in done) == {
        (K, K): SITTINGS * STIMULI
    }  # exactly three, and not one twice
    assert len(values) == places and judgements == 3 * places and counted == places
    stored = {place: int(value) for place, value in values}
    assert {place: stored.get(place) for place in crowd.acknowledged} == crowd.acknowledged
    assert len(crowd.acknowledged) == places
