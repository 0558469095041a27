"""Forms of releases."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from reports.releases.policy import Policy, Questionnaire
from studies.forms import AddressField, StyledForm
from studies.models import Study

MAX_ON_PAGE = 2 * 1024**2  # some 15,000 answers with three raters: what is larger keeps a browser waiting too long


class ReleaseForm(StyledForm):
    timings = forms.BooleanField(
        label=_("How long answers took, pastes, time away, kind of device"),
        required=False,
        help_text=_(
            "Only if the consent to publication allows it. The one that Luria brings does not: it promises that the "
            "time of taking part stays out."
        ),
    )
    questionnaire = forms.ChoiceField(
        label=_("Of the questionnaire"),
        choices=Questionnaire.choices,
        initial=Questionnaire.NONE,
        widget=forms.RadioSelect(attrs={"class": "list-unstyled"}),
        help_text=_("What people say of themselves can name them, several answers together above all."),
    )
    licence = forms.CharField(
        label=_("Licence"),
        max_length=100,
        required=False,
        help_text=_("Such as CC-BY-4.0. Without one nobody knows what they may do with the data."),
    )
    authors = forms.CharField(
        label=_("Authors"), max_length=300, required=False, help_text=_("Names, separated by semicolons.")
    )
    note = forms.CharField(
        label=_("What is new in this version"),
        max_length=300,
        required=False,
        help_text=_("Stands in the dataset's list of changes."),
    )

    def policy(self) -> Policy:
        chosen: dict[str, Any] = self.cleaned_data
        return Policy(
            timings=chosen["timings"],
            questionnaire=chosen["questionnaire"],
            licence=chosen["licence"],
            authors=chosen["authors"],
        )


class ReleaseImportForm(StyledForm):
    file = forms.FileField(label=_("Archive of a release (ZIP)"))
    slug = AddressField(
        label=_("Address"),
        max_length=60,
        required=False,
        help_text=_("Of the new study. Left empty, it is the one that the release names."),
    )
    dry_run = forms.BooleanField(label=_("Only look: say what would come, and store nothing"), required=False)

    def clean_slug(self) -> str:
        slug: str = self.cleaned_data["slug"]
        if slug == "new" or (slug and Study.objects.filter(slug=slug).exists()):
            raise forms.ValidationError(_("This address is taken."))
        return slug

    def clean_file(self) -> Any:
        file = self.cleaned_data["file"]
        if file.size > MAX_ON_PAGE:
            raise forms.ValidationError(
                _("The file is too large for a page: import it by command, manage.py release_import.")
            )
        return file
