"""What calls cost, and the cap that is never passed."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.db.models import Sum
from django.utils import timezone

from corpus.models import Instrument
from llmruns import calls
from llmruns.budget import CapRefusedError, cap_set, experiment_pause
from llmruns.calls import call_claim, call_record, calls_sweep, stimulus_work
from llmruns.models import Call, Experiment, ModelConfig, Price, Run
from llmruns.pricing import bound, call_cost, price_at, tokens_cost
from llmruns.sending import due_stimuli
from llmruns.services import ExperimentRefusedError, experiment_resume
from studies.models import AuditEntry
from tests import chat_server as chat
from tests.chat_server import ChatServer
from tests.conftest import Cast
from tests.llmruns.conftest import ONE, TWO, Launch, work

DAY = date(2026, 1, 10)
PriceAdd = Callable[..., Price]


@pytest.fixture
def price_add(config: ModelConfig) -> PriceAdd:
    def add(**changes: object) -> Price:
        values = {
            "study": config.study,
            "provider": config.provider,
            "model": config.model,
            "currency": "USD",
            "input_million": Decimal(2),
            "output_million": Decimal(8),
            "valid_from": DAY,
        }
        return Price.objects.create(**{**values, **changes})

    return add


@pytest.fixture
def limited(config: ModelConfig) -> ModelConfig:
    """The configuration with a limit of output tokens, so that it can be capped."""
    ModelConfig.objects.filter(pk=config.pk).update(max_output_tokens=1000)
    config.refresh_from_db()
    return config


pytestmark = pytest.mark.django_db


# --- prices and costs --------------------------------------------------------------------------------------------


def test_a_price_holds_from_its_day_and_the_studys_own_stands_above(config: ModelConfig, price_add: PriceAdd) -> None:
    assert price_at(config, DAY) is None
    built_in = price_add(study=None, valid_from=DAY + timedelta(days=30))
    old, new = price_add(), price_add(valid_from=DAY + timedelta(days=10))
    price_add(model="another")
    assert price_at(config, DAY - timedelta(days=1)) is None
    assert price_at(config, DAY) == old == price_at(config, DAY + timedelta(days=9))
    assert price_at(config, DAY + timedelta(days=10)) == new
    assert price_at(config, DAY + timedelta(days=60)) == new, "the built-in one is newer, and the study's own counts"
    Price.objects.filter(study=config.study).delete()
    assert price_at(config, DAY + timedelta(days=60)) == built_in


def test_a_cost_is_tokens_times_price(price_add: PriceAdd) -> None:
    price = price_add(cached_input_million=Decimal("0.5"))
    # 200 · 2 + 100 · 0.5 + 12 · 8 = 546 millionths.
    found = tokens_cost(price, input_tokens=300, cached_tokens=100, output_tokens=12)
    assert (found.value, found.currency, found.reason) == (Decimal("0.000546"), "USD", "")
    # More cached than came in is a provider's slip: nothing is negative. 300 · 0.5 + 12 · 8 = 246.
    assert tokens_cost(price, input_tokens=300, cached_tokens=900, output_tokens=12).value == Decimal("0.000246")
    assert tokens_cost(price, input_tokens=300, output_tokens=0).value == Decimal("0.0006")


def test_what_is_not_known_is_none_with_a_reason(price_add: PriceAdd) -> None:
    assert tokens_cost(None, input_tokens=1, output_tokens=1).reason == "no_price"
    price = price_add(output_million=Decimal(10) ** 7)
    unknown = tokens_cost(price, input_tokens=None, output_tokens=1)
    assert (unknown.value, unknown.reason, unknown.currency) == (None, "no_tokens", "USD")
    absurd = tokens_cost(price, input_tokens=1, output_tokens=2**31 - 1)
    assert (absurd.value, absurd.reason) == (None, "absurd")


def test_a_bound_counts_bytes_and_the_output_limit(price_add: PriceAdd) -> None:
    price = price_add()
    body = {"messages": [{"role": "user", "content": "кошка"}], "max_tokens": 10}
    # {"messages": [{"role": "user", "content": "кошка"}], "max_tokens": 10}: 65 characters, five of them of two bytes.
    size = len('{"messages": [{"role": "user", "content": ""}], "max_tokens": 10}') + 10
    assert bound(body, price).value == (Decimal(size) * 2 + Decimal(10) * 8) / 1_000_000
    # What extra parameters ask for counts: the larger limit, each of several replies.
    assert bound(body | {"max_completion_tokens": 100, "n": 3}, price).value > Decimal(100 * 3 * 8) / 1_000_000
    assert bound({"messages": []}, price).reason == "no_output_limit"
    assert bound({"max_tokens": -1}, price).reason == "no_output_limit"
    assert bound(body, None).reason == "no_price"
    assert bound(body, price, currency="RUB").reason == "currency"
    assert bound(body | {"tools": []}, price).reason == "tools"


def test_a_call_keeps_its_price_and_its_cost(launch: Launch, price_add: PriceAdd) -> None:
    price = price_add()
    work(launch())
    # 300 tokens in and 12 out: 300 · 2 + 12 · 8 = 696 millionths.
    found = set(Call.objects.values_list("price", "currency", "cost", "reserved"))
    assert found == {(price.pk, "USD", Decimal("0.000696"), None)}
    price_add(valid_from=timezone.now().date(), input_million=Decimal(1000))
    assert Call.objects.first().cost == Decimal("0.000696")


def test_without_a_price_a_cost_is_unknown_and_not_nothing(launch: Launch) -> None:
    work(launch())
    call = Call.objects.first()
    assert (call.cost, call.currency, call.price) == (None, "", None)
    assert call_cost(call).reason == "no_price"


def test_a_refused_call_costs_nothing_and_one_that_went_silent_may_have_been_billed(
    launch: Launch, limited: ModelConfig, price_add: PriceAdd, server: ChatServer
) -> None:
    price_add()
    server.script(ONE, chat.rate_limited(1), chat.HANG, chat.answer("готово"))
    experiment = launch()
    work(experiment)
    limit, hang, ok = Call.objects.filter(stimulus__text=ONE).order_by("pk")
    assert (limit.cost, call_cost(limit).reason) == (0, "not_billed")
    assert (hang.cost, call_cost(hang).reason) == (None, "lost")
    assert hang.reserved == bound(hang.request, hang.price).value > Decimal("0.008")  # 1000 tokens out alone
    assert ok.cost == Decimal("0.000696")


def test_a_lost_call_costs_at_most_its_reservation(launch: Launch, limited: ModelConfig, price_add: PriceAdd) -> None:
    price_add()
    run = launch().runs.get()
    claim = call_claim(run_id=run.pk, stimulus_id=run.sitting.order[0])
    Call.objects.update(worker="elsewhere:1:1")
    calls_sweep()
    call = Call.objects.get()
    assert (call.state, call.cost, call.currency) == ("lost", None, "USD")
    assert call.reserved == bound(claim.body, call.price).value
    assert call_cost(call).reason == "lost"


# --- the cap -----------------------------------------------------------------------------------------------------


def capped(launch: Launch, cap: str, **changes: object) -> Experiment:
    return launch(cap=Decimal(cap), currency="USD", **changes)


def test_what_cannot_be_bounded_cannot_be_capped(
    cast: Cast, launch: Launch, config: ModelConfig, price_add: PriceAdd
) -> None:
    def reason() -> str:
        with pytest.raises(ExperimentRefusedError) as refused:
            capped(launch, "1")
        assert refused.value.reason == "uncappable" and not Experiment.objects.exists()
        return refused.value.uncappable[0][1]

    assert reason() == "no_price"
    price_add(currency="RUB")
    assert reason() == "currency"
    price_add(valid_from=DAY + timedelta(days=1))
    assert reason() == "no_output_limit"
    ModelConfig.objects.update(max_output_tokens=10)
    config.refresh_from_db()
    capped(launch, "1")


@pytest.mark.parametrize(("cap", "currency"), [("0", "USD"), ("-1", "USD"), ("1", ""), ("1", "EUR"), ("1e9", "USD")])
def test_a_cap_is_an_amount_of_a_currency(launch: Launch, cap: str, currency: str) -> None:
    with pytest.raises(ExperimentRefusedError, match="cap"):
        launch(cap=Decimal(cap), currency=currency)


def test_an_experiment_within_its_cap_finishes_and_the_sums_are_right(
    launch: Launch, limited: ModelConfig, price_add: PriceAdd, server: ChatServer
) -> None:
    price_add()
    server.script(ONE, chat.BAD_FORMAT, chat.rate_limited(1), chat.answer("готово"))
    experiment = capped(launch, "1", runs=2)
    work(experiment)
    experiment.refresh_from_db()
    assert experiment.state == "finished"
    # Six answers and one bad reply of 696 millionths; the rate limit cost nothing.
    assert (experiment.spent, experiment.reserved) == (7 * Decimal("0.000696"), 0)
    assert Call.objects.aggregate(sum=Sum("cost"))["sum"] == experiment.spent


def test_at_the_cap_the_experiment_pauses_and_sends_nothing(
    cast: Cast, launch: Launch, limited: ModelConfig, price_add: PriceAdd, server: ChatServer
) -> None:
    price_add()
    most = bound(_body(launch, limited), price_at(limited, timezone.now().date())).value
    experiment = capped(launch, str(most + Decimal("0.0008")), runs=2)
    work(experiment)
    experiment.refresh_from_db()
    # The first costs 0.000696, the second still fits; after it 0.001392 are spent and a third might pass the cap.
    assert (experiment.state, experiment.problem) == ("paused", "cap")
    assert len(server.seen) == 2 and experiment.spent == 2 * Decimal("0.000696")
    assert due_stimuli(experiment_id=experiment.pk) == []
    assert set(experiment.runs.values_list("state", flat=True)) <= {"running", "pending"}
    assert AuditEntry.objects.filter(action="experiment_pause", detail__reason="cap").count() == 1

    with pytest.raises(CapRefusedError, match="low"):
        cap_set(experiment=experiment, cap=Decimal("0.001"), actor=cast.alice)
    cap_set(experiment=experiment, cap=Decimal(1), actor=cast.alice)
    assert experiment_resume(experiment=experiment, actor=cast.alice) == 2
    work(experiment)
    experiment.refresh_from_db()
    assert (experiment.state, experiment.problem) == ("finished", "")
    assert len(server.seen) == 6 and experiment.spent == 6 * Decimal("0.000696")


def _body(launch: Launch, config: ModelConfig) -> dict[str, object]:
    """Of the longest stimulus's call, as it is sent."""
    prompt = launch().prompt.text
    return max(
        (calls.question_body(config, prompt.replace("{words}", words)) for words in (ONE, TWO)),
        key=lambda body: len(str(body).encode()),
    )


