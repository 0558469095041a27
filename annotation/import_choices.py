"""What stands in sent files, as numbered selects, read back against the same look at the same files."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.http import QueryDict
from django.utils.translation import gettext

from annotation.forms import value_label
from annotation.import_look import FieldSeen, Look, values_suggested
from annotation.import_raters import NEW, SAME_AS
from annotation.models import Rater
from scoring.models import Criterion

ANSWER_ROLES = ("key", "respondent", "stimulus", "text")
TABLE_ROLES = ("annotator", "time", "criterion_column", "value_column")

Choices = list[tuple[str, str, bool]]


@dataclass(frozen=True)
class Choice:
    """A select beside what it is about. `name` is that of the form's field."""

    name: str
    about: str
    samples: list[str]
    choices: Choices
    note: str = ""


def role_titles() -> dict[str, str]:
    return {
        "key": gettext("which answer: its id in Luria or a key of the table"),
        "respondent": gettext("whose answer: the respondent"),
        "stimulus": gettext("the stimulus: its number or given words"),
        "text": gettext("the answer's text, as it was shown"),
        "annotator": gettext("who annotated"),
        "time": gettext("when it was judged"),
        "criterion_column": gettext("which criterion (a record per criterion)"),
        "value_column": gettext("the value (a record per criterion)"),
    }


def roles_for(look: Look, seen: FieldSeen, criteria: Sequence[Criterion]) -> list[tuple[str, str]]:
    titles = role_titles()
    names = [*ANSWER_ROLES, *(TABLE_ROLES if look.is_table else ())] if seen.is_data else []
    roles = [(name, titles[name]) for name in names]
    if seen.is_choice:
        roles += [
            (f"c-{one.code}", gettext("criterion: %(question)s") % {"question": one.question}) for one in criteria
        ]
    return roles


def field_choices(look: Look, importing: dict[str, Any], criteria: Sequence[Criterion]) -> list[Choice]:
    """What each field is."""
    chosen = {importing.get(role): role for role in (*ANSWER_ROLES, *TABLE_ROLES) if importing.get(role)}
    if not importing.get("criterion_column"):
        codes = importing.get("codes", {})
        chosen |= {name: f"c-{codes.get(name, name)}" for name in importing.get("criteria", {})}
    return [
        Choice(
            f"role-{place}",
            seen.name,
            seen.samples,
            [(role, title, chosen.get(seen.name) == role) for role, title in roles_for(look, seen, criteria)],
        )
        for place, seen in enumerate(look.fields.values())
    ]


@dataclass(frozen=True)
class Meaning:
    """A criterion as the file calls it, and what each of its values is here."""

    name: str
    criterion: Criterion | None
    which: Choice | None  # of a record per criterion: the criterion itself is chosen too
    values: list[Choice]
    has_more: bool = False


def meanings(look: Look, importing: dict[str, Any], criteria: Sequence[Criterion]) -> list[Meaning]:
    by_code = {criterion.code: criterion for criterion in criteria}
    codes, mapped = importing.get("codes", {}), importing.get("criteria", {})
    is_long = bool(importing.get("criterion_column"))
    if is_long:
        which, value = (look.fields.get(importing.get(role, "")) for role in ("criterion_column", "value_column"))
        names = which.values if which else []
    else:
        names, value = [name for name in mapped if name in look.fields], None
    found = []
    for place, name in enumerate(names):
        seen = value if is_long else look.fields[name]
        criterion = by_code.get(codes.get(name, name)) if name in mapped else None
        options = [(code, one.question, criterion == one) for code, one in by_code.items()]
        said = mapped.get(name, {})
        values = [
            Choice(f"value-{place}-{number}", text, [], _value_choices(criterion, said.get(text)))
            for number, text in enumerate(seen.values if seen and criterion else [])
            if criterion
        ]
        which_choice = Choice(f"code-{place}", name, [], options) if is_long else None
        found.append(Meaning(name, criterion, which_choice, values, bool(seen and seen.has_more)))
    return found


def _value_choices(criterion: Criterion, chosen: float | None) -> Choices:
    return [(f"{value:g}", _value_title(criterion, value), chosen == value) for value in criterion.scale]


def _value_title(criterion: Criterion, value: float) -> str:
    label = value_label(criterion, value)
    return label if set(criterion.scale) != {0, 1} else f"{label} ({value:g})"


