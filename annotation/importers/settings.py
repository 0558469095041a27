"""What the person importing chooses."""

import dataclasses
from dataclasses import dataclass, field
from datetime import tzinfo
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from corpus.tables.decoding import ENCODINGS
from corpus.tables.faults import FaultError
from corpus.tables.table import DELIMITERS, folded
from corpus.tables.times import DAY_FIRST, MONTH_FIRST

FILE_NAME = "file name"
"""As `annotator`: whoever the file is named after."""
MAX_LABEL = 200  # characters of a value or label that is mapped; longer ones are texts, not choices

Field = str | int


@dataclass(frozen=True)
class Settings:
    """Fields are named as in the file; columns of a table also by their position from 0."""

    encoding: str | None = None
    delimiter: str | None = None
    sheet: str | None = None
    key: Field | None = None  # names the answer: its id in Luria, or a key of `keys`
    respondent: Field | None = None  # whose answer it is; with `stimulus` that names the answer
    stimulus: Field | None = None  # position or given words
    text: Field | None = None  # the answer itself, as it was shown
    annotator: Field | None = None  # None: where the format has it
    time: Field | None = None
    criterion_column: Field | None = None  # of a table with a record per criterion
    value_column: Field | None = None
    criteria: dict[str, dict[str, float]] = field(default_factory=dict)  # field → value in the file → value
    labels: dict[str, tuple[str, float]] = field(default_factory=dict)  # doccano: label → (name, value)
    codes: dict[str, str] = field(default_factory=dict)  # field or name → criterion code, where they differ
    raters: dict[str, str] = field(default_factory=dict)  # annotator → pseudonym, "new", or "=another annotator"
    keys: dict[str, str] = field(default_factory=dict)  # key in the file → the answer's id in Luria
    time_zone: str | None = None
    date_order: str | None = None
    ground_truth: bool = False  # take those that Label Studio marks as ground truth

    @classmethod
    def read(cls, values: dict[str, Any]) -> "Settings":
        """Raises FaultError `bad_setting`."""
        known = {part.name for part in dataclasses.fields(cls)}
        for name in values:
            if name not in known:
                raise FaultError("bad_setting", detail=name)
        chosen = {name: value for name, value in values.items() if value is not None}
        for name in ("key", "respondent", "stimulus", "text", "annotator", "time", "criterion_column", "value_column"):
            if not isinstance(chosen.get(name, ""), str | int) or isinstance(chosen.get(name), bool):
                raise FaultError("bad_setting", detail=name)
        for name, read in _MAPPINGS.items():
            if name in chosen:
                chosen[name] = _mapping(name, chosen[name], read)
        settings = cls(**chosen)
        settings._check()
        return settings

    def _check(self) -> None:
        allowed = {
            "encoding": {None, *ENCODINGS},
            "delimiter": {None, *DELIMITERS},
            "date_order": {None, DAY_FIRST, MONTH_FIRST},
            "time_zone": {None, *available_timezones()} if self.time_zone else {None},
            "ground_truth": {True, False},
        }
        for name, values in allowed.items():
            value = getattr(self, name)
            if not isinstance(value, str | bool | None) or value not in values:
                raise FaultError("bad_setting", detail=name)
        if self.sheet is not None and not isinstance(self.sheet, str):
            raise FaultError("bad_setting", detail="sheet")

    @property
    def zone(self) -> tzinfo | None:
        return ZoneInfo(self.time_zone) if self.time_zone else None

    @property
    def is_long(self) -> bool:
        return self.criterion_column is not None or self.value_column is not None

    @property
    def names(self) -> list[str]:
        """The criteria as the file calls them, in the order of the mapping."""
        return list(dict.fromkeys([*self.criteria, *(name for name, _value in self.labels.values())]))


def _values(told: Any) -> dict[str, float]:
    return {_label(value): _number(number) for value, number in dict(told or {}).items()}


def _pair(told: Any) -> tuple[str, float]:
    name, number = told
    return _label(name), _number(number)


def _number(told: Any) -> float:
    if isinstance(told, bool) or not isinstance(told, int | float):
        raise TypeError(told)
    return float(told)


def _label(told: Any) -> str:
    if not isinstance(told, str) or len(told) > MAX_LABEL:
        raise TypeError(told)
    return told


def _text(told: Any) -> str:
    if not isinstance(told, str):
        raise TypeError(told)
    return told


_MAPPINGS = {"criteria": _values, "labels": _pair, "codes": _text, "raters": _text, "keys": _text}


def _mapping(name: str, told: Any, read: Any) -> dict[str, Any]:
    try:
        found = {str(key): read(value) for key, value in dict(told).items()}
    except (TypeError, ValueError) as error:
        raise FaultError("bad_setting", detail=name) from error
    if name in ("criteria", "labels") and len({folded(key) for key in found}) < len(found):
        raise FaultError("bad_setting", detail=name)
    return found
