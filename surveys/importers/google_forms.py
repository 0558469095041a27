"""Google Forms: responses downloaded from the form (CSV) or from its sheet (CSV, XLSX). A row per person."""

import dataclasses

from corpus.tables.table import Table, folded
from surveys.importers.columns import plan_wide
from surveys.importers.items import Items
from surveys.importers.plan import Plan, Settings

# What the first column is called in the languages of forms.
TIMESTAMP = ("timestamp", "отметка времени", "zeitstempel", "aikaleima")


def is_google_forms(header: list[str]) -> bool:
    return bool(header) and folded(header[0]) in TIMESTAMP


def plan_google_forms(table: Table, items: Items, settings: Settings, plan: Plan) -> None:
    """Questions may share one header; columns are then named by position. Without `answer_columns` the header tells."""
    if settings.timestamp_column is None and is_google_forms(table.header):
        settings = dataclasses.replace(settings, timestamp_column=0)
    plan_wide(table, items, settings, plan)
