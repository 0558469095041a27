"""A ZIP of export files, as doccano sends them: a file per annotator."""

import io
import zipfile
import zlib
from collections.abc import Sequence

from annotation.importers.documents import MAX_BYTES
from annotation.importers.plan import Source
from corpus.storing import storable_text
from corpus.tables.faults import Fault, FaultError

MAX_MEMBERS = 200
_WORKBOOK = "[Content_Types].xml"
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError, ValueError)
_SIGNS = (b"PK\x03\x04", b"\x1f\x8b", b"Rar!", b"7z\xbc\xaf")


def unpacked(sources: Sequence[Source]) -> list[Source]:
    """The files, and of each archive those that are in it.

    An archive that cannot be read whole, or would come to more than one import may have, stays what it is, with the
    `fault` that says why: whoever reads it as an export refuses it so. So does an archive within an archive. A
    workbook is no archive here.
    """
    found: list[Source] = []
    left = MAX_BYTES
    for source in sources:
        try:
            inside = _members(source, left) if source.data.startswith(b"PK") else None
        except FaultError as error:
            found.append(Source(source.name, source.data, error.fault))
            continue
        found += [source] if inside is None else inside
        left -= sum(len(one.data) for one in inside or ())
    return found


def _members(source: Source, most: int) -> list[Source] | None:
    """At most `most` bytes, whatever the archive says of its members' sizes. None: it is a workbook.

    Raises FaultError.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(source.data)) as archive:
            members = [one for one in archive.infolist() if not one.is_dir() and not _is_litter(one.filename)]
            if any(one.filename == _WORKBOOK for one in members):
                return None
            if not members:
                raise FaultError("archive_empty")
            if len(members) > MAX_MEMBERS:
                raise FaultError("archive_too_many", detail=str(MAX_MEMBERS))
            found = []
            for member in members:
                with archive.open(member) as file:
                    data = file.read(most + 1)
                most -= len(data)
                if most < 0:
                    raise FaultError("archive_too_large", detail=str(MAX_BYTES // 1024**2))
                name = storable_text(member.filename.replace("\\", "/").rpartition("/")[2])[0]
                found.append(Source(name, data, _fault_within(name, data)))
            return found
    except _BROKEN as error:
        raise FaultError("archive_unreadable") from error


def _fault_within(name: str, data: bytes) -> Fault | None:
    if not data.startswith(_SIGNS) or _is_workbook(data):
        return None
    return Fault("archive_within", detail=name[:200])


def _is_workbook(data: bytes) -> bool:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return _WORKBOOK in archive.namelist()
    except _BROKEN:
        return False


def _is_litter(name: str) -> bool:
    """What operating systems leave in archives."""
    return name.startswith("__MACOSX/") or name.rpartition("/")[2].startswith(".")
