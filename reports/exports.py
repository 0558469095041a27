"""The CSV files of a study. docs/data.md describes every column; a test compares it with the columns here."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

from django.db.models import Case, Count, Max, OuterRef, Q, QuerySet, Subquery, Sum, Value, When
from django.db.models.functions import Coalesce, JSONObject
from django.utils.translation import gettext_lazy

from annotation.models import Rater
from corpus.models import Answer, Sitting
from corpus.tokens import is_refusal, word_tokens
from llmruns.models import Call
from reports import call_export, questionnaire_export
from reports.judgement_copy import judgement_pieces
from reports.judgement_exports import (
    PLACES,
    SKIPS,
    judged_ever,
    judgement_rows_of,
    place_rows,
    places_of,
    skip_rows,
    skips_of,
)
from reports.judging_agreement import model_judge_names
from reports.label_votes import Votes, votes_shown
from reports.selectors import instruments_of, results_of, rubric_of
from scoring.consensus import Label
from scoring.models import Criterion, Judge, Judgement, Round, Rubric
from scoring.selectors import labels_of
from studies.models import Study
from surveys.facts import Median, checks_failed_in
from surveys.models import Consent, Exposure, Purpose

CHUNK = 2_000
NOTHING_MEASURED = (None,) * 5
Rows = Iterator[Sequence[Any]]

STUDY = ("study", "simulated")
ANSWERS = (
    *STUDY,
    "instrument",
    "instrument_version",
    "answer",
    "respondent",
    "kind",
    "source",
    "imported",
    "sitting",
    "sitting_state",
    "standing",
    "position",
    "complexity",
    "shuffled",
    "stimulus",
    "original",
    "outcome",
    "text",
    "words",
    "refusal",
    "given_at",
    "order",
    "duration_ms",
    "first_key_ms",
    "away_ms",
    "pastes",
    "pasted_characters",
    "translated",
    "device",
)
EXPOSURE = ("duration_ms", "first_key_ms", "away_ms", "pastes", "pasted_characters", "translated", "device")
PARTICIPANTS = (
    *STUDY,
    "instrument",
    "instrument_version",
    "survey",
    "respondent",
    "sitting",
    "sitting_state",
    "standing",
    "reason",
    "started_at",
    "finished_at",
    "n_answers",
    "n_declined",
    "median_ms",
    "away_ms",
    "n_translated",
    "n_pasted",
    "device",
    "flags",
    "consent_publication",
    "consent_third_parties",
    "withdrawn_at",
)
JUDGEMENTS = (
    *STUDY,
    "answer",
    "position",
    "standing",
    "round",
    "purpose",
    "judge",
    "judge_kind",
    "criterion",
    "value",
    "not_attempt",
    "confidence",
    "reason",
    "judged_at",
    "shared_from",
)
ANNOTATIONS = (
    *STUDY,
    "answer",
    "position",
    "stimulus",
    "text",
    "round",
    "purpose",
    "rater",
    # here a column for each judged criterion of the rubric
    "not_attempt",
    "reason",
    "judged_at",
    "shared",
)
LABELS = (*STUDY, "answer", "position", "criterion", "label", "basis", "votes", "votes_for", "reason")
SCORES = (
    *STUDY,
    "instrument",
    "instrument_version",
    "respondent",
    "kind",
    "source",
    "experiment_id",
    "experiment",
    "imported",
    "run",
    "sitting",
    "sitting_state",
    "n_stimuli",
    "n_answers",
    "score",
    "score_norm",
    "score_low",
    "score_high",
    "n_undecided",
    "n_refusals",
    "n_no_valid_reply",
    "reason",
)
# An imported answer came when its source says so, which may be unknown; the row is younger.
_REPLIED_AT = Call.objects.filter(run__sitting=OuterRef("sitting"), stimulus=OuterRef("stimulus"), state=Call.State.OK)
GIVEN_AT = Case(
    When(imported__isnull=False, then="imported__submitted_at"),
    When(
        sitting__run__experiment__imported=True,
        then=Subquery(_REPLIED_AT.values(at=Coalesce("ended_at", "sent_at"))[:1]),
    ),
    default="changed_at",
)
ANSWER_IMPORTED = Case(
    When(Q(imported__isnull=False) | Q(sitting__run__experiment__imported=True), then=Value(True)),
    default=Value(False),
)


@dataclass(frozen=True, slots=True)
class Export:
    """A file: its columns, its rows as they come from the database, and how many there are (few queries each).

    The rubric is the paper's: its criteria come first. What a study judged by others is in the files too.
    """

    name: str
    about: Any  # a lazy translation
    columns: Callable[[Study | None, Rubric], Sequence[str]]  # None: of any study
    rows: Callable[[Study, Rubric], Rows]
    count: Callable[[Study, Rubric], int]
    pieces: Callable[[Study, Rubric], Iterator[bytes]] | None = None  # the exact form, where the database writes it


def _answers(study: Study) -> QuerySet[Answer]:
    """Answers that may leave the house: those of withdrawn sittings may not."""
    return Answer.objects.filter(sitting__instrument__study=study, stimulus__is_practice=False).exclude(
        sitting__standing=Sitting.Standing.WITHDRAWN
    )


def answer_rows(study: Study, rubric: Rubric) -> Rows:
    exposure = Exposure.objects.filter(sitting=OuterRef("sitting"), stimulus=OuterRef("stimulus"))
    rows = (
        _answers(study)
        .order_by("pk")
        .values_list(
            "sitting__instrument__slug",
            "sitting__instrument__version",
            "blind_id",
            "sitting__respondent__public_id",
            "sitting__respondent__kind",
            "sitting__source_label",
            ANSWER_IMPORTED,
            "sitting__ordinal",
            "sitting__state",
            "sitting__standing",
            "stimulus__position",
            "stimulus__complexity",
            "stimulus__shuffled",
            "stimulus__text",
            "stimulus__original",
            "outcome",
            "text",
            GIVEN_AT,
            "stimulus_id",
            "sitting__order",
            Subquery(exposure.values(columns=JSONObject(**{name: name for name in EXPOSURE}))[:1]),
            "imported__duration_ms",
            "sitting__instrument__refusal_below",
        )
    )
    for *row, outcome, text, given_at, stimulus, order, shown, duration, below in rows.iterator(chunk_size=CHUNK):
        words = len(word_tokens(text)) if outcome == Answer.Outcome.GIVEN else None
        refusal = outcome == Answer.Outcome.DECLINED or (words is not None and is_refusal(text, below))
        # An answer that was not given has no text: empty, as everything that is missing.
        given = text if outcome == Answer.Outcome.GIVEN else None
        measured = {"duration_ms": duration} | {name: value for name, value in (shown or {}).items() if value != ""}
        place = order.index(stimulus) + 1 if stimulus in order else None
        own = [measured.get(name) for name in EXPOSURE]
        yield [study.slug, study.simulated, *row, outcome, given, words, refusal, given_at, place, *own]


def _people(study: Study) -> QuerySet[Sitting]:
    """Every sitting of a survey's participants, the withdrawn ones among them: they have nothing left to hide."""
    return Sitting.objects.filter(instrument__study=study, respondent__participant__isnull=False)


