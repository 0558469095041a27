"""Participants of a survey, made past the pages: only what is done with their sittings is tested here."""

import uuid
from collections.abc import Sequence
from datetime import timedelta

from django.utils import timezone

from corpus.models import Answer, Respondent, Sitting
from corpus.services import instrument_freeze
from studies.services import secret_digest
from surveys.models import Consent, Exposure, Participant, Survey
from surveys.services import participant_secret

TEXTS = ("кошка сидит на столе", "мышь бежит от кошки", "дети, которые играли во дворе, были счастливы")


def make_person(
    survey: Survey,
    texts: Sequence[str | None] = TEXTS,
    *,
    state: str = "finished",
    standing: str = "counted",
    minutes: float = 10,
    begun: bool = True,
    agreed: Sequence[object] = (),
    timing: dict[str, object] | None = None,
    **columns: object,
) -> Participant:
    """Answers to the first stimuli; a text of None is declined. The task after the last answer is shown, too."""
    instrument_freeze(instrument=survey.instrument, actor=None)
    key = uuid.uuid4()
    respondent = Respondent.objects.create(study=survey.instrument.study, kind="human")
    participant = Participant.objects.create(
        respondent=respondent,
        survey=survey,
        start_key=key,
        digest=secret_digest(participant_secret(survey_id=survey.pk, start_key=key)),
        **columns,
    )
    for document in (survey.consent_document, *agreed):
        Consent.objects.create(participant=participant, document=document, sha256=document.sha256)
    stimuli = list(survey.instrument.stimuli.filter(is_practice=False).order_by("position"))
    now = timezone.now()
    sitting = Sitting.objects.create(
        respondent=respondent,
        instrument=survey.instrument,
        source_label=survey.title,
        order=[stimulus.pk for stimulus in stimuli],
        state=state,
        standing=standing,
        started_at=now - timedelta(minutes=minutes),
        finished_at=now if state == "finished" else None,
    )
    given = zip(stimuli, texts, strict=False) if begun else ()
    for stimulus, text in given:
        outcome = "declined" if text is None else "given"
        Answer.objects.create(sitting=sitting, stimulus=stimulus, outcome=outcome, text=text or "")
        times = {"duration_ms": 4_000, "away_ms": 0, "pastes": 0, "translated": False} | (timing or {})
        Exposure.objects.create(sitting=sitting, stimulus=stimulus, onset_at=now, submitted_at=now, **times)
    if begun and len(texts) < len(stimuli):
        Exposure.objects.create(sitting=sitting, stimulus=stimuli[len(texts)], onset_at=now)
    return participant


def sitting_of(participant: Participant) -> Sitting:
    return Sitting.objects.get(respondent=participant.respondent)


def secret_of(participant: Participant) -> str:
    return participant_secret(survey_id=participant.survey_id, start_key=participant.start_key)
