import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from llmruns.judge_selectors import judging_counts, judgings_of
from llmruns.models import Judging
from reports.csvfile import stream
from reports.judging_agreement import COLUMNS, agreement_of, judge_name, rows_of, said_by
from reports.judging_api import agreement_cells
from reports.management.classifier_options import simulated_say
from studies.models import Study


class Command(BaseCommand):
    help = (
        "The model judges of a study (docs/judges.md): which rounds there are and how far they are; with --agreement "
        "one of them beside the raters' labels, with --rows its judgements as CSV. They are launched on the pages, "
        "where it is seen which answers go to whom."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--study", required=True, help="slug of the study")
        what = parser.add_mutually_exclusive_group()
        what.add_argument("--agreement", type=int, metavar="NUMBER", help="of one round, per criterion")
        what.add_argument("--rows", type=int, metavar="NUMBER", help="every judgement of one round, as CSV")
        parser.add_argument("--json", action="store_true", help="one JSON object instead of sentences")

    def handle(self, *args: Any, **options: Any) -> None:
        study = Study.objects.filter(slug=options["study"]).first()
        if study is None:
            raise CommandError(f"There is no study {options['study']!r}.")
        simulated_say(study, self.stderr)
        if options["rows"] is not None:
            judging = _judging(study, options["rows"])
            for piece in stream(COLUMNS, rows_of(judging, said_by(judging))):
                self.stdout.write(piece, ending="")
        elif options["agreement"] is not None:
            self._agreement(_judging(study, options["agreement"]), as_json=options["json"])
        else:
            self._list(study, as_json=options["json"])

    def _list(self, study: Study, *, as_json: bool) -> None:
        rows = [
            {
                "id": one.pk,
                "judging": one.title,
                "judge": judge_name(one.model_judge),
                "state": one.state,
                "n_answers": one.n_answers,  # type: ignore[attr-defined]
                "n_settled": one.n_settled,  # type: ignore[attr-defined]
            }
            for one in judging_counts(judgings_of(study))
        ]
        if as_json:
            self.stdout.write(json.dumps(rows, ensure_ascii=False, indent=1))
            return
        for row in rows:
            self.stdout.write("{id}. {judging} ({judge}): {state}, {n_settled} of {n_answers} answers".format(**row))
        if not rows:
            self.stdout.write("No model has judged in this study yet.")

    def _agreement(self, judging: Judging, *, as_json: bool) -> None:
        cells = agreement_cells(agreement_of(judging, said_by(judging)))
        if as_json:
            self.stdout.write(json.dumps(cells, ensure_ascii=False, indent=1))
            return
        self.stdout.write(f"{judging.title}: {cells['n_judged']} answers judged, {cells['n_compared']} with labels")
        for one in cells["agreement"]:
            for group in one["groups"]:
                if group["n"] or group["group"] == "all":
                    self.stdout.write(f"  {one['criterion']}, {group['group']}: {_figures(group)}")


def _figures(group: dict[str, Any]) -> str:
    if not group["n"]:
        return "nothing to compare"
    mcc = group["reason"] if group["mcc"] is None else f"{group['mcc']:.3f}"
    return f"{group['agreed']} of {group['n']} ({group['percent']:.1f} %), F1 {group['f1_macro']:.3f}, MCC {mcc}"


def _judging(study: Study, pk: int) -> Judging:
    found = judgings_of(study).filter(pk=pk).first()
    if found is None:
        raise CommandError(f"The study has no round {pk} of a model judge.")
    return found
