"""Classifiers as a basis: their names, and the people that they were not trained on."""

from collections import defaultdict
from collections.abc import Iterable

from scoring.classifiers.naming import name_of, with_names
from scoring.models import Classifier, SplitSide


def classifier_titles(judges: Iterable[int]) -> dict[int, str]:
    """What the classifiers among the judges are called. One query."""
    found = with_names(Classifier.objects.filter(judge__in=list(judges)))
    return {one.judge_id: name_of(one) for one in found}


def test_sides(judges: Iterable[int]) -> list[frozenset[int]]:
    """For each split by which a classifier among the judges was trained, the respondents of its test side. Two queries.

    Whoever came after the split is on neither side and so in none of them.
    """
    splits = list(Classifier.objects.filter(judge__in=list(judges)).values_list("split", flat=True).distinct())
    sides: dict[int, set[int]] = defaultdict(set)
    for split, respondent in SplitSide.objects.filter(split__in=splits, trains=False).values_list(
        "split", "respondent"
    ):
        sides[split].add(respondent)
    return [frozenset(sides[split]) for split in splits]
