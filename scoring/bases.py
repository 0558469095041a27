"""A basis: whose labels a result uses. The raters', or those of automatic judges."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Q

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


def heard(basis: Basis) -> Q:
    """The judgements that labels on this basis come from; the counting rules' are among them on every basis."""
    rules = Q(round__purpose=Round.Purpose.AUTOMATIC, judge__kind=Judge.Kind.RULE)
    if basis.judges:
        return rules | Q(
            round__purpose=Round.Purpose.AUTOMATIC, judge__kind__in=AUTOMATIC, judge__in=list(basis.judges)
        )
    return (
        rules
        | Q(round__purpose__in=[Round.Purpose.RATING, Round.Purpose.IMPORTED], judge__kind=Judge.Kind.RATER)
        | Q(round__purpose=Round.Purpose.ADJUDICATION, judge__kind=Judge.Kind.RATER)
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
