"""What an import will do with its files, judgement by judgement, before anything is stored."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from corpus.tables.faults import Fault


@dataclass(frozen=True, slots=True)
class Source:
    name: str
    data: bytes
    fault: Fault | None = None  # an archive that is not unpacked, and why

    @property
    def stem(self) -> str:
        """What the file is called without its folder and ending."""
        name = self.name.replace("\\", "/").rpartition("/")[2]
        stem, dot, _ending = name.rpartition(".")
        return (stem if dot else name).strip()


Chosen = tuple[str, ...] | None
"""What was chosen of one criterion: nothing, one value, or several. None: it is no choice (a span, a box, a text)."""


@dataclass(slots=True)
class Raw:
    """One judgement as the file has it. `data` is what the file says of the answer, or all its columns."""

    record: int  # from 1, blank ones counted; of Label Studio's JSON the task
    data: Mapping[str, Any]
    annotator: str | None = None
    annotation: str = ""  # its id, where records hold several
    verdicts: Mapping[str, Chosen] | None = None  # None: they stand in `data`
    labels: Chosen = ()  # of doccano, whose labels belong to no criterion
    state: str = ""  # why it is left out before anybody looks at its values
    time: str | datetime = ""
    seconds: float | None = None
    comment: str = ""
    damaged: Mapping[str, str] = field(default_factory=dict)  # fields that a spreadsheet has replaced, by reason


@dataclass
class Reading:
    """A file that has been opened. `records` are read as they are asked for, and may then raise FaultError."""

    format: str
    encoding: str | None
    delimiter: str | None
    records: Iterator[Raw]
    fields: list[str] = field(default_factory=list)  # of a table
    counts: Counter[str] = field(default_factory=Counter)  # grows while the records are read
    names_annotators: bool = True
    uses_labels: bool = False
    escaped: set[int] = field(default_factory=set)  # records with what no database can keep; grows with the reading


class AnswerKey(NamedTuple):
    """What a record says of which answer it judges. Empty: it does not."""

    key: str = ""
    respondent: str = ""
    stimulus: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Named:
    """A record, or one criterion of it, and what became of it."""

    file: int
    record: int
    reason: str
    annotation: str = ""
    criterion: str = ""
    value: str = ""


@dataclass(slots=True)
class Planned:
    """One annotator's judgement of one answer. None: nothing was said of that criterion, which is no 0."""

    file: int
    record: int
    annotation: str
    answer: AnswerKey
    annotator: str
    values: dict[str, float | None]
    made_at: datetime | None = None
    seconds: float | None = None
    comment: str = ""

    def named(self, reason: str, criterion: str = "", value: str = "") -> Named:
        return Named(self.file, self.record, reason, self.annotation, criterion, value)


@dataclass
class Plan:
    formats: list[str] = field(default_factory=list)  # by file
    encodings: list[str | None] = field(default_factory=list)
    delimiters: list[str | None] = field(default_factory=list)
    judgements: list[Planned] = field(default_factory=list)
    skipped: list[Named] = field(default_factory=list)
    conflicts: list[Named] = field(default_factory=list)  # one criterion is missing, the rest is kept
    warnings: list[Named] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    unused: list[str] = field(default_factory=list)  # fields that hold choices and are no criterion here
    found: set[str] = field(default_factory=set)  # of the chosen fields that name the answer, those that are there
    error: Fault | None = None
    error_file: int = 0