def participant_rows(study: Study, rubric: Rubric) -> Rows:
    """No text, no platform's id: the random number of the respondent joins these rows to the answers. Six queries.

    What is counted of each sitting is counted at one go and not for each row anew.
    """
    people = _people(study)
    answers = {
        sitting: (n, declined)
        for sitting, n, declined in Answer.objects.filter(sitting__in=people.values("pk"), stimulus__is_practice=False)
        .order_by()
        .values_list("sitting")
        .annotate(n=Count("pk"), declined=Count("pk", filter=Q(outcome=Answer.Outcome.DECLINED)))
    }
    measured = {
        sitting: values
        for sitting, *values in Exposure.objects.filter(sitting__in=people.values("pk"), stimulus__is_practice=False)
        .order_by()
        .values_list("sitting")
        .annotate(
            median=Median("duration_ms"),
            away=Sum("away_ms"),
            n_translated=Count("pk", filter=Q(translated=True)),
            n_pasted=Count("pk", filter=Q(pastes__gt=0)),
            last_device=Max("device"),
        )
    }
    consents = Consent.objects.filter(document__study=study).values_list("participant", "document__purpose")
    agreed = set(consents.iterator(chunk_size=CHUNK))
    failed = checks_failed_in(study)
    rows = people.order_by("pk").values_list(
        "instrument__slug",
        "instrument__version",
        "respondent__participant__survey__slug",
        "respondent__public_id",
        "ordinal",
        "state",
        "standing",
        "standing_reason",
        "started_at",
        "finished_at",
        "respondent__participant__flags",
        "respondent__participant__withdrawn_at",
        "respondent__participant",
        "pk",
    )
    for *head, reason, started, finished, flags, withdrawn_at, participant, pk in rows.iterator(chunk_size=CHUNK):
        n, declined = answers.get(pk, (0, None))
        own = measured.get(pk, NOTHING_MEASURED)
        if withdrawn_at is not None:  # what they did is theirs; that they took part is ours
            declined, own = None, NOTHING_MEASURED
        yield [
            study.slug,
            study.simulated,
            *head,
            reason or None,
            started,
            finished,
            n,
            declined,
            *(None if value == "" else value for value in own),
            ", ".join([*flags, *(["check_failed"] if participant in failed else [])]) or None,
            (participant, Purpose.PUBLICATION) in agreed,
            (participant, Purpose.THIRD_PARTIES) in agreed,
            withdrawn_at,
        ]


