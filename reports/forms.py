from django import forms
from django.utils.translation import gettext_lazy as _

from studies.forms import AddressField, StyledForm
from studies.models import Study


class StudyForm(StyledForm):
    title = forms.CharField(label=_("Title"), max_length=200)
    slug = AddressField(
        label=_("Address"),
        max_length=60,
        help_text=_("Latin letters, digits and hyphens: the end of the study's address and the name of its files."),
    )

    def clean_slug(self) -> str:
        slug: str = self.cleaned_data["slug"]
        if slug == "new":
            raise forms.ValidationError(_("This address is taken."))
        if Study.objects.filter(slug=slug).exists():
            raise forms.ValidationError(_("This address is taken."))
        return slug
