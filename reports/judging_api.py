from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from llmruns.judge_selectors import judging_counts, judgings_of
from llmruns.models import Judging
from reports.judging_agreement import GROUPS, JudgingAgreement, agreement_of, judge_name, said_by
from scoring.concordance import Concordance
from studies.api import READING, Filters, StudyReadViewSet, StudyRowSerializer


class JudgingFilters(Filters):
    state = serializers.ChoiceField(Judging.State.choices, required=False)


class JudgingSerializer(StudyRowSerializer):
    id = serializers.IntegerField(help_text="`judging_id` elsewhere")
    judging = serializers.CharField(source="title")
    state = serializers.ChoiceField(Judging.State.choices)
    judge = serializers.SerializerMethodField(help_text="as in judgements: the model and the prompt")
    model = serializers.CharField(source="model_judge.config.label")
    prompt = serializers.SlugField(source="model_judge.prompt.slug")
    prompt_version = serializers.IntegerField(source="model_judge.prompt.version")
    rubric = serializers.SlugField(source="model_judge.rubric.slug")
    max_attempts = serializers.IntegerField()
    problem = serializers.CharField(help_text="why it is paused or incomplete; may be empty")
    cap = serializers.DecimalField(max_digits=16, decimal_places=8, allow_null=True)
    currency = serializers.CharField(help_text="of the cap; may be empty")
    spent = serializers.DecimalField(
        max_digits=16, decimal_places=8, help_text="of the cap, with what may have been billed; 0 without a cap"
    )
    n_answers = serializers.IntegerField(help_text="that are to be judged, whether or not they share a text")
    n_settled = serializers.IntegerField(help_text="judged, without a valid reply, or taken out")
    launched_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)

    def get_judge(self, row: Judging) -> str:
        return judge_name(row.model_judge)


class ConcordanceSerializer(serializers.Serializer):
    """Undefined is null, with the reason."""

    group = serializers.ChoiceField(GROUPS, help_text="whose answers; own: those that the judge itself has given")
    n = serializers.IntegerField(help_text="answers with a judgement and a label by raters")
    agreed = serializers.IntegerField()
    percent = serializers.FloatField(allow_null=True, help_text="agreed, of 100")
    f1_macro = serializers.FloatField(allow_null=True)
    mcc = serializers.FloatField(allow_null=True)
    label_mean = serializers.FloatField(allow_null=True)
    judge_mean = serializers.FloatField(allow_null=True)
    reason = serializers.CharField(help_text="why a figure is null: no_pairs, no_variation; may be empty")
    scale = serializers.ListField(child=serializers.FloatField())
    counts = serializers.ListField(
        child=serializers.ListField(child=serializers.IntegerField()),
        help_text="a row for each label, as in scale",
    )


class JudgeAgreementSerializer(serializers.Serializer):
    criterion = serializers.CharField()
    groups = ConcordanceSerializer(many=True)


class JudgingAgreementSerializer(JudgingSerializer):
    n_judged = serializers.IntegerField(help_text="answers with a judgement")
    n_compared = serializers.IntegerField(help_text="of them with a label by raters")
    n_in_open_campaigns = serializers.IntegerField(help_text="left out while raters work on them")
    n_own = serializers.IntegerField(help_text="given by the judge itself")
    agreement = JudgeAgreementSerializer(many=True)


class JudgingsViewSet(StudyReadViewSet):
    """Rounds of model judges, in counts; what they said is in judgements. Launching is done on the pages."""

    queryset = Judging.objects.all()
    serializer_class = JudgingSerializer
    filters = JudgingFilters
    open_to_blinded = READING

    def rows(self) -> QuerySet[Judging]:
        """One query."""
        return judging_counts(judgings_of(self.study)).filter(**self.chosen)

    @extend_schema(responses=JudgingAgreementSerializer)
    @action(detail=True)
    def agreement(self, request: Request, **kwargs: Any) -> Response:
        """The judge beside the raters' labels, per criterion and group of answers."""
        judging = self.get_object()
        found = agreement_of(judging, said_by(judging))
        row = JudgingSerializer(judging, context=self.get_serializer_context()).data
        return Response({**row, **agreement_cells(found)})


def agreement_cells(found: JudgingAgreement) -> dict[str, Any]:
    return {
        "n_judged": found.answers,
        "n_compared": found.compared,
        "n_in_open_campaigns": found.in_open_campaigns,
        "n_own": found.own,
        "agreement": [
            {
                "criterion": one.criterion.code,
                "groups": [{"group": name, **_cells(one.groups[name])} for name in GROUPS],
            }
            for one in found.figures
        ],
    }


def _cells(of: Concordance) -> dict[str, Any]:
    names = ("n", "agreed", "percent", "f1_macro", "mcc", "label_mean", "judge_mean", "reason", "scale", "counts")
    return {name: getattr(of, name) for name in names}
