"""Limits of a provider, shared by all workers, with nobody asking the queue again and again."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta

import pytest
from django.db import connection
from django.db.models import F
from django.utils import timezone

from llmruns import calls, limits, sending
from llmruns.calls import Asked, call_claim, call_record, stimulus_work
from llmruns.limits import LimitTakenError, configs_under, limit_rows, limit_set, messages_for
from llmruns.models import Call, ModelConfig, Price, ProviderLimit, Run, RunStimulus
from llmruns.pricing import price_at
from llmruns.sending import due_stimuli, work_due
from llmruns.services import model_config_create
from llmruns.statements import terms_of
from llmruns.tasks import stimulus_ask
from llmruns.turns import IN_A_ROW, turn_pass
from tests.chat_server import ChatServer
from tests.conftest import Cast
from tests.llmruns.conftest import Launch

pytestmark = pytest.mark.django_db
Pairs = list[tuple[int, int]]


def limit_of(cast: Cast, **values: object) -> ProviderLimit:
    arguments = {"provider": "openai_compatible", "base_url": "", "parallel": None, "per_minute": None} | values
    return limit_set(study=cast.study, actor=cast.alice, **arguments)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Pairs:
    """What would go into the queue."""
    found: Pairs = []
    monkeypatch.setattr(sending, "stimuli_enqueue", lambda pairs, **_: found.extend(pairs))
    return found


@pytest.fixture
def wakes(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    found: list[float] = []
    monkeypatch.setattr(limits, "limit_enqueue", lambda _, countdown: found.append(countdown))
    return found


def finish(claim: calls.Claim) -> None:
    call_record(claim=claim, outcome=calls.provider_ask(claim.config, claim.body))
    turn_pass(Asked(claim.call_id, claim.limit_id))


def test_no_more_than_so_many_at_once_and_the_finisher_sends_the_next(
    cast: Cast, launch: Launch, server: ChatServer, sent: Pairs
) -> None:
    limit = limit_of(cast, parallel=2)
    experiment = launch()
    run = experiment.runs.get()
    assert work_due(experiment_id=experiment.pk) == [(run.pk, pk) for pk in run.sitting.order[:2]]
    first, second, third = (call_claim(run_id=run.pk, stimulus_id=pk) for pk in run.sitting.order)
    assert first is not None and second is not None and third is None
    assert Call.objects.count() == 2 and messages_for(limit) == 0 and sent == []
    finish(first)
    assert sent == [(run.pk, run.sitting.order[2])]
    assert call_claim(run_id=run.pk, stimulus_id=run.sitting.order[2]) is not None


def test_the_look_for_lost_work_sends_no_more_than_there_is_room_for(cast: Cast, launch: Launch) -> None:
    limit_of(cast, parallel=2)
    experiment = launch(runs=10)
    assert len(due_stimuli(experiment_id=experiment.pk)) == 30
    assert len(work_due()) == 2
    run = experiment.runs.order_by("ordinal").first()
    for pk in run.sitting.order[:2]:
        call_claim(run_id=run.pk, stimulus_id=pk)
    assert work_due() == []


def test_a_limit_per_minute_has_one_message_on_its_way(
    cast: Cast, launch: Launch, server: ChatServer, sent: Pairs, wakes: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits.transaction, "on_commit", lambda callback: callback())
    limit = limit_of(cast, per_minute=2)
    experiment = launch(runs=2)
    run, other = experiment.runs.order_by("ordinal")
    # One more than there is room for: the one that is refused sends the wake-up.
    assert len(work_due()) == 3
    for pk in run.sitting.order[:2]:
        stimulus_work(run_id=run.pk, stimulus_id=pk)
    assert len(server.seen) == 2 and wakes == []
    for pk in other.sitting.order:
        stimulus_work(run_id=other.pk, stimulus_id=pk)
    assert len(server.seen) == 2 and len(wakes) == 1 and 0 < wakes[0] <= 60
    limit.refresh_from_db()
    assert limit.wake_at == Call.objects.earliest("sent_at").sent_at + timedelta(seconds=60)

    Call.objects.update(sent_at=F("sent_at") - timedelta(seconds=60))
    sent.clear()
    sending.limit_wake(limit_id=limit.pk)
    assert len(sent) == 3
    for run_id, pk in sent:
        stimulus_work(run_id=run_id, stimulus_id=pk)
    assert len(server.seen) == 4 and len(wakes) == 2, "the third one was refused and sent the next"


def test_a_limit_of_an_address_stands_before_that_of_the_provider(
    cast: Cast, config: ModelConfig, server: ChatServer
) -> None:
    other = model_config_create(
        study=cast.study, label="Other", base_url="http://127.0.0.1:9/v1", model="m", actor=cast.alice
    )
    everything, own = limit_of(cast, parallel=1), limit_of(cast, parallel=2, base_url=config.base_url)
    assert list(configs_under(own)) == [config] and list(configs_under(everything)) == [other]
    assert [(row.limit.pk, row.models) for row in limit_rows(cast.study)] == [(everything.pk, 1), (own.pk, 1)]
    with pytest.raises(LimitTakenError):
        limit_of(cast, parallel=5)


def test_the_statement_of_a_claim_agrees_with_the_rules(cast: Cast, config: ModelConfig) -> None:
    other = model_config_create(
        study=cast.study, label="Other", base_url="http://127.0.0.1:9/v1", model="m", actor=cast.alice
    )
    days = [date(2026, month, 1) for month in (1, 2, 3)]
    for study in (cast.study, cast.other_study, None):
        for model in (config.model, other.model):
            for day in days[:2] if study is None else days[1:]:
                Price.objects.create(
                    study=study,
                    provider=config.provider,
                    model=model,
                    currency="USD",
                    input_million=1,
                    output_million=1,
                    valid_from=day,
                )
    everything, own = limit_of(cast, parallel=1), limit_of(cast, parallel=2, base_url=config.base_url)
    limit_set(study=cast.other_study, provider=config.provider, base_url="", parallel=1, per_minute=1, actor=cast.bob)
    for one in (config, other):
        for day in (date(2025, 12, 31), *days, date(2027, 1, 1)):
            price, limit = terms_of(one, day)
            expected = price_at(one, day)
            assert price == (expected.pk if expected else None)
            assert limit == next(found.pk for found in (everything, own) if one in configs_under(found))
    ProviderLimit.objects.all().delete()
    assert terms_of(config, days[0])[1] is None


def test_a_trial_and_another_experiment_use_the_same_limit(cast: Cast, launch: Launch, config: ModelConfig) -> None:
    limit_of(cast, parallel=1)
    one, two = launch().runs.get(), launch().runs.get()
    assert call_claim(run_id=one.pk, stimulus_id=one.sitting.order[0]) is not None
    assert call_claim(run_id=two.pk, stimulus_id=two.sitting.order[0]) is None
    Call.objects.update(state="ok", attempt=1)
    trial = Call.objects.create(config=config, purpose="trial", request={})
    assert call_claim(run_id=two.pk, stimulus_id=two.sitting.order[0]) is None
    Call.objects.filter(pk=trial.pk).update(state="ok")
    assert call_claim(run_id=two.pk, stimulus_id=two.sitting.order[0]) is not None


def test_without_a_limit_nothing_holds_back(launch: Launch) -> None:
    run = launch().runs.get()
    claims = [call_claim(run_id=run.pk, stimulus_id=pk) for pk in run.sitting.order]
    assert all(claim is not None and claim.limit_id is None for claim in claims)


@pytest.mark.django_db(transaction=True)
def test_sixteen_threads_keep_a_limit_of_three_and_lose_nothing(
    cast: Cast, launch: Launch, server: ChatServer, sent: Pairs
) -> None:
    """Each message is worked off once, as a worker does; there is no other source of messages than the finishers."""
    limit_of(cast, parallel=3)
    experiment = launch(runs=10)
    server.latency = 0.01
    most: list[int] = []
    lock = threading.Lock()
    take = server.take

    def counted(seen: object) -> object:
        with lock:
            most.append(Call.objects.filter(state="in_flight").count())
            connection.close()
        return take(seen)

    server.take = counted

    def ask(pair: tuple[int, int]) -> None:
        stimulus_ask(run_id=pair[0], stimulus_id=pair[1])
        connection.close()

    messages = due_stimuli(experiment_id=experiment.pk)  # all thirty at once: what finds no room is dropped
    with ThreadPoolExecutor(16) as pool:
        while messages:
            list(pool.map(ask, messages))
            with lock:
                messages, sent[:] = list(sent), []
    experiment.refresh_from_db()
    assert experiment.state == "finished", "every dropped message was made up for by a finisher"
    assert 0 < max(most) <= 3
    assert Run.objects.exclude(state="finished").count() == 0
    assert RunStimulus.objects.exclude(state="done").count() == 0 and len(server.seen) == 30
    assert timezone.now() >= experiment.ended_at


def test_after_so_many_calls_in_a_row_the_rest_is_handed_over(
    cast: Cast, launch: Launch, server: ChatServer, sent: Pairs
) -> None:
    """One message asks a fixed number of stimuli and then lets others in the queue have their turn."""
    limit_of(cast, parallel=1)
    experiment = launch(runs=7)  # 21 stimuli
    first = due_stimuli(experiment_id=experiment.pk)[0]
    sent.clear()
    stimulus_ask(*first)
    assert len(server.seen) == IN_A_ROW == 16
    (handed_over,) = sent
    assert handed_over in due_stimuli(experiment_id=experiment.pk), "one message, of what is still to be asked"
    sent.clear()
    stimulus_ask(*handed_over)
    assert len(server.seen) == 21 and sent == []
    experiment.refresh_from_db()
    assert experiment.state == "finished"


def test_a_limit_is_for_what_is_called(cast: Cast) -> None:
    client = cast.client(cast.alice)
    for provider in ("simulated", "replayed"):
        page = client.post("/studies/ours/limits/", {"provider": provider, "base_url": "", "parallel": 3})
        assert page.status_code == 200 and page.context["form"].errors["provider"]
    assert not ProviderLimit.objects.exists()
    client.post("/studies/ours/limits/", {"provider": "yandex", "base_url": "", "parallel": 3})
    assert ProviderLimit.objects.get().provider == "yandex"
