"""The only writer of instruments, respondents, sittings and answers."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.utils import timezone

from corpus.checks import Finding, finding_text, problems_of, shortest_original
from corpus.importing import StimulusRow
from corpus.models import Answer, AnswerRevision, Instrument, Respondent, Sitting, Stimulus
from studies.database import planned_cursor
from studies.models import Study, User
from studies.services import audit_record


class SittingClosedError(Exception):
    """The sitting is finished or stopped: its answers no longer change."""


class StimulusNotInSittingError(Exception):
    """The stimulus is not one of those that this sitting presents."""


class AnswerTooLongError(Exception):
    """The answer is longer than MAX_ANSWER_CHARACTERS."""


class AnswerUnstorableError(Exception):
    """The text holds U+0000, which PostgreSQL cannot store."""


class AnswerEmptyError(Exception):
    """Nothing was written. A respondent who cannot answer says so (outcome declined)."""


class AnswerOutdatedError(Exception):
    """The sender's page was older than the stored answer, and says something else: nothing has been overwritten."""


class SittingUnansweredError(Exception):
    """A sitting is finished only when every stimulus has its answer."""


class RefusalLimitError(Exception):
    """refusal_below must be lower than the shortest original, or a right answer would count as a refusal."""


class VersionTakenError(Exception):
    """The version that was to be made exists: somebody else, or the same form sent twice, was faster."""


class InstrumentIncompleteError(Exception):
    """The instrument cannot be used as it stands; `problems` say why."""

    def __init__(self, problems: list[Finding]) -> None:
        super().__init__("; ".join(map(finding_text, problems)))
        self.problems = problems


# Twelve given words come to about a hundred characters; ten times the longest imaginable answer is still short.
MAX_ANSWER_CHARACTERS = 2_000
INCOMPLETE = "incomplete where it was imported from"


@transaction.atomic
def instrument_create(
    *,
    study: Study,
    slug: str,
    title: str,
    language: str,
    instruction: str,
    stimuli: Sequence[StimulusRow],
    actor: User | None,
    refusal_below: int = 4,
    lower_case: bool = True,
    version: int | None = None,
) -> Instrument:
    """A new instrument, or the next version where the slug exists. `stimuli` come from `importing.read_stimuli`.

    `version` is the one that the caller expects to make, so that a form sent twice makes one; None: whichever is next.
    Raises RefusalLimitError, VersionTakenError.
    """
    shortest = shortest_original(stimuli)
    if shortest is not None and refusal_below > shortest - 1:
        raise RefusalLimitError
    Study.objects.select_for_update().get(pk=study.pk)  # two imports at once must not take the same version
    last = Instrument.objects.filter(study=study, slug=slug).order_by("-version").first()
    following = last.version + 1 if last else 1
    if version is not None and version != following:
        raise VersionTakenError
    instrument = Instrument.objects.create(
        study=study,
        slug=slug,
        version=following,
        title=title,
        language=language,
        instruction=instruction,
        refusal_below=refusal_below,
        lower_case=lower_case,
    )
    stimuli_create(instrument, stimuli)
    audit_record(
        actor=actor,
        study=study,
        action="instrument_create",
        target=instrument,
        detail={"stimuli": len(stimuli)},
    )
    return instrument


def stimuli_create(instrument: Instrument, rows: Sequence[StimulusRow]) -> list[Stimulus]:
    """Within the caller's transaction."""
    return Stimulus.objects.bulk_create(
        Stimulus(
            instrument=instrument,
            position=row.position,
            text=row.text,
            original=row.original,
            complexity=row.complexity,
            shuffled=row.shuffled,
            is_practice=row.is_practice,
            feedback=row.feedback,
            source=row.source,
        )
        for row in rows
    )


