"""The only writer of surveys, participants, consents, exposures and arrivals (questionnaires: question_services)."""

import hashlib
import secrets
import uuid
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Exists, F, OuterRef, Q
from django.utils import timezone
from django.utils.crypto import salted_hmac

from corpus.models import Instrument, Respondent, Sitting
from corpus.ordering import order_within_bands
from corpus.services import (
    InstrumentIncompleteError,
    Recorded,
    answer_record,
    instrument_check,
    instrument_freeze,
    sitting_finish,
    sitting_start,
    sitting_stop,
)
from corpus.tables.table import folded
from studies.database import locked, planned_cursor
from studies.models import Study, User
from studies.services import audit_record, secret_digest
from surveys.models import (
    Arrival,
    Consent,
    ConsentDocument,
    Exposure,
    Participant,
    Platform,
    Purpose,
    Question,
    Survey,
)
from surveys.platforms import RULES, may_return_by
from surveys.timing import Timing
from surveys.visits import Visit, facts_of

# No letters or digits that are read for one another: people type completion codes by hand.
CODE_ALPHABET = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"
CODE_LENGTH = 8
SLUG_BEGIN = 50  # characters of the study's address in a survey's: both may have 60, and a number follows


class SurveyNotOpenError(Exception):
    """The survey takes nobody new: it has not been opened, it is outside its times, or it has been closed."""


class QuotaFullError(Exception):
    """Every place is taken. Places come back when people leave or stay away."""


class AlreadyStartedError(Exception):
    """This id has started, on another device, and is too easily guessed to be let in by it alone."""


class ConsentChangedError(Exception):
    """What was agreed to is not what the survey asks for by now: the consents have to be read again."""


class SurveyOutdatedError(Exception):
    """The survey has been changed since the page was opened. Nothing has been overwritten."""


class HasWithdrawnError(Exception):
    """Under this id the answers were taken back; they do not come in a second time."""


class SurveyFieldFrozenError(Exception):
    """Participants have come: what they were shown or promised no longer changes."""


def code_make() -> str:
    return "".join(secrets.choice(CODE_ALPHABET) for _ in range(CODE_LENGTH))


@transaction.atomic
def consent_document_ensure(
    *, study: Study, language: str, text: str, purpose: str = Purpose.PARTICIPATION
) -> ConsentDocument:
    """The document with exactly this text: the one that exists, or the study's next version."""
    text = text.replace("\r\n", "\n").strip()
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    Study.objects.select_for_update().get(pk=study.pk)
    documents = ConsentDocument.objects.filter(study=study, language=language, purpose=purpose)
    same = documents.filter(sha256=sha256).first()
    if same:
        return same
    last = documents.order_by("-version").first()
    return ConsentDocument.objects.create(
        study=study,
        purpose=purpose,
        language=language,
        version=last.version + 1 if last else 1,
        text=text,
        sha256=sha256,
    )


@transaction.atomic
def survey_create(
    *,
    instrument: Instrument,
    title: str,
    contact: str,
    consent_text: str,
    actor: User | None,
    publication_text: str = "",
    third_party_text: str = "",
    platform: str = Platform.DIRECT,
    **fields: Any,
) -> Survey:
    """A draft survey of the instrument; its public address is `<study>-<number>`, the study's cut to fit.

    `fields` are further columns of Survey, such as quota. An empty consent text means that this consent is not asked
    for. Names of the platform's parameters and its return address are filled in where they are left out.
    """
    study = Study.objects.select_for_update().get(pk=instrument.study_id)
    number = Survey.objects.filter(instrument__study=study).count() + 1
    begin = study.slug[:SLUG_BEGIN]
    while Survey.objects.filter(slug=f"{begin}-{number}").exists():
        number += 1
    rule = RULES.get(Platform(platform))
    if rule:
        for name in ("person_parameter", "visit_parameter", "return_url"):
            fields[name] = fields.get(name) or getattr(rule, name)
    survey = Survey.objects.create(
        instrument=instrument,
        slug=f"{begin}-{number}",
        title=title,
        contact=contact,
        platform=platform,
        **_documents(instrument, consent_text, publication_text, third_party_text),
        **{**fields, "completion_code": fields.get("completion_code") or code_make()},
    )
    audit_record(actor=actor, study=study, action="survey_create", target=survey)
    return survey


def _documents(instrument: Instrument, consent: str, publication: str, third_parties: str) -> dict[str, Any]:
    def document(text: str, purpose: str) -> ConsentDocument | None:
        if not text.strip():
            return None
        return consent_document_ensure(study=instrument.study, language=instrument.language, text=text, purpose=purpose)

    return {
        "consent_document": document(consent, Purpose.PARTICIPATION),
        "publication_document": document(publication, Purpose.PUBLICATION),
        "third_party_document": document(third_parties, Purpose.THIRD_PARTIES),
    }


