"""Whoever has finished a call under a limit asks the next one itself, without a message.

A message for each free place would be sent by each of many that finish at once: the square of the limit in messages,
nearly all of them in vain.
"""

from contextlib import suppress

from llmruns.calls import Asked, NothingDueError, call_ask, call_claim_next
from llmruns.judge_calls import judgement_ask, judgement_claim_next
from llmruns.sending import limit_send

IN_A_ROW = 16  # calls of one message; then others in the queue have their turn


def turn_pass(asked: Asked | None) -> None:
    """Let others go on: two messages at most, where there is room under the limit and something is due."""
    if asked is not None and asked.limit_id is not None:
        limit_send(asked.limit_id, call_id=asked.call_id, after_judgement=asked.is_judgement)


def turn_take(asked: Asked) -> Asked | None:
    """Ask what is due next under the limit of a call that has ended. None: nothing is, or it is passed on.

    The other kind is looked for first, so that judgements and stimuli take turns.
    """
    if asked.limit_id is None:
        return None
    kinds = (_stimulus_ask, _judgement_ask)
    for ask in kinds if asked.is_judgement else reversed(kinds):
        with suppress(NothingDueError):
            done = ask(asked.limit_id)
            if done is None:
                turn_pass(asked)
            return done
    return None


def _stimulus_ask(limit_id: int) -> Asked | None:
    claim = call_claim_next(limit_id=limit_id)
    return None if claim is None else call_ask(claim)


def _judgement_ask(limit_id: int) -> Asked | None:
    claim = judgement_claim_next(limit_id=limit_id)
    return None if claim is None else judgement_ask(claim)
