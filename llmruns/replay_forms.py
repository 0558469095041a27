from typing import Any, cast

from django import forms
from django.core.files.uploadedfile import UploadedFile
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from corpus.models import Instrument
from llmruns.importers.records import MAX_BYTES
from llmruns.models import Prompt
from llmruns.replay import Target
from llmruns.services import MAX_ATTEMPTS
from studies.forms import StyledForm
from studies.models import Study

MEGABYTE = 1024 * 1024


class ReplyUploadForm(StyledForm):
    instrument = forms.ModelChoiceField(
        label=_("Instrument"),
        queryset=Instrument.objects.none(),
        help_text=_("The test that these models took. Its stimuli must be here already."),
    )
    file = forms.FileField(label=_("File"), allow_empty_file=True)

    def __init__(self, *args: Any, study: Study, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        instruments = cast(forms.ModelChoiceField, self.fields["instrument"])
        instruments.queryset = study.instruments.order_by("slug", "-version")
        instruments.empty_label = _("choose")
        if instruments.queryset.count() == 1:
            instruments.empty_label = None  # nothing to mistake it for
        self.fields["file"].help_text = gettext(
            "JSON lines, at most %(size)s MB. Nothing is imported yet: you will see what would happen."
        ) % {"size": MAX_BYTES // MEGABYTE}

    def clean_file(self) -> UploadedFile:
        file: UploadedFile = self.cleaned_data["file"]
        if (file.size or 0) > MAX_BYTES:
            raise forms.ValidationError(
                gettext("The file has %(size)s MB; at most %(most)s MB can be imported at once. Split it.")
                % {"size": (file.size or 0) // MEGABYTE, "most": MAX_BYTES // MEGABYTE}
            )
        return file


class ReplyTargetForm(StyledForm):
    """What the file does not say. `prompt` is the study's own: a draft of another study cannot name it."""

    title = forms.CharField(
        label=_("Title of the experiment"), max_length=200, required=False, help_text=_("Empty: the name of the file.")
    )
    prompt = forms.ModelChoiceField(
        label=_("Prompt"),
        queryset=Prompt.objects.none(),
        required=False,
        empty_label=_("as in the requests of the file"),
    )
    max_attempts = forms.IntegerField(
        label=_("Attempts per stimulus"),
        min_value=1,
        max_value=MAX_ATTEMPTS,
        required=False,
        help_text=_(
            "After so many replies in a wrong format a stimulus has no valid reply. Empty: as in the file, or 10."
        ),
    )

    def __init__(self, *args: Any, study: Study, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        prompts = Prompt.objects.filter(study=study, purpose=Prompt.Purpose.ANSWER)
        cast(forms.ModelChoiceField, self.fields["prompt"]).queryset = prompts.order_by("slug", "-version")

    @property
    def chosen(self) -> dict[str, Any]:
        """As a draft keeps it."""
        data = self.cleaned_data
        return {
            "title": data["title"],
            "prompt": data["prompt"].pk if data["prompt"] else None,
            "max_attempts": data["max_attempts"],
        }


def target_of(study: Study, chosen: dict[str, Any]) -> Target:
    """What a draft keeps, as the import takes it. One query where a prompt was chosen."""
    prompt = None
    if chosen.get("prompt"):
        prompt = Prompt.objects.filter(study=study, purpose=Prompt.Purpose.ANSWER, pk=chosen["prompt"]).first()
    return Target(chosen.get("title", ""), prompt, chosen.get("max_attempts"))
