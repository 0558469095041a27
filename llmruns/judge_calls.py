"""One call to a model judge: claimed, sent, recorded. As llmruns.calls does it for answers, and with its parts.

Locks are taken in one order: items (by id), the limit, the call, the judging, and the judge last.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

import structlog
from django.db import IntegrityError, transaction
from django.utils import timezone

from corpus.display import display_text
from corpus.models import Answer, Respondent, Sitting
from corpus.storing import storable_text
from llmruns.budget import money_reserve
from llmruns.calls import (
    CLOCKS_DIFFER,
    TAKEN_TRIES,
    Asked,
    NothingDueError,
    Outcome,
    ask_and_record,
    call_money_settle,
    cost_columns,
    is_hopeless,
    parameters_of,
    question_body,
    reply_columns,
    wait_seconds,
)
from llmruns.judge_items import ITEM, item_leave
from llmruns.judge_prompts import judge_message, judged_criteria
from llmruns.judge_replies import JudgeReply, classify_judgement
from llmruns.limits import limit_admits
from llmruns.liveness import worker_name
from llmruns.models import Call, Judging, JudgingItem, ModelConfig, Price
from llmruns.pricing import bound, price_day
from llmruns.providers.base import ProviderError, ProviderReply
from llmruns.queue import judgements_enqueue
from llmruns.statements import judgement_next, terms_of
from scoring.services import Verdict, judgements_record, round_close

# What a call must not keep once the answer's author has taken it back.
BLANK: dict[str, Any] = {"request": {}, "response": None, "raw_reply": "", "raw_body": "", "detail": ""}
GOING = [Judging.State.RUNNING, Judging.State.PAUSED]

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class JudgeClaim:
    call_id: int
    judging_id: int
    answer_id: int
    config: ModelConfig
    body: dict[str, Any]
    limit_id: int | None = None


def answer_work(*, judging_id: int, answer_id: int) -> Asked | None:
    """Ask once, if there is something to ask now. Safe to repeat and to run twice at once."""
    claim = judgement_claim(judging_id=judging_id, answer_id=answer_id)
    return None if claim is None else judgement_ask(claim)


def judgement_ask(claim: JudgeClaim) -> Asked:
    ask_and_record(claim.call_id, claim.config, claim.body, partial(judgement_record, claim=claim))
    return Asked(claim.call_id, claim.limit_id, is_judgement=True)


def judgement_claim(*, judging_id: int, answer_id: int) -> JudgeClaim | None:
    """Write the call that is about to be sent. None where nothing is to be asked, or may be asked, now."""
    try:
        return _claimed(lambda: (judging_id, answer_id))
    except _TakenError:
        return None


def judgement_claim_next(*, limit_id: int) -> JudgeClaim | None:
    """The same of whatever is due under a limit. Raises NothingDueError; None where something is, but not for us."""
    for _ in range(TAKEN_TRIES):
        with suppress(_TakenError):
            return _claimed(lambda: judgement_next(limit_id=limit_id, now=timezone.now()))
    return None


class _TakenError(Exception):
    """Somebody else is asking."""


def _claimed(choose: Callable[[], tuple[int, int] | None]) -> JudgeClaim | None:
    worker = worker_name()
    try:
        with transaction.atomic():
            chosen = choose()
            if chosen is None:
                raise NothingDueError
            return _claim(*chosen, worker)
    except IntegrityError as error:
        if "call_at_most_one_judging_in_flight" in str(error):
            raise _TakenError from error
        raise


def _claim(judging_id: int, answer_id: int, worker: str) -> JudgeClaim | None:
    now = timezone.now()
    item = (
        JudgingItem.objects.select_for_update(of=("self",))
        .select_related(*ITEM)
        .filter(judging_id=judging_id, answer_id=answer_id)
        .first()
    )
    if item is None or item.state != JudgingItem.State.TODO or item.same_as_id is not None:
        return None
    judging = item.judging
    if item.due_at > now + CLOCKS_DIFFER or judging.state != Judging.State.RUNNING:
        return None
    if not may_be_sent(item.answer):
        # Excluded, or made a pilot, since the launch. Whoever shares its text is asked in its place.
        if item_leave(item, "not_counted"):
            judging_settle(judging_id)
        return None
    config = judging.model_judge.config
    price_id, limit_id = terms_of(config, price_day(now))
    if limit_id is not None and not limit_admits(limit_id=limit_id, now=now):
        return None
    body = question_body(config, message_for(item.answer, judging.model_judge.prompt.text))
    call = Call(
        purpose=Call.Purpose.JUDGE,
        judging_id=judging_id,
        answer_id=answer_id,
        config=config,
        asked=parameters_of(config),
        request=body,
        price_id=price_id,
        worker=worker,
    )
    if judging.cap is not None:
        price = None if price_id is None else Price.objects.get(pk=price_id)
        call.reserved = bound(body, price, currency=judging.currency).value
        call.currency = judging.currency
        if money_reserve(experiment_id=judging.pk, most=call.reserved, of=Judging) != "granted":
            return None
    call.save(force_insert=True)
    return JudgeClaim(call.pk, judging_id, answer_id, config, body, limit_id)


def message_for(answer: Answer, prompt: str) -> str:
    """What the judge is asked about an answer: the words and the display text, as raters see them, and no more."""
    shown = display_text(answer.text, lower_case=answer.sitting.instrument.lower_case)
    return judge_message(prompt, words=answer.stimulus.text, answer=shown)


def may_be_sent(answer: Answer) -> bool:
    """Whether the answer still counts and its author's consent covers third parties. Looked at before every call."""
    respondent = answer.sitting.respondent
    return (
        answer.outcome == Answer.Outcome.GIVEN
        and answer.sitting.standing == Sitting.Standing.COUNTED
        and (respondent.kind == Respondent.Kind.MODEL or respondent.third_parties)
    )


