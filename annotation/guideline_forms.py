"""The form in which a version of the rules is written."""

from django import forms
from django.utils.translation import gettext_lazy as _

from scoring.services import CHILDREN_RUBRIC, PAPER_RUBRIC, RUBRICS
from studies.forms import StyledForm

MAX_TEXT = 20_000
RUBRIC_NAMES = {PAPER_RUBRIC: _("yes or no, three criteria"), CHILDREN_RUBRIC: _("one grade")}


def lines(text: str) -> str:
    """Forms send CRLF whatever was typed; comparisons want one kind of line end."""
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()


class GuidelineForm(StyledForm):
    rubric = forms.ChoiceField(choices=[(slug, slug) for slug in RUBRICS], widget=forms.HiddenInput)
    seen = forms.CharField(max_length=60, widget=forms.HiddenInput)
    text = forms.CharField(
        label=_("Rules"),
        max_length=MAX_TEXT,
        widget=forms.Textarea(attrs={"rows": 18, "lang": ""}),
        help_text=_("An empty line begins a paragraph, a hyphen at its beginning a list item, **so** is bold."),
    )
    note = forms.CharField(
        label=_("What changed"),
        max_length=300,
        required=False,
        help_text=_("For your colleagues; raters do not see it."),
        widget=forms.TextInput(attrs={"lang": "", "autocomplete": "off"}),
    )

    def clean_text(self) -> str:
        text = lines(self.cleaned_data["text"])
        if not text:
            raise forms.ValidationError(_("Write the rules."))
        return text
