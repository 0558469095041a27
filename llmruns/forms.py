from typing import Any, ClassVar

from django import forms
from django.conf import settings
from django.forms.fields import InvalidJSONInput
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from corpus.models import Instrument
from llmruns.addresses import AddressRefusedError, base_url_check
from llmruns.keys import key_name_is_allowed
from llmruns.models import Credential, Currency, ModelConfig, Prompt, Provider
from llmruns.money_forms import cap_field
from llmruns.parameters import extra_body_problem
from llmruns.providers import BASE_URLS
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


EXTRA_BODY_ERRORS = {
    "form": _('Write a JSON object in braces, such as {"reasoning_effort": "low"}.'),
    "own_field": _("The model, its messages and these parameters have fields of their own above."),
    "never": _(
        "“stream”, “n” and “seed” cannot be sent: one call is one reply, and repeats with one seed are one reply."
    ),
    "secret": _("Keys have no place here: they are named above."),
    "long": _("At most 10,000 characters."),
}


class ExtraBodyField(forms.JSONField):
    """Django's lets deep nesting and numbers of thousands of digits through as errors of the server."""

    def to_python(self, value: Any) -> Any:
        try:
            return super().to_python(value)
        except (ValueError, RecursionError) as error:
            raise forms.ValidationError(EXTRA_BODY_ERRORS["form"]) from error

    def bound_data(self, data: Any, initial: Any) -> Any:
        """As it was typed: written anew, an escaped half of a character would be one that no page can hold."""
        return InvalidJSONInput(data or "")

    def prepare_value(self, value: Any) -> Any:
        return "" if value in ({}, None) else super().prepare_value(value)


VENDORS = [choice for choice in Provider.choices if choice[0] in BASE_URLS]


