"""A survey's questions as a form in the participant's language, and what their responses mean."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from surveys.models import Question

MAX_SHORT, MAX_LONG = 300, 5_000
Value = str | int | list[str] | None


def worded(texts: dict[str, str], language: str) -> str:
    """The text in the language, or in the first that has one."""
    return texts.get(language) or next((text for text in texts.values() if text), "")


class QuestionsForm(forms.Form):
    """One page of questions. `responses()` gives a value for each, None where it was left out."""

    def __init__(self, *args: Any, questions: Sequence[Question], language: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.questions = questions
        shown = get_language() or language
        for question in questions:
            field = FIELDS[Question.Kind(question.kind)](question, shown)
            field.label = worded(question.text, shown)
            field.required = question.required
            field.widget.is_required = question.required
            self.fields[name_of(question)] = field

    def rows(self) -> list[tuple[Question, forms.BoundField]]:
        return [(question, self[name_of(question)]) for question in self.questions]

    def responses(self) -> dict[int, Value]:
        """By question id; of a valid form."""
        values = {question.pk: self.cleaned_data[name_of(question)] for question in self.questions}
        return {pk: None if value in ("", [], None) else value for pk, value in values.items()}


def name_of(question: Question) -> str:
    """The field's name: the id, so that no code of a researcher's meets a name of ours."""
    return f"q{question.pk}"


def _choices(question: Question, language: str) -> list[tuple[str, str]]:
    return [(option["value"], worded(option["text"], language)) for option in question.options]


def _single(question: Question, language: str) -> forms.Field:
    return forms.ChoiceField(
        choices=_choices(question, language), widget=forms.RadioSelect(attrs={"class": "form-check-input"})
    )


def _multiple(question: Question, language: str) -> forms.Field:
    widget = forms.CheckboxSelectMultiple(attrs={"class": "form-check-input"})
    return forms.MultipleChoiceField(choices=_choices(question, language), widget=widget)


def scale_ends(minimum: int | None, maximum: int | None) -> tuple[int, int]:
    """1 to 5 where nothing else is said."""
    first = 1 if minimum is None else minimum
    return first, first + 4 if maximum is None else maximum


def _scale(question: Question, language: str) -> forms.Field:
    first, last = scale_ends(question.minimum, question.maximum)
    steps = range(first, last + 1)
    low, high = (worded(question.end_labels.get(end, {}), language) for end in ("low", "high"))
    named = {steps[0]: low, steps[-1]: high}
    return forms.TypedChoiceField(
        choices=[(str(step), f"{step} – {named[step]}" if named.get(step) else str(step)) for step in steps],
        coerce=int,
        empty_value=None,
        widget=forms.RadioSelect(attrs={"class": "form-check-input"}),
    )


def _number(question: Question, _language: str) -> forms.Field:
    return forms.IntegerField(
        min_value=question.minimum if question.minimum is not None else -1_000_000_000,
        max_value=question.maximum if question.maximum is not None else 1_000_000_000,
        widget=forms.TextInput(attrs={"inputmode": "numeric", "class": "form-control narrow", "autocomplete": "off"}),
    )


def _short(_question: Question, _language: str) -> forms.Field:
    widget = forms.TextInput(attrs={"class": "form-control", "autocomplete": "off"})
    return forms.CharField(max_length=MAX_SHORT, widget=widget)


def _long(_question: Question, _language: str) -> forms.Field:
    widget = forms.Textarea(attrs={"rows": 4, "class": "form-control", "autocomplete": "off"})
    return forms.CharField(max_length=MAX_LONG, widget=widget)


FIELDS = {
    Question.Kind.SINGLE: _single,
    Question.Kind.MULTIPLE: _multiple,
    Question.Kind.NUMBER: _number,
    Question.Kind.SHORT: _short,
    Question.Kind.LONG: _long,
    Question.Kind.SCALE: _scale,
}


def attention_passed(question: Question, value: Value) -> bool | None:
    """Whether an attention check was answered as asked; None where the question is none, or was left out by right."""
    if not question.expected:
        return None
    if isinstance(value, list):
        return sorted(value) == sorted(part.strip() for part in question.expected.split(","))
    return str(value if value is not None else "").strip().casefold() == question.expected.strip().casefold()


def screens_out(question: Question, value: Value) -> bool:
    """Whether the response is one that ends the survey: a value, or for numbers also `<18` or `>65`."""
    values = value if isinstance(value, list) else [value]
    return any(_meets(one, wanted) for one in values if one is not None for wanted in question.screens_out)


def _meets(value: str | int, wanted: str) -> bool:
    if isinstance(value, int) and wanted[:1] in ("<", ">"):
        return value < int(wanted[1:]) if wanted[0] == "<" else value > int(wanted[1:])
    return str(value).casefold() == wanted.casefold()


def response_words(question: Question, value: Value, language: str) -> str:
    """A response for a researcher to read."""
    if value is None:
        return _("left out")
    names = dict(_choices(question, language))
    values = value if isinstance(value, list) else [value]
    return ", ".join(names.get(str(one), str(one)) for one in values)
