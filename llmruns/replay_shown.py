"""How problems and imports are shown."""

from dataclasses import dataclass
from typing import Any

from llmruns.importers.records import Problem
from llmruns.models import Experiment, ReplyImport, Run
from llmruns.replay_words import NOTES, PROBLEMS
from llmruns.wording import kind_words

NAMED = 500  # problems of one kind that are named on a page; the command names all


def problem_groups(problems: list[Problem]) -> list[dict[str, Any]]:
    """By kind, in the order in which they first occur."""
    groups: dict[str, list[Problem]] = {}
    for one in problems:
        groups.setdefault(one.code, []).append(one)
    return [
        {
            "code": code,
            "text": PROBLEMS.get(code) or NOTES.get(code) or code,
            "n": len(ones),
            "more": max(0, len(ones) - NAMED),
            "records": ones[:NAMED],
        }
        for code, ones in groups.items()
    ]


@dataclass(frozen=True)
class ImportShown:
    made: ReplyImport
    notes: list[dict[str, Any]]
    incomplete: list[tuple[Run, str]]  # with what is missing, in words


def import_shown(experiment: Experiment) -> ImportShown | None:
    """What an imported experiment came from; None where it came with a release, not as replies. Two queries."""
    made = ReplyImport.objects.select_related("actor", "set_aside_by").filter(experiment=experiment).first()
    if made is None:
        return None
    runs = (
        experiment.runs.filter(state=Run.State.INCOMPLETE).select_related("config").order_by("config__label", "ordinal")
    )
    notes = problem_groups(
        [Problem(code, line, detail) for code, line, detail in made.notes if code != "run_incomplete"]
    )
    return ImportShown(made, notes, [(run, kind_words(run.problem)) for run in runs])
