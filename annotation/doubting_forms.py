"""The part of a campaign's form that asks for answers about which automatic judges are in doubt."""

from collections.abc import Mapping
from typing import Any, cast

from django import forms
from django.utils.formats import number_format
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from annotation.doubting import EITHER, KINDS, LEAST, SURE_BELOW, UNSURE, Doubting
from annotation.errors import JudgesSilentError
from studies.forms import StyledForm

MAX_ANSWERS = 1_000_000
FIELDS = ["doubt", "doubt_judges", "sure_below", "least_sure"]
NOT_JUDGED = _("No classifier or model judge has judged answers of this study yet.")
SILENT = {
    "nobody": _("None of these automatic judges has judged the study's answers on the criteria that are asked."),
    "one_judge": _("To differ takes two: each criterion that is asked has one automatic judge here."),
    "no_confidence": _("None of these automatic judges says how sure it is; model judges never do."),
    "neither": _("Each criterion that is asked has one automatic judge here, and it does not say how sure it is."),
}


def silent_words(error: JudgesSilentError) -> str:
    return str(SILENT[error.reason]) + " " + gettext("Nothing was opened.")


class DoubtForm(StyledForm):
    """Its fields are not there for who is blinded: what automatic judges said is a result."""

    doubt = forms.ChoiceField(
        label=_("Only where automatic judges are in doubt"),
        choices=[("", _("does not matter")), *KINDS.items()],
        required=False,
        help_text=_(
            "Classifiers and model judges that have judged these answers. What they doubt is no random sample: "
            "agreement and scores on it are not those of the study."
        ),
    )
    doubt_judges = forms.TypedMultipleChoiceField(
        label=_("Which automatic judges"),
        required=False,
        coerce=int,
        widget=forms.CheckboxSelectMultiple,
        help_text=_("None ticked: all of them."),
    )
    sure_below = forms.FloatField(
        label=_("Unsure is a confidence below"),
        min_value=0,
        max_value=1,
        initial=SURE_BELOW,
        required=False,
        help_text=_("From 0 to 1, on any criterion that is asked. Classifiers say how sure they are, models do not."),
    )
    least_sure = forms.IntegerField(
        label=_("How many of the least sure"),
        min_value=1,
        max_value=MAX_ANSWERS,
        required=False,
        help_text=_("For the last of these choices only."),
    )

    def doubt_prepare(self, judges: Mapping[int, str], *, blinded: bool) -> None:
        """`judges`: the names of those who have judged something."""
        self._judges = judges
        gone = FIELDS if blinded else FIELDS[1:] if not judges else FIELDS[1:2] if len(judges) == 1 else []
        for name in gone:
            del self.fields[name]
        if not judges and not blinded:
            self.fields["doubt"].help_text = NOT_JUDGED
        if "doubt_judges" in self.fields:
            choices = [(pk, name) for pk, name in judges.items()]
            cast(forms.TypedMultipleChoiceField, self.fields["doubt_judges"]).choices = choices

    def doubt_check(self, data: dict[str, Any]) -> None:
        kind = data.get("doubt")
        if kind and not self._judges:
            self.add_error("doubt", str(NOT_JUDGED) + " " + gettext("Nothing was opened."))
        if kind and data.get("with_refusals"):
            self.add_error("with_refusals", gettext("Automatic judges do not judge refusals: none is among these."))
        if kind == LEAST and "least_sure" not in self.errors and not data.get("least_sure"):
            self.add_error("least_sure", gettext("Say how many."))
        if kind != LEAST and data.get("least_sure"):
            self.add_error("doubt", gettext("You said how many of the least sure are wanted: choose those here."))

    def doubting(self) -> Doubting | None:
        data = self.cleaned_data
        if not data.get("doubt"):
            return None
        judges = sorted(data.get("doubt_judges") or self._judges)
        below = data.get("sure_below")
        return Doubting(
            kind=data["doubt"],
            judges=judges,
            names=[self._judges[pk] for pk in judges],
            below=SURE_BELOW if below is None else below,
            least=data.get("least_sure"),
        )


def doubt_before(asked: Mapping[str, Any]) -> dict[str, Any]:
    """What an earlier campaign was asked for, as a form's initial values."""
    doubt = asked.get("doubt")
    if not doubt:
        return {}
    return {
        "doubt": doubt["kind"],
        "doubt_judges": doubt["judges"],
        "sure_below": doubt.get("below", SURE_BELOW),
        "least_sure": doubt.get("least"),
    }


def doubt_words(doubt: Mapping[str, Any]) -> str:
    """What was asked for, in a line."""
    words = str(KINDS[doubt["kind"]])
    if doubt["kind"] in (UNSURE, EITHER):
        words += " " + gettext("(a confidence below %(bound)s)") % {"bound": number_format(doubt["below"])}
    if doubt["kind"] == LEAST:
        words += f": {doubt['least']}"
    return words + " · " + gettext("judges: %(names)s") % {"names": ", ".join(doubt["names"])}
