"""What an import will do with a file, record by record, before anything is stored."""

import dataclasses
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from corpus.tables.faults import Fault, FaultError
from corpus.tables.table import folded
from corpus.tables.times import DAY_FIRST, MONTH_FIRST, date_order, instant, iso, time_read

MAX_TEXT = 2_000  # corpus.services.MAX_ANSWER_CHARACTERS, which a test compares
MAX_ID = 100
UNNAMED = "unnamed:"

Column = str | int


@dataclass(frozen=True)
class Settings:
    """What the person importing chooses. Columns are named by header or by position from 0."""

    encoding: str | None = None
    delimiter: str | None = None
    sheet: str | None = None
    item_column: Column | None = None  # number or code of the stimulus
    lemmas_column: Column | None = None  # its given words
    answer_column: Column | None = None
    respondent_column: Column | None = None
    started_column: Column | None = None
    timestamp_column: Column | None = None  # when the answer was sent
    consent_column: Column | None = None
    consent_yes: tuple[str, ...] = ()
    answer_columns: dict[str, int] = field(default_factory=dict)  # of forms: column to stimulus
    items: dict[str, int] = field(default_factory=dict)  # codes of the item column to stimulus
    time_zone: str | None = None  # of times without one
    date_order: str | None = None
    keep: tuple[Column, ...] = ()  # columns about people to keep, beside those every import keeps
    source_instrument: str | None = None  # slug:version in a file of Luria's that holds several
    for_excel: bool | None = None  # a file of Luria's with protective apostrophes; None: seen from the file

    @classmethod
    def read(cls, values: dict[str, Any]) -> "Settings":
        """Raises FaultError `bad_setting`."""
        known = {part.name for part in dataclasses.fields(cls)}
        for name in values:
            if name not in known:
                raise FaultError("bad_setting", detail=name)
        chosen = dict(values)
        try:
            for name in ("consent_yes", "keep"):
                if name in chosen:
                    if isinstance(chosen[name], str):
                        raise TypeError(name)
                    chosen[name] = tuple(chosen[name])
            for name in ("answer_columns", "items"):
                chosen[name] = {str(key): int(value) for key, value in dict(chosen.get(name, {})).items()}
            settings = cls(**chosen)
        except (TypeError, ValueError) as error:
            raise FaultError("bad_setting", detail=str(error)[:100]) from error
        settings._check()
        return settings

    def _check(self) -> None:
        for part in dataclasses.fields(self):
            value = getattr(self, part.name)
            if part.name.endswith("_column") and not (value is None or isinstance(value, str | int)):
                raise FaultError("bad_setting", detail=part.name)
        for name in ("encoding", "delimiter", "sheet", "source_instrument"):
            if not isinstance(getattr(self, name), str | None):
                raise FaultError("bad_setting", detail=name)
        if not all(isinstance(value, str) for value in self.consent_yes):
            raise FaultError("bad_setting", detail="consent_yes")
        if not all(isinstance(value, str | int) for value in self.keep):
            raise FaultError("bad_setting", detail="keep")
        if self.encoding not in (None, "utf-8", "utf-16", "cp1251", "cp1252"):
            raise FaultError("bad_setting", detail="encoding")
        if self.delimiter not in (None, ",", ";", "\t"):
            raise FaultError("bad_setting", detail="delimiter")
        if self.date_order not in (None, DAY_FIRST, MONTH_FIRST):
            raise FaultError("bad_setting", detail="date_order")
        if self.time_zone is not None and self.time_zone not in available_timezones():
            raise FaultError("bad_setting", detail="time_zone")

    def as_json(self) -> dict[str, Any]:
        """Only what was chosen."""
        blank = Settings()
        return {name: value for name, value in dataclasses.asdict(self).items() if value != getattr(blank, name)}


@dataclass(slots=True)
class PlannedAnswer:
    record: int
    respondent: str  # as the file names the person, or `row:N`
    item: int
    text: str
    outcome: str = "given"
    status: str = ""
    assignment: str = ""
    started: str | None = None  # ISO 8601, with a zone only where one is known
    submitted: str | None = None
    started_at: datetime | None = None
    submitted_at: datetime | None = None
    standing: str = "counted"
    duration_ms: int | None = None


@dataclass(frozen=True, slots=True)
class PlannedPerson:
    """What a platform says of a person who should be in a survey already."""

    record: int
    respondent: str
    status: str
    seconds: int | None
    visit: str = ""
    started: str | None = None
    completed: str | None = None
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Skip:
    record: int
    reason: str
    item: int | None = None


