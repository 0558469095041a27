"""Real workers, killed in the middle."""

import uuid
from collections import Counter
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from celery import current_app
from django.db.models import Count

from corpus.importing import read_stimuli
from corpus.models import Answer, Instrument
from corpus.services import instrument_create
from llmruns import services
from llmruns.models import Call, Experiment, ModelConfig, Price, Run, RunStimulus
from llmruns.pricing import bound
from llmruns.services import experiment_launch, prompt_ensure
from tests import chat_server as chat
from tests.chat_server import Behaviour, ChatServer
from tests.conftest import ROOT, Cast
from tests.llmruns.conftest import KEY
from tests.llmruns.workers import wait_for, worker

pytestmark = pytest.mark.django_db(transaction=True)

RUNS, STIMULI = 50, 18


@pytest.fixture
def prefix(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Messages of this test alone. This process sends none: a worker finds its work in the database."""
    prefix = f"test-{uuid.uuid4().hex}-"
    monkeypatch.setattr(services, "stimuli_enqueue", lambda *_, **__: None)
    yield prefix
    with current_app.connection_for_write() as broker:
        client = broker.channel().client
        keys = list(client.scan_iter(f"{prefix}*", count=1000))
        if keys:
            client.delete(*keys)


@pytest.fixture
def study_instrument(cast: Cast) -> Instrument:
    return instrument_create(
        study=cast.study,
        slug="paper",
        title="Paper",
        language="ru",
        instruction="Составьте предложение.",
        stimuli=read_stimuli((ROOT / "study" / "stimuli.csv").read_bytes()),
        actor=cast.alice,
    )


def launch(cast: Cast, instrument: Instrument, config: ModelConfig, runs: int, **changes: Any) -> Experiment:
    return experiment_launch(
        study=cast.study,
        instrument=instrument,
        prompt=prompt_ensure(study=cast.study),
        configs=[config],
        runs=runs,
        actor=cast.alice,
        **changes,
    )


def is_finished(experiment: Experiment) -> bool:
    return Experiment.objects.filter(pk=experiment.pk, state=Experiment.State.FINISHED).exists()


def test_a_killed_worker_loses_only_what_was_in_flight(
    cast: Cast, study_instrument: Instrument, config: ModelConfig, server: ChatServer, prefix: str, tmp_path: Path
) -> None:
    server.latency = 0.2
    experiment = launch(cast, study_instrument, config, RUNS)
    log = tmp_path / "worker.log"
    with worker(prefix=prefix, log=log, TEST_API_KEY=KEY) as first:
        wait_for(lambda: len(server.seen) >= 300, seconds=120, log=log)
        first.kill()
    finished = set(Call.objects.filter(state=Call.State.OK).values_list("run_id", "stimulus_id"))
    in_flight = set(Call.objects.filter(state=Call.State.IN_FLIGHT).values_list("pk", flat=True))
    assert 0 < len(in_flight) <= 32 and len(finished) > 200

    with worker(prefix=prefix, log=log, TEST_API_KEY=KEY):
        wait_for(lambda: is_finished(experiment), seconds=180, log=log)

    lost = set(Call.objects.filter(state=Call.State.LOST).values_list("pk", flat=True))
    assert lost == in_flight, "each call in flight is marked as possibly billed, and no other"
    assert Call.objects.filter(state=Call.State.OK).count() == RUNS * STIMULI
    assert Call.objects.count() == RUNS * STIMULI + len(lost)
    # What the server saw: every call once, but for those lost before they were sent.
    assert RUNS * STIMULI <= len(server.seen) <= RUNS * STIMULI + len(lost)
    twice = Call.objects.values("run_id", "stimulus_id").annotate(n=Count("pk")).filter(n__gt=1)
    assert {(row["run_id"], row["stimulus_id"]) for row in twice}.isdisjoint(finished)
    assert len(twice) == len(lost)
    seen = Counter(seen.json["messages"][0]["content"] for seen in server.seen)
    again = Counter(Call.objects.filter(pk__in=lost).values_list("stimulus_id", flat=True))
    by_stimulus = {call.stimulus_id: call.request["messages"][0]["content"] for call in Call.objects.all()}
    for stimulus_id, prompt in by_stimulus.items():
        assert RUNS <= seen[prompt] <= RUNS + again[stimulus_id]
    assert Answer.objects.count() == RUNS * STIMULI
    assert set(Run.objects.values_list("state", flat=True)) == {Run.State.FINISHED}
    assert KEY not in log.read_text(encoding="utf-8", errors="replace")


def test_two_workers_share_the_work_and_nobody_is_asked_twice(
    cast: Cast, study_instrument: Instrument, config: ModelConfig, server: ChatServer, prefix: str, tmp_path: Path
) -> None:
    words = list(study_instrument.stimuli.values_list("text", flat=True))
    for text in words:
        server.script(text, chat.rate_limited(1), chat.BROKEN, chat.answer("кошка сидит на столе"))
    ModelConfig.objects.update(timeout=60)
    config.refresh_from_db()
    server.gather(2)
    experiment = launch(cast, study_instrument, config, 1)
    log = tmp_path / "worker.log"
    options = {"prefix": prefix, "log": log, "threads": 1, "TEST_API_KEY": KEY}
    with worker(**options), worker(**options):
        wait_for(lambda: is_finished(experiment), seconds=90, log=log)
    assert len(server.seen) == 3 * STIMULI
    assert not RunStimulus.objects.exclude(attempts=1).exists()
    assert len(set(Call.objects.values_list("worker", flat=True))) == 2


def test_two_processes_with_32_calls_in_flight_never_pass_a_cap_of_one_dollar(
    cast: Cast, study_instrument: Instrument, config: ModelConfig, server: ChatServer, prefix: str, tmp_path: Path
) -> None:
    """A reply in three is as dear as a reply can be, the others are cheap: the room that these give back is used."""
    Price.objects.create(
        study=cast.study,
        provider=config.provider,
        model=config.model,
        currency="USD",
        input_million=Decimal(2),
        output_million=Decimal(700),
        valid_from=date(2026, 1, 1),
    )
    ModelConfig.objects.update(max_output_tokens=30, timeout=60)
    config.refresh_from_db()
    cheap = chat.answer("кошка сидит на столе")
    server.default = _tokens(cheap, 300, 1)  # 300 · 2 + 1 · 700 = 1300 millionths
    for text in list(study_instrument.stimuli.values_list("text", flat=True))[::3]:
        server.script(text, _tokens(cheap, 300, 30))  # 300 · 2 + 30 · 700 = 21600 millionths
    server.latency = 0.05
    server.gather(32)
    experiment = launch(cast, study_instrument, config, 8, cap=Decimal(1), currency="USD")
    sums: list[Decimal] = []

    def is_paused() -> bool:
        state, spent, reserved = Experiment.objects.values_list("state", "spent", "reserved").get(pk=experiment.pk)
        sums.append(spent + reserved)
        return bool(state == "paused" and not Call.objects.filter(state="in_flight").exists())

    log = tmp_path / "worker.log"
    options = {"prefix": prefix, "log": log, "threads": 16, "TEST_API_KEY": KEY}
    with worker(**options), worker(**options):
        wait_for(is_paused, seconds=180, log=log)
    experiment.refresh_from_db()
    assert experiment.problem == "cap" and max(sums) <= 1
    assert len(set(Call.objects.values_list("worker", flat=True))) == 2
    costs = list(Call.objects.filter(state="ok").values_list("cost", flat=True))
    assert set(costs) == {Decimal("0.0013"), Decimal("0.0216")}
    assert len(costs) == Call.objects.count() == len(server.seen)
    assert sum(costs) == experiment.spent <= 1 and experiment.reserved == 0
    most = max(bound(call.request, call.price).value for call in Call.objects.select_related("price"))
    assert experiment.spent + most > 1, "it stops only where the next call might pass the cap"
    assert most - Decimal("0.0216") < Decimal("0.006"), "the dear replies cost nearly what was reserved for them"


def _tokens(behaviour: Behaviour, prompt: int, completion: int) -> Behaviour:
    old = b'"prompt_tokens": 300, "completion_tokens": 12'
    assert old in behaviour.body
    new = f'"prompt_tokens": {prompt}, "completion_tokens": {completion}'.encode()
    return Behaviour(body=behaviour.body.replace(old, new))
