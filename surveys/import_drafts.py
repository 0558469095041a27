"""Files that were sent and are being looked at, before anything of them is imported."""

import contextlib
import hashlib
import os
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.db import transaction
from django.utils import timezone

from corpus.models import Instrument
from studies.models import Study, User
from studies.services import audit_record
from surveys.models import ImportDraft

KEPT_HOURS = 24


class DraftLostError(Exception):
    """The file of the draft is not there any more, or is not the one that was sent."""


def draft_path(key: uuid.UUID) -> Path:
    return Path(settings.DATA_DIR) / "imports" / str(key)


@transaction.atomic
def draft_create(*, instrument: Instrument, upload: UploadedFile, format_name: str, actor: User) -> ImportDraft:
    """Keep the file under a random name. Drafts that nobody has touched for a day go at the same time."""
    drafts_sweep()
    key = uuid.uuid4()
    path = draft_path(key)
    path.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)  # people's answers: for nobody else's eyes
    with os.fdopen(descriptor, "wb") as file:
        for chunk in upload.chunks():
            digest.update(chunk)
            file.write(chunk)
    draft = ImportDraft.objects.create(
        study=instrument.study,
        instrument=instrument,
        key=key,
        name=(upload.name or "file").replace("\0", "")[:200],
        sha256=digest.hexdigest(),
        size=upload.size or 0,
        format=format_name,
        made_by=actor,
    )
    audit_record(actor=actor, study=draft.study, action="import_draft_create", target=draft)
    return draft


@transaction.atomic
def draft_choose(*, draft: ImportDraft, format_name: str, chosen: dict[str, Any]) -> None:
    draft.format, draft.settings = format_name, chosen
    draft.save(update_fields=["format", "settings"])


def draft_read(draft: ImportDraft) -> bytes:
    """The bytes that were sent. Raises DraftLostError."""
    try:
        data = draft_path(draft.key).read_bytes()
    except OSError as error:
        raise DraftLostError from error
    if hashlib.sha256(data).hexdigest() != draft.sha256:
        raise DraftLostError
    return data


@transaction.atomic
def draft_discard(*, draft: ImportDraft) -> None:
    """The file goes; nothing else knows of it."""
    key = draft.key
    draft.delete()
    transaction.on_commit(lambda: _unlink(key))


@transaction.atomic
def drafts_sweep() -> None:
    """Whoever opens a page of imports takes away what is older than a day, whosever it is. One query as a rule."""
    old = timezone.now() - timedelta(hours=KEPT_HOURS)
    for draft in ImportDraft.objects.select_for_update(skip_locked=True).filter(made_at__lt=old):
        draft_discard(draft=draft)


@transaction.atomic
def drafts_discard(*, study: Study) -> int:
    """Every draft of the study: somebody has withdrawn, and any file may hold their words. Returns how many."""
    drafts = list(ImportDraft.objects.select_for_update().filter(study=study).order_by("pk"))
    for draft in drafts:
        draft_discard(draft=draft)
    return len(drafts)


def _unlink(key: uuid.UUID) -> None:
    with contextlib.suppress(OSError):
        draft_path(key).unlink()
