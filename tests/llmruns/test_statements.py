"""The statements of a call's way: their locks, and what the object mapper would have read and written instead."""

import threading

import psycopg
import pytest
from django.core.exceptions import FieldDoesNotExist
from django.db import close_old_connections, connection
from kombu import Connection

from config.celery import app
from llmruns import calls
from llmruns.calls import call_claim, call_record
from llmruns.models import Call, Credential, ModelConfig, RunStimulus
from llmruns.rows import assignments, insert_statement
from tests.chat_server import ChatServer
from tests.llmruns.conftest import Launch
from tests.llmruns.workers import database_url, wait_for

WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


@pytest.mark.django_db(transaction=True)
def test_a_record_waits_for_its_run_before_it_locks_anything_else(launch: Launch, server: ChatServer) -> None:
    run = launch().runs.get()
    first, second = run.sitting.order[:2]
    claim = call_claim(run_id=run.pk, stimulus_id=first)
    assert claim is not None
    outcome = calls.provider_ask(claim.config, claim.body)

    def record() -> None:
        try:
            call_record(claim=claim, outcome=outcome)
        finally:
            close_old_connections()
            connection.close()

    with psycopg.connect(database_url()) as other, psycopg.connect(database_url(), autocommit=True) as watcher:
        other.execute("SELECT FROM llmruns_run WHERE id = %s FOR UPDATE", [run.pk])
        recording = threading.Thread(target=record)
        recording.start()
        try:
            wait_for(lambda: watcher.execute(WAITING).fetchone()[0] == 1, seconds=30)
            # Whoever cancels holds the run and then wants these: a record that held them would never let go.
            other.execute("SELECT FROM llmruns_runstimulus WHERE run_id = %s FOR UPDATE NOWAIT", [run.pk])
            other.execute("SELECT FROM llmruns_call WHERE id = %s FOR UPDATE NOWAIT", [claim.call_id])
        finally:
            other.rollback()
            recording.join(30)
    assert Call.objects.get().state == Call.State.OK
    assert RunStimulus.objects.get(stimulus=first).state == RunStimulus.State.DONE
    assert RunStimulus.objects.get(stimulus=second).state == RunStimulus.State.TODO


@pytest.mark.django_db
def test_a_claim_reads_the_configuration_as_it_is(launch: Launch, config: ModelConfig) -> None:
    ModelConfig.objects.filter(pk=config.pk).update(
        extra_body={"top_k": 20}, accepts=["temperature"], max_output_tokens=100, temperature=0.5
    )
    run = launch().runs.get()
    claim = call_claim(run_id=run.pk, stimulus_id=run.sitting.order[0])
    assert claim is not None
    stored = ModelConfig.objects.get(pk=config.pk)
    fields = [field.attname for field in ModelConfig._meta.concrete_fields]
    assert [getattr(claim.config, name) for name in fields] == [getattr(stored, name) for name in fields]
    assert claim.config.credential is None
    call = Call.objects.get(pk=claim.call_id)
    assert call.request == claim.body and call.request["top_k"] == 20 and "max_tokens" not in call.request
    assert call.asked == {"temperature": 0.5, "top_p": None, "max_output_tokens": 100}
    assert call.sent_at is not None and call.used == {} and call.response is None


def test_a_column_that_is_not_there_is_an_error() -> None:
    with pytest.raises(FieldDoesNotExist):
        assignments(Call, ("state", "colour"))
    columns = insert_statement(Credential).partition("VALUES")[0]
    assert '"study_id"' in columns and '"id"' not in columns


def test_a_channel_of_the_broker_keeps_one_client() -> None:
    for url in (app.conf.broker_url, "redis+socket:///nowhere"):
        with Connection(url) as broker:
            assert broker.get_transport_cls().__module__ == "config.broker"
    with app.connection_for_write() as broker:
        channel = broker.channel()
        assert channel._create_client() is channel._create_client()
        before = channel._create_client()
        channel._disconnect_pools()
        assert channel._create_client() is not before
