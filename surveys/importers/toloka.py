"""Toloka and Yandex Tasks: the pool's assignments, a row per task."""

import dataclasses

from corpus.tables.faults import FaultError
from corpus.tables.table import Record, Table
from surveys.importers.columns import ItemColumn, add_text, item_or_skip, needed, records_of
from surveys.importers.items import Items
from surveys.importers.plan import Answers, Plan, Settings

WORKER, ASSIGNMENT, STATUS = "ASSIGNMENT:worker_id", "ASSIGNMENT:assignment_id", "ASSIGNMENT:status"
STARTED, SUBMITTED = "ASSIGNMENT:started", "ASSIGNMENT:submitted"
TIME_ZONE = "UTC"  # Toloka's times are in UTC and do not say so

IMPORTED = ("SUBMITTED", "APPROVED", "ACCEPTED")
SKIPPED = {
    "REJECTED": "rejected",
    "SKIPPED": "skipped_assignment",
    "EXPIRED": "expired_assignment",
    "ACTIVE": "active_assignment",
}


def is_toloka(header: list[str]) -> bool:
    return WORKER in header or (STATUS in header and any(name.startswith("OUTPUT:") for name in header))


def plan_toloka(table: Table, items: Items, settings: Settings, plan: Plan) -> None:
    settings = with_defaults(table, settings)
    text = needed(table, plan, settings.answer_column, "answer_column")
    which = ItemColumn.of(table, plan, settings)
    places = {name: needed(table, plan, name, name) for name in (WORKER, STATUS)}
    optional = {name: table.find(name) for name in (ASSIGNMENT, STARTED, SUBMITTED)}
    hints = _marking(table, "HINT:", but="HINT:default_language")
    golden = _marking(table, "GOLDEN:")
    plan.used |= {place for place in (*optional.values(), *hints, *golden) if place is not None}
    answers = Answers(plan, settings)

    def value(record: Record, name: str) -> str:
        place = optional[name]
        return record.cell(place) if place is not None else ""

    for record in records_of(table, plan):
        status = record.cell(places[STATUS]).strip().upper()
        reason = _reason(record, status, hints, golden)
        if reason:
            answers.skip(record.number, reason)
            continue
        item = item_or_skip(which, record, items, answers)
        respondent = answers.respondent(record.number, record.cell(places[WORKER])) if item else None
        if item and respondent:
            times = value(record, STARTED), value(record, SUBMITTED)
            add_text(answers, record, text, respondent, item, *times, status, value(record, ASSIGNMENT).strip()[:100])
    answers.finish()


def with_defaults(table: Table, settings: Settings) -> Settings:
    """The only output is the answer; of the inputs an `item_id` or else `lemmas` says which task it was."""
    chosen = settings
    if chosen.answer_column is None:
        outputs = [name for name in table.header if name.startswith("OUTPUT:")]
        usual = [name for name in outputs if name in ("OUTPUT:answer", "OUTPUT:result", "OUTPUT:text")]
        if len(outputs) != 1 and len(usual) != 1:
            raise FaultError("missing_setting", detail="answer_column")
        chosen = dataclasses.replace(chosen, answer_column=(usual or outputs)[0])
    if chosen.item_column is None and chosen.lemmas_column is None:
        if "INPUT:item_id" in table.header:
            chosen = dataclasses.replace(chosen, item_column="INPUT:item_id")
        elif "INPUT:lemmas" in table.header:
            chosen = dataclasses.replace(chosen, lemmas_column="INPUT:lemmas")
    if chosen.time_zone is None:
        chosen = dataclasses.replace(chosen, time_zone=TIME_ZONE)
    return chosen


def _marking(table: Table, start: str, but: str = "") -> list[int]:
    return [place for place, name in enumerate(table.header) if name.startswith(start) and name != but]


def _reason(record: Record, status: str, hints: list[int], golden: list[int]) -> str | None:
    """Why the task's answer is not one of the test: the worker was being taught or checked, or it was not taken."""
    if any(record.cell(place).strip() for place in hints):
        return "training_task"
    if any(record.cell(place).strip() for place in golden):
        return "control_task"
    return None if status in IMPORTED else SKIPPED.get(status, "unknown_status")
