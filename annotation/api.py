from typing import Any

from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.models import Campaign, Item, Purpose
from annotation.selectors import campaigns_of, raters_progress
from annotation.votes import CriterionAgreement, campaign_agreement
from studies.api import READING, Filters, StudyReadViewSet, StudyRowSerializer


class CampaignFilters(Filters):
    state = serializers.ChoiceField(Campaign.State.choices, required=False)


class CampaignSerializer(StudyRowSerializer):
    id = serializers.IntegerField()
    round = serializers.IntegerField(source="round_id", help_text="number of the round that it fills")
    title = serializers.CharField()
    state = serializers.ChoiceField(Campaign.State.choices)
    raters_per_answer = serializers.IntegerField()
    with_refusals = serializers.BooleanField()
    adjudicator = serializers.CharField(source="adjudicator.pseudonym", allow_null=True, help_text="pseudonym")
    n_answers = serializers.IntegerField(help_text="answers fixed at the opening, but for those withdrawn since")
    n_places = serializers.IntegerField(help_text="judgements asked for: for each answer its raters")
    n_done = serializers.IntegerField(help_text="of these, done")
    opened_at = serializers.DateTimeField()
    closed_at = serializers.DateTimeField(allow_null=True)


class RaterProgressSerializer(serializers.Serializer):
    rater = serializers.CharField(source="rater.pseudonym", help_text="pseudonym")
    active = serializers.BooleanField(source="rater.is_active")
    n_done = serializers.IntegerField(source="done")
    n_held = serializers.IntegerField(source="held")
    n_withdrawn = serializers.IntegerField(source="withdrawn")


class CampaignProgressSerializer(CampaignSerializer):
    raters = serializers.SerializerMethodField(help_text="those who have begun")

    def get_raters(self, row: Campaign) -> list[dict[str, Any]]:
        begun = [progress for progress in raters_progress(row) if progress.rater is not None]
        return list(RaterProgressSerializer(begun, many=True).data)

    get_raters._spectacular_annotation = {"field": RaterProgressSerializer(many=True)}  # type: ignore[attr-defined]


class AlphaIntervalSerializer(serializers.Serializer):
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)
    level = serializers.FloatField()
    resamples = serializers.IntegerField()
    undefined = serializers.IntegerField(help_text="resamples without variation, left out")


class AlphaSerializer(serializers.Serializer):
    value = serializers.FloatField(allow_null=True)
    reason = serializers.CharField(allow_null=True, help_text="why it is null: no_common_unit or no_variation")
    n_units = serializers.IntegerField(help_text="answers with two judgements or more")
    n_pairable = serializers.IntegerField(help_text="the judgements of these")
    interval = AlphaIntervalSerializer(allow_null=True, help_text="bootstrap over answers")


class PercentSerializer(serializers.Serializer):
    value = serializers.FloatField(allow_null=True, help_text="0 to 1")
    reason = serializers.CharField(allow_null=True, help_text="why it is null: no_common_unit")
    n_units = serializers.IntegerField()
    n_pairs = serializers.IntegerField()


class LabelShareSerializer(serializers.Serializer):
    label = serializers.FloatField(source="value", allow_null=True, help_text="null: undecided")  # type: ignore[assignment]
    n = serializers.IntegerField()
    share = serializers.FloatField(allow_null=True, help_text="of the answers with a vote")


class CriterionAgreementSerializer(serializers.Serializer):
    criterion = serializers.CharField(source="criterion.code")
    alpha = serializers.SerializerMethodField(help_text="Krippendorff's")
    percent = serializers.SerializerMethodField(help_text="share of equal pairs")
    labels = LabelShareSerializer(many=True, source="shares")

    def get_alpha(self, row: CriterionAgreement) -> dict[str, Any]:
        return _with_reason(AlphaSerializer(row.agreement).data)

    def get_percent(self, row: CriterionAgreement) -> dict[str, Any]:
        return _with_reason(PercentSerializer(row.percent).data)

    get_alpha._spectacular_annotation = {"field": AlphaSerializer}  # type: ignore[attr-defined]
    get_percent._spectacular_annotation = {"field": PercentSerializer}  # type: ignore[attr-defined]


def _with_reason(data: Any) -> dict[str, Any]:
    """No reason is null, as everything that is missing."""
    return {**data, "reason": data["reason"] or None}


class AgreementSerializer(StudyRowSerializer):
    campaign = serializers.IntegerField(source="pk")
    round = serializers.IntegerField(source="round_id")
    n_answers = serializers.IntegerField(source="found.n_items", help_text="counted ones")
    n_undecided = serializers.IntegerField(source="found.undecided", help_text="with a vote and a criterion undecided")
    n_without_votes = serializers.IntegerField(source="found.without_votes")
    criteria = CriterionAgreementSerializer(many=True, source="found.attempts", help_text="refusals left out")
    criteria_with_refusals = CriterionAgreementSerializer(
        many=True, source="found.with_refusals", help_text="empty unless the campaign holds refusals"
    )


class CampaignsViewSet(StudyReadViewSet):
    """The study's campaigns: how far they are, and how far their raters agree."""

    queryset = Campaign.objects.all()
    serializer_class = CampaignSerializer
    filters = CampaignFilters
    open_to_blinded = READING | {"progress"}

    def rows(self) -> QuerySet[Campaign]:
        """One query."""
        items = (
            Item.objects.filter(campaign=OuterRef("pk"), purpose=Purpose.RATING, removed_at__isnull=True)
            .order_by()
            .values("campaign")
            .annotate(n=Count("pk"))
        )
        return (
            campaigns_of(self.study)
            .select_related("round", "adjudicator")
            .annotate(n_answers=Coalesce(Subquery(items.values("n")), 0))
            .filter(**self.chosen)
        )

    @extend_schema(responses=CampaignProgressSerializer)
    @action(detail=True)
    def progress(self, request: Request, **kwargs: Any) -> Response:
        """How far each rater is."""
        return Response(CampaignProgressSerializer(self.get_object(), context=self.get_serializer_context()).data)

    @extend_schema(responses=AgreementSerializer)
    @action(detail=True)
    def agreement(self, request: Request, **kwargs: Any) -> Response:
        """Agreement for each criterion, never averaged over criteria; counted answers only."""
        campaign = self.get_object()
        campaign.found = campaign_agreement(campaign)
        return Response(AgreementSerializer(campaign, context=self.get_serializer_context()).data)
