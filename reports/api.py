"""Who answered what, how it was judged and what it comes to. All of it is closed to a researcher who is rating."""

from functools import cached_property
from typing import Any

from django.db.models import F, OuterRef, QuerySet, Subquery
from django.db.models.functions import JSONObject
from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.models import Rater
from corpus.api import SITTING_LOOKUPS, InstrumentFilters, PositionFilter, SittingFilters
from corpus.models import Answer, Complexity, Instrument, Respondent, Sitting
from corpus.tokens import is_refusal, word_tokens
from reports.choice import chosen_of
from reports.exports import ANSWER_IMPORTED, EXPOSURE, GIVEN_AT
from reports.judging_agreement import model_judge_names
from reports.label_votes import votes_shown
from reports.results_json import ResultsSerializer, results_document
from reports.selectors import Results, instrument_default, instruments_of, results_of, rubric_of
from scoring.models import Judge, Judgement, Round, Rubric
from scoring.selectors import LabelledAnswer, Labels, labels_of
from scoring.services import paper_rubric, rules_apply
from studies.api import (
    StudyListViewSet,
    StudyReadViewSet,
    StudyRowSerializer,
    StudyViewSet,
    TextField,
    UuidField,
    WholeNumberField,
)
from studies.api_defaults import LARGEST_ID
from surveys.models import Exposure

# --- filters -----------------------------------------------------------------------------------------------------


class RespondentFilters(SittingFilters):
    survey = serializers.SlugField(max_length=60, required=False, help_text="address of the survey")
    experiment_id = WholeNumberField(min_value=1, max_value=LARGEST_ID, required=False)
    run_id = WholeNumberField(min_value=1, max_value=LARGEST_ID, required=False)
    respondent = UuidField(required=False)


LOOKUPS = SITTING_LOOKUPS | {
    "survey": "respondent__participant__survey__slug",
    "experiment_id": "run__experiment",
    "run_id": "run",
    "respondent": "respondent__public_id",
}


class AnswerFilters(RespondentFilters, PositionFilter):
    pass


class JudgementFilters(AnswerFilters):
    answer = UuidField(required=False)
    round = WholeNumberField(min_value=1, max_value=LARGEST_ID, required=False)
    purpose = serializers.ChoiceField(Round.Purpose.choices, required=False)
    judge_kind = serializers.ChoiceField(Judge.Kind.choices, required=False)
    criterion = TextField(max_length=30, required=False)


def lookups(chosen: dict[str, Any], to_sitting: str, more: dict[str, str]) -> dict[str, Any]:
    """The chosen filters as Django's, for a table from which `to_sitting` leads to the sitting."""
    return {more[name] if name in more else to_sitting + LOOKUPS[name]: value for name, value in chosen.items()}


# --- sittings ----------------------------------------------------------------------------------------------------


class SittingSerializer(StudyRowSerializer):
    instrument = serializers.SlugField(source="instrument.slug")
    instrument_version = serializers.IntegerField(source="instrument.version")
    respondent = serializers.UUIDField(source="respondent.public_id")
    kind = serializers.ChoiceField(Respondent.Kind.choices, source="respondent.kind")
    source = serializers.CharField(source="source_label", help_text="the survey or the model, as it was called then")  # type: ignore[assignment]
    survey = serializers.SlugField(
        source="respondent.participant.survey.slug", allow_null=True, help_text="null for models"
    )
    experiment_id = serializers.IntegerField(source="run.experiment_id", allow_null=True, help_text="null for people")
    run_id = serializers.IntegerField(source="run.pk", allow_null=True)
    run = serializers.IntegerField(source="run.ordinal", allow_null=True, help_text="number of the run")
    sitting = serializers.IntegerField(source="ordinal", help_text="which sitting of this respondent, from 1")
    sitting_state = serializers.ChoiceField(Sitting.State.choices, source="state")
    standing = serializers.ChoiceField(Sitting.Standing.choices)
    standing_reason = serializers.CharField(help_text="may be empty")
    started_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)


class SittingsViewSet(StudyListViewSet):
    """People's sittings and models' runs, of every standing but *withdrawn*."""

    queryset = Sitting.objects.all()
    serializer_class = SittingSerializer
    filters = RespondentFilters

    def rows(self) -> QuerySet[Sitting]:
        """One query."""
        return (
            Sitting.objects.filter(instrument__study=self.study, **lookups(self.chosen, "", {}))
            .exclude(standing=Sitting.Standing.WITHDRAWN)
            .select_related("instrument", "respondent__participant__survey", "run")
        )


