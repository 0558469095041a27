"""What the person importing judgements chooses: the files, where they go, how they are read."""

from collections.abc import Sequence
from typing import Any, cast
from zoneinfo import available_timezones

from django import forms
from django.core.files.uploadedfile import UploadedFile
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from annotation.forms import RUBRIC_CHOICES
from annotation.import_words import FORMATS
from annotation.importers.documents import MAX_BYTES
from annotation.importers.values import plain
from annotation.importing import MAX_TITLE
from corpus.tables.decoding import ENCODINGS
from corpus.tables.faults import FaultError
from corpus.tables.table import DELIMITERS, open_table
from corpus.tables.times import DAY_FIRST, MONTH_FIRST
from scoring.services import PAPER_RUBRIC
from studies.forms import StyledForm

MEGABYTE = 1024 * 1024
MAX_FILES = 50
AS_SEEN = ("", _("as seen from the file"))
FORMAT_CHOICES = [AS_SEEN, *FORMATS.items()]


class FilesInput(forms.FileInput):
    allow_multiple_selected = True


class FilesField(forms.FileField):
    """Several files in one field; its value is a list."""

    widget = FilesInput

    def clean(self, data: Any, initial: Any = None) -> list[UploadedFile]:
        several = data if isinstance(data, list | tuple) else [data]
        return [super(FilesField, self).clean(one, initial) for one in several]


class JudgementUploadForm(StyledForm):
    uploads = FilesField(label=_("Files"), allow_empty_file=True)
    format = forms.ChoiceField(label=_("Where the judgements come from"), choices=FORMAT_CHOICES, required=False)
    keys = forms.FileField(
        label=_("Table of keys"),
        required=False,
        help_text=_(
            "Only if the records name the answers by keys of your own: a table with the key in its first column and "
            "the answer's id in Luria (the column “answer” of the exports) in its second."
        ),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["uploads"].help_text = gettext(
            "JSON, JSONL, CSV, TSV or XLSX, or a ZIP of them, together at most %(size)s MB. Of doccano send the whole "
            "ZIP, or the files of all annotators at once: a file's name says whose it is. Nothing is imported yet: you "
            "will see what would happen."
        ) % {"size": MAX_BYTES // MEGABYTE}

    def clean_uploads(self) -> list[UploadedFile]:
        files: list[UploadedFile] = self.cleaned_data["uploads"]
        size = sum(file.size or 0 for file in files)
        if len(files) > MAX_FILES:
            raise forms.ValidationError(gettext("At most %(most)s files at once.") % {"most": MAX_FILES})
        if size > MAX_BYTES:
            raise forms.ValidationError(
                gettext("The files have %(size)s MB; at most %(most)s MB can be imported at once.")
                % {"size": size // MEGABYTE, "most": MAX_BYTES // MEGABYTE}
            )
        return files

    def clean_keys(self) -> dict[str, str]:
        file: UploadedFile | None = self.cleaned_data["keys"]
        if file is None:
            return {}
        try:
            return keys_in(file.read())
        except FaultError as error:
            raise forms.ValidationError(gettext("The table of keys cannot be read.")) from error


def keys_in(data: bytes) -> dict[str, str]:
    """The first column of a table to its second. Raises FaultError."""
    table = open_table(data)
    pairs = [(plain(record.cell(0)), plain(record.cell(1))) for record in table.records if not record.is_blank]
    keys = {key: answer for key, answer in pairs if key}
    if any(keys[key] != answer for key, answer in pairs if key):
        raise FaultError("doubled_key")
    return keys


class JudgementChoicesForm(StyledForm):
    """Where the judgements go and how the files are read. What stands in them is chosen in tables beside this form."""

    title = forms.CharField(
        label=_("Campaign that holds the judgements"),
        max_length=MAX_TITLE,
        required=False,
        help_text=_("A name for this source, such as “Label Studio, spring 2024”. It is closed from the start."),
    )
    rubric = forms.ChoiceField(label=_("Judged on these criteria"), choices=RUBRIC_CHOICES, initial=PAPER_RUBRIC)
    ground_truth = forms.BooleanField(
        label=_("Take annotations that are marked as ground truth too, as votes of whoever made them"), required=False
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
    format = forms.ChoiceField(label=_("Where the judgements come from"), choices=FORMAT_CHOICES, required=False)
    encoding = forms.ChoiceField(label=_("Encoding"), choices=[AS_SEEN, *ENCODINGS.items()], required=False)
    delimiter = forms.ChoiceField(
        label=_("Separator"),
        required=False,
        choices=[AS_SEEN, (",", _("comma")), (";", _("semicolon")), ("tab", _("tab"))],
    )
    sheet = forms.ChoiceField(label=_("Sheet"), required=False)

    def __init__(self, *args: Any, sheets: Sequence[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if len(sheets) > 1:
            cast(forms.ChoiceField, self.fields["sheet"]).choices = [
                ("", _("choose")),
                *((name, name) for name in sheets),
            ]
        else:
            del self.fields["sheet"]

    @property
    def target(self) -> dict[str, str]:
        return {"title": self.cleaned_data["title"], "rubric": self.cleaned_data["rubric"]}

    @property
    def reading(self) -> dict[str, Any]:
        names = ("time_zone", "date_order", "encoding", "delimiter", "sheet", "ground_truth")
        chosen = {name: self.cleaned_data[name] for name in names if self.cleaned_data.get(name)}
        if chosen.get("delimiter") == "tab":
            chosen["delimiter"] = "\t"
        return chosen


def choices_initial(format_name: str, importing: dict[str, Any], target: dict[str, Any]) -> dict[str, Any]:
    initial = {"format": format_name, **importing, **target}
    if initial.get("delimiter") in DELIMITERS:
        initial["delimiter"] = "tab" if initial["delimiter"] == "\t" else initial["delimiter"]
    return initial
