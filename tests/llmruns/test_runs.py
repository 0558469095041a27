"""What a run does with what a server answers."""

import csv
import io
import json
import uuid
from collections import Counter
from datetime import timedelta

import pytest
from django.db import IntegrityError, connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from corpus.models import Answer, Instrument, Sitting
from corpus.storing import storable_text
from llmruns import calls
from llmruns.calls import call_claim, call_record, calls_sweep, stimulus_work, wait_seconds
from llmruns.keys import KeyMissingError, KeyNameRefusedError
from llmruns.models import Call, Experiment, ModelConfig, Run, RunStimulus
from llmruns.providers.base import RateLimited
from llmruns.services import (
    ExperimentRefusedError,
    NotResumableError,
    experiment_cancel,
    experiment_launch,
    experiment_resume,
    model_config_create,
    model_try,
    prompt_ensure,
    run_resume,
)
from studies.models import AuditEntry
from tests import chat_server as chat
from tests.chat_server import ChatServer
from tests.conftest import Cast
from tests.llmruns.conftest import KEY, ONE, THREE, TWO, Launch, work
from tests.llmruns.vendors import message
from tests.shared_cases import cases as shared_cases

pytestmark = pytest.mark.django_db

NO_VALID_REPLY_RU = "нет ответа в нужном формате"


def only_run(experiment: Experiment) -> Run:
    return Run.objects.get(experiment=experiment)


def states(run: Run, words: str) -> list[str]:
    found = Call.objects.filter(run=run, stimulus__text__contains=words).order_by("pk")
    return [call.kind or call.state for call in found]


def test_it_finishes(launch: Launch, server: ChatServer) -> None:
    experiment = launch(runs=5)
    work(experiment)
    experiment.refresh_from_db()
    assert experiment.state == Experiment.State.FINISHED and experiment.ended_at is not None
    assert len(server.seen) == 15 == Call.objects.filter(state=Call.State.OK).count()
    assert {run.state for run in experiment.runs.all()} == {Run.State.FINISHED}
    assert Answer.objects.filter(outcome="given", text="кошка сидит на столе").count() == 15
    sittings = Sitting.objects.filter(run__experiment=experiment).order_by("ordinal")
    assert [sitting.source_label for sitting in sittings] == [f"Test model · run {n}" for n in range(1, 6)]
    assert {sitting.state for sitting in sittings} == {Sitting.State.FINISHED}


def test_the_call_holds_exactly_what_was_sent_and_what_came(launch: Launch, server: ChatServer) -> None:
    work(launch())
    call = Call.objects.get(stimulus__text__contains=ONE)
    seen = next(seen.json for seen in server.seen if ONE in seen.json["messages"][0]["content"])
    assert call.request == seen
    assert call.request["temperature"] == 1.0 and "seed" not in call.request and len(call.request["messages"]) == 1
    assert "{words}" not in call.request["messages"][0]["content"]
    assert call.raw_reply == '{"results": "кошка сидит на столе"}'
    assert call.response == json.loads(chat.answer("кошка сидит на столе").body)
    assert (call.input_tokens, call.output_tokens, call.http_status, call.finish_reason) == (300, 12, 200, "stop")
    assert call.model_reported == "test-model" and call.attempt == 1 and call.ended_at is not None


def exported(client: Client, name: str) -> list[dict[str, str]]:
    body = b"".join(client.get(f"/studies/ours/exports/{name}.csv").streaming_content)
    return list(csv.DictReader(io.StringIO(body.decode("utf-8-sig"), newline="")))


