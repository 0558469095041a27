"""The only writer of rubrics, judges, rounds and judgements."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from django.db import IntegrityError, connection, transaction
from django.db.models import F, FilteredRelation, Q
from django.utils import timezone

from corpus.models import Answer
from scoring.accepted import accepted_forms_changed, accepted_forms_ensure, tasks_of
from scoring.models import Criterion, Judge, Judgement, Round, Rubric, Rule
from scoring.rules import sequence_equal
from scoring.vocabulary import Task, vocabulary_match
from studies.database import joined_at_once, planned_cursor, violates
from studies.models import Study

PAPER_RUBRIC = "paper"
# (code, question ru, question en, kind); the questions are those that the study's linguists answered.
PAPER_CRITERIA = [
    ("grammatical", "Грамматически правильно?", "Grammatically correct?", Criterion.Kind.JUDGED),
    ("logical", "Логично?", "Logical?", Criterion.Kind.JUDGED),
    ("order", "Естественный порядок слов?", "Natural word order?", Criterion.Kind.JUDGED),
    ("sequence", "Столько же слов?", "As many words?", Criterion.Kind.RULE),
    ("vocabulary", "Те же слова?", "The same words?", Criterion.Kind.RULE),
]
BESIDE_THE_SCORE = frozenset({"vocabulary"})  # the paper leaves it for future work

# The original children's test, as the study's paper describes it: one point for a correct sentence, 0.5 where the word
# order is broken, 0.25 for a missing, replaced or inserted word, a minor error of meaning or agrammatism, else 0.
CHILDREN_RUBRIC = "children"
CHILDREN_CRITERIA = [
    ("sentence", "Насколько правильно предложение?", "How correct is the sentence?", Criterion.Kind.JUDGED),
]
CHILDREN_SCALE = [1, 0.5, 0.25, 0]


class ValueOutsideScaleError(Exception):
    """A judgement's value is not on its criterion's scale."""


class RoundClosedError(Exception):
    """The round takes no more judgements."""


def paper_rubric() -> Rubric:
    """The rubric of the published study, made at the first call."""
    return _rubric_ensure(PAPER_RUBRIC, "Grammatical, logical, order, sequence", PAPER_CRITERIA, [1, 0])


def children_rubric() -> Rubric:
    """One graded criterion, 1, 0.5, 0.25 or 0, made at the first call."""
    return _rubric_ensure(CHILDREN_RUBRIC, "One grade: 1, 0.5, 0.25, 0", CHILDREN_CRITERIA, CHILDREN_SCALE)


# By slug, the default first: what a campaign can be judged by.
RUBRICS = {PAPER_RUBRIC: paper_rubric, CHILDREN_RUBRIC: children_rubric}


@transaction.atomic
def _rubric_ensure(slug: str, title: str, criteria: Sequence[tuple[str, str, str, str]], scale: list[float]) -> Rubric:
    rubric, created = Rubric.objects.get_or_create(slug=slug, version=1, defaults={"title": title})
    if created:
        Criterion.objects.bulk_create(
            Criterion(
                rubric=rubric,
                position=position,
                code=code,
                question_ru=ru,
                question_en=en,
                kind=kind,
                scale=scale,
                in_score=code not in BESIDE_THE_SCORE,
            )
            for position, (code, ru, en, kind) in enumerate(criteria, start=1)
        )
    return rubric


@dataclass(frozen=True)
class Verdict:
    value: float
    not_attempt: bool = False
    reason: str = ""


@transaction.atomic
def judgements_record(
    *,
    round_id: int,
    answer_id: int,
    judge_id: int,
    verdicts: Mapping[Criterion, Verdict],
    sharing: Collection[int] = (),
) -> int:
    """Set one judge's live judgements of one answer. Returns how many changed.

    A judgement that differs is retracted and a new one added; one that is equal stays as it is, so that the same form
    sent twice leaves one. The judge's row is locked, which puts the posts of one judge in a row and leaves the others
    alone. `sharing`: see `judgements_write`.

    Raises ValueOutsideScaleError, RoundClosedError.
    """
    for criterion, verdict in verdicts.items():
        if verdict.value not in criterion.scale:
            raise ValueOutsideScaleError(f"{criterion.code}: {verdict.value}")
    Judge.objects.select_for_update(no_key=True).get(pk=judge_id)
    return judgements_write(
        round_id=round_id, answer_id=answer_id, judge_id=judge_id, verdicts=verdicts, sharing=sharing
    )


STORED = """
SELECT id, criterion_id, value, not_attempt, reason FROM scoring_judgement
WHERE round_id = %s AND answer_id = %s AND judge_id = %s AND retracted_at IS NULL
"""
RETRACT = """
UPDATE scoring_judgement SET retracted_at = clock_timestamp()
WHERE round_id = %s AND answer_id = ANY(%s) AND judge_id = %s AND criterion_id = ANY(%s) AND retracted_at IS NULL
"""
COLUMNS = "round_id, answer_id, criterion_id, judge_id, value, not_attempt, reason, made_at"
INSERT = f"""
INSERT INTO scoring_judgement ({COLUMNS})
SELECT %s::bigint, %s::bigint, criterion, %s::bigint, value, mark, reason, clock_timestamp()
FROM unnest(%s::bigint[], %s::float8[], %s::bool[], %s::text[]) AS said(criterion, value, mark, reason)
"""  # noqa: S608 (names of our own columns)
INSERT_SHARED = f"""
WITH original AS ({INSERT} RETURNING id, {COLUMNS})
INSERT INTO scoring_judgement ({COLUMNS}, shared_from_id)
SELECT round_id, other, criterion_id, judge_id, value, not_attempt, reason, made_at, original.id
FROM original CROSS JOIN unnest(%s::bigint[]) AS other
"""  # noqa: S608


def judgements_write(
    *,
    round_id: int,
    answer_id: int,
    judge_id: int,
    verdicts: Mapping[Criterion, Verdict],
    sharing: Collection[int] = (),
    replaces: bool = True,
) -> int:
    """As `judgements_record`, within the transaction of a caller that has checked the values and holds a lock which
    puts this judge's writes in a row.

    `sharing` are answers with the same text: each gets a copy that names the original, which is retracted with it.
    `replaces=False`: the caller knows that nothing is stored. One query then, else up to three; they run for every
    judgement of every rater and are written out (docs/benchmarks.md). Raises RoundClosedError.
    """
    with planned_cursor() as cursor:
        stored: dict[int, Any] = {}
        if replaces:
            cursor.execute(STORED, [round_id, answer_id, judge_id])
            stored = {row[1]: row[2:] for row in cursor.fetchall()}
        fresh = [
            (criterion.pk, float(verdict.value), verdict.not_attempt, verdict.reason)
            for criterion, verdict in verdicts.items()
            if stored.get(criterion.pk) != (verdict.value, verdict.not_attempt, verdict.reason)
        ]
        if not fresh:
            return 0
        others = list(sharing)
        parameters: list[Any] = [round_id, answer_id, judge_id, *map(list, zip(*fresh, strict=True))]
        try:
            if stored:
                changed = [row[0] for row in fresh]
                cursor.execute(RETRACT, [round_id, [answer_id, *others], judge_id, changed])
            if others:
                cursor.execute(INSERT_SHARED, [*parameters, others])
            else:
                cursor.execute(INSERT, parameters)
        except IntegrityError as error:
            if violates(error, "judgement_of_open_round"):
                raise RoundClosedError from error
            raise
    return len(fresh)


@transaction.atomic
def round_close(*, round_id: int) -> None:
    """No judgement is added to the round from now on. Waits for those that are being written."""
    round_ = Round.objects.select_for_update().get(pk=round_id)
    if round_.closed_at is None:
        round_.closed_at = timezone.now()
        round_.save(update_fields=["closed_at"])


@transaction.atomic
def judgements_retract(
    *,
    round_id: int,
    answer_id: int,
    judge_id: int,
    but_criteria: Collection[Criterion] = (),
    sharing: Collection[int] = (),
) -> int:
    """Withdraw a judge's live judgements of an answer, and of those that share them; they stay as history.

    Returns how many there were.
    """
    live = Judgement.objects.filter(
        round_id=round_id, answer_id__in=[answer_id, *sharing], judge_id=judge_id, retracted_at__isnull=True
    )
    return live.exclude(criterion__in=but_criteria).update(retracted_at=timezone.now())


@transaction.atomic
def reasons_blank(*, study: Study, answer_ids: Collection[int], blank: Callable[[str], str]) -> int:
    """Take what judges wrote about withdrawn answers away, and quotations of them out of what they wrote elsewhere.

    Retracted judgements too. The values stay. Returns how many changed.
    """
    written = Judgement.objects.exclude(reason="")
    changed = written.filter(answer__in=answer_ids).update(reason="")
    for judgement in written.filter(round__study=study).only("reason").iterator():
        reason = blank(judgement.reason)
        if reason != judgement.reason:
            Judgement.objects.filter(pk=judgement.pk).update(reason=reason)
            changed += 1
    return changed


# The judge of each criterion that is counted.
RULE_JUDGES = {"sequence": "sequence_equal", "vocabulary": "vocabulary_match"}

# A change that was being written while the rules read is dated before they read, by no more than this.
UNSEEN = timedelta(minutes=2)
BATCH = 5_000
AT_ONCE = 4_000  # judgements that a page waits for: about a quarter of a second
# Written out: model instances for forty thousand judgements take two thirds of the time.
INSERT_COUNTED = f"""
INSERT INTO scoring_judgement ({COLUMNS})
SELECT %s::bigint, answer, %s::bigint, %s::bigint, value, FALSE, '', %s::timestamptz
FROM unnest(%s::bigint[], %s::float8[]) AS counted(answer, value)
"""  # noqa: S608 (names of our own columns)


def rules_apply(*, study: Study, rubric: Rubric) -> int:
    """Let the counting rules judge every given answer of the study that they have not judged as it stands.

    Idempotent and cheap: an answer whose text changed is judged anew, and one whose accepted forms did. Returns how
    many judgements were written; none where the rubric has no rule.
    """
    return _rules_apply(study, rubric, None)[0]


def rules_keep_up(*, study: Study, rubric: Rubric) -> int:
    """The same for a page: no more than `AT_ONCE` of them. Returns how many are left for the next, or for the workers.

    What comes in while people answer is less than that; more is there after an import, until a worker has been at it.
    """
    return _rules_apply(study, rubric, AT_ONCE)[1]


@transaction.atomic
def _rules_apply(study: Study, rubric: Rubric, limit: int | None) -> tuple[int, int]:
    """How many judgements were written, and how many answers and criteria are left."""
    criteria = list(rubric.criteria.filter(code__in=RULE_JUDGES, kind=Criterion.Kind.RULE))
    if not criteria:
        return 0, 0
    # One at a time: two would both find the same gaps. No key is locked, so that whoever inserts rows of the study (a
    # participant who begins, a call) does not wait for a results page.
    Study.objects.select_for_update(no_key=True).get(pk=study.pk)
    accepted_forms_ensure(study=study)
    round_, _ = Round.objects.get_or_create(study=study, rubric=rubric, purpose=Round.Purpose.AUTOMATIC, judge=None)
    begun = timezone.now()
    judges = {criterion: rule_judge(code=RULE_JUDGES[criterion.code]) for criterion in criteria}
    with joined_at_once():
        todo = [_to_judge(study, round_, criterion, judge) for criterion, judge in judges.items()]
    room, left = limit, sum(map(len, todo))
    written = 0
    for (criterion, judge), found in zip(judges.items(), todo, strict=True):
        chosen = found if room is None else found[:room]
        written += _rule_apply(study, round_, criterion, judge, chosen, begun)
        left -= len(chosen)
        room = None if room is None else room - len(chosen)
    return written, left


Found = tuple[int, int | None, float | None]  # an answer, and the judgement that it has with its value


def _to_judge(study: Study, round_: Round, criterion: Criterion, judge: Judge) -> list[Found]:
    """Answers not judged, or judged before the text or the stimulus's accepted forms changed. Two queries at most."""
    own = FilteredRelation(
        "judgements",
        condition=Q(
            judgements__round=round_,
            judgements__criterion=criterion,
            judgements__judge=judge,
            judgements__retracted_at__isnull=True,
        ),
    )
    answers = (
        Answer.objects.filter(
            sitting__instrument__study=study, outcome=Answer.Outcome.GIVEN, stimulus__is_practice=False
        )
        .annotate(own=own)
        .filter(_unseen(study, criterion))
        .order_by()
        .values_list("pk", "own__pk", "own__value")
    )
    return list(answers)


