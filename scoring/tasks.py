"""What the workers of queue `ml` do. A message carries an id; the rest is in the database."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import structlog
from celery import shared_task
from celery.signals import worker_ready
from django.db import Error, connection

from scoring.classifiers.applying import application_work
from scoring.classifiers.evaluating import classifier_evaluate
from scoring.classifiers.problems import ClassifierError
from scoring.classifiers.queue import application_enqueue, classifier_enqueue
from scoring.classifiers.training import classifier_work
from scoring.models import UNFINISHED, Application, Classifier, JobState

log = structlog.get_logger(__name__)

# Both use all processors, and a training its process's own random numbers: one at a time in each process.
_one_at_a_time = threading.Lock()


@shared_task
def classifier_train(classifier_id: int) -> None:
    """Twice at once, or once more after it is done, does nothing."""
    _alone(_train_and_measure, classifier_id)


@shared_task
def classifier_apply(application_id: int) -> None:
    """Twice at once, or once more after it is done, does nothing."""
    _alone(application_work, application_id)


def _train_and_measure(classifier_id: int) -> bool:
    """Measured at once, by the weights as they were stored. That it cannot be measured does not undo the training."""
    worked = classifier_work(classifier_id)
    classifier = Classifier.objects.select_related("judge", "study", "split__study").get(pk=classifier_id)
    if worked and classifier.state == JobState.FINISHED:
        try:
            classifier_evaluate(classifier=classifier, actor=None)
        except ClassifierError as error:
            log.warning("classifier_not_measured", classifier=classifier_id, problem=error.code)
    return worked


def _alone(work: Callable[[int], bool], pk: int) -> None:
    """A message that comes while something is being done is dropped: whoever is at it looks for the rest when done.

    Waiting here would fill the worker's threads, since the broker gives out again what is not done in an hour.
    """
    if not _one_at_a_time.acquire(blocking=False):
        return
    worked = True
    try:
        worked = work(pk)
    finally:
        _one_at_a_time.release()
        if worked:
            unfinished_enqueue([JobState.QUEUED])


def unfinished_enqueue(states: Sequence[str]) -> None:
    for classifier_id in Classifier.objects.filter(state__in=states).values_list("pk", flat=True):
        classifier_enqueue(classifier_id)
    for application_id in Application.objects.filter(state__in=states).values_list("pk", flat=True):
        application_enqueue(application_id)


@worker_ready.connect
def unfinished_look_for(**_: Any) -> None:
    """Celery's hook at a worker's start: what waited for it, or was in the hands of one that died, is put in again.

    What somebody else is at, is left alone by whoever takes the message.
    """
    try:
        unfinished_enqueue(UNFINISHED)
    except Error as error:
        log.warning("classifiers_not_looked_for", error=type(error).__name__)
    finally:
        connection.close()
