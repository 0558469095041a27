"""Rounds of judgements of a published dataset, as they stand in it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import islice
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from scoring.models import AcceptedForm, Classifier, Criterion, JobState, Judge, Round, Rubric, Split, SplitSide
from scoring.services import ValueOutsideScaleError, round_close
from studies.models import Study, User

BATCH = 20_000
# Written out: a model instance for each of a hundred thousand judgements takes several times as long.
COLUMNS = "round_id, answer_id, criterion_id, judge_id, value, not_attempt, confidence, made_at"
GIVEN = """
unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::float8[], %s::bool[], %s::float8[],
    %s::timestamptz[], %s::bigint[])
    AS given(round_id, answer_id, criterion_id, judge_id, value, not_attempt, confidence, made_at, origin)
"""
INSERT = f"INSERT INTO scoring_judgement ({COLUMNS}, reason) SELECT {COLUMNS}, '' FROM {GIVEN}"  # noqa: S608
INSERT_SHARED = f"""
INSERT INTO scoring_judgement ({COLUMNS}, reason, shared_from_id)
SELECT {", ".join(f"given.{name}" for name in COLUMNS.split(", "))}, '', original.id
FROM {GIVEN} JOIN scoring_judgement AS original
    ON original.round_id = given.round_id AND original.answer_id = given.origin
    AND original.criterion_id = given.criterion_id AND original.judge_id = given.judge_id
    AND original.retracted_at IS NULL AND original.shared_from_id IS NULL
"""  # noqa: S608 (names of our own columns)


class SharingUnknownError(Exception):
    """A copy of a judgement names an original that is not there or is a copy itself."""


@dataclass(frozen=True, slots=True)
class RestoredJudgement:
    round_id: int
    answer_id: int
    criterion: Criterion
    judge_id: int
    value: float
    not_attempt: bool
    confidence: float | None
    shared_from_answer: int | None
    order: int  # among the judgements of its answer: the latest of a judge stands


@dataclass(frozen=True, slots=True)
class RestoredClassifier:
    title: str
    recipe: str
    base_model: str
    criteria: Sequence[Criterion]
    parameters: Mapping[str, Any]  # with `seed` and `held_out`, ids of stimuli here
    n_train: int
    data_hash: str
    weights_hash: str
    trained_on: date | None  # None: not known; the day of this import stands in


@transaction.atomic
def split_restore(*, study: Study, seed: int, fraction: float, known_as: str, sides: Mapping[int, bool]) -> Split:
    """A split as it was made elsewhere. `sides`: respondent id → whether it trains; `known_as`: 64 hexadecimal digits.

    These stand where the digest of the people is: no split that is made here is taken for this one, for the same seed
    divides the same people otherwise where they have other numbers.
    """
    made = Split.objects.create(study=study, seed=seed, fraction=fraction, people_hash=known_as)
    SplitSide.objects.bulk_create(
        (SplitSide(split=made, respondent_id=pk, trains=trains) for pk, trains in sides.items()), batch_size=5_000
    )
    return made


@transaction.atomic
def classifier_restore(*, split: Split, given: RestoredClassifier, actor: User | None) -> Classifier:
    """A judge that has judged elsewhere and cannot judge here: its weights are not in a published dataset."""
    now = timezone.now()
    trained = datetime.combine(given.trained_on, time(), UTC) if given.trained_on else now
    made = Classifier.objects.create(
        judge=Judge.objects.create(kind=Judge.Kind.CLASSIFIER),
        study=split.study,
        rubric=given.criteria[0].rubric,
        split=split,
        title=given.title,
        recipe=given.recipe,
        base_model=given.base_model,
        parameters=dict(given.parameters),
        n_train=given.n_train,
        data_hash=given.data_hash,
        weights_hash=given.weights_hash,
        imported=True,
        state=JobState.FINISHED,
        finished_at=trained,
        created_by=actor,
    )
    made.criteria.set(given.criteria)
    return made


@transaction.atomic
def accepted_forms_restore(*, stimulus_id: int, forms: Sequence[tuple[str, str, bool]]) -> None:
    """The accepted forms of a stimulus that has none yet, as given word, form, and whether it has been taken back."""
    now = timezone.now()
    AcceptedForm.objects.bulk_create(
        AcceptedForm(
            stimulus_id=stimulus_id, lemma=lemma, form=form, version=version, retired_at=now if retired else None
        )
        for version, (lemma, form, retired) in enumerate(forms, start=1)
    )


def round_restore(
    *,
    study: Study,
    rubric: Rubric,
    purpose: str,
    guideline_version: int | None,
    adjudicates: Round | None,
    judge: Judge | None,
) -> Round:
    """An empty round, open until `rounds_close`. What raters judged elsewhere is *imported* here.

    `judge` is that of an automatic round, whose judgements alone it holds.
    """
    if purpose == Round.Purpose.RATING:
        purpose = Round.Purpose.IMPORTED
    return Round.objects.create(
        study=study,
        rubric=rubric,
        purpose=purpose,
        guideline_version=guideline_version,
        adjudicates=adjudicates,
        judge=judge,
    )


@transaction.atomic
def judgements_restore(judgements: Iterable[RestoredJudgement]) -> int:
    """The judgements, copies after their originals. One insert per 20,000 of them.

    When they were made is not in a published dataset: the time of this import stands in, a microsecond later for each
    of an answer, so that their order is kept. Raises ValueOutsideScaleError, SharingUnknownError.
    """
    now = timezone.now()
    count, copies = 0, []
    with connection.cursor() as cursor:

        def insert(statement: str, rows: Iterator[tuple[Any, ...]]) -> Iterator[tuple[int, int]]:
            while batch := list(islice(rows, BATCH)):
                cursor.execute(statement, [*map(list, zip(*batch, strict=True))])
                yield len(batch), cursor.rowcount

        def originals() -> Iterator[tuple[Any, ...]]:
            for one in judgements:
                if one.shared_from_answer is None:
                    yield _row(one, now)
                else:
                    copies.append(_row(one, now))

        count += sum(made for _told, made in insert(INSERT, originals()))
        for told, made in insert(INSERT_SHARED, iter(copies)):
            if told != made:
                raise SharingUnknownError
            count += made
    return count


def _row(given: RestoredJudgement, now: datetime) -> tuple[Any, ...]:
    """Raises ValueOutsideScaleError."""
    if given.value not in given.criterion.scale or (given.not_attempt and given.value != 0):
        raise ValueOutsideScaleError(f"{given.criterion.code}: {given.value}")
    return (
        given.round_id,
        given.answer_id,
        given.criterion.pk,
        given.judge_id,
        float(given.value),
        given.not_attempt,
        given.confidence,
        now + timedelta(microseconds=given.order),
        given.shared_from_answer,
    )


@transaction.atomic
def rounds_close(rounds: Sequence[Round]) -> None:
    for one in rounds:
        round_close(round_id=one.pk)
        one.refresh_from_db(fields=["closed_at"])
