from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from corpus.models import Stimulus
from reports.classifying import same_person
from reports.management.classifier_options import (
    Setting,
    Ticker,
    criteria_of,
    file_options,
    file_read,
    simulated_say,
    study_of,
)
from scoring.classifiers import recipes
from scoring.classifiers.files import train_on
from scoring.classifiers.problems import ClassifierError, problem_text
from scoring.classifiers.services import classifier_create, classifier_restart, held_out_choose, split_ensure
from scoring.classifiers.training import classifier_work
from scoring.models import Classifier, JobState, Split
from scoring.services import PAPER_RUBRIC, RUBRICS
from scoring.splitting import FRACTION


class Command(BaseCommand):
    help = (
        "Train a classifier on a study's labels (--study) or on a CSV file (--train). docs/classifiers.md describes "
        "the recipes and their parameters."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--recipe", choices=recipes.RECIPES, default=recipes.BASELINE)
        parser.add_argument("--base", default="", help="base model: a folder, or a name on the hub")
        parser.add_argument("--seed", type=int, default=1)
        parser.add_argument(
            "--set", dest="parameters", action=Setting, default={}, metavar="NAME=VALUE", help="such as epochs=3"
        )
        parser.add_argument("--study", help="slug of the study whose closed campaigns it learns from")
        parser.add_argument("--rubric", choices=list(RUBRICS), default=PAPER_RUBRIC)
        parser.add_argument("--criteria", default="", help="with --study: codes; by default all that are judged")
        parser.add_argument("--split-seed", type=int, default=1, help="with --study: of who trains and who tests")
        parser.add_argument("--fraction", type=float, default=FRACTION, help="with --study: of the people, that train")
        parser.add_argument("--hold-out", type=int, default=0, help="with --study: so many tasks are not learned from")
        parser.add_argument("--title", default="")
        parser.add_argument("--queue", action="store_true", help="with --study: leave it to the workers")
        parser.add_argument("--again", type=int, help="number of a classifier that failed or was cancelled")
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
            if options["again"]:
                self._again(options)
            elif options["study"]:
                self._from_study(options)
            else:
                self._from_file(options)
        except ClassifierError as error:
            raise CommandError(str(error)) from error

    def _from_study(self, options: dict[str, Any]) -> None:
        study = study_of(options["study"], self.stderr)
        rubric = RUBRICS[options["rubric"]]()
        criteria = criteria_of(rubric, options["criteria"])
        if not 0 < options["fraction"] < 1:
            raise CommandError("--fraction is a share between 0 and 1.")
        split = split_ensure(
            study=study,
            rubric=rubric,
            same_person=same_person(study),
            seed=options["split_seed"],
            fraction=options["fraction"],
            actor=None,
        )
        stimuli = Stimulus.objects.filter(instrument__study=study, is_practice=False).values_list("pk", flat=True)
        classifier = classifier_create(
            split=split,
            criteria=criteria,
            recipe=options["recipe"],
            base_model=options["base"],
            seed=options["seed"],
            parameters=options["parameters"],
            held_out=held_out_choose(list(stimuli), n=options["hold_out"], seed=options["seed"]),
            title=options["title"],
            actor=None,
            enqueue=options["queue"],
        )
        self._say_split(split)
        self._work(classifier, queue=options["queue"])

    def _again(self, options: dict[str, Any]) -> None:
        classifier = Classifier.objects.filter(pk=options["again"]).first()
        if classifier is None or not classifier_restart(classifier=classifier, actor=None, enqueue=options["queue"]):
            raise CommandError(f"There is no classifier {options['again']} that has not finished.")
        simulated_say(classifier.study, self.stderr)
        self._work(classifier, queue=options["queue"])

    def _say_split(self, split: Split) -> None:
        sides = list(split.sides.values_list("trains", flat=True))
        self.stdout.write(
            f"Split {split.pk}, seed {split.seed}: {sum(sides)} people train, {len(sides) - sum(sides)} test."
        )

    def _work(self, classifier: Classifier, *, queue: bool) -> None:
        if queue:
            self.stdout.write(f"Classifier {classifier.pk} waits for a worker.")
            return
        ticker = Ticker()
        taken = classifier_work(classifier.pk, also=ticker)
        ticker.end()
        classifier.refresh_from_db()
        if not taken or classifier.state != JobState.FINISHED:
            reason = problem_text(classifier.problem, classifier.problem_detail)
            raise CommandError(f"Classifier {classifier.pk}: {reason or classifier.get_state_display()}")
        self.stdout.write(
            f"Classifier {classifier.pk} has learned from {classifier.n_train} answers "
            f"(weights sha256 {classifier.weights_hash[:16]}…)."
        )
        self.stdout.write(f"Note: {recipes.LIMITS[classifier.recipe]}")

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
