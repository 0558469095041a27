"""Treebanks and lists of left-out sentences as files in DATA_DIR, which web servers and workers share."""

import gzip
import hashlib
import json
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from django.conf import settings

from corpus.treebank import sentences

LOOKED_AT = 200
"""Sentences read at once when a file comes, so that a wrong file is told of before anything is stored."""


class TreebankTooLargeError(Exception):
    """The file is larger than TREEBANK_MAX_MB."""


@dataclass(frozen=True)
class Stored:
    sha256: str
    size: int


@dataclass(frozen=True)
class LeftOut:
    line: int
    sent_id: str
    text: str
    reasons: list[tuple[str, str]]


def _folder(name: str) -> Path:
    folder = Path(settings.DATA_DIR) / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def treebank_path(sha256: str) -> Path:
    return _folder("treebanks") / f"{sha256}.conllu"


def treebank_store(chunks: Iterable[bytes], *, language: str) -> Stored:
    """Write a file to disk as it comes, look at its beginning, and keep it under its hash.

    Raises TreebankTooLargeError and TreebankUnreadableError; then nothing is kept.
    """
    digest, size = hashlib.sha256(), 0
    with tempfile.NamedTemporaryFile(dir=_folder("treebanks"), prefix="coming-", delete=False) as coming:
        path = Path(coming.name)
        try:
            for chunk in chunks:
                size += len(chunk)
                if size > settings.TREEBANK_MAX_MB * 1_000_000:
                    raise TreebankTooLargeError
                digest.update(chunk)
                coming.write(chunk)
            coming.flush()
            with path.open("rb") as stream:
                for _sentence in islice(sentences(stream, language), LOOKED_AT):
                    pass
            path.chmod(0o640)
            path.replace(treebank_path(digest.hexdigest()))
        except BaseException:
            path.unlink(missing_ok=True)
            raise
    return Stored(digest.hexdigest(), size)


class LeftOutFile:
    """Sentences left out, one JSON line each, compressed: a large treebank has a hundred thousand of them.

    They are no rows in the database because nothing refers to them: they are only paged through, and can be had again
    by reading the treebank again.
    """

    def __init__(self, composition_id: int, attempt: int) -> None:
        self.path = _left_out_path(composition_id, attempt)
        self.count = 0
        self._stream = gzip.open(self.path, "wt", encoding="utf-8", compresslevel=4)  # noqa: SIM115 (closed by its owner)

    def write(self, left: LeftOut) -> None:
        self.count += 1
        record = [left.line, left.sent_id, left.text[:500], left.reasons]
        self._stream.write(json.dumps(record, ensure_ascii=False) + "\n")

    def close(self) -> None:
        self._stream.close()

    def discard(self) -> None:
        self.close()
        self.path.unlink(missing_ok=True)


def _left_out_path(composition_id: int, attempt: int) -> Path:
    return _folder("left-out") / f"{composition_id}-{attempt}.jsonl.gz"


def left_out_page(composition_id: int, attempt: int, *, reason: str, first: int, count: int) -> list[LeftOut] | None:
    """`count` left-out sentences from the `first` on (from 0), those with the reason or all. None: no file."""
    path = _left_out_path(composition_id, attempt)
    if not path.exists():
        return None
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        return list(islice(_with_reason(stream, reason), first, first + count))


def _with_reason(lines: Iterable[str], reason: str) -> Iterator[LeftOut]:
    sign = f'["{reason}", '
    for line in lines:
        if reason and sign not in line:
            continue
        number, sent_id, text, reasons = json.loads(line)
        if not reason or any(code == reason for code, _detail in reasons):
            yield LeftOut(number, sent_id, text, [(code, detail) for code, detail in reasons])