class QuestionMisplacedError(Exception):
    """A question stands after a task that the instrument does not have. Its code is the argument."""


def questions_fit(questions: Iterable[Question], instrument: Instrument) -> None:
    """Raises QuestionMisplacedError where a question between tasks would never be asked."""
    tasks = instrument.stimuli.filter(is_practice=False).count()
    for question in questions:
        if question.after_task is not None and question.after_task >= tasks:
            raise QuestionMisplacedError(question.code)


# What does not touch what people have been shown, and may change while they come.
ALWAYS_CHANGEABLE = frozenset(
    {
        "title",
        "contact",
        "quota",
        "hold_minutes",
        "opens_at",
        "closes_at",
        "screen_out_code",
        "return_url",
        "gap_minutes",
    }
)


@transaction.atomic
def survey_update(
    *,
    survey: Survey,
    actor: User | None,
    seen: int | None = None,
    consent_text: str | None = None,
    publication_text: str = "",
    third_party_text: str = "",
    **fields: Any,
) -> Survey:
    """Change a survey. Once somebody has started, only ALWAYS_CHANGEABLE fields.

    `seen` is the revision that the sender's page showed. Raises SurveyOutdatedError, QuestionMisplacedError, and
    SurveyFieldFrozenError, naming the fields; then nothing has changed.
    """
    survey = locked(Survey.objects.select_related("instrument__study"), survey.pk)
    if consent_text is not None:
        instrument = fields.get("instrument") or survey.instrument
        fields |= _documents(instrument, consent_text, publication_text, third_party_text)
    if seen is not None and seen != survey.revision:
        raise SurveyOutdatedError
    changed = {name: value for name, value in fields.items() if getattr(survey, name) != value}
    if not changed:
        return survey
    frozen = set(changed) - ALWAYS_CHANGEABLE
    if frozen and Participant.objects.filter(survey=survey).exists():
        raise SurveyFieldFrozenError(*sorted(frozen))
    if "instrument" in changed:
        questions_fit(survey.questions.all(), fields["instrument"])
    for name, value in changed.items():
        setattr(survey, name, value)
    survey.revision += 1
    survey.save(update_fields=[*changed, "revision"])
    audit_record(
        actor=actor,
        study=survey.instrument.study,
        action="survey_update",
        target=survey,
        detail={name: str(value)[:200] for name, value in changed.items()},
    )
    return survey


@transaction.atomic
def survey_set_state(*, survey: Survey, state: str, actor: User | None) -> bool:
    """Open or close. Closing turns newcomers away; whoever has begun may finish. False: it was so already, or the
    survey holds imported answers and is never open.

    Raises InstrumentIncompleteError: nobody is let in to a test that cannot be taken.
    """
    if state == Survey.State.OPEN and survey.instrument.state == Instrument.State.DRAFT:
        instrument_check(survey.instrument)
    changing = Survey.objects.filter(pk=survey.pk).exclude(state=state).exclude(platform=Platform.IMPORTED)
    changed = changing.update(state=state, revision=F("revision") + 1)
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


def withdrawn_digest(*, study_id: int, external_id: str) -> str:
    """What stays of a withdrawn person's platform id: enough to recognise it in a file, not to read it.

    The same in every survey of the study, however the id is capitalised.
    """
    key = f"{study_id}:{folded(external_id)}"
    return salted_hmac("surveys.withdrawn", key, algorithm="sha256").hexdigest()


def has_withdrawn(*, survey_id: int, external_id: str) -> bool:
    """Whether somebody of this id has taken it all back in this survey. Two queries."""
    study_id = Survey.objects.values_list("instrument__study", flat=True).get(pk=survey_id)
    digest = withdrawn_digest(study_id=study_id, external_id=external_id)
    return Participant.objects.filter(survey=survey_id, withdrawn_digest=digest).exists()


def is_full(survey: Survey) -> bool:
    return survey.quota is not None and places_taken(survey) >= survey.quota


def arrival_record(*, survey_id: int, key: uuid.UUID) -> None:
    """A consent page was opened in a real browser. Nothing of the person is kept; repeating changes nothing."""
    Arrival.objects.bulk_create([Arrival(survey_id=survey_id, key=key)], ignore_conflicts=True)


def is_open(survey: Survey) -> bool:
    """Whether newcomers are let in now, quota apart."""
    now = timezone.now()
    return (
        survey.state == Survey.State.OPEN
        and (survey.opens_at is None or survey.opens_at <= now)
        and (survey.closes_at is None or now < survey.closes_at)
    )