@transaction.atomic
def instrument_freeze(*, instrument: Instrument, actor: User | None) -> bool:
    """From now on neither the text nor the stimuli change; the first sitting does it too. False: it was so already.

    Raises InstrumentIncompleteError: what cannot be scored is given to nobody.
    """
    if instrument.state == Instrument.State.FROZEN:
        return False
    # Locked before it is read: an edit and a first sitting at the same moment come one after the other.
    locked = Instrument.objects.select_for_update().get(pk=instrument.pk)
    if locked.state == Instrument.State.DRAFT:
        instrument_check(locked)
    frozen = Instrument.objects.filter(pk=instrument.pk, state=Instrument.State.DRAFT).update(
        state=Instrument.State.FROZEN
    )
    if frozen:
        audit_record(actor=actor, study=instrument.study, action="instrument_freeze", target=instrument)
    return bool(frozen)


def instrument_check(instrument: Instrument) -> None:
    """Raises InstrumentIncompleteError. One query."""
    problems = problems_of(
        instruction=instrument.instruction,
        refusal_below=instrument.refusal_below,
        stimuli=list(instrument.stimuli.all()),
    )
    if problems:
        raise InstrumentIncompleteError(problems)


@transaction.atomic
def sitting_start(
    *,
    respondent: Respondent,
    instrument: Instrument,
    source_label: str,
    standing: str = Sitting.Standing.COUNTED,
    order: Sequence[int] | None = None,
) -> Sitting:
    """Open the respondent's next sitting, practice left out, in the given order or else the instrument's own.

    The first one freezes the instrument. Raises InstrumentIncompleteError.
    """
    Respondent.objects.select_for_update().get(pk=respondent.pk)
    instrument_freeze(instrument=instrument, actor=None)
    last = Sitting.objects.filter(respondent=respondent, instrument=instrument).order_by("-ordinal").first()
    if order is None:
        order = list(instrument.stimuli.filter(is_practice=False).order_by("position").values_list("pk", flat=True))
    return Sitting.objects.create(
        respondent=respondent,
        instrument=instrument,
        ordinal=last.ordinal + 1 if last else 1,
        source_label=source_label,
        standing=standing,
        order=order,
        started_at=timezone.now(),
    )


@dataclass(frozen=True)
class Recorded:
    answer: Answer
    changed: bool  # False: the same answer was already there, or the sender had not touched an outdated page


def answer_record(
    *,
    sitting_id: int,
    stimulus_id: int,
    outcome: str,
    text: str = "",
    seen_revision: int | None = None,
    may_be_empty: bool = False,
) -> Recorded:
    """Give or change the one answer of a sitting to a stimulus. Safe to repeat.

    One query for a first answer, which is a transaction by itself; six at the most.

    `seen_revision` is the revision that the sender's page showed (0: none). When the page is older than the stored
    answer and shows the text that is sent, the sender changed nothing and the newer answer stays; with another text the
    sender has to be told. `may_be_empty`: a model that keeps the format and gives no word has answered; a person who
    writes nothing has not.

    Raises SittingClosedError, StimulusNotInSittingError, AnswerEmptyError, AnswerTooLongError,
    AnswerUnstorableError, AnswerOutdatedError.
    """
    if "\x00" in text:
        raise AnswerUnstorableError
    if len(text) > MAX_ANSWER_CHARACTERS:
        raise AnswerTooLongError
    if outcome == Answer.Outcome.GIVEN and not text.strip() and not may_be_empty:
        raise AnswerEmptyError
    if outcome != Answer.Outcome.GIVEN:
        text = ""
    first = _first_answer(sitting_id, stimulus_id, outcome, text)
    if first is not None:
        return Recorded(first, changed=True)
    return _answer_again(sitting_id, stimulus_id, outcome, text, seen_revision)


