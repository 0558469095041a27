"""Files of answers that were sent and are being looked at. How long they live is `corpus.drafts`'s."""

import uuid
from pathlib import Path
from typing import Any

from django.core.files.uploadedfile import UploadedFile
from django.db import transaction

from corpus import drafts
from corpus.drafts import DraftLostError, draft_discard
from corpus.models import Instrument
from studies.models import Study, User
from studies.services import audit_record
from surveys.models import ImportDraft

__all__ = ["DraftLostError", "draft_discard"]


def draft_path(key: uuid.UUID) -> Path:
    return drafts.draft_file(ImportDraft, key)


@transaction.atomic
def draft_create(*, instrument: Instrument, upload: UploadedFile, format_name: str, actor: User) -> ImportDraft:
    """Keep the file under a random name. Drafts that nobody has touched for a day go at the same time."""
    drafts_sweep()
    key = uuid.uuid4()
    (kept,) = drafts.files_keep(ImportDraft, key, [upload])
    draft = ImportDraft.objects.create(
        study=instrument.study,
        instrument=instrument,
        key=key,
        name=kept.name,
        sha256=kept.sha256,
        size=kept.bytes,
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
    return drafts.file_read(draft_path(draft.key), draft.sha256)


def drafts_sweep() -> None:
    drafts.drafts_sweep(ImportDraft)


def drafts_discard(*, study: Study) -> int:
    return drafts.drafts_discard(ImportDraft, study=study)
