"""What Psych-DS asks of a dataset, as its schema 1.4 has it: the rules that are errors, and two that warn.

Source: the schema of psych-ds/psychds-validator (`rules.files`, `rules.csv_data`, `rules.compiled_metadata`).
"""

import csv
import io
import json
import re

FILE_NAME = re.compile(r"([a-z]+-[a-zA-Z0-9]+)(_[a-z]+-[a-zA-Z0-9]+)*_data\.csv")
KEYWORDS = {"study", "site", "subject", "session", "task", "condition", "trial", "stimulus", "description"}
CONTEXTS = {"http://schema.org", "http://schema.org/", "https://schema.org", "https://schema.org/"}
REQUIRED = ("name", "description", "variableMeasured")


def problems_of(files: dict[str, bytes]) -> list[str]:
    """Codes of the validator, with what they are about."""
    if "dataset_description.json" not in files:
        return ["MISSING_DATASET_DESCRIPTION"]
    found = [f"FILE_EMPTY {path}" for path, data in files.items() if not data]
    try:
        about = json.loads(files["dataset_description.json"].decode("utf-8"))
    except ValueError:
        return [*found, "INVALID_JSON_FORMATTING"]
    if about.get("@context") not in CONTEXTS:
        found.append("INVALID_JSONLD_FORMATTING")
    if about.get("@type") != "Dataset":
        found.append("INCORRECT_DATASET_TYPE")
    found += [f"JSON_KEY_REQUIRED {key}" for key in REQUIRED if not about.get(key)]
    measured = about.get("variableMeasured", [])
    known = {one if isinstance(one, str) else one.get("name") for one in measured}
    if any(isinstance(one, dict) and one.get("@type") != "PropertyValue" for one in measured):
        found.append("OBJECT_TYPE_MISSING")
    tables = {path: data for path, data in files.items() if path.startswith("data/") and path.endswith(".csv")}
    if not tables:
        found.append("MISSING_DATAFILE")
    for path, data in tables.items():
        found += _table_problems(path, data, known)
    return found


def _table_problems(path: str, data: bytes, known: set[str]) -> list[str]:
    name = path.rpartition("/")[2]
    found = []
    if not FILE_NAME.fullmatch(name):
        found.append(f"FILENAME_KEYWORD_FORMATTING_ERROR {name}")
    for pair in name.removesuffix("_data.csv").split("_"):
        if pair.partition("-")[0] not in KEYWORDS:
            found.append(f"FILENAME_UNOFFICIAL_KEYWORD_WARNING {name}")
    rows = list(csv.reader(io.StringIO(data.decode("utf-8"), newline=""), strict=True))
    if not rows or not rows[0]:
        return [*found, f"CSV_HEADER_MISSING {name}"]
    header = rows[0]
    found += [f"CSV_COLUMN_MISSING_FROM_METADATA {name} {column}" for column in header if column not in known]
    found += [f"CSV_HEADER_LENGTH_MISMATCH {name} {n}" for n, row in enumerate(rows) if len(row) != len(header)]
    if "row_id" in header:
        ids = [row[header.index("row_id")] for row in rows[1:]]
        if len(set(ids)) < len(ids):
            found.append(f"ROWID_VALUES_NOT_UNIQUE {name}")
    return found
