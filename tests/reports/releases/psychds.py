"""What Psych-DS asks of a dataset, as its schema 1.5.1 has it: the rules that are errors, and those that warn.

Source: the schema in psych-ds/psych-DS and the code that reads it, psych-ds/psychds-validator 1.5.0. Of schema.org
only the words are known here that a release uses; a header `size` breaks the validator, and so counts as no CSV.
"""

import csv
import io
import json
import re
from typing import Any

FILE_NAME = re.compile(r"([a-z]+-[a-zA-Z0-9]+)(_[a-z]+-[a-zA-Z0-9]+)*_data\.csv")
KEYWORDS = {"study", "site", "subject", "session", "task", "condition", "trial", "stimulus", "description"}
CONTEXTS = {"http://schema.org", "http://schema.org/", "https://schema.org", "https://schema.org/"}
REQUIRED = ("name", "description", "variableMeasured")
WORDS = {"name", "description", "version", "dateCreated", "keywords", "variableMeasured", "license", "author"}
"""Properties that schema.org gives a Dataset."""
TYPES = {"variableMeasured": "PropertyValue", "author": "Person"}
INNER_WORDS = {"name", "description"}
IGNORED = ("documentation/", "materials/")
FIELD = r'(?:"(?:[^"]|"")*"|[^",\r\n]*)'
CSV = re.compile(rf"(?:{FIELD}(?:,{FIELD})*\r?\n)*(?:{FIELD}(?:,{FIELD})*)?")
RECOMMENDED = {
    "MISSING_README_DOC": "README.md",
    "MISSING_CHANGES_DOC": "CHANGES.md",
    "MISSING_DOCUMENTATION_DIRECTORY": "documentation/",
    "MISSING_MATERIALS_DIRECTORY": "materials/",
}
Known = dict[str, Any]


def problems_of(files: dict[str, bytes]) -> list[str]:
    """Codes of the validator, with what they are about."""
    if "dataset_description.json" not in files:
        return ["MISSING_DATASET_DESCRIPTION"]
    found = [f"FILE_EMPTY {path}" for path, data in files.items() if not data]
    try:
        about = json.loads(files["dataset_description.json"].decode("utf-8"))
    except ValueError:
        return [*found, "INVALID_JSON_FORMATTING"]
    found += _missing(files)
    if about.get("@context") not in CONTEXTS:
        found.append("INVALID_JSONLD_FORMATTING")
    tables = {path: data for path, data in files.items() if path.startswith("data/") and path.endswith(".csv")}
    if not tables:
        found.append("MISSING_DATAFILE")
    named: dict[str, bool] = {}  # each variable, and whether a table has it
    for path, data in tables.items():
        beside = files.get(path.removesuffix(".csv") + ".json")
        told = about | (json.loads(beside) if beside else {})
        found += _told_problems(told)
        found += _table_problems(path, data, told, named)
    found += [f"VARIABLE_MISSING_FROM_CSV_COLUMNS {name}" for name, is_there in named.items() if not is_there]
    return found


def _missing(files: dict[str, bytes]) -> list[str]:
    found = [code for code, path in RECOMMENDED.items() if not any(one.startswith(path) for one in files)]
    if not any(re.fullmatch(r"data/.*_data\.json", path) for path in files):
        found.append("MISSING_SIDECAR_METADATA")
    for path in files:
        known = path in ("dataset_description.json", "README.md", "CHANGES.md") or path.startswith(IGNORED)
        if not known and not re.fullmatch(r"data/.*_data\.(csv|json)", path):
            found.append(f"FILE_NOT_CHECKED {path}")
    return found


def _told_problems(told: Known) -> list[str]:
    """Of what is said of one table, after what stands beside it has replaced the dataset's own."""
    found = [f"JSON_KEY_REQUIRED {key}" for key in REQUIRED if not told.get(key)]
    if told.get("@type") != "Dataset":
        found.append("INCORRECT_DATASET_TYPE" if "@type" in told else "MISSING_DATASET_TYPE")
    for key, value in told.items():
        if key.startswith("@"):
            continue
        if ":" in key:
            found.append(f"UNKNOWN_NAMESPACE {key}")
        elif key not in WORDS:
            found.append(f"INVALID_SCHEMAORG_PROPERTY {key}")
        for one in value if isinstance(value, list) else [value]:
            found += _object_problems(key, one) if isinstance(one, dict) else []
    return found


def _object_problems(key: str, one: Known) -> list[str]:
    if "@type" not in one:
        return [f"OBJECT_TYPE_MISSING {key}"]
    found = [] if one["@type"] == TYPES.get(key) else [f"INVALID_OBJECT_TYPE {key}"]
    return found + [f"INVALID_SCHEMAORG_PROPERTY {key}.{word}" for word in one if word not in {"@type", *INNER_WORDS}]


def _table_problems(path: str, data: bytes, told: Known, named: dict[str, bool]) -> list[str]:
    name = path.rpartition("/")[2]
    found = []
    if not FILE_NAME.fullmatch(name):
        found.append(f"FILENAME_KEYWORD_FORMATTING_ERROR {name}")
    for pair in name.removesuffix("_data.csv").split("_"):
        if pair.partition("-")[0] not in KEYWORDS:
            found.append(f"FILENAME_UNOFFICIAL_KEYWORD_WARNING {name}")
    text = data.decode("utf-8")
    rows = list(csv.reader(io.StringIO(text, newline="")))
    if not rows or not rows[0]:
        return [*found, f"CSV_HEADER_MISSING {name}"]
    header = rows[0]
    if not CSV.fullmatch(text) or "size" in header:
        return [*found, f"CSV_FORMATTING_ERROR {name}"]
    known = [one if isinstance(one, str) else one.get("name") for one in told.get("variableMeasured", [])]
    named |= {one: named.get(one, False) or one in header for one in known}
    found += [f"CSV_HEADER_REPEATED {name} {column}" for column in set(header) if header.count(column) > 1]
    found += [f"CSV_COLUMN_MISSING_FROM_METADATA {name} {column}" for column in header if column not in known]
    found += [f"CSV_HEADER_LENGTH_MISMATCH {name} {n}" for n, row in enumerate(rows) if len(row) != len(header)]
    if "row_id" in header:
        ids = [row[header.index("row_id")] for row in rows[1:] if len(row) == len(header)]
        if len(set(ids)) < len(ids):
            found.append(f"ROWID_VALUES_NOT_UNIQUE {name}")
    return found
