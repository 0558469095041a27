"""Rows of a release as what they are made into here, each checked against what may stand there."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from corpus.importing import StimulusRow
from corpus.models import Complexity
from llmruns.restoring import RestoredModel
from reports.releases.archive import ArchiveRefusedError
from reports.releases.reading import Record
from surveys.models import Question

Key = tuple[Any, ...]
Value = TypeVar("Value")


def one(found: Mapping[Any, Value], key: Any, table: str) -> Value:
    """What a row points to. Raises ArchiveRefusedError."""
    try:
        return found[key]
    except (KeyError, TypeError) as error:  # it is not there, or it holds a list, which nothing is named by
        named = ", ".join(map(str, key)) if isinstance(key, tuple) else str(key)
        raise ArchiveRefusedError("reference", f"{table}: {named}"[:200]) from error


def unique(rows: Iterable[Record], table: str, *names: str) -> dict[Key, Record]:
    """Raises ArchiveRefusedError where two rows have the same key."""
    found: dict[Key, Record] = {}
    for row in rows:
        key = tuple(row[name] for name in names)
        if key in found:
            raise ArchiveRefusedError("twice", f"{table}: {', '.join(map(str, key))}"[:200])
        found[key] = row
    return found


def known(value: Any, allowed: Iterable[Any], where: str) -> Any:
    """Raises ArchiveRefusedError."""
    if value not in set(allowed):
        raise ArchiveRefusedError("value", f"{where}: {str(value)[:40]}")
    return value


def measured(value: str, most: int, where: str) -> str:
    """Raises ArchiveRefusedError."""
    if len(value) > most:
        raise ArchiveRefusedError("value", f"{where}: {value[:40]}")
    return value


def stimulus_row(row: Record) -> StimulusRow:
    return StimulusRow(
        position=row["position"],
        text=row["stimulus"],
        original=row["original"],
        complexity=known(row["complexity"], Complexity.values, "complexity"),
        shuffled=row["shuffled"],
        is_practice=row["is_practice"],
        feedback=row["feedback"] or "",
        source=measured(row["source"] or "", 200, "source"),
    )


def model_row(row: Record) -> RestoredModel:
    if not isinstance(row["extra_body"], dict) or not isinstance(row["accepts"], list | None):
        raise ArchiveRefusedError("value", f"models: {row['model'][:40]}")
    return RestoredModel(
        label=measured(row["model"], 100, "model"),
        model=measured(row["model_requested"], 200, "model_requested"),
        temperature=row["temperature"],
        top_p=row["top_p"],
        max_output_tokens=row["max_output_tokens"],
        extra_body=row["extra_body"],
        accepts=row["accepts"],
    )


def question_row(row: Record) -> Question:
    if (
        not isinstance(row["wording"], dict)
        or not isinstance(row["options"], list)
        or not isinstance(row["end_labels"], dict)
    ):
        raise ArchiveRefusedError("value", f"questions: {row['question'][:40]}")
    return Question(
        position=row["position"],
        place=known(row["place"], Question.Place.values, "place"),
        after_task=row["after_task"],
        code=measured(row["question"], 40, "question"),
        kind=known(row["question_kind"], Question.Kind.values, "question_kind"),
        text=row["wording"],
        options=row["options"],
        minimum=row["minimum"],
        maximum=row["maximum"],
        end_labels=row["end_labels"],
        required=row["required"],
        expected=measured(row["expected"] or "", 200, "expected"),
    )
