"""What a researcher says of a classifier to be trained."""

from typing import Any

from django import forms
from django.core.validators import MaxValueValidator, MinValueValidator
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from scoring.classifiers import recipes
from scoring.classifiers.bases import NAME
from scoring.models import Classifier, Criterion
from studies.forms import StyledForm

MAX_SEED = 2**31 - 1


class CriteriaField(forms.ModelMultipleChoiceField):
    def label_from_instance(self, obj: Any) -> str:
        return str(obj.question)


class ClassifierForm(StyledForm):
    title = forms.CharField(
        label=_("Title"),
        max_length=200,
        required=False,
        help_text=_("What it is called among the judges. Empty: by its recipe and base model."),
    )
    recipe = forms.ChoiceField(
        label=_("Recipe"),
        choices=Classifier.Recipe.choices,
        help_text=_(
            "The baseline needs nothing and is weak. The others need PyTorch and a base model, and take hours."
        ),
    )
    criteria = CriteriaField(
        label=_("Criteria"), queryset=Criterion.objects.none(), widget=forms.CheckboxSelectMultiple
    )
    base_model = forms.CharField(
        label=_("Base model"),
        max_length=200,
        required=False,
        help_text=_("A name such as ai-forever/ruBert-base. Empty: the recipe's own."),
    )
    epochs = forms.IntegerField(
        label=_("Epochs"),
        initial=5,
        validators=[MinValueValidator(1), MaxValueValidator(100)],
        help_text=_("How often a transformer goes over its texts; 5 in the study."),
    )
    seed = forms.IntegerField(
        label=_("Seed"), initial=1, validators=[MinValueValidator(0), MaxValueValidator(MAX_SEED)]
    )
    split_seed = forms.IntegerField(
        label=_("Seed of the split"),
        initial=1,
        validators=[MinValueValidator(0), MaxValueValidator(MAX_SEED)],
        help_text=_("Who trains and who tests. Leave it as it is, so that all judges are compared on the same people."),
    )
    hold_out = forms.IntegerField(
        label=_("Tasks held out"),
        initial=0,
        validators=[MinValueValidator(0), MaxValueValidator(1000)],
        help_text=_("So many tasks are not learned from, to see how it does on new ones."),
    )

    def __init__(self, *args: Any, criteria: list[Criterion], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["criteria"]
        assert isinstance(field, CriteriaField)  # noqa: S101  # it is declared above
        field.queryset = Criterion.objects.filter(pk__in=[criterion.pk for criterion in criteria])
        field.initial = criteria

    def clean_base_model(self) -> str:
        """No path: a page does not read any folder of the server."""
        name = str(self.cleaned_data["base_model"]).strip()
        if name and not NAME.fullmatch(name):
            raise forms.ValidationError(gettext("A name has two parts, such as ai-forever/ruBert-base."))
        return name

    def parameters(self) -> dict[str, Any]:
        has_epochs = "epochs" in recipes.DEFAULTS[self.cleaned_data["recipe"]]
        return {"epochs": self.cleaned_data["epochs"]} if has_epochs else {}