@transaction.atomic
def _answer_again(sitting_id: int, stimulus_id: int, outcome: str, text: str, seen_revision: int | None) -> Recorded:
    """Change an answer, or say why nothing was stored."""
    # The lock on the sitting puts the posts of one respondent in a row: a double click finds the first one's answer.
    sitting = Sitting.objects.select_for_update(no_key=True).get(pk=sitting_id)
    if sitting.state != Sitting.State.OPEN:
        raise SittingClosedError
    if stimulus_id not in sitting.order:
        raise StimulusNotInSittingError
    answer = Answer.objects.filter(sitting=sitting, stimulus_id=stimulus_id).first()
    if answer is None:
        answer = Answer.objects.create(sitting=sitting, stimulus_id=stimulus_id, outcome=outcome, text=text)
        return Recorded(answer, changed=True)
    if (answer.outcome, answer.text) == (outcome, text) or _is_untouched_page(answer, outcome, text, seen_revision):
        return Recorded(answer, changed=False)
    if seen_revision is not None and seen_revision < answer.revision:
        raise AnswerOutdatedError
    AnswerRevision.objects.create(
        answer=answer,
        number=answer.revision,
        outcome=answer.outcome,
        text=answer.text,
        made_at=answer.changed_at,
    )
    answer.outcome, answer.text, answer.revision = outcome, text, answer.revision + 1
    answer.save(update_fields=["outcome", "text", "revision", "changed_at"])
    return Recorded(answer, changed=True)


# Almost every answer is the first to its stimulus and needs no more than this. NO KEY: what points to the sitting, as
# the note of a first showing does, is written beside it and does not wait.
FIRST_ANSWER = """
WITH sitting AS (
    SELECT id FROM corpus_sitting
    WHERE id = %(sitting)s AND state = 'open' AND "order" @> to_jsonb(%(stimulus)s::bigint)
    FOR NO KEY UPDATE
)
INSERT INTO corpus_answer (blind_id, sitting_id, stimulus_id, outcome, text, revision, created_at, changed_at)
SELECT %(blind_id)s, sitting.id, %(stimulus)s, %(outcome)s, %(text)s, 1, %(now)s, %(now)s FROM sitting
ON CONFLICT ON CONSTRAINT answer_one_per_sitting_stimulus DO NOTHING
RETURNING id
"""


def _first_answer(sitting_id: int, stimulus_id: int, outcome: str, text: str) -> Answer | None:
    """Lock the open sitting and store its first answer to the stimulus; None where anything is in the way."""
    answer = Answer(sitting_id=sitting_id, stimulus_id=stimulus_id, outcome=outcome, text=text)
    answer.created_at = answer.changed_at = timezone.now()
    values: dict[str, Any] = {"blind_id": answer.blind_id, "sitting": sitting_id, "stimulus": stimulus_id}
    with planned_cursor() as cursor:
        cursor.execute(FIRST_ANSWER, {**values, "outcome": str(outcome), "text": text, "now": answer.created_at})
        row = cursor.fetchone()
    if row is None:
        return None
    answer.pk, answer._state.adding = row[0], False
    return answer


def _is_untouched_page(answer: Answer, outcome: str, text: str, seen_revision: int | None) -> bool:
    if seen_revision is None or seen_revision >= answer.revision:
        return False
    return AnswerRevision.objects.filter(answer=answer, number=seen_revision, outcome=outcome, text=text).exists()


@transaction.atomic
def sitting_finish(*, sitting_id: int) -> Sitting:
    """Close a sitting whose stimuli all have answers. Finishing twice is finishing once.

    Raises SittingUnansweredError, SittingClosedError.
    """
    sitting = Sitting.objects.select_for_update(no_key=True).get(pk=sitting_id)
    if sitting.state == Sitting.State.FINISHED:
        return sitting
    if sitting.state != Sitting.State.OPEN:
        raise SittingClosedError
    if Answer.objects.filter(sitting=sitting).count() < len(sitting.order):
        raise SittingUnansweredError
    sitting.state, sitting.finished_at = Sitting.State.FINISHED, timezone.now()
    sitting.save(update_fields=["state", "finished_at"])
    return sitting


