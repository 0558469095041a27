from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.http import Http404

from reports.classifying import same_person
from reports.csvfile import stream
from reports.judge_choice import default_set, rubric_asked, split_asked
from reports.judge_comparison import SUBSETS, Asked, Comparison, Line, comparison_of
from reports.judge_files import COLUMNS, comparison_rows, judge_text
from reports.judge_rows import rubrics_of, sheet_of, splits_of
from reports.management.classifier_options import estimate_text, study_of
from scoring.classifiers.naming import name_of
from scoring.classifiers.problems import ClassifierError
from scoring.classifiers.services import split_ensure
from scoring.evaluation import FIGURES
from scoring.models import Split
from scoring.services import rules_apply
from studies.models import Study


class Command(BaseCommand):
    help = (
        "Compare the judges of a study (classifiers, model judges, the majority class) on the same test answers: F1, "
        "MCC, and the correlation of the automatic score with that of the raters. From stored judgements: let the "
        "judges judge first."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--study", required=True, help="slug of the study")
        parser.add_argument("--split", help="its number; by default the newest one")
        parser.add_argument("--split-seed", type=int, help="divide the people now labelled by this seed, and use that")
        parser.add_argument("--rubric", help="its number; by default the one used last")
        parser.add_argument("--figure", choices=list(FIGURES), default=Asked.figure)
        parser.add_argument("--subset", choices=[str(one) for one in SUBSETS], default=str(Asked.subset))
        parser.add_argument("--on", choices=["common", "own"], default=Asked.on, help="answers that all have judged")
        parser.add_argument("--judge", type=int, nargs="+", default=[], help="only these judges")
        parser.add_argument("--csv", type=Path, help="write every figure there")

    def handle(self, *args: Any, **options: Any) -> None:
        study = study_of(options["study"], self.stderr)
        try:
            found = self._compared(study, options)
        except ClassifierError as error:
            raise CommandError(str(error)) from error
        self._print(found)
        if options["csv"]:
            text = "".join(stream(COLUMNS, comparison_rows(found)))
            options["csv"].write_text(text, encoding="utf-8", newline="")

    def _compared(self, study: Study, options: dict[str, Any]) -> Comparison:
        try:
            rubric = rubric_asked(options, rubrics_of(study))
        except Http404 as error:
            raise CommandError("No answer of the study has been rated by that rubric.") from error
        if options["split_seed"] is not None:
            made = split_ensure(
                study=study, rubric=rubric, same_person=same_person(study), seed=options["split_seed"], actor=None
            )
            options = {**options, "split": str(made.pk)}
        split = self._split(study, options)
        rules_apply(study=study, rubric=rubric)
        sheet = sheet_of(split=split, rubric=rubric)
        unknown = set(options["judge"]) - {row.judges[0] for row in sheet.rows}
        if unknown:
            raise CommandError(f"Judge {min(unknown)} has judged none of the test answers.")
        for one in sheet.silent:
            self.stdout.write(f"{name_of(one)}: has judged none of the test answers (classifier_apply {one.pk}).")
        for one in sheet.trained_elsewhere:
            self.stdout.write(f"{name_of(one)}: trained by another split, left out.")
        asked = Asked(
            options["figure"], options["subset"], options["on"], frozenset(options["judge"]), default_set(sheet)
        )
        return comparison_of(sheet, asked)

    def _split(self, study: Study, options: dict[str, Any]) -> Split:
        try:
            return split_asked(options, splits_of(study))
        except Http404 as error:
            raise CommandError("The study has no such split: train a classifier, or give --split-seed.") from error

    def _print(self, found: Comparison) -> None:
        asked = found.asked
        self.stdout.write(f"{asked.figure}, {asked.subset}, {asked.on}: {found.n_subset} labelled test answers")
        for line in (*found.lines, found.constant):
            self.stdout.write(_name(line) + (f", has judged {line.n_own}" if line.n_own is not None else ""))
            for criterion, report in zip(found.criteria, line.cells, strict=True):
                if report is not None:
                    text = estimate_text(report.estimates[asked.figure])
                    self.stdout.write(f"  {criterion.code:<12} {text}   n {report.n}")
            if line.mean is not None:
                self.stdout.write(f"  {'mean':<12} {estimate_text(line.mean)}")
            for (unit, variant), one in line.correlations.items():
                pearson, spearman = estimate_text(one.pearson), estimate_text(one.spearman)
                self.stdout.write(f"  {unit:<10} {variant:<18} Pearson {pearson}  Spearman {spearman}  n {one.n}")


def _name(line: Line) -> str:
    return f"{line.judge} {judge_text(line)}" if line.judge else judge_text(line)