def places_taken(survey: Survey) -> int:
    """Finished sittings and those still alive. Who left, was excluded or has been away for long holds no place."""
    since = timezone.now() - timedelta(minutes=survey.hold_minutes)
    active = Exposure.objects.filter(sitting=OuterRef("pk")).filter(Q(onset_at__gte=since) | Q(submitted_at__gte=since))
    return (
        Sitting.objects.filter(
            respondent__participant__survey=survey, standing__in=[Sitting.Standing.COUNTED, Sitting.Standing.PILOT]
        )
        .filter(
            Q(state=Sitting.State.FINISHED) | Q(state=Sitting.State.OPEN) & (Q(started_at__gte=since) | Exists(active))
        )
        .count()
    )


@dataclass(frozen=True)
class Newcomer:
    """What the consent page sends: ids from the platform (empty on a direct link) and what was agreed to."""

    start_key: uuid.UUID
    person: str = ""
    visit: str = ""
    agreed: Collection[str] = ()  # of Purpose, besides participation
    started_before: bool = False  # this browser has begun a survey of the study before
    documents: str | None = None  # `documents_key` of the consents that were shown; None: the caller showed the present


def documents_key(survey: Survey) -> str:
    """Which consent documents the survey shows: their ids, 0 for one that is not asked for."""
    ids = (survey.consent_document_id, survey.publication_document_id, survey.third_party_document_id)
    return "-".join(str(pk or 0) for pk in ids)


@transaction.atomic
def participant_start(*, survey_id: int, newcomer: Newcomer) -> str:
    """Record the consents and open the sitting. Returns the participant's secret; repeating changes nothing.

    Who comes back under the same platform id gets their own sitting again. A quota is counted under a lock on the
    survey. Raises SurveyNotOpenError, QuotaFullError, AlreadyStartedError, HasWithdrawnError,
    ConsentChangedError.
    """
    survey = _survey_now(survey_id)
    secret = participant_secret(survey_id=survey_id, start_key=newcomer.start_key)
    pressed = Participant.objects.filter(survey=survey, start_key=newcomer.start_key).first()
    if pressed is not None:
        if pressed.external_id != newcomer.person:  # somebody else's consent page, sent under another id
            raise AlreadyStartedError
        return secret
    if newcomer.person:
        known = Participant.objects.filter(survey=survey, external_id=newcomer.person).first()
        if known:
            return _come_back(known, newcomer)
        if has_withdrawn(survey_id=survey.pk, external_id=newcomer.person):
            raise HasWithdrawnError
    if not is_open(survey):
        raise SurveyNotOpenError
    if newcomer.documents is not None and newcomer.documents != documents_key(survey):
        raise ConsentChangedError
    if is_full(survey):
        raise QuotaFullError
    try:
        with transaction.atomic():
            participant = _participant_create(survey, newcomer, secret)
    except IntegrityError:  # the other half of a double click was faster
        known = Participant.objects.filter(survey=survey, start_key=newcomer.start_key).first()
        if known is None:
            known = Participant.objects.get(survey=survey, external_id=newcomer.person)
            return _come_back(known, newcomer)
        return secret
    _consents_record(survey, participant, newcomer.agreed)
    try:
        instrument_freeze(instrument=survey.instrument, actor=None)  # before the order of its stimuli is read
        sitting_start(
            respondent=participant.respondent,
            instrument=survey.instrument,
            source_label=survey.title,
            standing=Sitting.Standing.PILOT if survey.is_pilot else Sitting.Standing.COUNTED,
            order=_order(survey, newcomer.start_key),
        )
    except InstrumentIncompleteError as error:  # a draft that was changed after the survey had been opened
        raise SurveyNotOpenError from error
    return secret


def _survey_now(survey_id: int) -> Survey:
    """The survey as it is, locked where a quota is to be counted. One query, with a quota two."""
    revisions = Survey.objects.filter(pk=survey_id).values_list("revision", flat=True)
    survey = facts_of(survey_id, revisions.get()).survey
    if survey.quota is not None:
        survey = facts_of(survey_id, revisions.select_for_update(no_key=True).get()).survey
    return survey


def _come_back(participant: Participant, newcomer: Newcomer) -> str:
    same_visit = bool(newcomer.visit) and newcomer.visit == participant.visit_id
    if not (may_return_by(participant.external_id) or (same_visit and may_return_by(participant.visit_id))):
        raise AlreadyStartedError
    if not same_visit:
        _flag(participant, "visit_again")
    return participant_secret(survey_id=participant.survey_id, start_key=participant.start_key)


