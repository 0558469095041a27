"""What an import did or would do, for the page, the command and the tests alike."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from annotation.import_raters import Whom
from annotation.import_votes import Said, Vote
from annotation.importers.plan import Named, Plan, Source
from annotation.models import Campaign, JudgementImport
from corpus.tables.faults import Fault
from scoring.models import Criterion


@dataclass(frozen=True, slots=True)
class Compared:
    """How the file differs from an import that is here already, in values of criteria."""

    campaign: Campaign
    same: int
    changed: int
    new: int
    gone: int  # there, and not in the file

    @property
    def is_within(self) -> bool:
        """The file has nothing that is not there."""
        return not self.changed and not self.new


@dataclass
class ImportReport:
    files: list[Source]
    plan: Plan
    votes: list[Vote] = field(default_factory=list)
    skipped: list[Named] = field(default_factory=list)
    conflicts: list[Named] = field(default_factory=list)
    warnings: list[Named] = field(default_factory=list)
    people: dict[str, Whom] = field(default_factory=dict)  # annotators, in the order of the file
    criteria: list[Criterion] = field(default_factory=list)
    compared: list[Compared] = field(default_factory=list)  # with earlier imports, the nearest first
    already: JudgementImport | None = None  # this very import has been done
    digest: str = ""  # of all that would happen
    imported: JudgementImport | None = None
    error: Fault | None = None  # of the settings as a whole, where no file is to blame

    @property
    def fault(self) -> tuple[str, Fault] | None:
        """Why nothing can be stored, and in which file."""
        if self.plan.error:
            name = self.files[self.plan.error_file].name if self.files else ""
            return name, self.plan.error
        return ("", self.error) if self.error else None

    @property
    def replaced(self) -> list[tuple[Said, Said]]:
        """What a later record took the place of."""
        return [pair for vote in self.votes for pair in vote.replaced]

    @property
    def counts(self) -> dict[str, int]:
        counts = {name: self.plan.counts[name] for name in sorted(self.plan.counts)}
        if self.fault:
            return {"imported": 0}
        return counts | {
            "imported": len(self.votes),
            "values": sum(len(vote.values) for vote in self.votes),
            "answers": len({vote.answer.pk for vote in self.votes}),
            "annotators": len(set().union(*(vote.annotators for vote in self.votes))),
            "skipped": len(self.skipped),
            "replaced": len(self.replaced),
            "conflicts": len(self.conflicts),
        }

    @property
    def reasons(self) -> dict[str, int]:
        return dict(sorted(Counter(one.reason for one in (*self.skipped, *self.conflicts, *self.warnings)).items()))

    def as_json(self) -> dict[str, Any]:
        """In the vocabulary of docs/importing-judgements.md."""
        answers = self.answers_by_annotator
        names = list(dict.fromkeys(name for vote in self.votes for name in vote.named_values))
        told: dict[str, Any] = {
            "format": self.plan.formats[0] if self.plan.formats else None,
            "encoding": self.plan.encodings[0] if self.plan.encodings else None,
            "delimiter": self.plan.delimiters[0] if self.plan.delimiters else None,
            "counts": self.counts,
            "annotators": [
                {"annotator": name, "answers": answers[name], "rater": whom.rater.pseudonym if whom.rater else None}
                for name, whom in self.people.items()
            ],
            "labels": [self._label(vote, names) for vote in self.votes],
            "skipped": [self._named(one) for one in self.skipped],
            "conflicts": [self._named(one) for one in self.conflicts],
            "warnings": [self._named(one) for one in self.warnings],
            "unused": self.plan.unused,
            "compared": [
                {
                    "campaign": one.campaign.pk,
                    "same": one.same,
                    "changed": one.changed,
                    "new": one.new,
                    "gone": one.gone,
                }
                for one in self.compared
            ],
            "already": self.already.campaign_id if self.already else None,
        }
        if self.fault:
            name, fault = self.fault
            told |= {"error": fault.code, "error_file": name, "error_line": fault.line, "error_detail": fault.detail}
        return told

    @property
    def answers_by_annotator(self) -> Counter[str]:
        return Counter(name for vote in self.votes for name in vote.annotators)

    def _label(self, vote: Vote, names: list[str]) -> dict[str, Any]:
        planned = vote.planned
        told: dict[str, Any] = {"record": planned.record, "answer": str(vote.answer.blind_id)}
        told |= {name: value for name, value in planned.answer._asdict().items() if value and name != "text"}
        told |= {"annotator": planned.annotator, "values": dict.fromkeys(names) | vote.named_values}
        if vote.made_at:
            told["made_at"] = vote.made_at.isoformat()
        return told | self._place(planned.file, planned.annotation)

    def _named(self, one: Named) -> dict[str, Any]:
        told: dict[str, Any] = {} if one.annotation else {"record": one.record}
        told |= self._place(one.file, one.annotation) | {"reason": one.reason}
        told |= {"criterion": one.criterion} if one.criterion else {}
        return told | ({"value": one.value} if one.value else {})

    def _place(self, file: int, annotation: str) -> dict[str, Any]:
        place: dict[str, Any] = {"file": self.files[file].name} if len(self.files) > 1 else {}
        if annotation:
            place["annotation"] = int(annotation) if annotation.isdecimal() else annotation
        return place
