"""Which judges can be measured on the test side of a split, and what they said there. Reads only."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from django.db.models import Q
from django.utils.translation import gettext as _

from corpus.models import Instrument
from reports.choice import judge_names
from scoring.bases import RATERS, Basis, automatic_judges
from scoring.classifiers import recipes
from scoring.classifiers.evaluating import Compared, compared_answers
from scoring.classifiers.naming import with_names
from scoring.classifiers.study_data import judged_criteria
from scoring.models import Classifier, Criterion, JobState, Judge, Round, Rubric, Split
from scoring.selectors import labels_of
from studies.models import Study

Values = Mapping[int, Sequence[float | None]]
"""Answer → what is said of it, in the order of the rubric's criteria; refusals are 0 by rule."""


@dataclass(frozen=True)
class Row:
    """A judge, or one judge for each criterion. `held_out`: the tasks that it did not learn from; None: it learned
    nothing from this study."""

    judges: tuple[int, ...]  # one, or one for each judged criterion in their order
    name: str
    kind: str  # classifier, model or set
    classifier_id: int | None
    held_out: frozenset[int] | None
    values: Values
    parts: tuple[tuple[Criterion, str], ...] = ()  # of a set: which judge judges what

    @property
    def key(self) -> str:
        """As it stands in addresses and files: the basis of the results page that says the same."""
        return Basis.of(self.judges).key


@dataclass(frozen=True)
class Sheet:
    """Everything that a comparison reads: the same test answers for every judge."""

    split: Split
    rubric: Rubric
    criteria: tuple[Criterion, ...]  # of the rubric, in order
    compared: Compared  # the answers, with labels of the judged criteria
    truth: Values  # the labels by raters, of closed rounds
    rows: list[Row]
    silent: list[Classifier] = field(default_factory=list)  # finished, and they have judged none of the answers
    trained_elsewhere: list[Classifier] = field(default_factory=list)  # on people whom this split tests, it may be

    @property
    def judged(self) -> list[int]:
        """The places of the judged criteria."""
        return [place for place, one in enumerate(self.criteria) if one.kind == Criterion.Kind.JUDGED]


def splits_of(study: Study) -> list[Split]:
    """Newest first. One query."""
    return list(Split.objects.filter(study=study).select_related("study").order_by("-pk"))


def rubrics_of(study: Study) -> list[Rubric]:
    """By which the study's answers were rated, the one used last first; those by which nothing is labelled yet, since
    their campaigns are open, after all others. One query."""
    rounds = Round.objects.filter(study=study, purpose__in=[Round.Purpose.RATING, Round.Purpose.IMPORTED])
    used = list(rounds.order_by("-pk").select_related("rubric"))
    labelled = [one for one in used if one.purpose == Round.Purpose.IMPORTED or one.closed_at is not None]
    return list({one.rubric_id: one.rubric for one in (*labelled, *used)}.values())


def sheet_of(*, split: Split, rubric: Rubric) -> Sheet:
    """Raises ClassifierError no_labels. About ten queries, and four for each judge and each instrument that the test
    side has answered (five more for each instrument of the study)."""
    criteria = tuple(rubric.criteria.all())
    compared = compared_answers(split, judged_criteria(rubric))
    tested = sorted(answer.answer_id for answer in compared.answers)
    instruments = list(Instrument.objects.filter(study=split.study, sittings__answers__in=tested).distinct())
    known, elsewhere = _classifiers(split, rubric)
    names = judge_names(split.study, rubric)
    kinds = automatic_judges(split.study_id, rubric.pk)
    passed_by = {one.judge_id for one in elsewhere}
    silent = [one for pk, one in known.items() if pk not in kinds]
    rows = []
    for judge in sorted((pk for pk in kinds if pk not in passed_by), key=lambda pk: _order(pk, kinds, known)):
        values = labels_on(Basis((judge,)), instruments, rubric, tested)
        if not _speaks(values, criteria, compared):
            silent += [known[judge]] if judge in known else []
            continue
        own = known.get(judge)
        held_out = frozenset(own.parameters.get("held_out", ())) if own and own.n_train else None
        rows.append(Row((judge,), names[judge], str(kinds[judge]), own.pk if own else None, held_out, values))
    truth = labels_on(RATERS, instruments, rubric, tested)
    return Sheet(split, rubric, criteria, compared, truth, rows, silent, elsewhere)


def labels_on(
    basis: Basis, instruments: Iterable[Instrument], rubric: Rubric, answer_ids: Sequence[int]
) -> dict[int, list[float | None]]:
    """The labels of answers on a basis, as results are scored. Four queries for each instrument."""
    found: dict[int, list[float | None]] = {}
    for instrument in instruments:
        labels = labels_of(instrument=instrument, rubric=rubric, answer_ids=answer_ids, basis=basis, only_closed=True)
        found |= {one.pk: [label.value for label in one.labels] for one in labels.answers}
    return found


def _classifiers(split: Split, rubric: Rubric) -> tuple[dict[int, Classifier], list[Classifier]]:
    """Finished ones that may be measured on this split, by judge, and those that may not. Two queries.

    Whoever learned by another split may have learned from people whom this one tests.
    """
    finished = with_names(Classifier.objects.filter(study=split.study_id, rubric=rubric, state=JobState.FINISHED))
    fair = Q(split=split) | Q(recipe=recipes.ACCEPTABILITY)  # that one learned nothing here
    known = {one.judge_id: one for one in finished.filter(fair).order_by("pk")}
    return known, list(finished.exclude(fair).order_by("pk"))


def _order(judge: int, kinds: Mapping[int, str], known: Mapping[int, Classifier]) -> tuple[int, int]:
    """As in the paper's Table 1: trained classifiers, then one trained by others, then models."""
    if kinds[judge] != Judge.Kind.CLASSIFIER:
        return 2, judge
    return int(judge in known and known[judge].recipe == recipes.ACCEPTABILITY), judge


def _speaks(values: Values, criteria: Sequence[Criterion], compared: Compared) -> bool:
    judged = [place for place, one in enumerate(criteria) if one.kind == Criterion.Kind.JUDGED]
    return any(
        values[answer.answer_id][place] is not None
        for answer in compared.answers
        if not answer.is_refusal and answer.answer_id in values
        for place in judged
    )


def row_covers(sheet: Sheet, row: Row, place: int) -> bool:
    """Whether the row's judge says anything on the criterion at all."""
    return any(
        row.values[answer.answer_id][place] is not None
        for answer in sheet.compared.answers
        if not answer.is_refusal and answer.answer_id in row.values
    )


def set_row(sheet: Sheet, chosen: Sequence[Row]) -> Row:
    """One judge for each judged criterion, in their order, as the paper's classifiers were three. No query."""
    by_place = dict(zip(sheet.judged, chosen, strict=True))
    base = chosen[0].values
    values = {
        pk: [by_place[place].values[pk][place] if place in by_place else said for place, said in enumerate(base[pk])]
        for pk in base
    }
    learned = [row.held_out for row in chosen if row.held_out is not None]
    return Row(
        judges=tuple(row.judges[0] for row in chosen),
        name=_("One judge for each criterion"),
        kind="set",
        classifier_id=None,
        held_out=frozenset.intersection(*learned) if learned else None,
        values=values,
        parts=tuple((sheet.criteria[place], row.name) for place, row in zip(sheet.judged, chosen, strict=True)),
    )
