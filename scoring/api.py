from django.db.models import Prefetch, QuerySet
from rest_framework import serializers

from scoring.models import Criterion, Round
from studies.api import READING, Filters, StudyReadViewSet, StudyRowSerializer


class CriterionSerializer(serializers.Serializer):
    criterion = serializers.CharField(source="code", help_text="code of the criterion")
    question = serializers.CharField(help_text="what raters are asked, in the language of Accept-Language")
    kind = serializers.ChoiceField(Criterion.Kind.choices)
    scale = serializers.ListField(child=serializers.FloatField(), help_text="the allowed values, best first")
    in_score = serializers.BooleanField()


class RoundFilters(Filters):
    purpose = serializers.ChoiceField(Round.Purpose.choices, required=False)


class RoundSerializer(StudyRowSerializer):
    round = serializers.IntegerField(source="pk", help_text="number of the round")
    purpose = serializers.ChoiceField(Round.Purpose.choices)
    rubric = serializers.SlugField(source="rubric.slug")
    rubric_version = serializers.IntegerField(source="rubric.version")
    criteria = CriterionSerializer(many=True, source="rubric.criteria.all")
    guideline_version = serializers.IntegerField(allow_null=True)
    adjudicates = serializers.IntegerField(
        source="adjudicates_id", allow_null=True, help_text="of an adjudication: the round whose answers it decides"
    )
    created_at = serializers.DateTimeField()
    closed_at = serializers.DateTimeField(allow_null=True)


class RoundsViewSet(StudyReadViewSet):
    """The study's rounds of judging, with the criteria of their rubrics."""

    queryset = Round.objects.all()
    serializer_class = RoundSerializer
    filters = RoundFilters
    open_to_blinded = READING

    def rows(self) -> QuerySet[Round]:
        """Two queries."""
        criteria = Prefetch("rubric__criteria", Criterion.objects.order_by("position"))
        return Round.objects.filter(study=self.study, **self.chosen).select_related("rubric").prefetch_related(criteria)
