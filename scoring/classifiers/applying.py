"""A classifier judges its study's answers. Killed, it goes on with those that it has not judged."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import compress
from typing import Any

import structlog
from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from corpus.display import display_text
from corpus.models import Answer, Sitting
from corpus.tokens import is_refusal
from scoring.classifiers import recipes, storing
from scoring.classifiers.data import Progress, Said
from scoring.classifiers.jobs import JobProgress, job_claim, job_fail, job_lock
from scoring.classifiers.problems import ClassifierError, StoppedError
from scoring.classifiers.queue import application_enqueue
from scoring.models import UNFINISHED, Application, Classifier, Criterion, JobState, Judgement, Round
from scoring.services import automatic_round_create
from studies.database import violates
from studies.models import User
from studies.services import audit_record

CHUNK = 256  # answers judged and stored at a time: what a kill costs at the most

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Waiting:
    """An answer that the classifier has not judged as it stands."""

    answer_id: int
    text: str
    changed_at: datetime


def own_round(classifier: Classifier) -> Round:
    """The round of the classifier's judgements, made at the first application. For whoever holds the classifier."""
    known = Round.objects.filter(
        study=classifier.study_id, purpose=Round.Purpose.AUTOMATIC, judge=classifier.judge_id
    ).first()
    if known is not None:
        return known
    return automatic_round_create(study=classifier.study, rubric=classifier.rubric, judge=classifier.judge)


@transaction.atomic
def application_create(
    *, classifier: Classifier, actor: User | None, enqueue: bool = True, on_arrival: bool = False
) -> Application:
    """Ask for it; where it is being done already, that one.

    Raises ClassifierError not_finished, imported, round_closed.
    """
    locked = (
        Classifier.objects.select_for_update(of=("self",))
        .select_related("study", "rubric", "judge")
        .get(pk=classifier.pk)
    )
    if locked.state != JobState.FINISHED:
        raise ClassifierError("not_finished")
    if locked.imported:
        raise ClassifierError("imported")
    known = Application.objects.filter(classifier=locked, state__in=UNFINISHED).first()
    if known is None:
        round_ = own_round(locked)
        if round_.closed_at is not None:
            raise ClassifierError("round_closed")
        known = Application.objects.create(classifier=locked, round=round_, created_by=actor, on_arrival=on_arrival)
        detail = {"on_arrival": on_arrival}
        audit_record(actor=actor, study=locked.study, action="application_create", target=known, detail=detail)
    pk = known.pk
    if enqueue:
        transaction.on_commit(lambda: application_enqueue(pk))
    return known


def application_work(application_id: int, *, also: Progress | None = None, chunk: int = CHUNK) -> bool:
    """Do it if it waits, or was left by a worker that died. False: nothing to do, or another worker is at it."""
    with job_lock(Application, application_id) as taken:
        attempt = job_claim(Application, application_id) if taken else None
        if attempt is None:
            return False
        application = Application.objects.select_related("classifier__judge", "classifier__study", "round").get(
            pk=application_id
        )
        try:
            _apply(application, attempt, JobProgress(Application, application_id, attempt, also), chunk)
        except StoppedError:
            log.info("classifier_application_stopped", application=application_id, attempt=attempt)
        except ClassifierError as error:
            job_fail(Application, application_id, attempt, error)
        except Exception as error:
            job_fail(Application, application_id, attempt, error)
            raise  # for the worker's log
    return True


def _apply(application: Application, attempt: int, progress: Progress, chunk: int) -> None:
    """Chunk by chunk, sorted by length within each. Progress counts the answers that had to be judged at the start."""
    classifier = application.classifier
    read_at = timezone.now()
    waiting = answers_waiting(classifier)
    total = len(waiting)
    progress(0, total)
    if waiting:
        model = model_of(classifier)
        criteria = {criterion.code: criterion for criterion in classifier.criteria.all()}
        for start in range(0, total, chunk):
            part = waiting[start : start + chunk]
            said, cut = recipes.say(
                model, [answer.text for answer in part], lambda *_, start=start: progress(start, total)
            )
            verdicts = [(criteria[task.code], column) for task, column in zip(model.tasks, said, strict=True)]
            _store(application, attempt, part, verdicts, read_at, sum(cut))
            progress(start + len(part), total)
    finished = Application.objects.filter(pk=application.pk, attempt=attempt, state=JobState.RUNNING)
    finished.update(state=JobState.FINISHED, finished_at=timezone.now(), done=total, total=total)


