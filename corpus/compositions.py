"""The only writer of treebanks and compositions: the file, the search in it, decisions, the instrument."""

from collections.abc import Iterable, Sequence
from datetime import timedelta

from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from corpus.composer import BANDS, Candidate, Parameters, Scan, Slot, given_words, slots_of, source_of
from corpus.importing import StimulusRow
from corpus.languages import language_of
from corpus.models import Composition, CompositionCandidate, Instrument, Treebank
from corpus.queue import composition_enqueue
from corpus.services import instrument_create
from corpus.tokens import word_tokens
from corpus.treebank_files import Stored
from studies.database import locked
from studies.models import Study, User
from studies.services import audit_record

STALE = timedelta(seconds=60)
"""A worker that has shown no life for so long is dead; it shows life every second or two."""

State = Composition.State
Decision = CompositionCandidate.Decision


class NotReviewableError(Exception):
    """The composition is not ready, or its instrument has been made: nothing changes any more."""


class NotInSlotError(Exception):
    """The candidate that the page showed no longer stands there."""


class NoOtherCandidateError(Exception):
    """The band has no other candidate to take the place."""


class NotAllAcceptedError(Exception):
    """An instrument is made of accepted tasks only."""


def task_rows(chosen: Iterable[tuple[Slot, Candidate]], parameters: Parameters, *, licence: str) -> list[StimulusRow]:
    """The stimuli of the chosen candidates, numbered from 1 without gaps."""
    return [
        StimulusRow(
            position=position,
            text=given_words(candidate, slot, parameters.seed),
            original=candidate.original,
            complexity=BANDS[slot.band],
            shuffled=slot.shuffled,
            source=source_of(candidate.origin, candidate.sent_id, licence),
        )
        for position, (slot, candidate) in enumerate(chosen, start=1)
    ]


def refusal_below(rows: Sequence[StimulusRow]) -> int:
    """Four words, as in the study; fewer where an original is so short that a right answer would be a refusal."""
    return max(1, min(4, min(len(word_tokens(row.original)) for row in rows) - 1))


@transaction.atomic
def treebank_add(*, study: Study, stored: Stored, name: str, licence: str, actor: User) -> Treebank:
    """The study's treebank of this file. A file that the study already has keeps its first name and licence."""
    treebank, created = Treebank.objects.get_or_create(
        study=study, sha256=stored.sha256, defaults={"name": name, "licence": licence, "size": stored.size}
    )
    if created:
        audit_record(actor=actor, study=study, action="treebank_add", target=treebank, detail={"sha256": stored.sha256})
    return treebank


@transaction.atomic
def composition_create(*, treebank: Treebank, title: str, parameters: Parameters, actor: User) -> Composition:
    """A composition that waits for a worker."""
    composition = Composition.objects.create(treebank=treebank, title=title, parameters=parameters.as_json())
    audit_record(
        actor=actor,
        study=treebank.study,
        action="composition_create",
        target=composition,
        detail={"treebank": treebank.sha256, "seed": parameters.seed},
    )
    transaction.on_commit(lambda: composition_enqueue(composition.pk))
    return composition


def composition_claim(composition_id: int) -> int | None:
    """Take the composition for this worker: the number of the attempt, or None where there is nothing to do."""
    now = timezone.now()
    free = Q(state=State.WAITING) | Q(state=State.READING, beat_at__lt=now - STALE)
    taken = Composition.objects.filter(free, pk=composition_id).update(
        state=State.READING, attempt=F("attempt") + 1, beat_at=now, bytes_read=0, sentences=0, problem=""
    )
    return Composition.objects.values_list("attempt", flat=True).get(pk=composition_id) if taken else None


def composition_beat(*, composition_id: int, attempt: int, bytes_read: int, sentences: int) -> bool:
    """Show life and progress. False: cancelled, or another worker has taken over; then nothing more is to be done."""
    mine = Composition.objects.filter(pk=composition_id, attempt=attempt, state=State.READING)
    return bool(mine.update(beat_at=timezone.now(), bytes_read=bytes_read, sentences=sentences))


@transaction.atomic
def composition_finish(*, composition_id: int, attempt: int, scan: Scan, bytes_read: int, n_left_out: int) -> bool:
    """Store what a finished search has found and put the best candidates into the slots. False: it is not wanted."""
    composition = Composition.objects.select_for_update().get(pk=composition_id)
    if (composition.attempt, composition.state) != (attempt, State.READING):
        return False
    free = {band: [slot.position for slot in slots_of(scan.parameters) if slot.band == band] for band in range(3)}
    CompositionCandidate.objects.bulk_create(
        (
            CompositionCandidate(
                composition=composition,
                band=band,
                place=place,
                slot=free[band][place - 1] if place <= len(free[band]) else None,
                sent_id=candidate.sent_id,
                line=candidate.line,
                text=candidate.text,
                original=candidate.original,
                given=list(candidate.given),
                compound=candidate.compound,
                weakness=candidate.weakness,
                doubts=[list(doubt) for doubt in candidate.doubts],
            )
            for band, candidates in enumerate(scan.candidates())
            for place, candidate in enumerate(candidates, start=1)
        ),
        batch_size=500,
    )
    composition.state = State.READY
    composition.bytes_read, composition.sentences = bytes_read, scan.sentences
    composition.passed = [scan.passed[band] for band in range(len(BANDS))]
    composition.left_out, composition.n_left_out = dict(scan.left_out), n_left_out
    composition.save(update_fields=["state", "bytes_read", "sentences", "passed", "left_out", "n_left_out"])
    return True