@transaction.atomic
def sitting_stop(*, sitting_id: int, reason: str) -> Sitting:
    """End an open sitting before its last stimulus. Its answers stay; it has no score."""
    sitting = Sitting.objects.select_for_update(no_key=True).get(pk=sitting_id)
    if sitting.state == Sitting.State.OPEN:
        sitting.state, sitting.standing_reason = Sitting.State.STOPPED, reason
        sitting.save(update_fields=["state", "standing_reason"])
    return sitting


@transaction.atomic
def sittings_set_standing(
    *, sitting_ids: Collection[int], standing: str, reason: str, study: Study, actor: User | None
) -> list[int]:
    """Exclude counted sittings, or count excluded ones again, in one audit entry. Returns the ids that changed.

    Pilot and withdrawn sittings stay what they are, whatever is asked. Three queries.
    """
    was = {Sitting.Standing.EXCLUDED: Sitting.Standing.COUNTED, Sitting.Standing.COUNTED: Sitting.Standing.EXCLUDED}
    before = was[Sitting.Standing(standing)]
    locked = (
        Sitting.objects.select_for_update(no_key=True)
        .filter(pk__in=sitting_ids, instrument__study=study, standing=before)
        .order_by("pk")
    )
    changed = list(locked.values_list("pk", flat=True))
    if changed:
        Sitting.objects.filter(pk__in=changed).update(standing=standing, standing_reason=reason)
        detail = {"sittings": changed, "standing": str(standing), "reason": reason}
        audit_record(actor=actor, study=study, action="sittings_set_standing", target="Sittings", detail=detail)
    return changed


def excluded_set_reason(*, sitting_ids: Collection[int], reason: str) -> None:
    """Say another reason why excluded sittings are. Within the caller's transaction, which has the audit entry."""
    Sitting.objects.filter(pk__in=sitting_ids, standing=Sitting.Standing.EXCLUDED).update(standing_reason=reason)


@transaction.atomic
def sitting_withdraw(*, sitting_id: int, reason: str, actor: User | None) -> list[int]:
    """Take a person's sitting back for good: its texts are blank, and so are those of earlier revisions.

    That there was an answer stays, what it was (a text, a refusal) does not. An open sitting is stopped. Returns the
    ids of its answers. What upper layers copied from the texts is theirs to blank: `reports.withdrawal` calls them all.
    """
    sitting = Sitting.objects.select_for_update(of=("self",)).select_related("instrument__study").get(pk=sitting_id)
    answers = list(Answer.objects.filter(sitting=sitting).order_by("pk").values_list("pk", flat=True))
    if sitting.standing == Sitting.Standing.WITHDRAWN:
        return answers
    gone = {"outcome": Answer.Outcome.WITHDRAWN, "text": ""}
    Answer.objects.filter(pk__in=answers).update(**gone)
    AnswerRevision.objects.filter(answer__in=answers).update(**gone)
    sitting.standing, sitting.standing_reason = Sitting.Standing.WITHDRAWN, reason
    if sitting.state == Sitting.State.OPEN:
        sitting.state = Sitting.State.STOPPED
    sitting.save(update_fields=["standing", "standing_reason", "state"])
    audit_record(
        actor=actor,
        study=sitting.instrument.study,
        action="sitting_withdraw",
        target=sitting,
        detail={"answers": len(answers), "how": reason},
    )
    return answers


@transaction.atomic
def standing_reasons_blank(*, study: Study, blank: Callable[[str], str]) -> int:
    """Take quotations out of the reasons why people excluded sittings of the study. Returns how many changed.

    Other reasons are our own words, such as who left: they may equal what somebody answered, and quote nobody.
    """
    changed = 0
    excluded = Sitting.objects.filter(instrument__study=study, standing=Sitting.Standing.EXCLUDED)
    for sitting in excluded.exclude(standing_reason__in=["", INCOMPLETE]).only("standing_reason"):
        reason = blank(sitting.standing_reason)
        if reason != sitting.standing_reason:
            sitting.standing_reason = reason
            sitting.save(update_fields=["standing_reason"])
            changed += 1
    return changed
