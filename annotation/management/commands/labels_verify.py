from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotation.models import Campaign
from annotation.versions import chain_verify, versions_catch_up


class Command(BaseCommand):
    help = "Count the digests of frozen labels again from the history, and say whether they hold."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--study", help="address of a study; without it, all")
        parser.add_argument("--campaign", type=int, help="number of one campaign")

    def handle(self, *args: Any, study: str | None, campaign: int | None, **options: Any) -> None:
        found = Campaign.objects.filter(label_versions__version=1).select_related("study", "round").order_by("pk")
        if study:
            found = found.filter(study__slug=study)
        if campaign:
            found = found.filter(pk=campaign)
        broken = 0
        for one in found:
            versions_catch_up(campaign=one)
            problems = chain_verify(one)
            broken += bool(problems)
            last = one.label_versions.order_by("-version").values_list("version", "sha256").first()
            version, sha256 = last or (0, "")
            self.stdout.write(
                f"{one.study.slug} campaign {one.pk} version {version} {sha256}: {'; '.join(problems) or 'holds'}"
            )
        if broken:
            raise CommandError(f"{broken} of the campaigns do not hold")