class ModelConfigForm(StyledMixin, forms.ModelForm):
    class Meta:
        model = ModelConfig
        fields = [
            "label",
            "provider",
            "model",
            "base_url",
            "folder",
            "credential",
            "key_variable",
            "temperature",
            "top_p",
            "max_output_tokens",
            "extra_body",
            "timeout",
        ]
        labels = {
            "label": _("Name"),
            "provider": _("Provider"),
            "base_url": _("Base address"),
            "model": _("Model"),
            "folder": _("Folder or scope"),
            "credential": _("Stored key"),
            "key_variable": _("Variable with the key"),
            "temperature": _("Temperature"),
            "top_p": _("top_p"),
            "max_output_tokens": _("At most so many output tokens"),
            "extra_body": _("Further parameters, as JSON"),
            "timeout": _("Time-out, seconds"),
        }
        help_texts = {
            "label": _("As it will be called in tables and figures."),
            "base_url": _("Empty: the provider's own. A server that speaks chat completions usually ends in /v1."),
            "model": _("As the provider writes it, such as gpt-4o-2024-08-06. Yandex: model/version."),
            "folder": _(
                "Yandex: the folder that is billed. GigaChat: the scope, such as GIGACHAT_API_CORP; "
                "empty: private persons. Others: empty."
            ),
            "credential": _(
                "One of the study's keys; or name a variable below; or neither, for a server without keys."
            ),
            "key_variable": _(
                "The name of an environment variable of the server, such as OPENAI_API_KEY, not the key."
            ),
            "temperature": _("Empty: the provider's default."),
            "top_p": _("Empty: the provider's default."),
            "max_output_tokens": _(
                "Empty: the provider decides (Anthropic: 4096). Reasoning models count their reasoning too."
            ),
            "extra_body": _('Sent as they are with every request, such as {"reasoning_effort": "low"}. Usually empty.'),
        }
        widgets = {
            "label": forms.TextInput(attrs={"autocomplete": "off"}),
            "base_url": forms.URLInput(attrs={"autocomplete": "off", "placeholder": "https://api.openai.com/v1"}),
            "key_variable": forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
            "extra_body": forms.Textarea(attrs={"rows": 3, "spellcheck": "false", "class": "form-control"}),
        }
        field_classes: ClassVar[dict[str, type[forms.Field]]] = {"extra_body": ExtraBodyField}

    def __init__(self, *args: Any, study: Study, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in ("base_url", "temperature", "top_p", "max_output_tokens", "credential", "extra_body"):
            self.fields[name].required = False
        provider = self.fields["provider"]
        assert isinstance(provider, forms.TypedChoiceField)  # noqa: S101 - of a field with choices
        provider.choices = VENDORS
        credential = self.fields["credential"]
        assert isinstance(credential, forms.ModelChoiceField)  # noqa: S101 - of a foreign key
        credential.queryset = Credential.objects.filter(study=study, retired_at=None).order_by("name")
        credential.empty_label = _("no stored key")
        self.fields["temperature"].widget.attrs |= {"min": "0", "max": "2", "step": "any"}
        self.fields["top_p"].widget.attrs |= {"min": "0", "max": "1", "step": "any"}

    def clean_base_url(self) -> str:
        """Empty is filled in by clean(), which knows the provider."""
        base_url: str = self.cleaned_data["base_url"].strip().rstrip("/")
        return base_url and self._address(base_url)

    def _address(self, base_url: str) -> str:
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

    def clean_temperature(self) -> float | None:
        temperature: float | None = self.cleaned_data["temperature"]
        if temperature is not None and not 0 <= temperature <= 2:
            raise forms.ValidationError(_("The temperature lies between 0 and 2."))
        return temperature

    def clean_top_p(self) -> float | None:
        top_p: float | None = self.cleaned_data["top_p"]
        if top_p is not None and not 0 < top_p <= 1:
            raise forms.ValidationError(_("top_p lies between 0 and 1."))
        return top_p

    def clean_max_output_tokens(self) -> int | None:
        tokens: int | None = self.cleaned_data["max_output_tokens"]
        if tokens is not None and tokens < 1:
            raise forms.ValidationError(_("At least one token, or nothing."))
        return tokens

    def clean_extra_body(self) -> dict[str, Any]:
        extra_body: Any = self.cleaned_data["extra_body"]
        if extra_body in (None, ""):
            return {}
        problem = extra_body_problem(extra_body)
        if problem:
            raise forms.ValidationError(EXTRA_BODY_ERRORS[problem])
        return dict(extra_body)

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or self.cleaned_data
        provider = data.get("provider", "")
        if "base_url" in data and not data["base_url"]:
            data["base_url"] = BASE_URLS.get(provider, "")
            if not data["base_url"]:
                self.add_error("base_url", _("This provider has no address of its own: where does the model answer?"))
        if provider == Provider.YANDEX and not data.get("folder") and "://" not in data.get("model", ""):
            self.add_error("folder", _("Yandex bills a folder: write its identifier."))
        credential = data.get("credential")
        if credential is not None and data.get("key_variable"):
            self.add_error("key_variable", _("Choose a stored key or name a variable, not both."))
        if credential is not None and credential.provider != provider:
            self.add_error("credential", _("This key belongs to another provider."))
        return data


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
    deadline = forms.IntegerField(
        label=_("Deadline, minutes"),
        min_value=1,
        max_value=24 * 60,
        initial=15,
        required=False,
        help_text=_("How long a stimulus is asked again after technical failures in a row, before it is given up."),
    )
    cap = cap_field(
        label=_("Cap"),
        required=False,
        help_text=_(
            "So much is never passed: a call reserves the most that it can cost before it is sent, and the experiment "
            "pauses when that does not fit. Empty: no cap."
        ),
    )
    currency = forms.ChoiceField(label=_("Currency of the cap"), choices=Currency.choices, required=False)
    launch_key = forms.UUIDField(widget=forms.HiddenInput)

    def __init__(self, *args: Any, study: Study, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices: dict[str, Any] = {
            "instrument": Instrument.objects.filter(study=study).order_by("-pk"),
            "prompt": Prompt.objects.filter(study=study, purpose=Prompt.Purpose.ANSWER).order_by("slug", "-version"),
            "configs": ModelConfig.objects.filter(study=study).exclude(provider=Provider.REPLAYED).order_by("label"),
        }
        for name, queryset in choices.items():
            field = self.fields[name]
            assert isinstance(field, forms.ModelChoiceField)  # noqa: S101 - all three are
            field.queryset = queryset
        if choices["prompt"].exists():
            self.fields["prompt"].initial = choices["prompt"].first()
