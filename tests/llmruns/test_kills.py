"""kill -9 of a worker, of the broker and of PostgreSQL, in turn, in the middle of many calls.

Of 180 here; LURIA_KILLED_CALLS=900 makes it 900, which is for a machine that has nothing else to do.

The server keeps a journal of its own: of every request, who was asked what, and what it counted. The installation's
tables must agree with it, call by call and to the last cent.
"""

import os
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests import chat_server as chat
from tests.chat_server import Behaviour, ChatServer, Seen
from tests.llmruns.conftest import KEY
from tests.llmruns.installation import Installation, installation
from tests.llmruns.workers import Worker, wait_for

CALLS = int(os.environ.get("LURIA_KILLED_CALLS", "180"))  # answers asked for; 18 of each model
STIMULI = 18
IMPATIENT = "tests.llmruns.impatient_settings"
THREADS = 8

Asked = tuple[str, str]  # model, prompt


@dataclass(frozen=True)
class Entry:
    kind: str  # ok, bad_reply, failed: what the call must come to, if it is not lost
    input_tokens: int = 0
    output_tokens: int = 0

    @property
    def cost(self) -> Decimal:
        """At 2 and 8 dollars for a million."""
        return (Decimal(self.input_tokens) * 2 + Decimal(self.output_tokens) * 8) / 1_000_000


class Journal(ChatServer):
    """Of ten questions one is first answered in bad format (and billed), and one refused by a rate limit (and not)."""

    def __init__(self) -> None:
        super().__init__(latency=0.1)
        self.entries: defaultdict[Asked, list[Entry]] = defaultdict(list)
        self.numbers: dict[Asked, int] = {}
        self.count = 0
        self.held = 0
        self.gate = threading.Event()
        self.gate.set()
        self._journal_lock = threading.Lock()

    def take(self, seen: Seen) -> Behaviour:
        asked = (seen.json["model"], seen.json["messages"][0]["content"])
        with self._journal_lock:
            self.count += 1
            number = self.numbers.setdefault(asked, len(self.numbers))
            script = self.script_of(number)
            entry = script[min(len(self.entries[asked]), len(script) - 1)]
            self.entries[asked].append(entry)
            self.held += not self.gate.is_set()
        self.gate.wait(60)
        if entry.kind == "failed":
            return chat.rate_limited(0.1)
        text = "кошка" if entry.kind == "bad_reply" else '{"results": "кошка сидит на столе"}'
        return counted(text, entry)

    @staticmethod
    def script_of(number: int) -> list[Entry]:
        counts = {"input_tokens": 100 + number, "output_tokens": 5 + number % 90}
        first = {3: [Entry("bad_reply", **counts)], 7: [Entry("failed")]}.get(number % 10, [])
        return [*first, Entry("ok", **counts)]


def counted(text: str, entry: Entry) -> Behaviour:
    body = chat.completion(text).body
    old = b'"prompt_tokens": 300, "completion_tokens": 12'
    assert old in body
    new = f'"prompt_tokens": {entry.input_tokens}, "completion_tokens": {entry.output_tokens}'
    return Behaviour(body=body.replace(old, new.encode()))


@pytest.fixture
def journal() -> Iterator[Journal]:
    with Journal() as server:
        yield server


@pytest.fixture(scope="module")
def place(django_db_setup: None) -> Iterator[Installation]:
    with installation(TEST_API_KEY=KEY) as found:
        yield found


def experiment_of(place: Installation) -> dict[str, Any]:
    return place.rows("SELECT state, problem, spent, reserved, cap FROM llmruns_experiment")[0]


def is_finished(place: Installation) -> bool:
    try:
        return bool(experiment_of(place)["state"] == "finished")
    except psycopg.OperationalError:
        return False


def calls_of(place: Installation) -> list[dict[str, Any]]:
    return place.rows(
        "SELECT c.id, c.state, c.kind, c.attempt, c.cost, c.reserved, c.currency, c.worker, c.input_tokens,"
        " c.output_tokens, c.request->>'model' AS model, c.request->'messages'->0->>'content' AS prompt"
        " FROM llmruns_call c ORDER BY c.id"
    )