def _judgements(study: Study) -> QuerySet[Judgement]:
    """Live ones: a judgement that was withdrawn or replaced is left out."""
    return judged_ever(study).filter(retracted_at__isnull=True)


def _judge_names(study: Study) -> dict[int, str]:
    """Raters by pseudonym, model judges by model and prompt. Who else judges is named after its kind and number."""
    return model_judge_names(study) | dict(Rater.objects.filter(study=study).values_list("judge_id", "pseudonym"))


def judgement_rows(study: Study, rubric: Rubric) -> Rows:
    return judgement_rows_of(study, _judgements(study), _judge_names(study))


def _annotations(study: Study) -> QuerySet[Judgement]:
    return _judgements(study).filter(judge__kind=Judge.Kind.RATER)


def annotation_rows(study: Study, rubric: Rubric) -> Rows:
    """One row for what one rater said about one answer in one round."""
    names = _judge_names(study)
    codes = judged_codes(study, rubric)
    rows = (
        _annotations(study)
        .order_by("answer_id", "round_id", "judge_id", "pk")
        .values_list(
            "answer_id",
            "round_id",
            "judge_id",
            "answer__blind_id",
            "answer__stimulus__position",
            "answer__stimulus__text",
            "answer__text",
            "round__purpose",
            "criterion__code",
            "value",
            "not_attempt",
            "reason",
            "made_at",
            "shared_from_id",
        )
    )
    for (_answer, round_, judge), said in groupby(rows.iterator(chunk_size=CHUNK), key=itemgetter(0, 1, 2)):
        judgements = list(said)
        blind_id, position, stimulus, text, purpose = judgements[0][3:8]
        values = {code: value for *_head, code, value, _mark, _reason, _time, _shared in judgements}
        yield [
            study.slug,
            study.simulated,
            blind_id,
            position,
            stimulus,
            text,
            round_,
            purpose,
            names.get(judge) or f"rater-{judge}",
            *(values.get(code) for code in codes),  # what a rater left open is missing, not 0
            any(row[10] for row in judgements),
            "; ".join(dict.fromkeys(row[11] for row in judgements if row[11])) or None,
            max(row[12] for row in judgements),
            any(row[13] is not None for row in judgements),
        ]


def label_rows(study: Study, rubric: Rubric, *, votes: Callable[[Criterion, Label], Votes] = votes_shown) -> Rows:
    for instrument in instruments_of(study):
        positions = dict(instrument.stimuli.values_list("pk", "position"))
        labels = labels_of(instrument=instrument, rubric=rubric_of(instrument))
        for answer in labels.answers:
            for criterion, label in zip(labels.criteria, answer.labels, strict=True):
                yield [
                    study.slug,
                    study.simulated,
                    answer.blind_id,
                    positions[answer.stimulus_id],
                    criterion.code,
                    label.value,
                    label.basis,
                    *votes(criterion, label),
                    label.reason or None,
                ]


def score_rows(study: Study, rubric: Rubric) -> Rows:
    for instrument in instruments_of(study):
        results = results_of(study=study, instrument=instrument, rubric=rubric_of(instrument))
        experiments = {row.key: (row.experiment_id, row.experiment or None, row.imported) for row in results.rows}
        for row in results.sittings:
            sitting, score = row.sitting, row.score
            yield [
                study.slug,
                study.simulated,
                instrument.slug,
                instrument.version,
                sitting.respondent.public_id,
                sitting.respondent.kind,
                sitting.source_label,
                *experiments[row.key],
                row.run,
                sitting.ordinal,
                sitting.state,
                score.n_stimuli,
                row.tally.n_answers,
                score.score.value,
                score.score.norm,
                score.bounds and score.bounds.low,
                score.bounds and score.bounds.high,
                row.tally.n_undecided,
                row.tally.n_refusals,
                row.tally.n_no_reply,
                score.score.reason or None,
            ]


def judged_codes(study: Study | None, rubric: Rubric) -> list[str]:
    """The rubric's own, then those of other rubrics that the study has rounds of, each code once. Two queries."""
    judged = Criterion.objects.filter(kind=Criterion.Kind.JUDGED)
    own = judged.filter(rubric=rubric).values_list("code", flat=True)
    used = Round.objects.filter(study=study).exclude(rubric=rubric).values("rubric")
    others = judged.filter(rubric__in=used).order_by("rubric", "position").values_list("code", flat=True)
    return list(dict.fromkeys([*own, *others]))


