import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.http import Http404
from django.utils import translation

from corpus.models import Instrument
from reports.choice import ALL, chosen_of, judge_names
from reports.csvfile import stream
from reports.figure_set import FIGURES
from reports.figures import compiled, drawn
from reports.result_file import TABLE_COLUMNS, table_rows
from reports.selectors import Results, instrument_default, instruments_of, results_of, rubric_of
from scoring.bases import RATERS_KEY
from scoring.services import rules_apply
from studies.models import Study

PICTURES = ("svg", "pdf", "png")
KINDS = (*PICTURES, "csv", "json")


class Command(BaseCommand):
    help = (
        "Write a figure or the table of a study's results to a file (docs/results.md). The kind of file is seen from "
        "its ending: svg, pdf, png, csv or, of a figure, json (Vega). Without --out the CSV is printed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--study", required=True, help="slug of the study")
        parser.add_argument("--instrument", help="slug, or slug and version (luria-18@2); the newest that has been sat")
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("--figure", type=int, choices=list(FIGURES))
        what.add_argument("--table", action="store_true", help="every number of the results page")
        parser.add_argument(
            "--basis", default=RATERS_KEY, help="raters, or judges-7 or judges-7-8-9 by the numbers of automatic judges"
        )
        parser.add_argument("--people", default="", help=f"{ALL}, or from:NAME for one survey's")
        parser.add_argument("--runs", default="mean", choices=["mean", "majority"])
        parser.add_argument("--language", default="en", choices=["en", "ru"])
        parser.add_argument("--out", type=Path)

    def handle(self, *args: Any, **options: Any) -> None:
        out: Path | None = options["out"]
        kind = out.suffix.lstrip(".").lower() if out else "csv"
        if kind not in KINDS or (options["table"] and kind != "csv"):
            known = "csv" if options["table"] else ", ".join(KINDS)
            raise CommandError(f"The file's ending must be one of: {known}.")
        with translation.override(options["language"]):
            content = self._content(self._results(options), options, kind)
        if out is None:
            self.stdout.write(content.decode(), ending="")
            return
        try:
            out.write_bytes(content)
        except OSError as error:
            raise CommandError(f"{out} could not be written: {error.strerror}.") from error
        self.stdout.write(f"Written: {out}")

    def _results(self, options: dict[str, Any]) -> Results:
        study = Study.objects.filter(slug=options["study"]).first()
        if study is None:
            raise CommandError(f"There is no study {options['study']!r}.")
        instrument = _instrument(study, options["instrument"])
        rubric = rubric_of(instrument)
        rules_apply(study=study, rubric=rubric)
        given = {key: options[key] for key in ("basis", "people", "runs")}
        try:
            chosen = chosen_of(given=given, study=study, instrument=instrument, rubric=rubric)
        except Http404 as error:
            known = "".join(f"\n  {pk}  {name}" for pk, name in judge_names(study, rubric).items())
            raise CommandError(
                f"The study has no such basis or people: {options['basis']}, {options['people'] or ALL}."
                + (f" Automatic judges that a basis can be made of:{known}" if known else "")
            ) from error
        return results_of(study=study, instrument=instrument, rubric=rubric, chosen=chosen)

    def _content(self, results: Results, options: dict[str, Any], kind: str) -> bytes:
        if options["table"]:
            return "".join(stream(TABLE_COLUMNS, table_rows(results))).encode()
        figure = FIGURES[options["figure"]]
        if kind == "csv":
            return "".join(stream(figure.columns, figure.rows(results))).encode()
        drawing = figure.draw(results)
        for label, reason in drawing.not_drawn:
            self.stderr.write(f"Not drawn: {label} ({reason})")
        if drawing.is_empty:
            raise CommandError("There is nothing to draw yet: no sitting has a score.")
        specification = drawing.specification("light")
        if kind == "json":
            return json.dumps(compiled(specification), ensure_ascii=False).encode()
        return drawn(specification, kind)  # type: ignore[arg-type]


def _instrument(study: Study, wanted: str | None) -> Instrument:
    known = list(instruments_of(study))
    if wanted:
        slug, _, version = wanted.partition("@")
        known = [one for one in known if one.slug == slug and version in ("", str(one.version))]
    found = instrument_default(known)
    if found is None:
        raise CommandError("The study has no such instrument." if wanted else "The study has no instrument yet.")
    return found
