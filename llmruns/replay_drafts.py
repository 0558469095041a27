"""Files of recorded replies that were sent and are being looked at. How long they live is `corpus.drafts`'s."""

import uuid
from typing import Any

from django.core.files.uploadedfile import UploadedFile
from django.db import transaction

from corpus import drafts
from corpus.drafts import DraftLostError
from corpus.models import Instrument
from llmruns.models import ReplyDraft
from llmruns.replay import Source
from studies.models import User
from studies.services import audit_record


@transaction.atomic
def draft_create(*, instrument: Instrument, upload: UploadedFile, actor: User) -> ReplyDraft:
    """Keep the file under a random name. Drafts that nobody has imported for a day go at the same time."""
    drafts.drafts_sweep(ReplyDraft)
    key = uuid.uuid4()
    (kept,) = drafts.files_keep(ReplyDraft, key, [upload])
    draft = ReplyDraft.objects.create(
        study=instrument.study,
        instrument=instrument,
        key=key,
        name=kept.name,
        sha256=kept.sha256,
        size=kept.bytes,
        made_by=actor,
    )
    audit_record(actor=actor, study=draft.study, action="reply_draft_create", target=draft)
    return draft


@transaction.atomic
def draft_choose(*, draft: ReplyDraft, chosen: dict[str, Any]) -> None:
    draft.settings = chosen
    draft.save(update_fields=["settings"])


def draft_source(draft: ReplyDraft) -> Source:
    """The file that was sent, to be read as a stream. Raises DraftLostError.

    Its bytes are not compared with the digest, which would be one more reading of a large file: the digest of what was
    shown is that of the records, and a file with others is not what was shown.
    """
    path = drafts.draft_file(ReplyDraft, draft.key)
    try:
        size = path.stat().st_size
    except OSError as error:
        raise DraftLostError from error
    if size != draft.size:
        raise DraftLostError
    return Source(draft.name, size, lambda: path.open("rb"))
