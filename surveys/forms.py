from typing import Any, cast

from django import forms
from django.utils.translation import gettext_lazy as _

from corpus.builtin import study_text
from corpus.models import Instrument
from studies.forms import StyledForm
from studies.models import Study


class SurveyForm(StyledForm):
    title = forms.CharField(label=_("Title"), max_length=200, help_text=_("For you; participants do not see it."))
    instrument = forms.ModelChoiceField(label=_("Instrument"), queryset=Instrument.objects.none(), empty_label=None)
    contact = forms.CharField(
        label=_("Contact"), max_length=200, help_text=_("Whom participants may write to: a name and an address.")
    )
    consent_text = forms.CharField(
        label=_("Consent"),
        widget=forms.Textarea(attrs={"rows": 12}),
        help_text=_("What participants agree to, word for word. A line that begins with a hyphen is a list item."),
    )

    def __init__(self, *args: Any, study: Study, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        cast(forms.ModelChoiceField, self.fields["instrument"]).queryset = study.instruments.order_by(
            "slug", "-version"
        )
        self.fields["consent_text"].initial = study_text("consent.ru.md")


class StartForm(forms.Form):
    start_key = forms.UUIDField()
