"""Who the annotators of a file are here: raters of the study, or people known only by that name."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from annotation.models import Rater
from corpus.tables.faults import FaultError
from scoring.models import Judge
from studies.models import Study

NEW, SAME_AS = "new", "="
MAX_NAME = 200


@dataclass(frozen=True, slots=True)
class Whom:
    """A rater who is here, or the name under which a new one will be."""

    rater: Rater | None
    name: str

    @property
    def pk(self) -> int | None:
        return self.rater.pk if self.rater else None


def raters_match(study: Study, annotators: Collection[str], chosen: Mapping[str, str]) -> dict[str, Whom]:
    """By annotator. `chosen`: a pseudonym of the study, `new`, or `=` and another annotator who is the same person.

    Who is not in it is the rater that an earlier import made of the very same name, else a new one. One query.

    Raises FaultError `unknown_rater`.
    """
    raters = list(Rater.objects.filter(study=study).select_related("user").order_by("pk"))
    by_pseudonym = {rater.pseudonym.casefold(): rater for rater in raters}
    by_name = {rater.imported_name: rater for rater in raters if rater.imported_name}
    taken = set(by_name)
    found: dict[str, Whom] = {}
    same: dict[str, str] = {}
    for annotator in annotators:
        said = chosen.get(annotator, "")
        if said.startswith(SAME_AS):
            same[annotator] = said[len(SAME_AS) :]
        elif said == NEW:
            found[annotator] = Whom(None, _free(annotator, taken))
        elif said:
            rater = by_pseudonym.get(said.casefold())
            if rater is None:
                raise FaultError("unknown_rater", detail=said[:80])
            found[annotator] = Whom(rater, rater.name)
        else:
            known = by_name.get(annotator)
            found[annotator] = Whom(known, annotator) if known else Whom(None, _free(annotator, taken))
    for annotator, other in same.items():
        if other not in found:
            raise FaultError("unknown_rater", detail=other[:80])
        found[annotator] = found[other]
    return found


def _free(name: str, taken: set[str]) -> str:
    """The name, with a number where somebody else has it."""
    free, number = name, 1
    while free in taken:
        number += 1
        ending = f" ({number})"
        free = name[: MAX_NAME - len(ending)] + ending
    taken.add(free)
    return free


def raters_create(study: Study, people: Collection[Whom]) -> dict[Whom, Rater]:
    """New raters for those who have none. Within the transaction and the study lock of the caller."""
    made: dict[Whom, Rater] = {}
    number = Rater.objects.filter(study=study).count()
    for whom in dict.fromkeys(people):
        if whom.rater is not None:
            made[whom] = whom.rater
            continue
        number += 1
        made[whom] = Rater.objects.create(
            study=study,
            judge=Judge.objects.create(kind=Judge.Kind.RATER),
            pseudonym=f"R{number}",
            imported_name=whom.name,
        )
    return made
