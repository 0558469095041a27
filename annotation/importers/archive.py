"""A ZIP of export files, as doccano sends them: a file per annotator."""

import io
import zipfile
import zlib
from collections.abc import Sequence

from annotation.importers.documents import MAX_BYTES
from annotation.importers.plan import Source

MAX_MEMBERS = 200
_WORKBOOK = "[Content_Types].xml"
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError, ValueError)


def unpacked(sources: Sequence[Source]) -> list[Source]:
    """The files, and of each archive those that are in it.

    An archive that cannot be read whole, or would come to more than one import may have, stays what it is: whoever
    reads it as an export refuses it as a ZIP. So does an archive within an archive. A workbook is no archive here.
    """
    found: list[Source] = []
    left = MAX_BYTES
    for source in sources:
        inside = _members(source, left) if source.data.startswith(b"PK") else None
        found += [source] if inside is None else inside
        left -= sum(len(one.data) for one in inside or ())
    return found


def _members(source: Source, most: int) -> list[Source] | None:
    """At most `most` bytes, whatever the archive says of its members' sizes. None: not to be unpacked."""
    try:
        with zipfile.ZipFile(io.BytesIO(source.data)) as archive:
            members = [one for one in archive.infolist() if not one.is_dir() and not _is_litter(one.filename)]
            if not members or len(members) > MAX_MEMBERS or any(one.filename == _WORKBOOK for one in members):
                return None
            found = []
            for member in members:
                with archive.open(member) as file:
                    data = file.read(most + 1)
                most -= len(data)
                if most < 0:
                    return None
                found.append(Source(member.filename.replace("\\", "/").rpartition("/")[2], data))
            return found
    except _BROKEN:
        return None


def _is_litter(name: str) -> bool:
    """What operating systems leave in archives."""
    return name.startswith("__MACOSX/") or name.rpartition("/")[2].startswith(".")
