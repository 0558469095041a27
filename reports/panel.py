"""The automatic judges that a basis can be made of, and what a set of them comes to on each criterion."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.translation import gettext as _

from scoring.bases import Basis, criteria_by_judge
from scoring.models import Criterion, Rubric
from studies.models import Study


@dataclass(frozen=True, slots=True)
class Member:
    """An automatic judge as the form offers it."""

    pk: int
    name: str
    criteria: tuple[Criterion, ...]  # those that it has judged
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class Bench:
    """Who of a basis judges one criterion."""

    criterion: Criterion
    names: tuple[str, ...]

    @property
    def words(self) -> str:
        """What comes of so many judges; empty where one alone decides."""
        n = len(self.names)
        if n == 0:
            return _("no judge of this set has judged it, so no answer has a score")
        if n == 1:
            return ""
        if n % 2:
            return _("the value of more than half of them; of an answer that one of them did not judge, maybe none")
        return _("the value of more than half of them; where they are split in halves the answer is undecided")


def members_of(study: Study, rubric: Rubric, basis: Basis, names: Mapping[int, str]) -> tuple[Member, ...]:
    """`names` of all automatic judges that have judged. Two queries, none without a judge."""
    if not names:
        return ()
    criteria = list(rubric.criteria.filter(kind=Criterion.Kind.JUDGED))
    judged = criteria_by_judge(study.pk, rubric.pk, names)
    return tuple(
        Member(pk, name, tuple(one for one in criteria if one.pk in judged[pk]), pk in basis.judges)
        for pk, name in names.items()
    )


def panel_of(rubric: Rubric, members: tuple[Member, ...]) -> tuple[Bench, ...]:
    """Who of the chosen judges judges what; empty where raters are the basis. One query."""
    chosen = [member for member in members if member.is_chosen]
    if not chosen:
        return ()
    return tuple(
        Bench(criterion, tuple(member.name for member in chosen if criterion in member.criteria))
        for criterion in rubric.criteria.filter(kind=Criterion.Kind.JUDGED)
    )


def panel_words(panel: tuple[Bench, ...]) -> str:
    """Who judges what, for a caption; empty where each of the judges has judged every criterion."""
    if len({bench.names for bench in panel}) < 2:
        return ""
    return "; ".join(f"{bench.criterion.question} {' + '.join(bench.names) or '–'}" for bench in panel)
