"""What was lost on the way is found in the database."""

import uuid
from collections.abc import Iterator
from datetime import timedelta

import pytest
from celery import current_app
from django.db import OperationalError
from django.utils import timezone

from llmruns import calls, liveness, queue, tasks
from llmruns.calls import call_claim, call_record, calls_sweep, stimulus_work
from llmruns.liveness import living_workers, worker_is_alive, worker_lock_release, worker_name
from llmruns.models import Call, Experiment, Run, RunStimulus
from llmruns.services import work_recover
from llmruns.wording import KINDS, REMEDIES, model_difference
from tests.chat_server import ChatServer
from tests.llmruns.conftest import Launch, work

pytestmark = pytest.mark.django_db


@pytest.fixture
def own_queue(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    name = f"test-{uuid.uuid4().hex}"
    monkeypatch.setattr(queue, "QUEUE", name)
    yield name
    with current_app.connection_for_write() as broker:
        broker.channel().queue_delete(name)


def test_the_queue_knows_its_length(own_queue: str) -> None:
    assert queue.queue_length() == 0
    queue.stimuli_enqueue([(1, 1), (1, 2)])
    assert queue.queue_length() == 2


def test_a_broker_that_is_away_loses_nothing(monkeypatch: pytest.MonkeyPatch, launch: Launch) -> None:
    def away(*_: object, **__: object) -> None:
        raise ConnectionRefusedError

    monkeypatch.setattr(current_app._get_current_object().producer_pool, "acquire", away)
    launch()
    queue.stimuli_enqueue([(1, 1)])
    assert RunStimulus.objects.filter(state="todo").count() == 3


def test_lost_messages_are_sent_again_once_the_queue_is_empty(launch: Launch, own_queue: str) -> None:
    launch()
    assert work_recover(everything=False) == 0, "they may still be on their way"
    RunStimulus.objects.update(due_at=timezone.now() - timedelta(seconds=31))
    assert work_recover(everything=False) == 3
    assert queue.queue_length() == 3
    assert work_recover(everything=False) == 0, "a queue that is long does not grow by itself"


def test_a_worker_that_starts_sends_everything(launch: Launch, own_queue: str) -> None:
    experiment = launch()
    assert work_recover(everything=True) == 3
    work(experiment)
    assert work_recover(everything=True) == 0


def test_an_end_that_nobody_noticed_is_noticed(launch: Launch, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = launch()
    monkeypatch.setattr(calls, "experiment_settle", lambda **_: None)
    work(experiment)
    experiment.refresh_from_db()
    assert experiment.state == Experiment.State.RUNNING and experiment.runs.get().state == Run.State.FINISHED
    work_recover(everything=False)
    experiment.refresh_from_db()
    assert experiment.state == Experiment.State.FINISHED


def test_a_reply_is_kept_while_the_database_is_away(
    launch: Launch, server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = launch().runs.get()
    tries: list[int] = []

    def away_twice(**arguments: object) -> None:
        tries.append(1)
        if len(tries) < 3:
            raise OperationalError
        call_record(**arguments)

    monkeypatch.setattr(calls, "call_record", away_twice)
    monkeypatch.setattr(calls, "RECORD_WAITS", (0, 0, 0))
    monkeypatch.setattr(calls.connection, "close", lambda: None)
    stimulus_work(run_id=run.pk, stimulus_id=run.sitting.order[0])
    assert len(tries) == 3 and len(server.seen) == 1
    assert Call.objects.get().state == Call.State.OK


def test_a_process_lives_as_long_as_its_lock() -> None:
    name = worker_name()
    assert worker_name() == name
    assert worker_is_alive(name, living_workers())
    worker_lock_release()
    assert not worker_is_alive(name, living_workers())
    for nonsense in ("", "host:1:", "host:1:x", "host:1:²"):
        assert not worker_is_alive(nonsense, {0, 1, 2})


def test_the_lock_is_taken_again_when_its_connection_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    name = worker_name()
    liveness._lock.connection.close()
    monkeypatch.setattr(liveness, "CHECK_EVERY", 0.0)
    assert worker_name() == name
    assert worker_is_alive(name, living_workers())


@pytest.mark.parametrize(
    ("asked", "got", "difference"),
    [
        ("gpt-4o", "gpt-4o", "same"),
        ("openai/gpt-4o", "GPT-4o", "same"),
        ("qwen3:free", "qwen/qwen3", "same"),
        ("gpt-4o", "gpt-4o-2024-08-06", "snapshot"),
        ("claude-3-haiku", "claude-3-haiku-20240307", "snapshot"),
        ("chatgpt-4o-latest", "chatgpt-4o-2025-01-29", "snapshot"),
        ("gpt-4", "gpt-4-0613", "snapshot"),
        ("gpt-4o", "gpt-4o-mini-2024-07-18", "different"),
        ("gpt-4o-2024-05-13", "gpt-4o-2024-08-06", "different"),
        ("gpt-4o-2024-05-13", "gpt-4o", "different"),
        ("gpt-5", "gpt-3.5-turbo", "different"),
        ("gpt-4o", "", "unstated"),
        ("GigaChat-2-Max", "GigaChat-2-Max:2.0.28.2", "snapshot"),
        ("GigaChat-2", "GigaChat-2-Max:2.0.28.2", "different"),
        ("GigaChat-2-Max", "GigaChat-2-Pro", "different"),
        ("GigaChat", "GigaChat:1.0.26.20", "snapshot"),
        ("Qwen/Qwen3.5-9B", "qwen3.5-9b", "same"),
        ("qwen/qwen3-235b-a22b", "qwen/qwen3-235b-a22b-04-28", "snapshot"),
        ("Qwen/Qwen3.5-9B", "Qwen/Qwen3.5-27B", "different"),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5-20250929", "same"),
        ("claude-sonnet-4", "claude-sonnet-4-5-20250929", "different"),
        ("yandexgpt/rc", "gpt://b1gfolder/yandexgpt/rc", "same"),
        ("gpt://b1gfolder/yandexgpt/rc", "yandexgpt/rc", "same"),
        ("yandexgpt-lite/latest", "gpt://b1gfolder/yandexgpt-lite/latest", "same"),
        ("yandexgpt-lite/latest", "gpt://b1gfolder/yandexgpt-lite", "same"),
        ("gpt://b1gfolder/yandexgpt-lite", "gpt://b1gfolder/yandexgpt-lite/latest", "same"),
        ("yandexgpt-lite/latest", "yandexgpt-lite", "same"),
        ("yandexgpt-lite/latest", "gpt://b1gfolder/yandexgpt/latest", "different"),
        ("yandexgpt/rc", "gpt://b1gfolder/yandexgpt/latest", "different"),
        ("yandexgpt/rc", "yandexgpt-5.1", "snapshot"),
        ("yandexgpt/latest", "gpt://b1gfolder/yandexgpt-5-pro", "snapshot"),
        ("yandexgpt-lite/latest", "yandexgpt-5-lite", "snapshot"),
        ("yandexgpt-lite/latest", "yandexgpt-5.1", "different"),
        ("yandexgpt-lite/latest@suffix1", "gpt://b1gfolder/yandexgpt-lite/latest@suffix2", "different"),
        ("gpt://b1gfolder/gpt-oss-120b/latest", "gpt-oss-120b", "same"),
        ("yandexgpt/rc", "", "unstated"),
    ],
)
def test_a_dated_version_is_no_other_model(asked: str, got: str, difference: str) -> None:
    assert model_difference(asked, got) == difference


def test_every_remedy_is_for_a_kind() -> None:
    assert set(REMEDIES) <= set(KINDS)


# --- PostgreSQL away for a moment --------------------------------------------------------------------------------


def test_after_a_restart_of_the_database_nobody_is_taken_for_dead_at_once(
    launch: Launch, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = launch().runs.get()
    call_claim(run_id=run.pk, stimulus_id=run.sitting.order[0])
    Call.objects.update(worker="elsewhere:1:1")  # its lock is gone, as are all others
    monkeypatch.setattr(calls, "locks_dropped_at", timezone.now)
    assert calls_sweep() == 0
    before = timezone.now() - timedelta(seconds=1)
    monkeypatch.setattr(calls, "locks_dropped_at", lambda: before)
    assert calls_sweep() == 1, "a call from after the restart has no such excuse"


def test_locks_count_as_dropped_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveness, "SETTLED_AFTER", timedelta(days=9999))
    started = liveness.locks_dropped_at()
    assert started is not None
    worker_name()
    liveness._lock.connection.close()
    liveness.worker_lock_check(at_once=True)
    again = liveness.locks_dropped_at()
    assert again is not None and again > started, "this process has just found its lock gone"
    monkeypatch.setattr(liveness, "SETTLED_AFTER", timedelta(0))
    assert liveness.locks_dropped_at() is None


def test_a_claim_of_which_nobody_learned_is_given_up(launch: Launch) -> None:
    """The database went away as it was written: the process lives, and no thread of it asks."""
    run = launch().runs.get()
    first, second, _ = run.sitting.order
    claims = [call_claim(run_id=run.pk, stimulus_id=stimulus_id) for stimulus_id in (first, second)]
    assert calls_sweep() == 0
    Call.objects.update(sent_at=timezone.now() - timedelta(seconds=61))
    calls._asking.add(claims[0].call_id)
    try:
        assert calls_sweep() == 1
    finally:
        calls._asking.discard(claims[0].call_id)
    assert [call.state for call in Call.objects.order_by("pk")] == [Call.State.IN_FLIGHT, Call.State.LOST]


def test_what_is_recorded_twice_is_recorded_once(launch: Launch, server: ChatServer) -> None:
    """The database takes the record and goes away before it can say so."""
    run = launch().runs.get()
    claim = call_claim(run_id=run.pk, stimulus_id=run.sitting.order[0])
    outcome = calls.provider_ask(claim.config, claim.body)
    call_record(claim=claim, outcome=outcome)
    before = Call.objects.values().get()
    call_record(claim=claim, outcome=outcome)
    assert Call.objects.values().get() == before
    assert RunStimulus.objects.get(run=run, stimulus_id=claim.stimulus_id).attempts == 1


def test_a_message_is_held_while_the_database_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[int] = []

    def away_twice(**_: object) -> None:
        tries.append(1)
        if len(tries) < 3:
            raise OperationalError

    monkeypatch.setattr(tasks, "stimulus_work", away_twice)
    monkeypatch.setattr(tasks, "CLAIM_WAITS", (0, 0, 0))
    monkeypatch.setattr(tasks.connection, "close", lambda: None)
    tasks.stimulus_ask(1, 1)
    assert len(tries) == 3
