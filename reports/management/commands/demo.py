from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.urls import reverse

from reports.management.commands.luria_setup import RESEARCHER
from reports.simulation import simulate_models, simulate_people, simulate_raters, simulation_begin
from reports.simulation_judges import simulate_classifier, simulate_labels, simulate_model_judges
from studies.models import Study, User

FEWEST = 8


class Command(BaseCommand):
    help = (
        "Fill a separate study with simulated people, models and raters, so that every page can be looked at with "
        "something on it. The study is marked as simulated on every page and in every export."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--slug", default="demo")
        parser.add_argument("--people", type=int, default=30)
        parser.add_argument("--runs", type=int, default=5)
        parser.add_argument("--seed", type=int, default=1)

    def handle(self, *args: Any, **options: Any) -> None:
        if options["people"] < FEWEST or options["runs"] < 1:
            raise CommandError(f"At least {FEWEST} people and one run: a classifier learns from seven people in ten.")
        slug = options["slug"]
        address = settings.PUBLIC_URL + reverse("study_dashboard", args=[slug])
        if Study.objects.filter(slug=slug).exists():
            self.say(f"The simulated study is there already: {address}")
            self.say("Another one: make demo ARGS='--slug another-name'")
            return
        researcher = User.objects.filter(username=RESEARCHER).first()
        if researcher is None:
            raise CommandError("There is no researcher yet: run luria_setup first.")
        simulation = simulation_begin(slug=slug, actor=researcher, seed=options["seed"])
        self.say(f"{options['people']} simulated people take the test …")
        simulate_people(simulation, people=options["people"])
        self.say(f"Simulated models take it {options['runs']} times each …")
        simulate_models(simulation, runs=options["runs"])
        self.say("Three simulated raters judge the answers …")
        campaign = simulate_raters(simulation, say=self.say)
        simulate_labels(simulation, campaign=campaign)
        self.say("A classifier learns from their labels and judges all answers; simulated models judge them too …")
        classifier = simulate_classifier(simulation)
        simulate_model_judges(simulation, classifier=classifier)
        self.say(f"Done. Everything in it is simulated: {address}")

    def say(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()
