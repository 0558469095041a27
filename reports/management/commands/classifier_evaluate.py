import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from reports.judge_evaluating import model_judges_evaluate
from reports.management.classifier_options import (
    Ticker,
    classifiers_of,
    file_options,
    file_read,
    report_lines,
    study_of,
)
from scoring.classifiers import recipes
from scoring.classifiers.evaluating import classifier_evaluate
from scoring.classifiers.files import measure_on
from scoring.classifiers.problems import ClassifierError
from scoring.evaluation import Report
from scoring.models import Evaluation


class Command(BaseCommand):
    help = (
        "Measure a classifier on a study's test answers (--study) or on a CSV file (--data): F1, MCC, calibration with "
        "intervals, the majority class beside them. all: every classifier and model judge of the study."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("classifier", help="its number in the study or all, or its folder")
        parser.add_argument("--study", help="slug of the study whose test answers it is measured on")
        parser.add_argument("--data", type=Path, nargs="+", help="CSV in UTF-8 with a header")
        parser.add_argument("--train", type=Path, help="with --data: what it learned from, to tell unseen texts apart")
        parser.add_argument("--json", type=Path, help="write the reports there, too")
        file_options(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            found = self._on_study(options) if options["study"] else self._on_files(options)
        except ClassifierError as error:
            raise CommandError(str(error)) from error
        if options["json"]:
            text = json.dumps(found, ensure_ascii=False, indent=2) + "\n"
            options["json"].write_text(text, encoding="utf-8")

    def _on_study(self, options: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        study = study_of(options["study"], self.stderr)
        for classifier in classifiers_of(study, options["classifier"]):
            ticker = Ticker()
            evaluations = classifier_evaluate(classifier=classifier, actor=None, progress=ticker)
            ticker.end()
            if classifier.withdrawn:
                self.stdout.write(
                    f"{classifier.withdrawn} of the people that classifier {classifier.pk} learned from "
                    "have withdrawn since: train it again."
                )
            self._show(f"{classifier.pk} {classifier.title}", evaluations, found)
        if options["classifier"] == "all":
            for name, evaluations in model_judges_evaluate(study):
                self._show(name, evaluations, found)
        return found

    def _show(self, judge: str, evaluations: list[Evaluation], found: dict[str, Any]) -> None:
        for evaluation in evaluations:
            name = f"{judge}, {evaluation.criterion.code}, {evaluation.subset}"
            self.stdout.write("\n".join(report_lines(name, Report.from_json(evaluation.metrics))))
            found[name] = evaluation.metrics

    def _on_files(self, options: dict[str, Any]) -> dict[str, Any]:
        if not options["data"]:
            raise CommandError("Give --study, or --data.")
        model = recipes.load(Path(options["classifier"]))
        seen = file_read(options["train"], options, labels=False).texts if options["train"] else []
        found = {}
        for path in options["data"]:
            ticker = Ticker()
            reports = measure_on(model, file_read(path, options), seen=seen, progress=ticker)
            ticker.end()
            for name, report in reports.items():
                label = path.name if name == "all" else f"{path.name}, texts unseen in training"
                self.stdout.write("\n".join(report_lines(label, report)))
                found[label] = report.as_json()
        return found