def composition_fail(*, composition_id: int, attempt: int, problem: str) -> None:
    Composition.objects.filter(pk=composition_id, attempt=attempt, state=State.READING).update(
        state=State.FAILED, problem=problem[:2_000]
    )


@transaction.atomic
def composition_cancel(*, composition: Composition, actor: User) -> bool:
    """Stop the search; the worker notices within a second or two. False: there is nothing to stop."""
    taken = Composition.objects.filter(pk=composition.pk, state__in=[State.WAITING, State.READING]).update(
        state=State.CANCELLED
    )
    if taken:
        audit_record(actor=actor, study=composition.treebank.study, action="composition_cancel", target=composition)
    return bool(taken)


@transaction.atomic
def composition_restart(*, composition: Composition, actor: User) -> bool:
    """Search again after a failure, a cancellation or a dead worker. False: it runs, or is ready."""
    stopped = Q(state__in=[State.FAILED, State.CANCELLED, State.WAITING])
    dead = Q(state=State.READING, beat_at__lt=timezone.now() - STALE)
    taken = Composition.objects.filter(stopped | dead, pk=composition.pk).update(
        state=State.WAITING, attempt=F("attempt") + 1, bytes_read=0, sentences=0, problem=""
    )
    if taken:
        audit_record(actor=actor, study=composition.treebank.study, action="composition_restart", target=composition)
        transaction.on_commit(lambda: composition_enqueue(composition.pk))
    return bool(taken)


def _reviewed(composition_id: int, slot: int, candidate_id: int) -> CompositionCandidate:
    """The candidate in the slot, with the composition locked. Raises NotReviewableError, NotInSlotError."""
    composition = Composition.objects.select_for_update().get(pk=composition_id)
    if composition.state != State.READY or composition.instrument_id is not None:
        raise NotReviewableError
    candidate = CompositionCandidate.objects.filter(composition=composition, slot=slot, pk=candidate_id).first()
    if candidate is None:
        raise NotInSlotError
    return candidate


@transaction.atomic
def candidate_accept(*, composition_id: int, slot: int, candidate_id: int, accepted: bool = True) -> None:
    """Accept the candidate that stands in the slot, or take that back. Decisions are kept on the candidate itself.

    Raises NotReviewableError, NotInSlotError.
    """
    candidate = _reviewed(composition_id, slot, candidate_id)
    candidate.decision = Decision.ACCEPTED if accepted else Decision.OPEN
    candidate.save(update_fields=["decision"])


@transaction.atomic
def candidate_replace(*, composition_id: int, slot: int, candidate_id: int, rejected: bool) -> None:
    """Put the band's next candidate into the slot. A rejected one is not proposed again; a swapped one comes last.

    A rejected candidate leaves the slot even where no other is left; then the slot stays empty. Raises
    NotReviewableError, NotInSlotError, NoOtherCandidateError (swapping only).
    """
    candidate = _reviewed(composition_id, slot, candidate_id)
    waiting = CompositionCandidate.objects.filter(
        composition_id=composition_id, band=candidate.band, slot__isnull=True, decision=Decision.OPEN
    ).order_by("place")
    other = waiting.filter(place__gt=candidate.place).first() or waiting.first()
    if other is None and not rejected:
        raise NoOtherCandidateError
    candidate.slot = None
    candidate.decision = Decision.REJECTED if rejected else Decision.OPEN
    candidate.save(update_fields=["slot", "decision"])
    if other is not None:
        other.slot = slot
        other.save(update_fields=["slot"])


def composition_rows(composition: Composition) -> list[StimulusRow]:
    """The tasks that stand in the slots now, decided or not. One query."""
    parameters = Parameters.from_json(composition.parameters)
    slots = {slot.position: slot for slot in slots_of(parameters)}
    standing = composition.candidates.filter(slot__isnull=False).order_by("slot")
    chosen = [(slots[row.slot], candidate_of_row(row, composition)) for row in standing if row.slot in slots]
    return task_rows(chosen, parameters, licence=composition.treebank.licence)


def candidate_of_row(row: CompositionCandidate, composition: Composition) -> Candidate:
    return Candidate(
        sent_id=row.sent_id,
        line=row.line,
        text=row.text,
        original=row.original,
        given=tuple(row.given),
        band=row.band,
        compound=row.compound,
        weakness=row.weakness,
        doubts=tuple((code, detail) for code, detail in row.doubts),
        origin=composition.treebank.name,
    )


@transaction.atomic
def composition_make_instrument(
    *, composition: Composition, slug: str, title: str, instruction: str, actor: User
) -> Instrument:
    """The instrument of the accepted tasks. Making it twice is making it once.

    Raises NotReviewableError, NotAllAcceptedError.
    """
    rows = Composition.objects.select_related("treebank__study", "instrument")
    composition = locked(rows, composition.pk)
    if composition.instrument is not None:
        return composition.instrument
    if composition.state != State.READY:
        raise NotReviewableError
    standing = composition.candidates.filter(slot__isnull=False)
    if not standing.exists() or standing.exclude(decision=Decision.ACCEPTED).exists():
        raise NotAllAcceptedError
    stimuli = composition_rows(composition)
    parameters = Parameters.from_json(composition.parameters)
    composition.instrument = instrument_create(
        study=composition.treebank.study,
        slug=slug,
        title=title,
        language=parameters.language,
        instruction=instruction,
        stimuli=stimuli,
        actor=actor,
        refusal_below=refusal_below(stimuli),
        lower_case=language_of(parameters.language).lower_case,
    )
    composition.save(update_fields=["instrument"])
    audit_record(
        actor=actor,
        study=composition.treebank.study,
        action="composition_make_instrument",
        target=composition,
        detail={"instrument": composition.instrument.pk},
    )
    return composition.instrument
