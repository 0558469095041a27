import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.import_report import ImportReport
from annotation.import_words import fault_text, reason_text
from annotation.importers.archive import unpacked
from annotation.importers.documents import MAX_BYTES
from annotation.importers.formats import FORMATS
from annotation.importers.plan import Named, Source
from annotation.importing import NoTitleError, Target, judgements_import
from corpus.storing import storable_text
from scoring.services import PAPER_RUBRIC, RUBRICS
from studies.models import Study
from surveys.import_known import respondents_named

FIELDS = ("key", "respondent", "stimulus", "text", "annotator", "time", "criterion_column", "value_column")


class Command(BaseCommand):
    help = (
        "Import judgements made in other tools as a closed campaign (docs/importing-judgements.md). Prints the counts, "
        "who judged, and every record that is not stored with its reason. The same judgements again change nothing; a "
        "faulty file stores nothing."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
        parser.add_argument("--study", required=True, help="slug of the study")
        parser.add_argument("--format", choices=list(FORMATS), help="seen from each file where it is left out")
        parser.add_argument("--title", default="", help="of the campaign that holds them; needed to import")
        parser.add_argument("--rubric", default=PAPER_RUBRIC, choices=list(RUBRICS))
        for name in FIELDS:
            parser.add_argument(f"--{name.replace('_', '-')}", help="name of a field; of a table also its place from 0")
        parser.add_argument("--criterion", action="append", default=[], metavar="FIELD=CODE", help="may be repeated")
        parser.add_argument(
            "--value", action="append", default=[], metavar="VALUE=NUMBER", help="for every field of --criterion"
        )
        parser.add_argument(
            "--label", action="append", default=[], metavar="LABEL=CODE:NUMBER", help="doccano; may be repeated"
        )
        parser.add_argument(
            "--rater", action="append", default=[], metavar="ANNOTATOR=R2", help="R2, new, or =ANOTHER; may be repeated"
        )
        parser.add_argument("--encoding", help="utf-8, utf-16, cp1251 or cp1252; seen from the file")
        parser.add_argument("--delimiter", help="comma, semicolon or tab; seen from the file")
        parser.add_argument("--sheet", help="of a workbook with several")
        parser.add_argument("--time-zone", help="of times without one, such as Europe/Moscow")
        parser.add_argument("--ground-truth", action="store_true", help="take what Label Studio marks so as votes")
        parser.add_argument("--mapping", default="{}", help="JSON, or a file with it: all of the above and more")
        parser.add_argument("--dry-run", action="store_true", help="say what would happen")
        parser.add_argument("--json", action="store_true", help="one JSON object instead of sentences")

    def handle(self, *args: Any, **options: Any) -> None:
        options = {name: _storable(value) for name, value in options.items()}
        study = Study.objects.filter(slug=options["study"]).first()
        if study is None:
            raise CommandError(f"There is no study {options['study']!r}.")
        try:
            report = judgements_import(
                study=study,
                files=unpacked([_file(path) for path in options["files"]]),
                format_name=options["format"],
                settings=_settings(options),
                target=Target(options["title"], options["rubric"]),
                actor=None,
                dry_run=options["dry_run"],
                named=respondents_named,
            )
        except NoTitleError as error:
            raise CommandError("Nothing was imported: say what the campaign is called (--title).") from error
        if options["json"]:
            self.stdout.write(json.dumps(report.as_json(), ensure_ascii=False, indent=1))
        else:
            self._tell(report, dry_run=options["dry_run"])
        if report.fault:
            name, fault = report.fault
            raise CommandError(f"Nothing was imported. {name + ': ' if name else ''}{fault_text(fault)}")

    def _tell(self, report: ImportReport, *, dry_run: bool) -> None:
        if report.fault:
            return
        for source, format_, encoding in zip(report.files, report.plan.formats, report.plan.encodings, strict=True):
            self.stdout.write(f"{source.name}: {format_}, {encoding or 'workbook'}")
        if report.plan.unused:
            self.stdout.write(f"  fields with choices, left aside: {', '.join(report.plan.unused)}")
        answers = report.answers_by_annotator
        for name, whom in report.people.items():
            who = f"rater {whom.rater.pseudonym}" if whom.rater else f"a new rater ({whom.name})"
            self.stdout.write(f"  annotator {name}: answers {answers[name]}, {who}")
        for word, named in (("skipped", report.skipped), ("missing", report.conflicts), ("note", report.warnings)):
            self._list(word, named, report)
        for one in report.compared:
            self.stdout.write(
                f"  beside the import “{one.campaign.title}”: {one.same} values the same, {one.changed} others, "
                f"{one.new} new, {one.gone} no longer in the file"
            )
        self.stdout.write(", ".join(f"{name.replace('_', ' ')} {number}" for name, number in report.counts.items()))
        if report.already:
            self.stdout.write(f"Nothing was stored: “{report.already.campaign.title}” has these judgements already.")
        elif dry_run:
            self.stdout.write("Nothing was stored: this was a dry run.")
        elif report.imported is None:
            self.stdout.write("Nothing was stored: there was nothing to store.")
        else:
            campaign, number = report.imported.campaign, report.counts["imported"]
            judgements = "1 judgement" if number == 1 else f"{number} judgements"
            self.stdout.write(
                f"Stored: {judgements}, as the closed campaign “{campaign.title}” (number {campaign.pk})."
            )

    def _list(self, word: str, named: list[Named], report: ImportReport) -> None:
        for one in named:
            place = f"{report.files[one.file].name}, " if len(report.files) > 1 else ""
            place += f"annotation {one.annotation}" if one.annotation else f"record {one.record}"
            what = f", {one.criterion}" if one.criterion else ""
            value = f" ({one.value})" if one.value else ""
            self.stdout.write(f"  {word}: {place}{what}: {one.reason}: {reason_text(one.reason)}{value}")


def _file(path: Path) -> Source:
    """Raises CommandError, before a file that is too large is read."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise CommandError(f"Nothing was imported. {path.name} is larger than {MAX_BYTES} bytes.")
        return Source(storable_text(path.name)[0], path.read_bytes())
    except OSError as error:
        raise CommandError(f"Cannot read {path}: {error.strerror}.") from error


def _storable(value: Any) -> Any:
    """Names as the readers of files give them: what cannot be stored is written as \\ud800."""
    if isinstance(value, str):
        return storable_text(value)[0]
    if isinstance(value, list):
        return [_storable(one) for one in value]
    if isinstance(value, dict):
        return {_storable(name): _storable(one) for name, one in value.items()}
    return value


def _settings(options: dict[str, Any]) -> dict[str, Any]:
    text = options["mapping"].strip()
    try:
        settings = json.loads(text if text.startswith("{") else _file(Path(text)).data)
    except (ValueError, RecursionError) as error:
        raise CommandError(f"--mapping is no JSON: {error}.") from error
    if not isinstance(settings, dict):
        raise CommandError("--mapping is to be a JSON object.")
    settings = _storable(settings)
    for name in (*FIELDS, "encoding", "sheet", "time_zone"):
        if options[name] is not None:
            settings[name] = options[name]
    if options["delimiter"]:
        signs = {"comma": ",", "semicolon": ";", "tab": "\t"}
        settings["delimiter"] = signs.get(options["delimiter"], options["delimiter"])
    if options["ground_truth"]:
        settings["ground_truth"] = True
    values = {value: _number(number) for value, number in map(_pair, options["value"])}
    for field, code in map(_pair, options["criterion"]):
        settings.setdefault("codes", {})[field] = code
        settings.setdefault("criteria", {})[field] = values
    for label, meaning in map(_pair, options["label"]):
        code, _colon, number = meaning.rpartition(":")
        settings.setdefault("labels", {})[label] = (code, _number(number))
    for annotator, rater in map(_first_pair, options["rater"]):
        settings.setdefault("raters", {})[annotator] = rater
    return settings


def _pair(text: str) -> tuple[str, str]:
    """What stands before the last `=` and after it. Raises CommandError."""
    name, sign, value = text.rpartition("=")
    if not sign or not name:
        raise CommandError(f"{text!r} is to be NAME=VALUE.")
    return name, value


def _first_pair(text: str) -> tuple[str, str]:
    """As `_pair`, by the first `=`: the value may begin with one."""
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise CommandError(f"{text!r} is to be ANNOTATOR=RATER.")
    return name, value


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise CommandError(f"{text!r} is no number.") from error
