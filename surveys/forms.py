import re
from typing import Any, cast

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator, URLValidator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from corpus.builtin import study_text
from corpus.models import Instrument
from studies.forms import AddressField, StyledForm
from studies.models import Study
from surveys.models import Platform, Question, Survey
from surveys.platforms import RULES
from surveys.questionnaire import scale_ends

parameter_name = RegexValidator(
    r"^[A-Za-z0-9_.-]{1,60}$", gettext_lazy("Letters, digits, underscores, points and hyphens.")
)
code_name = RegexValidator(r"^[A-Za-z0-9-]{3,40}$", gettext_lazy("3 to 40 letters, digits and hyphens."))


def consent_drafts(instrument: Instrument | None) -> dict[str, str]:
    """The consents of the built-in study in the instrument's language, with its number of tasks."""
    language = "ru" if instrument is None or instrument.language == "ru" else "en"
    tasks = 18 if instrument is None else instrument.stimuli.filter(is_practice=False).count()
    minutes = f"{max(1, tasks * 5 // 6)}–{max(2, tasks * 10 // 9)}"  # as 15–20 minutes for the study's 18
    text = study_text(f"consent.{language}.md").replace("15–20", minutes)
    text = text.replace("Заданий 18", f"Заданий {tasks}").replace("There are 18 tasks", f"There are {tasks} tasks")
    return {
        "consent_text": text,
        "publication_text": study_text(f"consent.publication.{language}.md"),
        "third_party_text": study_text(f"consent.third_parties.{language}.md"),
    }


def moment(label: Any, help_text: Any) -> forms.DateTimeField:
    widget = forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M")
    return forms.DateTimeField(label=label, required=False, help_text=help_text, widget=widget)


def long_text(label: Any, help_text: Any, *, required: bool = True, rows: int = 12) -> forms.CharField:
    widget = forms.Textarea(attrs={"rows": rows})
    return forms.CharField(label=label, widget=widget, help_text=help_text, required=required)


