"""The forms of watching, excluding and withdrawing."""

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from corpus.models import Sitting
from surveys.exclusion import FLAG, FLAGS, KINDS, kind_of
from surveys.facts import flag_counts
from surveys.models import Survey
from surveys.watching import SIGNALS

MAX_LIMIT = 1_000_000


class RuleForm(forms.Form):
    """A rule as it is asked for. A kind with a limit needs one; the others take none."""

    kind = forms.ChoiceField(label=gettext_lazy("Rule"), widget=forms.Select(attrs={"class": "form-select"}))
    limit = forms.FloatField(
        label=gettext_lazy("Limit"),
        required=False,
        min_value=0,
        max_value=MAX_LIMIT,
        widget=forms.TextInput(attrs={"class": "form-control", "inputmode": "decimal"}),
        localize=True,
    )

    def __init__(self, *args: Any, survey: Survey, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        dots = {"limit": "…"}
        choices = [(code, str(kind.words) % dots) for code, kind in KINDS.items()]
        for code in [*FLAGS, *sorted(set(flag_counts(survey)) - set(FLAGS))]:
            flagged = kind_of(FLAG + code)
            choices.append((FLAG + code, str(flagged.words) % dots if flagged else code))
        self.fields["kind"].choices = choices  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        kind = kind_of(cleaned.get("kind", ""))
        if kind is None:
            return cleaned
        limit = cleaned.get("limit")
        if not kind.unit:
            cleaned["limit"] = None
        elif limit is None and "limit" not in self.errors:
            self.add_error("limit", _("This rule needs a limit: a number of %(unit)s.") % {"unit": kind.unit})
        elif limit is not None and kind.whole and not float(limit).is_integer():
            self.add_error("limit", _("This rule counts: its limit is a whole number."))
        return cleaned


class ReasonForm(forms.Form):
    """Why: kept with what it explains. No text of a participant belongs here."""

    reason = forms.CharField(
        label=gettext_lazy("Reason"),
        max_length=200,
        widget=forms.TextInput(attrs={"class": "form-control", "autocomplete": "off"}),
    )


class SittingFilterForm(forms.Form):
    state = forms.ChoiceField(label=gettext_lazy("State"), required=False)
    standing = forms.ChoiceField(label=gettext_lazy("Standing"), required=False)
    flag = forms.ChoiceField(label=gettext_lazy("Flag"), required=False)

    def __init__(self, *args: Any, flags: dict[str, Any], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        every = [("", _("all"))]
        known = {**FLAGS, **SIGNALS, **flags}
        self.fields["state"].choices = [*every, *Sitting.State.choices]  # type: ignore[attr-defined]
        self.fields["standing"].choices = [*every, *Sitting.Standing.choices]  # type: ignore[attr-defined]
        self.fields["flag"].choices = [*every, *known.items()]  # type: ignore[attr-defined]
        for field in self.fields.values():
            field.widget.attrs["class"] = "form-select"
