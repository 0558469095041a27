"""Archives of releases: written so that the same facts give the same bytes, read as if a stranger had made them."""

import csv
import hashlib
import io
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from reports.csvfile import cell

EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest that a ZIP can say: when it was packed is no fact of the data
READABLE = (stat.S_IFREG | 0o644) << 16
FLUSH = 1 << 16
MAX_ARCHIVE = 200 * 1024**2
MAX_UNPACKED = 128 * 1024**2  # held in memory while it is read, at about twelve times its size
LINE_END = "\r\n"  # RFC 4180; a lone carriage return in a text is then quoted too


@dataclass(frozen=True, slots=True)
class Written:
    path: str
    size: int
    sha256: str
    rows: int | None  # of a table, without its header

    def as_json(self) -> dict[str, Any]:
        return {"path": self.path, "bytes": self.size, "sha256": self.sha256, "rows": self.rows}


class ArchiveWriter:
    """Members in the order in which they are added, deflated, with a fixed time and mode."""

    def __init__(self, target: BinaryIO) -> None:
        self.archive = zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9)
        self.written: list[Written] = []

    def text(self, path: str, text: str) -> Written:
        data = text.encode()
        self._write(path, [data], rows=None)
        return self.written[-1]

    def table(self, path: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Written:
        """UTF-8 without a mark, commas, CRLF after each record. Memory does not grow with the rows."""
        count = 0

        def pieces() -> Iterable[bytes]:
            nonlocal count
            buffer = io.StringIO(newline="")
            writer = csv.writer(buffer, lineterminator=LINE_END)
            writer.writerow(header)
            for row in rows:
                count += 1
                writer.writerow([cell(value) for value in row])
                if buffer.tell() > FLUSH:
                    yield buffer.getvalue().encode()
                    buffer.seek(0)
                    buffer.truncate()
            yield buffer.getvalue().encode()

        self._write(path, pieces(), rows=lambda: count)
        return self.written[-1]

    def _write(self, path: str, pieces: Iterable[bytes], *, rows: Callable[[], int] | None) -> None:
        info = zipfile.ZipInfo(path, EPOCH)
        info.external_attr, info.create_system, info.compress_type = READABLE, 3, zipfile.ZIP_DEFLATED
        digest, size = hashlib.sha256(), 0
        with self.archive.open(info, "w", force_zip64=True) as member:
            for piece in pieces:
                digest.update(piece)
                size += len(piece)
                member.write(piece)
        self.written.append(Written(path, size, digest.hexdigest(), rows and rows()))

    def close(self) -> None:
        self.archive.close()


def sums_text(written: Iterable[Written]) -> str:
    """As `sha256sum -c` reads it."""
    return "".join(f"{one.sha256}  {one.path}\n" for one in written)


def file_sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


# --- reading --------------------------------------------------------------------------------------------------------


class ArchiveRefusedError(Exception):
    """The file is no archive of a release that may be opened. `code` is one of reports.releases.words.FAULTS."""

    def __init__(self, code: str, detail: str = "") -> None:
        super().__init__(f"{code}: {detail}" if detail else code)
        self.code, self.detail = code, detail


_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError, ValueError)


def archive_read(stream: BinaryIO, paths: Sequence[str], *, may_be_absent: Sequence[str] = ()) -> dict[str, bytes]:
    """The members, each of `paths` once and no other; nothing is ever written to disk.

    Sizes in the archive's directory are a stranger's word: what is really there is counted as it is unpacked.
    Raises ArchiveRefusedError.
    """
    size = stream.seek(0, io.SEEK_END)
    if size > MAX_ARCHIVE:
        raise ArchiveRefusedError("too_large", f"{MAX_ARCHIVE // 1024**2} MB")
    stream.seek(0)
    try:
        with zipfile.ZipFile(stream) as archive:
            members = archive.infolist()
            _members_check(members, paths, may_be_absent)
            found, left = {}, MAX_UNPACKED
            for member in members:
                with archive.open(member) as file:
                    data = file.read(left + 1)
                left -= len(data)
                if left < 0:
                    raise ArchiveRefusedError("bomb", f"{MAX_UNPACKED // 1024**2} MB")
                found[member.filename] = data
            return found
    except _BROKEN as error:
        raise ArchiveRefusedError("unreadable", type(error).__name__) from error


def _members_check(members: Sequence[zipfile.ZipInfo], paths: Sequence[str], may_be_absent: Sequence[str]) -> None:
    """Raises ArchiveRefusedError."""
    if len(members) > 2 * len(paths):
        raise ArchiveRefusedError("too_many", str(len(members)))
    names = [member.filename for member in members]
    for member in members:
        shown = member.filename.encode("utf-8", "backslashreplace").decode()[:100]
        kind = stat.S_IFMT(member.external_attr >> 16)
        if kind not in (0, stat.S_IFREG):
            raise ArchiveRefusedError("no_plain_file", shown)
        if member.flag_bits & 0x1:
            raise ArchiveRefusedError("encrypted", shown)
        if member.filename not in paths:
            raise ArchiveRefusedError("unexpected", shown)
        if names.count(member.filename) > 1:
            raise ArchiveRefusedError("doubled", shown)
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ArchiveRefusedError("compression", shown)
        if member.file_size > MAX_UNPACKED:
            raise ArchiveRefusedError("bomb", f"{MAX_UNPACKED // 1024**2} MB")
    absent = [path for path in paths if path not in names and path not in may_be_absent]
    if absent:
        raise ArchiveRefusedError("absent", absent[0])