def _rule_apply(
    study: Study, round_: Round, criterion: Criterion, judge: Judge, todo: Sequence[Found], begun: datetime
) -> int:
    """No query where nothing is to be done. A text that several gave to one stimulus is looked at once."""
    tasks = tasks_of(study) if todo else {}
    judged = vocabulary_match if criterion.code == "vocabulary" else _has_as_many_words

    @lru_cache(maxsize=10 * BATCH)
    def value_of(text: str, stimulus: int) -> float:
        return float(judged(text, tasks[stimulus]))

    written = 0
    for start in range(0, len(todo), BATCH):
        some = {pk: (old, value) for pk, old, value in todo[start : start + BATCH]}
        fresh, stale = [], []
        for pk, stimulus, text in Answer.objects.filter(pk__in=some).values_list("pk", "stimulus_id", "text"):
            old, old_value = some[pk]
            value = value_of(text, stimulus)
            if old_value == value:
                continue
            if old is not None:
                stale.append(old)
            fresh.append((pk, value))
        if stale:
            Judgement.objects.filter(pk__in=stale).update(retracted_at=timezone.now())
        if fresh:
            with connection.cursor() as cursor:
                columns = map(list, zip(*fresh, strict=True))
                cursor.execute(INSERT_COUNTED, [round_.pk, criterion.pk, judge.pk, begun, *columns])
        written += len(fresh)
    return written