def model_of(classifier: Classifier) -> recipes.Model:
    """The finished classifier, its weights compared with the row's hash. Raises ClassifierError."""
    if classifier.state != JobState.FINISHED:
        raise ClassifierError("not_finished")
    if classifier.imported:
        raise ClassifierError("imported")
    folder = storing.folder_of(classifier.pk, classifier.weights_hash)
    return recipes.load(
        folder,
        weights_hash=classifier.weights_hash,
        bf16=settings.ML_HALF_PRECISION,
        threads=settings.ML_THREADS or None,
    )


def answers_waiting(classifier: Classifier) -> list[Waiting]:
    """Given answers of sittings that are not withdrawn, without a live judgement made since they were last changed.

    Refusals are 0 by rule and are not judged. Two queries.
    """
    criteria = classifier.criteria.count()
    judged: dict[int, tuple[int, datetime]] = {}
    rows = Judgement.objects.filter(
        judge=classifier.judge_id, round__study=classifier.study_id, retracted_at__isnull=True
    ).values_list("answer_id", "made_at")
    for answer_id, made_at in rows.iterator(chunk_size=20_000):
        number, oldest = judged.get(answer_id, (0, made_at))
        judged[answer_id] = (number + 1, min(oldest, made_at))
    answers = (
        Answer.objects.filter(
            sitting__instrument__study=classifier.study_id,
            outcome=Answer.Outcome.GIVEN,
            stimulus__is_practice=False,
        )
        .exclude(sitting__standing=Sitting.Standing.WITHDRAWN)
        .order_by("pk")
        .values_list(
            "pk", "text", "changed_at", "stimulus__instrument__lower_case", "stimulus__instrument__refusal_below"
        )
    )
    found = []
    for pk, text, changed_at, lower_case, below in answers.iterator(chunk_size=5_000):
        number, oldest = judged.get(pk, (0, changed_at))
        if number >= criteria and oldest >= changed_at:
            continue
        if not is_refusal(text, below):
            found.append(Waiting(pk, display_text(text, lower_case=lower_case), changed_at))
    return found


STANDING = "SELECT id, changed_at FROM corpus_answer WHERE id = ANY(%s) ORDER BY id FOR SHARE"
RETRACT = """
UPDATE scoring_judgement SET retracted_at = clock_timestamp()
WHERE round_id = %s AND judge_id = %s AND answer_id = ANY(%s) AND retracted_at IS NULL
"""
INSERT = """
INSERT INTO scoring_judgement
    (round_id, answer_id, criterion_id, judge_id, value, confidence, not_attempt, reason, made_at)
SELECT %s, answer, criterion, %s, value, confidence, FALSE, '', %s
FROM unnest(%s::bigint[], %s::bigint[], %s::float8[], %s::float8[]) AS said(answer, criterion, value, confidence)
"""


@transaction.atomic
def _store(
    application: Application,
    attempt: int,
    part: Sequence[Waiting],
    verdicts: Sequence[tuple[Criterion, list[Said]]],
    read_at: datetime,
    cut: int,
) -> None:
    """The judgements of a chunk, all or none; those of an earlier text are retracted. An answer that was changed
    meanwhile is left to the next application: what was read is not what stands. Its change may have begun before the
    reading and ended after it, so the rows are held and compared, and not the clock. Raises StoppedError,
    ClassifierError round_closed."""
    locked = Application.objects.select_for_update().get(pk=application.pk)
    if (locked.attempt, locked.state) != (attempt, JobState.RUNNING):
        raise StoppedError
    with connection.cursor() as cursor:
        cursor.execute(STANDING, [[answer.answer_id for answer in part]])
        standing = dict(cursor.fetchall())
    is_as_read = [standing.get(answer.answer_id) == answer.changed_at for answer in part]
    columns: tuple[list[Any], ...] = ([], [], [], [])
    for criterion, column in verdicts:
        for answer, said in compress(zip(part, column, strict=True), is_as_read):
            for place, value in enumerate((answer.answer_id, criterion.pk, said.value, said.confidence)):
                columns[place].append(value)
    judge, round_ = application.classifier.judge_id, application.round_id
    try:
        with connection.cursor() as cursor:
            cursor.execute(RETRACT, [round_, judge, [answer.answer_id for answer in compress(part, is_as_read)]])
            cursor.execute(INSERT, [round_, judge, read_at, *columns])
    except IntegrityError as error:
        if violates(error, "judgement_of_open_round"):
            raise ClassifierError("round_closed") from error
        raise
    if cut:
        locked.truncated += cut
        locked.save(update_fields=["truncated"])
