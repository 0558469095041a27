"""From files to a plan: the same rules for every format."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import chain
from typing import Any

from annotation.importers.formats import opened
from annotation.importers.plan import AnswerKey, Chosen, Named, Plan, Planned, Raw, Reading, Source
from annotation.importers.settings import FILE_NAME, Settings
from annotation.importers.tables import field_of
from annotation.importers.values import chosen_in, number_in, plain
from corpus.storing import is_storable
from corpus.tables.faults import FaultError
from corpus.tables.table import folded
from corpus.tables.times import date_order, instant, time_read

MAX_ANNOTATOR = 200  # annotation.Rater.imported_name
MAX_ANNOTATORS = 200  # more people than judge one study: another column was taken for who annotated
SHOWN = 60  # characters of a value that is named
ANSWER = ("key", "respondent", "stimulus", "text")


def plan_files(sources: Sequence[Source], *, format_name: str | None, settings: dict[str, Any]) -> Plan:
    """What an import of the files will do. A fault of one file is in `error`, and then there is nothing to store.

    `format_name` None: seen from each file.
    """
    plan = Plan()
    try:
        chosen = Settings.read(settings)
        for number, source in enumerate(sources):
            plan.error_file = number
            _File(number, opened(source, format_name, chosen), chosen, plan).read()
        plan.error_file = 0
        _check_whole(plan, chosen)
    except FaultError as error:
        plan.error = error.fault
        plan.judgements, plan.skipped, plan.conflicts, plan.warnings = [], [], [], []
    return plan


def _check_whole(plan: Plan, settings: Settings) -> None:
    """What no single file has to have. Raises FaultError `missing_column`, `too_many_annotators`."""
    for name in ANSWER:
        if getattr(settings, name) is not None and name not in plan.found:
            raise FaultError("missing_column", detail=str(getattr(settings, name)))
    people = plan.counts["annotators"] = len({judgement.annotator for judgement in plan.judgements})
    if people > MAX_ANNOTATORS:
        raise FaultError("too_many_annotators", detail=str(people))


class _File:
    def __init__(self, number: int, reading: Reading, settings: Settings, plan: Plan) -> None:
        self.number, self.reading, self.settings, self.plan = number, reading, settings, plan
        plan.formats.append(reading.format)
        plan.encodings.append(reading.encoding)
        plan.delimiters.append(reading.delimiter)
        self.values = {
            name: {folded(value): number for value, number in values.items()}
            for name, values in settings.criteria.items()
        }
        self.labels = {folded(label): pair for label, pair in settings.labels.items()}
        self.times: list[tuple[Planned, str | datetime]] = []
        self.used: set[str] = set()

    def read(self) -> None:
        """Raises FaultError."""
        counts, settings = self.plan.counts, self.settings
        counts["files"] += 1
        records = iter(self.reading.records)
        first = next(records, None)
        if first is None and not self.reading.counts["tasks"]:
            raise FaultError("no_records")
        if not self.reading.names_annotators:
            raise FaultError("missing_setting", detail="annotator")
        self._fields()
        read = 0
        for raw in chain([] if first is None else [first], records):
            read += 1
            if raw.record in self.reading.escaped:
                self.plan.warnings.append(Named(self.number, raw.record, "escaped", raw.annotation))
            self._plan_long(raw) if settings.is_long else self._plan(raw)
        if "tasks" not in self.reading.counts:
            counts["records"] += read
        counts.update(self.reading.counts)
        self._times()

    def _fields(self) -> None:
        """The chosen fields in the file's own spelling. Raises FaultError."""
        settings, names = self.settings, self.reading.fields
        chosen = {name: getattr(settings, name) for name in ANSWER}
        by_person = chosen["respondent"] is not None and chosen["stimulus"] is not None
        if chosen["key"] is None and chosen["text"] is None and not by_person:
            raise FaultError("missing_setting", detail="key")
        if settings.is_long and not (settings.criterion_column is not None and settings.value_column is not None):
            raise FaultError("missing_setting", detail="value_column")
        if not settings.is_long and not (settings.labels if self.reading.uses_labels else settings.criteria):
            raise FaultError("missing_setting", detail="criteria")
        own = {name: field_of(names, field) if names else _name(field) for name, field in chosen.items()}
        self.answer = {name: field for name, field in own.items() if field is not None}
        self.criteria: dict[str, str] = {}
        if not settings.is_long:
            self.criteria = {name: field_of(names, name) or name if names else name for name in settings.criteria}
        else:
            self.which = field_of(names, settings.criterion_column) or ""
            self.value = field_of(names, settings.value_column) or ""
        self.used = {*self.answer.values(), *self.criteria.values()}
        self.names = [name for name, _number in settings.labels.values()] if self.reading.uses_labels else []

    # --- one record, one judgement ---------------------------------------------------------------------------------

    def _plan(self, raw: Raw) -> None:
        self._note(raw)
        if raw.state:
            self._skip(raw, raw.state)
            return
        chosen = self._labelled(raw) if self.reading.uses_labels else self._chosen(raw)
        if not any(one is None or one for one in chosen.values()):
            self._skip(raw, "no_annotation")
            return
        planned = self._planned(raw)
        if planned is None:
            return
        for name, one in chosen.items():
            planned.values[name] = self._value(planned, name, one, raw)
        self._keep(planned, raw)

    def _note(self, raw: Raw) -> None:
        """Which of the chosen fields are there at all, and which choices nobody has a criterion for."""
        if len(self.plan.found) < len(self.answer):
            self.plan.found |= {name for name, field in self.answer.items() if field in raw.data}
        for name in raw.verdicts or ():
            if name not in self.used and name not in self.plan.unused:
                self.plan.unused.append(name)

    def _chosen(self, raw: Raw) -> dict[str, Chosen]:
        if raw.verdicts is not None:
            return {name: raw.verdicts.get(field, ()) for name, field in self.criteria.items()}
        return {name: chosen_in(raw.data.get(field)) for name, field in self.criteria.items()}

    def _labelled(self, raw: Raw) -> dict[str, Chosen]:
        """doccano's labels, sorted to the criteria that they were said to belong to."""
        found: dict[str, Chosen] = dict.fromkeys(self.names, ())
        if raw.labels is None:
            return dict.fromkeys(found, None)
        for label in raw.labels:
            pair = self.labels.get(folded(label))
            if pair is None:
                self.plan.warnings.append(Named(self.number, raw.record, "unknown_label", value=label[:SHOWN]))
            else:
                found[pair[0]] = (*(found[pair[0]] or ()), label)
        return found

    def _value(self, planned: Planned, name: str, chosen: Chosen, raw: Raw) -> float | None:
        """The value, or None with a conflict that says why there is none."""
        field = self.criteria.get(name, "")
        reason, shown = "", ""
        if field in raw.damaged:
            reason = raw.damaged[field]
        elif chosen is None:
            reason = "not_a_choice"
        elif len(chosen) > 1:
            reason, shown = "several_choices", " / ".join(chosen)
        elif chosen:
            value = self._read(name, chosen[0])
            if value is not None:
                return value
            reason, shown = "unknown_value", chosen[0]
        if reason:
            self.plan.conflicts.append(planned.named(reason, name, shown[:SHOWN]))
        return None

    def _read(self, name: str, text: str) -> float | None:
        """By the mapping; where there is none, a number is itself."""
        if self.reading.uses_labels:
            return self.labels[folded(text)][1]
        mapping = self.values.get(name)
        return mapping.get(folded(text)) if mapping else number_in(text)

    # --- a record per criterion ------------------------------------------------------------------------------------

    def _plan_long(self, raw: Raw) -> None:
        self._note(raw)
        name = plain(raw.data.get(self.which))
        chosen = chosen_in(raw.data.get(self.value))
        if chosen == ():
            self._skip(raw, "no_annotation")
            return
        planned = self._planned(raw)
        if planned is None:
            return
        known = next((one for one in self.settings.criteria if folded(one) == folded(name)), None)
        if known is None and self.settings.criteria:
            self.plan.conflicts.append(planned.named("unknown_criterion", name[:SHOWN]))
            return
        planned.values[known or name] = self._value(planned, known or name, chosen, raw)
        self._keep(planned, raw)

    # --- what both share -------------------------------------------------------------------------------------------

    def _planned(self, raw: Raw) -> Planned | None:
        """Who judged which answer; None where the record is skipped for not saying so."""
        answer = AnswerKey(**{name: plain(raw.data.get(field)) for name, field in self.answer.items()})
        annotator = (raw.annotator or "").strip()
        if not annotator:
            reason = "no_annotator"
        elif len(annotator) > MAX_ANNOTATOR or not is_storable(annotator):
            reason = "unusable_annotator"
        elif not (answer.key or answer.text or (answer.respondent and answer.stimulus)):
            reason = "no_key"
        elif spoiled := next((field for field in self.answer.values() if field in raw.damaged), ""):
            reason = raw.damaged[spoiled]
        else:
            return Planned(
                self.number,
                raw.record,
                raw.annotation,
                answer,
                annotator,
                {},
                seconds=raw.seconds,
                comment=raw.comment,
            )
        self._skip(raw, reason)
        return None

    def _keep(self, planned: Planned, raw: Raw) -> None:
        if all(value is None for value in planned.values.values()):
            self._skip(raw, "nothing_usable")
            return
        self.plan.judgements.append(planned)
        if raw.time:
            self.times.append((planned, raw.time))

    def _skip(self, raw: Raw, reason: str, criterion: str = "") -> None:
        self.plan.skipped.append(Named(self.number, raw.record, reason, raw.annotation, criterion))

    def _times(self) -> None:
        """Read now that all of them show the order of day and month."""
        order = self.settings.date_order or date_order(time for _one, time in self.times if isinstance(time, str))
        for planned, told in self.times:
            moment = time_read(told, order) if isinstance(told, str) else told
            at = instant(moment, self.settings.zone)
            if at is None:
                self.plan.warnings.append(planned.named("time_unreadable"))
            else:
                planned.made_at = at


def _name(field: str | int | None) -> str | None:
    return None if field is None or field == FILE_NAME else str(field)


def annotators_of(judgements: Iterable[Planned]) -> dict[str, int]:
    """Everybody who judged, with how many answers, in the order of the file."""
    found: dict[str, set[AnswerKey]] = {}
    for planned in judgements:
        found.setdefault(planned.annotator, set()).add(planned.answer)
    return {name: len(answers) for name, answers in found.items()}
