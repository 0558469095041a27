"""Answers to judge, a judge's replies, and the workers, in a line each."""

import json

from django.utils import timezone

from corpus.models import Instrument, Respondent, Sitting
from llmruns.judge_calls import answer_work
from llmruns.models import Judging, JudgingItem
from llmruns.sending import due_judgements
from scoring.models import Judgement
from tests.annotation.factories import make_sitting
from tests.chat_server import Behaviour, completion

# Routes of this app and of the one above whose visitors tests/llmruns/test_judge_pages.py refuses.
ACTIONS = ("judging_pause", "judging_resume", "judging_cancel", "judging_cap")
OF_ONE = ("judging_detail", "judging_agreement", "judging_csv")
OF_ALL = ("judging_list", "judge_prompt_list", "judge_prompt_new", "judging_new")

GOOD = ("кошка сидит на столе", "мышь бежит от кошки", "дети, которые играли во дворе, были счастливы")


def verdict(grammatical: float = 1, logical: float = 1, order: float = 1) -> Behaviour:
    return completion(json.dumps({"grammatical": grammatical, "logical": logical, "order": order}))


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
