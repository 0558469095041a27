"""What a researcher chooses of the comparison of judges, read from an address."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from django.http import Http404, QueryDict

from reports.judge_comparison import SUBSETS, Asked, On
from reports.judge_rows import Sheet, row_covers
from scoring.evaluation import FIGURES
from scoring.models import Rubric, Split

T = TypeVar("T")
SET = "set_"  # before a criterion's code


def split_asked(given: Mapping[str, str], splits: Sequence[Split]) -> Split:
    """The split asked for, else the newest. Raises Http404 for what the study does not have."""
    return _one_of(given.get("split"), {str(split.pk): split for split in splits})


def rubric_asked(given: Mapping[str, str], rubrics: Sequence[Rubric]) -> Rubric:
    """Likewise of rubrics, the one used last first."""
    return _one_of(given.get("rubric"), {str(rubric.pk): rubric for rubric in rubrics})


def _one_of(wanted: str | None, known: Mapping[str, T]) -> T:
    found = known.get(wanted) if wanted else next(iter(known.values()), None)
    if found is None:
        raise Http404
    return found


def asked_of(given: QueryDict, sheet: Sheet) -> Asked:
    """Raises Http404 for a figure, a subset or a judge that is not there: another one would answer wrongly."""
    figure, subset = given.get("figure") or Asked.figure, given.get("subset") or str(Asked.subset)
    on = given.get("on") or Asked.on
    known = {str(row.judges[0]): row.judges[0] for row in sheet.rows}
    judges = given.getlist("judge")
    if figure not in FIGURES or subset not in SUBSETS or on not in ("common", "own") or not set(judges) <= set(known):
        raise Http404
    where: On = "own" if on == "own" else "common"
    return Asked(figure, subset, where, frozenset(known[one] for one in judges), _set_asked(given, sheet))


def set_choices(sheet: Sheet) -> dict[str, list[tuple[int, str]]]:
    """For each judged criterion the judges that say something on it."""
    return {
        sheet.criteria[place].code: [(row.judges[0], row.name) for row in sheet.rows if row_covers(sheet, row, place)]
        for place in sheet.judged
    }


def _set_asked(given: QueryDict, sheet: Sheet) -> dict[str, int]:
    """One judge for each criterion: those asked for, none where one is left open, else the default."""
    choices = set_choices(sheet)
    if not any(SET + code in given for code in choices):
        return default_set(sheet)
    found = {}
    for code, judges in choices.items():
        wanted = given.get(SET + code)
        if not wanted:
            continue
        known = {str(pk): pk for pk, _name in judges}
        if wanted not in known:
            raise Http404
        found[code] = known[wanted]
    return found if len(found) == len(choices) else {}


def default_set(sheet: Sheet) -> dict[str, int]:
    """The newest trained classifier of each criterion, as the paper has one for each; none where a single classifier
    judges them all, since it is a row already, or where a criterion has none."""
    found = {}
    for place in sheet.judged:
        trained = [row.judges[0] for row in sheet.rows if row.held_out is not None and row_covers(sheet, row, place)]
        if not trained:
            return {}
        found[sheet.criteria[place].code] = max(trained)
    return found if len(set(found.values())) > 1 else {}
