"""Forms of the instrument pages. `seen` is the revision that the page showed: see corpus.instruments."""

import base64
import binascii
from typing import Any, cast

from django import forms
from django.core.validators import RegexValidator
from django.utils.translation import gettext_lazy as _

from corpus.importing import MAX_BYTES, MAX_SOURCE, StimulusRow
from corpus.models import Complexity, Instrument, Stimulus
from corpus.tokens import word_tokens
from studies.access import Visitor, studies_of
from studies.forms import AddressField, StyledForm
from studies.models import Study

MAX_REFUSAL_BELOW = 50
MAX_INSTRUCTION = 20_000
LANGUAGE = RegexValidator(r"^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$", _("A language code, such as ru, de or pt-BR."))
LARGEST = 2_147_483_647


class InstrumentField(forms.ModelChoiceField):
    def label_from_instance(self, obj: Instrument) -> str:
        return f"{obj} · {obj.get_state_display()}"


def _lines(text: str) -> str:
    """Forms send CRLF whatever was typed; files and comparisons want one kind of line end."""
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()


class NamesForm(StyledForm):
    title = forms.CharField(label=_("Title"), max_length=200)
    slug = AddressField(
        label=_("Address"),
        max_length=60,
        help_text=_("Latin letters, digits and hyphens. All versions of an instrument share it; exports name it."),
    )


class EmptyForm(NamesForm):
    language = forms.CharField(
        label=_("Language"), max_length=10, validators=[LANGUAGE], help_text=_("A language code, such as ru, de or fi.")
    )


class FileForm(EmptyForm):
    file = forms.FileField(
        label=_("CSV file"),
        help_text=_("Columns: id, task, original, complexity, shuffled; also is_practice, feedback, source."),
        widget=forms.ClearableFileInput(attrs={"accept": ".csv,text/csv"}),
    )
    refusal_below = forms.IntegerField(
        label=_("Fewest words of an answer"),
        min_value=1,
        max_value=MAX_REFUSAL_BELOW,
        initial=4,
        help_text=_("An answer of fewer words is a refusal. It must be lower than the words of the shortest original."),
    )

    def clean_file(self) -> bytes:
        return file_read(self.cleaned_data["file"])


def file_read(file: Any) -> bytes:
    """At most one byte more than is allowed, so that `read_stimuli` can say that it is too much."""
    return cast(bytes, file.read(MAX_BYTES + 1))


