import csv
from argparse import BooleanOptionalAction
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from reports.management.classifier_options import Ticker, classifiers_of, file_options, file_read, study_of
from scoring.classifiers import recipes
from scoring.classifiers.applying import application_create, application_work
from scoring.classifiers.arrival import arrival_switch, arrived_count
from scoring.classifiers.problems import ClassifierError, problem_text
from scoring.models import Classifier, JobState


class Command(BaseCommand):
    help = "Let a classifier judge the answers of a study (--study), or the texts of a CSV file (--data)."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("classifier", help="its number in the study, or its folder")
        parser.add_argument("--study", help="slug of the study whose answers are judged")
        parser.add_argument("--queue", action="store_true", help="with --study: leave it to the workers")
        parser.add_argument(
            "--on-arrival",
            action=BooleanOptionalAction,
            help="with --study: let the workers judge new answers as they come from now on, or no more",
        )
        parser.add_argument("--data", type=Path, help="CSV in UTF-8 with a header")
        parser.add_argument("--out", type=Path, help="with --data: the CSV to write")
        parser.add_argument("--bf16", action="store_true", help="half the precision: faster on newer processors")
        file_options(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            self._on_study(options) if options["study"] else self._on_file(options)
        except ClassifierError as error:
            raise CommandError(str(error)) from error

    def _on_study(self, options: dict[str, Any]) -> None:
        for classifier in classifiers_of(study_of(options["study"], self.stderr), options["classifier"]):
            if options["on_arrival"] is not None:
                self._switch(classifier, on=options["on_arrival"])
                continue
            application = application_create(classifier=classifier, actor=None, enqueue=options["queue"])
            if options["queue"]:
                self.stdout.write(f"Application {application.pk} of classifier {classifier.pk} waits for a worker.")
                continue
            ticker = Ticker()
            taken = application_work(application.pk, also=ticker)
            ticker.end()
            application.refresh_from_db()
            if not taken or application.state != JobState.FINISHED:
                reason = problem_text(application.problem, application.problem_detail)
                raise CommandError(f"Classifier {classifier.pk}: {reason or application.get_state_display()}")
            self.stdout.write(
                f"Classifier {classifier.pk}: {application.total} answers judged, "
                f"{application.truncated} of them by their beginning only."
            )

    def _switch(self, classifier: Classifier, *, on: bool) -> None:
        arrival_switch(classifier=classifier, actor=None, on=on)
        when = "as they come" if on else "when asked"
        waiting = arrived_count(classifier)
        self.stdout.write(f"Classifier {classifier.pk} judges new answers {when}; {waiting} of finished sittings wait.")

    def _on_file(self, options: dict[str, Any]) -> None:
        if options["data"] is None or options["out"] is None:
            raise CommandError("Give --study, or --data and --out.")
        model = recipes.load(Path(options["classifier"]), bf16=options["bf16"])
        columns = file_read(options["data"], options, labels=False)
        ticker = Ticker()
        said, cut = recipes.say(model, columns.texts, ticker)
        ticker.end()
        with options["out"].open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream)
            codes = [task.code for task in model.tasks]
            writer.writerow(["text", *(name for code in codes for name in (code, f"{code}_confidence")), "truncated"])
            for row, text in enumerate(columns.texts):
                values = [
                    value for column in said for value in (f"{column[row].value:g}", f"{column[row].confidence:.6f}")
                ]
                writer.writerow([text, *values, int(cut[row])])
        self.stdout.write(f"{len(columns.texts)} texts judged, {sum(cut)} of them by their beginning only.")