class SurveyForm(StyledForm):
    """All that a survey is; drawn in the sections of `SECTIONS`."""

    title = forms.CharField(
        label=gettext_lazy("Title"), max_length=200, help_text=gettext_lazy("For you; participants do not see it.")
    )
    instrument = forms.ModelChoiceField(
        label=gettext_lazy("Instrument"), queryset=Instrument.objects.none(), empty_label=None
    )
    contact = forms.CharField(
        label=gettext_lazy("Contact"),
        max_length=200,
        help_text=gettext_lazy("Whom participants may write to: a name and an address."),
    )
    platform = forms.ChoiceField(
        label=gettext_lazy("Where participants come from"),
        choices=[choice for choice in Platform.choices if choice[0] != Platform.IMPORTED],
        initial=Platform.DIRECT,
        help_text=gettext_lazy("With a platform, the link must name the person; each person can take part once."),
    )
    person_parameter = forms.CharField(
        label=gettext_lazy("URL parameter with the person's id"),
        required=False,
        validators=[parameter_name],
        help_text=gettext_lazy("Filled in for Prolific (PROLIFIC_PID), Toloka and Yandex Tasks (worker_id)."),
    )
    visit_parameter = forms.CharField(
        label=gettext_lazy("URL parameter with the session's or assignment's id"),
        required=False,
        validators=[parameter_name],
        help_text=gettext_lazy("Filled in for Prolific (SESSION_ID), Toloka and Yandex Tasks (assignment_id)."),
    )
    codes = forms.ChoiceField(
        label=gettext_lazy("Completion codes"), choices=Survey.Codes.choices, initial=Survey.Codes.COMMON
    )
    completion_code = forms.CharField(
        label=gettext_lazy("The common completion code"),
        required=False,
        validators=[code_name],
        help_text=gettext_lazy("As the platform gave it to you. Left empty, one is made."),
    )
    screen_out_code = forms.CharField(
        label=gettext_lazy("Code for those who are screened out"), required=False, validators=[code_name]
    )
    return_url = forms.CharField(
        label=gettext_lazy("Return address"),
        required=False,
        max_length=500,
        help_text=gettext_lazy("A button on the last page leads there; {code} in it is replaced by the code."),
    )
    is_pilot = forms.BooleanField(
        label=gettext_lazy("Pilot: the answers are kept apart and never counted in results"), required=False
    )
    quota = forms.IntegerField(
        label=gettext_lazy("Places"),
        required=False,
        min_value=1,
        max_value=1_000_000,
        help_text=gettext_lazy("How many people may take part. Empty: no limit."),
    )
    hold_minutes = forms.IntegerField(
        label=gettext_lazy("Minutes for which a place is held"),
        min_value=5,
        max_value=100_000,
        initial=120,
        help_text=gettext_lazy(
            "Who does nothing for so long gives the place to the next one. They can still come back and finish, so "
            "that a few more than the places may finish."
        ),
    )
    opens_at = moment(gettext_lazy("Opens at"), gettext_lazy("Empty: as soon as you open it."))
    closes_at = moment(gettext_lazy("Closes at"), gettext_lazy("To newcomers; whoever has begun may finish."))
    order_scheme = forms.ChoiceField(
        label=gettext_lazy("Order of the tasks"),
        choices=Survey.OrderScheme.choices,
        initial=Survey.OrderScheme.FIXED,
        help_text=gettext_lazy("Each participant's order is stored with their answers."),
    )
    seed = forms.IntegerField(label=gettext_lazy("Seed of the order"), min_value=0, max_value=2_147_483_647, initial=1)
    gap_minutes = forms.IntegerField(
        label=gettext_lazy("Minutes away after which the instruction is shown again"),
        required=False,
        min_value=1,
        max_value=100_000,
        initial=30,
        help_text=gettext_lazy("Empty: never."),
    )
    consent_text = long_text(
        gettext_lazy("Consent to take part"),
        gettext_lazy(
            "What participants agree to, word for word. A line that begins with a hyphen is a list item. Check the "
            "number of tasks and the minutes: they are those of the instrument that stood first above."
        ),
    )
    publication_text = long_text(
        gettext_lazy("Consent to publication"),
        gettext_lazy("Asked for apart and optional. Empty: not asked, and no answer of this survey may be published."),
        required=False,
        rows=6,
    )
    third_party_text = long_text(
        gettext_lazy("Consent to processing by third parties"),
        gettext_lazy(
            "Asked for apart and optional; a language model of another company that judges answers is a third party. "
            "Empty: not asked, and no answer may be sent to one."
        ),
        required=False,
        rows=6,
    )

    SECTIONS = (
        (gettext_lazy("What and for whom"), ("title", "instrument", "contact"), False),
        (
            gettext_lazy("Platform and codes"),
            (
                "platform",
                "person_parameter",
                "visit_parameter",
                "codes",
                "completion_code",
                "screen_out_code",
                "return_url",
            ),
            True,
        ),
        (gettext_lazy("Places and times"), ("is_pilot", "quota", "hold_minutes", "opens_at", "closes_at"), True),
        (gettext_lazy("Order and instruction"), ("order_scheme", "seed", "gap_minutes"), True),
        (gettext_lazy("Consents"), ("consent_text", "publication_text", "third_party_text"), False),
    )

    def __init__(self, *args: Any, study: Study, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        cast(forms.ModelChoiceField, self.fields["instrument"]).queryset = study.instruments.order_by(
            "slug", "-version"
        )
        instrument = study.instruments.order_by("slug", "-version").first()
        for name, text in consent_drafts(instrument).items():
            self.fields[name].initial = text
        zone = _("Time zone: %(zone)s.") % {"zone": settings.TIME_ZONE}
        for name in ("opens_at", "closes_at"):
            self.fields[name].help_text = f"{self.fields[name].help_text} {zone}"

    def sections(self) -> list[dict[str, Any]]:
        """What most surveys leave as it is stays folded until it holds something else or an error."""
        sections = []
        for legend, names, folds in self.SECTIONS:
            fields = [self[name] for name in names]
            told = [field for field in fields if field.errors or field.value() not in (self._usual(field.name))]
            sections.append({"legend": legend, "fields": fields, "folds": folds, "open": bool(told)})
        return sections

    def _usual(self, name: str) -> tuple[Any, ...]:
        usual = self.fields[name].initial
        return (usual, str(usual), None, "", False)

    def clean_return_url(self) -> str:
        """Where people go after the last page: an address of the web, never a script."""
        url: str = self.cleaned_data["return_url"]
        if url:
            URLValidator(schemes=["https", "http"])(url.replace("{code}", "CODE"))
        return url

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        opens, closes = data.get("opens_at"), data.get("closes_at")
        if opens and closes and opens >= closes:
            self.add_error("closes_at", _("The survey would close before it opens."))
        platform = data.get("platform", Platform.DIRECT)
        if platform == Platform.OTHER and not data.get("person_parameter"):
            self.add_error("person_parameter", _("Say which parameter of the link names the person."))
        if data.get("person_parameter") and data.get("person_parameter") == data.get("visit_parameter"):
            self.add_error("visit_parameter", _("The two parameters need different names."))
        rule = RULES.get(platform)
        for name in ("person_parameter", "visit_parameter", "return_url"):
            if rule is None:
                data[name] = "" if name != "return_url" else data.get(name, "")
            elif not data.get(name):
                data[name] = getattr(rule, name)
        if rule and rule.return_url and data.get("codes") == Survey.Codes.UNIQUE:
            self.add_error("codes", _("This platform knows one code for everybody."))
        return data


class StartForm(forms.Form):
    start_key = forms.UUIDField()
    person = forms.CharField(required=False, max_length=200)
    visit = forms.CharField(required=False, max_length=200)
    documents = forms.CharField(required=False, max_length=60)


NUMBER = re.compile(r"-?[0-9]{1,9}")
COMPARED = re.compile(r"[<>]?-?[0-9]{1,9}")
OPTION_HELP = gettext_lazy(
    "One option a line: a short value, then its text in Russian and, if you like, in English, cut by “|”. "
    "Example: f | женский | female"
)


class QuestionForm(StyledForm):
    """One question. Options are typed one a line; `question_fields()` gives the columns of Question."""

    place = forms.ChoiceField(label=gettext_lazy("Where it stands"), choices=Question.Place.choices, initial="after")
    after_task = forms.IntegerField(
        label=gettext_lazy("After which task"),
        required=False,
        min_value=1,
        max_value=9_999,
        help_text=gettext_lazy("Only for a question between two tasks: 5 means between the fifth and the sixth."),
    )
    code = AddressField(
        label=gettext_lazy("Code"), max_length=40, help_text=gettext_lazy("The column's name in exports, such as age.")
    )
    kind = forms.ChoiceField(label=gettext_lazy("Kind"), choices=Question.Kind.choices)
    text_ru = forms.CharField(label=gettext_lazy("Question in Russian"), max_length=1_000, required=False)
    text_en = forms.CharField(label=gettext_lazy("Question in English"), max_length=1_000, required=False)
    options = long_text(gettext_lazy("Options"), OPTION_HELP, required=False, rows=5)
    minimum = forms.IntegerField(
        label=gettext_lazy("Smallest number"),
        required=False,
        min_value=-1_000_000,
        max_value=1_000_000,
        help_text=gettext_lazy("Of a number or a scale."),
    )
    maximum = forms.IntegerField(
        label=gettext_lazy("Largest number"), required=False, min_value=-1_000_000, max_value=1_000_000
    )
    low_label = forms.CharField(
        label=gettext_lazy("Words at the low end of a scale"),
        required=False,
        max_length=200,
        help_text=gettext_lazy("Russian | English"),
    )
    high_label = forms.CharField(
        label=gettext_lazy("Words at the high end"),
        required=False,
        max_length=200,
        help_text=gettext_lazy("Russian | English"),
    )
    required = forms.BooleanField(label=gettext_lazy("A response is required"), required=False)
    expected = forms.CharField(
        label=gettext_lazy("The right response, if this is an attention check"),
        required=False,
        max_length=200,
        help_text=gettext_lazy(
            "A value of the options, a number or the exact words. A wrong one is flagged, no more. "
            "Tick “required” too, or people may leave it out."
        ),
    )
    screens_out = forms.CharField(
        label=gettext_lazy("Values that end the survey"),
        required=False,
        max_length=500,
        help_text=gettext_lazy(
            "Cut by commas, before the tasks only; for numbers also <18 or >65. Such people get the screen-out code."
        ),
    )

    def __init__(self, *args: Any, survey: Survey, question: Question | None = None, **kwargs: Any) -> None:
        if question is not None:
            kwargs["initial"] = _question_initial(question)
        super().__init__(*args, **kwargs)
        self.survey, self.question = survey, question

    def clean_code(self) -> str:
        code: str = self.cleaned_data["code"]
        same = self.survey.questions.filter(code=code)
        if (same.exclude(pk=self.question.pk) if self.question else same).exists():
            raise ValidationError(_("Another question has this code."))
        return code

    def clean_options(self) -> list[dict[str, Any]]:
        options = []
        for line in self.cleaned_data["options"].splitlines():
            if not line.strip():
                continue
            value, *texts = [part.strip() for part in line.split("|")]
            if not value or len(value) > 60 or "," in value or len(texts) > 2:
                raise ValidationError(_("This line is not “value | Russian | English”: %(line)s") % {"line": line[:80]})
            options.append({"value": value, "text": _texts(*(texts or [value]))})
        if len({option["value"] for option in options}) < len(options):
            raise ValidationError(_("Two options have the same value."))
        return options

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if not (data.get("text_ru") or data.get("text_en")):
            self.add_error("text_ru", _("The question has no words."))
        kind, place = data.get("kind"), data.get("place")
        if kind in (Question.Kind.SINGLE, Question.Kind.MULTIPLE) and len(data.get("options") or []) < 2:
            self.add_error("options", _("Write at least two options."))
        low, high = data.get("minimum"), data.get("maximum")
        if low is not None and high is not None and low >= high:
            self.add_error("maximum", _("The largest number must be larger than the smallest."))
        first, last = scale_ends(low, high)
        if kind == Question.Kind.SCALE and not 2 <= last - first + 1 <= 11:
            self.add_error("maximum", _("A scale has 2 to 11 steps."))
        tasks = self.survey.instrument.stimuli.filter(is_practice=False).count()
        after = data.get("after_task")
        if place == Question.Place.BETWEEN and (after is None or not 1 <= after < tasks):
            self.add_error("after_task", _("A whole number from 1 to %(last)s.") % {"last": tasks - 1})
        if data.get("screens_out") and place != Question.Place.BEFORE:
            self.add_error("screens_out", _("Only a question before the tasks can end the survey."))
        self._known_values(data)
        return data

    def _known_values(self, data: dict[str, Any]) -> None:
        """A check that nobody can pass, or a screen that nobody meets, is a slip of the pen."""
        if data.get("kind") in (Question.Kind.NUMBER, Question.Kind.SCALE):
            for name, shape in (("expected", NUMBER), ("screens_out", COMPARED)):
                wrong = [part for part in _parts(data.get(name) or "") if not shape.fullmatch(part)]
                if wrong:
                    self.add_error(name, _("This is no number: %(value)s") % {"value": ", ".join(wrong)})
        if data.get("kind") not in (Question.Kind.SINGLE, Question.Kind.MULTIPLE):
            return
        known = {option["value"] for option in data.get("options") or []}
        for name in ("expected", "screens_out"):
            unknown = [value for value in _parts(data.get(name, "")) if value not in known]
            if unknown:
                self.add_error(name, _("No option has this value: %(value)s") % {"value": ", ".join(unknown)})

    def question_fields(self) -> dict[str, Any]:
        data = self.cleaned_data
        is_choice = data["kind"] in (Question.Kind.SINGLE, Question.Kind.MULTIPLE)
        ends = {"low": _texts(*_ends(data["low_label"])), "high": _texts(*_ends(data["high_label"]))}
        return {
            **{name: data[name] for name in ("place", "code", "kind", "minimum", "maximum", "required", "expected")},
            "after_task": data["after_task"] if data["place"] == Question.Place.BETWEEN else None,
            "text": _texts(data["text_ru"], data["text_en"]),
            "options": data["options"] if is_choice else [],
            "end_labels": ends if data["kind"] == Question.Kind.SCALE else {},
            "screens_out": _parts(data["screens_out"]),
        }


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _ends(text: str) -> list[str]:
    return [part.strip() for part in text.split("|")][:2]


def _texts(ru: str = "", en: str = "") -> dict[str, str]:
    return {language: text for language, text in (("ru", ru), ("en", en)) if text}


def _question_initial(question: Question) -> dict[str, Any]:
    def both(texts: dict[str, str]) -> str:
        return " | ".join(part for part in (texts.get("ru", ""), texts.get("en", "")) if part)

    plain = ("place", "after_task", "code", "kind", "minimum", "maximum", "required", "expected")
    return {
        **{name: getattr(question, name) for name in plain},
        "text_ru": question.text.get("ru", ""),
        "text_en": question.text.get("en", ""),
        "options": "\n".join(f"{option['value']} | {both(option['text'])}" for option in question.options),
        "low_label": both(question.end_labels.get("low", {})),
        "high_label": both(question.end_labels.get("high", {})),
        "screens_out": ", ".join(question.screens_out),
    }
