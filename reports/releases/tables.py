"""The rows of a release, table by table, in an order that says nothing of when anybody came."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Count, Max, Min, Q, Sum

from annotation.models import LabelVersion
from annotation.selectors import criteria_asked
from corpus.models import Answer, Instrument
from corpus.tokens import is_refusal, word_tokens
from llmruns.keys import without_secrets
from llmruns.models import Call, Experiment, Price
from reports.exports import EXPOSURE, LABELS, SCORES, label_rows, score_rows
from reports.releases.automatic import judge_rows, side_rows, split_rows
from reports.releases.facts import CHUNK, Facts
from reports.releases.policy import Questionnaire
from scoring.models import AcceptedForm, Judgement, Rubric
from scoring.services import paper_rubric
from surveys.models import Exposure, Question, QuestionResponse

Row = Sequence[Any]
CLOSED = (Question.Kind.SINGLE, Question.Kind.MULTIPLE, Question.Kind.NUMBER, Question.Kind.SCALE)


def _instrument(instrument: Instrument) -> tuple[str, int]:
    return instrument.slug, instrument.version


def _instruments(facts: Facts) -> Iterator[Row]:
    for one in facts.instruments:
        rubric = facts.rubrics[one.pk]
        yield [
            *_instrument(one),
            one.title,
            one.language,
            one.instruction,
            one.refusal_below,
            one.lower_case,
            rubric.slug,
            rubric.version,
        ]


def _stimuli(facts: Facts) -> Iterator[Row]:
    for instrument in facts.instruments:
        for one in instrument.stimuli.order_by("position"):
            yield [
                *_instrument(instrument),
                one.position,
                one.text,
                one.original,
                one.complexity,
                one.shuffled,
                one.is_practice,
                one.feedback or None,
                one.source or None,
            ]


def _accepted_forms(facts: Facts) -> Iterator[Row]:
    for instrument in facts.instruments:
        forms = AcceptedForm.objects.filter(stimulus__instrument=instrument, stimulus__is_practice=False)
        for one in forms.order_by("stimulus__position", "version"):
            position = facts.positions[one.stimulus_id]
            yield [*_instrument(instrument), position, one.lemma, one.form, one.retired_at is not None]


def _sittings(facts: Facts) -> Iterator[Row]:
    for one in facts.sittings:
        run = facts.runs.get(one.pk)
        survey = facts.surveys_of.get(one.respondent_id)
        yield [
            one.respondent,
            one.kind,
            *_instrument(one.instrument),
            one.ordinal,
            one.state,
            [facts.positions[pk] for pk in one.order],
            survey and facts.surveys[survey],
            facts.persons.get(one.respondent_id),
            run and run.config.label,
            run and facts.experiments[run.experiment_id],
            run and run.ordinal,
            run and run.state,
        ]


def _answers(facts: Facts) -> Iterator[Row]:
    """In the order of the sittings, then of the stimuli. One query for each sitting's worth of answers at once."""
    measured = _measured(facts)
    by_sitting: dict[int, list[Any]] = defaultdict(list)
    rows = facts.answers.order_by("stimulus__position").values_list(
        "sitting_id", "blind_id", "stimulus_id", "outcome", "text"
    )
    for sitting, *row in rows.iterator(chunk_size=CHUNK):
        by_sitting[sitting].append(row)
    for one in facts.sittings:
        for blind, stimulus, outcome, text in by_sitting[one.pk]:
            given = outcome == Answer.Outcome.GIVEN
            refusal = outcome == Answer.Outcome.DECLINED or (given and is_refusal(text, one.instrument.refusal_below))
            yield [
                facts.blind[blind],
                one.respondent,
                one.kind,
                *_instrument(one.instrument),
                one.ordinal,
                facts.positions[stimulus],
                outcome,
                text if given else None,
                len(word_tokens(text)) if given else None,
                refusal,
                *measured.get((one.pk, stimulus), (None,) * len(EXPOSURE)),
            ]


def _measured(facts: Facts) -> dict[tuple[int, int], list[Any]]:
    if not facts.policy.timings:
        return {}
    sittings = [one.pk for one in facts.sittings]
    rows = Exposure.objects.filter(sitting__in=sittings).values_list("sitting", "stimulus", *EXPOSURE)
    found = {
        (sitting, stimulus): [None if value == "" else value for value in values]
        for sitting, stimulus, *values in rows.iterator(chunk_size=CHUNK)
    }
    imported = facts.answers.filter(imported__duration_ms__isnull=False)
    for sitting, stimulus, duration in imported.values_list("sitting", "stimulus", "imported__duration_ms"):
        found.setdefault((sitting, stimulus), [duration, *(None,) * (len(EXPOSURE) - 1)])
    return found


def _models(facts: Facts) -> Iterator[Row]:
    for one in facts.configs:
        yield [
            one.label,
            one.provider,
            one.model,
            one.temperature,
            one.top_p,
            one.max_output_tokens,
            without_secrets(one.extra_body),
            one.accepts,
        ]


