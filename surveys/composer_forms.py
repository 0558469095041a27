from typing import Any, cast

from django import forms
from django.core.files.uploadedfile import UploadedFile
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from corpus.builtin import study_text
from corpus.composer import MAX_SEED, Parameters, ParametersError, bands_of, counts_of, shares_of
from corpus.languages import language_of, word_list_text
from corpus.models import Instrument, Treebank
from studies.forms import AddressField, StyledForm
from studies.models import Study

MAX_LIST = 100_000  # characters of a list of sensitive words


class CompositionForm(StyledForm):
    """A treebank, sent or chosen, and the parameters. `parameters` holds them once the form is valid."""

    title = forms.CharField(label=_("Title"), max_length=200, help_text=_("For you: what this test is for."))
    treebank = forms.ModelChoiceField(
        label=_("Treebank of this study"),
        queryset=Treebank.objects.none(),
        required=False,
        empty_label=_("a new file, chosen below"),
    )
    file = forms.FileField(
        label=_("New treebank file"),
        required=False,
        help_text=_("CoNLL-U, UTF-8, such as the .conllu files of Universal Dependencies."),
    )
    name = forms.CharField(
        label=_("Name of the treebank"),
        max_length=80,
        required=False,
        help_text=_("Kept with every task, such as UD_Russian-Taiga 2.16. By default the name of the file."),
    )
    licence = forms.CharField(
        label=_("Licence"), max_length=50, required=False, help_text=_("Kept with every task, such as CC BY-SA 4.0.")
    )
    language = forms.CharField(widget=forms.HiddenInput, max_length=10)
    counts = forms.CharField(label=_("Tasks"), initial="4, 6, 8", help_text=_("How many easy, medium and hard ones."))
    bands = forms.CharField(
        label=_("Words"), initial="4-6, 7-9, 10-12", help_text=_("How many words an easy, medium and hard task has.")
    )
    shuffled = forms.CharField(
        label=_("Share shuffled"),
        initial="0, 1/2, 1/2",
        help_text=_("Which part of the easy, medium and hard tasks shows its words out of order."),
    )
    min_zipf = forms.FloatField(
        label=_("Rarest word allowed"),
        min_value=0,
        max_value=8,
        help_text=_(
            "Zipf scale: 3 is once in a million words, 2 once in ten million. Sentences with a rarer word are left "
            "out; 0 leaves none out."
        ),
    )
    seed = forms.IntegerField(
        label=_("Seed"),
        initial=1,
        min_value=0,
        max_value=MAX_SEED,
        help_text=_("The same seed and decisions give the same test; another seed gives other proposals."),
    )
    sensitive = forms.CharField(
        label=_("Sensitive words"),
        required=False,
        max_length=MAX_LIST,
        widget=forms.Textarea(attrs={"rows": 8, "spellcheck": "false"}),
        help_text=_(
            "Sentences with one of these lemmas are left out. One on each line; an asterisk stands for any ending; "
            "what follows # is not read."
        ),
    )

    def __init__(self, *args: Any, study: Study, language: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        cast(forms.ModelChoiceField, self.fields["treebank"]).queryset = study.treebanks.order_by("name", "pk")
        self.fields["language"].initial = language
        self.fields["min_zipf"].initial = language_of(language).min_zipf
        self.fields["sensitive"].initial = word_list_text("sensitive", language)
        self.parameters: Parameters | None = None

    def clean_file(self) -> UploadedFile | None:
        file: UploadedFile | None = self.cleaned_data["file"]
        if file is not None and "\x00" in (file.name or ""):
            raise forms.ValidationError(_("The name of the file cannot be stored."))
        return file

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if not data.get("treebank") and not data.get("file") and "file" not in self.errors:
            self.add_error("file", _("Choose a file, or a treebank of this study."))
        if not self.errors:
            self._read_parameters(data)
        return data

    def _read_parameters(self, data: dict[str, Any]) -> None:
        for name, read in (("counts", counts_of), ("bands", bands_of), ("shuffled", shares_of)):
            try:
                data[name] = read(data[name])
            except ParametersError:
                self.add_error(name, SHAPES[name])
        if self.errors:
            return
        fields = ("language", "seed", "bands", "counts", "shuffled", "min_zipf", "sensitive")
        try:
            self.parameters = Parameters(**{field: data[field] for field in fields})
        except ParametersError as error:
            field = str(error).split(" ")[0]
            known = field in SHAPES
            self.add_error(
                field if known else None, SHAPES[field] if known else gettext("These parameters cannot be: %s") % error
            )


SHAPES = {
    "counts": _("Write three whole numbers from 0 to 100, not all 0, such as 4, 6, 8."),
    "bands": _("Write three rising ranges from 2 to 40 words that do not overlap, such as 4-6, 7-9, 10-12."),
    "shuffled": _("Write three shares from 0 to 1, such as 0, 0.5, 0.5 or 0, 1/2, 1/2."),
}


class MakeInstrumentForm(StyledForm):
    title = forms.CharField(label=_("Title"), max_length=200)
    slug = AddressField(
        label=_("Address"),
        max_length=60,
        help_text=_("Latin letters, digits and hyphens. An instrument of this address gets its next version."),
    )
    instruction = forms.CharField(
        label=_("Instruction"),
        widget=forms.Textarea(attrs={"rows": 10}),
        help_text=_("What participants read before the first task, in the language of the test."),
    )

    def __init__(self, *args: Any, language: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if language == "ru":
            self.fields["instruction"].initial = study_text("instruction.ru.md")

    def clean_slug(self) -> str:
        slug: str = self.cleaned_data["slug"]
        Instrument._meta.get_field("slug").run_validators(slug)
        return slug