# --- answers -----------------------------------------------------------------------------------------------------


class AnswerSerializer(StudyRowSerializer):
    instrument = serializers.SlugField(source="sitting.instrument.slug")
    instrument_version = serializers.IntegerField(source="sitting.instrument.version")
    answer = serializers.UUIDField(source="blind_id")
    respondent = serializers.UUIDField(source="sitting.respondent.public_id")
    kind = serializers.ChoiceField(Respondent.Kind.choices, source="sitting.respondent.kind")
    source = serializers.CharField(source="sitting.source_label", help_text="the survey or the model")  # type: ignore[assignment]
    imported = serializers.BooleanField(source="was_imported", help_text="collected elsewhere, it came in as a file")
    survey = serializers.SlugField(source="sitting.respondent.participant.survey.slug", allow_null=True)
    experiment_id = serializers.IntegerField(source="sitting.run.experiment_id", allow_null=True)
    run_id = serializers.IntegerField(source="sitting.run.pk", allow_null=True)
    run = serializers.IntegerField(source="sitting.run.ordinal", allow_null=True)
    sitting = serializers.IntegerField(source="sitting.ordinal")
    sitting_state = serializers.ChoiceField(Sitting.State.choices, source="sitting.state")
    standing = serializers.ChoiceField(Sitting.Standing.choices, source="sitting.standing")
    position = serializers.IntegerField(source="stimulus.position")
    complexity = serializers.ChoiceField(Complexity.choices, source="stimulus.complexity")
    shuffled = serializers.BooleanField(source="stimulus.shuffled")
    stimulus = serializers.CharField(source="stimulus.text", help_text="the given words, as printed")
    original = serializers.CharField(source="stimulus.original")
    outcome = serializers.ChoiceField(Answer.Outcome.choices)
    text = serializers.SerializerMethodField(help_text="as received; null unless given")
    words = serializers.SerializerMethodField(help_text="word tokens in the text; null unless given")
    refusal = serializers.SerializerMethodField(help_text="declined, or fewer words than the instrument's limit")
    given_at = serializers.DateTimeField(allow_null=True, help_text="null: an imported answer of unknown time")
    order = serializers.SerializerMethodField(help_text="which place the stimulus had in this sitting's order, from 1")
    duration_ms = serializers.SerializerMethodField(help_text="by the browser's clock, where it has scripts")
    first_key_ms = serializers.IntegerField(source="measured.first_key_ms", allow_null=True)
    away_ms = serializers.IntegerField(source="measured.away_ms", allow_null=True)
    pastes = serializers.IntegerField(source="measured.pastes", allow_null=True)
    pasted_characters = serializers.IntegerField(source="measured.pasted_characters", allow_null=True)
    translated = serializers.BooleanField(source="measured.translated", allow_null=True)
    device = serializers.SerializerMethodField(help_text="phone, tablet or desktop")

    def get_order(self, row: Answer) -> int | None:
        order = row.sitting.order
        return order.index(row.stimulus_id) + 1 if row.stimulus_id in order else None

    def get_duration_ms(self, row: Any) -> int | None:
        shown: int | None = (row.measured or {}).get("duration_ms")
        return row.imported_ms if shown is None else shown

    def get_device(self, row: Any) -> str | None:
        return (row.measured or {}).get("device") or None

    def get_text(self, row: Answer) -> str | None:
        return row.text if row.outcome == Answer.Outcome.GIVEN else None

    def get_words(self, row: Answer) -> int | None:
        return len(word_tokens(row.text)) if row.outcome == Answer.Outcome.GIVEN else None

    def get_refusal(self, row: Answer) -> bool:
        if row.outcome == Answer.Outcome.GIVEN:
            return is_refusal(row.text, row.sitting.instrument.refusal_below)
        return row.outcome == Answer.Outcome.DECLINED


