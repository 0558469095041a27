"""Reads the field's cases from ../shared/cases, which are not part of the repository."""

import json
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
SHARED = REPOSITORY.parent / "shared"
ABSENT = "../shared/cases is not beside the repository: the field's cases are not run, the project's own are"


def cases_read(name: str) -> list[dict[str, Any]] | None:
    """The records of `<name>.jsonl`, or None where the folder is absent."""
    path = SHARED / "cases" / f"{name}.jsonl"
    if not path.exists():
        return None
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def cases(name: str) -> list[dict[str, Any]]:
    """The records of `<name>.jsonl`; skips the running test where the folder is absent."""
    records = cases_read(name)
    if records is None:
        pytest.skip(ABSENT)
    return records


def case_params(name: str) -> list[Any]:
    """The same as parameters of a test, one per case, named by its id; one skipped parameter where absent."""
    records = cases_read(name)
    if records is None:
        return [pytest.param(None, marks=pytest.mark.skip(reason=ABSENT), id="shared-cases-absent")]
    return [pytest.param(record, id=record["id"]) for record in records]
