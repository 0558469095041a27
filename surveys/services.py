"""The only writer of surveys, participants, consents and exposures."""

import hashlib
import secrets
import uuid

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.crypto import salted_hmac

from corpus.models import Answer, Instrument, Respondent, Sitting
from corpus.services import Recorded, answer_record, sitting_finish, sitting_start, sitting_stop
from studies.models import Study, User
from studies.services import audit_record, secret_digest
from surveys.models import Consent, ConsentDocument, Exposure, Participant, Survey

# No letters or digits that are read for one another: people type completion codes by hand.
CODE_ALPHABET = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"


SLUG_BEGIN = 50  # characters of the study's address in a survey's: both may have 60, and a number follows


class SurveyNotOpenError(Exception):
    """The survey takes nobody new: it has not been opened, or it has been closed."""


@transaction.atomic
def consent_document_ensure(*, study: Study, language: str, text: str) -> ConsentDocument:
    """The document with exactly this text: the one that exists, or the study's next version."""
    text = text.replace("\r\n", "\n").strip()
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    Study.objects.select_for_update().get(pk=study.pk)
    documents = ConsentDocument.objects.filter(study=study, language=language)
    same = documents.filter(sha256=sha256).first()
    if same:
        return same
    last = documents.order_by("-version").first()
    return ConsentDocument.objects.create(
        study=study, language=language, version=last.version + 1 if last else 1, text=text, sha256=sha256
    )


@transaction.atomic
def survey_create(*, instrument: Instrument, title: str, contact: str, consent_text: str, actor: User | None) -> Survey:
    """A draft survey of the instrument; its public address is `<study>-<number>`, the study's cut to fit."""
    study = Study.objects.select_for_update().get(pk=instrument.study_id)
    number = Survey.objects.filter(instrument__study=study).count() + 1
    begin = study.slug[:SLUG_BEGIN]
    while Survey.objects.filter(slug=f"{begin}-{number}").exists():
        number += 1
    survey = Survey.objects.create(
        instrument=instrument,
        consent_document=consent_document_ensure(study=study, language=instrument.language, text=consent_text),
        slug=f"{begin}-{number}",
        title=title,
        contact=contact,
        completion_code="".join(secrets.choice(CODE_ALPHABET) for _ in range(8)),
    )
    audit_record(actor=actor, study=study, action="survey_create", target=survey)
    return survey


@transaction.atomic
def survey_set_state(*, survey: Survey, state: str, actor: User | None) -> bool:
    """Open or close. Closing turns newcomers away; whoever has begun may finish. False: it was so already."""
    changed = Survey.objects.filter(pk=survey.pk).exclude(state=state).update(state=state)
    if changed:
        audit_record(
            actor=actor, study=survey.instrument.study, action=f"survey_{state}", target=survey, detail={"state": state}
        )
    return bool(changed)


def participant_secret(*, survey_id: int, start_key: uuid.UUID) -> str:
    """The secret of the participant's own address.

    Derived from the key that their consent page carried, so that a double click gets the same address twice while the
    database keeps only its digest.
    """
    return salted_hmac("surveys.participant", f"{survey_id}:{start_key}", algorithm="sha256").hexdigest()[:43]


@transaction.atomic
def participant_start(*, survey_id: int, start_key: uuid.UUID) -> str:
    """Record the consent and open the sitting. Returns the participant's secret; repeating changes nothing.

    Raises SurveyNotOpenError.
    """
    survey = Survey.objects.select_related("instrument__study", "consent_document").get(pk=survey_id)
    secret = participant_secret(survey_id=survey_id, start_key=start_key)
    if Participant.objects.filter(survey=survey, start_key=start_key).exists():
        return secret
    if survey.state != Survey.State.OPEN:
        raise SurveyNotOpenError
    respondent = Respondent.objects.create(study=survey.instrument.study, kind=Respondent.Kind.HUMAN)
    try:
        with transaction.atomic():
            participant = Participant.objects.create(
                respondent=respondent, survey=survey, digest=secret_digest(secret), start_key=start_key
            )
    except IntegrityError:  # the other half of a double click was faster
        respondent.delete()
        return secret
    document = survey.consent_document
    Consent.objects.create(participant=participant, document=document, sha256=document.sha256)
    sitting_start(respondent=respondent, instrument=survey.instrument, source_label=survey.title)
    return secret


def exposure_begin(*, sitting_id: int, stimulus_id: int) -> None:
    """Note when a stimulus was first shown. Later showings change nothing."""
    Exposure.objects.bulk_create(
        [Exposure(sitting_id=sitting_id, stimulus_id=stimulus_id, onset_at=timezone.now())], ignore_conflicts=True
    )


@transaction.atomic
def task_submit(
    *,
    sitting: Sitting,
    stimulus_id: int,
    outcome: str,
    text: str,
    seen_revision: int | None,
    duration_ms: int | None,
) -> Recorded:
    """Record an answer with its times; the last missing one finishes the sitting.

    Raises what `corpus.services.answer_record` raises.
    """
    recorded = answer_record(
        sitting_id=sitting.pk, stimulus_id=stimulus_id, outcome=outcome, text=text, seen_revision=seen_revision
    )
    if recorded.changed and recorded.answer.revision == 1:
        now = timezone.now()
        updated = Exposure.objects.filter(sitting=sitting, stimulus_id=stimulus_id).update(
            submitted_at=now, duration_ms=duration_ms
        )
        if not updated:  # posted without the page ever being shown; there is no onset but this
            exposure_begin(sitting_id=sitting.pk, stimulus_id=stimulus_id)  # unless it is being shown at this moment
            Exposure.objects.filter(sitting=sitting, stimulus_id=stimulus_id).update(submitted_at=now)
    # Tasks are answered in order, so only the last one can complete the set.
    if stimulus_id == sitting.order[-1] and Answer.objects.filter(sitting=sitting).count() == len(sitting.order):
        sitting_finish(sitting_id=sitting.pk)
    return recorded


@transaction.atomic
def participant_leave(*, sitting: Sitting) -> None:
    """The participant ends the survey early. The answers given so far stay, without a score."""
    sitting_stop(sitting_id=sitting.pk, reason="left by the participant")