def _prices(facts: Facts) -> Iterator[Row]:
    """Those that the runs' calls were reckoned with."""
    used = Call.objects.filter(run__in=[run.pk for run in facts.runs.values()], price__isnull=False).values("price")
    for one in Price.objects.filter(pk__in=used).order_by("provider", "model", "valid_from", "pk"):
        yield [
            one.provider,
            one.model,
            one.currency,
            one.input_million,
            one.cached_input_million,
            one.output_million,
            one.valid_from,
            one.source or None,
        ]


def _experiments_of(facts: Facts) -> list[Experiment]:
    found = Experiment.objects.filter(pk__in=facts.experiments).select_related("instrument", "prompt")
    return list(found.order_by("pk"))


def _prompts(facts: Facts) -> Iterator[Row]:
    prompts = {one.prompt_id: one.prompt for one in _experiments_of(facts)}
    prompts |= {one.prompt_id: one.prompt for one in facts.model_judges.values()}
    for one in sorted(prompts.values(), key=lambda prompt: (prompt.slug, prompt.version)):
        yield [one.slug, one.version, one.purpose, one.text]


def _experiments(facts: Facts) -> Iterator[Row]:
    for one in _experiments_of(facts):
        yield [
            facts.experiments[one.pk],
            one.title,
            *_instrument(one.instrument),
            one.prompt.slug,
            one.prompt.version,
            one.runs_planned,
            one.max_attempts,
            one.state,
            one.imported,
            one.launched_at.date(),
        ]


def _calls(facts: Facts) -> Iterator[Row]:
    state = Call.State
    replies = [state.OK, state.BAD_REPLY]
    counted = {
        row["run"]: row
        for row in Call.objects.filter(run__in=[run.pk for run in facts.runs.values()])
        .order_by()
        .values("run")
        .annotate(
            n_calls=Count("pk"),
            n_attempts=Count("pk", filter=Q(state__in=replies)),
            n_first_valid=Count("pk", filter=Q(state=state.OK, attempt=1)),
            n_bad=Count("pk", filter=Q(state=state.BAD_REPLY)),
            n_failed=Count("pk", filter=Q(state=state.FAILED)),
            n_lost=Count("pk", filter=Q(state=state.LOST)),
            input=Sum("input_tokens"),
            output=Sum("output_tokens"),
            price=Sum("cost"),
            first_currency=Min("currency", filter=~Q(currency="")),
            last_currency=Max("currency", filter=~Q(currency="")),
        )
    }
    sizes = Counter(dict(facts.answers.order_by().values_list("sitting").annotate(n=Count("pk"))))
    for sitting, run in facts.runs.items():
        row = counted.get(run.pk)
        if row is None:
            continue
        one_currency = row["first_currency"] == row["last_currency"]
        yield [
            facts.experiments[run.experiment_id],
            run.config.label,
            run.ordinal,
            sizes[sitting],
            row["n_calls"],
            row["n_attempts"],
            row["n_first_valid"],
            row["n_bad"],
            row["n_failed"],
            row["n_lost"],
            row["input"],
            row["output"],
            row["price"] if one_currency else None,
            row["first_currency"] if one_currency and row["price"] is not None else None,
        ]


def _rubrics_of(facts: Facts) -> list[Rubric]:
    found = {one.rubric_id: one.rubric for one in facts.rounds.values()}
    found |= {one.pk: one for one in facts.rubrics.values()}
    return sorted(found.values(), key=lambda one: (one.slug, one.version))


def _criteria(facts: Facts) -> Iterator[Row]:
    for rubric in _rubrics_of(facts):
        for one in rubric.criteria.order_by("position"):
            yield [
                rubric.slug,
                rubric.version,
                rubric.title,
                one.code,
                one.position,
                one.question_ru,
                one.question_en,
                one.kind,
                one.scale,
                one.in_score,
            ]


def _rounds(facts: Facts) -> Iterator[Row]:
    for pk, one in facts.rounds.items():
        campaign = facts.campaigns.get(pk)
        is_rating = campaign is not None and campaign.round_id == pk
        frozen = LabelVersion.objects.filter(campaign=campaign).order_by("-version").first() if is_rating else None
        parent = one.adjudicates_id or (campaign.round_id if campaign and not is_rating else None)
        yield [
            facts.round_numbers[pk],
            one.purpose,
            one.rubric.slug,
            one.rubric.version,
            one.guideline_version,
            facts.round_numbers.get(parent) if parent else None,
            [criterion.code for criterion in criteria_asked(campaign)] if campaign and is_rating else None,
            campaign.raters_per_answer if campaign and is_rating else None,
            campaign.identical if campaign and is_rating else None,
            facts.judges[one.judge_id] if one.judge_id else None,
            one.closed_at is not None,
            frozen and frozen.version,
            frozen and frozen.sha256,
        ]


