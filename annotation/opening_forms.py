"""What a researcher chooses before a campaign opens."""

import re
import secrets
from collections.abc import Mapping
from typing import Any, cast

from django import forms
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_lazy as _

from annotation.choosing import Selection, sources_of
from annotation.doubting import SURE_BELOW
from annotation.doubting_forms import FIELDS, DoubtForm, doubt_before
from annotation.forms import (
    ADJUDICATOR_HELP,
    MAX_RATERS_PER_ANSWER,
    MAX_SEED,
    RUBRIC_CHOICES,
    MemberField,
    members_choosable,
)
from annotation.layout import Plan, judged_codes
from annotation.models import Campaign, Guideline
from corpus.models import Complexity, Instrument, Stimulus
from scoring.models import Criterion
from scoring.services import CHILDREN_CRITERIA, CHILDREN_RUBRIC, PAPER_CRITERIA, PAPER_RUBRIC
from studies.forms import StyledForm
from studies.models import Membership, Study, User

MAX_SAMPLE = 1_000_000
MAX_DISTANCE = 100_000
KINDS = [("", _("people and models")), ("human", _("people only")), ("model", _("models only"))]
SHUFFLED = [("", _("any")), ("1", _("shuffled")), ("0", _("as in the sentence"))]
SECTIONS = [
    ("", ["title", "instrument", "raters_per_answer", "deadline", "adjudicator"]),
    (
        _("Which answers"),
        [
            "kind",
            "sources",
            "only_new",
            "undecided_in",
            *FIELDS,
            "sample",
            "with_refusals",
            "complexity",
            "shuffled",
            "stimuli",
        ],
    ),
    (_("How they are judged"), ["rubric", "criteria", "guideline", "identical", "seed"]),
    (_("Checks"), ["training", "gold_every", "repeat_percent", "repeat_distance"]),
]
DEFAULTS = {"rubric": PAPER_RUBRIC, "identical": "once", "repeat_distance": "50", "sure_below": str(SURE_BELOW)}


def _local() -> str:
    """For the zone's name beside a moment that is typed in: it is the server's, not the browser's."""
    return timezone.get_current_timezone_name()


class DeadlineField(forms.DateTimeField):
    widget = forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M")

    def clean(self, value: Any) -> Any:
        moment = super().clean(value)
        if moment is not None and moment <= timezone.now():
            raise forms.ValidationError(gettext("This moment has passed."))
        return moment


