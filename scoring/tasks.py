"""What the workers of queue `ml` do. A message carries an id; the rest is in the database."""

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import psycopg
import structlog
from celery import shared_task
from celery.signals import worker_ready
from django.db import Error, connection
from django.db.models import QuerySet
from django.utils import timezone

from scoring.classifiers.applying import application_work
from scoring.classifiers.arrival import arrivals_look
from scoring.classifiers.evaluating import classifier_evaluate
from scoring.classifiers.jobs import is_held, jobs_held
from scoring.classifiers.problems import ClassifierError
from scoring.classifiers.queue import QUEUE, application_enqueue, classifier_enqueue
from scoring.classifiers.training import classifier_work
from scoring.models import UNFINISHED, Application, Classifier, Evaluation, JobState

LOOK_EVERY = 15.0  # seconds between looks for lost work and for new answers
SETTLED = timedelta(seconds=10)

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
    """Measured at once, by the weights as they were stored. That it cannot be measured does not undo the training.

    Whose worker died while it was measured is trained, and is only measured then.
    """
    worked = classifier_work(classifier_id)
    classifier = Classifier.objects.select_related("judge", "study", "split__study").get(pk=classifier_id)
    worked = worked or unmeasured().filter(pk=classifier_id).exists()
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
            waiting_enqueue()


def waiting_enqueue() -> None:
    for classifier_id in Classifier.objects.filter(state=JobState.QUEUED).values_list("pk", flat=True):
        classifier_enqueue(classifier_id)
    for application_id in Application.objects.filter(state=JobState.QUEUED).values_list("pk", flat=True):
        application_enqueue(application_id)


def unmeasured() -> QuerySet[Classifier]:
    """Trained, and there are no figures: their worker died before, or no test answer has a label."""
    finished = Classifier.objects.filter(state=JobState.FINISHED, imported=False)
    return finished.exclude(judge__in=Evaluation.objects.values("judge"))


def lost_enqueue(*, settled: timedelta = SETTLED) -> None:
    """What runs without its lock has lost its worker; what waits although this worker is free has lost its message.

    What was asked for a moment ago is left alone: whoever asked may be about to do it himself. Four queries.
    """
    if _one_at_a_time.locked():
        return
    unfinished = {"state__in": UNFINISHED, "created_at__lte": timezone.now() - settled}
    held = jobs_held(Classifier)
    for pk in Classifier.objects.filter(**unfinished).values_list("pk", flat=True):
        if not is_held(held, pk):
            classifier_enqueue(pk)
    held = jobs_held(Application)
    for pk in Application.objects.filter(**unfinished).values_list("pk", flat=True):
        if not is_held(held, pk):
            application_enqueue(pk)


@worker_ready.connect
def unfinished_look_for(sender: Any = None, **_: Any) -> None:
    """Celery's hook at a worker's start, for those of queue `ml`: from then on they look into the database themselves.

    For what waited for them, for what was in the hands of one that died, and for new answers.
    """
    if sender is not None and QUEUE in sender.app.amqp.queues.consume_from:
        threading.Thread(target=_look, name="luria-classifiers", daemon=True).start()


def _look() -> None:
    settled = timedelta(0)  # at the start everything
    while True:
        try:
            lost_enqueue(settled=settled)
            if settled != SETTLED:  # once: what cannot be measured would be tried every time
                for pk in unmeasured().values_list("pk", flat=True):
                    classifier_enqueue(pk)
            arrivals_look()
            settled = SETTLED
        except (Error, psycopg.Error) as error:
            log.warning("classifiers_not_looked_for", error=type(error).__name__)
        except Exception:  # what went wrong in one look must not be the end of all later ones
            log.exception("classifiers_not_looked_for")
        finally:
            connection.close()
        time.sleep(LOOK_EVERY)
