"""Classifiers of a study, and what they are worth."""

from dataclasses import dataclass

from django.db.models import QuerySet
from django.utils.translation import gettext_lazy

from scoring.classifiers.naming import with_names
from scoring.evaluation import Estimate, Report
from scoring.models import Classifier, Criterion, Evaluation, JobState
from studies.models import Study

SUBSETS = ("all", "unseen", "held_out", "with_refusals")  # in the order in which they are shown
FIGURES = {
    "f1_micro": gettext_lazy("F1 micro"),
    "f1_macro": gettext_lazy("F1 macro"),
    "f1_weighted": gettext_lazy("F1 weighted"),
    "mcc": "MCC",
    "ece": "ECE",
    "brier": "Brier",
}


@dataclass(frozen=True, slots=True)
class Figures:
    """The newest figures of one judge on one criterion and one set of answers."""

    criterion: Criterion
    subset: str  # in words
    report: Report

    @property
    def rows(self) -> list[tuple[str, Estimate, float | None]]:
        """Name, figure, and what the constant judge gets, where that is defined."""
        found = self.report.estimates
        beside = self.report.majority
        constant = {
            "f1_micro": beside and beside.f1_micro,
            "f1_macro": beside and beside.f1_macro,
            "f1_weighted": beside and beside.f1_weighted,
        }
        return [(str(text), found[name], constant.get(name) or None) for name, text in FIGURES.items()]


def classifiers_of(study: Study) -> QuerySet[Classifier]:
    """Newest first, with `name`."""
    return with_names(Classifier.objects.filter(study=study)).select_related("split", "rubric").order_by("-pk")


def figures_of(classifier: Classifier) -> list[Figures]:
    """The newest of each criterion and set. One query."""
    rows = (
        Evaluation.objects.filter(judge=classifier.judge_id, split=classifier.split_id)
        .select_related("criterion")
        .order_by("-pk")
    )
    newest: dict[tuple[int, str], Evaluation] = {}
    for row in rows:
        newest.setdefault((row.criterion_id, row.subset), row)
    order = {subset: place for place, subset in enumerate(SUBSETS)}
    shown = sorted(newest.values(), key=lambda row: (row.criterion.position, order[row.subset]))
    return [Figures(row.criterion, row.get_subset_display(), Report.from_json(row.metrics)) for row in shown]


@dataclass(frozen=True, slots=True)
class Compared:
    """A line of the comparison: a finished classifier, one cell for each criterion, None where it was not measured."""

    classifier: Classifier
    cells: list[Report | None]


def comparison_of(study: Study, criteria: list[Criterion]) -> list[Compared]:
    """The study's Table 1 by classifiers: each on the test answers of its split. Two queries."""
    finished = list(classifiers_of(study).filter(state=JobState.FINISHED))
    rows = Evaluation.objects.filter(
        judge__in=[one.judge_id for one in finished], subset=Evaluation.Subset.ALL
    ).order_by("pk")
    newest = {(row.judge_id, row.criterion_id): row for row in rows}
    return [
        Compared(
            one,
            [
                Report.from_json(newest[one.judge_id, criterion.pk].metrics)
                if (one.judge_id, criterion.pk) in newest
                else None
                for criterion in criteria
            ],
        )
        for one in finished
    ]
