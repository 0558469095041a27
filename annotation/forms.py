import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from django import forms
from django.http import QueryDict
from django.utils.formats import number_format
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from annotation.places import Remark
from annotation.selectors import Chosen
from scoring.models import Criterion
from scoring.services import CHILDREN_RUBRIC, PAPER_RUBRIC
from studies.forms import StyledForm
from studies.models import Membership, Study
from studies.selectors import members_of

MAX_RATERS_PER_ANSWER = 20
LONGEST_LOOK = 86_400.0  # seconds
MAX_SEED = 2_147_483_647  # what the column holds


class MemberField(forms.ModelChoiceField):
    def label_from_instance(self, obj: Membership) -> str:
        return f"{obj.user.username} · {obj.get_role_display()}"


def members_choosable(study: Study) -> Any:
    return members_of(study).filter(is_active=True)


RUBRIC_CHOICES = [
    (PAPER_RUBRIC, _("yes or no: grammatical, logical, natural order; and the word count by rule")),
    (CHILDREN_RUBRIC, _("one grade for the sentence: 1, 0.5, 0.25 or 0, as in the children's test")),
]


ADJUDICATOR_HELP = _(
    "Naming makes nobody a rater. Results and exports are closed to this person from the closing of the campaign until "
    "no answer waits for their decision; before that they are not, so best name somebody who is not a researcher of "
    "the study."
)


class AdjudicatorForm(StyledForm):
    adjudicator = MemberField(
        label=_("Adjudicator"),
        queryset=Membership.objects.none(),
        required=False,
        empty_label=_("nobody"),
        help_text=ADJUDICATOR_HELP,
    )

    def __init__(self, *args: Any, study: Study, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        cast(forms.ModelChoiceField, self.fields["adjudicator"]).queryset = members_choosable(study)


class WithdrawForm(forms.Form):
    place = forms.IntegerField(min_value=1, max_value=2**63 - 1)
    reason = forms.CharField(max_length=500)


class ReasonForm(StyledForm):
    # One line, so that Enter decides here too.
    reason = forms.CharField(
        label=_("Why"),
        max_length=2_000,
        help_text=_("Needed: it is kept with the decision. Esc leads back to the keys."),
        widget=forms.TextInput(attrs={"lang": "", "autocomplete": "off"}),
    )


# --- the keys and buttons of a judging page ----------------------------------------------------------------------

KEYS = [
    [("Digit1", "1"), ("Digit2", "2"), ("Digit3", "3"), ("Digit4", "4")],
    [("KeyQ", "Q"), ("KeyW", "W"), ("KeyE", "E"), ("KeyR", "R")],
    [("KeyA", "A"), ("KeyS", "S"), ("KeyD", "D"), ("KeyF", "F")],
]
"""By position on the keyboard: a row of keys for each criterion, from the best value on."""


@dataclass(frozen=True)
class Option:
    value: str
    label: str
    code: str  # the browser's name of the key; empty where the row has no more keys
    key: str
    checked: bool


@dataclass(frozen=True)
class Row:
    field: str
    criterion: Criterion
    options: list[Option]
    missing: bool


def value_label(criterion: Criterion, value: float) -> str:
    if set(criterion.scale) == {0, 1}:
        return gettext("Yes") if value == 1 else gettext("No")
    return number_format(value)


def rows_of(criteria: Sequence[Criterion], chosen: Chosen, missing: Sequence[str] = ()) -> list[Row]:
    """The criteria as a judging page shows them. `chosen` is what is stored or was just sent, and nothing else."""
    rows = []
    for number, criterion in enumerate(criteria):
        keys = KEYS[number] if number < len(KEYS) else []
        options = []
        for place, value in enumerate(criterion.scale):
            code, key = keys[place] if place < len(keys) else ("", "")
            checked = not chosen.not_attempt and chosen.values.get(criterion.code) == value
            options.append(Option(f"{value:g}", value_label(criterion, value), code, key, checked))
        rows.append(Row(f"c-{criterion.code}", criterion, options, criterion.code in missing))
    return rows


class JudgementUnreadableError(Exception):
    """The form did not come from our page: a value or version is no number."""


class CommentUnreadableError(JudgementUnreadableError):
    """The comment holds what no text has; `chosen` is what was chosen beside it."""

    def __init__(self, chosen: Chosen) -> None:
        super().__init__()
        self.chosen = chosen


@dataclass(frozen=True)
class Posted:
    chosen: Chosen
    version: int
    remark: Remark


def posted_judgement(data: QueryDict) -> Posted:
    """What a judging page sent. Whether the values are on the scale, the service says.

    Raises JudgementUnreadableError, CommentUnreadableError.
    """
    try:
        values = {field.removeprefix("c-"): float(str(value)) for field, value in data.items() if field[:2] == "c-"}
        version = int(data.get("version") or 0)
        seconds = float(str(data["seconds"])) if data.get("seconds") else None
    except ValueError as error:
        raise JudgementUnreadableError from error
    comment = data.get("comment", "").replace("\r\n", "\n").strip()
    if version not in range(2**31) or any(map(math.isnan, values.values())):
        raise JudgementUnreadableError
    chosen = Chosen(values, not_attempt=bool(data.get("not_attempt")))
    if "\x00" in comment:
        raise CommentUnreadableError(chosen)
    if seconds is not None and not 0 <= seconds < LONGEST_LOOK:  # a clock that was set meanwhile: unknown
        seconds = None
    remark = Remark(seconds, is_flagged=bool(data.get("flagged")), comment=comment)
    return Posted(chosen, version, remark)
