"""What an import did or would do, for the page, the command and the tests alike."""

from dataclasses import dataclass, field
from typing import Any

from corpus.tables.faults import Fault
from surveys.importers.plan import Notice, Plan, PlannedAnswer, PlannedPerson
from surveys.models import ImportBatch, Survey


@dataclass(frozen=True, slots=True)
class SourceFile:
    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Named:
    """A record (or one item of it) and what became of it."""

    file: int
    record: int
    reason: str
    item: int | None = None
    respondent: str = ""

    def as_json(self, several: bool) -> dict[str, Any]:
        named: dict[str, Any] = {"record": self.record, "reason": self.reason}
        if several:
            named["file"] = self.file
        if self.item is not None:
            named["item"] = self.item
        if self.respondent:
            named["respondent"] = self.respondent
        return named


@dataclass(frozen=True, slots=True)
class NewAnswer:
    file: int
    planned: PlannedAnswer


@dataclass(frozen=True, slots=True)
class NewRecord:
    file: int
    planned: PlannedPerson
    participant_id: int
    survey_id: int


@dataclass
class ImportReport:
    files: list[SourceFile]
    plans: list[Plan]
    answers: list[NewAnswer] = field(default_factory=list)
    people: list[NewRecord] = field(default_factory=list)
    skipped: list[Named] = field(default_factory=list)
    conflicts: list[Named] = field(default_factory=list)
    warnings: list[Named] = field(default_factory=list)
    notices: list[tuple[int, Notice]] = field(default_factory=list)  # about a file as a whole, by its number
    already: int = 0  # there from an earlier import, unchanged
    respondents: int = 0  # people with something new
    incomplete: int = 0  # people who will still lack answers
    batches: list[ImportBatch] = field(default_factory=list)
    survey: Survey | None = None  # the one that is there already and is added to
    digest: str = ""  # of all that would happen

    @property
    def fault(self) -> tuple[str, Fault] | None:
        """The first file that cannot be read, and why: then nothing at all is stored."""
        for source, plan in zip(self.files, self.plans, strict=True):
            if plan.error:
                return source.name, plan.error
        return None

    @property
    def counts(self) -> dict[str, int]:
        return {
            "records": sum(plan.records for plan in self.plans),
            "blank_records": sum(plan.blank_records for plan in self.plans),
            "imported": len(self.answers) + len(self.people),
            "skipped": len(self.skipped),
            "respondents": self.respondents,
            "already": self.already,
            "conflicts": len(self.conflicts),
            "incomplete": self.incomplete,
        }

    def as_json(self) -> dict[str, Any]:
        """In the vocabulary of docs/importing.md."""
        several = len(self.files) > 1
        first = self.plans[0]
        answers = [_answer_json(new, several) for new in self.answers]
        told: dict[str, Any] = {
            "format": first.format,
            "encoding": first.encoding,
            "delimiter": first.delimiter,
            "counts": self.counts,
            "answers": answers,
            "skipped": [named.as_json(several) for named in self.skipped],
            "conflicts": [named.as_json(several) for named in self.conflicts],
            "warnings": [
                *(notice.as_json() | ({"file": number} if several else {}) for number, notice in self.notices),
                *(named.as_json(several) for named in self.warnings),
            ],
        }
        if self.people:
            told["respondents"] = [_person_json(new.planned) for new in self.people]
        if self.fault:
            name, fault = self.fault
            told |= {"error": fault.code, "error_file": name, "error_line": fault.line, "error_detail": fault.detail}
        return told


def _answer_json(new: NewAnswer, several: bool) -> dict[str, Any]:
    answer = new.planned
    told: dict[str, Any] = {
        "record": answer.record,
        "respondent": answer.respondent,
        "item": answer.item,
        "text": answer.text,
    }
    if answer.outcome != "given":
        told["outcome"] = answer.outcome
    for name in ("status", "assignment", "started", "submitted"):
        if getattr(answer, name):
            told[name] = getattr(answer, name)
    return told | ({"file": new.file} if several else {})


def _person_json(person: PlannedPerson) -> dict[str, Any]:
    return {
        "record": person.record,
        "respondent": person.respondent,
        "status": person.status,
        "seconds": person.seconds,
        **person.data,
    }
