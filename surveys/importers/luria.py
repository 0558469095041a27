"""Luria's own answers.csv: people's answers come back character for character."""

import re

from corpus.tables.faults import FaultError
from corpus.tables.table import Record, Table
from surveys.importers.columns import needed, records_of
from surveys.importers.items import Item, Items
from surveys.importers.plan import Answers, Plan, PlannedAnswer, Settings

NEEDED = (
    "instrument",
    "instrument_version",
    "respondent",
    "kind",
    "standing",
    "position",
    "stimulus",
    "outcome",
    "text",
)
STANDINGS = ("counted", "pilot", "excluded")
# The texts that the file for Excel guards, by the rule of reports.csvfile (a test compares them).
_TEXTS = ("stimulus", "original", "text", "source")
_DANGEROUS = re.compile(r"[\s\u200b-\u200f\ufeff]*[=+\-@|'\d＝＋－＠]")


def is_luria(header: list[str]) -> bool:
    return set(NEEDED) <= {name.strip() for name in header}


def plan_luria(table: Table, items: Items, settings: Settings, plan: Plan) -> None:
    places = {name: needed(table, plan, name, name) for name in NEEDED}
    optional = {name: table.find(name) for name in ("given_at", "duration_ms", "original", "source", "sitting")}
    plan.used |= {place for place in optional.values() if place is not None}
    records = list(records_of(table, plan))
    guarded = [place for name in _TEXTS if (place := places.get(name, optional.get(name))) is not None]
    if _is_for_excel(records, guarded, table, settings):
        for record in records:
            for place in guarded:
                record.cells[place] = record.cell(place).removeprefix("'")
    _one_instrument(records, places, settings)
    answers = Answers(plan, settings)
    for record in records:
        _answer(record, places, optional, items, settings, answers)
    answers.finish()


def _answer(
    record: Record,
    places: dict[str, int],
    optional: dict[str, int | None],
    items: Items,
    settings: Settings,
    answers: Answers,
) -> None:
    value = {name: record.cell(place) for name, place in places.items()}
    late = {name: record.cell(place) if place is not None else "" for name, place in optional.items()}
    reason = _reason(value, late, settings)
    if reason:
        answers.skip(record.number, reason)
        return
    item = _item(record, places, value, items, answers)
    respondent = answers.respondent(record.number, value["respondent"]) if item else None
    if item and respondent:
        duration = late["duration_ms"]
        answer = PlannedAnswer(
            record.number,
            respondent,
            item.number,
            value["text"],
            outcome=value["outcome"],
            standing=value["standing"],
            duration_ms=int(duration) if re.fullmatch(r"\d{1,9}", duration) else None,
        )
        answers.add(answer, submitted=late["given_at"])


def _reason(value: dict[str, str], late: dict[str, str], settings: Settings) -> str | None:
    if value["kind"] != "human":
        return "model_answer"
    if settings.source_instrument and settings.source_instrument != _instrument(value):
        return "other_instrument"
    if late["sitting"] not in ("", "1"):
        return "later_sitting"
    if value["standing"] not in STANDINGS:
        return "unknown_standing"
    if value["outcome"] not in ("given", "declined") or (value["outcome"] == "declined" and value["text"]):
        return "unknown_outcome"
    return None


def _item(record: Record, places: dict[str, int], value: dict[str, str], items: Items, answers: Answers) -> Item | None:
    """By position; a stimulus with other words at that place is another instrument's."""
    item = items.coded(value["position"])
    if item is None or items.worded(value["stimulus"]) not in (item, None) or not _same(item, value["stimulus"]):
        answers.skip(record.number, "unknown_item")
        return None
    if item.is_practice:
        answers.skip(record.number, "practice_task", item.number)
        return None
    return item


def _same(item: Item, words: str) -> bool:
    return item.text.split() == words.split()


def _instrument(value: dict[str, str]) -> str:
    return f"{value['instrument']}:{value['instrument_version']}"


def _one_instrument(records: list[Record], places: dict[str, int], settings: Settings) -> None:
    """Positions of two instruments would be mixed up. Raises FaultError `choose_instrument`."""
    people = (record for record in records if record.cell(places["kind"]) == "human")
    found = {_instrument({name: record.cell(place) for name, place in places.items()}) for record in people}
    if settings.source_instrument is None and len(found) > 1:
        raise FaultError("choose_instrument", detail=", ".join(sorted(found))[:200])


def _is_for_excel(records: list[Record], guarded: list[int], table: Table, settings: Settings) -> bool:
    """Whether protective apostrophes stand before texts.

    The exact file has commas, and as a rule some text that would need the guard and has none. Where there are only
    texts that look guarded, both readings are possible: then the person says which.

    Raises FaultError `choose_for_excel`.
    """
    if settings.for_excel is not None:
        return settings.for_excel
    if table.delimiter == ";":
        return True
    texts = [record.cell(place) for record in records for place in guarded]
    bare = any(_DANGEROUS.match(text) and not text.startswith("'") for text in texts)
    if bare or any(text.startswith("'") and not _DANGEROUS.match(text[1:]) for text in texts):
        return False
    if any(text.startswith("'") for text in texts):
        raise FaultError("choose_for_excel")
    return False
