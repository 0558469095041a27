import json
from collections import Counter
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from corpus.models import Instrument
from corpus.tables.table import MAX_BYTES
from surveys.import_report import ImportReport, Named, SourceFile
from surveys.import_words import TARGETS, fault_text, notice_text, reason_text
from surveys.importers.formats import FORMATS
from surveys.importing import ImportTargetError, Target, answers_import

COLUMNS = ("item", "lemmas", "answer", "respondent", "started", "timestamp", "consent")


class Command(BaseCommand):
    help = (
        "Import answers collected elsewhere (docs/importing.md). Prints the counts and every record that is not stored "
        "with its reason. Repeating an import brings in only what is new; a faulty file stores nothing."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
        parser.add_argument("--study", required=True, help="slug of the study")
        parser.add_argument("--instrument", required=True, help="slug of the instrument, or slug:version")
        parser.add_argument("--format", choices=list(FORMATS), help="seen from the header where it is left out")
        parser.add_argument("--survey", default="", help="title of the survey to hold them; new if none has it")
        parser.add_argument("--consent-statement", default="", help="how the people consented: text, or @file")
        parser.add_argument("--publication", action="store_true", help="their consent covers publishing the answers")
        parser.add_argument("--third-parties", action="store_true", help="… and handing them to others")
        for name in COLUMNS:
            parser.add_argument(f"--{name}-column", help="header, or position from 0")
        parser.add_argument("--consent-yes", action="append", help="a value that means yes; may be repeated")
        parser.add_argument("--encoding", help="utf-8, utf-16, cp1251 or cp1252; seen from the file")
        parser.add_argument("--delimiter", help="comma, semicolon or tab; seen from the file")
        parser.add_argument("--sheet", help="of a workbook with several")
        parser.add_argument("--time-zone", help="of times without one, such as Europe/Moscow")
        parser.add_argument("--mapping", default="{}", help="JSON, or a file with it: columns and everything else")
        parser.add_argument("--dry-run", action="store_true", help="say what would happen")
        parser.add_argument("--json", action="store_true", help="one JSON object instead of sentences")

    def handle(self, *args: Any, **options: Any) -> None:
        statement = options["consent_statement"]
        title = options["survey"]
        try:
            report = answers_import(
                instrument=_instrument(options["study"], options["instrument"]),
                files=[_file(path) for path in options["files"]],
                format_name=options["format"],
                settings=_settings(options),
                target=Target(
                    title,
                    _text_of(Path(statement[1:])) if statement.startswith("@") else statement,
                    options["publication"],
                    options["third_parties"],
                )
                if title
                else None,
                actor=None,
                dry_run=options["dry_run"],
            )
        except ImportTargetError as error:
            hint = " (--survey, --consent-statement)"
            raise CommandError(f"Nothing was imported: {TARGETS[error.code]}{hint}") from error
        if options["json"]:
            self.stdout.write(json.dumps(report.as_json(), ensure_ascii=False, indent=1))
        else:
            self._tell(report, dry_run=options["dry_run"])
        if report.fault:
            name, fault = report.fault
            raise CommandError(f"Nothing was imported. {name}: {fault_text(fault)}")

    def _tell(self, report: ImportReport, *, dry_run: bool) -> None:
        if report.fault:
            return
        for source, plan in zip(report.files, report.plans, strict=True):
            self.stdout.write(f"{source.name}: {plan.format}, {plan.encoding or 'workbook'}")
            if plan.unused:
                self.stdout.write(f"  columns left aside: {', '.join(plan.unused)}")
        self._list("skipped", report.skipped, len(report.files) > 1)
        self._list("conflict", report.conflicts, len(report.files) > 1)
        self._list("note", report.warnings, len(report.files) > 1)
        for number, notice in report.notices:
            place = f" ({report.files[number].name})" if len(report.files) > 1 else ""
            self.stdout.write(self.style.WARNING(f"  WARNING{place}: {notice.reason}: {notice_text(notice)}"))
        counts = report.counts
        self.stdout.write(", ".join(f"{name.replace('_', ' ')} {number}" for name, number in counts.items()))
        if dry_run:
            self.stdout.write("Nothing was stored: this was a dry run.")
        elif not counts["imported"]:
            self.stdout.write("Nothing was stored: there was nothing new.")

    def _list(self, word: str, named: list[Named], several: bool) -> None:
        for one in named:
            place = f"file {one.file + 1}, record {one.record}" if several else f"record {one.record}"
            item = f", item {one.item}" if one.item is not None else ""
            who = f" ({one.respondent})" if one.respondent else ""
            self.stdout.write(f"  {word}: {place}{item}{who}: {one.reason}: {reason_text(one.reason)}")
        for reason, number in Counter(one.reason for one in named).items():
            self.stdout.write(f"  {word} {reason}: {number}")


def _instrument(study: str, name: str) -> Instrument:
    slug, _colon, version = name.partition(":")
    found = Instrument.objects.filter(study__slug=study, slug=slug)
    if version:
        found = found.filter(version=int(version)) if version.isdecimal() else found.none()
    instrument = found.select_related("study").order_by("-version").first()
    if instrument is None:
        raise CommandError(f"There is no instrument {name!r} in the study {study!r}.")
    return instrument


def _file(path: Path) -> SourceFile:
    """Raises CommandError, before a file that is too large is read."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise CommandError(f"Nothing was imported. {path.name} is larger than {MAX_BYTES} bytes.")
        return SourceFile(path.name, path.read_bytes())
    except OSError as error:
        raise CommandError(f"Cannot read {path}: {error.strerror}.") from error


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise CommandError(f"Cannot read {path}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise CommandError(f"{path} is not UTF-8.") from error


def _settings(options: dict[str, Any]) -> dict[str, Any]:
    text = options["mapping"].strip()
    try:
        settings = json.loads(text if text.startswith("{") else _text_of(Path(text)))
    except json.JSONDecodeError as error:
        raise CommandError(f"--mapping is no JSON: {error}.") from error
    if not isinstance(settings, dict):
        raise CommandError("--mapping is to be a JSON object.")
    for name in (*(f"{column}_column" for column in COLUMNS), "encoding", "sheet", "time_zone", "consent_yes"):
        if options[name] is not None:
            settings[name] = options[name]
    if options["delimiter"]:
        signs = {"comma": ",", "semicolon": ";", "tab": "\t"}
        settings["delimiter"] = signs.get(options["delimiter"], options["delimiter"])
    return settings
