"""Archives in DATA_DIR, which web servers and workers share."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from django.conf import settings

from reports.models import Release


def releases_folder() -> Path:
    folder = Path(settings.DATA_DIR) / "releases"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def release_path(release: Release) -> Path:
    return releases_folder() / f"{release.pk}-{release.sha256}.zip"


@contextmanager
def coming_file() -> Iterator[tuple[Path, BinaryIO]]:
    """A file that nobody sees under its name until it is whole; gone again where that does not come about."""
    with tempfile.NamedTemporaryFile(dir=releases_folder(), prefix="coming-", delete=False) as coming:
        path = Path(coming.name)
        try:
            yield path, coming  # type: ignore[misc]  # a wrapper that behaves as the file
        finally:
            path.unlink(missing_ok=True)  # where it was kept, it has its own name by now


def file_keep(path: Path, stream: BinaryIO, target: Path) -> None:
    """On disk before it has its name: after a crash there is all of it or nothing."""
    stream.flush()
    os.fsync(stream.fileno())
    path.chmod(0o640)
    path.replace(target)


def release_file_delete(release: Release) -> None:
    with contextlib.suppress(FileNotFoundError):
        release_path(release).unlink()
