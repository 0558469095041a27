"""What people say about money and limits."""

from decimal import ROUND_CEILING, Decimal
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from llmruns.models import Provider, ProviderLimit
from studies.forms import StyledForm, StyledMixin

CAP_PLACES = 4
NEVER_CALLED = {Provider.SIMULATED, Provider.REPLAYED}  # a limit of them would limit nothing
CAP_PROBLEMS = {
    "no_price": _("no price is known for it"),
    "no_output_limit": _("it has no limit of output tokens"),
    "currency": _("its price is in another currency"),
    "tools": _("its extra parameters ask for what is billed apart from tokens"),
    "absurd": _("its price and its limit of output tokens come to more than can be counted"),
}
CAP_ERRORS = {
    "uncapped": _("The experiment was launched without a cap; it can be paused or cancelled."),
    "low": _("So much is spent or reserved already."),
    "ended": _("The experiment was cancelled."),
    "bounds": _("An amount above zero."),
}


def cap_field(**changes: Any) -> forms.DecimalField:
    return forms.DecimalField(
        min_value=Decimal("0.0001"), max_value=Decimal(99_999_999), decimal_places=CAP_PLACES, **changes
    )


class CapForm(StyledForm):
    cap = cap_field(label=_("New cap"))

    @classmethod
    def of(cls, cap: Decimal) -> "CapForm":
        """Filled in with what holds, in as many places as the field takes."""
        return cls(initial={"cap": f"{cap.quantize(Decimal(10) ** -CAP_PLACES, ROUND_CEILING):f}"})


class LimitForm(StyledMixin, forms.ModelForm):
    class Meta:
        model = ProviderLimit
        fields = ["provider", "base_url", "parallel", "per_minute"]
        labels = {
            "provider": _("Provider"),
            "base_url": _("Base address"),
            "parallel": _("Calls at once"),
            "per_minute": _("Calls per minute"),
        }
        help_texts = {
            "base_url": _("Exactly as in the models. Empty: all of this provider that have no limit of their own."),
            "parallel": _("Empty: as many as the workers can."),
            "per_minute": _("In any sixty seconds. Empty: no limit."),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        provider = self.fields["provider"]
        assert isinstance(provider, forms.ChoiceField)  # noqa: S101 - the model's field has choices
        provider.choices = [choice for choice in Provider.choices if choice[0] not in NEVER_CALLED]

    def clean_base_url(self) -> str:
        return str(self.cleaned_data["base_url"]).strip().rstrip("/")

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if not self.errors and cleaned.get("parallel") is None and cleaned.get("per_minute") is None:
            raise forms.ValidationError(_("Say at least one of the two numbers."))
        return cleaned

    def clean_parallel(self) -> int | None:
        return self._at_least_one("parallel")

    def clean_per_minute(self) -> int | None:
        return self._at_least_one("per_minute")

    def _at_least_one(self, name: str) -> int | None:
        number: int | None = self.cleaned_data[name]
        if number is not None and number < 1:
            raise forms.ValidationError(_("At least one."))
        return number
