"""Archives in DATA_DIR, which web servers and workers share."""

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
def coming_file(release: Release) -> Iterator[tuple[Path, BinaryIO]]:
    """A file that nobody sees under its name until it is whole; gone again where that does not come about."""
    with tempfile.NamedTemporaryFile(dir=releases_folder(), prefix=f"{release.pk}-coming-", delete=False) as coming:
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


def release_files_delete(release: Release) -> None:
    """The archive, and what was left of attempts that died."""
    for path in releases_folder().glob(f"{release.pk}-*"):
        path.unlink(missing_ok=True)


def files_sweep() -> int:
    """Delete what belongs to no release that is ready or being made: left by a crash. One query. Returns how many."""
    wanted = dict(Release.objects.filter(state=Release.State.READY).values_list("pk", "sha256"))
    moving = [Release.State.WAITING, Release.State.BUILDING]
    making = set(Release.objects.filter(state__in=moving).values_list("pk", flat=True))
    found = 0
    for path in releases_folder().iterdir():
        number, _hyphen, rest = path.name.partition("-")
        pk = int(number) if number.isdecimal() else 0
        if pk not in making and rest != f"{wanted.get(pk)}.zip":
            path.unlink(missing_ok=True)
            found += 1
    return found
