"""The only writer of splits and of classifiers to be trained. The training itself: `scoring.classifiers.training`."""

import random
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F

from scoring.classifiers import recipes
from scoring.classifiers.problems import ClassifierError
from scoring.classifiers.queue import classifier_enqueue
from scoring.classifiers.study_data import people_measured
from scoring.models import Classifier, Criterion, JobState, Judge, Rubric, Split, SplitSide
from scoring.splitting import FRACTION, people_hash, people_of, split
from studies.database import violates
from studies.models import Study, User
from studies.services import audit_record


class ParameterUnknownError(Exception):
    """The recipe has no such parameter."""


@transaction.atomic
def split_ensure(
    *,
    study: Study,
    rubric: Rubric,
    same_person: Collection[Collection[int]],
    seed: int,
    fraction: float = FRACTION,
    actor: User | None,
) -> Split:
    """The split of those whose answers are labelled now: made once for the same people, seed and fraction.

    `same_person`: sets of respondents that are one person, as the caller knows (one external id in several surveys).
    Raises ClassifierError no_labels.
    """
    respondents = people_measured(study=study, rubric=rubric)
    if not respondents:
        raise ClassifierError("no_labels")
    people = people_of(respondents, same_person)
    key = {"study": study, "seed": seed, "fraction": fraction, "people_hash": people_hash(people)}
    known = Split.objects.filter(**key).first()
    if known is not None:
        return known
    try:
        with transaction.atomic():
            made = Split.objects.create(**key)
    except IntegrityError as error:
        if violates(error, "split_once_per_people"):  # somebody else's, made at the same moment
            return Split.objects.get(**key)
        raise
    sides = split(people, seed=seed, fraction=fraction)
    SplitSide.objects.bulk_create(
        SplitSide(split=made, respondent_id=pk, trains=pk in sides.train) for pk in sorted(respondents)
    )
    detail = {"seed": seed, "fraction": fraction, "train": len(sides.train), "test": len(sides.test)}
    audit_record(actor=actor, study=study, action="split_make", target=made, detail=detail)
    return made


@transaction.atomic
def classifier_create(
    *,
    split: Split,
    criteria: Sequence[Criterion],
    recipe: str,
    actor: User | None,
    title: str = "",
    base_model: str = "",
    seed: int = 1,
    parameters: Mapping[str, Any] | None = None,
    held_out: Collection[int] = (),
    enqueue: bool = True,
) -> Classifier:
    """A judge that waits for its training. `held_out`: stimuli that it does not learn from, to be measured on.

    Raises ParameterUnknownError.
    """
    try:
        chosen = recipes.parameters_of(recipe, parameters or {})
    except KeyError as error:
        raise ParameterUnknownError(str(error.args[0])) from error
    base = base_model or recipes.BASES[recipe]
    classifier = Classifier.objects.create(
        judge=Judge.objects.create(kind=Judge.Kind.CLASSIFIER),
        study=split.study,
        rubric=criteria[0].rubric,
        split=split,
        title=title or " · ".join(filter(None, [recipe, base])),
        recipe=recipe,
        base_model=base,
        parameters={**chosen, "seed": seed, "held_out": sorted(held_out)},
        created_by=actor,
    )
    classifier.criteria.set(criteria)
    detail = {"recipe": recipe, "base_model": base, "split": split.pk, "seed": seed}
    audit_record(actor=actor, study=split.study, action="classifier_create", target=classifier, detail=detail)
    if enqueue:
        transaction.on_commit(lambda: classifier_enqueue(classifier.pk))
    return classifier


@transaction.atomic
def classifier_restart(*, classifier: Classifier, actor: User | None, enqueue: bool = True) -> bool:
    """Train again after a failure or a cancellation, or send for a worker again. False: it has been trained."""
    open_again = [JobState.FAILED, JobState.CANCELLED, JobState.QUEUED, JobState.RUNNING]
    stopped = Classifier.objects.filter(pk=classifier.pk, state__in=[JobState.FAILED, JobState.CANCELLED]).update(
        state=JobState.QUEUED, problem="", problem_detail={}, finished_at=None, done=0, total=0, deaths=0
    )
    if stopped:
        audit_record(actor=actor, study=classifier.study, action="classifier_restart", target=classifier)
    wanted = Classifier.objects.filter(pk=classifier.pk, state__in=open_again).exists()
    if wanted and enqueue:
        transaction.on_commit(lambda: classifier_enqueue(classifier.pk))
    return wanted


def classifiers_flag_withdrawn(*, respondent_id: int) -> int:
    """Note on trained classifiers that somebody of their training side has withdrawn. Returns on how many.

    What they learned cannot be taken out of them; training again leaves the person's answers out. Within the caller's
    transaction.
    """
    learned = Classifier.objects.filter(
        split__sides__respondent=respondent_id, split__sides__trains=True, state=JobState.FINISHED, n_train__gt=0
    )
    return Classifier.objects.filter(pk__in=learned.values("pk")).update(withdrawn=F("withdrawn") + 1)


def held_out_choose(stimulus_ids: Collection[int], *, n: int, seed: int) -> list[int]:
    """So many stimuli drawn by the seed; never all."""
    order = sorted(stimulus_ids)
    random.Random(seed).shuffle(order)  # noqa: S311  # not for secrets
    return sorted(order[: max(0, min(n, len(order) - 1))])
