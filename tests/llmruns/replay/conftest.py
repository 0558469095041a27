"""Files of recorded replies for the instrument of three stimuli (ONE, TWO, THREE)."""

import io
import json
from collections.abc import Callable
from typing import Any

import pytest

from corpus.models import Instrument
from llmruns.models import Experiment
from llmruns.replay import ReplayReport, Source, Target, replies_import
from tests.conftest import Cast

Replay = Callable[..., ReplayReport]
RIGHT = {1: "кошка сидит на столе", 2: "мышь бежит от кошки", 3: "дети, которые играли во дворе, были счастливы"}


def good(text: str) -> str:
    return json.dumps({"results": text}, ensure_ascii=False)


def record(position: int, run: int = 1, model: str = "GPT-0", /, **more: Any) -> dict[str, Any]:
    """A reply in the right form, or whatever `more` makes of it; a value of None takes the field away."""
    values = {"model": model, "run": run, "position": position, "raw_reply": good(RIGHT.get(position, "?"))} | more
    return {name: value for name, value in values.items() if value is not None}


def whole(run: int = 1, model: str = "GPT-0", **more: Any) -> list[dict[str, Any]]:
    return [record(position, run, model, **more) for position in (1, 2, 3)]


def as_file(records: list[Any]) -> bytes:
    """One a line; what is bytes already stands as it is."""
    lines = [one if isinstance(one, bytes) else json.dumps(one).encode() for one in records]
    return b"\n".join(lines) + b"\n"


def source_of(data: bytes, name: str = "replies.jsonl") -> Source:
    return Source(name, len(data), lambda: io.BytesIO(data))


@pytest.fixture
def replay(cast: Cast, instrument: Instrument) -> Replay:
    def replay(records: list[Any] | bytes, *, target: Target | None = None, **more: Any) -> ReplayReport:
        data = records if isinstance(records, bytes) else as_file(records)
        values = {"instrument": instrument, "actor": cast.alice} | more
        return replies_import(source=source_of(data), target=target or Target(), **values)

    return replay


def problems(report: ReplayReport) -> list[tuple[str, int]]:
    return [(one.code, one.line) for one in report.problems]


def notes(report: ReplayReport) -> list[str]:
    return [one.code for one in report.notes]


def experiment_of(report: ReplayReport) -> Experiment:
    assert report.made is not None, report.problems
    return report.made.experiment
