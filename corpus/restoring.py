"""Instruments, sittings and answers of a published dataset, as they stand in it."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID, uuid4

from django.db import transaction
from django.utils import timezone

from corpus.bulk import BATCH
from corpus.importing import StimulusRow
from corpus.models import Answer, Instrument, Respondent, Sitting
from corpus.services import INCOMPLETE, MAX_ANSWER_CHARACTERS, instrument_freeze, stimuli_create
from studies.models import Study, User
from studies.services import audit_record


class SittingUnrestorableError(Exception):
    """A sitting or an answer breaks a rule that no sitting here may break. `code` says which."""

    def __init__(self, code: str, detail: str = "") -> None:
        super().__init__(f"{code}: {detail}")
        self.code, self.detail = code, detail


@dataclass(frozen=True, slots=True)
class RestoredAnswer:
    known_as: UUID
    stimulus_id: int
    outcome: str
    text: str


@dataclass(frozen=True, slots=True)
class RestoredSitting:
    respondent: Respondent
    instrument: Instrument
    ordinal: int
    state: str
    source_label: str
    order: Sequence[int]
    answers: Sequence[RestoredAnswer]


@transaction.atomic
def instrument_restore(
    *,
    study: Study,
    slug: str,
    version: int,
    title: str,
    language: str,
    instruction: str,
    refusal_below: int,
    lower_case: bool,
    stimuli: Sequence[StimulusRow],
    actor: User | None,
) -> Instrument:
    """This very version, frozen. The study is new: nobody else takes the version meanwhile.

    Raises InstrumentIncompleteError.
    """
    instrument = Instrument.objects.create(
        study=study,
        slug=slug,
        version=version,
        title=title,
        language=language,
        instruction=instruction,
        refusal_below=refusal_below,
        lower_case=lower_case,
    )
    stimuli_create(instrument, stimuli)
    audit_record(
        actor=actor, study=study, action="instrument_create", target=instrument, detail={"stimuli": len(stimuli)}
    )
    instrument_freeze(instrument=instrument, actor=actor)
    instrument.refresh_from_db()
    return instrument


@transaction.atomic
def respondents_restore(*, study: Study, kind: str, known_as: Sequence[UUID]) -> dict[UUID, Respondent]:
    """By the number that the dataset knows them under, which they keep where nobody here has it."""
    taken = set(Respondent.objects.filter(public_id__in=known_as).values_list("public_id", flat=True))
    rows = [Respondent(study=study, kind=kind, public_id=uuid4() if one in taken else one) for one in known_as]
    made = Respondent.objects.bulk_create(rows, batch_size=BATCH)
    return dict(zip(known_as, made, strict=True))


@transaction.atomic
def sittings_restore(sittings: Sequence[RestoredSitting]) -> tuple[list[Sitting], dict[UUID, Answer]]:
    """The sittings in the given order, and the answers by the number that the dataset knows them under.

    When anybody took part is not in a published dataset: the time of this import stands in. Two inserts per 2,000 rows.
    Raises SittingUnrestorableError.
    """
    now = timezone.now()
    rows = []
    for given in sittings:
        _check(given)
        finished = given.state == Sitting.State.FINISHED
        rows.append(
            Sitting(
                respondent=given.respondent,
                instrument=given.instrument,
                ordinal=given.ordinal,
                # Nobody is sitting it any more, whatever it was where it comes from.
                state=Sitting.State.FINISHED if finished else Sitting.State.STOPPED,
                source_label=given.source_label,
                standing_reason="" if finished else INCOMPLETE,
                order=list(given.order),
                started_at=now,
                finished_at=now if finished else None,
            )
        )
    Sitting.objects.bulk_create(rows, batch_size=BATCH)
    pairs = [(sitting, answer) for sitting, given in zip(rows, sittings, strict=True) for answer in given.answers]
    known = [answer.known_as for _sitting, answer in pairs]
    taken = set(Answer.objects.filter(blind_id__in=known).values_list("blind_id", flat=True))
    answers = Answer.objects.bulk_create(
        [
            Answer(
                sitting=sitting,
                blind_id=uuid4() if answer.known_as in taken else answer.known_as,
                stimulus_id=answer.stimulus_id,
                outcome=answer.outcome,
                text=answer.text,
            )
            for sitting, answer in pairs
        ],
        batch_size=BATCH,
    )
    return rows, dict(zip(known, answers, strict=True))


def _check(given: RestoredSitting) -> None:
    """Raises SittingUnrestorableError."""
    allowed = (Answer.Outcome.GIVEN, Answer.Outcome.DECLINED, Answer.Outcome.NO_VALID_REPLY)
    presented = set(given.order)
    answered = [answer.stimulus_id for answer in given.answers]
    if len(presented) < len(given.order) or len(set(answered)) < len(answered) or not set(answered) <= presented:
        raise SittingUnrestorableError("stimuli", str(given.respondent.public_id))
    if given.state == Sitting.State.FINISHED and len(answered) < len(presented):
        raise SittingUnrestorableError("unfinished", str(given.respondent.public_id))
    for answer in given.answers:
        if answer.outcome not in allowed or (answer.text and answer.outcome != Answer.Outcome.GIVEN):
            raise SittingUnrestorableError("outcome", str(answer.known_as))
        if len(answer.text) > MAX_ANSWER_CHARACTERS:
            raise SittingUnrestorableError("long", str(answer.known_as))
