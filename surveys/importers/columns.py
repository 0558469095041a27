"""Any table, by saying which column is what: a row per answer (long), or one per person, with columns of stimuli."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from corpus.tables.faults import FaultError
from corpus.tables.table import Record, Table, folded
from surveys.importers.items import Item, Items
from surveys.importers.plan import Answers, Column, Plan, PlannedAnswer, Settings, line_ends


def plan_columns(table: Table, items: Items, settings: Settings, plan: Plan) -> None:
    if settings.answer_columns:
        plan_wide(table, items, settings, plan)
    else:
        plan_long(table, items, settings, plan)


def place_of(table: Table, plan: Plan, column: Column | None) -> int | None:
    """The column's position, noted as used. Raises FaultError where it is named and not there."""
    if column is None:
        return None
    place = table.column(column)
    plan.used.add(place)
    return place


def needed(table: Table, plan: Plan, column: Column | None, name: str) -> int:
    place = place_of(table, plan, column)
    if place is None:
        raise FaultError("missing_setting", detail=name)
    return place


@dataclass(frozen=True)
class ItemColumn:
    """Where a record says which stimulus it answers."""

    place: int
    by_words: bool

    @classmethod
    def of(cls, table: Table, plan: Plan, settings: Settings) -> "ItemColumn":
        if settings.item_column is not None:
            return cls(needed(table, plan, settings.item_column, "item_column"), by_words=False)
        return cls(needed(table, plan, settings.lemmas_column, "item_column"), by_words=True)

    def read(self, record: Record, items: Items) -> Item | None:
        text = record.cell(self.place)
        return items.worded(text) if self.by_words else items.coded(text)


def time_in(record: Record, place: int | None) -> str | datetime | None:
    if place is None:
        return None
    return record.dates.get(place) or record.cell(place)


class Consents:
    """Whether a record's person agreed. With no column nothing is asked: the importer's statement covers all."""

    def __init__(self, table: Table, plan: Plan, settings: Settings) -> None:
        self.place = place_of(table, plan, settings.consent_column)
        self.yes = {folded(value) for value in settings.consent_yes}
        if self.place is not None and not self.yes:
            raise FaultError("missing_setting", detail="consent_yes")

    def given(self, record: Record) -> bool:
        return self.place is None or folded(record.cell(self.place)) in self.yes


def plan_long(table: Table, items: Items, settings: Settings, plan: Plan) -> None:
    who = needed(table, plan, settings.respondent_column, "respondent_column")
    text = needed(table, plan, settings.answer_column, "answer_column")
    which = ItemColumn.of(table, plan, settings)
    started, submitted = (place_of(table, plan, c) for c in (settings.started_column, settings.timestamp_column))
    consents = Consents(table, plan, settings)
    answers = Answers(plan, settings)
    for record in records_of(table, plan):
        if not consents.given(record):
            answers.skip(record.number, "no_consent")
            continue
        item = item_or_skip(which, record, items, answers)
        respondent = answers.respondent(record.number, record.cell(who)) if item else None
        if item and respondent:
            add_text(answers, record, text, respondent, item, time_in(record, started), time_in(record, submitted))
    answers.finish()


def plan_wide(table: Table, items: Items, settings: Settings, plan: Plan) -> None:
    """A row per person. `answer_columns` may be empty: then a column answers the stimulus that its header asks."""
    places = answer_places(table, items, settings)
    plan.used |= set(places)
    when = place_of(table, plan, settings.timestamp_column)
    started = place_of(table, plan, settings.started_column)
    who = place_of(table, plan, settings.respondent_column)
    consents = Consents(table, plan, settings)
    answers = Answers(plan, settings)
    for record in records_of(table, plan):
        if not consents.given(record):
            answers.skip(record.number, "no_consent")
            continue
        respondent = _person(record, who, when, consents.place, places, answers)
        if respondent:
            for place, item in places.items():
                times = time_in(record, started), time_in(record, when)
                add_text(answers, record, place, respondent, item, *times)
    answers.finish()


def answer_places(table: Table, items: Items, settings: Settings) -> dict[int, Item]:
    """The stimulus of each answer column, in the order of the columns. Raises FaultError."""
    chosen: dict[int, Item] = {}
    if settings.answer_columns:
        for column, number in settings.answer_columns.items():
            item = items.numbered(number)
            if item is None:
                raise FaultError("unknown_items", detail=str(number))
            chosen[table.column(column)] = item
    else:
        for place, header in enumerate(table.header):
            asked = items.asked(header)
            if asked and not asked.is_practice:
                chosen[place] = asked
    if not chosen:
        raise FaultError("no_answer_columns", 1)
    numbers = [item.number for item in chosen.values()]
    doubled = sorted({number for number in numbers if numbers.count(number) > 1})
    if doubled:
        raise FaultError("doubled_item", 1, ", ".join(map(str, doubled)))
    return dict(sorted(chosen.items()))


def _person(
    record: Record, who: int | None, when: int | None, consent: int | None, places: dict[int, Item], answers: Answers
) -> str | None:
    """Who gave the record's answers; None where it is skipped, as a second one of the same person is."""
    if who is None:
        # What is theirs and stays when the form's questions are reworded, or columns are moved or added.
        own = [folded(record.cell(place)) if place is not None else "" for place in (when, consent)]
        texts = {item.number: line_ends(record.cell(place)).strip() for place, item in places.items()}
        own += [f"{number}\x1e{text}" for number, text in sorted(texts.items()) if text]
        return answers.unnamed(record.number, own)
    if answers.knows(record.cell(who)):
        answers.skip(record.number, "duplicate_respondent")
        return None
    return answers.respondent(record.number, record.cell(who))


def records_of(table: Table, plan: Plan) -> Iterator[Record]:
    """The records with something in them; both kinds are counted."""
    for record in table.records:
        plan.records += 1
        if record.is_blank:
            plan.blank_records += 1
        else:
            yield record


def item_or_skip(which: ItemColumn, record: Record, items: Items, answers: Answers) -> Item | None:
    item = which.read(record, items)
    if item is None:
        answers.skip(record.number, "unknown_item")
    elif item.is_practice:
        answers.skip(record.number, "practice_task", item.number)
        return None
    return item


def add_text(
    answers: Answers,
    record: Record,
    place: int,
    respondent: str,
    item: Item,
    started: str | datetime | None,
    submitted: str | datetime | None,
    status: str = "",
    assignment: str = "",
) -> None:
    """Add the answer in a cell, unless a spreadsheet has put something else in its place."""
    text = line_ends(record.cell(place))
    if place in record.damaged:
        answers.skip(record.number, record.damaged[place], item.number)
        return
    answer = PlannedAnswer(record.number, respondent, item.number, text, status=status, assignment=assignment)
    answers.add(answer, started=started, submitted=submitted)
