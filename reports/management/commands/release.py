import shutil
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from reports.models import Release
from reports.releases.files import release_path
from reports.releases.policy import Policy, Questionnaire
from reports.releases.services import (
    ReleaseEmptyError,
    ReleaseOvertakenError,
    ReleaseUnderWayError,
    release_begin,
    release_build,
)
from studies.models import Study


class Command(BaseCommand):
    help = (
        "Freeze a study's publishable answers, judgements, labels and scores as a dataset (a ZIP of CSV files that "
        "passes the Psych-DS validator) and write a copy of it to a file. See docs/releases.md."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--study", required=True, help="the study's address, such as luria")
        parser.add_argument("--out", required=True, type=Path, help="the file to write; it must not exist")
        parser.add_argument("--timings", action="store_true", help="with how long answers took, pastes, device")
        parser.add_argument(
            "--questionnaire",
            choices=Questionnaire.values,
            default=Questionnaire.NONE,
            help="what of the questionnaire: none, closed (no texts that people wrote), all",
        )
        parser.add_argument("--licence", default="", help="such as CC-BY-4.0")
        parser.add_argument("--authors", default="", help="names, separated by semicolons")
        parser.add_argument("--note", default="", help="what is new in this version")

    def handle(self, *args: Any, **options: Any) -> None:
        study = Study.objects.filter(slug=options["study"]).first()
        if study is None:
            raise CommandError(f"There is no study {options['study']!r}.")
        out: Path = options["out"]
        if out.exists():
            raise CommandError(f"{out} exists already. Nothing was made.")
        if not out.absolute().parent.is_dir():
            raise CommandError(f"There is no folder {out.absolute().parent}. Nothing was made.")
        policy = Policy(
            timings=options["timings"],
            questionnaire=options["questionnaire"],
            licence=options["licence"],
            authors=options["authors"],
        )
        release = self.make(study, policy, options["note"])
        try:
            shutil.copyfile(release_path(release), out)
        except OSError as error:
            raise CommandError(
                f"Release {release.number} is made, but not copied to {out}: {error.strerror}."
            ) from error
        counts = release.counts
        self.stdout.write(
            f"Release {release.number} of {study.slug}{' (simulated)' if study.simulated else ''}: "
            f"{counts['answers']} answers of {counts['people']} people and {counts['models']} models "
            f"({counts['runs']} runs)."
        )
        for reason, number in counts["left_out"].items():
            if number:
                self.stdout.write(f"  left out: {number} {'sitting' if number == 1 else 'sittings'} ({reason})")
        if counts["open_campaigns"]:
            self.stdout.write("  rating is going on: later votes may change labels and scores")
        self.stdout.write(f"{out}: {release.size} bytes, sha256 {release.sha256}")

    def make(self, study: Study, policy: Policy, note: str) -> Release:
        try:
            release = release_begin(study=study, policy=policy, actor=None, note=note)
            release_build(release_id=release.pk)
        except ReleaseEmptyError as error:
            raise CommandError(
                "Nothing was made: no answer may be published. People have to have agreed to publication, and their "
                "sittings to count."
            ) from error
        except ReleaseUnderWayError as error:
            raise CommandError("Another release of this study is being made. Nothing was made.") from error
        except ReleaseOvertakenError as error:
            raise CommandError("Somebody took their answers back meanwhile. Nothing was made: try again.") from error
        except OSError as error:
            raise CommandError(f"The release could not be written: {error.strerror}. Nothing was made.") from error
        release.refresh_from_db()
        return release
