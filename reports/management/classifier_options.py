"""What the commands about classifiers have in common."""

import json
import sys
import time
from argparse import Action, ArgumentParser, Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser, OutputWrapper

from scoring.classifiers.data import Texts
from scoring.classifiers.files import read_texts
from scoring.classifiers.study_data import judged_criteria
from scoring.evaluation import Estimate, Report
from scoring.models import Classifier, Criterion, JobState, Rubric
from studies.models import Study

SHOWN = ("f1_micro", "f1_macro", "f1_weighted", "mcc", "ece", "brier")


class Setting(Action):
    """NAME=VALUE, the value as JSON."""

    def __call__(self, parser: ArgumentParser, namespace: Namespace, values: Any, option: str | None = None) -> None:
        name, sign, text = str(values).partition("=")
        try:
            getattr(namespace, self.dest)[name] = json.loads(text)
        except ValueError:
            sign = ""
        if not sign:
            parser.error(f"{option} takes NAME=VALUE with a number, such as epochs=3")


def file_options(parser: CommandParser) -> None:
    parser.add_argument("--text-column", default="text", help="column of the texts")
    parser.add_argument("--label-column", default="label", help="column of the values, numbers such as 0 and 1")
    parser.add_argument("--group-column", help="column of who wrote them; by default each row is on its own")
    parser.add_argument(
        "--display",
        choices=["as-is", "display", "lower"],
        default="as-is",
        help="bring texts into the form in which answers are judged, and into small letters",
    )


def file_read(path: Path, options: Mapping[str, Any], *, labels: bool = True) -> Texts:
    return read_texts(
        path,
        text_column=options["text_column"],
        label_column=options["label_column"] if labels else None,
        group_column=options["group_column"],
        display=options["display"],
    )


def study_of(slug: str, errors: OutputWrapper) -> Study:
    """The study of this address, after its data is called simulated, where it is, on standard error."""
    study = Study.objects.filter(slug=slug).first()
    if study is None:
        raise CommandError(f"There is no study {slug}.")
    simulated_say(study, errors)
    return study


def simulated_say(study: Study, errors: OutputWrapper) -> None:
    """Numbers on a terminal have no file name that says it; what is read by programs stays as it is."""
    if study.simulated:
        errors.write(f"{study.slug}: simulated data", style_func=str)


def criteria_of(rubric: Rubric, codes: str) -> list[Criterion]:
    """The judged criteria of these codes, all of them without any."""
    judged = judged_criteria(rubric)
    wanted = [code.strip() for code in codes.split(",") if code.strip()]
    known = {criterion.code for criterion in judged}
    if set(wanted) - known:
        raise CommandError(
            f"The rubric has no judged criterion {min(set(wanted) - known)}. It has: {', '.join(sorted(known))}."
        )
    return [criterion for criterion in judged if not wanted or criterion.code in wanted]


def classifiers_of(study: Study, number: str) -> list[Classifier]:
    """The study's classifier of this number, all finished ones for "all"."""
    found = Classifier.objects.filter(study=study).select_related("judge", "study", "split__study")
    if number == "all":
        return list(found.filter(state=JobState.FINISHED).order_by("pk"))
    chosen = list(found.filter(pk=int(number))) if number.isdecimal() else []
    if not chosen:
        raise CommandError(f"The study has no classifier {number}.")
    return chosen


class Ticker:
    """Progress for the person at the terminal, on standard error; a line every few seconds elsewhere."""

    def __init__(self) -> None:
        self.shown = 0.0
        self.is_terminal = sys.stderr.isatty()

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if done < total and now - self.shown < (0.5 if self.is_terminal else 10):
            return
        self.shown = now
        sys.stderr.write(f"\r  {done} of {total}" if self.is_terminal else f"  {done} of {total}\n")
        sys.stderr.flush()

    def end(self) -> None:
        if self.is_terminal:
            sys.stderr.write("\r\033[K")


def report_lines(name: str, report: Report) -> list[str]:
    """One judge's figures on one set, with intervals and the majority class beside them."""
    lines = [f"{name}: {report.n} texts by {report.n_respondents}"]
    if report.majority is None:
        return lines
    beside = {
        "f1_micro": report.majority.f1_micro,
        "f1_macro": report.majority.f1_macro,
        "f1_weighted": report.majority.f1_weighted,
    }
    for figure in SHOWN:
        constant = f"   always {report.majority.value:g}: {beside[figure]:.3f}" if figure in beside else ""
        lines.append(f"  {figure:<12} {estimate_text(report.estimates[figure])}{constant}")
    heads = " ".join(f"{value:>7g}" for value in report.classes)
    lines.append(f"  confusion (rows: labels, columns: said)\n          {heads}")
    for value, row in zip(report.classes, report.confusion, strict=True):
        lines.append(f"  {value:>7g} " + " ".join(f"{count:>7}" for count in row))
    return lines


def estimate_text(estimate: Estimate) -> str:
    if estimate.value is None:
        return f"undefined ({estimate.reason})"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:.3f}"
    return f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"