def test_sg1_a_providers_failure_is_not_the_models_attempt(
    cast: Cast, launch: Launch, server: ChatServer, config: ModelConfig
) -> None:
    valid = chat.answer("готово")
    server.script(ONE, chat.rate_limited(1), chat.rate_limited(1), valid)
    server.script(TWO, chat.BROKEN, chat.HANG, chat.BAD_FORMAT, valid)
    server.script(THREE, chat.BAD_FORMAT)
    experiment = launch()
    work(experiment)

    run = only_run(experiment)
    assert run.state == Run.State.FINISHED
    assert states(run, ONE) == ["rate_limited", "rate_limited", "ok"]
    assert states(run, TWO) == ["server_error", "timeout", "format", "ok"]
    assert states(run, THREE) == ["format"] * 10
    attempts = dict(RunStimulus.objects.filter(run=run).values_list("stimulus__position", "attempts"))
    assert attempts == {1: 1, 2: 2, 3: 10}
    numbered = Call.objects.filter(run=run, attempt__isnull=False).values_list("stimulus__position", "attempt")
    assert sorted(numbered) == [(1, 1), (2, 1), (2, 2), *((3, n) for n in range(1, 11))]

    answers = {answer.stimulus.position: answer for answer in Answer.objects.filter(sitting=run.sitting)}
    assert len(answers) == 3, "exactly one result per model, run and item"
    assert [answers[n].outcome for n in (1, 2, 3)] == ["given", "given", "no_valid_reply"]
    assert answers[3].text == ""
    raw = Call.objects.filter(run=run, state="bad_reply").values_list("raw_reply", flat=True)
    assert set(raw) == {"Вот ответ: кошка сидит на столе."} and len(raw) == 11
    assert server.asked(ONE) == 3 and server.asked(TWO) == 4 and server.asked(THREE) == 10

    client = cast.client(cast.alice)
    client.cookies["luria_language"] = "ru"
    page = client.get(f"/studies/ours/experiments/{experiment.pk}/runs/{run.pk}/").content.decode()
    assert page.count(NO_VALID_REPLY_RU) == 1
    assert page.count("готово") == 2

    answered = exported(client, "answers")
    assert [(row["position"], row["outcome"], row["text"]) for row in answered] == [
        ("1", "given", "готово"),
        ("2", "given", "готово"),
        ("3", "no_valid_reply", ""),
    ]
    called = exported(client, "calls")
    assert len(called) == 3 + 4 + 10
    assert Counter(row["position"] for row in called if row["attempt"]) == {"1": 1, "2": 2, "3": 10}


@pytest.mark.parametrize(
    ("behaviour", "kind"),
    [
        (chat.BAD_FORMAT, "format"),
        (chat.TRUNCATED, "truncated"),
        (chat.EMPTY, "empty"),
        (chat.REFUSED, "refused"),
        (chat.FILTERED, "filtered"),
        (chat.FILTERED_PROMPT, "filtered"),
        (chat.NUL_CONTENT, "format"),
        (chat.SURROGATE, "format"),
        (chat.answer("а" * 2001), "too_long"),
    ],
)
def test_a_completed_reply_that_gives_no_answer_costs_an_attempt(
    launch: Launch, server: ChatServer, behaviour: chat.Behaviour, kind: str
) -> None:
    server.script(ONE, behaviour, chat.answer("готово"))
    experiment = launch()
    work(experiment)
    run = only_run(experiment)
    assert states(run, ONE) == [kind, "ok"]
    assert RunStimulus.objects.get(run=run, stimulus__position=1).attempts == 2
    assert run.state == Run.State.FINISHED


def test_what_the_database_cannot_hold_is_kept_escaped(launch: Launch, server: ChatServer) -> None:
    server.script(ONE, chat.NUL_CONTENT, chat.SURROGATE, chat.NOT_UTF8, chat.NUL_BODY, chat.answer("готово"))
    experiment = launch()
    work(experiment)
    nul, surrogate, bytes_, nul_body, ok = Call.objects.filter(stimulus__text__contains=ONE).order_by("pk")
    assert nul.raw_reply == '{"results": "кошка\\u0000"}' and nul.escaped and nul.response is None
    assert json.loads(nul.raw_body)["choices"][0]["message"]["content"] == '{"results": "кошка\x00"}'
    assert surrogate.raw_reply == "\\ud800" and surrogate.escaped
    assert "\\xff\\xfe" in bytes_.raw_body and bytes_.escaped and bytes_.kind == "not_a_model"
    assert nul_body.raw_body == '{"choices": \\u0000}' and nul_body.escaped
    assert not ok.escaped and ok.raw_body == ""


