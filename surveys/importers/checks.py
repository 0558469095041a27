"""What makes one doubt that the file is of this test, or that everybody in it agreed. It warns; it stops nothing."""

import re
from collections.abc import Iterable, Iterator, Sequence

from corpus.tables.table import Record, Table, folded
from surveys.importers.items import Item
from surveys.importers.plan import Notice, Plan, Settings

LOOKED_AT = 5_000  # records; another test shows in the first ones
SHOWN = 200  # characters of an example
MAX_CONSENT = 500  # characters of a value that is shown to choose from
MAX_CONSENTS = 4  # different values: with more of them it is another question
SAME = 0.5  # of the words of both texts together

# Columns whose header says that the given words stand in them.
_WORDS = ("lemmas", "words", "stimulus", "given words", "леммы", "слова", "стимул", "данные слова")
_CONSENT = re.compile(r"соглас|consent|\bagree", re.IGNORECASE)
_YES = re.compile(r"(да\b|yes\b|y$|true\b|истина\b|\+|(я )?соглас|(i )?(agree|consent|accept)|даю\b|принимаю\b)")
_NO = re.compile(r"(нет\b|no\b|n$|false\b|ложь\b|-|(я )?не\b|(i )?(disagree|do not|don.t)|отказ)")


class Asked:
    """Columns whose header asks for consent, and what was said in them: of each value the first spelling."""

    def __init__(self, header: Sequence[str]) -> None:
        self.values: dict[int, dict[str, str]] = {
            place: {} for place, name in enumerate(header) if _CONSENT.search(name)
        }

    def note(self, record: Record) -> None:
        for place, values in self.values.items():
            if place < len(record.cells) and len(values) <= MAX_CONSENTS and record.cells[place].strip():
                values.setdefault(folded(record.cells[place]), record.cells[place].strip()[:MAX_CONSENT])

    def consents(self) -> dict[int, list[str]]:
        return {place: list(values.values()) for place, values in self.values.items() if is_consent(values)}


class Watch:
    """Sees the records that an importer reads, and keeps the first of them for looking at afterwards."""

    def __init__(self, header: Sequence[str]) -> None:
        self.seen: list[Record] = []
        self.asked = Asked(header)

    def over(self, records: Iterable[Record]) -> Iterator[Record]:
        for record in records:
            if not record.is_blank:
                if len(self.seen) < LOOKED_AT:
                    self.seen.append(record)
                self.asked.note(record)
            yield record


def is_consent(values: Iterable[str]) -> bool:
    """A few values and no scale of numbers."""
    several = list(values)
    return 0 < len(several) <= MAX_CONSENTS and not all(re.fullmatch(r"\d+([.,]\d+)?", value) for value in several)


def says_yes(value: str) -> bool:
    value = folded(value).strip("\"'«»“”")
    return bool(_YES.match(value)) and not _NO.match(value)


def notices_of(table: Table, items: Sequence[Item], settings: Settings, plan: Plan, watch: Watch) -> list[Notice]:
    kind = (plan.format or "").rpartition("_")[0]
    if kind == "prolific":
        return []
    found = [] if kind == "luria" else list(_consents_unused(table, plan, watch))
    if settings.answer_columns or kind == "google_forms":
        return found + _other_questions(table, items, settings)
    return found + _other_words(table, items, settings, plan, watch)


def _consents_unused(table: Table, plan: Plan, watch: Watch) -> Iterator[Notice]:
    for place, values in watch.asked.consents().items():
        if place not in plan.used:
            told = {"column": table.header[place][:SHOWN], "values": [value[:SHOWN] for value in values]}
            yield Notice("consent_not_used", told)


def words_of(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold().replace("ё", "е")))


def is_like(text: str, item: Item) -> bool:
    """Whether these are the given words of the stimulus, in whatever order, or its original sentence."""
    words = words_of(text)
    return any(
        len(words & other) >= SAME * len(words | other) for other in (words_of(item.text), words_of(item.original))
    )


