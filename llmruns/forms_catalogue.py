"""Forms of the catalogue and of stored keys."""

from typing import Any

from django import forms
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from llmruns.forms import VENDORS
from llmruns.models import CatalogueEntry, Currency, ModelConfig, Price
from studies.forms import StyledForm, StyledMixin

KNOWN = [("unknown", _("not known: all that are asked for are sent")), ("known", _("these:"))]


class EntryForm(StyledForm):
    provider = forms.ChoiceField(label=_("Provider"), choices=VENDORS)
    model = forms.CharField(label=_("Model"), max_length=200, help_text=_("As the provider writes it."))
    label = forms.CharField(label=_("Name"), max_length=100)
    size = forms.CharField(
        label=_("Size"), max_length=40, required=False, help_text=_("Such as: 35B, 3B active. Empty: not published.")
    )
    known = forms.ChoiceField(label=_("Parameters that the model takes"), choices=KNOWN, widget=forms.RadioSelect)
    accepts = forms.MultipleChoiceField(
        label=_("Which of them"),
        required=False,
        choices=[(name, name) for name in ModelConfig.PARAMETERS],
        widget=forms.CheckboxSelectMultiple,
        help_text=_("What is not ticked is never sent: the provider's default is used, and the runs say so."),
    )
    retired_on = forms.DateField(
        label=_("Retired on"),
        required=False,
        widget=forms.DateInput(format="%Y-%m-%d", attrs={"type": "date"}),
        help_text=_("The day from which the provider answers no more."),
    )
    source = forms.CharField(label=_("Source"), max_length=300, required=False, help_text=_("Where this is written."))
    note = forms.CharField(label=_("Note"), max_length=300, required=False)

    def __init__(self, *args: Any, entry: CatalogueEntry | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if entry is None:
            self.fields["known"].initial = "unknown"
            return
        for name in ("provider", "model"):
            del self.fields[name]  # they are what the entry is about
        for name in ("label", "size", "retired_on", "source", "note"):
            self.fields[name].initial = getattr(entry, name)
        self.fields["known"].initial = "unknown" if entry.accepts is None else "known"
        self.fields["accepts"].initial = entry.accepts or []

    def values(self) -> dict[str, Any]:
        data = dict(self.cleaned_data)
        known = data.pop("known")
        data["accepts"] = data["accepts"] if known == "known" else None
        return data


class PriceForm(StyledMixin, forms.ModelForm):
    class Meta:
        model = Price
        fields = ["currency", "input_million", "cached_input_million", "output_million", "valid_from", "source"]
        labels = {
            "currency": _("Currency"),
            "input_million": _("A million input tokens"),
            "cached_input_million": _("A million input tokens from the cache"),
            "output_million": _("A million output tokens"),
            "valid_from": _("Valid from"),
            "source": _("Source"),
        }
        help_texts = {
            "cached_input_million": _("Empty: as other input."),
            "output_million": _("Reasoning is output."),
            "source": _("Where this is written: an address, a contract."),
        }
        widgets = {"valid_from": forms.DateInput(format="%Y-%m-%d", attrs={"type": "date"})}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        currency = self.fields["currency"]
        assert isinstance(currency, forms.TypedChoiceField)  # noqa: S101 - of a field with choices
        currency.choices = Currency.choices
        self.fields["valid_from"].initial = timezone.localdate()
        for name in ("input_million", "cached_input_million", "output_million"):
            self.fields[name].widget.attrs |= {"min": "0", "step": "any"}

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or self.cleaned_data
        for name in ("input_million", "cached_input_million", "output_million"):
            if data.get(name) is not None and data[name] < 0:
                self.add_error(name, _("A price is not negative."))
        return data


class CredentialForm(StyledForm):
    provider = forms.ChoiceField(label=_("Provider"), choices=VENDORS)
    name = forms.CharField(label=_("Name"), max_length=100, help_text=_("By which you will find it again."))
    key = forms.CharField(
        label=_("Key"),
        max_length=4000,
        widget=forms.PasswordInput(render_value=False, attrs={"autocomplete": "off", "spellcheck": "false"}),
        help_text=_("It is stored encrypted and never shown again, to nobody. GigaChat: the authorization key."),
    )