def check_against(journal: Journal, calls: list[dict[str, Any]], experiment: dict[str, Any]) -> None:
    """The tables and the server's journal agree, call by call."""
    by_asked: defaultdict[Asked, list[dict[str, Any]]] = defaultdict(list)
    for call in calls:
        by_asked[call["model"], call["prompt"]].append(call)
    assert by_asked.keys() == journal.entries.keys() and len(by_asked) == CALLS
    for asked, entries in journal.entries.items():
        rows = by_asked[asked]
        lost = [row for row in rows if row["state"] == "lost"]
        ended = [row for row in rows if row["state"] != "lost"]
        # One request for every call that ended, and for a lost one at most one: nothing finished was sent again.
        assert len(ended) <= len(entries) <= len(rows)
        assert sum(row["state"] == "ok" for row in rows) == 1
        assert rows[-1]["state"] == "ok", "nothing was asked after the answer"
        script = journal.script_of(journal.numbers[asked])
        if not lost:
            assert [row["state"] for row in rows] == [entry.kind for entry in entries] == [e.kind for e in script]
        for row in ended:
            entry = next(entry for entry in script if entry.kind == row["state"])
            assert (row["cost"], row["currency"], row["reserved"]) == (entry.cost, "USD", None)
            if row["state"] != "failed":
                assert (row["input_tokens"], row["output_tokens"]) == (entry.input_tokens, entry.output_tokens)
        for row in lost:  # possibly billed: it counts with the most that it can cost, unless its reply came late
            assert (row["cost"] is None) != (row["reserved"] is None)
            assert row["reserved"] is None or row["reserved"] >= max(entry.cost for entry in script)
        completed = [row["attempt"] for row in rows if row["state"] in ("ok", "bad_reply")]
        assert completed == list(range(1, 1 + len(completed)))
    counts = Counter(call["state"] for call in calls)
    assert counts["in_flight"] == 0 and counts["ok"] == CALLS
    total = sum((call["cost"] or Decimal(0)) + (call["reserved"] or Decimal(0)) for call in calls)
    assert (experiment["spent"], experiment["reserved"]) == (total, 0)
    billed = sum(entry.cost for entries in journal.entries.values() for entry in entries)
    unseen = sum(call["reserved"] or Decimal(0) for call in calls if call["state"] == "lost")
    known = sum(call["cost"] or Decimal(0) for call in calls)
    assert known <= billed <= known + unseen, "what the server billed lies between what is known and what is feared"
    if not counts["lost"]:
        assert billed == known


@pytest.mark.long
def test_kill_9_of_each_part_in_turn_in_the_middle_of_the_calls(
    place: Installation, journal: Journal, tmp_path: Path
) -> None:
    log = tmp_path / "worker.log"
    place.launch(journal.base_url, models=CALLS // STIMULI, stimuli=STIMULI, cap="50")
    options = {"prefix": "", "log": log, "threads": THREADS, "DJANGO_SETTINGS_MODULE": IMPATIENT, **place.extra}

    def reached(share: float) -> None:
        wait_for(lambda: journal.count >= CALLS * share, seconds=150, log=log)

    workers = [Worker(**options, PGAPPNAME="doomed"), Worker(**options)]
    try:
        reached(0.2)
        workers[0].kill()
        # What it had sent to PostgreSQL before it died is still done.
        doomed = "SELECT FROM pg_stat_activity WHERE application_name = 'doomed'"
        wait_for(lambda: not place.rows(doomed), seconds=60, log=log)
        dead = f":{workers[0].process.pid}:"
        in_flight = {call["id"] for call in calls_of(place) if call["state"] == "in_flight" and dead in call["worker"]}
        workers.append(Worker(**options))
        reached(0.45)
        place.valkey_kill()
        place.valkey_start()
        reached(0.7)
        journal.gate.clear()
        wait_for(lambda: journal.held >= 2 * THREADS, seconds=150, log=log)  # all threads wait for a reply
        place.postgres_kill()
        journal.gate.set()
        wait_for(
            lambda: log.read_text(errors="replace").count("call_not_recorded_yet") >= 2 * THREADS, seconds=60, log=log
        )
        place.postgres_start()
        # It looks for lost calls at once, when the locks of the living may not yet be back.
        workers.append(Worker(**options))
        wait_for(lambda: is_finished(place), seconds=240, log=log)
    finally:
        for worker in workers:
            if worker.process.poll() is None:
                worker.kill()
    calls = calls_of(place)
    check_against(journal, calls, experiment_of(place))
    lost = {call["id"] for call in calls if call["state"] == "lost"}
    assert lost == in_flight, "the dead lose what they had in flight, and the living nothing, whatever else is killed"
    assert len({call["worker"] for call in calls}) >= 3, "they share the work"
    assert place.rows("SELECT DISTINCT state FROM llmruns_run") == [{"state": "finished"}]
    assert place.rows("SELECT count(*) AS n FROM corpus_answer WHERE outcome = 'given'") == [{"n": CALLS}]
    assert KEY not in log.read_text(encoding="utf-8", errors="replace")
