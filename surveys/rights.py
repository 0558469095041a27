"""Writes about a participant's rights: the receipt, and what this layer blanks when somebody withdraws.

The whole of a withdrawal, with every layer's part, is `reports.withdrawal.participant_withdraw`.
"""

from collections.abc import Callable
from typing import Any

from django.db import transaction
from django.utils import timezone

from corpus.models import Respondent
from studies.models import Study
from surveys.models import (
    ExclusionRule,
    Exposure,
    ImportBatch,
    ImportedAnswer,
    Participant,
    PlatformRecord,
    PracticeAnswer,
    QuestionResponse,
)
from surveys.receipts import receipt_code, receipt_digest
from surveys.services import participant_secret, withdrawn_digest

# What the browser measured of a person; when they took part stays.
MEASURED = {
    "duration_ms": None,
    "first_key_ms": None,
    "away_ms": None,
    "pastes": None,
    "pasted_characters": None,
    "translated": None,
    "device": "",
}


# What a file from elsewhere said of an answer; in which record of which file it stood stays.
IMPORTED = {"assignment": "", "status": "", "started": "", "submitted": "", "submitted_at": None, "duration_ms": None}


@transaction.atomic
def receipt_issue(*, participant: Participant) -> str:
    """The participant's receipt code, to be shown. The same each time; only its digest is stored, at the first call."""
    secret = participant_secret(survey_id=participant.survey_id, start_key=participant.start_key)
    code = receipt_code(secret=secret)
    if not participant.receipt_digest:
        participant.receipt_digest = receipt_digest(code)
        participant.save(update_fields=["receipt_digest"])
    return code


@transaction.atomic
def participant_blank(*, participant: Participant) -> bool:
    """Take away what is known of a person here: responses, the platform's ids, what the browser measured, flags.

    The consents stay (they show that the processing was lawful while it lasted), as do the days, and the completion
    code, by which a platform may still pay. False: it was done before. The row is locked by the caller's transaction.
    """
    locked = Participant.objects.select_for_update(of=("self",), no_key=True).get(pk=participant.pk)
    if locked.withdrawn_at is not None:
        return False
    locked.withdrawn_at = timezone.now()
    if locked.external_id:
        study_id = Respondent.objects.values_list("study", flat=True).get(pk=locked.respondent_id)
        locked.withdrawn_digest = withdrawn_digest(study_id=study_id, external_id=locked.external_id)
    locked.external_id = locked.visit_id = ""
    locked.flags = []
    locked.save(update_fields=["withdrawn_at", "withdrawn_digest", "external_id", "visit_id", "flags"])
    QuestionResponse.objects.filter(participant=locked).update(value=None, earlier=[])
    PracticeAnswer.objects.filter(participant=locked).update(text="")
    Exposure.objects.filter(sitting__respondent=locked.respondent_id).update(**MEASURED)
    ImportedAnswer.objects.filter(answer__sitting__respondent=locked.respondent_id).update(**IMPORTED)
    PlatformRecord.objects.filter(participant=locked).update(status="", seconds=None, data={})
    return True


@transaction.atomic
def quotations_blank(*, study: Study, participant: Participant, ids: set[str], blank: Callable[[Any], Any]) -> int:
    """Take a withdrawn person's words out of reasons of exclusion, and words and ids out of reports of imports.

    Returns how many rows changed.
    """
    changed = 0
    for rule in ExclusionRule.objects.filter(survey__instrument__study=study).only("reason"):
        reason = blank(rule.reason)
        if reason != rule.reason:
            rule.reason = reason
            rule.save(update_fields=["reason"])
            changed += 1
    for batch in ImportBatch.objects.filter(survey=participant.survey_id).only("skipped"):
        skipped = _without_ids(blank(batch.skipped), ids)
        if skipped != batch.skipped:
            batch.skipped = skipped
            batch.save(update_fields=["skipped"])
            changed += 1
    return changed


def _without_ids(document: Any, ids: set[str]) -> Any:
    """The document without strings that are one of the ids."""
    if isinstance(document, list):
        return [_without_ids(part, ids) for part in document]
    if isinstance(document, dict):
        return {name: _without_ids(part, ids) for name, part in document.items()}
    return "" if isinstance(document, str) and document in ids else document