def _has_as_many_words(text: str, task: Task) -> bool:
    return sequence_equal(text, task.original)


def _unseen(study: Study, criterion: Criterion) -> Q:
    found = Q(own__isnull=True) | Q(revision__gt=1, own__made_at__lt=F("changed_at") + UNSEEN)
    if criterion.code != "vocabulary":
        return found
    for stimulus, changed_at in accepted_forms_changed(study).items():
        found |= Q(stimulus=stimulus, own__made_at__lt=changed_at)  # both under the lock of the study
    return found


@transaction.atomic
def automatic_round_create(*, study: Study, rubric: Rubric, judge: Judge) -> Round:
    """A round for one automatic judge's work, which no rater's label reads (see bases.heard)."""
    return Round.objects.create(study=study, rubric=rubric, purpose=Round.Purpose.AUTOMATIC, judge=judge)


def rule_judge(*, code: str, version: int = 1) -> Judge:
    rule = Rule.objects.select_related("judge").filter(code=code, version=version).first()
    if rule is None:
        try:
            with transaction.atomic():
                judge = Judge.objects.create(kind=Judge.Kind.RULE)
                rule = Rule.objects.create(judge=judge, code=code, version=version)
        except IntegrityError:  # rule_unique_code_version: another study's results asked for it at the same moment
            rule = Rule.objects.select_related("judge").get(code=code, version=version)
    return rule.judge
