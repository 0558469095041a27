"""The tables of an archive as typed rows, or the reason why it is refused. Nothing here asks the database."""

import csv
import hashlib
import io
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any, BinaryIO
from uuid import UUID

from corpus.storing import is_storable
from reports.releases.archive import ArchiveRefusedError, archive_read
from reports.releases.layout import (
    BESIDE,
    LATER_PATHS,
    MANIFEST,
    PATHS,
    SUMS,
    TABLES,
    TABLES_BY_FORMAT,
    Column,
    Kind,
    Table,
)

MAX_CELL = 200_000  # characters; an instruction or a prompt is the longest text there is
_SUM = re.compile(r"([0-9a-f]{64})  (\S+)")
_INTEGER = re.compile(r"-?\d{1,18}")
Record = dict[str, Any]


@dataclass(frozen=True)
class ReadRelease:
    manifest: dict[str, Any]
    tables: dict[str, list[Record]]
    content_sha256: str
    sha256: str  # of the archive
    size: int

    def __getitem__(self, name: str) -> list[Record]:
        return self.tables[name]


def release_read(stream: BinaryIO) -> ReadRelease:
    """Raises ArchiveRefusedError."""
    files = archive_read(stream, PATHS, may_be_absent=(*LATER_PATHS, *BESIDE))
    _sums_check(files)
    manifest = _manifest(files[MANIFEST])
    csv.field_size_limit(MAX_CELL)
    tables = _tables(files, manifest["format"])
    for name, rows in tables.items():
        for number, row in enumerate(rows, start=1):
            if row["study"] != manifest["study"]["slug"] or row["simulated"] is not manifest["study"]["simulated"]:
                raise ArchiveRefusedError("mixed", f"{TABLES[name].path}, {number}")
    stream.seek(0)
    digest = hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]
    content = hashlib.sha256(files[SUMS]).hexdigest()
    return ReadRelease(manifest, tables, content, digest, stream.tell())


def _tables(files: dict[str, bytes], number: int) -> dict[str, list[Record]]:
    """Every table there is now: one that came later is empty, a column that came later None. ArchiveRefusedError."""
    known = TABLES_BY_FORMAT[number]
    later = {table.path for name, table in TABLES.items() if name not in known}
    if foreign := sorted(later & set(files)):
        raise ArchiveRefusedError("unexpected", foreign[0])
    if absent := [table.path for table in known.values() if table.path not in files]:
        raise ArchiveRefusedError("absent", absent[0])
    found: dict[str, list[Record]] = {}
    for name, table in TABLES.items():
        rows = _records(known[name], files[table.path]) if name in known else iter(())
        found[name] = [dict.fromkeys(table.header) | row for row in rows]
    return found


def _sums_check(files: dict[str, bytes]) -> None:
    """Every file but the list of digests stands in it, with the digest that it has. Raises ArchiveRefusedError."""
    try:
        lines = files[SUMS].decode("ascii").splitlines()
    except UnicodeDecodeError as error:
        raise ArchiveRefusedError("no_sums", SUMS) from error
    told = {}
    for line in lines:
        found = _SUM.fullmatch(line)
        if found is None or found[2] in told:
            raise ArchiveRefusedError("no_sums", SUMS)
        told[found[2]] = found[1]
    if set(told) != set(files) - {SUMS}:
        raise ArchiveRefusedError("no_sums", SUMS)
    for path, digest in told.items():
        if hashlib.sha256(files[path]).hexdigest() != digest:
            raise ArchiveRefusedError("changed", path)


def _manifest(data: bytes) -> dict[str, Any]:
    """Raises ArchiveRefusedError."""
    try:
        found = json.loads(data)
        study = found["study"]
        known = (study["slug"], study["title"], study["simulated"], found["format"], found["version"], found["counts"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ArchiveRefusedError("no_manifest", MANIFEST) from error
    kinds = (str, str, bool, int, int, dict)
    if any(type(value) is not kind for value, kind in zip(known, kinds, strict=True)):
        raise ArchiveRefusedError("no_manifest", MANIFEST)
    if found["format"] not in TABLES_BY_FORMAT:
        raise ArchiveRefusedError("format", str(found["format"]))
    if study["slug"] == "new":  # that is where studies begin
        raise ArchiveRefusedError("no_manifest", MANIFEST)
    if not is_storable(json.dumps(found, ensure_ascii=False)) or not re.fullmatch(
        r"[-a-zA-Z0-9_]{1,60}", study["slug"]
    ):
        raise ArchiveRefusedError("no_manifest", MANIFEST)
    return found


def _records(table: Table, data: bytes) -> Iterator[Record]:
    """Raises ArchiveRefusedError, with the line and the column."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ArchiveRefusedError("no_utf8", table.path) from error
    if not is_storable(text):
        raise ArchiveRefusedError("no_utf8", table.path)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = next(reader, [])
        if tuple(header) != table.header:
            raise ArchiveRefusedError("columns", table.path)
        for number, cells in enumerate(reader, start=1):
            if len(cells) != len(header):
                raise ArchiveRefusedError("cells", f"{table.path}, {number}")
            yield {
                column.name: _value(column, cell, f"{table.path}, {number}, {column.name}")
                for column, cell in zip(table.columns, cells, strict=True)
            }
    except csv.Error as error:
        raise ArchiveRefusedError("no_csv", table.path) from error


def _value(column: Column, cell: str, where: str) -> Any:
    """Raises ArchiveRefusedError."""
    if cell == "":
        if column.may_be_empty:
            return None
        if column.kind == "text":
            return ""
        raise ArchiveRefusedError("empty", where)
    try:
        return PARSERS[column.kind](cell)
    except (ValueError, TypeError, RecursionError) as error:
        raise ArchiveRefusedError("value", f"{where}: {cell[:40]}") from error


def _integer(cell: str) -> int:
    if not _INTEGER.fullmatch(cell):
        raise ValueError(cell)
    return int(cell)


def _number(cell: str) -> float:
    value = float(cell)
    if not math.isfinite(value):
        raise ValueError(cell)
    return value


def _truth(cell: str) -> bool:
    if cell not in ("true", "false"):
        raise ValueError(cell)
    return cell == "true"


def _json(cell: str) -> Any:
    value = json.loads(cell, parse_constant=_number)
    if not is_storable(json.dumps(value, ensure_ascii=False)):
        raise ValueError(cell)
    return value


PARSERS: dict[Kind, Any] = {
    "text": str,
    "integer": _integer,
    "number": _number,
    "truth": _truth,
    "uuid": UUID,
    "json": _json,
    "date": date.fromisoformat,
}
