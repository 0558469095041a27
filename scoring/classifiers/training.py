"""The training of a study's classifier, from its row to its weights."""

from pathlib import Path
from typing import Any

import structlog
from django.conf import settings
from django.db import transaction
from django.utils import timezone

from corpus.models import Sitting
from scoring.classifiers import recipes, storing
from scoring.classifiers.data import Dataset, Progress
from scoring.classifiers.jobs import JobProgress, job_claim, job_fail, job_lock
from scoring.classifiers.problems import ClassifierError, StoppedError
from scoring.classifiers.study_data import labelled_of, language_of_study, training_set, trains_of
from scoring.models import Classifier, Criterion, JobState
from studies.models import Study
from studies.services import audit_record

OWN = ("seed", "held_out")  # of a row's parameters: not the recipe's

log = structlog.get_logger(__name__)


def classifier_work(classifier_id: int, *, also: Progress | None = None) -> bool:
    """Train it if it waits, or was left by a worker that died. False: nothing to do, or another worker is at it.

    What goes wrong is written into the row. `also` is told of the progress, too.
    """
    with job_lock(Classifier, classifier_id) as taken:
        attempt = job_claim(Classifier, classifier_id) if taken else None
        if attempt is None:
            return False
        classifier = Classifier.objects.select_related("study", "rubric", "split").get(pk=classifier_id)
        try:
            _train(classifier, attempt, JobProgress(Classifier, classifier_id, attempt, also))
        except StoppedError:
            log.info("classifier_training_stopped", classifier=classifier_id, attempt=attempt)
            _clear(classifier_id, attempt)
        except ClassifierError as error:
            job_fail(Classifier, classifier_id, attempt, error)
            _clear(classifier_id, attempt)
        except Exception as error:
            job_fail(Classifier, classifier_id, attempt, error)
            raise  # for the worker's log
    return True


def _train(classifier: Classifier, attempt: int, progress: Progress) -> None:
    criteria = list(classifier.criteria.order_by("position"))
    dataset = dataset_of_classifier(classifier, criteria)
    parameters = {name: value for name, value in classifier.parameters.items() if name not in OWN}
    model = recipes.train(
        classifier.recipe,
        dataset,
        parameters,
        base=classifier.base_model,
        seed=int(classifier.parameters["seed"]),
        progress=progress,
        checkpoint=storing.checkpoint_of(classifier.pk),
        threads=settings.ML_THREADS or None,
    )
    learned = {"texts": len(dataset.examples), "respondents": len({example.group for example in dataset.examples})}
    if classifier.recipe not in recipes.NEEDS_LABELS:
        learned = {"texts": 0, "respondents": 0}
    card = _card(classifier, criteria, dataset, model, learned)
    weights_hash = ""
    staged = storing.classifiers_folder() / f"{classifier.pk}-whole-{attempt}"

    def write(folder: Path) -> None:
        nonlocal weights_hash
        recipes.save(model, classifier.recipe, parameters, folder)
        weights_hash = storing.folder_hash(folder)
        storing.card_write(folder, {**card, "weights_hash": weights_hash})

    storing.folder_write(staged, write)
    folder = storing.folder_of(classifier.pk, weights_hash)
    storing.folder_rename(staged, folder)
    if not _finish(classifier, attempt, weights_hash, dataset, learned["texts"], model):
        raise StoppedError
    storing.others_remove(classifier.pk, keep=folder)


def _clear(classifier_id: int, attempt: int) -> None:
    """Nothing stays of a training that was cancelled or failed; a later attempt's files are left alone."""
    ended = [JobState.CANCELLED, JobState.FAILED]
    if Classifier.objects.filter(pk=classifier_id, attempt=attempt, state__in=ended).exists():
        storing.others_remove(classifier_id)


def dataset_of_classifier(classifier: Classifier, criteria: list[Criterion]) -> Dataset:
    return training_set(
        labelled_of(study=classifier.study, criteria=criteria),
        criteria=criteria,
        respondents=trains_of(classifier.split),
        held_out=classifier.parameters["held_out"],
        language=language_of_study(classifier.study),
    )


@transaction.atomic
def _finish(
    classifier: Classifier, attempt: int, weights_hash: str, dataset: Dataset, n_train: int, model: recipes.Model
) -> bool:
    """False: it is not wanted any more.

    The study's lock is the one that a withdrawal takes: who took back while it learned is counted here, who does so
    later by `classifiers_flag_withdrawn`.
    """
    Study.objects.select_for_update(no_key=True).get(pk=classifier.study_id)
    groups = {example.group for example in dataset.examples} if n_train else set()
    gone = Sitting.objects.filter(respondent__in=map(int, groups), standing=Sitting.Standing.WITHDRAWN)
    finished = Classifier.objects.filter(pk=classifier.pk, attempt=attempt, state=JobState.RUNNING).update(
        state=JobState.FINISHED,
        finished_at=timezone.now(),
        weights_hash=weights_hash,
        data_hash=dataset.hash(),
        n_train=n_train,
        withdrawn=gone.values("respondent").distinct().count(),
        metrics={"thresholds": model.thresholds},
    )
    if finished:
        audit_record(
            actor=None,
            study=classifier.study,
            action="classifier_finish",
            target=classifier,
            detail={"weights_hash": weights_hash, "texts": n_train},
        )
    return bool(finished)


def _card(
    classifier: Classifier, criteria: list[Criterion], dataset: Dataset, model: recipes.Model, learned: dict[str, int]
) -> dict[str, Any]:
    """Says what it learned from, not a word of it: answers are people's."""
    return {
        "title": classifier.title,
        "study": classifier.study.title + (" (simulated data)" if classifier.study.simulated else ""),
        "criteria": [criterion.code for criterion in criteria],
        "recipe": classifier.recipe,
        "base_model": classifier.base_model,
        "parameters": classifier.parameters,
        "threads": settings.ML_THREADS,
        "language": dataset.language,
        "learned_from": {**learned, "sha256": dataset.hash(), "split": classifier.split_id},
        "split": {"seed": classifier.split.seed, "fraction": classifier.split.fraction},
        "thresholds": model.thresholds,
        "limits": [str(recipes.LIMITS[classifier.recipe])],
    }