class AnswersViewSet(StudyReadViewSet):
    """Every answer of people and models, as it was received: what answers.csv has."""

    queryset = Answer.objects.all()
    serializer_class = AnswerSerializer
    filters = AnswerFilters
    lookup_field = "blind_id"
    lookup_url_kwarg = "answer"
    lookup_value_converter = "uuid"

    def rows(self) -> QuerySet[Answer]:
        """One query."""
        exposure = Exposure.objects.filter(sitting=OuterRef("sitting"), stimulus=OuterRef("stimulus"))
        chosen = lookups(self.chosen, "sitting__", {"position": "stimulus__position"})
        return (
            Answer.objects.filter(sitting__instrument__study=self.study, stimulus__is_practice=False, **chosen)
            .exclude(sitting__standing=Sitting.Standing.WITHDRAWN)
            .select_related(
                "stimulus", "sitting__instrument", "sitting__respondent__participant__survey", "sitting__run"
            )
            .annotate(
                measured=Subquery(exposure.values(columns=JSONObject(**{name: name for name in EXPOSURE}))[:1]),
                imported_ms=F("imported__duration_ms"),
                given_at=GIVEN_AT,
                was_imported=ANSWER_IMPORTED,
            )
        )


# --- judgements --------------------------------------------------------------------------------------------------


class JudgementSerializer(StudyRowSerializer):
    answer = serializers.UUIDField(source="answer.blind_id")
    position = serializers.IntegerField(source="answer.stimulus.position")
    standing = serializers.ChoiceField(Sitting.Standing.choices, source="answer.sitting.standing")
    round = serializers.IntegerField(source="round_id")
    purpose = serializers.ChoiceField(Round.Purpose.choices, source="round.purpose")
    judge = serializers.SerializerMethodField(
        help_text="a rater's pseudonym, a model judge's model and prompt, or the name of the rule"
    )
    judge_kind = serializers.ChoiceField(Judge.Kind.choices, source="judge.kind")
    criterion = serializers.CharField(source="criterion.code")
    value = serializers.FloatField(help_text="on the criterion's scale")
    not_attempt = serializers.BooleanField(help_text="the rater saw no attempt at the task; the value is then 0")
    confidence = serializers.FloatField(allow_null=True)
    reason = serializers.SerializerMethodField(help_text="the judge's note")
    judged_at = serializers.DateTimeField(source="made_at")
    shared_from = serializers.UUIDField(
        source="shared_from.answer.blind_id",
        default=None,
        allow_null=True,
        help_text="the answer with the same text that was judged; null where this one was",
    )

    def get_judge(self, row: Judgement) -> str:
        rule = getattr(row.judge, "rule", None)
        name = self.context["judges"].get(row.judge_id) or (rule and rule.code)
        return name or f"{row.judge.kind}-{row.judge_id}"

    def get_reason(self, row: Judgement) -> str | None:
        return row.reason or None


class JudgedViewSet(StudyViewSet):
    """What is made of judgements: the counting rules see every answer first (see result_views.current_results)."""

    rubric: Rubric

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        self.rubric = paper_rubric()
        rules_apply(study=self.study, rubric=self.rubric)


class JudgementsViewSet(StudyListViewSet, JudgedViewSet):
    """Long: a row for each answer, judge and criterion. Withdrawn and replaced ones are left out."""

    queryset = Judgement.objects.all()
    serializer_class = JudgementSerializer
    filters = JudgementFilters

    def rows(self) -> QuerySet[Judgement]:
        """One query."""
        more = {
            "position": "answer__stimulus__position",
            "answer": "answer__blind_id",
            "round": "round",
            "purpose": "round__purpose",
            "judge_kind": "judge__kind",
            "criterion": "criterion__code",
        }
        chosen = lookups(self.chosen, "answer__sitting__", more)
        return (
            Judgement.objects.filter(
                round__study=self.study,
                answer__sitting__instrument__study=self.study,
                retracted_at__isnull=True,
                **chosen,
            )
            .exclude(answer__sitting__standing=Sitting.Standing.WITHDRAWN)
            .select_related(
                "answer__stimulus", "answer__sitting", "round", "judge__rule", "criterion", "shared_from__answer"
            )
        )

    def get_serializer_context(self) -> dict[str, Any]:
        """Two queries: the raters' pseudonyms, and what model judges are called."""
        context = super().get_serializer_context()
        if not context["study"]:
            return {**context, "judges": {}}
        raters = Rater.objects.filter(study=self.study).values_list("judge_id", "pseudonym")
        return {**context, "judges": model_judge_names(self.study) | dict(raters)}


# --- of one instrument: labels, scores, results ------------------------------------------------------------------