def test_an_empty_string_in_the_right_format_is_an_answer(launch: Launch, server: ChatServer) -> None:
    server.script(ONE, chat.answer(""))
    work(launch())
    answer = Answer.objects.get(stimulus__text__contains=ONE)
    assert (answer.outcome, answer.text) == ("given", "")


@pytest.mark.parametrize(
    ("behaviour", "kind"),
    [
        (chat.OUT_OF_QUOTA, "quota"),
        (chat.WRONG_KEY, "authentication"),
        (chat.UNKNOWN_MODEL, "unknown_model"),
        (chat.failure(400, "temperature is not supported"), "bad_request"),
        (chat.redirect("http://127.0.0.1:9/elsewhere"), "redirect"),
    ],
)
def test_what_would_fail_again_pauses_every_run_of_the_model(
    cast: Cast, launch: Launch, server: ChatServer, behaviour: chat.Behaviour, kind: str
) -> None:
    server.script("", behaviour)
    experiment = launch(runs=3)
    work(experiment)
    assert len(server.seen) == 1, "the first failure stops the rest"
    assert {(run.state, run.problem) for run in experiment.runs.all()} == {("paused", kind)}
    assert {run.sitting.state for run in experiment.runs.select_related("sitting")} == {"open"}
    experiment.refresh_from_db()
    assert experiment.state == Experiment.State.RUNNING

    server.script("", chat.answer("готово"))
    assert experiment_resume(experiment=experiment, actor=cast.alice) == 3
    work(experiment)
    experiment.refresh_from_db()
    assert experiment.state == Experiment.State.FINISHED
    assert len(server.seen) == 1 + 9
    assert not RunStimulus.objects.exclude(attempts=1).exists()


def test_after_the_deadline_the_run_is_incomplete_and_can_be_resumed(
    cast: Cast, launch: Launch, server: ChatServer
) -> None:
    server.script(ONE, chat.rate_limited(7200), chat.answer("готово"))
    experiment = launch(deadline=900)
    work(experiment)
    run = only_run(experiment)
    assert (run.state, run.problem, run.sitting.state) == ("incomplete", "rate_limited", "open")
    assert server.asked(ONE) == 1 and Answer.objects.count() == 2, "the others have their answers"
    experiment.refresh_from_db()
    assert experiment.state == Experiment.State.FINISHED

    run_resume(run=run, actor=cast.alice)
    work(experiment)
    run.refresh_from_db()
    experiment.refresh_from_db()
    assert (run.state, run.problem, experiment.state) == ("finished", "", "finished")
    assert server.asked(ONE) == 2 and server.asked(TWO) == 1


def test_the_deadline_counts_from_the_first_failure_in_a_row(launch: Launch, server: ChatServer) -> None:
    server.script(ONE, chat.BROKEN)
    experiment = launch(deadline=900)
    run = only_run(experiment)
    item = RunStimulus.objects.get(run=run, stimulus__position=1)
    stimulus_work(run_id=run.pk, stimulus_id=item.stimulus_id)
    item.refresh_from_db()
    assert item.state == "todo" and item.due_at > timezone.now() and item.attempts == 0
    RunStimulus.objects.filter(pk=item.pk).update(
        due_at=timezone.now(), failing_since=timezone.now() - timedelta(seconds=899)
    )
    stimulus_work(run_id=run.pk, stimulus_id=item.stimulus_id)
    item.refresh_from_db()
    assert item.state == "given_up"


