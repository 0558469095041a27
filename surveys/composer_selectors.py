from dataclasses import dataclass

from django.db.models import QuerySet

from corpus.composer import BANDS, Parameters, Slot, given_words, slots_of
from corpus.compositions import candidate_of_row
from corpus.models import Complexity, Composition, CompositionCandidate
from corpus.reasons import reason_text
from studies.models import Study


def compositions_of(study: Study) -> QuerySet[Composition]:
    """The newest first, with treebank and instrument. One query."""
    return (
        Composition.objects.filter(treebank__study=study)
        .select_related("treebank__study", "instrument")
        .order_by("-pk")
    )


@dataclass(frozen=True)
class SlotRow:
    """A place in the test and what stands there; no candidate where the treebank has too few."""

    slot: Slot
    candidate: CompositionCandidate | None
    given: str
    doubts: list[str]

    @property
    def band(self) -> str:
        return str(Complexity(BANDS[self.slot.band]).label)


@dataclass(frozen=True)
class Review:
    rows: list[SlotRow]
    waiting: list[tuple[str, int]]  # band, candidates that could still be swapped in

    @property
    def accepted(self) -> int:
        return sum(row.candidate is not None and row.candidate.decision == "accepted" for row in self.rows)

    @property
    def filled(self) -> int:
        return sum(row.candidate is not None for row in self.rows)

    @property
    def missing(self) -> int:
        return len(self.rows) - self.filled

    @property
    def is_complete(self) -> bool:
        return 0 < self.filled == self.accepted


def review_of(composition: Composition) -> Review:
    """What stands in each slot, and how many candidates wait. Two queries."""
    parameters = Parameters.from_json(composition.parameters)
    standing = {row.slot: row for row in composition.candidates.filter(slot__isnull=False)}
    rows = [_slot_row(slot, standing.get(slot.position), composition, parameters) for slot in slots_of(parameters)]
    waiting = [0] * len(BANDS)
    for band in composition.candidates.filter(slot__isnull=True, decision="open").values_list("band", flat=True):
        waiting[band] += 1
    return Review(rows, [(str(Complexity(name).label), waiting[band]) for band, name in enumerate(BANDS)])


def _slot_row(
    slot: Slot, candidate: CompositionCandidate | None, composition: Composition, parameters: Parameters
) -> SlotRow:
    if candidate is None:
        return SlotRow(slot, None, "", [])
    given = given_words(candidate_of_row(candidate, composition), slot, parameters.seed)
    return SlotRow(slot, candidate, given, [reason_text(code, detail) for code, detail in candidate.doubts])


def slot_of(review: Review, position: int) -> SlotRow | None:
    return next((row for row in review.rows if row.slot.position == position), None)
