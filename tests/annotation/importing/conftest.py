import csv
import io
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from annotation.import_report import ImportReport
from annotation.importers.plan import Source
from annotation.importing import Target, judgements_import
from corpus.models import Answer, Instrument
from tests.annotation.factories import make_sitting
from tests.conftest import Cast

YES_NO = {"да": 1, "нет": 0}
CRITERIA = {"grammatical": YES_NO, "logical": YES_NO, "order": YES_NO}
WIDE = {"key": "answer", "annotator": "who", "criteria": CRITERIA}


def table(*rows: Sequence[Any], header: Sequence[str] = ("answer", "who", "grammatical", "logical", "order")) -> bytes:
    out = io.StringIO()
    csv.writer(out).writerows([header, *rows])
    return out.getvalue().encode()


def ls_task(data: dict[str, Any], *annotations: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": 1, "data": data, "annotations": list(annotations), "drafts": [], "predictions": [], **more}


def ls_annotation(number: int, who: Any, values: dict[str, Any], **more: Any) -> dict[str, Any]:
    """`values` are choices by control."""
    result = [
        {"id": name, "type": "choices", "from_name": name, "to_name": "t", "value": {"choices": chosen}}
        for name, chosen in values.items()
    ]
    annotation = {"id": number, "completed_by": who, "result": result, "was_cancelled": False, "ground_truth": False}
    return (
        annotation
        | {"created_at": "2024-05-01T10:00:00Z", "updated_at": "2024-05-01T10:05:00Z", "lead_time": 7.5}
        | more
    )


def ls(*tasks: dict[str, Any]) -> bytes:
    return json.dumps(list(tasks), ensure_ascii=False).encode()


@pytest.fixture
def answers(cast: Cast, instrument: Instrument) -> list[Answer]:
    """Six answers of two people."""
    make_sitting(instrument)
    make_sitting(instrument, ("кошка на столе сидит", "мышь бежал от кошки", "дети играли во дворе счастливые"))
    return list(Answer.objects.order_by("pk"))


@pytest.fixture
def run(cast: Cast) -> Callable[..., ImportReport]:
    """Import files, named file1.csv and so on, into the campaign “Elsewhere”."""

    def do(*files: bytes | Source, title: str = "Elsewhere", rubric: str = "paper", **how: Any) -> ImportReport:
        return judgements_import(
            study=how.pop("study", cast.study),
            files=[
                one if isinstance(one, Source) else Source(f"file{number}.csv", one)
                for number, one in enumerate(files, start=1)
            ],
            format_name=how.pop("format_name", None),
            settings=how.pop("settings", WIDE),
            target=Target(title, rubric),
            actor=cast.alice,
            **how,
        )

    return do