def test_what_answers_like_no_model_is_believed_three_times(launch: Launch, server: ChatServer) -> None:
    server.script("", chat.HTML)
    experiment = launch()
    work(experiment)
    run = only_run(experiment)
    assert (run.state, run.problem) == ("incomplete", "not_a_model")
    assert len(server.seen) == 9
    assert Call.objects.first().raw_body == chat.HTML.body.decode()


def test_nothing_is_asked_before_its_time(launch: Launch, server: ChatServer) -> None:
    server.script(ONE, chat.rate_limited(60), chat.answer("готово"))
    run = only_run(launch())
    item = RunStimulus.objects.get(run=run, stimulus__position=1)
    for _ in range(3):
        stimulus_work(run_id=run.pk, stimulus_id=item.stimulus_id)
    assert server.asked(ONE) == 1
    item.refresh_from_db()
    assert item.due_at >= item.failing_since + timedelta(seconds=60)


def test_waits_grow_and_never_undercut_the_server() -> None:
    # 1 s doubled per failure, up to 60 s, each between a half and one and a half of it.
    for failures, delay in [(1, 1), (2, 2), (3, 4), (7, 60), (10_000, 60)]:
        assert all(0.5 * delay <= wait_seconds(failures, None) <= 1.5 * delay for _ in range(50))
    assert all(30 <= wait_seconds(1, 30.0) <= 40 for _ in range(50))
    assert wait_seconds(5, 0.0) <= 1.0


def test_a_finished_stimulus_is_never_asked_again(launch: Launch, server: ChatServer) -> None:
    experiment = launch()
    run = only_run(experiment)
    for _ in range(3):  # doubled messages, while the run goes on
        stimulus_work(run_id=run.pk, stimulus_id=run.sitting.order[0])
    assert len(server.seen) == 1
    work(experiment)
    for item in RunStimulus.objects.all():
        stimulus_work(run_id=item.run_id, stimulus_id=item.stimulus_id)
    assert len(server.seen) == 3


def test_only_one_asks_at_a_time(launch: Launch, server: ChatServer) -> None:
    run = only_run(launch())
    item = RunStimulus.objects.filter(run=run).first()
    claim = call_claim(run_id=run.pk, stimulus_id=item.stimulus_id)
    assert claim is not None
    assert call_claim(run_id=run.pk, stimulus_id=item.stimulus_id) is None
    with pytest.raises(IntegrityError, match="call_at_most_one_in_flight"), transaction.atomic():
        Call.objects.create(config=run.config, run=run, stimulus_id=item.stimulus_id, request={})


def dead_worker(call_id: int) -> None:
    Call.objects.filter(pk=call_id).update(worker="elsewhere:1:1")


def test_the_sweeper_leaves_living_workers_alone(launch: Launch) -> None:
    run = only_run(launch())
    call_claim(run_id=run.pk, stimulus_id=run.sitting.order[0])
    assert calls_sweep() == 0
    assert Call.objects.get().state == Call.State.IN_FLIGHT


def test_the_calls_of_a_dead_worker_are_lost_and_asked_again(launch: Launch, server: ChatServer) -> None:
    experiment = launch()
    run = only_run(experiment)
    claim = call_claim(run_id=run.pk, stimulus_id=run.sitting.order[0])
    dead_worker(claim.call_id)
    assert calls_sweep() == 1
    assert calls_sweep() == 0
    work(experiment)
    lost = Call.objects.get(pk=claim.call_id)
    assert (lost.state, lost.attempt) == ("lost", None)
    run.refresh_from_db()
    assert run.state == Run.State.FINISHED and RunStimulus.objects.filter(attempts=1).count() == 3