def _flag(participant: Participant, flag: str) -> None:
    if flag not in participant.flags:
        participant.flags = [*participant.flags, flag]
        participant.save(update_fields=["flags"])


def _participant_create(survey: Survey, newcomer: Newcomer, secret: str) -> Participant:
    flags = ["browser_again"] if newcomer.started_before else []
    if newcomer.person and (
        Participant.objects.filter(external_id=newcomer.person, survey__instrument__study=survey.instrument.study_id)
        .exclude(survey=survey)
        .exists()
    ):
        flags.append("id_elsewhere")
    respondent = Respondent.objects.create(
        study=survey.instrument.study,
        kind=Respondent.Kind.HUMAN,
        third_parties=survey.third_party_document_id is not None and Purpose.THIRD_PARTIES in newcomer.agreed,
    )
    return Participant.objects.create(
        respondent=respondent,
        survey=survey,
        digest=secret_digest(secret),
        start_key=newcomer.start_key,
        external_id=newcomer.person,
        visit_id=newcomer.visit,
        completion_code=code_make() if survey.codes == Survey.Codes.UNIQUE else "",
        flags=flags,
    )


def _consents_record(survey: Survey, participant: Participant, agreed: Collection[str]) -> None:
    documents = [survey.consent_document]
    if survey.publication_document and Purpose.PUBLICATION in agreed:
        documents.append(survey.publication_document)
    if survey.third_party_document and Purpose.THIRD_PARTIES in agreed:
        documents.append(survey.third_party_document)
    Consent.objects.bulk_create(
        Consent(participant=participant, document=document, sha256=document.sha256) for document in documents
    )


def _order(survey: Survey, start_key: uuid.UUID) -> list[int] | None:
    if survey.order_scheme == Survey.OrderScheme.FIXED:
        return None
    stimuli = survey.instrument.stimuli.filter(is_practice=False).order_by("position")
    return order_within_bands(list(stimuli.values_list("pk", "complexity")), f"{survey.seed}:{start_key}")


EXPOSURE_BEGIN = """
INSERT INTO surveys_exposure (sitting_id, stimulus_id, onset_at, device) VALUES (%s, %s, %s, '')
ON CONFLICT ON CONSTRAINT exposure_one_per_sitting_stimulus DO NOTHING
"""
EXPOSURE_END = """
INSERT INTO surveys_exposure (sitting_id, stimulus_id, onset_at, submitted_at, duration_ms, first_key_ms, away_ms,
    pastes, pasted_characters, translated, device)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT ON CONSTRAINT exposure_one_per_sitting_stimulus DO UPDATE SET
    submitted_at = EXCLUDED.submitted_at, duration_ms = EXCLUDED.duration_ms, first_key_ms = EXCLUDED.first_key_ms,
    away_ms = EXCLUDED.away_ms, pastes = EXCLUDED.pastes, pasted_characters = EXCLUDED.pasted_characters,
    translated = EXCLUDED.translated, device = EXCLUDED.device
"""


def exposure_begin(*, sitting_id: int, stimulus_id: int) -> None:
    """Note when a stimulus was first shown. Later showings change nothing. One query."""
    with planned_cursor() as cursor:
        cursor.execute(EXPOSURE_BEGIN, [sitting_id, stimulus_id, timezone.now()])


def _exposure_end(sitting_id: int, stimulus_id: int, timing: Timing) -> None:
    """Posted without the page ever being shown, the answer's own time is the only onset there is."""
    now = timezone.now()
    with planned_cursor() as cursor:
        cursor.execute(EXPOSURE_END, [sitting_id, stimulus_id, now, now, *timing.columns()])


@transaction.atomic
def task_submit(
    *, visit: Visit, number: int, outcome: str, text: str, seen_revision: int | None, timing: Timing
) -> Recorded:
    """Record an answer with its times; the last one finishes the sitting. Two queries for a first answer.

    Raises what `corpus.services.answer_record` raises.
    """
    stimulus_id = visit.order[number - 1]
    recorded = answer_record(
        sitting_id=visit.sitting_id, stimulus_id=stimulus_id, outcome=outcome, text=text, seen_revision=seen_revision
    )
    if recorded.changed and recorded.answer.revision == 1:
        _exposure_end(visit.sitting_id, stimulus_id, timing)
    # Tasks are answered in order, so only the last one can complete the set.
    if number == visit.total:
        sitting_finish(sitting_id=visit.sitting_id)
    return recorded


@transaction.atomic
def participant_leave(*, sitting_id: int) -> None:
    """The participant ends the survey early. The answers given so far stay, without a score."""
    sitting_stop(sitting_id=sitting_id, reason="left by the participant")
