from typing import Any

from django import forms
from django.conf import settings
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from corpus.models import Instrument
from llmruns.addresses import AddressRefusedError, base_url_check
from llmruns.keys import key_name_is_allowed
from llmruns.models import ModelConfig, Prompt
from llmruns.services import MAX_ATTEMPTS, MAX_RUNS
from studies.forms import StyledForm, StyledMixin
from studies.models import Study

ADDRESS_ERRORS = {
    "form": _("This is not an address. It looks like https://api.openai.com/v1"),
    "scheme": _("The address begins with https:// (or http://)."),
    "credentials": _("The address must not hold a user name or a password. The key is named below."),
    "query": _("The address must not have a part after ? or #."),
    "private": _("The address lies in a private network. This installation does not allow that."),
}


class ModelConfigForm(StyledMixin, forms.ModelForm):
    class Meta:
        model = ModelConfig
        fields = ["label", "base_url", "model", "key_variable", "temperature", "max_output_tokens", "timeout"]
        labels = {
            "label": _("Name"),
            "base_url": _("Base address"),
            "model": _("Model"),
            "key_variable": _("Variable with the key"),
            "temperature": _("Temperature"),
            "max_output_tokens": _("At most so many output tokens"),
            "timeout": _("Time-out, seconds"),
        }
        help_texts = {
            "label": _("As it will be called in tables and figures."),
            "base_url": _("Of a server that speaks chat completions. It usually ends in /v1."),
            "model": _("As the provider writes it, such as gpt-4o-2024-08-06."),
            "key_variable": _(
                "The name of an environment variable of the server, such as OPENAI_API_KEY, not the key itself. "
                "Empty for a server that wants no key."
            ),
            "max_output_tokens": _("Empty: the provider decides. Reasoning models count their reasoning too."),
        }
        widgets = {
            "label": forms.TextInput(attrs={"autocomplete": "off"}),
            "base_url": forms.URLInput(attrs={"autocomplete": "off", "placeholder": "https://api.openai.com/v1"}),
            "key_variable": forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["max_output_tokens"].required = False
        self.fields["temperature"].widget.attrs |= {"min": "0", "max": "2", "step": "any"}

    def clean_base_url(self) -> str:
        base_url: str = self.cleaned_data["base_url"].strip().rstrip("/")
        try:
            base_url_check(base_url, allow_private=settings.ALLOW_PRIVATE_ENDPOINTS)
        except AddressRefusedError as error:
            raise forms.ValidationError(ADDRESS_ERRORS[error.reason]) from error
        return base_url

    def clean_key_variable(self) -> str:
        name: str = self.cleaned_data["key_variable"].strip()
        if not key_name_is_allowed(name):
            # What was typed may be the key itself: it is not shown again.
            self.data = {**self.data.dict(), "key_variable": ""} if isinstance(self.data, QueryDict) else {}
            raise forms.ValidationError(
                _("Only names such as OPENAI_API_KEY are possible: capital letters, with _API_KEY at the end.")
            )
        return name

    def clean_temperature(self) -> float:
        temperature: float = self.cleaned_data["temperature"]
        if not 0 <= temperature <= 2:
            raise forms.ValidationError(_("The temperature lies between 0 and 2."))
        return temperature

    def clean_max_output_tokens(self) -> int | None:
        tokens: int | None = self.cleaned_data["max_output_tokens"]
        if tokens is not None and tokens < 1:
            raise forms.ValidationError(_("At least one token, or nothing."))
        return tokens


class _InstrumentField(forms.ModelChoiceField):
    def label_from_instance(self, obj: Any) -> str:
        return f"{obj.title} v{obj.version}"


class ExperimentForm(StyledForm):
    title = forms.CharField(label=_("Title"), max_length=200, required=False)
    instrument = _InstrumentField(label=_("Instrument"), queryset=Instrument.objects.none(), empty_label=None)
    prompt = forms.ModelChoiceField(
        label=_("Prompt"), queryset=Prompt.objects.none(), required=False, empty_label=_("the paper's prompt")
    )
    configs = forms.ModelMultipleChoiceField(
        label=_("Models"), queryset=ModelConfig.objects.none(), widget=forms.CheckboxSelectMultiple
    )
    runs = forms.IntegerField(
        label=_("Runs of each model"), min_value=1, max_value=MAX_RUNS, initial=5, help_text=_("The paper has five.")
    )
    max_attempts = forms.IntegerField(
        label=_("Attempts per stimulus"),
        min_value=1,
        max_value=MAX_ATTEMPTS,
        initial=10,
        help_text=_("How often a model is asked again when its reply is not in the required format."),
    )
    launch_key = forms.UUIDField(widget=forms.HiddenInput)

    def __init__(self, *args: Any, study: Study, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices: dict[str, Any] = {
            "instrument": Instrument.objects.filter(study=study).order_by("-pk"),
            "prompt": Prompt.objects.filter(study=study).order_by("slug", "-version"),
            "configs": ModelConfig.objects.filter(study=study).order_by("label"),
        }
        for name, queryset in choices.items():
            field = self.fields[name]
            assert isinstance(field, forms.ModelChoiceField)  # noqa: S101 - all three are
            field.queryset = queryset
        if choices["prompt"].exists():
            self.fields["prompt"].initial = choices["prompt"].first()
