import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from corpus.models import Instrument
from llmruns.importers.records import Problem
from llmruns.models import Prompt
from llmruns.replay import ReplayReport, Source, Target, replies_import
from llmruns.replay_words import problem_text
from llmruns.services import MAX_ATTEMPTS


class Command(BaseCommand):
    help = (
        "Import replies of models that were recorded elsewhere, or another study's log of calls (docs/replaying.md). "
        "Prints what is wrong line by line; a file with anything wrong stores nothing, and the same records come in "
        "once."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--study", required=True, help="slug of the study")
        parser.add_argument("--instrument", required=True, help="slug of the instrument, or slug:version")
        parser.add_argument("--title", default="", help="of the experiment; the file's name where it is left out")
        parser.add_argument("--prompt", help="slug or slug:version; read from the requests where it is left out")
        parser.add_argument("--max-attempts", type=int, help="bad replies after which there is no valid one")
        parser.add_argument("--dry-run", action="store_true", help="say what would happen")
        parser.add_argument("--json", action="store_true", help="one JSON object instead of sentences")

    def handle(self, *args: Any, **options: Any) -> None:
        path: Path = options["file"]
        attempts = options["max_attempts"]
        if attempts is not None and not 1 <= attempts <= MAX_ATTEMPTS:
            raise CommandError(f"--max-attempts lies between 1 and {MAX_ATTEMPTS}.")
        instrument = _instrument(options["study"], options["instrument"])
        try:
            report = replies_import(
                instrument=instrument,
                source=Source(path.name, path.stat().st_size, lambda: path.open("rb")),
                target=Target(options["title"], _prompt(instrument, options["prompt"]), attempts),
                actor=None,
                dry_run=options["dry_run"],
            )
        except OSError as error:
            raise CommandError(f"Cannot read {path}: {error.strerror}.") from error
        if options["json"]:
            self.stdout.write(json.dumps(report.as_json(), ensure_ascii=False, indent=1))
        else:
            self._tell(report)
        if report.problems:
            raise CommandError("Nothing was imported.")
        if report.made is None:
            self.stderr.write("Nothing was stored: this was a dry run.")

    def _tell(self, report: ReplayReport) -> None:
        self._list("problem", report.problems)
        self._list("note", report.notes)
        for label in report.labels.values():
            self.stdout.write(f"  model: {label}")
        self.stdout.write(f"  prompt: {report.prompt}")
        counts = report.plan.counts
        self.stdout.write(", ".join(f"{name.replace('_', ' ')} {number}" for name, number in counts.items()))

    def _list(self, word: str, problems: Sequence[Problem]) -> None:
        for one in problems:
            place = f"line {one.line}: " if one.line else ""
            self.stdout.write(f"  {word}: {place}{one.code}: {problem_text(one)}")
        for code, number in Counter(one.code for one in problems).items():
            self.stdout.write(f"  {word} {code}: {number}")


def _instrument(study: str, name: str) -> Instrument:
    slug, _colon, version = name.partition(":")
    found = Instrument.objects.filter(study__slug=study, slug=slug)
    if version:
        found = found.filter(version=int(version)) if version.isdecimal() and len(version) < 10 else found.none()
    instrument = found.select_related("study").order_by("-version").first()
    if instrument is None:
        raise CommandError(f"There is no instrument {name!r} in the study {study!r}.")
    return instrument


def _prompt(instrument: Instrument, name: str | None) -> Prompt | None:
    if not name:
        return None
    slug, _colon, version = name.partition(":")
    found = Prompt.objects.filter(study=instrument.study, slug=slug, purpose=Prompt.Purpose.ANSWER)
    if version:
        found = found.filter(version=int(version)) if version.isdecimal() and len(version) < 10 else found.none()
    prompt = found.order_by("-version").first()
    if prompt is None:
        raise CommandError(f"There is no prompt {name!r} in the study.")
    return prompt
