"""A basis: whose labels a result uses. The raters', or those of automatic judges."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from django.db import connection
from django.db.models import Q, QuerySet

from scoring.models import Judge, Judgement, Round

AUTOMATIC = (Judge.Kind.CLASSIFIER, Judge.Kind.MODEL)
RATERS_KEY = "raters"


@dataclass(frozen=True, slots=True)
class Basis:
    """Rater labels where `judges` is empty, else these judges': one for all criteria or for each, or several as a jury.

    `judges` are ids of Judge, sorted.
    """

    judges: tuple[int, ...] = ()

    @classmethod
    def of(cls, judges: Iterable[int]) -> "Basis":
        return cls(tuple(sorted(set(judges))))

    @property
    def is_raters(self) -> bool:
        return not self.judges

    @property
    def key(self) -> str:
        """As it stands in addresses, on the command line and in files."""
        return "-".join(("judges", *map(str, self.judges))) if self.judges else RATERS_KEY


RATERS = Basis()


def basis_from(key: str) -> Basis:
    """The basis with this key. Raises ValueError on what is no key; whether its judges exist is not looked at."""
    if key == RATERS_KEY:
        return RATERS
    word, *numbers = key.split("-")
    if word != "judges" or not numbers or not all(n.isascii() and n.isdigit() and len(n) < 10 for n in numbers):
        raise ValueError(key)
    return Basis.of(map(int, numbers))


def heard(basis: Basis, rounds: Mapping[int, str]) -> Q:
    """The judgements that labels on this basis come from; the counting rules' are among them on every basis.

    `rounds`: those that may be heard, with their purposes. Rounds and judges are few beside judgements, so neither is
    joined to each of them.
    """

    def given(purposes: Collection[str], judges: QuerySet[Judge]) -> Q:
        return Q(round__in=[pk for pk, purpose in rounds.items() if purpose in purposes], judge__in=judges.values("pk"))

    judges, purposes = Judge.objects.order_by(), Round.Purpose
    rules = given([purposes.AUTOMATIC], judges.filter(kind=Judge.Kind.RULE))
    if basis.judges:
        return rules | given([purposes.AUTOMATIC], judges.filter(kind__in=AUTOMATIC, pk__in=basis.judges))
    return rules | given(
        [purposes.RATING, purposes.IMPORTED, purposes.ADJUDICATION], judges.filter(kind=Judge.Kind.RATER)
    )


def automatic_judges(
    study_id: int, rubric_id: int | None = None, *, kinds: Iterable[str] = AUTOMATIC
) -> dict[int, str]:
    """Judges with live judgements in automatic rounds of the study, by this rubric or any: id to kind. One query."""
    said = Judgement.objects.filter(
        round__study=study_id,
        round__purpose=Round.Purpose.AUTOMATIC,
        judge__kind__in=list(kinds),
        retracted_at__isnull=True,
    )
    if rubric_id is not None:
        said = said.filter(round__rubric=rubric_id)
    found = Judge.objects.filter(pk__in=said.values("judge"))
    return dict(found.order_by("pk").values_list("pk", "kind"))


# A look into an index for each judge and criterion, instead of a pass over all that they have said.
JUDGED = """
SELECT who.id, criterion.id FROM unnest(%s::bigint[]) AS who(id) CROSS JOIN scoring_criterion AS criterion
WHERE criterion.rubric_id = %s AND criterion.kind = 'judged' AND EXISTS (
    SELECT 1 FROM scoring_judgement AS said JOIN scoring_round AS round ON round.id = said.round_id
    WHERE said.judge_id = who.id AND said.criterion_id = criterion.id AND said.retracted_at IS NULL
        AND round.study_id = %s AND round.purpose = 'automatic'
)
"""


def criteria_by_judge(study_id: int, rubric_id: int, judges: Iterable[int]) -> dict[int, frozenset[int]]:
    """Which of the rubric's judged criteria each of these automatic judges has judged in the study. One query."""
    found: dict[int, set[int]] = {judge: set() for judge in judges}
    with connection.cursor() as cursor:
        cursor.execute(JUDGED, [list(found), rubric_id, study_id])
        for judge, criterion in cursor.fetchall():
            found[judge].add(criterion)
    return {judge: frozenset(criteria) for judge, criteria in found.items()}
