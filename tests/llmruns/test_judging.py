"""A model judges answers: which ones, what it is sent, what comes of its replies, and what that costs."""

import json
from collections.abc import Callable

import pytest
from django.utils import timezone

from corpus.models import Instrument, Respondent, Sitting
from llmruns.judge_calls import answer_work
from llmruns.judge_choosing import Selection
from llmruns.judging import (
    judging_launch,
)
from llmruns.models import Call, Judging, JudgingItem, ModelConfig
from llmruns.sending import due_judgements
from scoring.models import Judgement, Round
from scoring.services import paper_rubric
from studies.models import AuditEntry
from tests.annotation.factories import make_sitting
from tests.chat_server import (
    ChatServer,
    completion,
)
from tests.conftest import Cast

GOOD = ("кошка сидит на столе", "мышь бежит от кошки", "дети, которые играли во дворе, были счастливы")
Launch = Callable[..., Judging]


def verdict(grammatical: float = 1, logical: float = 1, order: float = 1) -> object:
    return completion(json.dumps({"grammatical": grammatical, "logical": logical, "order": order}))


@pytest.fixture
def judge(server: ChatServer, config: ModelConfig) -> ModelConfig:
    server.default = verdict()
    return config


@pytest.fixture
def launch(cast: Cast, instrument: Instrument, judge: ModelConfig) -> Launch:
    def launch(**changes: object) -> Judging:
        selection = {"instrument": instrument} | {
            name: changes.pop(name) for name in list(changes) if name in Selection.__dataclass_fields__
        }
        arguments = {"config": judge, "rubric": paper_rubric(), "actor": cast.alice, **changes}
        return judging_launch(study=cast.study, selection=Selection(**selection), **arguments)

    return launch


def person(instrument: Instrument, texts: tuple[str | None, ...] = GOOD, *, agreed: bool = True) -> Sitting:
    sitting = make_sitting(instrument, texts)
    Respondent.objects.filter(pk=sitting.respondent_id).update(third_parties=agreed)
    return sitting


def model(instrument: Instrument, texts: tuple[str | None, ...] = GOOD) -> Sitting:
    return make_sitting(instrument, texts, kind="model", label="model · run 1")


def work(judging: Judging, *, rounds: int = 60) -> None:
    """What the workers do, in this process; every wait is over at once."""
    for _ in range(rounds):
        JudgingItem.objects.filter(judging=judging, state="todo").update(due_at=timezone.now())
        due = due_judgements(judging_id=judging.pk)
        if not due:
            judging.refresh_from_db()
            return
        for judging_id, answer_id in due:
            answer_work(judging_id=judging_id, answer_id=answer_id)
    raise AssertionError("the work does not end")


def said(judging: Judging) -> dict[tuple[str, str], float]:
    """By answer text and criterion."""
    rows = Judgement.objects.filter(round=judging.round_id, retracted_at=None)
    return {(text, code): value for text, code, value in rows.values_list("answer__text", "criterion__code", "value")}


def test_every_answer_gets_one_judgement_on_each_judged_criterion(
    cast: Cast, instrument: Instrument, server: ChatServer, launch: Launch
) -> None:
    person(instrument)
    server.script("мышь бежит от кошки", verdict(1, 0, 1))
    judging = launch()
    work(judging)
    assert judging.state == "finished" and judging.ended_at
    values = said(judging)
    assert len(values) == 9
    assert [values["мышь бежит от кошки", code] for code in ("grammatical", "logical", "order")] == [1, 0, 1]
    assert {code for _text, code in values} == {"grammatical", "logical", "order"}, "sequence is counted by rule"
    judging.round.refresh_from_db()
    assert judging.round.purpose == Round.Purpose.AUTOMATIC and judging.round.judge == judging.model_judge.judge
    assert judging.round.closed_at, "a finished judging takes no more"
    assert {row.judge.kind for row in Judgement.objects.filter(round=judging.round_id)} == {"model"}
    calls = Call.objects.filter(judging=judging)
    assert {(call.purpose, call.state, call.attempt) for call in calls} == {("judge", "ok", 1)}
    assert AuditEntry.objects.get(action="judging_launch").detail["answers"] == 3
