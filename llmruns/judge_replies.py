"""What a model judge's reply says, or the kind of its failure.

As strict as llmruns.replies, and in the same wrapping: a value that was read out of prose, or of a number next to the
scale, is a judgement that we made up.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from llmruns.replies import ErrorKind, reply_object, stopped_kind

SHOWN = 60  # characters of a wrong value that are repeated


@dataclass(frozen=True, slots=True)
class JudgeReply:
    """`values` by criterion, or None with the kind of failure in `error`. `fault` says where it lies, in the log."""

    values: dict[str, float] | None
    error: ErrorKind | None
    fault: str = ""


def parse_judgement(raw: str, scales: Mapping[str, Sequence[float]]) -> JudgeReply:
    """The values in a reply: a JSON object with a number of the scale under the code of every criterion.

    Other keys do not matter. `true`, "1" and 0.9 are no values. One criterion that is missing or wrong leaves nothing
    of the others: a judgement is whole or is asked for again. Never raises on a str.
    """
    parsed, error = reply_object(raw)
    if parsed is None:
        return JudgeReply(None, error)
    values = {}
    for code, scale in scales.items():
        if code not in parsed:
            return JudgeReply(None, "format", f"{code}: missing")
        value = parsed[code]
        if not isinstance(value, float) or value not in scale:  # whole numbers too are read as floats, `true` is not
            return JudgeReply(None, "format", f"{code}: {str(value)[:SHOWN]}")
        values[code] = value
    return JudgeReply(values, None)


def classify_judgement(
    raw: str | None, finish_reason: str | None, refusal: str | None, scales: Mapping[str, Sequence[float]]
) -> JudgeReply:
    """As replies.classify_reply, for a judge."""
    stopped = stopped_kind(finish_reason, refusal)
    if stopped is not None:
        return JudgeReply(None, stopped)
    reply = parse_judgement(raw or "", scales)
    if reply.error is not None and finish_reason == "length":
        return JudgeReply(None, "truncated", reply.fault)
    return reply