def _other_words(table: Table, items: Sequence[Item], settings: Settings, plan: Plan, watch: Watch) -> list[Notice]:
    """Columns of tasks that are not the tasks of the instrument, or not those whose number stands beside them."""
    by_number = {item.number: item for item in items}
    answered = {answer.record: by_number[answer.item] for answer in plan.answers}
    strangers = {skip.record for skip in plan.skipped if skip.reason == "unknown_item"}
    rows = [record for record in watch.seen if record.number in answered or record.number in strangers]
    mapped = table.column(settings.lemmas_column) if settings.lemmas_column is not None else None
    found = []
    for place, header in enumerate(table.header):
        cells = [(record, record.cells[place].strip()) for record in rows if place < len(record.cells)]
        cells = [(record, text) for record, text in cells if text]
        named = place == mapped or folded(header).removeprefix("input:") in _WORDS
        if not named and (place in plan.used or not _looks_like_tasks(cells, answered)):
            continue
        if sum(len(words_of(text)) >= 2 for _record, text in cells) * 2 < len(cells):
            continue  # numbers or codes
        wrong = [(record, text) for record, text in cells if not _fits(text, answered.get(record.number), items)]
        # What finds the stimulus by these words has already named each record of which it did not.
        by_words = place in plan.used
        if wrong and (not by_words or len(wrong) * 2 > len(cells)):
            found.append(_words_notice(header, wrong, len(cells), answered, items))
    return found


def _fits(text: str, item: Item | None, items: Sequence[Item]) -> bool:
    return is_like(text, item) if item else any(is_like(text, other) for other in items)


def _words_notice(
    header: str, wrong: list[tuple[Record, str]], total: int, answered: dict[int, Item], items: Sequence[Item]
) -> Notice:
    record, text = next((one for one in wrong if one[0].number in answered), wrong[0])
    item = answered.get(record.number)
    told = {
        "column": header[:SHOWN],
        "wrong": len(wrong),
        "of": total,
        "in_file": text[:SHOWN],
        "in_test": (item or items[0]).text[:SHOWN] if items else "",
    }
    return Notice("other_words", told, record.number, item.number if item else None)


def _looks_like_tasks(cells: list[tuple[Record, str]], answered: dict[int, Item]) -> bool:
    """Several words, the same for everybody who did the task, and others in another task."""
    by_item: dict[int, list[str]] = {}
    for record, text in cells:
        if item := answered.get(record.number):
            by_item.setdefault(item.number, []).append(text)
    if len(by_item) < 2 or any(len(set(texts)) > 1 for texts in by_item.values()):
        return False
    first = [texts[0] for texts in by_item.values()]
    return (
        any(len(texts) > 1 for texts in by_item.values())
        and len(set(first)) == len(first)
        and sum(len(words_of(text)) >= 3 for text in first) * 2 > len(first)
    )


def _other_questions(table: Table, items: Sequence[Item], settings: Settings) -> list[Notice]:
    """Questions of a form that hold words, but not those of the stimulus that their column was said to answer."""
    by_number = {item.number: item for item in items}
    places = {table.column(column): number for column, number in settings.answer_columns.items()}
    asked = {place: words_of(table.header[place]) for place in places}
    requests = {
        word for words in asked.values() for word in words if sum(word in other for other in asked.values()) > 1
    }
    wrong = []
    for place, number in places.items():
        item = by_number[number]
        given = words_of(item.text)
        own = {word for word in asked[place] - requests if not word.isdecimal()}
        if len(own) >= 3 and len(asked[place] & given) < SAME * len(given):
            wrong.append((table.header[place].strip(), item))
    if not wrong:
        return []
    header, item = wrong[0]
    told = {"column": header[:SHOWN], "wrong": len(wrong), "of": len(places)}
    told |= {"in_file": header[:SHOWN], "in_test": item.text[:SHOWN]}
    return [Notice("other_questions", told, item=item.number)]
