"""A study's texts and labels for classifiers: who trains on what, and what is measured. Reads only."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from django.db.models import Q

from corpus.display import display_text
from corpus.models import Answer, Instrument, Respondent, Sitting
from scoring.classifiers.data import Dataset, Example, Task
from scoring.models import Criterion, Round, Rubric, Split, SplitSide
from scoring.selectors import LabelledAnswer, labels_of
from studies.models import Study


@dataclass(frozen=True, slots=True)
class Labelled:
    """An answer of a person whose labels come from closed rounds."""

    answer_id: int
    respondent_id: int
    stimulus_id: int
    text: str  # as judges see it
    is_refusal: bool
    values: tuple[float | None, ...]  # in the order of the criteria; None: undecided


def people_measured(*, study: Study, rubric: Rubric) -> set[int]:
    """The respondents whom a split divides: people of whom a counted answer has a label of closed rounds.

    Five queries for each instrument of the study.
    """
    answers = labelled_of(study=study, criteria=judged_criteria(rubric))
    return {labelled.respondent_id for labelled in answers if not labelled.is_refusal}


def judged_criteria(rubric: Rubric) -> list[Criterion]:
    """What a classifier can learn; what is counted by rule needs none. One query."""
    return list(rubric.criteria.filter(kind=Criterion.Kind.JUDGED))


def rubrics_labelled(study: Study) -> list[Rubric]:
    """In which something can be learned: those of closed campaigns and of imported judgements. One query."""
    rounds = Round.objects.filter(
        Q(purpose=Round.Purpose.RATING, closed_at__isnull=False) | Q(purpose=Round.Purpose.IMPORTED), study=study
    )
    return list(Rubric.objects.filter(pk__in=rounds.values("rubric")).order_by("pk"))


def labelled_of(*, study: Study, criteria: Sequence[Criterion]) -> list[Labelled]:
    """People's counted answers with a label of a closed round on some criterion, and refusals, by id.

    Five queries for each instrument.
    """
    found: list[Labelled] = []
    if not criteria:
        return found
    rubric = criteria[0].rubric
    wanted = [criterion.pk for criterion in criteria]
    for instrument in Instrument.objects.filter(study=study).order_by("pk"):
        labels = labels_of(instrument=instrument, rubric=rubric, only_closed=True)
        places = [[criterion.pk for criterion in labels.criteria].index(pk) for pk in wanted]
        people = _answers(instrument)
        for answer in labels.answers:
            if answer.pk not in people:
                continue
            labelled = _labelled(answer, people[answer.pk], places, instrument)
            if labelled.is_refusal or any(value is not None for value in labelled.values):
                found.append(labelled)
    return sorted(found, key=lambda one: one.answer_id)


def _answers(instrument: Instrument) -> dict[int, tuple[int, str]]:
    """Answer → respondent and text, of people. One query."""
    rows = Answer.objects.filter(
        sitting__instrument=instrument,
        sitting__standing=Sitting.Standing.COUNTED,
        sitting__respondent__kind=Respondent.Kind.HUMAN,
        stimulus__is_practice=False,
    ).values_list("pk", "sitting__respondent", "text")
    return {pk: (respondent, text) for pk, respondent, text in rows}


def _labelled(
    answer: LabelledAnswer, person: tuple[int, str], places: Sequence[int], instrument: Instrument
) -> Labelled:
    respondent, text = person
    return Labelled(
        answer_id=answer.pk,
        respondent_id=respondent,
        stimulus_id=answer.stimulus_id,
        text=display_text(text, lower_case=instrument.lower_case),
        is_refusal=answer.is_refusal,
        values=tuple(answer.labels[place].value for place in places),
    )


def language_of_study(study: Study) -> str:
    """Of its first instrument; classifiers of a study with several learn from all of them. One query."""
    return Instrument.objects.filter(study=study).order_by("pk").values_list("language", flat=True).first() or "ru"


def trains_of(split: Split) -> set[int]:
    """One query."""
    return set(SplitSide.objects.filter(split=split, trains=True).values_list("respondent", flat=True))


def texts_of(study: Study, respondents: Collection[int]) -> frozenset[str]:
    """What these people wrote, as judges see it: labelled or not, and of sittings that do not count any more, too.

    A classifier forgets nothing when a sitting is excluded, or a label is taken back, after its training. One query.
    """
    rows = Answer.objects.filter(
        sitting__instrument__study=study, outcome=Answer.Outcome.GIVEN, stimulus__is_practice=False
    ).exclude(sitting__standing=Sitting.Standing.WITHDRAWN)
    given = rows.values_list("sitting__respondent", "text", "sitting__instrument__lower_case")
    return frozenset(
        display_text(text, lower_case=lower_case)
        for respondent, text, lower_case in given.iterator(chunk_size=5_000)
        if respondent in respondents
    )


def tests_of(split: Split) -> set[int]:
    """One query."""
    return set(SplitSide.objects.filter(split=split, trains=False).values_list("respondent", flat=True))


def tasks_of(criteria: Sequence[Criterion]) -> tuple[Task, ...]:
    return tuple(Task(criterion.code, tuple(sorted(map(float, criterion.scale)))) for criterion in criteria)


def training_set(
    answers: Sequence[Labelled],
    *,
    criteria: Sequence[Criterion],
    respondents: Collection[int],
    held_out: Collection[int] = (),
    language: str,
) -> Dataset:
    """What is learned from: answers of these respondents, no refusals (they are 0 by rule), no stimulus held out."""
    tasks = tasks_of(criteria)
    examples = tuple(
        Example(
            text=one.text,
            group=str(one.respondent_id),
            targets=tuple(_place(value, task) for value, task in zip(one.values, tasks, strict=True)),
        )
        for one in answers
        if one.respondent_id in respondents and not one.is_refusal and one.stimulus_id not in held_out
    )
    return Dataset(tasks, examples, language)


def _place(value: float | None, task: Task) -> int | None:
    return None if value is None else task.classes.index(float(value))