def test_a_call_waits_while_those_in_flight_may_give_money_back(
    launch: Launch, limited: ModelConfig, price_add: PriceAdd, server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    price_add()
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr("llmruns.sending.stimuli_enqueue", lambda pairs, **_: sent.extend(pairs))
    most = bound(_body(launch, limited), price_at(limited, timezone.now().date())).value
    experiment = capped(launch, str(most + Decimal("0.005")))
    run = experiment.runs.get()
    first, second, third = run.sitting.order
    claim = call_claim(run_id=run.pk, stimulus_id=first)
    assert call_claim(run_id=run.pk, stimulus_id=second) is None, "two at their dearest would pass the cap"
    experiment.refresh_from_db()
    assert (experiment.state, experiment.waits_for_money) == ("running", True)
    with _callbacks():
        call_record(claim=claim, outcome=calls.provider_ask(claim.config, claim.body))
    for left in (1, 0):
        [(_, next_id)] = sent
        assert next_id in (second, third), "whoever finishes sends the next"
        claim = call_claim(run_id=run.pk, stimulus_id=next_id)
        assert claim is not None
        sent.clear()
        with _callbacks():
            call_record(claim=claim, outcome=calls.provider_ask(claim.config, claim.body))
        assert len(sent) == left, "nobody need ask in vain first"
    experiment.refresh_from_db()
    assert not experiment.waits_for_money and experiment.state == "finished"


class _callbacks:  # noqa: N801 - reads as what it does
    """A test's transaction never commits: what waits for it runs at the end of the block."""

    def __enter__(self) -> None:
        connection.run_on_commit.clear()

    def __exit__(self, *_: object) -> None:
        callbacks, connection.run_on_commit = connection.run_on_commit, []
        for _sids, callback, _robust in callbacks:
            callback()


def test_a_reply_that_was_paid_for_is_recorded_above_the_cap(
    launch: Launch, limited: ModelConfig, price_add: PriceAdd, server: ChatServer
) -> None:
    """A provider that counts more tokens than its own limit lets it."""
    price_add(output_million=Decimal(100_000))
    server.script("", chat.answer("готово"))
    experiment = capped(launch, "101")
    run = experiment.runs.get()
    claim = call_claim(run_id=run.pk, stimulus_id=run.sitting.order[0])
    outcome = calls.provider_ask(claim.config, claim.body)
    object.__setattr__(outcome, "output_tokens", 1100)
    call_record(claim=claim, outcome=outcome)
    experiment.refresh_from_db()
    assert experiment.spent == Decimal("110.0006") > experiment.cap
    assert Call.objects.get().state == "ok"
    assert call_claim(run_id=run.pk, stimulus_id=run.sitting.order[1]) is None
    experiment.refresh_from_db()
    assert (experiment.state, experiment.problem) == ("paused", "cap")


def test_a_lost_call_keeps_its_reservation_as_spent_until_its_reply_comes(
    launch: Launch, limited: ModelConfig, price_add: PriceAdd, server: ChatServer
) -> None:
    price_add()
    experiment = capped(launch, "1")
    run = experiment.runs.get()
    claim = call_claim(run_id=run.pk, stimulus_id=run.sitting.order[0])
    held = Call.objects.get().reserved
    experiment.refresh_from_db()
    assert (experiment.spent, experiment.reserved) == (0, held)
    Call.objects.update(worker="elsewhere:1:1")
    assert calls_sweep() == 1
    experiment.refresh_from_db()
    assert (experiment.spent, experiment.reserved) == (held, 0)
    work(experiment)
    experiment.refresh_from_db()
    assert experiment.spent == held + 3 * Decimal("0.000696")
    # Too late to answer, and in time to say what it cost.
    call_record(claim=claim, outcome=calls.provider_ask(claim.config, claim.body))
    experiment.refresh_from_db()
    assert (experiment.spent, experiment.reserved) == (4 * Decimal("0.000696"), 0)
    call = Call.objects.get(pk=claim.call_id)
    assert (call.state, call.kind, call.cost, call.reserved) == ("lost", "late", Decimal("0.000696"), None)


def test_a_cap_is_changed_only_where_there_is_one(cast: Cast, launch: Launch) -> None:
    with pytest.raises(CapRefusedError, match="uncapped"):
        cap_set(experiment=launch(), cap=Decimal(1), actor=cast.alice)


# --- pause -------------------------------------------------------------------------------------------------------


def test_a_person_pauses_and_resumes(cast: Cast, launch: Launch, server: ChatServer) -> None:
    experiment = launch()
    run = experiment.runs.get()
    claim = call_claim(run_id=run.pk, stimulus_id=run.sitting.order[0])
    assert experiment_pause(experiment=experiment, actor=cast.alice)
    assert not experiment_pause(experiment=experiment, actor=cast.alice), "pausing twice is pausing once"
    assert call_claim(run_id=run.pk, stimulus_id=run.sitting.order[1]) is None
    work(experiment)
    assert server.seen == []
    call_record(claim=claim, outcome=calls.provider_ask(claim.config, claim.body))
    assert Call.objects.get().state == "ok", "what was in flight ends and counts"
    assert experiment_resume(experiment=experiment, actor=cast.alice) == 1
    work(experiment)
    experiment.refresh_from_db()
    assert experiment.state == "finished" and len(server.seen) == 3


def test_the_last_call_in_flight_finishes_a_paused_experiment(cast: Cast, launch: Launch, server: ChatServer) -> None:
    experiment = launch()
    run = experiment.runs.get()
    for stimulus_id in run.sitting.order[:2]:
        stimulus_work(run_id=run.pk, stimulus_id=stimulus_id)
    claim = call_claim(run_id=run.pk, stimulus_id=run.sitting.order[2])
    experiment_pause(experiment=experiment, actor=cast.alice)
    call_record(claim=claim, outcome=calls.provider_ask(claim.config, claim.body))
    experiment.refresh_from_db()
    assert (experiment.state, experiment.problem) == ("finished", "")


# --- many at once ------------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_32_calls_in_flight_never_pass_the_cap_of_one_dollar(
    cast: Cast, instrument: Instrument, launch: Launch, limited: ModelConfig, price_add: PriceAdd, server: ChatServer
) -> None:
    """Real threads, each with its own connection. A reply costs 0.0321 dollars, and can cost 0.1 and more.

    After every request that the server sees, what is spent and what may still be spent is at most the cap; in the end
    about thirty of the ninety stimuli have been paid for.
    """
    price_add(input_million=Decimal(7), output_million=Decimal(2500))  # 300 · 7 + 12 · 2500 = 32100 millionths
    ModelConfig.objects.update(max_output_tokens=30)  # 30 · 2500 = 75000 millionths at most
    limited.refresh_from_db()
    experiment = capped(launch, "1", configs=[limited], runs=30)
    server.latency = 0.02
    sums: list[Decimal] = []
    stop = threading.Event()

    def watch() -> None:
        while not stop.is_set():
            spent, reserved = Experiment.objects.values_list("spent", "reserved").get(pk=experiment.pk)
            sums.append(spent + reserved)
        connection.close()

    def ask(pair: tuple[int, int]) -> None:
        stimulus_work(run_id=pair[0], stimulus_id=pair[1])
        connection.close()

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        with ThreadPoolExecutor(32) as pool:
            while due := due_stimuli(experiment_id=experiment.pk):
                list(pool.map(ask, due))
    finally:
        stop.set()
        watcher.join()
    experiment.refresh_from_db()
    assert (experiment.state, experiment.problem) == ("paused", "cap")
    assert max(sums) <= 1 and len(sums) > 10
    cost = Call.objects.aggregate(sum=Sum("cost"))["sum"]
    assert cost == experiment.spent == len(server.seen) * Decimal("0.0321") <= 1
    assert experiment.reserved == 0
    # It stops only when the next call might pass the cap: no more than one bound is left over.
    most = max(bound(call.request, call.price).value for call in Call.objects.select_related("price"))
    assert experiment.spent + most > 1
    assert Call.objects.exclude(state="ok").count() == 0
    assert Run.objects.filter(experiment=experiment, state="paused").count() == 0
