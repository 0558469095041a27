"""The comparison of judges through the API: the rows of its CSV."""

from typing import Any

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from reports.judge_choice import default_set, rubric_asked, split_asked
from reports.judge_comparison import SUBSETS, UNITS, VARIANTS, Asked, Comparison, comparison_of
from reports.judge_files import COLUMNS, FROM_HIGHEST, comparison_rows
from reports.judge_rows import rubrics_of, sheet_of, splits_of
from scoring.classifiers.problems import ClassifierError
from scoring.evaluation import FIGURES
from scoring.models import Split
from scoring.services import rules_apply
from studies.api import Filters, StudyRowSerializer, StudyViewSet, WholeNumberField
from studies.api_defaults import LARGEST_ID

REASON = "why there is none: see docs/api.md"
OF_THE_STUDY = 4  # columns that all rows share


class JudgeFigureSerializer(serializers.Serializer):
    judge = serializers.CharField(help_text="its name; “majority class” is whoever always says the commonest value")
    judge_id = serializers.IntegerField(allow_null=True, help_text="null for a set of judges and the majority class")
    judge_kind = serializers.CharField(allow_null=True, help_text="classifier, model or set")
    subset = serializers.CharField(allow_null=True, help_text="null where it is all answers with a score")
    answers_chosen = serializers.CharField(help_text="common or own")
    figure = serializers.CharField(help_text=f"{', '.join(FIGURES)}, pearson or spearman")
    criterion = serializers.CharField(help_text="code of the criterion; mean: over criteria; score: of their sum")
    unit = serializers.ChoiceField(UNITS)
    variant = serializers.ChoiceField(
        [*VARIANTS, FROM_HIGHEST],
        allow_null=True,
        help_text="of correlations: what is left out; of a mean: that it is the difference from the highest",
    )
    value = serializers.FloatField(allow_null=True)
    low = serializers.FloatField(allow_null=True, help_text="95 % interval over people")
    high = serializers.FloatField(allow_null=True)
    undefined_resamples = serializers.IntegerField(help_text="of 2000, in which it had no value")
    reason = serializers.CharField(allow_null=True, help_text=REASON)
    n = serializers.IntegerField(allow_null=True, help_text="answers, or people; null for a mean over criteria")
    n_respondents = serializers.IntegerField(allow_null=True)


class JudgesSerializer(StudyRowSerializer):
    split = serializers.IntegerField(allow_null=True, help_text="number of the split; null without one")
    split_seed = serializers.IntegerField(allow_null=True)
    reason = serializers.CharField(allow_null=True, help_text="no_split or no_labels where there is nothing to compare")
    rows = JudgeFigureSerializer(many=True)


class JudgesFilters(Filters):
    split = WholeNumberField(min_value=1, max_value=LARGEST_ID, required=False, help_text="by default the newest")
    figure = serializers.ChoiceField(list(FIGURES), required=False, help_text="whose mean over criteria is given")
    subset = serializers.ChoiceField([one.value for one in SUBSETS], required=False)
    on = serializers.ChoiceField(["common", "own"], required=False, help_text="answers that all judges have judged")


class JudgesViewSet(StudyViewSet):
    """The comparison of judges."""

    queryset = Split.objects.all()
    serializer_class = JudgesSerializer
    filters = JudgesFilters
    filtered = frozenset({"judges"})

    @extend_schema(responses=JudgesSerializer)
    def judges(self, request: Request, **kwargs: Any) -> Response:
        """Every judge on the same test answers, and how closely its score follows that of the raters."""
        splits, rubrics = splits_of(self.study), rubrics_of(self.study)
        given = {name: str(value) for name, value in self.chosen.items()}
        if not splits or not rubrics:
            if "split" in given:
                raise Http404
            return self._document(None, None, "no_labels" if splits else "no_split")
        split = split_asked(given, splits)
        rubric = rubric_asked({}, rubrics)
        rules_apply(study=self.study, rubric=rubric)
        try:
            sheet = sheet_of(split=split, rubric=rubric)
        except ClassifierError as error:
            return self._document(split, None, error.code)
        plain = Asked()
        asked = Asked(
            given.get("figure", plain.figure),
            given.get("subset", plain.subset),
            self.chosen.get("on", plain.on),
            chosen_set=default_set(sheet),
        )
        return self._document(split, comparison_of(sheet, asked), None)

    def _document(self, split: Split | None, found: Comparison | None, reason: str | None) -> Response:
        names = COLUMNS[OF_THE_STUDY:]
        document = {
            "split": split and split.pk,
            "split_seed": split and split.seed,
            "reason": reason,
            "rows": [dict(zip(names, row[OF_THE_STUDY:], strict=True)) for row in comparison_rows(found)]
            if found
            else [],
        }
        return Response(JudgesSerializer(document, context=self.get_serializer_context()).data)
