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
    n_consented = serializers.IntegerField(help_text="people who agreed to take part")
    n_screened_out = serializers.IntegerField(
        help_text="of those who consented: turned away by a question before a task"
    )
    n_not_started = serializers.IntegerField(help_text="of those who consented: neither screened out nor shown a task")
    n_started = serializers.IntegerField(help_text="people to whom a task was shown, or who have an answer")
    n_under_way = serializers.IntegerField(help_text="of those who started: may still come back")
    n_left = serializers.IntegerField(help_text="of those who started: ended the test before its last task")
    n_finished = serializers.IntegerField(help_text="of those who started: every task has an answer")
    n_pilot = serializers.IntegerField(help_text="people who only tried the survey out, in the numbers above too")
    n_excluded = serializers.IntegerField(help_text="people left out by a rule, in the numbers above too")
    n_withdrawn = serializers.IntegerField(help_text="people who took their answers back, in the numbers above too")
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
