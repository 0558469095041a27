"""Prolific: the export of a study's participants. It holds no answers: it says who was paid and how long they took."""

import re
from typing import Any

from corpus.tables.table import Record, Table, folded
from surveys.importers.columns import needed, records_of
from surveys.importers.items import Items
from surveys.importers.plan import Plan, PlannedPerson, Settings, Skip

PARTICIPANT, STATUS, VISIT = "Participant id", "Status", "Submission id"
IMPORTED = ("APPROVED", "AWAITING REVIEW")
SKIPPED = {
    "RETURNED": "returned",
    "TIMED-OUT": "timed_out",
    "TIMED OUT": "timed_out",
    "REJECTED": "rejected",
    "ACTIVE": "active",
    "RESERVED": "active",
    "PARTIALLY APPROVED": "partially_approved",
    "SCREENED OUT": "screened_out",
}
# Words in the place of a value that the person has taken back, or that Prolific no longer has.
ABSENT = ("consent_revoked", "data_expired", "not applicable", "")


def is_prolific(header: list[str]) -> bool:
    names = {folded(name) for name in header}
    return folded(PARTICIPANT) in names and folded(VISIT) in names


def plan_prolific(table: Table, items: Items, settings: Settings, plan: Plan) -> None:
    """Age and sex are kept where they are; of the other columns about people only those that were chosen."""
    places = {name: needed(table, plan, name, name) for name in (PARTICIPANT, STATUS)}
    optional = {name: table.find(name) for name in (VISIT, "Time taken", "Started at", "Completed at", "Age", "Sex")}
    plan.used |= {place for place in optional.values() if place is not None}
    kept = {table.header[place]: place for place in map(table.column, settings.keep)}
    plan.used |= set(kept.values())
    seen: set[str] = set()

    def value(record: Record, name: str) -> str | None:
        place = optional[name]
        return present(record.cell(place)) if place is not None else None

    for record in records_of(table, plan):
        name = record.cell(places[PARTICIPANT]).strip()
        status = record.cell(places[STATUS]).strip().upper()
        reason = _reason(name, status, seen)
        if reason:
            plan.skipped.append(Skip(record.number, reason))
            continue
        seen.add(folded(name))
        data: dict[str, Any] = {"age": whole(value(record, "Age")), "sex": value(record, "Sex")}
        data |= {column: present(record.cell(place)) for column, place in kept.items()}
        plan.people.append(
            PlannedPerson(
                record=record.number,
                respondent=name,
                status=status,
                seconds=whole(value(record, "Time taken")),
                visit=value(record, VISIT) or "",
                started=value(record, "Started at"),
                completed=value(record, "Completed at"),
                data=data,
            )
        )


def _reason(name: str, status: str, seen: set[str]) -> str | None:
    if not name or len(name) > 100:
        return "no_respondent"
    if status not in IMPORTED:
        return SKIPPED.get(status, "unknown_status")
    return "duplicate_respondent" if folded(name) in seen else None


def present(text: str) -> str | None:
    text = text.strip()
    return None if folded(text) in ABSENT or "\0" in text else text[:500]


def whole(text: str | None) -> int | None:
    found = re.fullmatch(r"(\d{1,9})(\.\d+)?", text or "")
    return int(found[1]) if found else None
