"""References are made, changed while no campaign has copied them, put aside and taken back. None is deleted.

The study is locked first, as by whoever opens a campaign or takes a withdrawn answer out: so no campaign copies a
reference that is being changed.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction

from annotation.errors import (
    AnswerNotUsableError,
    ReferenceExistsError,
    ReferencesRefusedError,
    ReferenceStaleError,
    ReferenceUsedError,
)
from annotation.models import Reference
from annotation.places import verdicts_of
from annotation.reference_selectors import answers_usable, criteria_of, items_made_of
from corpus.importing import Problem
from corpus.models import Answer
from scoring.models import Rubric
from scoring.services import RUBRICS
from studies.database import violates
from studies.models import Study, User
from studies.services import audit_record

MAX_EXPLANATION = 2_000  # characters


@dataclass(frozen=True, kw_only=True)
class Right:
    """What is right of an answer and what it is for. `values`: criterion code → value, unread where `not_attempt`."""

    purpose: str
    values: Mapping[str, float]
    not_attempt: bool = False
    explanation: str = ""

    def expected(self, rubric: Rubric) -> dict[str, float]:
        """Of every judged criterion, as `Reference.expected` holds it.

        Raises ValuesMissingError, scoring's ValueOutsideScaleError.
        """
        verdicts = verdicts_of(criteria_of(rubric), self.values, not_attempt=self.not_attempt)
        return {criterion.code: verdict.value for criterion, verdict in verdicts.items()}


@dataclass(frozen=True)
class FileRow:
    """What a file says of one answer. `line`: where, to name it."""

    line: int
    blind_id: UUID
    right: Right


@dataclass(frozen=True)
class Imported:
    """How many rows of a file were new, changed something, or said what is known already."""

    new: int
    changed: int
    same: int


def state_of(reference: Reference) -> str:
    """What a page has seen of a reference; differs once anything of it is changed or blanked."""
    seen = [reference.purpose, reference.expected, reference.not_attempt, reference.explanation]
    return hashlib.sha256(json.dumps(seen, sort_keys=True).encode()).hexdigest()[:16]


def _study_lock(study: Study) -> None:
    list(Study.objects.select_for_update(no_key=True).filter(pk=study.pk).values_list("pk"))


def _told(reference: Reference) -> dict[str, Any]:
    """For the log, without the explanation: participants may be quoted there."""
    return {
        "purpose": str(reference.purpose),
        "expected": reference.expected,
        "not_attempt": reference.not_attempt,
    }


@transaction.atomic
def reference_add(*, study: Study, answer: Answer, rubric: str, right: Right, actor: User) -> Reference:
    """Say what is right of an answer; campaigns that open later and ask for such answers copy it.

    Raises AnswerNotUsableError, ReferenceExistsError, ValuesMissingError, scoring's ValueOutsideScaleError.
    """
    _study_lock(study)
    if not answers_usable(study).filter(pk=answer.pk).exists():
        raise AnswerNotUsableError
    judged_by = RUBRICS[rubric]()
    expected = right.expected(judged_by)
    try:
        with transaction.atomic():
            reference = Reference.objects.create(
                study=study,
                rubric=judged_by,
                answer=answer,
                purpose=right.purpose,
                expected=expected,
                not_attempt=right.not_attempt,
                explanation=right.explanation,
            )
    except IntegrityError as error:
        if violates(error, "reference_one_per_answer"):
            raise ReferenceExistsError from error
        raise
    audit_record(
        actor=actor,
        study=study,
        action="reference_add",
        target=reference,
        detail={"rubric": judged_by.slug, **_told(reference)},
    )
    return reference


@transaction.atomic
def reference_change(*, reference: Reference, right: Right, seen: str, actor: User) -> Reference:
    """Correct a reference that no campaign has copied. `seen` is the `state_of` that the author had before them.

    The same change sent twice is one. Raises ReferenceUsedError, ReferenceStaleError, AnswerNotUsableError,
    ValuesMissingError, scoring's ValueOutsideScaleError.
    """
    _study_lock(reference.study)
    stored = _present(reference)
    expected = right.expected(stored.rubric)
    wanted = (right.purpose, expected, right.not_attempt, right.explanation)
    if (stored.purpose, stored.expected, stored.not_attempt, stored.explanation) == wanted:
        return stored
    if stored.answer.outcome == Answer.Outcome.WITHDRAWN:
        raise AnswerNotUsableError
    if items_made_of(stored).exists():
        raise ReferenceUsedError
    if state_of(stored) != seen:
        raise ReferenceStaleError
    before = _told(stored)
    stored.purpose, stored.expected, stored.not_attempt, stored.explanation = wanted
    stored.save(update_fields=["purpose", "expected", "not_attempt", "explanation"])
    audit_record(
        actor=actor,
        study=stored.study,
        action="reference_change",
        target=stored,
        detail={"before": before, "after": _told(stored)},
    )
    return stored


@transaction.atomic
def reference_retire(*, reference: Reference, actor: User) -> None:
    """Campaigns that open later do without it; those that have copied it keep their copy."""
    _study_lock(reference.study)
    if Reference.objects.filter(pk=reference.pk, is_active=True).update(is_active=False):
        audit_record(actor=actor, study=reference.study, action="reference_retire", target=reference)


@transaction.atomic
def reference_restore(*, reference: Reference, actor: User) -> None:
    """Raises AnswerNotUsableError: what its author has withdrawn does not come back."""
    _study_lock(reference.study)
    if _present(reference).answer.outcome == Answer.Outcome.WITHDRAWN:
        raise AnswerNotUsableError
    if Reference.objects.filter(pk=reference.pk, is_active=False).update(is_active=True):
        audit_record(actor=actor, study=reference.study, action="reference_restore", target=reference)


@transaction.atomic
def references_import(
    *, study: Study, rubric: str, rows: Sequence[FileRow], actor: User, dry_run: bool = False
) -> Imported:
    """All rows or none. What the file does not name stays as it is, and so does whether a reference is put aside.

    A dry run comes to the same result and writes nothing. The same file twice changes nothing. Raises
    ReferencesRefusedError with every problem; scoring's ValueOutsideScaleError and ValuesMissingError of values that no
    file was read for.
    """
    _study_lock(study)
    judged_by = RUBRICS[rubric]()
    answers = Answer.objects.filter(stimulus__instrument__study=study).in_bulk(
        [row.blind_id for row in rows], field_name="blind_id"
    )
    known = {one.answer_id: one for one in Reference.objects.filter(rubric=judged_by, answer__in=answers.values())}
    counts = Counter[str]()
    problems = []
    for row in rows:
        answer = answers.get(row.blind_id)
        if answer is None:
            problems.append(Problem("unknown_answer", row.line))
            continue
        stored = known.get(answer.pk)
        try:
            counts[_row_take(study, rubric, answer, stored, row.right, actor)] += 1
        except AnswerNotUsableError:
            problems.append(Problem("unusable_answer", row.line))
        except ReferenceUsedError:
            problems.append(Problem("used_reference", row.line))
    if problems:
        raise ReferencesRefusedError(problems)
    if dry_run:
        transaction.set_rollback(True)
    else:
        audit_record(
            actor=actor,
            study=study,
            action="references_import",
            target=study,
            detail={"rubric": rubric, **{name: counts[name] for name in ("new", "changed", "same")}},
        )
    return Imported(counts["new"], counts["changed"], counts["same"])


def _row_take(study: Study, rubric: str, answer: Answer, stored: Reference | None, right: Right, actor: User) -> str:
    if stored is None:
        reference_add(study=study, answer=answer, rubric=rubric, right=right, actor=actor)
        return "new"
    before = state_of(stored)
    after = reference_change(reference=stored, right=right, seen=before, actor=actor)
    return "same" if state_of(after) == before else "changed"


def _present(reference: Reference) -> Reference:
    """As it stands after the wait for the study, which every writer of references locks."""
    return Reference.objects.select_related("answer", "rubric", "study").get(pk=reference.pk)
