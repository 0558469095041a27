from typing import Any

from django.db.models import Count, Prefetch, QuerySet
from rest_framework import serializers

from corpus.models import Complexity, Instrument, Respondent, Sitting, Stimulus
from studies.api import READING, Filters, StudyReadViewSet, StudyRowSerializer, WholeNumberField

LARGEST_VERSION = 2_147_483_647


class InstrumentFilters(Filters):
    instrument = serializers.SlugField(max_length=60, required=False, help_text="address of the instrument")
    instrument_version = WholeNumberField(
        min_value=1, max_value=LARGEST_VERSION, required=False, help_text="version of the instrument"
    )


class SittingFilters(InstrumentFilters):
    """What a sitting's own columns narrow. `SITTING_LOOKUPS` says where each is found."""

    kind = serializers.ChoiceField(Respondent.Kind.choices, required=False)
    standing = serializers.ChoiceField(
        [(value, label) for value, label in Sitting.Standing.choices if value != Sitting.Standing.WITHDRAWN],
        required=False,
        help_text="without it all three; withdrawn sittings are never shown",
    )


SITTING_LOOKUPS = {
    "instrument": "instrument__slug",
    "instrument_version": "instrument__version",
    "kind": "respondent__kind",
    "standing": "standing",
}


class PositionFilter(Filters):
    position = WholeNumberField(min_value=0, max_value=32_767, required=False, help_text="number of the stimulus")


class StimulusSerializer(serializers.Serializer):
    position = serializers.IntegerField(help_text="number of the stimulus in the instrument")
    complexity = serializers.ChoiceField(Complexity.choices)
    shuffled = serializers.BooleanField(help_text="whether the given words are out of order")
    stimulus = serializers.CharField(source="text", help_text="the given words, as printed")
    original = serializers.CharField(help_text="the sentence that they come from")
    feedback = serializers.CharField(help_text="what a practice task says once it has been answered; may be empty")
    practice = serializers.BooleanField(source="is_practice", help_text="practice is never rated, run or scored")
    source = serializers.CharField(help_text="treebank, sentence, licence; may be empty")  # type: ignore[assignment]


class InstrumentSerializer(StudyRowSerializer):
    id = serializers.IntegerField()
    instrument = serializers.SlugField(source="slug", help_text="address of the instrument")
    instrument_version = serializers.IntegerField(source="version")
    title = serializers.CharField()
    state = serializers.ChoiceField(Instrument.State.choices, help_text="a draft can change, a frozen one cannot")
    language = serializers.CharField(help_text="BCP 47, of the stimuli")
    instruction = serializers.CharField()
    refusal_below = serializers.IntegerField(help_text="an answer of fewer words is a refusal")
    lower_case = serializers.BooleanField(help_text="whether raters see answers in lower case")
    created_at = serializers.DateTimeField()
    n_sittings = serializers.IntegerField(help_text="of every standing; the instrument is frozen from the first")
    n_practice = serializers.SerializerMethodField(help_text="stimuli for practice, never rated, run or scored")
    stimuli = StimulusSerializer(many=True)

    def get_n_practice(self, row: Instrument) -> int:
        return sum(stimulus.is_practice for stimulus in row.stimuli.all())  # prefetched


class InstrumentsViewSet(StudyReadViewSet):
    """The study's instruments with their stimuli."""

    queryset = Instrument.objects.all()
    serializer_class = InstrumentSerializer
    filters = InstrumentFilters
    open_to_blinded = READING

    def rows(self) -> QuerySet[Instrument]:
        """Two queries."""
        names = {"instrument": "slug", "instrument_version": "version"}
        chosen: dict[str, Any] = {names[name]: value for name, value in self.chosen.items()}
        return (
            Instrument.objects.filter(study=self.study, **chosen)
            .annotate(n_sittings=Count("sittings"))
            .prefetch_related(Prefetch("stimuli", Stimulus.objects.order_by("position")))
        )
