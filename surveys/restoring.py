"""People of a published dataset: a closed survey, with what they agreed to and what they answered to its questions."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from corpus.bulk import BATCH
from corpus.models import Instrument, Respondent
from studies.models import User
from studies.services import secret_digest
from surveys.models import Consent, Participant, Platform, Question, QuestionResponse, Survey
from surveys.services import survey_create


@dataclass(frozen=True, slots=True)
class RestoredResponse:
    respondent: Respondent
    code: str
    value: Any


@transaction.atomic
def survey_restore(
    *,
    instrument: Instrument,
    title: str,
    statement: str,
    people: Mapping[Respondent, str],
    questions: Sequence[Question],
    responses: Sequence[RestoredResponse],
    actor: User | None,
) -> Survey:
    """A survey of imported people. `statement` says how it is known that they agreed to publication.

    They have no link and no receipt code here: whoever takes answers back does so where they gave them, and the next
    version of the dataset is without them. `people` with the name that they share with themselves in other surveys, or
    none. `questions` are rows without a survey yet.
    """
    survey = survey_create(
        instrument=instrument,
        title=title,
        contact="",
        consent_text=statement,
        publication_text=statement,
        platform=Platform.IMPORTED,
        state=Survey.State.CLOSED,
        actor=actor,
    )
    participants = Participant.objects.bulk_create(
        [
            Participant(
                respondent=one,
                survey=survey,
                external_id=known_as,
                digest=secret_digest(secrets.token_urlsafe(32)),
            )
            for one, known_as in people.items()
        ],
        batch_size=BATCH,
    )
    documents = [one for one in (survey.consent_document, survey.publication_document) if one is not None]
    Consent.objects.bulk_create(
        [Consent(participant=one, document=two, sha256=two.sha256) for two in documents for one in participants],
        batch_size=BATCH,
    )
    for question in questions:
        question.survey = survey
    made = {one.code: one for one in Question.objects.bulk_create(questions)}
    by_respondent: Mapping[int, Participant] = {one.respondent_id: one for one in participants}
    QuestionResponse.objects.bulk_create(
        [
            QuestionResponse(participant=by_respondent[one.respondent.pk], question=made[one.code], value=one.value)
            for one in responses
        ],
        batch_size=BATCH,
    )
    return survey
