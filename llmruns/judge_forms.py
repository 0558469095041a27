"""What people say when a model is to judge."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from corpus.models import Instrument, Respondent
from llmruns.judge_choosing import MAX_ANSWERS
from llmruns.judging import LONGEST_DEADLINE, MAX_ATTEMPTS
from llmruns.models import Currency, ModelConfig, Prompt, Provider
from llmruns.money_forms import cap_field
from llmruns.prompts import ANSWER, LONGEST, WORDS
from scoring.services import RUBRICS
from studies.forms import AddressField, StyledForm
from studies.models import Study

JUDGING_ERRORS = {
    "bounds": _("One of the numbers is out of its bounds."),
    "foreign": _("This belongs to another study."),
    "replayed": _("Its replies were recorded elsewhere: it cannot be asked."),
    "nothing": _("No answer is left to judge."),
    "many": _("More answers than one judging can hold: draw a sample or choose fewer."),
    "cap": _("An amount above zero, in one of the currencies."),
}
JUDGING_CAP_ERRORS = {
    "uncapped": _("The judging was launched without a cap; it can be paused or cancelled."),
    "ended": _("The judging was cancelled."),
}
KINDS = [
    ("", _("people and models")),
    (Respondent.Kind.HUMAN, _("people only")),
    (Respondent.Kind.MODEL, _("models only")),
]
RUBRIC_TITLES = {
    "paper": _("the paper's: grammatical, logical, natural order"),
    "children": _("the children's test: one grade"),
}


class _InstrumentField(forms.ModelChoiceField):
    def label_from_instance(self, obj: Any) -> str:
        return f"{obj.title} v{obj.version}"


class JudgingForm(StyledForm):
    title = forms.CharField(label=_("Title"), max_length=200, required=False)
    config = forms.ModelChoiceField(label=_("Model"), queryset=ModelConfig.objects.none(), empty_label=None)
    rubric = forms.ChoiceField(
        label=_("Rubric"),
        choices=[(slug, RUBRIC_TITLES.get(slug, slug)) for slug in RUBRICS],
        help_text=_("The model is asked about its judged criteria. What is counted by rule is not asked."),
    )
    prompt = forms.ModelChoiceField(
        label=_("Prompt"),
        queryset=Prompt.objects.none(),
        required=False,
        empty_label=_("the newest for the rubric and the language"),
    )
    instrument = _InstrumentField(label=_("Answers of"), queryset=Instrument.objects.none(), empty_label=None)
    kind = forms.ChoiceField(label=_("Given by"), choices=KINDS, required=False)
    campaign = forms.ChoiceField(label=_("Only the answers of a campaign"), required=False)
    sample = forms.IntegerField(
        label=_("Draw so many at random"),
        min_value=1,
        max_value=MAX_ANSWERS,
        required=False,
        help_text=_("Empty: all of them."),
    )
    with_judged = forms.BooleanField(
        label=_("Also what this model has judged before, with this prompt"), required=False
    )
    max_attempts = forms.IntegerField(
        label=_("Attempts per answer"),
        min_value=1,
        max_value=MAX_ATTEMPTS,
        initial=10,
        help_text=_("How often the model is asked again when its reply is not in the required format."),
    )
    deadline = forms.IntegerField(
        label=_("Deadline, minutes"),
        min_value=1,
        max_value=LONGEST_DEADLINE // 60,
        initial=15,
        help_text=_(
            "How long an answer is asked about again after technical failures in a row, before it is given up."
        ),
    )
    cap = cap_field(
        label=_("Cap"),
        required=False,
        help_text=_(
            "So much is never passed: a call reserves the most that it can cost before it is sent, and the judging "
            "pauses when that does not fit. Empty: no cap."
        ),
    )
    currency = forms.ChoiceField(label=_("Currency of the cap"), choices=Currency.choices, required=False)
    seed = forms.IntegerField(widget=forms.HiddenInput, min_value=0)
    launch_key = forms.UUIDField(widget=forms.HiddenInput)

    def __init__(self, *args: Any, study: Study, campaigns: Sequence[tuple[int, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices: dict[str, Any] = {
            "config": ModelConfig.objects.filter(study=study).exclude(provider=Provider.REPLAYED).order_by("label"),
            "prompt": Prompt.objects.filter(study=study, purpose=Prompt.Purpose.JUDGE).order_by("slug", "-version"),
            "instrument": Instrument.objects.filter(study=study).order_by("-pk"),
        }
        for name, queryset in choices.items():
            field = self.fields[name]
            assert isinstance(field, forms.ModelChoiceField)  # noqa: S101 - all three are
            field.queryset = queryset
        campaign = self.fields["campaign"]
        assert isinstance(campaign, forms.ChoiceField)  # noqa: S101 - it is declared so above
        campaign.choices = [("", _("of none in particular")), *((str(pk), title) for pk, title in campaigns)]
        if not campaigns:
            del self.fields["campaign"]


class JudgePromptForm(StyledForm):
    slug = AddressField(
        label=_("Name of the prompt"),
        max_length=60,
        help_text=_("A name that the study has already gets its next version."),
    )
    text = forms.CharField(
        label=_("Text"),
        max_length=LONGEST,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 24, "spellcheck": "false"}),
        help_text=_(
            "{words} stands where the given words go and {answer} where the answer goes; both come in quotation marks, "
            "as JSON strings. Name every criterion in quotation marks, as the reply must."
        ),
    )
    note = forms.CharField(label=_("What this version tries"), max_length=300, required=False, widget=forms.TextInput())

    def clean_text(self) -> str:
        text = str(self.cleaned_data["text"]).replace("\r\n", "\n").rstrip()
        if WORDS not in text or ANSWER not in text:
            raise forms.ValidationError(_("The text must say where the words and the answer go: {words}, {answer}."))
        return text
