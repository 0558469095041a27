"""Form classes that look like Bootstrap's."""

from typing import Any

from django import forms

CLASSES: dict[type[forms.Widget], str] = {
    forms.CheckboxInput: "form-check-input d-block",
    forms.CheckboxSelectMultiple: "list-unstyled",
    forms.RadioSelect: "list-unstyled",
    forms.Select: "form-select",
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