class CopyForm(NamesForm):
    """An instrument of any study that the person researches, as a new one here."""

    instrument = InstrumentField(label=_("Instrument"), queryset=Instrument.objects.none(), empty_label=None)
    field_order = ("instrument", "title", "slug")

    def __init__(self, *args: Any, user: Visitor, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        known = Instrument.objects.filter(study__in=studies_of(user)).order_by("study", "slug", "-version")
        cast(forms.ModelChoiceField, self.fields["instrument"]).queryset = known


class CopyElsewhereForm(NamesForm):
    """This instrument as a new one, here or in another study that the person researches."""

    study = forms.ModelChoiceField(label=_("Study"), queryset=Study.objects.none(), empty_label=None)

    def __init__(self, *args: Any, user: Visitor, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        cast(forms.ModelChoiceField, self.fields["study"]).queryset = studies_of(user).order_by("title")


class SeenForm(forms.Form):
    seen = forms.IntegerField(min_value=1, max_value=LARGEST, widget=forms.HiddenInput)


class MoveForm(SeenForm):
    to = forms.IntegerField(min_value=0, max_value=LARGEST)


class VersionForm(forms.Form):
    version = forms.IntegerField(min_value=1, max_value=LARGEST, widget=forms.HiddenInput)


class InstrumentForm(SeenForm, StyledForm):
    title = forms.CharField(label=_("Title"), max_length=200)
    language = forms.CharField(
        label=_("Language"), max_length=10, validators=[LANGUAGE], help_text=_("A language code, such as ru, de or fi.")
    )
    refusal_below = forms.IntegerField(
        label=_("Fewest words of an answer"),
        min_value=1,
        max_value=MAX_REFUSAL_BELOW,
        help_text=_("An answer of fewer words is a refusal. It must be lower than the words of the shortest original."),
    )
    lower_case = forms.BooleanField(
        label=_("Raters see answers in lower case"),
        required=False,
        help_text=_("Right where the originals are written so: a model's capitals then say nothing to a rater."),
    )
    instruction = forms.CharField(
        label=_("Instruction"),
        required=False,
        max_length=MAX_INSTRUCTION,
        widget=forms.Textarea(attrs={"rows": 14}),
        help_text=_("An empty line begins a paragraph, a hyphen at its beginning a list item, **so** is bold."),
    )

    def clean_instruction(self) -> str:
        return _lines(self.cleaned_data["instruction"])


class StimulusForm(SeenForm, StyledForm):
    text = forms.CharField(
        label=_("Given words"),
        max_length=1_000,
        widget=forms.Textarea(attrs={"rows": 2, "spellcheck": "false"}),
        help_text=_("As participants and models see them, punctuation included."),
    )
    original = forms.CharField(
        label=_("Original"),
        max_length=1_000,
        widget=forms.Textarea(attrs={"rows": 2, "spellcheck": "false"}),
        help_text=_("The sentence that the words come from. Its number of words is what the word count compares with."),
    )
    complexity = forms.ChoiceField(label=_("Complexity"), choices=Complexity.choices)
    shuffled = forms.BooleanField(label=_("The given words are out of order"), required=False)
    is_practice = forms.BooleanField(
        label=_("A task for practice"),
        required=False,
        help_text=_("It comes before the real ones, with feedback, and is never rated, given to models or scored."),
    )
    feedback = forms.CharField(
        label=_("Feedback after practice"),
        required=False,
        max_length=2_000,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text=_("Stands under the right answer. Only practice tasks show it."),
    )
    source = forms.CharField(
        label=_("Source"),
        required=False,
        max_length=MAX_SOURCE,
        help_text=_("Where the sentence comes from: treebank, number, licence."),
    )

    def _words(self, name: str) -> str:
        text = _lines(self.cleaned_data[name])
        if not word_tokens(text):
            raise forms.ValidationError(_("There is no word in it."))
        return text

    def clean_text(self) -> str:
        return self._words("text")

    def clean_original(self) -> str:
        return self._words("original")

    def clean_feedback(self) -> str:
        return _lines(self.cleaned_data["feedback"])

    def row(self, position: int = 0) -> StimulusRow:
        known = {name: value for name, value in self.cleaned_data.items() if name != "seen"}
        return StimulusRow(position=position, **known)


def stimulus_initial(stimulus: Stimulus) -> dict[str, Any]:
    names = ("text", "original", "complexity", "shuffled", "is_practice", "feedback", "source")
    return {name: getattr(stimulus, name) for name in names}


class ImportForm(SeenForm, StyledForm):
    file = forms.FileField(
        label=_("CSV file"),
        help_text=_("Columns: id, task, original, complexity, shuffled; also is_practice, feedback, source."),
        widget=forms.ClearableFileInput(attrs={"accept": ".csv,text/csv"}),
    )

    def clean_file(self) -> bytes:
        return file_read(self.cleaned_data["file"])


class ImportConfirmForm(SeenForm):
    """The file once more, as it was compared. In base64, since a form field would change its line ends."""

    content = forms.CharField(widget=forms.HiddenInput, max_length=4 * MAX_BYTES // 3 + 8, strip=False)

    def clean_content(self) -> bytes:
        try:
            return base64.b64decode(self.cleaned_data["content"], validate=True)
        except (binascii.Error, ValueError) as error:
            raise forms.ValidationError(_("The file did not arrive as it was sent. Choose it again.")) from error
