"""The life of a draft: files that were sent and are being looked at, before anything of them is imported.

The files lie in DATA_DIR until they are imported or thrown away, a day at the most. What is special about a kind of
draft (which columns, what is read out of the files) is its own app's.
"""

import contextlib
import hashlib
import os
import shutil
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.db import models, transaction
from django.utils import timezone

from corpus.storing import storable_text
from studies.models import Study, User

KEPT_HOURS = 24


class DraftLostError(Exception):
    """A file of the draft is not there any more, or is not the one that was sent."""


class Draft(models.Model):
    """A subclass has a `study` as well, and says in which folder of DATA_DIR its files lie."""

    FOLDER: ClassVar[str]

    key = models.UUIDField(default=uuid.uuid4)
    settings = models.JSONField(default=dict)
    made_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    made_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        abstract = True


@dataclass(frozen=True, slots=True)
class KeptFile:
    name: str
    bytes: int
    sha256: str

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def draft_folder(model: type[Draft], key: uuid.UUID) -> Path:
    return Path(settings.DATA_DIR) / model.FOLDER / str(key)


def draft_file(model: type[Draft], key: uuid.UUID, number: int = 0) -> Path:
    return draft_folder(model, key) / str(number)


def files_keep(model: type[Draft], key: uuid.UUID, uploads: Sequence[UploadedFile]) -> list[KeptFile]:
    """Write what was sent under names of our own. Within the caller's transaction, which makes the draft's row."""
    draft_folder(model, key).mkdir(parents=True, mode=0o700)
    return [_kept(draft_file(model, key, number), upload) for number, upload in enumerate(uploads)]


def _kept(path: Path, upload: UploadedFile) -> KeptFile:
    digest, size = hashlib.sha256(), 0
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)  # people's answers: for nobody else's eyes
    with os.fdopen(descriptor, "wb") as file:
        for chunk in upload.chunks():
            digest.update(chunk)
            size += len(chunk)
            file.write(chunk)
    return KeptFile(storable_text(upload.name or "file")[0][:200], size, digest.hexdigest())


def file_read(path: Path, sha256: str) -> bytes:
    """The bytes that were sent. Raises DraftLostError."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DraftLostError from error
    if hashlib.sha256(data).hexdigest() != sha256:
        raise DraftLostError
    return data


@transaction.atomic
def draft_discard(*, draft: Draft) -> None:
    """The files go; nothing else knows of them."""
    folder = draft_folder(type(draft), draft.key)
    draft.delete()
    transaction.on_commit(lambda: _remove(folder))


@transaction.atomic
def drafts_sweep(model: type[Draft]) -> None:
    """Whoever opens a page of imports takes away what is older than a day, whosever it is. One query as a rule."""
    old = timezone.now() - timedelta(hours=KEPT_HOURS)
    for draft in model._default_manager.select_for_update(skip_locked=True).filter(made_at__lt=old):
        draft_discard(draft=draft)


@transaction.atomic
def drafts_discard(model: type[Draft], *, study: Study) -> int:
    """Every draft of the study: somebody has withdrawn, and any file may hold their words. Returns how many."""
    of_study = {"study": study}  # a column of every subclass
    drafts = list(model._default_manager.select_for_update().filter(**of_study).order_by("pk"))
    for draft in drafts:
        draft_discard(draft=draft)
    return len(drafts)


def _remove(folder: Path) -> None:
    with contextlib.suppress(OSError):
        shutil.rmtree(folder)
