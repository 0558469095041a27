"""The forms of references: which answers are looked for, and what is right of one."""

from typing import Any, cast

from django import forms
from django.utils.translation import gettext_lazy as _

from annotation.forms import value_label
from annotation.guideline_forms import lines
from annotation.models import Reference
from annotation.reference_services import MAX_EXPLANATION, Right
from corpus.models import Stimulus
from scoring.models import Criterion
from studies.forms import StyledForm

PURPOSES = [
    (Reference.Purpose.TRAINING, _("Training: raters judge it first and are then told what is right")),
    (Reference.Purpose.GOLD, _("Gold: mixed in among the others; raters do not learn that it is a check")),
]


class StimulusField(forms.ModelChoiceField):
    def label_from_instance(self, obj: Stimulus) -> str:
        return f"{obj.instrument.slug} v{obj.instrument.version} · {obj.position}. {obj.text}"


class AnswerSearchForm(StyledForm):
    rubric = forms.CharField(required=False, max_length=60, widget=forms.HiddenInput)
    stimulus = StimulusField(label=_("Task"), queryset=Stimulus.objects.none(), empty_label=None)
    text = forms.CharField(
        label=_("Words in the answer"),
        required=False,
        max_length=200,
        widget=forms.TextInput(attrs={"lang": "", "autocomplete": "off"}),
    )

    def __init__(self, *args: Any, stimuli: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        cast(forms.ModelChoiceField, self.fields["stimulus"]).queryset = stimuli


class ReferenceForm(StyledForm):
    purpose = forms.ChoiceField(label=_("What for"), choices=PURPOSES, widget=forms.RadioSelect)
    explanation = forms.CharField(
        label=_("Explanation"),
        required=False,
        max_length=MAX_EXPLANATION,
        widget=forms.Textarea(attrs={"rows": 4, "lang": ""}),
        help_text=_("Raters read it after they have judged a training answer: say why, in a sentence or two."),
    )
    seen = forms.CharField(required=False, max_length=40, widget=forms.HiddenInput)

    def __init__(self, *args: Any, criteria: list[Criterion], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.criteria = criteria
        for criterion in criteria:
            self.fields[f"c-{criterion.code}"] = forms.ChoiceField(
                label=criterion.question,
                choices=[(f"{value:g}", value_label(criterion, value)) for value in criterion.scale],
                required=False,
                widget=forms.RadioSelect(attrs={"class": "list-unstyled"}),
            )
        self.fields["not_attempt"] = forms.BooleanField(
            label=_("Not an attempt: 0 on every question, whatever is chosen above"),
            required=False,
            widget=forms.CheckboxInput(attrs={"class": "form-check-input"}),
        )
        self.order_fields(["purpose", *(f"c-{one.code}" for one in criteria), "not_attempt", "explanation", "seen"])

    def clean_explanation(self) -> str:
        return lines(self.cleaned_data["explanation"])

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or self.cleaned_data
        if not data.get("not_attempt"):
            for criterion in self.criteria:
                field = f"c-{criterion.code}"
                if field not in self.errors and not data.get(field):
                    self.add_error(field, _("Choose the right value, or say that it is not an attempt."))
        return data

    def right(self) -> Right:
        """Of a form that is valid."""
        data = self.cleaned_data
        values = {
            one.code: float(data[f"c-{one.code}"])
            for one in self.criteria
            if data[f"c-{one.code}"] and not data["not_attempt"]
        }
        return Right(
            purpose=data["purpose"],
            values=values,
            not_attempt=data["not_attempt"],
            explanation=data["explanation"],
        )


class ReferencesFileForm(StyledForm):
    file = forms.FileField(
        label=_("CSV file"),
        widget=forms.ClearableFileInput(attrs={"accept": ".csv,text/csv"}),
    )


def initial_of(reference: Reference, seen: str) -> dict[str, Any]:
    chosen = {} if reference.not_attempt else {f"c-{code}": f"{value:g}" for code, value in reference.expected.items()}
    return {
        "purpose": reference.purpose,
        "not_attempt": reference.not_attempt,
        "explanation": reference.explanation,
        "seen": seen,
        **chosen,
    }
