"""What a classifier learns from and is measured on: texts with a value for each criterion. Plain values."""

import csv
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from scoring.classifiers.problems import ClassifierError

Progress = Callable[[int, int], None]
"""Told how much is done of how much. Raises StoppedError where the work is not wanted any more."""

LEAST_LABELS = 20  # of one criterion; fewer teach nothing
LEAST_OF_A_CLASS = 2


@dataclass(frozen=True, slots=True)
class Task:
    """One criterion to learn. `classes` are its values in ascending order."""

    code: str
    classes: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Example:
    """A display text; `targets` are places in the tasks' classes, None where there is no label."""

    text: str
    group: str  # the respondent; texts of one group stay together in every cut
    targets: tuple[int | None, ...]


@dataclass(frozen=True)
class Dataset:
    tasks: tuple[Task, ...]
    examples: tuple[Example, ...]
    language: str = "ru"

    def hash(self) -> str:
        """sha256, hex, over tasks and examples in their order."""
        digest = hashlib.sha256(json.dumps([self.language, *([t.code, *t.classes] for t in self.tasks)]).encode())
        for example in self.examples:
            digest.update(json.dumps([example.text, example.group, example.targets], ensure_ascii=False).encode())
        return digest.hexdigest()

    def without(self, groups: frozenset[str]) -> "Dataset":
        return Dataset(self.tasks, tuple(e for e in self.examples if e.group not in groups), self.language)

    def only(self, groups: frozenset[str]) -> "Dataset":
        return Dataset(self.tasks, tuple(e for e in self.examples if e.group in groups), self.language)

    def check(self) -> None:
        """Raises ClassifierError: too_few_labels, one_class."""
        for index, task in enumerate(self.tasks):
            counts = Counter(e.targets[index] for e in self.examples if e.targets[index] is not None)
            if counts.total() < LEAST_LABELS:
                raise ClassifierError("too_few_labels", criterion=task.code, found=counts.total(), needed=LEAST_LABELS)
            frequent = [place for place, count in counts.items() if count >= LEAST_OF_A_CLASS]
            if len(frequent) < 2:
                value = task.classes[counts.most_common(1)[0][0] or 0]
                raise ClassifierError("one_class", criterion=task.code, value=f"{value:g}")


@dataclass(frozen=True, slots=True)
class Texts:
    """A column of texts and, where the file has one, a column of labels."""

    texts: list[str]
    labels: list[float]
    groups: list[str]


def read_csv(
    path: Path, *, text_column: str, label_column: str | None = None, group_column: str | None = None
) -> Texts:
    """A CSV in UTF-8 with a header. Without a group column each row is a group of its own.

    Raises ClassifierError file_unreadable, saying the row where there is one.
    """
    wanted = [column for column in (text_column, label_column, group_column) if column]
    texts, labels, groups = [], [], []
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.DictReader(stream)
            missing = [column for column in wanted if column not in (reader.fieldnames or [])]
            if missing:
                raise ClassifierError("file_unreadable", file=str(path), error=f"no column {', '.join(missing)}")
            for number, row in enumerate(reader, start=2):
                texts.append(row[text_column] or "")
                groups.append((row[group_column] or "") if group_column else str(number))
                if label_column:
                    labels.append(_label(row[label_column], path, number))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ClassifierError("file_unreadable", file=str(path), error=str(error)) from error
    return Texts(texts, labels, groups)


def _label(text: str | None, path: Path, row: int) -> float:
    try:
        value = float(text or "")
    except ValueError:
        value = float("nan")
    if value != value or value in (float("inf"), float("-inf")):
        raise ClassifierError("file_unreadable", file=str(path), error=f"row {row}: {text!r} is no number")
    return value


def dataset_of(columns: Texts, *, code: str, language: str) -> Dataset:
    """One task, whose classes are the values that occur."""
    classes = tuple(sorted(set(columns.labels)))
    place = {value: index for index, value in enumerate(classes)}
    rows = zip(columns.texts, columns.groups, columns.labels, strict=True)
    examples = tuple(Example(text, group, (place[label],)) for text, group, label in rows)
    return Dataset((Task(code, classes),), examples, language)


@dataclass(frozen=True, slots=True)
class Said:
    """What a classifier says of one text on one criterion. `probabilities` go with the task's classes."""

    value: float
    confidence: float  # the probability of that value
    probabilities: tuple[float, ...]


def decide(probabilities: Sequence[float], task: Task, thresholds: Mapping[str, float]) -> Said:
    """The likeliest class; of two classes the upper one from the task's threshold on (0.5 without one)."""
    if len(task.classes) == 2:
        place = int(probabilities[1] >= thresholds.get(task.code, 0.5))
    else:
        place = max(range(len(task.classes)), key=lambda index: probabilities[index])
    return Said(task.classes[place], min(1.0, float(probabilities[place])), tuple(map(float, probabilities)))
