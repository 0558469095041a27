"""What the person importing chooses: the file, what its columns are, where the answers go."""

from collections.abc import Sequence
from typing import Any, cast
from zoneinfo import available_timezones

from django import forms
from django.core.files.uploadedfile import UploadedFile
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from corpus.models import Instrument, Stimulus
from corpus.tables.decoding import ENCODINGS
from corpus.tables.table import MAX_BYTES
from corpus.tables.times import DAY_FIRST, MONTH_FIRST
from studies.forms import StyledForm
from studies.models import Study
from surveys.import_words import FORMATS

MEGABYTE = 1024 * 1024
AS_SEEN = ("", _("as seen from the file"))
ONCE = ("respondent", "item", "lemmas", "answer", "started", "timestamp", "consent")  # roles of one column at most


class UploadForm(StyledForm):
    instrument = forms.ModelChoiceField(
        label=_("Instrument"),
        queryset=Instrument.objects.none(),
        help_text=_("The test that these people took. Its stimuli must be here already."),
    )
    file = forms.FileField(label=_("File"), allow_empty_file=True)
    format = forms.ChoiceField(label=_("Where it comes from"), choices=[AS_SEEN, *FORMATS.items()], required=False)

    def __init__(self, *args: Any, study: Study, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        instruments = cast(forms.ModelChoiceField, self.fields["instrument"])
        instruments.queryset = study.instruments.order_by("slug", "-version")
        instruments.empty_label = _("choose")
        if instruments.queryset.count() == 1:
            instruments.empty_label = None  # nothing to mistake it for
        self.fields["file"].help_text = gettext(
            "CSV, TSV or XLSX, at most %(size)s MB. Nothing is imported yet: you will see what would happen."
        ) % {"size": MAX_BYTES // MEGABYTE}

    def clean_file(self) -> UploadedFile:
        file: UploadedFile = self.cleaned_data["file"]
        if (file.size or 0) > MAX_BYTES:
            raise forms.ValidationError(
                gettext("The file has %(size)s MB; at most %(most)s MB can be imported at once. Split it.")
                % {"size": (file.size or 0) // MEGABYTE, "most": MAX_BYTES // MEGABYTE}
            )
        return file


class ChoicesForm(StyledForm):
    """How the file is read and where its answers go. What its columns are stands in a table beside this form."""

    title = forms.CharField(
        label=_("Survey that holds the answers"),
        max_length=200,
        required=False,
        help_text=_("A name for this source, such as “Toloka, spring 2024”. The same name later adds to it."),
    )
    statement = forms.CharField(
        label=_("How the people consented"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text=_("In your words: what they were told, what they agreed to, where the consents are kept."),
    )
    publication = forms.BooleanField(label=_("They agreed that their answers be published"), required=False)
    third_parties = forms.BooleanField(
        label=_("They agreed that others process their answers (a language model's provider is one)"), required=False
    )
    time_zone = forms.ChoiceField(
        label=_("Time zone of times that name none"),
        required=False,
        choices=[("", _("not known")), *((name, name) for name in sorted(available_timezones()) if "/" in name)],
    )
    date_order = forms.ChoiceField(
        label=_("In 03/05/2024 the first number is"),
        required=False,
        choices=[AS_SEEN, (DAY_FIRST, _("the day")), (MONTH_FIRST, _("the month"))],
    )
    format = forms.ChoiceField(label=_("Where it comes from"), choices=[AS_SEEN, *FORMATS.items()], required=False)
    encoding = forms.ChoiceField(label=_("Encoding"), choices=[AS_SEEN, *ENCODINGS.items()], required=False)
    delimiter = forms.ChoiceField(
        label=_("Separator"),
        required=False,
        choices=[AS_SEEN, (",", _("comma")), (";", _("semicolon")), ("tab", _("tab"))],
    )
    sheet = forms.ChoiceField(label=_("Sheet"), required=False)
    for_excel = forms.ChoiceField(
        label=_("Is this the file “for Excel”?"),
        required=False,
        choices=[AS_SEEN, ("yes", _("yes: take its protective apostrophes away")), ("no", _("no"))],
    )

    def __init__(self, *args: Any, sheets: Sequence[str], format_name: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if format_name != "luria":
            del self.fields["for_excel"]
        if len(sheets) > 1:
            cast(forms.ChoiceField, self.fields["sheet"]).choices = [
                ("", _("choose")),
                *((name, name) for name in sheets),
            ]
        else:
            del self.fields["sheet"]

    @property
    def target(self) -> dict[str, Any]:
        return {name: self.cleaned_data[name] for name in ("title", "statement", "publication", "third_parties")}

    @property
    def reading(self) -> dict[str, Any]:
        names = ("time_zone", "date_order", "encoding", "delimiter", "sheet")
        chosen = {name: self.cleaned_data[name] for name in names if self.cleaned_data.get(name)}
        if chosen.get("delimiter") == "tab":
            chosen["delimiter"] = "\t"
        if self.cleaned_data.get("for_excel"):
            chosen["for_excel"] = self.cleaned_data["for_excel"] == "yes"
        return chosen


def role_choices(format_name: str, header: str, stimuli: Sequence[Stimulus]) -> list[tuple[str, str]]:
    """What the column of this header can be, by format. Empty: there is nothing to choose."""
    roles = {
        "respondent": gettext("who answered"),
        "item": gettext("number of the stimulus"),
        "lemmas": gettext("given words of the stimulus"),
        "answer": gettext("the answer"),
        "started": gettext("time of the start"),
        "timestamp": gettext("time of sending"),
        "consent": gettext("consent"),
        "keep": gettext("keep with the person"),
    }
    of_format = {
        "toloka": ("item", "lemmas", "answer"),
        "google_forms": ("respondent", "timestamp", "consent"),
        "prolific": ("keep",),
        "luria": (),
    }
    if format_name == "toloka" and not header.startswith(("INPUT:", "OUTPUT:")):
        return []  # what Toloka adds itself needs no choice
    names = of_format.get(format_name, tuple(name for name in roles if name != "keep"))
    chosen = [(name, roles[name]) for name in names]
    if format_name in ("google_forms", "columns"):
        chosen += [
            (f"s{stimulus.position}", f"{stimulus.position}. {stimulus.text[:60]}")
            for stimulus in stimuli
            if not stimulus.is_practice
        ]
    return chosen


def settings_of(roles: dict[int, str]) -> dict[str, Any]:
    """The importers' settings that these roles of columns come to; of two columns in one role the later one counts."""
    chosen: dict[str, Any] = {}
    for place, role in sorted(roles.items()):
        if role in ONCE:
            chosen[f"{role}_column"] = place
        elif role == "keep":
            chosen.setdefault("keep", []).append(place)
        elif role.startswith("s"):
            chosen.setdefault("answer_columns", {})[str(place)] = int(role[1:])
    return chosen


def roles_of(chosen: dict[str, Any]) -> dict[int, str]:
    """The other way round."""
    roles = {chosen[f"{role}_column"]: role for role in ONCE if isinstance(chosen.get(f"{role}_column"), int)}
    roles |= dict.fromkeys(chosen.get("keep", []), "keep")
    return roles | {int(place): f"s{number}" for place, number in chosen.get("answer_columns", {}).items()}
