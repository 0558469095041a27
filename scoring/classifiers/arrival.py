"""New answers are judged as they come, by the classifiers for which somebody has wished it.

Nobody is told of an answer: the workers of queue `ml` look, every so often, whether finished sittings hold answers that
a classifier has not judged, and begin one application for all that is there. So it does not matter how answers came (a
survey, a run, an import), and a look that was missed is made up for by the next.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog
from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from corpus.tokens import is_refusal
from scoring.classifiers.applying import application_create
from scoring.classifiers.jobs import job_cancel
from scoring.classifiers.problems import ClassifierError
from scoring.models import UNFINISHED, Application, Classifier, JobState
from studies.database import locked, planned_cursor
from studies.models import User
from studies.services import audit_record

REST = timedelta(minutes=1)  # between the beginnings of two: loading a model costs more than a few answers do
RETRIES = (timedelta(minutes=1), timedelta(minutes=10), timedelta(hours=1), timedelta(hours=6))  # after a failure
# What the next try would meet again; it waits for a person.
LASTING = frozenset({"round_closed", "weights_missing", "weights_corrupt", "torch_missing", "worker_died"})

# Answers of finished sittings without a live judgement since they were last changed. A chunk's criteria are stored
# together, so one of them speaks for all.
ARRIVED = """
SELECT answer.text, instrument.refusal_below
FROM corpus_instrument instrument
JOIN corpus_sitting sitting ON sitting.instrument_id = instrument.id
JOIN corpus_answer answer ON answer.sitting_id = sitting.id
JOIN corpus_stimulus stimulus ON stimulus.id = answer.stimulus_id
WHERE instrument.study_id = %s::bigint AND sitting.state = 'finished' AND sitting.standing <> 'withdrawn'
AND answer.outcome = 'given' AND NOT stimulus.is_practice
AND NOT EXISTS (
    SELECT FROM scoring_judgement judgement
    WHERE judgement.answer_id = answer.id AND judgement.judge_id = %s::bigint AND judgement.retracted_at IS NULL
    AND judgement.criterion_id = (
        SELECT min(criterion_id) FROM scoring_classifier_criteria WHERE classifier_id = %s::bigint
    )
    AND judgement.made_at >= answer.changed_at
)
"""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Arrival:
    """How the judging of new answers stands."""

    is_on: bool
    failures: int  # in a row
    problem: str  # of the newest failure, a code; empty where it did not fail
    detail: dict[str, str]
    next_at: datetime | None  # not before; None: at once, or no more

    @property
    def gives_up(self) -> bool:
        return self.is_on and (self.problem in LASTING or self.failures > len(RETRIES))


@transaction.atomic
def arrival_switch(*, classifier: Classifier, actor: User | None, on: bool) -> bool:
    """Whether it judges new answers as they come. Returns whether that is new.

    Raises ClassifierError not_finished, imported.
    """
    mine = locked(Classifier.objects.select_related("study"), classifier.pk)
    if on and mine.state != JobState.FINISHED:
        raise ClassifierError("not_finished")
    if on and mine.imported:
        raise ClassifierError("imported")
    if on == (mine.arrival_since is not None):
        return False
    _switch(mine, timezone.now() if on else None)
    audit_record(actor=actor, study=mine.study, action=f"classifier_arrival_{'on' if on else 'off'}", target=mine)
    return True


def _switch(mine: Classifier, since: datetime | None, error: tuple[str, dict[str, str]] = ("", {})) -> None:
    mine.arrival_since = since
    mine.arrival_problem, mine.arrival_problem_detail = error
    mine.save(update_fields=["arrival_since", "arrival_problem", "arrival_problem_detail"])


@transaction.atomic
def judging_stop(*, classifier: Classifier, actor: User | None) -> bool:
    """Stop what it is judging, and not to have it begun again within a minute, its judging of new answers too."""
    running = Application.objects.filter(classifier=classifier, state__in=UNFINISHED).first()
    if running is None or not job_cancel(job=running, actor=actor):
        return False
    arrival_switch(classifier=classifier, actor=actor, on=False)
    return True


def arrival_of(classifier: Classifier) -> Arrival:
    """From what its applications came to since it was switched on. One query, none where it is off."""
    if classifier.arrival_since is None:
        return Arrival(False, 0, classifier.arrival_problem, classifier.arrival_problem_detail, None)
    lately = list(
        Application.objects.filter(classifier=classifier, created_at__gte=classifier.arrival_since)
        .exclude(state__in=UNFINISHED)
        .order_by("-pk")[: len(RETRIES) + 1]
    )
    failed = []
    for application in lately:
        if application.state != JobState.FAILED:
            break
        failed.append(application)
    if not failed:
        return Arrival(True, 0, "", {}, lately[0].created_at + REST if lately else None)
    newest = failed[0]
    tries_again = len(failed) <= len(RETRIES)
    next_at = (newest.finished_at or newest.created_at) + RETRIES[len(failed) - 1] if tries_again else None
    return Arrival(True, len(failed), newest.problem, newest.problem_detail, next_at)


def arrived_count(classifier: Classifier) -> int:
    """Answers of finished sittings that it has not judged as they stand, refusals aside. One query."""
    with planned_cursor() as cursor:
        cursor.execute(ARRIVED, [classifier.study_id, classifier.judge_id, classifier.pk])
        return sum(not is_refusal(text, below) for text, below in cursor)


def _has_arrived(classifier: Classifier) -> bool:
    """Whether there is one. One query."""
    with planned_cursor() as cursor:
        cursor.execute(ARRIVED, [classifier.study_id, classifier.judge_id, classifier.pk])
        return any(not is_refusal(text, below) for text, below in cursor)


def judged_last(classifier: Classifier) -> datetime | None:
    """When it last had judged all that was there. One query."""
    finished = Application.objects.filter(classifier=classifier, state=JobState.FINISHED)
    latest: datetime | None = finished.aggregate(latest=Max("finished_at"))["latest"]
    return latest


def arrivals_look() -> list[int]:
    """Begin an application for every classifier that new answers wait for. Returns which.

    One query, and two for each classifier that is switched on and is not at work; more only where something has come.
    """
    wished = (
        Classifier.objects.filter(arrival_since__isnull=False)
        .exclude(applications__state__in=UNFINISHED)
        .order_by("pk")
    )
    begun = []
    for classifier in wished:
        arrival = arrival_of(classifier)
        rests = arrival.next_at is not None and arrival.next_at > timezone.now()
        if arrival.gives_up or (not rests and _has_arrived(classifier)):
            application = arrival_begin(classifier_id=classifier.pk)
            begun += [application.pk] if application is not None else []
    return begun


@transaction.atomic
def arrival_begin(*, classifier_id: int) -> Application | None:
    """One application for all that is there, unless somebody else was quicker, or it has failed too often."""
    mine = locked(Classifier.objects.select_related("study"), classifier_id)
    arrival = arrival_of(mine)
    is_at_work = Application.objects.filter(classifier=mine, state__in=UNFINISHED).exists()
    if not arrival.is_on or is_at_work:
        return None
    if arrival.gives_up:
        _give_up(mine, arrival.problem, arrival.detail)
        return None
    if arrival.next_at is not None and arrival.next_at > timezone.now():
        return None
    try:
        return application_create(classifier=mine, actor=None, on_arrival=True)
    except ClassifierError as error:  # its round is closed
        _give_up(mine, error.code, {})
        return None


def _give_up(mine: Classifier, problem: str, detail: dict[str, str]) -> None:
    """Off, with the reason. For whoever holds the classifier."""
    _switch(mine, None, (problem, detail))
    audit_record(
        actor=None, study=mine.study, action="classifier_arrival_off", target=mine, detail={"problem": problem}
    )
    log.warning("classifier_arrival_given_up", classifier=mine.pk, problem=problem)
