"""Changing a draft: the writes behind the pages of instruments. Making and freezing are in `corpus.services`.

Every edit names the revision that its page showed. The instrument's row is locked first, so that edits, a freeze and a
first sitting come one after the other; what is frozen or has been changed meanwhile is refused, and nothing is written.
Numbers follow the order, real tasks first and practice after them: they are what participants and exports count by.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from django.db import transaction
from django.db.models import F
from django.db.models.deletion import ProtectedError

from corpus.importing import StimulusRow, stimulus_rows
from corpus.models import Instrument, Stimulus
from corpus.services import VersionTakenError, stimuli_create
from studies.models import Study, User
from studies.services import audit_record

MAX_STIMULI = 500
# Where numbers wait while they are being given anew, above every position that a file may have.
_ASIDE = 15_000


class InstrumentFrozenError(Exception):
    """The instrument is frozen: it is copied to a new version, not changed."""


class InstrumentChangedError(Exception):
    """Somebody has changed the instrument since the page was opened."""


class InstrumentUsedError(Exception):
    """Surveys, experiments or answers point to the instrument."""


class TooManyStimuliError(Exception):
    """More stimuli than MAX_STIMULI."""


def _draft_lock(pk: int, seen: int) -> Instrument:
    """The draft with its row locked. Raises InstrumentFrozenError, InstrumentChangedError."""
    instrument = Instrument.objects.select_for_update().get(pk=pk)
    if instrument.state == Instrument.State.FROZEN:
        raise InstrumentFrozenError
    if instrument.revision != seen:
        raise InstrumentChangedError
    return instrument


def _changed(instrument: Instrument, actor: User | None, action: str, detail: dict[str, Any]) -> None:
    instrument.revision += 1
    instrument.save(update_fields=["revision"])
    audit_record(actor=actor, study=instrument.study, action=action, target=instrument, detail=detail)


@transaction.atomic
def instrument_update(
    *,
    instrument: Instrument,
    seen: int,
    title: str,
    language: str,
    instruction: str,
    refusal_below: int,
    lower_case: bool,
    actor: User | None,
) -> bool:
    """Change a draft's own fields. False: they were so already.

    Raises InstrumentFrozenError, InstrumentChangedError.
    """
    draft = _draft_lock(instrument.pk, seen)
    wanted: dict[str, Any] = {
        "title": title,
        "language": language,
        "instruction": instruction,
        "refusal_below": refusal_below,
        "lower_case": lower_case,
    }
    fields = [name for name, value in wanted.items() if getattr(draft, name) != value]
    if not fields:
        return False
    for name in fields:
        setattr(draft, name, wanted[name])
    draft.save(update_fields=fields)
    _changed(draft, actor, "instrument_update", {"fields": fields})
    return True


@transaction.atomic
def stimulus_add(*, instrument: Instrument, seen: int, row: StimulusRow, actor: User | None) -> Stimulus:
    """Add a stimulus after the last of its kind; `row.position` is not read.

    Raises InstrumentFrozenError, InstrumentChangedError, TooManyStimuliError.
    """
    draft = _draft_lock(instrument.pk, seen)
    (stimulus,) = _append(draft, [row])
    _changed(draft, actor, "stimulus_add", {"position": stimulus.position, "practice": stimulus.is_practice})
    return stimulus


@transaction.atomic
def practice_add(*, instrument: Instrument, seen: int, rows: Sequence[StimulusRow], actor: User | None) -> int:
    """Add practice tasks, but for those whose given words are there already. Returns how many were added.

    Raises InstrumentFrozenError, InstrumentChangedError, TooManyStimuliError.
    """
    draft = _draft_lock(instrument.pk, seen)
    known = set(draft.stimuli.filter(is_practice=True).values_list("text", flat=True))
    fresh = [row for row in rows if row.text not in known]
    if fresh:
        _append(draft, fresh)
        _changed(draft, actor, "practice_add", {"stimuli": len(fresh)})
    return len(fresh)


def _append(draft: Instrument, rows: Sequence[StimulusRow]) -> list[Stimulus]:
    known = list(draft.stimuli.all())
    if len(known) + len(rows) > MAX_STIMULI:
        raise TooManyStimuliError
    last = max((one.position for one in known), default=0)
    numbered = [replace(row, position=last + number) for number, row in enumerate(rows, start=1)]
    made = stimuli_create(draft, numbered)
    _renumber(draft, [*known, *made])
    return made


@transaction.atomic
def stimulus_update(
    *, instrument: Instrument, seen: int, stimulus_id: int, row: StimulusRow, actor: User | None
) -> bool:
    """Change a stimulus; its number stays (see `stimulus_move`). False: it was so already.

    Raises InstrumentFrozenError, InstrumentChangedError, Stimulus.DoesNotExist.
    """
    draft = _draft_lock(instrument.pk, seen)
    stimulus = draft.stimuli.get(pk=stimulus_id)
    names = ("text", "original", "complexity", "shuffled", "is_practice", "feedback", "source")
    fields = [name for name in names if getattr(stimulus, name) != getattr(row, name)]
    if not fields:
        return False
    for name in fields:
        setattr(stimulus, name, getattr(row, name))
    stimulus.save(update_fields=fields)
    if "is_practice" in fields:
        _renumber(draft, list(draft.stimuli.all()))
    _changed(draft, actor, "stimulus_update", {"position": stimulus.position, "fields": fields})
    return True


@transaction.atomic
def stimulus_move(*, instrument: Instrument, seen: int, stimulus_id: int, to: int, actor: User | None) -> bool:
    """Give a stimulus the place `to` (from 1) among those of its kind. False: it stood there.

    A place before the first is the first, one after the last the last. Raises InstrumentFrozenError,
    InstrumentChangedError, Stimulus.DoesNotExist.
    """
    draft = _draft_lock(instrument.pk, seen)
    stimulus = draft.stimuli.get(pk=stimulus_id)
    kind = [one for one in draft.stimuli.all() if one.is_practice == stimulus.is_practice]
    others = [one for one in draft.stimuli.all() if one.is_practice != stimulus.is_practice]
    was = next(place for place, one in enumerate(kind) if one.pk == stimulus_id)
    place = min(max(to, 1), len(kind)) - 1
    if place == was:
        return False
    kind.insert(place, kind.pop(was))
    _renumber(draft, [*kind, *others], as_given=True)
    _changed(draft, actor, "stimulus_move", {"from": was + 1, "to": place + 1, "practice": stimulus.is_practice})
    return True


@transaction.atomic
def stimulus_delete(*, instrument: Instrument, seen: int, stimulus_id: int, actor: User | None) -> None:
    """Remove a stimulus from a draft; the numbers close up.

    Raises InstrumentFrozenError, InstrumentChangedError, Stimulus.DoesNotExist.
    """
    draft = _draft_lock(instrument.pk, seen)
    stimulus = draft.stimuli.get(pk=stimulus_id)
    detail = {"position": stimulus.position, "task": stimulus.text, "original": stimulus.original}
    stimulus.delete()
    _renumber(draft, list(draft.stimuli.all()))
    _changed(draft, actor, "stimulus_delete", detail)


@transaction.atomic
def stimuli_replace(*, instrument: Instrument, seen: int, rows: Sequence[StimulusRow], actor: User | None) -> None:
    """Put the stimuli of a file in the place of all that a draft has. They keep the file's numbers.

    Raises InstrumentFrozenError, InstrumentChangedError, TooManyStimuliError.
    """
    draft = _draft_lock(instrument.pk, seen)
    if len(rows) > MAX_STIMULI:
        raise TooManyStimuliError
    before = draft.stimuli.count()
    draft.stimuli.all().delete()
    stimuli_create(draft, rows)
    _changed(draft, actor, "stimuli_replace", {"before": before, "after": len(rows)})


def _renumber(draft: Instrument, stimuli: list[Stimulus], *, as_given: bool = False) -> None:
    """Numbers from 1 without a gap, real tasks first; in the order of the present numbers, or `as_given`."""
    if not as_given:
        stimuli = sorted(stimuli, key=lambda one: one.position)
    ordered = sorted(stimuli, key=lambda one: one.is_practice)  # stable
    moved = [one for number, one in enumerate(ordered, start=1) if one.position != number]
    if not moved:
        return
    # In two steps, since the constraint on a number looks at each row by itself.
    draft.stimuli.filter(pk__in=[one.pk for one in moved]).update(position=F("position") + _ASIDE)
    for number, one in enumerate(ordered, start=1):
        one.position = number
    Stimulus.objects.bulk_update(moved, ["position"])


@transaction.atomic
def instrument_copy(
    *,
    instrument: Instrument,
    study: Study,
    slug: str,
    title: str,
    actor: User | None,
    version: int | None = None,
) -> Instrument:
    """The same instruction and stimuli as a draft: the next version of `slug` in `study`, the first where it is new.

    `version` is the one that the caller expects to make, so that a form sent twice makes one copy.
    Raises VersionTakenError.
    """
    Study.objects.select_for_update().get(pk=study.pk)  # as in instrument_create
    last = Instrument.objects.filter(study=study, slug=slug).order_by("-version").first()
    following = last.version + 1 if last else 1
    if version is not None and version != following:
        raise VersionTakenError
    copy = Instrument.objects.create(
        study=study,
        slug=slug,
        version=following,
        title=title,
        language=instrument.language,
        instruction=instrument.instruction,
        refusal_below=instrument.refusal_below,
        lower_case=instrument.lower_case,
    )
    stimuli_create(copy, stimulus_rows(instrument.stimuli.all()))
    audit_record(
        actor=actor,
        study=study,
        action="instrument_copy",
        target=copy,
        detail={"from": instrument.pk, "slug": slug, "version": following},
    )
    return copy


@transaction.atomic
def instrument_delete(*, instrument: Instrument, seen: int, actor: User | None) -> None:
    """Delete a draft that nothing points to.

    Raises InstrumentFrozenError, InstrumentChangedError, InstrumentUsedError.
    """
    draft = _draft_lock(instrument.pk, seen)
    name = f"Instrument {draft.pk}"
    detail = {"slug": draft.slug, "version": draft.version, "title": draft.title, "stimuli": draft.stimuli.count()}
    try:
        with transaction.atomic():
            draft.stimuli.all().delete()
            draft.delete()
    except ProtectedError as error:
        raise InstrumentUsedError from error
    audit_record(actor=actor, study=instrument.study, action="instrument_delete", target=name, detail=detail)
