"""The first look at sent files: what they are, what stands in them, and what it may mean here."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from annotation.importers.formats import opened
from annotation.importers.label_studio_json_min import OWN
from annotation.importers.plan import Raw, Source
from annotation.importers.settings import Settings
from annotation.importers.values import chosen_in, number_in, plain
from corpus.storing import is_storable
from corpus.tables.faults import Fault, FaultError
from corpus.tables.table import folded, is_workbook
from corpus.tables.workbook import sheet_names
from scoring.models import Criterion

READING = ("encoding", "delimiter", "sheet", "ground_truth")
MAX_FIELDS = 100
MAX_VALUES = 30  # of a field of choices; what has more is no scale
MAX_VALUE = 200
SAMPLES = 3
DOCCANO = ("label", "labels", "Comments", "meta")

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_YES = {"да", "yes", "y", "true", "1", "верно", "правильно", "+", "correct", "истина", "ok"}
_NO = {"нет", "no", "n", "false", "0", "неверно", "неправильно", "-", "incorrect", "wrong", "ложь"}
_NAMES = {
    "key": ("answer", "answer_id", "blind_id", "id ответа"),
    "respondent": ("respondent", "respondent_id", "participant", "worker_id", "респондент", "участник"),
    "stimulus": ("stimulus", "position", "item", "item_id", "стимул", "задание"),
    "text": ("text", "answer_text", "ответ", "текст"),
    "annotator": ("annotator", "rater", "judge", "annotator_id", "эксперт", "разметчик", "аннотатор"),
    "time": ("judged_at", "made_at", "updated_at", "created_at", "time", "timestamp", "время", "дата"),
    "criterion_column": ("criterion", "критерий"),
    "value_column": ("value", "значение", "оценка"),
}


@dataclass
class FieldSeen:
    """A field of the files. `is_choice`: a criterion may stand in it; `is_data`: it may say which answer is meant."""

    name: str
    is_data: bool
    is_choice: bool
    samples: list[str] = field(default_factory=list)
    values: list[str] = field(default_factory=list)  # what was chosen, each once
    has_more: bool = False  # too many different ones

    def note(self, text: str) -> None:
        if text and text not in self.samples and len(self.samples) < SAMPLES:
            self.samples.append(text[:120])

    def note_value(self, value: str) -> None:
        if self.has_more or value in self.values or not value:
            return
        if len(self.values) >= MAX_VALUES or len(value) > MAX_VALUE:
            self.has_more = True
        else:
            self.values.append(value)


@dataclass
class Look:
    formats: list[str] = field(default_factory=list)
    encodings: list[str | None] = field(default_factory=list)
    delimiters: list[str | None] = field(default_factory=list)
    sheets: list[str] = field(default_factory=list)
    fields: dict[str, FieldSeen] = field(default_factory=dict)
    labels: list[str] = field(default_factory=list)  # of doccano
    records: int = 0
    fault: Fault | None = None
    fault_file: str = ""

    @property
    def is_table(self) -> bool:
        return any(name.startswith("columns") for name in self.formats)


def look_at(sources: Sequence[Source], format_name: str | None, chosen: dict[str, Any]) -> Look:
    """Reads everything once. A fault is in `fault`; what was seen before it is there all the same."""
    look = Look()
    for source in sources:
        try:
            if source.fault:
                raise FaultError(source.fault.code, source.fault.line, source.fault.detail)
            if is_workbook(source.data):
                look.sheets = look.sheets or sheet_names(source.data)
            settings = Settings.read({name: chosen[name] for name in READING if name in chosen})
            reading = opened(source, format_name, settings)
            look.formats.append(reading.format)
            look.encodings.append(reading.encoding)
            look.delimiters.append(reading.delimiter)
            for name in reading.fields:
                _field(look, name, is_data=True, is_choice=reading.format.startswith(("columns", "label_studio")))
            for raw in reading.records:
                look.records += 1
                _note(look, raw, flat=raw.verdicts is None)
        except FaultError as error:
            look.fault, look.fault_file = error.fault, source.name
            return look
    for name in (*OWN, *DOCCANO):
        if not look.is_table:
            look.fields.pop(name, None)
    return look


def _field(look: Look, name: str, *, is_data: bool, is_choice: bool) -> FieldSeen | None:
    if name not in look.fields and len(look.fields) < MAX_FIELDS and len(name) <= MAX_VALUE and is_storable(name):
        look.fields[name] = FieldSeen(name, is_data, is_choice)
    return look.fields.get(name)


def _note(look: Look, raw: Raw, *, flat: bool) -> None:
    for name, value in raw.data.items():
        seen = _field(look, name, is_data=True, is_choice=flat)
        if seen is None:
            continue
        if len(seen.samples) < SAMPLES:
            seen.note(plain(value))
        if flat and not seen.has_more:
            for one in chosen_in(value) or ():
                seen.note_value(one)
    for name, chosen in (raw.verdicts or {}).items():
        seen = _field(look, name, is_data=False, is_choice=True)
        for one in chosen or ():
            if seen:
                seen.note(one)
                seen.note_value(one)
    for label in raw.labels or ():
        if label not in look.labels and len(look.labels) < MAX_VALUES * 2 and len(label) <= MAX_VALUE:
            look.labels.append(label)


# --- what it may mean: shown to the person, who can change all of it ------------------------------------------------


def suggested(look: Look, criteria: Sequence[Criterion], keys: Iterable[str] = ()) -> dict[str, Any]:
    """Settings that the files themselves suggest."""
    chosen = _answer_suggested(look, {folded(key) for key in keys})
    if look.is_table:
        for role in ("annotator", "time", "criterion_column", "value_column"):
            found = _named(look, role)
            if found is not None:
                chosen[role] = found.name
        if "criterion_column" not in chosen or "value_column" not in chosen:
            chosen.pop("criterion_column", None)
            chosen.pop("value_column", None)
    if "criterion_column" in chosen:
        return chosen | _long_suggested(look, chosen, criteria)
    if look.labels:
        labels = {label: _label_suggested(label, criteria) for label in look.labels}
        return chosen | {"labels": {label: pair for label, pair in labels.items() if pair}}
    taken = {name for name in chosen.values() if isinstance(name, str)}
    codes: dict[str, str] = {}
    values: dict[str, dict[str, float]] = {}
    for seen in look.fields.values():
        fits = seen.is_choice and not seen.has_more and seen.name not in taken
        criterion = criterion_named(seen.name, criteria) if fits else None
        if criterion and criterion.code not in codes.values():
            codes[seen.name] = criterion.code
            values[seen.name] = values_suggested(seen.values, criterion)
    return chosen | {"codes": codes, "criteria": values}


def _answer_suggested(look: Look, keys: set[str]) -> dict[str, Any]:
    data = [seen for seen in look.fields.values() if seen.is_data]
    ids = [
        seen
        for seen in data
        if seen.samples and all(_UUID.fullmatch(text) or folded(text) in keys for text in seen.samples)
    ]
    by_name = {role: _named(look, role) for role in ("key", "respondent", "stimulus", "text")}
    chosen: dict[str, Any] = {}
    key = by_name["key"] if by_name["key"] in ids else next((one for one in ids if one != by_name["respondent"]), None)
    if key is not None:
        chosen["key"] = key.name
    elif by_name["respondent"] is not None and by_name["stimulus"] is not None:
        chosen |= {"respondent": by_name["respondent"].name, "stimulus": by_name["stimulus"].name}
    elif by_name["stimulus"] is not None and by_name["text"] is not None:
        chosen["stimulus"] = by_name["stimulus"].name
    if by_name["text"] is not None:
        chosen["text"] = by_name["text"].name
    return chosen


def _named(look: Look, role: str) -> FieldSeen | None:
    for name in _NAMES[role]:
        for seen in look.fields.values():
            if seen.is_data and folded(seen.name) == name:
                return seen
    return None


def criterion_named(name: str, criteria: Sequence[Criterion]) -> Criterion | None:
    """The criterion of this code or question, or whose code begins so: `gram`, `grammatical`."""
    text = folded(name)
    for criterion in criteria:
        if text in (criterion.code, folded(criterion.question_ru), folded(criterion.question_en)):
            return criterion
    if len(text) < 3:
        return None
    alike = [one for one in criteria if one.code.startswith(text) or text.startswith(one.code)]
    alike = alike or [one for one in criteria if text[:4] == one.code[:4]]
    return alike[0] if len(alike) == 1 else None


def values_suggested(values: Iterable[str], criterion: Criterion) -> dict[str, float]:
    found = {}
    for value in values:
        number = value_meant(value, criterion)
        if number is not None:
            found[value] = number
    return found


def value_meant(text: str, criterion: Criterion) -> float | None:
    number = number_in(text)
    if number is not None:
        return number if number in criterion.scale else None
    if set(criterion.scale) == {0, 1}:
        return 1 if folded(text) in _YES else 0 if folded(text) in _NO else None
    return None


def _label_suggested(label: str, criteria: Sequence[Criterion]) -> tuple[str, float] | None:
    """`gram_yes`: a criterion and a value, joined by whatever sign."""
    found = re.fullmatch(r"(.+?)[\s_:=.–—-]+([^\s_:=.–—-]+|[+-])", label)
    if not found:
        return None
    criterion = criterion_named(found[1], criteria)
    value = value_meant(found[2], criterion) if criterion else None
    return (criterion.code, value) if criterion and value is not None else None


def _long_suggested(look: Look, chosen: dict[str, Any], criteria: Sequence[Criterion]) -> dict[str, Any]:
    codes: dict[str, str] = {}
    values: dict[str, dict[str, float]] = {}
    for name in look.fields[chosen["criterion_column"]].values:
        criterion = criterion_named(name, criteria)
        if criterion and criterion.code not in codes.values():
            codes[name] = criterion.code
            values[name] = values_suggested(look.fields[chosen["value_column"]].values, criterion)
    return {"codes": codes, "criteria": values}
