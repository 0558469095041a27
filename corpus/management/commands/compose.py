import csv
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser

from corpus.builtin import study_text
from corpus.composer import (
    BANDS,
    Candidate,
    Parameters,
    ParametersError,
    Scan,
    Slot,
    bands_of,
    chosen,
    counts_of,
    given_words,
    shares_of,
)
from corpus.compositions import refusal_below, task_rows
from corpus.importing import StimulusRow, stimuli_csv
from corpus.languages import language_gaps, language_of
from corpus.models import Instrument
from corpus.reasons import REASONS, reasons_text
from corpus.services import instrument_create
from corpus.treebank import TreebankUnreadableError, sentences
from studies.models import Study

LEFT_OUT = ("treebank", "line", "sent_id", "reasons", "text", "explanation")


class Command(BaseCommand):
    help = (
        "Compose a test from treebanks in CoNLL-U: the unreviewed proposals of a seed, as CSV (--out) or as an "
        "instrument of a study (--study, --slug). docs/composer.md explains the reasons and the parameters."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("treebank", nargs="+", type=Path, help="CoNLL-U, UTF-8")
        parser.add_argument("--language", required=True, help="ru, de or fi; others get fewer checks")
        parser.add_argument("--seed", type=int, default=1)
        parser.add_argument("--treebank-name", help="kept with each task; by default the file's name")
        parser.add_argument("--licence", default="", help="kept with each task")
        parser.add_argument("--counts", default="4,6,8", help="easy, medium and hard tasks")
        parser.add_argument("--shuffled", default="0,.5,.5", help="share of each band that is shuffled")
        parser.add_argument("--bands", default="4-6,7-9,10-12", help="words of easy, medium and hard tasks")
        parser.add_argument("--min-zipf", type=float, help="a rarer word leaves its sentence out; 0: none does")
        parser.add_argument("--sensitive", type=Path, help="a list of sensitive lemmas instead of the delivered one")
        parser.add_argument("--out", type=Path, help="write the tasks as CSV")
        parser.add_argument("--left-out", type=Path, help="write each sentence left out, with its reasons, as CSV")
        parser.add_argument("--markdown", type=Path, help="write the proposals as a table for a reader's verdict")
        parser.add_argument("--study", help="slug of the study that gets the instrument")
        parser.add_argument("--slug", help="slug of the instrument")
        parser.add_argument("--title", help="title of the instrument; by default the treebank's name")
        parser.add_argument("--instruction", type=Path, help="markdown, UTF-8; by default the published study's (ru)")
        parser.add_argument("--json", action="store_true", help="print the counts as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        parameters = _parameters(options)
        target = _target(options, parameters) if options["study"] else None
        scan = Scan(parameters)
        with _left_out_writer(options["left_out"]) as write:
            for path in options["treebank"]:
                _read(path, scan, options["treebank_name"] or path.stem, write)
        proposals = chosen(scan.candidates(), parameters)
        _check_complete(proposals, parameters, scan)
        rows = task_rows(proposals, parameters, licence=options["licence"])
        if options["out"]:
            _written(options["out"], stimuli_csv(rows))
        if options["markdown"]:
            _written(options["markdown"], _markdown(proposals, parameters).encode())
        instrument = _instrument(target, rows, parameters) if target else None
        if options["json"]:
            self.stdout.write(json.dumps(_summary(scan, rows, instrument), ensure_ascii=False, indent=1))
        else:
            self._report(scan, rows, instrument)

    def _report(self, scan: Scan, rows: Sequence[StimulusRow], instrument: Instrument | None) -> None:
        passed = ", ".join(f"{name} {scan.passed[band]}" for band, name in enumerate(BANDS))
        self.stdout.write(f"Sentences: {scan.sentences}; candidates: {passed}; tasks: {len(rows)}.")
        if scan.left_out:
            self.stdout.write("Left out, by reason; a sentence may have several, so the numbers add up to more:")
        for code, count in sorted(scan.left_out.items(), key=lambda item: -item[1]):
            self.stdout.write(f"{count:8}  {REASONS[code]}")
        gaps = language_gaps(scan.parameters.language)
        if gaps:
            missing = "; ".join(str(REASONS[code]) for code in gaps)
            self.stdout.write(f"Not checked in {scan.parameters.language!r} (no dictionary or list): {missing}.")
        if instrument:
            self.stdout.write(f"{instrument}: {len(rows)} stimuli, unreviewed. Read them before you use them.")


def _parameters(options: dict[str, Any]) -> Parameters:
    try:
        return Parameters(
            language=options["language"],
            seed=options["seed"],
            bands=bands_of(options["bands"]),
            counts=counts_of(options["counts"]),
            shuffled=shares_of(options["shuffled"]),
            min_zipf=options["min_zipf"],
            sensitive=_text(options["sensitive"]) if options["sensitive"] else None,
        )
    except ParametersError as error:
        raise CommandError(str(error)) from error


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise CommandError(f"Cannot read {error.filename}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise CommandError(f"{path} is not UTF-8 (byte {error.start}).") from error


def _read(path: Path, scan: Scan, name: str, write: Any) -> None:
    try:
        with path.open("rb") as stream:
            for sentence in sentences(stream, scan.parameters.language):
                found = scan.look(sentence, name)
                if found and write:
                    codes = " ".join(dict.fromkeys(code for code, _detail in found))
                    line = (name, sentence.line, sentence.sent_id, codes, sentence.text, reasons_text(found))
                    write.writerow(line)
    except OSError as error:
        raise CommandError(f"Cannot read {error.filename}: {error.strerror}.") from error
    except TreebankUnreadableError as error:
        raise CommandError(f"{path}: {error}. Nothing was made.") from error


@contextmanager
def _left_out_writer(path: Path | None) -> Iterator[Any]:
    if path is None:
        yield None
        return
    try:
        stream: IO[str] = path.open("w", encoding="utf-8", newline="")
    except OSError as error:
        raise CommandError(f"Cannot write {error.filename}: {error.strerror}.") from error
    with stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(LEFT_OUT)
        yield writer


def _written(path: Path, data: bytes) -> None:
    try:
        path.write_bytes(data)
    except OSError as error:
        raise CommandError(f"Cannot write {error.filename}: {error.strerror}.") from error


def _check_complete(proposals: Sequence[tuple[Slot, Candidate]], parameters: Parameters, scan: Scan) -> None:
    short = [
        f"{name}: {scan.passed[band]} of {parameters.counts[band]}"
        for band, name in enumerate(BANDS)
        if scan.passed[band] < parameters.counts[band]
    ]
    if short:
        common = "; ".join(f"{REASONS[code]} ({count})" for code, count in scan.left_out.most_common(5))
        raise CommandError(
            f"Too few of {scan.sentences} sentences can be proposed: {', '.join(short)}. Ask for fewer (--counts), "
            f"lower --min-zipf, or give a larger treebank. Most were left out because: {common}. Nothing was made."
        )


def _target(options: dict[str, Any], parameters: Parameters) -> dict[str, Any]:
    """What the instrument will be, checked before the treebank is read."""
    study = Study.objects.filter(slug=options["study"]).first()
    if study is None:
        raise CommandError(f"There is no study {options['study']!r}.")
    if not options["slug"]:
        raise CommandError("--study needs --slug, the instrument's address.")
    if not options["instruction"] and parameters.language != "ru":
        raise CommandError(f"--study needs --instruction, a text in the language {parameters.language!r}.")
    instruction = _text(options["instruction"]) if options["instruction"] else study_text("instruction.ru.md")
    title = options["title"] or options["treebank_name"] or options["treebank"][0].stem
    fields = {"slug": options["slug"], "title": title, "language": parameters.language, "instruction": instruction}
    try:
        Instrument(**fields).clean_fields(exclude=["study"])
    except ValidationError as error:
        raise CommandError("\n".join(["Nothing was made:", *error.messages])) from error
    return {"study": study, **fields}


def _instrument(target: dict[str, Any], rows: Sequence[StimulusRow], parameters: Parameters) -> Instrument:
    return instrument_create(
        **target,
        stimuli=rows,
        actor=None,
        refusal_below=refusal_below(rows),
        lower_case=language_of(parameters.language).lower_case,
    )


def _summary(scan: Scan, rows: Sequence[StimulusRow], instrument: Instrument | None) -> dict[str, Any]:
    return {
        "sentences": scan.sentences,
        "candidates": {name: scan.passed[band] for band, name in enumerate(BANDS)},
        "left_out": dict(sorted(scan.left_out.items())),
        "not_checked": language_gaps(scan.parameters.language),
        "tasks": len(rows),
        "instrument": {"slug": instrument.slug, "version": instrument.version} if instrument else None,
        "parameters": scan.parameters.as_json(),
    }


def _markdown(proposals: Sequence[tuple[Slot, Candidate]], parameters: Parameters) -> str:
    lines = ["| no. | band | given words | original | sentence | verdict |", "| --- | --- | --- | --- | --- | --- |"]
    for slot, candidate in proposals:
        band = BANDS[slot.band] + (", shuffled" if slot.shuffled else "")
        cells = [slot.position, band, given_words(candidate, slot, parameters.seed), candidate.original]
        cells += [f"{candidate.origin} {candidate.sent_id}", ""]
        lines.append("| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"
