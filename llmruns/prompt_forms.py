from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from corpus.models import Instrument
from llmruns.prompts import LONGEST, WORDS
from studies.forms import AddressField, StyledForm
from studies.models import Study

PROMPT_ERRORS = {
    "words": _("The text must say where the words go: {words}."),
    "long": _("The text is too long."),
    "same": _("The newest version says just this."),
    "purpose": _("A prompt for something else has this name."),
    "answer": _("The text must say where the answer goes: {answer}."),
}


class _InstrumentField(forms.ModelChoiceField):
    def label_from_instance(self, obj: Any) -> str:
        return f"{obj.title} v{obj.version}"


class PromptForm(StyledForm):
    slug = AddressField(
        label=_("Name of the prompt"),
        max_length=60,
        help_text=_("A name that the study has already gets its next version."),
    )
    text = forms.CharField(
        label=_("Text"),
        max_length=LONGEST,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 16, "spellcheck": "false"}),
        help_text=_("{words} stands where the words of the stimulus go."),
    )
    note = forms.CharField(label=_("What this version tries"), max_length=300, required=False, widget=forms.TextInput())
    instrument = _InstrumentField(
        label=_("Show it with the stimuli of"), queryset=Instrument.objects.none(), empty_label=None
    )

    def __init__(self, *args: Any, study: Study, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["instrument"]
        assert isinstance(field, forms.ModelChoiceField)  # noqa: S101 - it is declared so above
        field.queryset = Instrument.objects.filter(study=study).order_by("-pk")
        field.required = field.queryset.exists()

    def clean_text(self) -> str:
        text = str(self.cleaned_data["text"]).replace("\r\n", "\n").rstrip()
        if WORDS not in text:
            raise forms.ValidationError(PROMPT_ERRORS["words"])
        return text
