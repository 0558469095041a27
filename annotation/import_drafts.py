"""Files of judgements that were sent and are being looked at. How long they live is `corpus.drafts`'s."""

import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.core.files.uploadedfile import UploadedFile
from django.db import transaction

from annotation.importers.plan import Source
from annotation.models import JudgementDraft
from corpus import drafts
from corpus.drafts import DraftLostError, draft_discard
from studies.models import Study, User
from studies.services import audit_record

__all__ = ["DraftLostError", "draft_discard"]


def draft_folder(key: uuid.UUID) -> Path:
    return drafts.draft_folder(JudgementDraft, key)


@transaction.atomic
def draft_create(
    *, study: Study, uploads: Sequence[UploadedFile], format_name: str, keys: dict[str, str], actor: User
) -> JudgementDraft:
    """Keep the files under random names. Drafts that nobody has imported for a day go at the same time."""
    drafts_sweep()
    key = uuid.uuid4()
    draft = JudgementDraft.objects.create(
        study=study,
        key=key,
        files=[kept.as_json() for kept in drafts.files_keep(JudgementDraft, key, uploads)],
        format=format_name,
        settings={"keys": keys} if keys else {},
        made_by=actor,
    )
    audit_record(actor=actor, study=study, action="judgement_draft_create", target=draft)
    return draft


@transaction.atomic
def draft_choose(*, draft: JudgementDraft, format_name: str, chosen: dict[str, Any]) -> None:
    draft.format, draft.settings = format_name, chosen
    draft.save(update_fields=["format", "settings"])


def draft_read(draft: JudgementDraft) -> list[Source]:
    """The files that were sent. Raises DraftLostError."""
    return [
        Source(file["name"], drafts.file_read(drafts.draft_file(JudgementDraft, draft.key, number), file["sha256"]))
        for number, file in enumerate(draft.files)
    ]


def drafts_sweep() -> None:
    drafts.drafts_sweep(JudgementDraft)


def judgement_drafts_discard(*, study: Study) -> int:
    return drafts.drafts_discard(JudgementDraft, study=study)