def judgement_record(*, claim: JudgeClaim, outcome: Outcome) -> None:
    """Write down what came of a call, the judgements if it gave some, and what is to be done next."""
    columns = reply_columns(outcome)
    with transaction.atomic():
        item = JudgingItem.objects.select_for_update().get(judging=claim.judging_id, answer=claim.answer_id)
        call = (
            Call.objects.select_for_update(of=("self",), no_key=True)
            .select_related("price")
            .only("state", "reserved", "price", "judging_id", "answer_id")
            .get(pk=claim.call_id)
        )
        if call.state not in (Call.State.IN_FLIGHT, Call.State.LOST):
            return  # recorded by a try of which the database, going away, could no longer say that it had succeeded
        judging = (
            Judging.objects.select_for_update(of=("self",), no_key=True)
            .select_related("model_judge__rubric", "round")
            .get(pk=claim.judging_id)
        )
        columns |= cost_columns(call, outcome, claim.body)
        if not _may_decide(call, item):
            columns["kind"] = "late"
        elif isinstance(outcome, ProviderReply):
            columns |= _reply_apply(columns, outcome, judging, item)
        else:
            columns |= _failure_apply(outcome, judging, item)
        if item.problem == "withdrawn":  # taken back while the reply was on its way
            columns |= BLANK
        Call.objects.filter(pk=claim.call_id).update(**columns)
        call_money_settle(call, columns["cost"], judging)
        judging_settle(judging.pk)


def _may_decide(call: Call, item: JudgingItem) -> bool:
    """As in calls: one that was given up as lost may still decide, while nobody has asked again."""
    if call.state == Call.State.IN_FLIGHT:
        return True
    newer = Call.objects.filter(judging=item.judging_id, answer=item.answer_id, pk__gt=call.pk)
    return call.state == Call.State.LOST and item.state in OPEN and not newer.exists()


OPEN = [JudgingItem.State.TODO, JudgingItem.State.GIVEN_UP]