def label_choices(look: Look, importing: dict[str, Any], criteria: Sequence[Criterion]) -> list[Choice]:
    """What each label of doccano says."""
    mapped, codes = importing.get("labels", {}), importing.get("codes", {})
    found = []
    for place, label in enumerate(look.labels):
        name, value = mapped.get(label, (None, None))
        choices = [
            (
                f"{one.code}={number:g}",
                f"{one.question} {_value_title(one, number)}",
                name is not None and (codes.get(name, name), value) == (one.code, number),
            )
            for one in criteria
            for number in one.scale
        ]
        found.append(Choice(f"label-{place}", label, [], choices))
    return found


def rater_choices(annotators: Sequence[str], raters: Sequence[Rater], chosen: dict[str, str]) -> list[Choice]:
    """Who each annotator is: a rater of the study, somebody new, or the same person as another annotator."""
    found = []
    known = {rater.imported_name: rater for rater in raters if rater.imported_name}
    for place, annotator in enumerate(annotators):
        said = chosen.get(annotator, "")
        if not said:
            said = known[annotator].pseudonym if annotator in known else NEW
        choices = [(NEW, gettext("a new rater"), said == NEW)]
        choices += [(one.pseudonym, f"{one.pseudonym} · {one.name}", said == one.pseudonym) for one in raters]
        choices += [
            (f"{SAME_AS}{number}", gettext("the same person as “%(name)s”") % {"name": other}, said == SAME_AS + other)
            for number, other in enumerate(annotators)
            if number < place
        ]
        note = gettext("this name is known from an earlier import") if annotator in known else ""
        found.append(Choice(f"rater-{place}", annotator, [], choices, note))
    return found


# --- what was posted ------------------------------------------------------------------------------------------------


def roles_posted(data: QueryDict, look: Look, criteria: Sequence[Criterion]) -> dict[str, Any]:
    """Settings that the roles of the fields come to; of two fields in one role the later one counts."""
    chosen: dict[str, Any] = {}
    codes: dict[str, str] = {}
    for place, seen in enumerate(look.fields.values()):
        role = data.get(f"role-{place}", "")
        if role not in dict(roles_for(look, seen, criteria)):
            continue
        if role.startswith("c-"):
            codes[seen.name] = role[2:]
        else:
            chosen[role] = seen.name
    if "criterion_column" in chosen:
        return chosen
    return chosen | {"codes": codes, "criteria": {name: {} for name in codes}}


def meanings_posted(
    data: QueryDict, look: Look, chosen: dict[str, Any], before: dict[str, Any], criteria: Sequence[Criterion]
) -> dict[str, Any]:
    """The criteria and their values. A criterion that was not on the page gets what its values suggest.

    `before` are the settings that the page was made with.
    """
    shown = {one.name: (one, place) for place, one in enumerate(meanings(look, before, criteria))}
    by_code = {criterion.code: criterion for criterion in criteria}
    codes = chosen.get("codes", {})
    if chosen.get("criterion_column"):
        names = look.fields[chosen["criterion_column"]].values
        posted = {name: data.get(f"code-{shown[name][1]}", "") for name in names if name in shown}
        codes = {name: code for name, code in posted.items() if code in by_code}
    found: dict[str, dict[str, float]] = {}
    for name, code in codes.items():
        meaning, place = shown.get(name, (None, 0))
        if meaning is not None and meaning.criterion == by_code[code]:
            found[name] = _values_posted(data, meaning, place)
        else:
            seen = look.fields.get(chosen.get("value_column", name))
            found[name] = values_suggested(seen.values if seen else [], by_code[code])
    return {"codes": codes, "criteria": found}


def _values_posted(data: QueryDict, meaning: Meaning, place: int) -> dict[str, float]:
    said = {}
    for number, choice in enumerate(meaning.values):
        posted = data.get(f"value-{place}-{number}", "")
        for value in meaning.criterion.scale if meaning.criterion else ():
            if posted == f"{value:g}":
                said[choice.about] = float(value)
    return said


def labels_posted(data: QueryDict, look: Look, criteria: Sequence[Criterion]) -> dict[str, tuple[str, float]]:
    options = {f"{one.code}={value:g}": (one.code, float(value)) for one in criteria for value in one.scale}
    posted = {label: data.get(f"label-{place}", "") for place, label in enumerate(look.labels)}
    return {label: options[option] for label, option in posted.items() if option in options}


def raters_posted(data: QueryDict, annotators: Sequence[str], raters: Sequence[Rater]) -> dict[str, str]:
    pseudonyms = {rater.pseudonym for rater in raters}
    found = {}
    for place, annotator in enumerate(annotators):
        posted = data.get(f"rater-{place}", "")
        if posted in pseudonyms or posted == NEW:
            found[annotator] = posted
        elif posted.startswith(SAME_AS) and posted[1:].isdecimal() and int(posted[1:]) < place:
            found[annotator] = SAME_AS + annotators[int(posted[1:])]
    return found
