from typing import Any

from django.db.models import QuerySet
from rest_framework import serializers

from corpus.api import InstrumentFilters
from studies.api import READING, StudyReadViewSet, StudyRowSerializer
from surveys.models import Survey
from surveys.selectors import surveys_of


class SurveySerializer(StudyRowSerializer):
    survey = serializers.SlugField(source="slug", help_text="address of the survey")
    title = serializers.CharField()
    instrument = serializers.SlugField(source="instrument.slug")
    instrument_version = serializers.IntegerField(source="instrument.version")
    state = serializers.ChoiceField(Survey.State.choices)
    consent_version = serializers.IntegerField(source="consent_document.version")
    n_started = serializers.IntegerField(help_text="counted sittings, whatever became of them")
    n_finished = serializers.IntegerField()
    n_left = serializers.IntegerField(help_text="ended by the participant before the last task")
    n_pilot = serializers.IntegerField(help_text="sittings that only tried the survey out")
    n_excluded = serializers.IntegerField(help_text="sittings left out by a rule")
    n_withdrawn = serializers.IntegerField(help_text="sittings taken back by their participants")
    created_at = serializers.DateTimeField()


class SurveysViewSet(StudyReadViewSet):
    """The study's surveys and how many people have come so far."""

    queryset = Survey.objects.all()
    serializer_class = SurveySerializer
    filters = InstrumentFilters
    open_to_blinded = READING
    lookup_field = "slug"
    lookup_url_kwarg = "survey"
    lookup_value_converter = "slug"

    def rows(self) -> QuerySet[Survey]:
        """One query."""
        names = {"instrument": "instrument__slug", "instrument_version": "instrument__version"}
        chosen: dict[str, Any] = {names[name]: value for name, value in self.chosen.items()}
        return surveys_of(self.study).filter(**chosen)