def _reply_apply(columns: dict[str, Any], reply: ProviderReply, judging: Judging, item: JudgingItem) -> dict[str, Any]:
    """A completed reply: it costs an attempt, and gives a whole judgement or the kind of its failure."""
    criteria = judged_criteria(judging.model_judge.rubric)
    scales = {one.code: one.scale for one in criteria}
    verdict = classify_judgement(reply.text, reply.finish_reason, reply.refusal, scales)
    item.attempts += 1
    call_columns = {
        "state": Call.State.OK if verdict.values is not None else Call.State.BAD_REPLY,
        "kind": verdict.error or "",
        "attempt": item.attempts,
        "detail": columns["detail"] or verdict.fault,
    }
    fields = ["attempts"]
    if item.state in OPEN and judging.state != Judging.State.CANCELLED:
        item.failures, item.failing_since, item.problem = 0, None, ""
        fields += ["failures", "failing_since", "problem", "state", "due_at"]
        _item_go_on(verdict, judging, item)
    item.save(update_fields=fields)
    return call_columns


def _item_go_on(verdict: JudgeReply, judging: Judging, item: JudgingItem) -> None:
    if verdict.values is not None:
        sharing = JudgingItem.objects.filter(same_as=item).exclude(state=JudgingItem.State.REMOVED)
        judgements_record(
            round_id=judging.round_id,
            answer_id=item.answer_id,
            judge_id=judging.model_judge.judge_id,
            verdicts={one: Verdict(verdict.values[one.code]) for one in judged_criteria(judging.model_judge.rubric)},
            sharing=list(sharing.order_by("pk").values_list("answer_id", flat=True)),
        )
        item.state = JudgingItem.State.JUDGED
    elif item.attempts >= judging.max_attempts:
        item.state, item.problem = JudgingItem.State.NO_VERDICT, verdict.error or "format"
    else:
        item.state, item.due_at = JudgingItem.State.TODO, timezone.now()
        transaction.on_commit(partial(judgements_enqueue, [(judging.pk, item.answer_id)]))


def _failure_apply(error: ProviderError, judging: Judging, item: JudgingItem) -> dict[str, Any]:
    """No reply of a model: costs no attempt. Ask again later, give up for now, or stop the whole judging."""
    now = timezone.now()
    call_columns = {"state": Call.State.FAILED, "kind": error.kind}
    if item.state not in OPEN:
        return call_columns
    item.failures += 1
    item.failing_since = item.failing_since or now
    item.problem = error.kind
    if error.transient:
        due_at = now + timedelta(seconds=wait_seconds(item.failures, error.retry_after))
        if is_hopeless(error, item, due_at, judging.deadline):
            item.state = JudgingItem.State.GIVEN_UP
            _reason_keep(judging, error)
        else:
            item.state, item.due_at = JudgingItem.State.TODO, due_at
            wait = (due_at - now).total_seconds()
            transaction.on_commit(partial(judgements_enqueue, [(judging.pk, item.answer_id)], countdown=wait))
    elif judging.state == Judging.State.RUNNING:  # every further call would fail like this one
        judging.state, judging.problem = Judging.State.PAUSED, error.kind
        judging.save(update_fields=["state", "problem"])
        _reason_keep(judging, error)
        log.warning("judging_paused", judging=judging.pk, kind=error.kind)
    item.save(update_fields=["failures", "failing_since", "problem", "state", "due_at"])
    return call_columns


def _reason_keep(judging: Judging, error: ProviderError) -> None:
    judging.reason = storable_text(error.message)[0][:500]
    judging.save(update_fields=["reason"])


@transaction.atomic
def judging_settle(judging_id: int) -> None:
    """End a judging of which nothing is left to ask. Safe to repeat."""
    judging = Judging.objects.select_for_update(no_key=True).get(pk=judging_id)
    if judging.state not in GOING:
        return
    asked = JudgingItem.objects.filter(judging=judging, same_as__isnull=True)
    if asked.filter(state=JudgingItem.State.TODO).exists():
        return
    given_up = asked.filter(state=JudgingItem.State.GIVEN_UP).order_by("pk").first()
    if given_up is not None:
        judging.state, judging.problem = Judging.State.INCOMPLETE, given_up.problem
    else:
        judging.state, judging.problem, judging.reason = Judging.State.FINISHED, "", ""
        judging.ended_at = timezone.now()
        round_close(round_id=judging.round_id)
    judging.save(update_fields=["state", "problem", "reason", "ended_at"])