class InstrumentViewSet(JudgedViewSet):
    """Of one instrument: the one that the query names, else that of `instrument_default`."""

    filters = InstrumentFilters
    lookup_by = {"instrument": "slug", "instrument_version": "version"}

    @cached_property
    def instrument(self) -> Instrument:
        """One query. Raises Http404."""
        chosen = {lookup: self.chosen[name] for name, lookup in self.lookup_by.items() if name in self.chosen}
        known = list(instruments_of(self.study).filter(**chosen))
        if not known:
            raise Http404
        return instrument_default(known) or known[0]

    @cached_property
    def judged_by(self) -> Rubric:
        """One query, or two (see `rubric_of`). Rules of another rubric than the paper's have not been applied yet."""
        rubric = rubric_of(self.instrument)
        if rubric != self.rubric:
            rules_apply(study=self.study, rubric=rubric)
        return rubric

    def found(self) -> Results:
        """Ten queries."""
        return results_of(study=self.study, instrument=self.instrument, rubric=self.judged_by)


class LabelSerializer(serializers.Serializer):
    criterion = serializers.CharField()
    label = serializers.FloatField(allow_null=True, help_text="null where undecided")  # type: ignore[assignment]
    basis = serializers.CharField(help_text="how it came about: see labels.csv in docs/data.md")
    votes = serializers.IntegerField(
        allow_null=True, help_text="how many raters judged it; null where they were not asked: see docs/data.md"
    )
    votes_for = serializers.IntegerField(allow_null=True, help_text="how many of them gave the label")
    reason = serializers.CharField(allow_null=True, help_text="why it is undecided: see labels.csv in docs/data.md")


class LabelledAnswerSerializer(StudyRowSerializer):
    instrument = serializers.SlugField(source="sitting.instrument.slug")
    instrument_version = serializers.IntegerField(source="sitting.instrument.version")
    answer = serializers.UUIDField(source="blind_id")
    position = serializers.IntegerField(source="stimulus.position")
    labels = LabelSerializer(many=True, source="found")


class LabelFilters(InstrumentFilters, PositionFilter):
    pass


class LabelsViewSet(StudyListViewSet, InstrumentViewSet):
    """What the raters' judgements come to: a row for each counted answer of one instrument, with its labels."""

    queryset = Answer.objects.all()
    serializer_class = LabelledAnswerSerializer
    filters = LabelFilters

    def rows(self) -> QuerySet[Answer]:
        """Two queries."""
        chosen = {"stimulus__position": self.chosen["position"]} if "position" in self.chosen else {}
        return Answer.objects.filter(
            sitting__instrument=self.instrument,
            sitting__standing=Sitting.Standing.COUNTED,
            stimulus__is_practice=False,
            **chosen,
        ).select_related("stimulus", "sitting__instrument")

    def paginate_queryset(self, queryset: Any) -> list[Answer]:  # type: ignore[override]
        """The page's answers with their labels. Four queries more."""
        answers: list[Answer] = list(super().paginate_queryset(queryset) or ())
        if answers:
            instrument = answers[0].sitting.instrument
            labels = labels_of(
                instrument=instrument, rubric=self.judged_by, answer_ids=[answer.pk for answer in answers]
            )
            known = {row.pk: label_cells(row, labels) for row in labels.answers}
            for answer in answers:
                answer.found = known.get(answer.pk, [])  # type: ignore[attr-defined]
        return answers


def label_cells(answer: LabelledAnswer, labels: Labels) -> list[dict[str, Any]]:
    return [
        {
            "criterion": criterion.code,
            "label": label.value,
            "basis": label.basis,
            **dict(zip(("votes", "votes_for"), votes_shown(criterion, label), strict=True)),
            "reason": label.reason or None,
        }
        for criterion, label in zip(labels.criteria, answer.labels, strict=True)
    ]


