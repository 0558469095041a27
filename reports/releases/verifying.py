"""Whether a study that was made from a release comes to what the release states."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from corpus.models import Answer, Sitting
from reports.exports import LABELS, SCORES, label_rows, score_rows
from reports.label_votes import votes_counted, votes_shown
from reports.releases.archive import ArchiveRefusedError
from reports.releases.reading import ReadRelease
from reports.releases.tables import SCORE_FIGURES
from scoring.services import paper_rubric
from studies.models import Study

LABEL_FIGURES = ("label", "basis", "votes", "votes_for", "reason")


def labels_verify(study: Study, read: ReadRelease, answers: Mapping[UUID, Answer]) -> None:
    """Raises ArchiveRefusedError `labels`, with the first that differs."""
    # Before format 3 the labels of rules stood with the votes on what raters were asked.
    votes = votes_shown if read.manifest["format"] >= 3 else votes_counted
    rows = (dict(zip(LABELS, row, strict=True)) for row in label_rows(study, paper_rubric(), votes=votes))
    here = {(row["answer"], row["criterion"]): tuple(row[name] for name in LABEL_FIGURES) for row in rows}
    told = {}
    for row in read["labels"]:
        answer = answers.get(row["answer"])
        if answer is None:
            raise ArchiveRefusedError("reference", f"labels: {row['answer']}")
        told[answer.blind_id, row["criterion"]] = tuple(row[name] for name in LABEL_FIGURES)
    _compare("labels", told, here)


def scores_verify(study: Study, read: ReadRelease, sittings: Mapping[tuple[Any, ...], Sitting]) -> None:
    """Raises ArchiveRefusedError `scores`, with the first that differs."""
    rows = (dict(zip(SCORES, row, strict=True)) for row in score_rows(study, paper_rubric()))
    names = ("respondent", "instrument", "instrument_version", "sitting")
    here = {tuple(row[name] for name in names): tuple(row[name] for name in SCORE_FIGURES) for row in rows}
    told = {}
    for row in read["scores"]:
        sitting = sittings.get(tuple(row[name] for name in names))
        if sitting is None:
            raise ArchiveRefusedError("reference", f"scores: {row['respondent']}")
        key = (sitting.respondent.public_id, *(row[name] for name in names[1:]))
        told[key] = tuple(row[name] for name in SCORE_FIGURES)
    _compare("scores", told, here)


def _compare(code: str, told: dict[Any, Any], here: dict[Any, Any]) -> None:
    if told.keys() != here.keys():
        raise ArchiveRefusedError(code, ", ".join(map(str, next(iter(told.keys() ^ here.keys())))))
    for key, figures in told.items():
        if here[key] != figures:
            raise ArchiveRefusedError(code, ", ".join(map(str, key)))