def test_a_worker_taken_for_dead_still_gives_its_reply(launch: Launch, server: ChatServer) -> None:
    """The database was away for a moment, and with it the lock: the reply comes after the sweep and counts."""
    experiment = launch()
    run = only_run(experiment)
    claim = call_claim(run_id=run.pk, stimulus_id=run.sitting.order[0])
    dead_worker(claim.call_id)
    calls_sweep()
    call_record(claim=claim, outcome=calls.provider_ask(claim.config, claim.body))
    assert Call.objects.get(pk=claim.call_id).state == Call.State.OK
    work(experiment)
    assert len(server.seen) == 3


def test_a_late_reply_changes_nothing_once_somebody_else_has_asked(launch: Launch, server: ChatServer) -> None:
    server.script(ONE, chat.answer("первый"), chat.answer("второй"))
    experiment = launch()
    run = only_run(experiment)
    claim = call_claim(run_id=run.pk, stimulus_id=run.sitting.order[0])
    late = calls.provider_ask(claim.config, claim.body)
    dead_worker(claim.call_id)
    calls_sweep()
    work(experiment)
    call_record(claim=claim, outcome=late)
    call = Call.objects.get(pk=claim.call_id)
    assert (call.state, call.kind) == ("lost", "late") and "первый" in call.raw_reply
    assert Answer.objects.get(sitting=run.sitting, stimulus_id=run.sitting.order[0]).text == "второй"


def test_a_double_click_launches_once(launch: Launch) -> None:
    key = uuid.uuid4()
    assert launch(launch_key=key) == launch(launch_key=key)
    assert Experiment.objects.count() == 1 and Run.objects.count() == 1


def test_launching_again_opens_further_sittings(launch: Launch) -> None:
    launch(runs=2)
    launch(runs=2)
    assert sorted(Sitting.objects.values_list("ordinal", flat=True)) == [1, 2, 3, 4]


