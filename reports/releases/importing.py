"""A study made again from a release: all of it or nothing, and only if it comes to the labels that the release states.

The order is that of the layers: the test, who took it, what models were asked, how it was judged. At the end labels and
scores are counted here and compared with those in the file, so that a dataset whose rows were changed by a hand that
also wrote new digests is refused where the change matters.
"""

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from django.db import DataError, IntegrityError, transaction

from corpus.models import Respondent
from corpus.restoring import SittingUnrestorableError
from corpus.services import InstrumentIncompleteError
from reports.models import ReleaseImport
from reports.releases.archive import ArchiveRefusedError
from reports.releases.judged import JudgedImport
from reports.releases.reading import ReadRelease, release_read
from reports.releases.rows import measured
from reports.releases.verifying import labels_verify, scores_verify
from scoring.classifiers.evaluating import classifier_evaluate
from scoring.classifiers.problems import ClassifierError
from scoring.restoring import SharingUnknownError
from scoring.services import ValueOutsideScaleError, rules_apply
from studies.models import Study, User
from studies.services import audit_record, study_create


class StudyTakenError(Exception):
    """A study with this address is there; the import can be given another one."""


class DryRunOver(Exception):  # noqa: N818  # no error: it undoes what a dry run has stored
    pass


@dataclass
class Imported:
    """What an import has done, or would do."""

    manifest: dict[str, Any]
    counts: dict[str, int] = field(default_factory=dict)
    left_aside: dict[str, int] = field(default_factory=dict)  # rows that have no place here, by what they are
    study: Study | None = None  # None after a dry run
    already: ReleaseImport | None = None


def release_import(
    *, stream: BinaryIO, name: str, slug: str = "", actor: User | None, dry_run: bool = False
) -> Imported:
    """Make a study of the release, once in an installation; or (`dry_run`) do all of it and take it back.

    `slug` is the new study's address, the release's own where it is empty. Raises ArchiveRefusedError, StudyTakenError.
    """
    read = release_read(stream)
    done = Imported(read.manifest)
    try:
        with transaction.atomic():
            done.already = _already(read)
            if done.already is None:
                done.study = _study_make(read, done, slug or read.manifest["study"]["slug"], name, actor)
            if dry_run:
                raise DryRunOver
    except DryRunOver:
        done.study = None
    except IntegrityError as error:  # a rule of the database that no check here has named
        if "study_unique_slug" in str(error):
            raise StudyTakenError from error
        if "releaseimport_once" in str(error):
            raise StudyTakenError from error
        raise ArchiveRefusedError("rule", str(error).partition("\n")[0][:200]) from error
    except (DataError, OverflowError) as error:  # a number that no column holds, a time that no calendar has
        raise ArchiveRefusedError("rule", str(error).partition("\n")[0][:200]) from error
    return done


def _already(read: ReadRelease) -> ReleaseImport | None:
    same = ReleaseImport.objects.filter(content_sha256=read.content_sha256)
    return same.select_related("study").first()


def _study_make(read: ReadRelease, done: Imported, slug: str, name: str, actor: User | None) -> Study:
    """Raises ArchiveRefusedError."""
    told = read.manifest["study"]
    title = measured(told["title"], 200, "title")
    study = study_create(slug=slug, title=title, actor=actor, simulated=told["simulated"])
    made = JudgedImport(read, study, actor)
    try:
        _steps(made)
    except SittingUnrestorableError as error:
        raise ArchiveRefusedError("sitting", f"{error.code}: {error.detail}") from error
    except InstrumentIncompleteError as error:
        raise ArchiveRefusedError("instrument", str(error)[:200]) from error
    except ValueOutsideScaleError as error:
        raise ArchiveRefusedError("scale", str(error)) from error
    except SharingUnknownError as error:
        raise ArchiveRefusedError("sharing") from error
    labels_verify(study, read, made.answers)
    scores_verify(study, read, made.sittings)
    for classifier in made.classifiers.values():
        with suppress(ClassifierError):  # nobody of its test side is released, or has labels
            classifier_evaluate(classifier=classifier, actor=actor)
    _record(made, done, name)
    return study


def _steps(made: JudgedImport) -> None:
    for step in (
        made.make_rubrics,
        made.make_instruments,
        made.make_accepted_forms,
        made.make_respondents,
        made.make_sittings,
        made.make_surveys,
        made.make_prompts,
        made.make_experiments,
        made.make_splits,
        made.make_judges,
        made.make_rounds,
        made.make_judgements,
        made.make_campaigns,
        made.make_decisions,
    ):
        step()
    for rubric in made.rubrics.values():
        rules_apply(study=made.study, rubric=rubric)


def _record(made: JudgedImport, done: Imported, name: str) -> None:
    read = made.read
    done.counts = {
        "people": sum(row.kind == Respondent.Kind.HUMAN for row in made.respondents.values()),
        "models": len(read["models"]),
        "sittings": len(made.sittings),
        "answers": len(made.answers),
        "automatic_judges": len(made.judges) - len(made.raters),
        "judgements": made.n_judgements,
        "labels": len(read["labels"]),
    }
    done.left_aside = dict(made.left_aside)
    if timed := sum(row["duration_ms"] is not None for row in read["answers"]):
        done.left_aside["timings"] = timed
    row = ReleaseImport.objects.create(
        study=made.study,
        content_sha256=read.content_sha256,
        file={"name": name[:200], "bytes": read.size, "sha256": read.sha256},
        manifest=read.manifest,
        counts=done.counts | {"left_aside": done.left_aside},
        made_by=made.actor,
    )
    detail = {"content_sha256": row.content_sha256, **done.counts}
    audit_record(actor=made.actor, study=made.study, action="release_import", target=row, detail=detail)