def _judgements(facts: Facts) -> Iterator[Row]:
    """By answer, each answer's in the order in which they were made, which decides whose latest vote stands."""
    rows = (
        Judgement.objects.filter(round__in=facts.rounds, answer__in=facts.answers.values("pk"))
        .filter(retracted_at__isnull=True)
        .order_by("made_at", "pk")
        .values_list(
            "answer__blind_id",
            "round_id",
            "criterion__code",
            "judge_id",
            "judge__kind",
            "value",
            "not_attempt",
            "confidence",
            "shared_from__answer__blind_id",
        )
    )
    by_answer: dict[UUID, list[Any]] = defaultdict(list)
    for blind, *row in rows.iterator(chunk_size=CHUNK):
        by_answer[facts.blind[blind]].append(row)
    # Where the original of copies is not released, the first of them takes its place: it was one vote, and stays one.
    heirs: dict[Any, UUID] = {}
    for answer, judged in sorted(by_answer.items()):
        for order, (round_, code, judge, kind, value, mark, confidence, shared) in enumerate(judged, start=1):
            origin = facts.blind.get(shared)
            if shared and origin is None:
                heir = heirs.setdefault((round_, code, judge, shared), answer)
                origin = heir if heir != answer else None
            yield [
                facts.round_numbers[round_],
                answer,
                code,
                facts.judges[judge],
                kind,
                value,
                mark,
                confidence,
                origin,
                order,
            ]


def _labels(facts: Facts) -> Iterator[Row]:
    rows = [dict(zip(LABELS, row, strict=True)) for row in label_rows(facts.study, paper_rubric())]
    released = [row | {"answer": facts.blind[row["answer"]]} for row in rows if row["answer"] in facts.blind]
    places = {(rubric.pk, one.code): one.position for rubric in _rubrics_of(facts) for one in rubric.criteria.all()}
    order = {code: position for (_rubric, code), position in places.items()}
    for row in sorted(released, key=lambda one: (one["answer"], order[one["criterion"]])):
        yield [row[name] for name in ("answer", "criterion", "label", "basis", "votes", "votes_for", "reason")]


def _scores(facts: Facts) -> Iterator[Row]:
    known = {}
    for row in score_rows(facts.study, paper_rubric()):
        score = dict(zip(SCORES, row, strict=True))
        key = (facts.alias.of(score["respondent"]), score["instrument"], score["instrument_version"], score["sitting"])
        known[key] = score
    for one in facts.sittings:
        found = known.get((one.respondent, *_instrument(one.instrument), one.ordinal))
        run = facts.runs.get(one.pk)
        if found is None:
            continue
        yield [
            one.respondent,
            one.kind,
            *_instrument(one.instrument),
            one.ordinal,
            run and facts.experiments[run.experiment_id],
            run and run.ordinal,
            one.state,
            *(found[name] for name in SCORE_FIGURES),
        ]


SCORE_FIGURES = (
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


def _questions_of(facts: Facts) -> list[Question]:
    if facts.policy.questionnaire == Questionnaire.NONE:
        return []
    found = Question.objects.filter(survey__in=facts.surveys).order_by("survey", "position")
    if facts.policy.questionnaire == Questionnaire.CLOSED:
        found = found.filter(kind__in=CLOSED)
    return list(found)


def _questions(facts: Facts) -> Iterator[Row]:
    for one in _questions_of(facts):
        yield [
            facts.surveys[one.survey_id],
            one.code,
            one.position,
            one.place,
            one.after_task,
            one.kind,
            one.text,
            one.options,
            one.minimum,
            one.maximum,
            one.end_labels,
            one.required,
            one.expected or None,
        ]


def _responses(facts: Facts) -> Iterator[Row]:
    questions = {one.pk: one for one in _questions_of(facts)}
    rows = QuestionResponse.objects.filter(question__in=questions, participant__respondent__in=facts.people)
    found = [
        (facts.alias.of(public_id), questions[question], value)
        for question, public_id, value in rows.values_list("question", "participant__respondent__public_id", "value")
    ]
    for respondent, question, value in sorted(found, key=lambda one: (one[0], one[1].survey_id, one[1].position)):
        yield [facts.surveys[question.survey_id], question.code, respondent, Json(value)]


@dataclass(frozen=True, slots=True)
class Json:
    """A value to be written as JSON whatever it is: null, a number and a text among them."""

    value: Any


WRITERS: Mapping[str, Callable[[Facts], Iterable[Row]]] = {
    "instruments": _instruments,
    "stimuli": _stimuli,
    "forms": _accepted_forms,
    "sittings": _sittings,
    "answers": _answers,
    "models": _models,
    "prices": _prices,
    "prompts": _prompts,
    "experiments": _experiments,
    "calls": _calls,
    "criteria": _criteria,
    "rounds": _rounds,
    "judges": judge_rows,
    "splits": split_rows,
    "sides": side_rows,
    "judgements": _judgements,
    "labels": _labels,
    "scores": _scores,
    "questions": _questions,
    "responses": _responses,
}