def test_a_missing_key_stops_the_launch(launch: Launch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TEST_API_KEY")
    with pytest.raises(KeyMissingError):
        launch()
    assert not Experiment.objects.exists()


@pytest.mark.parametrize("value", ["sk-0123456789ab\nsecond line", "sk-ключ", "sk-\x7f", " "])
def test_what_cannot_be_a_key_stops_the_launch(launch: Launch, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("TEST_API_KEY", value)
    with pytest.raises(KeyMissingError):
        launch()
    assert not Experiment.objects.exists()


def test_what_no_provider_foresees_pauses_the_run(launch: Launch, config: ModelConfig, server: ChatServer) -> None:
    """Such as an address that was stored before addresses were checked so closely."""
    experiment = launch()
    ModelConfig.objects.filter(pk=config.pk).update(base_url="http://a..b/v1")
    work(experiment)
    assert list(experiment.runs.values_list("state", "problem")) == [("paused", "unexpected")]
    assert set(Call.objects.values_list("state", "kind")) == {("failed", "unexpected")}


def test_a_key_that_vanishes_pauses_the_run(
    launch: Launch, server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = launch()
    monkeypatch.delenv("TEST_API_KEY")
    work(experiment)
    assert (only_run(experiment).state, only_run(experiment).problem) == ("paused", "key_missing")
    assert server.seen == []


@pytest.mark.parametrize("name", ["SECRET_KEY", "DATABASE_URL", "openai_api_key", "X_API_KEY\n", "API_KEY_X", KEY])
def test_only_keys_can_be_named(cast: Cast, name: str) -> None:
    arguments = {"study": cast.study, "label": "x", "base_url": "http://127.0.0.1:9/v1", "model": "m"}
    with pytest.raises(KeyNameRefusedError):
        model_config_create(actor=cast.alice, key_variable=name, **arguments)
    config = model_config_create(actor=cast.alice, **arguments)
    with pytest.raises(IntegrityError, match="modelconfig_key_variable_is_a_key"), transaction.atomic():
        ModelConfig.objects.filter(pk=config.pk).update(key_variable=name)


def test_nothing_of_another_study_is_launched(cast: Cast, instrument: Instrument, config: ModelConfig) -> None:
    with pytest.raises(ExperimentRefusedError):
        experiment_launch(
            study=cast.other_study,
            instrument=instrument,
            prompt=prompt_ensure(study=cast.other_study),
            configs=[config],
            actor=cast.bob,
        )


def test_cancelling_stops_what_is_open_and_keeps_what_is_done(cast: Cast, launch: Launch, server: ChatServer) -> None:
    server.script(THREE, chat.rate_limited(1))
    experiment = launch(runs=2, deadline=10)
    first, second = experiment.runs.order_by("ordinal")
    server.script(THREE, chat.answer("готово"))
    for stimulus_id in first.sitting.order:
        stimulus_work(run_id=first.pk, stimulus_id=stimulus_id)
    claim = call_claim(run_id=second.pk, stimulus_id=second.sitting.order[0])
    assert experiment_cancel(experiment=experiment, actor=cast.alice) == 1
    assert experiment_cancel(experiment=experiment, actor=cast.alice) == 0
    # The one in flight comes back: paid for, so it is kept, and it answers nothing.
    call_record(claim=claim, outcome=calls.provider_ask(claim.config, claim.body))
    work(experiment)
    assert [run.state for run in experiment.runs.order_by("ordinal")] == ["finished", "cancelled"]
    assert [run.sitting.state for run in experiment.runs.order_by("ordinal")] == ["finished", "stopped"]
    assert Call.objects.get(pk=claim.call_id).state == Call.State.OK and Answer.objects.count() == 3
    with pytest.raises(NotResumableError):
        experiment_resume(experiment=experiment, actor=cast.alice)
    assert AuditEntry.objects.filter(action="experiment_cancel").count() == 1


def test_the_record_of_a_call_takes_no_more_than_a_dozen_queries(launch: Launch, server: ChatServer) -> None:
    """A guard for the figure in benchmarks/runs.py."""
    run = only_run(launch())
    claim = call_claim(run_id=run.pk, stimulus_id=run.sitting.order[0])
    outcome = calls.provider_ask(claim.config, claim.body)
    with CaptureQueriesContext(connection) as captured:
        call_record(claim=claim, outcome=outcome)
    made = [query["sql"] for query in captured.captured_queries if "SAVEPOINT" not in query["sql"]]
    assert 0 < len(made) <= 12, made


def test_a_rate_limit_says_how_long(launch: Launch) -> None:
    run = only_run(launch())
    claim = call_claim(run_id=run.pk, stimulus_id=run.sitting.order[0])
    call_record(claim=claim, outcome=RateLimited("slow down", retry_after=5.0))
    call = Call.objects.get(pk=claim.call_id)
    assert (call.state, call.kind, call.detail, call.attempt) == ("failed", "rate_limited", "slow down", None)


@pytest.mark.parametrize("vendor", ["openai_compatible", "anthropic"])
def test_every_shared_reply_comes_through_the_whole_way(
    cast: Cast, server: ChatServer, monkeypatch: pytest.MonkeyPatch, vendor: str
) -> None:
    """Over the wire, through the SDK and into the tables: the verdict of the cases, and the reply as it came."""
    monkeypatch.setenv("TEST_API_KEY", KEY)
    config = model_config_create(
        study=cast.study,
        label=vendor,
        provider=vendor,
        base_url=server.base_url,
        model="test-model",
        key_variable="TEST_API_KEY",
        timeout=20,
        actor=cast.alice,
    )
    replies = shared_cases("llm_outputs")
    assert len(replies) > 40
    for case in replies:
        server.script("", message(case["raw"]) if vendor == "anthropic" else chat.completion(case["raw"]))
        call = model_try(config=config, actor=cast.alice)
        assert call.state == (Call.State.OK if case["verdict"] == "ok" else Call.State.BAD_REPLY), case["why"]
        stored = Call.objects.get(pk=call.pk)
        assert stored.raw_reply == storable_text(case["raw"])[0], case["why"]
