"""A real worker that judges, killed in the middle."""

import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path

import pytest
from celery import current_app
from django.db import connection

from corpus.models import Instrument
from llmruns import judging as judging_module
from llmruns.judge_choosing import Selection
from llmruns.judging import judging_launch
from llmruns.models import Call, Judging, ModelConfig
from scoring.models import Judgement
from scoring.services import paper_rubric
from tests.chat_server import ChatServer
from tests.conftest import Cast
from tests.llmruns.conftest import KEY
from tests.llmruns.judges import model, verdict
from tests.llmruns.workers import wait_for, worker

pytestmark = pytest.mark.django_db(transaction=True)

ANSWERS = 120


@pytest.fixture
def prefix(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Messages of this test alone. This process sends none: a worker finds its work in the database."""
    prefix = f"test-{uuid.uuid4().hex}-"
    monkeypatch.setattr(judging_module, "judging_send", lambda *_, **__: None)
    yield prefix
    with current_app.connection_for_write() as broker:
        client = broker.channel().client
        keys = list(client.scan_iter(f"{prefix}*", count=1000))
        if keys:
            client.delete(*keys)


def test_a_killed_worker_loses_only_what_was_in_flight(
    cast: Cast, instrument: Instrument, config: ModelConfig, server: ChatServer, prefix: str, tmp_path: Path
) -> None:
    server.default = verdict(1, 0, 1)
    server.latency = 0.2
    for number in range(ANSWERS // 3):
        model(instrument, tuple(f"{number} кошка сидит {text} тут" for text in ("раз", "два", "три")))
    judging = judging_launch(
        study=cast.study,
        config=config,
        rubric=paper_rubric(),
        selection=Selection(instrument=instrument),
        actor=cast.alice,
    )
    log = tmp_path / "worker.log"
    with worker(prefix=prefix, log=log, threads=8, TEST_API_KEY=KEY) as first:
        wait_for(lambda: len(server.seen) >= 40, seconds=120, log=log)
        first.kill()
    done = set(Call.objects.filter(state="ok").values_list("answer_id", flat=True))
    in_flight = set(Call.objects.filter(state="in_flight").values_list("pk", flat=True))
    assert 0 < len(in_flight) <= 8 and len(done) >= 20

    with worker(prefix=prefix, log=log, threads=8, TEST_API_KEY=KEY):
        wait_for(
            lambda: Judging.objects.filter(pk=judging.pk, state=Judging.State.FINISHED).exists(), seconds=180, log=log
        )
    connection.close()
    calls = Call.objects.filter(judging=judging)
    assert set(calls.filter(state="lost").values_list("pk", flat=True)) == in_flight
    assert calls.filter(state="ok").count() == ANSWERS and calls.count() == ANSWERS + len(in_flight)
    assert not calls.filter(answer__in=done).exclude(state="ok").exists(), "what was judged was not asked again"
    assert Judgement.objects.filter(round=judging.round_id).count() == 3 * ANSWERS
    judging.refresh_from_db()
    assert (judging.spent, judging.reserved) == (Decimal(0), Decimal(0)), "there is no cap to hold"
    assert KEY not in log.read_text(encoding="utf-8", errors="replace")


def test_two_windows_that_launch_at_once_launch_once(
    cast: Cast, instrument: Instrument, config: ModelConfig, prefix: str
) -> None:
    model(instrument)
    key, rubric = uuid.uuid4(), paper_rubric()
    start = threading.Barrier(2)

    def launch(_: int) -> int:
        try:
            start.wait(30)
            return judging_launch(
                study=cast.study,
                config=config,
                rubric=rubric,
                selection=Selection(instrument=instrument),
                actor=cast.alice,
                launch_key=key,
            ).pk
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        found = set(pool.map(launch, range(2)))
    assert len(found) == 1 == Judging.objects.count() and Judging.objects.get().items.count() == 3