def annotation_columns(study: Study | None, rubric: Rubric) -> Sequence[str]:
    place = ANNOTATIONS.index("not_attempt")
    return [*ANNOTATIONS[:place], *judged_codes(study, rubric), *ANNOTATIONS[place:]]


def _count_annotations(study: Study, rubric: Rubric) -> int:
    return _annotations(study).order_by().values("answer_id", "round_id", "judge_id").distinct().count()


def _counted(study: Study) -> QuerySet[Answer]:
    return _answers(study).filter(sitting__standing=Sitting.Standing.COUNTED)


def _count_labels(study: Study, rubric: Rubric) -> int:
    """A few queries for each instrument."""
    return sum(
        _counted(study).filter(sitting__instrument=instrument).count() * rubric_of(instrument).criteria.count()
        for instrument in instruments_of(study)
    )


def _count_scores(study: Study, rubric: Rubric) -> int:
    sittings = Sitting.objects.filter(instrument__study=study, standing=Sitting.Standing.COUNTED)
    return sittings.exclude(respondent__kind="model", run__isnull=True).count()


EXPORTS = {
    export.name: export
    for export in (
        Export(
            "answers",
            gettext_lazy("Every answer of people and models, as it was received, with its stimulus."),
            lambda study, rubric: ANSWERS,
            answer_rows,
            lambda study, rubric: _answers(study).count(),
        ),
        Export(
            "participants",
            gettext_lazy(
                "One row for each sitting of a person, withdrawn ones too: how far it went, its times and flags, and "
                "whether it counts. No texts."
            ),
            lambda study, rubric: PARTICIPANTS,
            participant_rows,
            lambda study, rubric: _people(study).count(),
        ),
        Export(
            "responses",
            gettext_lazy("Long: one row for each participant and question of the questionnaires."),
            lambda study, rubric: questionnaire_export.COLUMNS,
            questionnaire_export.response_rows,
            lambda study, rubric: questionnaire_export.responses_of(study).count(),
        ),
        Export(
            "judgements",
            gettext_lazy("Long: one row for each answer, judge and criterion. Withdrawn judgements are left out."),
            lambda study, rubric: JUDGEMENTS,
            judgement_rows,
            lambda study, rubric: _judgements(study).count(),
            lambda study, rubric: judgement_pieces(study, _judgements(study), _judge_names(study), JUDGEMENTS),
        ),
        Export(
            "annotations",
            gettext_lazy("Wide: one row for each answer and rater, a column for each criterion."),
            annotation_columns,
            annotation_rows,
            _count_annotations,
        ),
        Export(
            "judgement_history",
            gettext_lazy("As judgements, with those that were withdrawn or replaced, and when."),
            lambda study, rubric: (*JUDGEMENTS, "retracted_at"),
            lambda study, rubric: judgement_rows_of(study, judged_ever(study), _judge_names(study), history=True),
            lambda study, rubric: judged_ever(study).count(),
            lambda study, rubric: judgement_pieces(
                study, judged_ever(study), _judge_names(study), (*JUDGEMENTS, "retracted_at"), history=True
            ),
        ),
        Export(
            "places",
            gettext_lazy(
                "One row for each answer that a rater judged or took back: how long, flagged, what they wrote."
            ),
            lambda study, rubric: PLACES,
            lambda study, rubric: place_rows(study),
            lambda study, rubric: places_of(study).count(),
        ),
        Export(
            "skips",
            gettext_lazy("One row for each answer that a rater passed by, and why. Not for a public release."),
            lambda study, rubric: SKIPS,
            lambda study, rubric: skip_rows(study),
            lambda study, rubric: skips_of(study).count(),
        ),
        Export(
            "labels",
            gettext_lazy("What the judgements come to: one row for each counted answer and criterion, with the votes."),
            lambda study, rubric: LABELS,
            label_rows,
            _count_labels,
        ),
        Export(
            "scores",
            gettext_lazy("One row for each counted sitting: its score, or why it has none."),
            lambda study, rubric: SCORES,
            score_rows,
            _count_scores,
        ),
        Export(
            "calls",
            gettext_lazy("Every request to a model's provider, with its raw reply. No keys."),
            lambda study, rubric: (*STUDY, *call_export.COLUMNS),
            lambda study, rubric: call_export.call_rows(study),
            lambda study, rubric: call_export.calls_of(study).count(),
        ),
    )
}
