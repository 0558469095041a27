"""Every judge on the same test answers, beside the raters' labels: the rows of a comparison.

The set is that of a split's test side. It is measured four times: without refusals, with them (which are 0 by rule,
whoever judges), on texts that nobody on the training side wrote, and on the tasks a classifier was kept from.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from django.db import transaction

from scoring.classifiers import recipes
from scoring.classifiers.applying import model_of
from scoring.classifiers.data import Progress, Task
from scoring.classifiers.problems import ClassifierError
from scoring.classifiers.study_data import Labelled, labelled_of, tasks_of, tests_of, texts_of, trains_of
from scoring.evaluation import Report, evaluate
from scoring.models import Classifier, Criterion, Evaluation, Judge, Judgement, Round, Split
from studies.models import User
from studies.services import audit_record

Subset = Evaluation.Subset


@dataclass(frozen=True, slots=True)
class Saying:
    """What a judge says of one answer on one criterion. Probabilities in the ascending order of the scale, if known."""

    value: float
    probabilities: tuple[float, ...] | None


@dataclass(frozen=True)
class Compared:
    """The answers on which judges are compared, and what tells their subsets apart."""

    split: Split
    criteria: list[Criterion]
    answers: list[Labelled]  # of the test side, refusals among them, by id
    trained_texts: frozenset[str]  # display texts of the training side

    def texts(self) -> list[str]:
        return [answer.text for answer in self.answers]


def compared_answers(split: Split, criteria: Sequence[Criterion]) -> Compared:
    """Three queries, and five for each instrument of the study. Raises ClassifierError no_labels."""
    answers = labelled_of(study=split.study, criteria=criteria)
    trains, tests = trains_of(split), tests_of(split)
    chosen = [answer for answer in answers if answer.respondent_id in tests]
    if not any(not answer.is_refusal for answer in chosen):
        raise ClassifierError("no_labels")
    seen = texts_of(split.study, trains)
    return Compared(split, list(criteria), chosen, seen)


def classifier_says(
    classifier: Classifier, answers: Compared, progress: Progress | None = None
) -> dict[tuple[int, int], Saying]:
    """(answer, criterion) → what it says, read now; refusals are not asked about. Raises ClassifierError."""
    model = model_of(classifier)
    asked = [answer for answer in answers.answers if not answer.is_refusal]
    said, _cut = recipes.say(model, [answer.text for answer in asked], progress)
    ids = {criterion.code: criterion.pk for criterion in answers.criteria}
    return {
        (answer.answer_id, ids[task.code]): Saying(one.value, one.probabilities)
        for task, column in zip(model.tasks, said, strict=True)
        if task.code in ids
        for answer, one in zip(asked, column, strict=True)
    }


def judge_says(judge: Judge, answers: Compared) -> dict[tuple[int, int], Saying]:
    """The same of any judge whose judgements are stored: a model judge, a rater. One query.

    Probabilities where the scale has two values and all judgements have a confidence.
    """
    rows = Judgement.objects.filter(
        judge=judge,
        answer__in=[answer.answer_id for answer in answers.answers],
        criterion__in=answers.criteria,
        round__purpose__in=[Round.Purpose.AUTOMATIC, Round.Purpose.RATING, Round.Purpose.IMPORTED],
        retracted_at__isnull=True,
    ).order_by("made_at", "pk")
    classes = {
        criterion.pk: task.classes for criterion, task in zip(answers.criteria, tasks_of(answers.criteria), strict=True)
    }
    found = {}
    for answer, criterion, value, confidence in rows.values_list("answer_id", "criterion_id", "value", "confidence"):
        sure = None
        if confidence is not None and len(classes[criterion]) == 2:
            upper = confidence if value == classes[criterion][1] else 1 - confidence
            sure = (1 - upper, upper)
        found[answer, criterion] = Saying(value, sure)
    return found


def reports_of(
    answers: Compared, said: Mapping[tuple[int, int], Saying], *, held_out: Sequence[int] = ()
) -> dict[tuple[str, str], Report]:
    """(criterion, subset) → report, of answers that have a label and of which the judge said something.

    A subset without answers is left out: nothing was held out, or nobody wrote anything new.
    """
    subsets: dict[Subset, Callable[[Labelled], bool]] = {
        Subset.ALL: lambda answer: not answer.is_refusal,
        Subset.WITH_REFUSALS: lambda _: True,
        Subset.UNSEEN: lambda answer: not answer.is_refusal and answer.text not in answers.trained_texts,
        Subset.HELD_OUT: lambda answer: not answer.is_refusal and answer.stimulus_id in held_out,
    }
    found = {}
    for place, (criterion, task) in enumerate(zip(answers.criteria, tasks_of(answers.criteria), strict=True)):
        for subset, holds in subsets.items():
            chosen = [answer for answer in answers.answers if holds(answer)]
            report = _report(chosen, place, criterion, task, said, seed=answers.split.seed)
            if report is not None:
                found[criterion.code, str(subset)] = report
    return found


def _report(
    chosen: list[Labelled],
    place: int,
    criterion: Criterion,
    task: Task,
    said: Mapping[tuple[int, int], Saying],
    *,
    seed: int,
) -> Report | None:
    by_rule = Saying(0.0, (1.0, *[0.0] * (len(task.classes) - 1)) if task.classes[0] == 0 else None)
    rows = []
    for answer in chosen:
        truth = answer.values[place]
        saying = by_rule if answer.is_refusal else said.get((answer.answer_id, criterion.pk))
        if truth is not None and saying is not None:
            rows.append((truth, saying, answer.respondent_id))
    if not rows:
        return None
    sure = [saying.probabilities for _, saying, _ in rows]
    return evaluate(
        truth=[truth for truth, _, _ in rows],
        said=[saying.value for _, saying, _ in rows],
        groups=[respondent for _, _, respondent in rows],
        classes=task.classes,
        probabilities=None if any(one is None for one in sure) else [list(one) for one in sure if one is not None],
        seed=seed,
    )


def set_hash(answers: Compared, criterion: Criterion, said: Mapping[tuple[int, int], Saying]) -> str:
    """sha256, hex, of the test answers, their labels and what the judge said of them."""
    place = answers.criteria.index(criterion)
    rows = []
    for answer in answers.answers:
        saying = said.get((answer.answer_id, criterion.pk))
        shown = None if saying is None else [saying.value, saying.probabilities]
        rows.append([answer.answer_id, answer.text, answer.values[place], answer.is_refusal, shown])
    return hashlib.sha256(json.dumps(rows, ensure_ascii=False).encode()).hexdigest()


@transaction.atomic
def evaluation_record(
    *,
    judge: Judge,
    answers: Compared,
    said: Mapping[tuple[int, int], Saying],
    held_out: Sequence[int] = (),
    actor: User | None,
) -> list[Evaluation]:
    """Measure and keep. Measuring the same again keeps one; changed labels or values make new rows."""
    reports = reports_of(answers, said, held_out=held_out)
    by_code = {criterion.code: criterion for criterion in answers.criteria}
    hashes = {code: set_hash(answers, criterion, said) for code, criterion in by_code.items()}
    found = []
    made = 0
    for (code, subset), report in reports.items():
        evaluation, created = Evaluation.objects.get_or_create(
            judge=judge,
            split=answers.split,
            criterion=by_code[code],
            subset=subset,
            data_hash=hashes[code],
            defaults={
                "n_answers": report.n,
                "n_respondents": report.n_respondents,
                "metrics": report.as_json(),
            },
        )
        found.append(evaluation)
        made += created
    if made:
        detail = {"split": answers.split.pk, "made": made}
        audit_record(actor=actor, study=answers.split.study, action="evaluation_record", target=judge, detail=detail)
    return found


def classifier_evaluate(
    *, classifier: Classifier, actor: User | None, progress: Progress | None = None
) -> list[Evaluation]:
    """A finished classifier on the test side of its split, read now; an imported one by what it has said.

    Raises ClassifierError not_finished and others.
    """
    answers = compared_answers(classifier.split, list(classifier.criteria.order_by("position")))
    if classifier.imported:
        said = judge_says(classifier.judge, answers)
    else:
        said = classifier_says(classifier, answers, progress)
    return evaluation_record(
        judge=classifier.judge,
        answers=answers,
        said=said,
        held_out=classifier.parameters["held_out"],
        actor=actor,
    )