class ScoreSerializer(StudyRowSerializer):
    instrument = serializers.SlugField(source="sitting.instrument.slug")
    instrument_version = serializers.IntegerField(source="sitting.instrument.version")
    respondent = serializers.UUIDField(source="sitting.respondent.public_id")
    kind = serializers.ChoiceField(Respondent.Kind.choices, source="sitting.respondent.kind")
    source = serializers.CharField(source="sitting.source_label", help_text="the survey or the model")  # type: ignore[assignment]
    survey = serializers.SlugField(source="sitting.respondent.participant.survey.slug", allow_null=True)
    experiment_id = serializers.IntegerField(source="sitting.run.experiment_id", allow_null=True)
    experiment = serializers.CharField(source="sitting.run.experiment.title", allow_null=True)
    imported = serializers.BooleanField(
        source="sitting.run.experiment.imported",
        allow_null=True,
        help_text="the model's replies were recorded elsewhere; null for people",
    )
    run_id = serializers.IntegerField(source="sitting.run.pk", allow_null=True)
    run = serializers.IntegerField(allow_null=True, help_text="number of the run in the experiment")
    sitting = serializers.IntegerField(source="sitting.ordinal")
    sitting_state = serializers.ChoiceField(Sitting.State.choices, source="sitting.state")
    n_stimuli = serializers.IntegerField(source="score.n_stimuli")
    n_answers = serializers.IntegerField(source="tally.n_answers")
    score = serializers.FloatField(source="score.score.value", allow_null=True, help_text="S, points per stimulus")
    score_norm = serializers.FloatField(source="score.score.norm", allow_null=True, help_text="S over the criteria")
    score_low = serializers.FloatField(source="score.bounds.low", allow_null=True)
    score_high = serializers.FloatField(source="score.bounds.high", allow_null=True)
    n_undecided = serializers.IntegerField(source="tally.n_undecided")
    n_refusals = serializers.IntegerField(source="tally.n_refusals")
    n_no_valid_reply = serializers.IntegerField(source="tally.n_no_reply")
    reason = serializers.SerializerMethodField(help_text="why there is no score: see scores.csv in docs/data.md")

    def get_reason(self, row: dict[str, Any]) -> str | None:
        return row["score"].score.reason or None


class ScoreFilters(RespondentFilters):
    standing = None  # type: ignore[assignment] # only counted sittings have scores


class ScoresViewSet(StudyListViewSet, InstrumentViewSet):
    """A row for each counted sitting of one instrument: its score, or why it has none."""

    queryset = Sitting.objects.all()
    serializer_class = ScoreSerializer
    filters = ScoreFilters

    def rows(self) -> QuerySet[Sitting]:
        """Two queries."""
        others = {name: value for name, value in self.chosen.items() if name not in self.lookup_by}
        return (
            Sitting.objects.filter(
                instrument=self.instrument, standing=Sitting.Standing.COUNTED, **lookups(others, "", {})
            )
            .exclude(respondent__kind=Respondent.Kind.MODEL, run__isnull=True)
            .select_related("instrument", "respondent__participant__survey", "run__experiment")
        )

    def paginate_queryset(self, queryset: Any) -> list[dict[str, Any]]:  # type: ignore[override]
        """The page's sittings with their scores, which are those of the whole results and so of every page and file."""
        sittings: list[Sitting] = list(super().paginate_queryset(queryset) or ())
        if not sittings:
            return []
        known = {row.sitting.pk: row for row in self.found().sittings}
        # A sitting that was excluded between the two reads has no row, and is no longer counted.
        return [
            {"sitting": sitting, "run": row.run, "tally": row.tally, "score": row.score}
            for sitting in sittings
            if (row := known.get(sitting.pk)) is not None
        ]


class ResultFilters(InstrumentFilters):
    CHOICES = ("basis", "people")
    basis = serializers.CharField(required=False, help_text="raters, or the numbers of automatic judges: judges-7-8")
    people = serializers.CharField(required=False, help_text="all, or from:NAME of one survey")


class ResultsViewSet(InstrumentViewSet):
    """The results page's table."""

    queryset = Instrument.objects.all()
    serializer_class = ResultsSerializer
    filters = ResultFilters
    filtered = frozenset({"results"})

    @extend_schema(responses=ResultsSerializer)
    def results(self, request: Request, **kwargs: Any) -> Response:
        """People and models side by side: overall, by shuffled, by complexity, and for each stimulus."""
        rubric = self.judged_by
        given = {name: str(self.chosen[name]) for name in ResultFilters.CHOICES if name in self.chosen}
        chosen = chosen_of(given=given, study=self.study, instrument=self.instrument, rubric=rubric)
        found = results_of(study=self.study, instrument=self.instrument, rubric=rubric, chosen=chosen)
        document = results_document(found)
        return Response(ResultsSerializer(document, context=self.get_serializer_context()).data)