@dataclass(frozen=True, slots=True)
class Notice:
    """A warning about the file as a whole: `told` is what `import_words.notice_text` says it with."""

    reason: str
    told: dict[str, Any] = field(default_factory=dict)
    record: int | None = None  # the first one of which it is true
    item: int | None = None

    def as_json(self) -> dict[str, Any]:
        named: dict[str, Any] = {"record": self.record} if self.record is not None else {}
        if self.item is not None:
            named["item"] = self.item
        return {**named, "reason": self.reason, **self.told}


@dataclass
class Plan:
    format: str | None = None
    encoding: str | None = None
    delimiter: str | None = None
    header: list[str] = field(default_factory=list)
    records: int = 0
    blank_records: int = 0
    answers: list[PlannedAnswer] = field(default_factory=list)
    people: list[PlannedPerson] = field(default_factory=list)
    skipped: list[Skip] = field(default_factory=list)
    warnings: list[Skip] = field(default_factory=list)  # stored, but something about it is unknown
    notices: list[Notice] = field(default_factory=list)  # warnings about the file as a whole
    external_ids: dict[str, str] = field(default_factory=dict)  # by `PlannedAnswer.respondent`
    used: set[int] = field(default_factory=set)  # columns that the plan reads
    error: Fault | None = None

    @property
    def unused(self) -> list[str]:
        return [name for place, name in enumerate(self.header) if place not in self.used and name.strip()]


class Answers:
    """Collects a plan's answers: one respondent has one answer per item, and the first one stays."""

    def __init__(self, plan: Plan, settings: Settings) -> None:
        self.plan = plan
        self._zone = ZoneInfo(settings.time_zone) if settings.time_zone else None
        self._order = settings.date_order
        self._names: dict[str, str] = {}  # folded to as first written
        self._taken: set[tuple[str, int]] = set()
        self._times: list[tuple[PlannedAnswer, str | datetime | None, str | datetime | None]] = []
        self._unnamed: dict[str, int] = {}

    def skip(self, record: int, reason: str, item: int | None = None) -> None:
        self.plan.skipped.append(Skip(record, reason, item))

    def respondent(self, record: int, name: str) -> str | None:
        """The person as the file first wrote them; None (and skipped) where the record names nobody."""
        name = name.strip()
        if not name or len(name) > MAX_ID or "\0" in name:
            self.skip(record, "no_respondent" if not name else "unusable_respondent")
            return None
        known = self._names.setdefault(folded(name), name)
        self.plan.external_ids[known] = known
        return known

    def knows(self, name: str) -> bool:
        return folded(name) in self._names

    def unnamed(self, record: int, identity: Iterable[str]) -> str:
        """A pseudonym for somebody the file does not name: the same for the same record of a later, longer export."""
        digest = hashlib.sha256("\x1f".join(identity).encode(errors="surrogatepass")).hexdigest()[:20]
        self._unnamed[digest] = count = self._unnamed.get(digest, 0) + 1
        name = f"row:{record}"
        self.plan.external_ids[name] = f"{UNNAMED}{digest}:{count}"
        return name

    def add(
        self,
        answer: PlannedAnswer,
        *,
        started: str | datetime | None = None,
        submitted: str | datetime | None = None,
    ) -> None:
        key = (answer.respondent, answer.item)
        if key in self._taken:
            self.skip(answer.record, "duplicate", answer.item)
        elif "\0" in answer.text or _has_surrogate(answer.text):
            self.skip(answer.record, "unstorable_text", answer.item)
        elif len(answer.text) > MAX_TEXT:
            self.skip(answer.record, "too_long", answer.item)
        else:
            self._taken.add(key)
            self.plan.answers.append(answer)
            self._times.append((answer, started, submitted))

    def finish(self) -> None:
        """Read the times, now that all of them show the order of day and month."""
        texts = [value for _answer, *both in self._times for value in both if isinstance(value, str)]
        order = self._order or date_order(texts)
        unread: dict[int, None] = {}
        for answer, started, submitted in self._times:
            for name, value in (("started", started), ("submitted", submitted)):
                if value is None or (isinstance(value, str) and not value.strip()):
                    continue
                moment = time_read(value, order) if isinstance(value, str) else value
                if moment is None:
                    unread[answer.record] = None
                    continue
                setattr(answer, name, iso(moment))
                setattr(answer, f"{name}_at", instant(moment, self._zone))
        self.plan.warnings += [Skip(record, "time_unreadable") for record in unread]
        self.plan.external_ids = {
            answer.respondent: self.plan.external_ids[answer.respondent] for answer in self.plan.answers
        }


def _has_surrogate(text: str) -> bool:
    return any("\ud800" <= sign <= "\udfff" for sign in text)


def line_ends(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")
