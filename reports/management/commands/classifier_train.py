from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from reports.management.classifier_options import Setting, Ticker, file_options, file_read
from scoring.classifiers import recipes
from scoring.classifiers.files import train_on
from scoring.classifiers.problems import ClassifierError


class Command(BaseCommand):
    help = (
        "Train a classifier on a study's labels (--study) or on a CSV file (--train). docs/classifiers.md describes the "
        "recipes and their parameters."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--recipe", choices=recipes.RECIPES, default=recipes.BASELINE)
        parser.add_argument("--base", default="", help="base model: a folder, or a name on the hub")
        parser.add_argument("--seed", type=int, default=1)
        parser.add_argument(
            "--set", dest="parameters", action=Setting, default={}, metavar="NAME=VALUE", help="such as epochs=3"
        )
        parser.add_argument("--train", type=Path, help="CSV in UTF-8 with a header")
        parser.add_argument("--out", type=Path, help="with --train: the folder for the classifier")
        parser.add_argument("--language", default="ru", help="with --train: of the texts")
        parser.add_argument("--criterion", default="acceptable", help="with --train: what the labels are called")
        file_options(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            recipes.parameters_of(options["recipe"], options["parameters"])
        except KeyError as error:
            known = ", ".join(recipes.DEFAULTS[options["recipe"]])
            raise CommandError(f"The recipe has no parameter {error}. It has: {known}.") from error
        try:
            self._from_file(options)
        except ClassifierError as error:
            raise CommandError(str(error)) from error

    def _from_file(self, options: dict[str, Any]) -> None:
        if options["train"] is None or options["out"] is None:
            raise CommandError("Give --study, or --train and --out.")
        ticker = Ticker()
        card = train_on(
            file_read(options["train"], options),
            recipe=options["recipe"],
            base=options["base"],
            parameters=options["parameters"],
            seed=options["seed"],
            language=options["language"],
            criterion=options["criterion"],
            source=options["train"].name,
            out=options["out"],
            progress=ticker,
        )
        ticker.end()
        self.stdout.write(f"Stored in {options['out']} (sha256 {card['weights_hash'][:16]}…).")
        for limit in card["limits"]:
            self.stdout.write(f"Note: {limit}")
