"""Form classes that look like Bootstrap's."""

from typing import Any, ClassVar

from django import forms
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.password_validation import validate_password
from django.utils.translation import gettext_lazy as _

from studies.models import Role, User

CLASSES: dict[type[forms.Widget], str] = {
    forms.CheckboxInput: "form-check-input",
    forms.CheckboxSelectMultiple: "list-unstyled",
    forms.RadioSelect: "list-unstyled",
    forms.Select: "form-select",
}


class AddressField(forms.SlugField):
    """A short name that stands in addresses and file columns."""

    default_error_messages: ClassVar[dict[str, Any]] = {
        "invalid": _("Latin letters, digits, hyphens and underscores only, without spaces.")
    }


class StyledMixin:
    """Gives each widget Bootstrap's class, so that templates/_form.html can draw any form."""

    fields: dict[str, forms.Field]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            widget = field.widget
            widget.attrs.setdefault("class", CLASSES.get(type(widget), "form-control"))


class StyledForm(StyledMixin, forms.Form):
    pass


class LoginForm(StyledMixin, AuthenticationForm):
    pass


class JoinForm(StyledForm):
    """A newcomer's account, or a known user's new password (then the name is given and the field left out)."""

    username = forms.CharField(
        label=_("User name"),
        max_length=150,
        validators=[User.username_validator],
        help_text=_("Letters, digits and @ . + - _"),
        widget=forms.TextInput(attrs={"autocomplete": "username"}),
    )
    password = forms.CharField(
        label=_("Password"),
        help_text=_("At least 8 characters."),
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )

    def __init__(self, *args: Any, known: User | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.known = known
        if known is not None:
            del self.fields["username"]

    def clean_username(self) -> str:
        username: str = self.cleaned_data["username"]
        if User.objects.filter(username__iexact=username).exists():
            raise forms.ValidationError(_("This name is taken."))
        return username

    def clean_password(self) -> str:
        password: str = self.cleaned_data["password"]
        validate_password(password, self.known or User(username=self.cleaned_data.get("username", "")))
        return password


class InvitationForm(StyledForm):
    # The narrower role first: who may see results is not to be decided by a field left as it was.
    role = forms.ChoiceField(label=_("Role"), choices=Role.choices, initial=Role.RATER)
    note = forms.CharField(
        label=_("For whom"), max_length=200, required=False, help_text=_("A note for yourself, such as a name.")
    )
