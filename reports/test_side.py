"""Classifiers as a basis: their names, and the people that they were not trained on."""

from collections.abc import Iterable


def classifier_titles(judges: Iterable[int]) -> dict[int, str]:
    """What the classifiers among the judges are called."""
    return {}


def test_sides(judges: Iterable[int]) -> list[frozenset[int]]:
    """For each split by which a classifier among the judges was trained, the respondents of its test side."""
    return []
