"""What a finished call sends: a bounded number of messages, however many calls finish at once."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from corpus.models import Instrument
from llmruns import limits, sending
from llmruns.budget import MOST_SENT
from llmruns.calls import Asked, call_claim, call_record, provider_ask, stimulus_work
from llmruns.judge_choosing import Selection
from llmruns.judging import judging_launch
from llmruns.limits import limit_set, messages_for
from llmruns.models import Call, Experiment, Judging, ModelConfig
from llmruns.sending import due_stimuli, limit_send
from llmruns.turns import turn_pass, turn_take
from scoring.services import paper_rubric
from tests.chat_server import ChatServer
from tests.conftest import Cast
from tests.llmruns.conftest import Launch
from tests.llmruns.judges import person, verdict

pytestmark = pytest.mark.django_db
Sent = list[tuple[str, int, int]]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Sent:
    found: Sent = []
    monkeypatch.setattr(sending, "stimuli_enqueue", lambda pairs: found.extend(("stimulus", *pair) for pair in pairs))
    monkeypatch.setattr(
        sending, "judgements_enqueue", lambda pairs: found.extend(("judgement", *pair) for pair in pairs)
    )
    return found


def test_calls_that_finish_at_once_send_a_bounded_number_of_messages_and_fill_the_limit_again(
    cast: Cast, launch: Launch, config: ModelConfig, sent: Sent
) -> None:
    """Nobody claims until all eight have finished: each of them sees the places of those before it free."""
    limit = limit_set(
        study=cast.study, provider=config.provider, base_url="", parallel=8, per_minute=None, actor=cast.alice
    )
    experiment = launch(runs=10)
    due = due_stimuli(experiment_id=experiment.pk)
    first = [call_claim(run_id=run, stimulus_id=stimulus) for run, stimulus in due[:8]]
    for claim in first:
        call_record(claim=claim, outcome=provider_ask(claim.config, claim.body))
        turn_pass(Asked(claim.call_id, claim.limit_id))
    assert messages_for(limit) == 8
    assert len(sent) == 1 + 7 * MOST_SENT, "the first one sees one place, the others more"
    assert len(set(sent)) == len(sent), "and each sends what no other sends"
    claims = [call_claim(run_id=run, stimulus_id=stimulus) for _, run, stimulus in sent]
    assert [claim is not None for claim in claims] == [True] * 8 + [False] * 7


def test_what_a_finished_call_costs_does_not_grow_with_the_limit(
    cast: Cast, launch: Launch, config: ModelConfig, sent: Sent
) -> None:
    limit = limit_set(
        study=cast.study, provider=config.provider, base_url="", parallel=32, per_minute=100, actor=cast.alice
    )
    launch(runs=20)
    for call_id in range(40):
        sent.clear()
        with CaptureQueriesContext(connection) as queries:
            limit_send(limit.pk, call_id=call_id, after_judgement=False)
        assert len(queries) <= 6 and len(set(sent)) == len(sent) == MOST_SENT


@pytest.fixture
def both(cast: Cast, instrument: Instrument, launch: Launch, config: ModelConfig) -> tuple[Experiment, Judging]:
    """Twelve stimuli and three judgements that are due from the same model."""
    person(instrument)
    judging = judging_launch(
        study=cast.study,
        config=config,
        rubric=paper_rubric(),
        selection=Selection(instrument=instrument),
        actor=cast.alice,
    )
    return launch(runs=4), judging


def test_judgements_and_stimuli_take_turns_under_a_limit(
    cast: Cast, config: ModelConfig, server: ChatServer, both: tuple[Experiment, Judging], sent: Sent
) -> None:
    limit_set(study=cast.study, provider=config.provider, base_url="", parallel=1, per_minute=None, actor=cast.alice)
    experiment, _ = both
    (run, stimulus), kinds, answer = due_stimuli(experiment_id=experiment.pk)[0], [], server.default
    asked = stimulus_work(run_id=run, stimulus_id=stimulus)
    while asked is not None:
        kinds.append("judgement" if asked.is_judgement else "stimulus")
        is_judgements_turn = not asked.is_judgement and kinds.count("judgement") < 3
        server.default = verdict() if is_judgements_turn else answer
        asked = turn_take(asked)
    assert kinds == ["stimulus", "judgement"] * 3 + ["stimulus"] * 9
    assert sent == [], "without any message"


def test_a_wake_up_of_a_limit_per_minute_gives_each_kind_its_turn(
    cast: Cast, config: ModelConfig, both: tuple[Experiment, Judging], sent: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "limit_enqueue", lambda *_, **__: None)
    experiment, judging = both
    limit = limit_set(
        study=cast.study, provider=config.provider, base_url="", parallel=None, per_minute=1, actor=cast.alice
    )
    sending.limit_wake(limit_id=limit.pk)
    assert sorted(kind for kind, *_ in sent) == ["judgement", "stimulus"]
    for is_judgement in (False, True):
        values = {"purpose": "judge", "judging": judging, "answer_id": judging.items.first().answer_id}
        if not is_judgement:
            run, stimulus = due_stimuli(experiment_id=experiment.pk)[0]
            values = {"run_id": run, "stimulus_id": stimulus}
        call = Call.objects.create(config=config, request={}, state="failed", **values)
        Call.objects.filter(pk=call.pk).update(sent_at=timezone.now() - limits.MINUTE)
        sent.clear()
        sending.limit_wake(limit_id=limit.pk)
        assert [kind for kind, *_ in sent] == (
            ["stimulus", "judgement"] if is_judgement else ["judgement", "stimulus"]
        ), "of two messages one will be refused"