class DeadlineForm(StyledForm):
    deadline = DeadlineField(label=_("Deadline"), required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["deadline"].help_text = _deadline_help()


def _deadline_help() -> str:
    return gettext("Time zone: %(zone)s. Raters see it; nothing closes by itself. Empty: none.") % {"zone": _local()}


def _guideline_title(guideline: Guideline) -> str:
    parts = [
        gettext("version %(n)d") % {"n": guideline.version},
        date_format(timezone.localtime(guideline.created_at), "DATE_FORMAT"),
        gettext("for one grade") if guideline.rubric_slug == CHILDREN_RUBRIC else "",
        guideline.note,
    ]
    return " · ".join(part for part in parts if part)


class CampaignForm(DoubtForm):
    title = forms.CharField(label=_("Title"), max_length=200, help_text=_("Raters see it on their first page."))
    instrument = forms.ModelChoiceField(
        label=_("Answers of"), queryset=Instrument.objects.none(), required=False, empty_label=_("all instruments")
    )
    kind = forms.ChoiceField(label=_("Given by"), choices=KINDS, required=False)
    sources = forms.MultipleChoiceField(
        label=_("Only from"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=_("None ticked: from all of them."),
    )
    complexity = forms.MultipleChoiceField(
        label=_("Complexity of the stimulus"),
        choices=Complexity.choices,
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=_("None ticked: any."),
    )
    shuffled = forms.ChoiceField(label=_("Order of the given words"), choices=SHUFFLED, required=False)
    stimuli = forms.CharField(
        label=_("Only the stimuli with these numbers"),
        max_length=200,
        required=False,
        help_text=_("Such as 1, 4-7. Needs one instrument chosen above. Empty: all."),
    )
    only_new = forms.BooleanField(
        label=_("Only answers that no earlier campaign holds"),
        required=False,
        help_text=_("For answers that came in after an earlier campaign was opened."),
    )
    undecided_in = forms.ModelChoiceField(
        label=_("Only what is undecided in"),
        queryset=Campaign.objects.none(),
        required=False,
        empty_label=_("does not matter"),
        help_text=_("Answers without a majority in a closed campaign; this one's judgements count beside its own."),
    )
    with_refusals = forms.BooleanField(
        label=_("Refusals too"),
        required=False,
        help_text=_("Answers with too few words are 0 by rule, however raters judge them. Usually they stay out."),
    )
    sample = forms.IntegerField(
        label=_("A random sample of so many answers"),
        min_value=1,
        max_value=MAX_SAMPLE,
        required=False,
        help_text=_("As many for each stimulus as can be. Empty: all answers."),
    )
    rubric = forms.ChoiceField(
        label=_("Judged by"),
        choices=RUBRIC_CHOICES,
        initial=PAPER_RUBRIC,
        required=False,
        help_text=_(
            "What raters are asked of each answer. Results show an instrument by its newest campaign's rubric."
        ),
    )
    criteria = forms.MultipleChoiceField(
        label=_("Only these criteria"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=_("None ticked: all that are judged by hand."),
    )
    raters_per_answer = forms.IntegerField(
        label=_("Raters per answer"),
        min_value=1,
        max_value=MAX_RATERS_PER_ANSWER,
        initial=3,
        help_text=_("With three, two who agree decide. Of two who disagree neither does."),
    )
    identical = forms.ChoiceField(
        label=_("The same text given several times to one stimulus"),
        choices=Campaign.Identical.choices,
        initial=Campaign.Identical.ONCE,
        required=False,
        help_text=_("Capitals, quotation marks and the full stop make no difference. Alpha counts such a text once."),
    )
    training = forms.BooleanField(
        label=_("Train raters first"),
        required=False,
        help_text=_("Each rater begins with the study's training answers and is told after each what is right."),
    )
    gold_every = forms.IntegerField(
        label=_("A gold answer after about so many"),
        min_value=1,
        max_value=1_000,
        required=False,
        help_text=_("Answers whose right values are known, mixed in unmarked. Empty: none."),
    )
    repeat_percent = forms.IntegerField(
        label=_("Repeated answers, percent"),
        min_value=0,
        max_value=100,
        required=False,
        help_text=_("Raters meet these answers twice: how far they agree with themselves. Empty: none."),
    )
    repeat_distance = forms.IntegerField(
        label=_("Other answers before a repeat, at least"),
        min_value=1,
        max_value=MAX_DISTANCE,
        initial=50,
        required=False,
    )
    guideline = forms.ChoiceField(
        label=_("Rules that raters read"),
        required=False,
        help_text=_("A campaign keeps the version that it opened with."),
    )
    deadline = DeadlineField(label=_("Deadline"), required=False)
    adjudicator = MemberField(
        label=_("Who decides what stays undecided"),
        queryset=Membership.objects.none(),
        required=False,
        empty_label=_("to be named later"),
        help_text=ADJUDICATOR_HELP,
    )
    seed = forms.IntegerField(
        label=_("Seed of the order"),
        min_value=0,
        max_value=MAX_SEED,
        help_text=_("The same number gives the same sample and order of the same answers."),
    )

    def __init__(
        self, *args: Any, study: Study, blinded: bool, judges: Mapping[int, str] | None = None, **kwargs: Any
    ) -> None:
        """`judges`: the automatic judges that have judged the study's answers, by name."""
        super().__init__(*args, **kwargs)
        self._choices(study)
        self.doubt_prepare(judges or {}, blinded=blinded)
        self.fields["deadline"].help_text = _deadline_help()
        self.fields["seed"].initial = secrets.randbelow(1_000_000)
        closed = study.campaigns.filter(state=Campaign.State.CLOSED).order_by("-opened_at")
        if blinded:  # who rates must not narrow the answers to those of one side and so know whose they are
            self.fields.pop("sources", None)
            del self.fields["kind"]
        if blinded or not closed.exists():  # what raters left undecided is a result
            del self.fields["undecided_in"]
        else:
            cast(forms.ModelChoiceField, self.fields["undecided_in"]).queryset = closed

    def _choices(self, study: Study) -> None:
        instruments = study.instruments.order_by("slug", "-version")
        cast(forms.ModelChoiceField, self.fields["instrument"]).queryset = instruments
        cast(forms.ModelChoiceField, self.fields["adjudicator"]).queryset = members_choosable(study)
        sources = sources_of(study)
        labels = dict.fromkeys(one.label for one in sources)
        found = {label: sum(one.answers for one in sources if one.label == label) for label in labels}
        choices = [(label, f"{label} · {n}") for label, n in found.items()]
        cast(forms.MultipleChoiceField, self.fields["sources"]).choices = choices
        if len(choices) < 2:
            del self.fields["sources"]
        questions = {
            code: ru if get_language() == "ru" else en
            for code, ru, en, kind in [*PAPER_CRITERIA, *CHILDREN_CRITERIA]
            if kind == Criterion.Kind.JUDGED
        }
        cast(forms.MultipleChoiceField, self.fields["criteria"]).choices = list(questions.items())
        self._guidelines = {
            str(one.version): one for one in Guideline.objects.filter(study=study).order_by("-version").defer("text")
        }
        cast(forms.ChoiceField, self.fields["guideline"]).choices = [
            ("", gettext("the newest, or Luria's own where there is none")),
            *((version, _guideline_title(one)) for version, one in self._guidelines.items()),
        ]

    def clean_stimuli(self) -> list[int]:
        """The stimuli's rows; none: all."""
        numbers: set[int] = set()
        text = self.cleaned_data["stimuli"]
        for part in filter(None, re.split(r"[,;\s]+", text)):
            match = re.fullmatch(r"([0-9]{1,4})(?:[-–]([0-9]{1,4}))?", part)
            if match is None:
                raise forms.ValidationError(gettext("Numbers and ranges, such as 1, 4-7."))
            numbers |= set(range(int(match[1]), int(match[2] or match[1]) + 1))
        instrument = self.cleaned_data.get("instrument")
        if text and instrument is None:
            raise forms.ValidationError(gettext("Choose one instrument: numbers mean nothing without it."))
        found = instrument.stimuli.filter(is_practice=False, position__in=numbers) if instrument else None
        rows = list(found.values_list("pk", flat=True)) if found is not None and numbers else []
        if text and not rows:
            raise forms.ValidationError(gettext("The instrument has no stimulus with such a number."))
        return rows

    def sections(self) -> list[tuple[str, list[forms.BoundField], bool]]:
        """Heading, fields, and whether something in it was chosen or is wrong, so that it stands open."""
        found = []
        for heading, names in SECTIONS:
            fields = [self[name] for name in names if name in self.fields]
            chosen = any(
                field.name != "seed" and field.value() and str(field.value()) != DEFAULTS.get(field.name)
                for field in fields
            )
            found.append((str(heading), fields, chosen or any(field.errors for field in fields)))
        return found

    def clean(self) -> dict[str, Any]:
        data = self.cleaned_data
        rubric = data.get("rubric") or PAPER_RUBRIC
        foreign = [code for code in data.get("criteria") or () if code not in judged_codes(rubric)]
        if foreign:
            self.add_error("criteria", gettext("This is not asked in what you chose under “Judged by”."))
        guideline = self._guidelines.get(data.get("guideline") or "")
        if guideline is not None and guideline.rubric_slug != rubric:
            self.add_error("guideline", gettext("These rules are not for what you chose under “Judged by”."))
        if data.get("repeat_percent") and not data.get("repeat_distance"):
            self.add_error("repeat_distance", gettext("Say how many other answers come before a repeat."))
        self.doubt_check(data)
        return data

    def selection(self) -> Selection:
        data = self.cleaned_data
        return Selection(
            instrument=data["instrument"],
            kind=data.get("kind", ""),
            sources=data.get("sources") or (),
            complexity=data["complexity"],
            shuffled={"1": True, "0": False}.get(data["shuffled"]),
            stimuli=data["stimuli"],
            with_refusals=data["with_refusals"],
            only_new=data["only_new"],
            undecided_in=data.get("undecided_in"),
            doubt=self.doubting(),
            sample=data["sample"],
        )

    def plan(self) -> Plan:
        data = self.cleaned_data
        rubric = data["rubric"] or PAPER_RUBRIC
        return Plan(
            rubric=rubric,
            codes=tuple(data["criteria"]),
            identical=data["identical"] or Campaign.Identical.ONCE,
            repeat_percent=data["repeat_percent"] or 0,
            repeat_distance=data["repeat_distance"] or 0,
            training=data["training"],
            gold_every=data["gold_every"] or 0,
            guideline=int(data["guideline"]) if data["guideline"] else None,
            deadline=data["deadline"],
        )

    def adjudicator_user(self) -> User | None:
        member: Membership | None = self.cleaned_data["adjudicator"]
        return member.user if member else None


def asked_before(campaign: Campaign) -> dict[str, Any]:
    """What a campaign was asked for, as a form's initial values. One query where it was for some stimuli only."""
    asked, plan = campaign.selection.get("asked", {}), campaign.selection.get("plan", {})
    numbers = Stimulus.objects.filter(pk__in=asked.get("stimuli", ())).order_by("position")
    return {
        **{name: value for name, value in asked.items() if name not in ("balanced", "doubt")},
        **doubt_before(asked),
        **{name: value or None for name, value in plan.items() if name != "repeat_distance"},
        "criteria": plan.get("criteria", []),
        "repeat_distance": plan.get("repeat_distance") or CampaignForm.base_fields["repeat_distance"].initial,
        "shuffled": {True: "1", False: "0"}.get(asked.get("shuffled"), ""),
        "stimuli": ", ".join(map(str, numbers.values_list("position", flat=True))) if asked.get("stimuli") else "",
        "guideline": str(plan.get("guideline") or ""),
        "raters_per_answer": campaign.raters_per_answer,
        "identical": campaign.identical,
    }
