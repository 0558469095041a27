"""Files of judgements that were sent and are being looked at, before anything of them is imported."""

import contextlib
import hashlib
import os
import shutil
import uuid
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.db import transaction
from django.utils import timezone

from annotation.importers.plan import Source
from annotation.models import JudgementDraft
from corpus.storing import storable_text
from studies.models import Study, User
from studies.services import audit_record

KEPT_HOURS = 24


class DraftLostError(Exception):
    """A file of the draft is not there any more, or is not the one that was sent."""


def draft_folder(key: uuid.UUID) -> Path:
    return Path(settings.DATA_DIR) / "judgements" / str(key)


@transaction.atomic
def draft_create(
    *, study: Study, uploads: Sequence[UploadedFile], format_name: str, keys: dict[str, str], actor: User
) -> JudgementDraft:
    """Keep the files under random names. Drafts that nobody has imported for a day go at the same time."""
    drafts_sweep()
    key = uuid.uuid4()
    folder = draft_folder(key)
    folder.mkdir(parents=True, mode=0o700)
    draft = JudgementDraft.objects.create(
        study=study,
        key=key,
        files=[_kept(folder / str(number), upload) for number, upload in enumerate(uploads)],
        format=format_name,
        settings={"keys": keys} if keys else {},
        made_by=actor,
    )
    audit_record(actor=actor, study=study, action="judgement_draft_create", target=draft)
    return draft


def _kept(path: Path, upload: UploadedFile) -> dict[str, Any]:
    digest, size = hashlib.sha256(), 0
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)  # people's answers: for nobody else's eyes
    with os.fdopen(descriptor, "wb") as file:
        for chunk in upload.chunks():
            digest.update(chunk)
            size += len(chunk)
            file.write(chunk)
    name = storable_text(upload.name or "file")[0][:200]
    return {"name": name, "bytes": size, "sha256": digest.hexdigest()}


@transaction.atomic
def draft_choose(*, draft: JudgementDraft, format_name: str, chosen: dict[str, Any]) -> None:
    draft.format, draft.settings = format_name, chosen
    draft.save(update_fields=["format", "settings"])


def draft_read(draft: JudgementDraft) -> list[Source]:
    """The files that were sent. Raises DraftLostError."""
    sources = []
    for number, file in enumerate(draft.files):
        try:
            data = (draft_folder(draft.key) / str(number)).read_bytes()
        except OSError as error:
            raise DraftLostError from error
        if hashlib.sha256(data).hexdigest() != file["sha256"]:
            raise DraftLostError
        sources.append(Source(file["name"], data))
    return sources


@transaction.atomic
def draft_discard(*, draft: JudgementDraft) -> None:
    """The files go; nothing else knows of them."""
    key = draft.key
    draft.delete()
    transaction.on_commit(lambda: _unlink(key))


@transaction.atomic
def drafts_sweep() -> None:
    """Whoever opens a page of imports takes away what is older than a day, whosever it is. One query as a rule."""
    old = timezone.now() - timedelta(hours=KEPT_HOURS)
    for draft in JudgementDraft.objects.select_for_update(skip_locked=True).filter(made_at__lt=old):
        draft_discard(draft=draft)


@transaction.atomic
def judgement_drafts_discard(*, study: Study) -> int:
    """Every draft of the study: somebody has withdrawn, and any file may hold their words. Returns how many."""
    drafts = list(JudgementDraft.objects.select_for_update().filter(study=study).order_by("pk"))
    for draft in drafts:
        draft_discard(draft=draft)
    return len(drafts)


def _unlink(key: uuid.UUID) -> None:
    with contextlib.suppress(OSError):
        shutil.rmtree(draft_folder(key))
