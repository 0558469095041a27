from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser

from corpus.importing import StimuliUnreadableError, problem_text, read_stimuli
from corpus.models import Instrument
from corpus.services import RefusalLimitError, instrument_create
from studies.models import Study


class Command(BaseCommand):
    help = (
        "Import an instrument: a CSV of stimuli (id, task, original, complexity, shuffled) and a file with the "
        "instruction. An existing slug gets its next version. A faulty file changes nothing."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("stimuli", type=Path, help="CSV, UTF-8")
        parser.add_argument("--study", required=True, help="slug of the study")
        parser.add_argument("--slug", required=True, help="slug of the instrument")
        parser.add_argument("--title", required=True)
        parser.add_argument("--instruction", required=True, type=Path, help="markdown, UTF-8")
        parser.add_argument("--language", default="ru")
        parser.add_argument("--refusal-below", type=int, default=4, help="fewer words than this is a refusal")
        parser.add_argument("--keep-case", action="store_true", help="do not show answers in lower case")

    def handle(self, *args: Any, **options: Any) -> None:
        study = Study.objects.filter(slug=options["study"]).first()
        if study is None:
            raise CommandError(f"There is no study {options['study']!r}.")
        try:
            Instrument(
                slug=options["slug"], title=options["title"], language=options["language"], instruction="…"
            ).clean_fields(exclude=["study"])
        except ValidationError as error:
            raise CommandError("\n".join(["Nothing was imported:", *error.messages])) from error
        try:
            rows = read_stimuli(options["stimuli"].read_bytes())
            instruction = options["instruction"].read_text(encoding="utf-8")
            instrument = instrument_create(
                study=study,
                slug=options["slug"],
                title=options["title"],
                language=options["language"],
                instruction=instruction,
                stimuli=rows,
                actor=None,
                refusal_below=options["refusal_below"],
                lower_case=not options["keep_case"],
            )
        except OSError as error:
            raise CommandError(f"Cannot read {error.filename}: {error.strerror}.") from error
        except UnicodeDecodeError as error:
            raise CommandError(f"{options['instruction']} is not UTF-8 (byte {error.start}).") from error
        except StimuliUnreadableError as error:
            raise CommandError("\n".join(["Nothing was imported:", *map(problem_text, error.problems)])) from error
        except RefusalLimitError as error:
            raise CommandError(
                "--refusal-below must be lower than the shortest original, or a right answer would be a refusal."
            ) from error
        self.stdout.write(f"{instrument}: {len(rows)} stimuli.")
