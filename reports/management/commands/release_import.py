from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from reports.management.commands.luria_setup import RESEARCHER
from reports.releases.archive import ArchiveRefusedError
from reports.releases.importing import Imported, StudyTakenError, release_import
from reports.releases.words import fault_text
from studies.models import User


class Command(BaseCommand):
    help = (
        "Make a study of a release: instrument, respondents, answers, models, judgements and labels, with the same "
        "results. All of it or nothing, and once. See docs/releases.md."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--slug", default="", help="the new study's address; the release's own where left out")
        parser.add_argument("--researcher", default=RESEARCHER, help="the user name of who is to see the study")
        parser.add_argument("--dry-run", action="store_true", help="say what would come, and store nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        actor = User.objects.filter(username=options["researcher"], is_active=True).first()
        if actor is None and options["researcher"] != RESEARCHER:
            raise CommandError(f"There is no user {options['researcher']!r}. Nothing was imported.")
        path: Path = options["file"]
        try:
            with path.open("rb") as stream:
                done = release_import(
                    stream=stream, name=path.name, slug=options["slug"], actor=actor, dry_run=options["dry_run"]
                )
        except OSError as error:
            raise CommandError(f"Cannot read {path}: {error.strerror}.") from error
        except ArchiveRefusedError as error:
            raise CommandError(f"Nothing was imported. {fault_text(error)}") from error
        except StudyTakenError as error:
            raise CommandError(
                "Nothing was imported: a study with this address is here already. Give another one: --slug NAME."
            ) from error
        self.tell(done, actor, dry_run=options["dry_run"])

    def tell(self, done: Imported, actor: User | None, *, dry_run: bool) -> None:
        study = done.manifest["study"]
        simulated = " (simulated)" if study["simulated"] else ""
        self.stdout.write(f"Release {done.manifest['version']} of {study['slug']}{simulated}: {study['title']}")
        if done.already:
            self.stdout.write(f"Nothing was stored: the study {done.already.study.slug} was made of this release.")
            return
        self.stdout.write("  " + ", ".join(f"{name} {number}" for name, number in done.counts.items()))
        for name, number in done.left_aside.items():
            self.stdout.write(f"  left aside: {name} {number}")
        self.stdout.write(
            "  judgements of the counting rules (sequence, vocabulary) are counted anew, and not in that number"
        )
        self.stdout.write("  labels and scores counted again: as the release states them")
        if dry_run:
            self.stdout.write("Nothing was stored: this was a dry run.")
        elif done.study:
            self.stdout.write(f"Stored as the study {done.study.slug}.")
            if actor is None:
                self.stdout.write("Nobody is its researcher yet: name one with --researcher.")
