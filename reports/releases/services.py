"""The only writer of releases. A row is made first, then its archive; withdrawal recalls it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone

from corpus.models import Answer
from reports.models import Release, ReleaseMember
from reports.releases.archive import file_sha256
from reports.releases.building import Built, release_write
from reports.releases.files import coming_file, file_keep, release_files_delete, release_path
from reports.releases.policy import Policy
from reports.releases.selection import published, still_published
from reports.selectors import instruments_of, rubric_of
from scoring.services import rules_apply
from studies.models import Study, User
from studies.services import audit_record

State = Release.State
LOCK = 0x4C5252  # the advisory locks of releases: whoever makes one holds its lock, and a dead one holds none
AT_ONCE = 5_000
"""Answers up to which a release is made within the request: it takes a few seconds."""


class ReleaseEmptyError(Exception):
    """Nobody's answers may be published: nothing was made."""


class ReleaseUnderWayError(Exception):
    """Another release of the study is being made: one follows the other."""


class ReleaseOvertakenError(Exception):
    """While it was made somebody took their answers back, or another worker took over: nothing was stored."""


@transaction.atomic
def release_begin(*, study: Study, policy: Policy, actor: User | None, note: str = "") -> Release:
    """A release that waits to be made. What it is to hold beyond the answers is fixed from here on.

    Raises ReleaseEmptyError, ReleaseUnderWayError.
    """
    study = Study.objects.select_for_update(no_key=True).get(pk=study.pk)
    if Release.objects.filter(study=study, state__in=[State.WAITING, State.BUILDING]).exists():
        raise ReleaseUnderWayError
    if not published(study).exists():
        raise ReleaseEmptyError
    last = Release.objects.filter(study=study).order_by("-number").first()
    number = last.number + 1 if last else 1
    release = Release(study=study, number=number, policy=policy.as_json(), note=note, made_by=actor)
    if last is not None:
        release.salt = last.salt
    release.save()
    detail = {"number": release.number, "policy": release.policy}
    audit_record(actor=actor, study=study, action="release_begin", target=release, detail=detail)
    return release


def release_build(*, release_id: int) -> bool:
    """Make the archive of a release that waits, or of one whose maker has died. Safe to repeat, and twice at once.

    False: there was nothing to do. Raises ReleaseOvertakenError.
    """
    with _made_here(release_id) as is_mine:
        attempt = _claim(release_id) if is_mine else None
        if attempt is None:
            return False
        try:
            _build(release_id, attempt)
        except Exception as error:
            _fail(release_id, attempt, error)
            raise
    return True


def _build(release_id: int, attempt: int) -> None:
    """Raises ReleaseOvertakenError."""
    release = Release.objects.select_related("study").get(pk=release_id)
    offered = Release.objects.filter(study=release.study_id, state__in=[State.READY, State.RECALLED])
    release.replaces = offered.order_by("-number").first()
    _rules_apply(release.study)
    release_files_delete(release)  # of an attempt that died
    with coming_file(release) as (path, stream):
        built = release_write(release, stream)
        stream.flush()
        release.sha256, release.size = file_sha256(path), path.stat().st_size
        file_keep(path, stream, release_path(release))
    try:
        _finish(release, attempt, built)
    except BaseException:
        release_files_delete(release)
        raise


@contextmanager
def _made_here(release_id: int) -> Iterator[bool]:
    """Whether this process alone makes the release; the lock ends with the connection, however the process ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", [LOCK, release_id])
        (is_mine,) = cursor.fetchone()
    try:
        yield is_mine
    finally:
        if is_mine:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s, %s)", [LOCK, release_id])


def _rules_apply(study: Study) -> None:
    for rubric in {rubric_of(instrument) for instrument in instruments_of(study)}:
        rules_apply(study=study, rubric=rubric)


def _claim(release_id: int) -> int | None:
    taken = Release.objects.filter(pk=release_id, state__in=[State.WAITING, State.BUILDING]).update(
        state=State.BUILDING, attempt=F("attempt") + 1, problem=""
    )
    return Release.objects.values_list("attempt", flat=True).get(pk=release_id) if taken else None


@transaction.atomic
def _finish(release: Release, attempt: int, built: Built) -> None:
    """The study's lock is the one that a withdrawal takes: whoever took back meanwhile is seen here.

    Raises ReleaseOvertakenError.
    """
    study = Study.objects.select_for_update(no_key=True).get(pk=release.study_id)
    mine = Release.objects.select_for_update(of=("self",)).filter(pk=release.pk, attempt=attempt, state=State.BUILDING)
    if mine.first() is None or not still_published(study, built.people):
        raise ReleaseOvertakenError
    ReleaseMember.objects.bulk_create(
        [ReleaseMember(release=release, respondent_id=pk) for pk in sorted(built.people)], batch_size=5_000
    )
    release.state, release.counts = State.READY, built.counts
    release.files = [one.as_json() for one in built.files]
    release.content_sha256 = built.content_sha256
    fields = ["state", "replaces", "counts", "files", "content_sha256", "sha256", "size"]
    release.save(update_fields=fields)
    detail = {"number": release.number, "sha256": release.sha256, "content_sha256": release.content_sha256}
    audit_record(actor=release.made_by, study=study, action="release_ready", target=release, detail=detail)


def _fail(release_id: int, attempt: int, error: Exception) -> None:
    overtaken = isinstance(error, ReleaseOvertakenError)
    Release.objects.filter(pk=release_id, attempt=attempt, state=State.BUILDING).update(
        state=State.FAILED, problem="overtaken" if overtaken else type(error).__name__
    )


def is_large(study: Study) -> bool:
    """One query."""
    return Answer.objects.filter(sitting__in=published(study).values("pk")).count() > AT_ONCE


def releases_recall(*, respondent_id: int, blank: Callable[[str], str], study: Study) -> int:
    """Stop offering every release that holds this person's answers, and delete their archives.

    Within the caller's transaction, which holds the study's lock. The files go when it has been committed; what a crash
    just then leaves, workers sweep at their start. A successor is made by a researcher, who sees what would be in it.
    `blank` takes the person's words out of the notes. Returns how many were recalled.
    """
    held = Release.objects.filter(state=State.READY, members__respondent=respondent_id).select_for_update(of=("self",))
    recalled = list(held)
    for release in recalled:
        release.state, release.recalled_at = State.RECALLED, timezone.now()
        release.save(update_fields=["state", "recalled_at"])
        transaction.on_commit(partial(release_files_delete, release))
    for release in Release.objects.filter(study=study).exclude(note=""):
        note = blank(release.note)
        if note != release.note:
            release.note = note[:300]
            release.save(update_fields=["note"])
    return len(recalled)
