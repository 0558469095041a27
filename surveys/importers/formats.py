"""The formats by name, and the one entry: bytes to plan."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from corpus.tables.faults import Fault, FaultError
from corpus.tables.table import Table, open_table
from surveys.importers.checks import Watch, notices_of
from surveys.importers.columns import plan_columns
from surveys.importers.google_forms import is_google_forms, plan_google_forms
from surveys.importers.items import Item, Items
from surveys.importers.luria import is_luria, plan_luria
from surveys.importers.plan import Plan, Settings
from surveys.importers.prolific import is_prolific, plan_prolific
from surveys.importers.toloka import is_toloka, plan_toloka


@dataclass(frozen=True)
class Format:
    name: str
    title: str  # as its maker calls it
    recognises: Callable[[list[str]], bool]
    plan: Callable[[Table, Items, Settings, Plan], None]


FORMATS = {
    format_.name: format_
    for format_ in (
        Format("luria", "Luria", is_luria, plan_luria),
        Format("toloka", "Toloka", is_toloka, plan_toloka),
        Format("prolific", "Prolific", is_prolific, plan_prolific),
        Format("google_forms", "Google Forms", is_google_forms, plan_google_forms),
        Format("columns", "", lambda header: False, plan_columns),
    )
}


def recognised(header: list[str]) -> Format | None:
    return next((format_ for format_ in FORMATS.values() if format_.recognises(header)), None)


def plan_file(data: bytes, *, format_name: str | None, settings: dict, items: Sequence[Item]) -> Plan:
    """What an import of the file will do. A fault of the whole file is in `error`, and then there is nothing to store.

    `format_name` None: seen from the header, else columns.
    """
    plan = Plan()
    try:
        chosen = Settings.read(settings)
        table = open_table(data, encoding=chosen.encoding, delimiter=chosen.delimiter, sheet=chosen.sheet)
        format_ = FORMATS[format_name] if format_name else recognised(table.header) or FORMATS["columns"]
        plan.format = f"{format_.name}_{table.kind}"
        plan.encoding, plan.delimiter, plan.header = table.encoding, table.delimiter, table.header
        watch = Watch(table.header)
        table.records = watch.over(table.records)
        format_.plan(table, Items(items, chosen.items), chosen, plan)
        if plan.records == plan.blank_records:
            raise FaultError("no_records")
        plan.notices = notices_of(table, items, chosen, plan, watch)
    except FaultError as error:
        plan.error = error.fault
        plan.answers, plan.people, plan.skipped, plan.warnings = [], [], [], []
    return plan


def fault_of(data: bytes) -> Fault | None:
    """Whether the file can be opened at all, for a first look at an upload."""
    try:
        open_table(data)
    except FaultError as error:
        return error.fault
    return None
