"""What stands beside the tables: the columns of each for programs, and the tests for people."""

import re
from typing import Any

from reports.releases.card import CODEBOOK_COLUMNS
from reports.releases.facts import Facts
from reports.releases.layout import Table

CODEBOOK_ABOUT = "Every column of every file, one row each."
_MARKS = re.compile(r"([\\`*_\[\]<>#|~])")


def sidecar(table: Table) -> dict[str, Any]:
    """What Psych-DS lets a file next to a table say of it alone: the rest it has from dataset_description.json."""
    return _described(table.about, {column.name: column.meaning for column in table.columns})


def codebook_sidecar() -> dict[str, Any]:
    return _described(CODEBOOK_ABOUT, CODEBOOK_COLUMNS)


def _described(about: str, columns: dict[str, str]) -> dict[str, Any]:
    measured = [{"@type": "PropertyValue", "name": name, "description": told} for name, told in columns.items()]
    return {"description": about, "variableMeasured": measured}


def tests_text(facts: Facts) -> str:
    """The instructions and tasks as respondents had them before them, in Markdown."""
    parts = ["# What respondents read"]
    for instrument in facts.instruments:
        parts.append(f"## {_plain(instrument.title)} ({instrument.slug}, version {instrument.version})")
        parts.append("\n".join(f"> {line}".rstrip() for line in instrument.instruction.splitlines()))
        tasks = list(instrument.stimuli.order_by("position"))
        for heading, is_practice in (("### Practice", True), ("### Tasks", False)):
            told = [f"- {one.position}: {_plain(one.text)}" for one in tasks if one.is_practice is is_practice]
            parts += [heading, "\n".join(told)] if told else []
    return "\n\n".join(part for part in parts if part) + "\n"


def _plain(text: str) -> str:
    """On one line, with nothing that Markdown would take for its own."""
    return _MARKS.sub(r"\\\1", " ".join(text.split()))
