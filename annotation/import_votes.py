"""What one annotator comes to say of one answer, of all the records in which they say something of it."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from annotation.import_answers import Known
from annotation.import_raters import Whom
from annotation.importers.plan import Planned


@dataclass(frozen=True, slots=True)
class Said:
    """One record: an answer of the study, a person, a value of at least one criterion (by its id)."""

    planned: Planned
    answer: Known
    whom: Whom
    values: dict[int, float]


@dataclass(frozen=True)
class Vote:
    """One annotator's judgement of one answer: as a rule one record, in a table of a record per criterion several.

    `said` is what counts, in the order of the files; `replaced` what was said before, each with what took its place.
    """

    said: Sequence[Said]
    replaced: Sequence[tuple[Said, Said]] = ()

    @property
    def planned(self) -> Planned:
        """The first of its records."""
        return self.said[0].planned

    @property
    def answer(self) -> Known:
        return self.said[0].answer

    @property
    def whom(self) -> Whom:
        return self.said[0].whom

    @cached_property
    def values(self) -> dict[int, float]:
        return {pk: value for one in self.said for pk, value in one.values.items()}

    @property
    def named_values(self) -> dict[str, float | None]:
        """As the files call the criteria; a gap of one record may be filled by another."""
        found: dict[str, float | None] = {}
        for one in self.said:
            for name, value in one.planned.values.items():
                if found.get(name) is None:
                    found[name] = value
        return found

    @property
    def annotators(self) -> set[str]:
        """Several where names were said to be one person's."""
        return {one.planned.annotator for one in self.said}

    @property
    def made_at(self) -> datetime | None:
        return max((one.planned.made_at for one in self.said if one.planned.made_at), default=None)

    @property
    def seconds(self) -> float | None:
        told = [one.planned.seconds for one in self.said if one.planned.seconds is not None]
        return sum(told) if told else None

    @property
    def comment(self) -> str:
        return "\n".join(filter(None, (one.planned.comment for one in self.said)))


def votes_of(said: Sequence[Said]) -> list[Vote]:
    """A vote per person and answer, in the order of the files.

    A later record takes the place of the earlier ones with which it has a criterion in common, wholly: what it leaves
    open is then open. Records that have none in common complete one another (a record per criterion; a project per
    criterion). Later is by the records' own times, and by their order in the files where one of them has none.
    """
    by_vote: dict[tuple[int, Whom], list[Said]] = defaultdict(list)
    for one in said:
        by_vote[one.answer.pk, one.whom].append(one)
    votes = [_vote(ones) for ones in by_vote.values()]
    return sorted(votes, key=lambda vote: _place(vote.said[0]))


def _vote(ones: list[Said]) -> Vote:
    times = [one.planned.made_at for one in ones if one.planned.made_at]
    if len(times) == len(ones) > 1:
        ones = sorted(ones, key=lambda one: one.planned.made_at or times[0])  # stable: at one time the files' order
    stands: list[Said] = []
    replaced: list[tuple[Said, Said]] = []
    for one in ones:
        replaced += [(before, one) for before in stands if before.values.keys() & one.values.keys()]
        stands = [before for before in stands if not before.values.keys() & one.values.keys()]
        stands.append(one)
    return Vote(sorted(stands, key=_place), replaced)


def _place(said: Said) -> tuple[int, int]:
    return said.planned.file, said.planned.record
