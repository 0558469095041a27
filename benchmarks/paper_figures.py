"""The paper's Table 1 and Figures 1 to 3 from a fresh demonstration study, for docs/paper.md: docs/figures/.

make bench ARGS=paper_figures
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import vl_convert

from benchmarks.server import Server, server

DOCS = Path(__file__).resolve().parent.parent / "docs"
FOLDER = DOCS / "figures"
LANGUAGES = ("en", "ru")
# Name of the file, and what manage.py results is asked for. In the paper a model's bar is the majority over runs, and
# its labels are those of the classifiers.
FIGURES = {
    "figure1": ["--figure", "1"],
    "figure2": ["--figure", "2"],
    "figure3": ["--figure", "3"],
    "figure4": ["--figure", "4"],
    "figure1-as-in-the-paper": ["--figure", "1", "--runs", "majority", "--basis", "{classifier}"],
}

# For a shell in the server's environment: what each judge reached on the test answers, by criterion.
TABLE = """
import json
from django.utils import translation
from reports.choice import judge_names
from scoring.classifiers.study_data import judged_criteria
from scoring.models import Classifier, Evaluation
from scoring.services import paper_rubric
from studies.models import Study
study, rubric = Study.objects.get(slug="demo"), paper_rubric()
classifier = Classifier.objects.get(study=study)
newest = {}
for row in Evaluation.objects.filter(split=classifier.split, subset="all").order_by("pk"):
    newest[row.judge_id, row.criterion_id] = row.metrics
def words(language):
    with translation.override(language):
        return {
            "names": {pk: str(name) for pk, name in judge_names(study, rubric).items()},
            "criteria": {one.pk: one.question for one in judged_criteria(rubric)},
        }
found = {language: words(language) for language in ("en", "ru")}
found["reports"] = [[judge, criterion, report] for (judge, criterion), report in newest.items()]
found["classifier"] = f"judges-{classifier.judge_id}"
found["title"] = study.title
print(json.dumps(found))
"""

WORDS = {
    "en": {
        "simulated": "SIMULATED DATA",
        "title": "Judges beside the labels of raters",
        "about": "{answers} test answers of {people} people, no refusals; 95 % bootstrap intervals over people",
        "majority": "always the commonest value",
    },
    "ru": {
        "simulated": "СМОДЕЛИРОВАННЫЕ ДАННЫЕ",
        "title": "Судьи рядом с метками экспертов",
        "about": "Ответы тестовой части: {answers}, людей: {people}, без отказов; 95 % бутстреп-интервалы по людям",
        "majority": "всегда самое частое значение",
    },
}
COLUMNS = {"f1_micro": "F1 micro", "f1_macro": "F1 macro", "f1_weighted": "F1 weighted", "mcc": "MCC"}
NAME_WIDTH, COLUMN, LINE = 220, 125, 24
INK, QUIET, RULE = "#212529", "#5c636a", "#dee2e6"
BEGIN, END = "<!-- table 1: written by benchmarks/paper_figures.py -->", "<!-- end of table 1 -->"

Rows = list[tuple[str, list[str] | None]]  # a criterion has no cells


def measure() -> str:
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    with server() as found:
        found.manage("luria_setup")
        found.manage("demo")
        table = json.loads(found.manage("shell", "-v0", "-c", TABLE))
        figures_draw(found, classifier=table["classifier"])
    for language in LANGUAGES:
        rows = list(table_rows(table, language))
        (FOLDER / f"table1.{language}.svg").write_text(table_svg(rows, _heading(table, language)), encoding="utf-8")
        if language == "en":
            _page_renew(table_markdown(rows))
    return f"{len(list(FOLDER.iterdir()))} files in {FOLDER.relative_to(DOCS.parent)}"


def figures_draw(found: Server, *, classifier: str) -> None:
    """`manage.py results` for each, in one process: its start takes longer than the figure."""
    calls = []
    for language in LANGUAGES:
        for name, asked in FIGURES.items():
            out = FOLDER / f"{name}.{language}.svg"
            chosen = [one.format(classifier=classifier) for one in asked]
            calls.append(["results", "--study", "demo", *chosen, "--language", language, "--out", str(out)])
    script = f"from django.core.management import call_command\nfor one in {calls!r}: call_command(*one)"
    found.manage("shell", "-v0", "-c", script)


def table_rows(table: dict[str, Any], language: str) -> Iterator[tuple[str, list[str] | None]]:
    """As in the paper: a criterion, then its judges; below them what the constant judge gets."""
    names, criteria = table[language]["names"], table[language]["criteria"]
    for criterion, question in criteria.items():
        yield question, None
        reports = [(judge, report) for judge, of, report in table["reports"] if str(of) == criterion]
        for judge, report in sorted(reports):
            yield names[str(judge)], [_figure(report["estimates"][column], language) for column in COLUMNS]
        constant = reports[0][1]["majority"]
        yield (
            WORDS[language]["majority"],
            [_number(constant[column], language) if column in constant else "–" for column in COLUMNS],
        )


def _figure(estimate: dict[str, Any], language: str) -> str:
    if estimate["value"] is None:
        return "–"
    value = _number(estimate["value"], language)
    if estimate["low"] is None:
        return value
    between = "; " if language == "ru" else ", "
    return f"{value} [{_number(estimate['low'], language)}{between}{_number(estimate['high'], language)}]"


def _number(value: float, language: str) -> str:
    text = f"{value:.2f}".replace("-", "−")
    return text.replace(".", ",") if language == "ru" else text


def _heading(table: dict[str, Any], language: str) -> list[str]:
    words = WORDS[language]
    answers = sorted({report["n"] for _judge, _criterion, report in table["reports"]})
    people = max(report["n_respondents"] for _judge, _criterion, report in table["reports"])
    n = str(answers[0]) if len(answers) == 1 else f"{answers[0]}–{answers[-1]}"
    return [words["simulated"], words["title"], table["title"], words["about"].format(answers=n, people=people)]


def table_svg(rows: Rows, heading: list[str]) -> str:
    """The table as a picture, drawn as the figures are."""
    cells: list[dict[str, Any]] = [
        {"x": NAME_WIDTH + COLUMN * (place + 1), "y": 0, "text": name, "bold": True, "align": "right"}
        for place, name in enumerate(COLUMNS.values())
    ]
    for line, (name, numbers) in enumerate(rows, start=1):
        is_head = numbers is None
        cells.append({"x": 0 if is_head else 12, "y": LINE * line, "text": name, "bold": is_head, "align": "left"})
        for place, number in enumerate(numbers or []):
            right = NAME_WIDTH + COLUMN * (place + 1)
            cells.append({"x": right, "y": LINE * line, "text": number, "bold": False, "align": "right"})
    width, height = NAME_WIDTH + COLUMN * len(COLUMNS), LINE * len(rows)
    heads = [{"y": LINE * line - LINE / 2} for line, (_name, numbers) in enumerate(rows, start=1) if numbers is None]
    place = {
        "x": {"field": "x", "type": "quantitative", "scale": {"domain": [0, width]}, "axis": None},
        "y": {"field": "y", "type": "quantitative", "scale": {"domain": [height, 0]}, "axis": None},
    }
    layers: list[dict[str, Any]] = [
        {"data": {"values": heads}, "mark": {"type": "rule", "color": RULE}, "encoding": {"y": place["y"]}}
    ]
    for align in ("left", "right"):
        for bold in (True, False):
            chosen = [cell for cell in cells if (cell["align"], cell["bold"]) == (align, bold)]
            mark = {"type": "text", "align": align, "fontSize": 12, "fontWeight": "bold" if bold else "normal"}
            if chosen:
                encoding = {**place, "text": {"field": "text", "type": "nominal"}}
                layers.append({"data": {"values": chosen}, "mark": {**mark, "color": INK}, "encoding": encoding})
    specification = {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "title": {"text": heading[:2], "subtitle": heading[2:], "anchor": "start", "frame": "bounds", "offset": 16},
        "width": width,
        "height": height,
        "layer": layers,
        "config": {
            "background": "#ffffff",
            "font": "Liberation Sans, Arial, sans-serif",
            "view": {"stroke": None},
            "title": {"color": INK, "subtitleColor": INK, "fontSize": 14, "subtitleFontSize": 12},
        },
    }
    svg: str = vl_convert.vegalite_to_svg(specification, vl_version="6.4", allowed_base_urls=[])
    return svg


def table_markdown(rows: Rows) -> str:
    lines = [f"| *simulated* | {' | '.join(COLUMNS.values())} |", f"| --- |{' --: |' * len(COLUMNS)}"]
    for name, numbers in rows:
        lines.append(
            f"| **{name}** |{' |' * len(COLUMNS)}" if numbers is None else f"| {name} | {' | '.join(numbers)} |"
        )
    return "\n".join(lines)


def _page_renew(table: str) -> None:
    page = DOCS / "paper.md"
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    page.write_text(f"{before}{BEGIN}\n\n{table}\n\n{END}{rest.partition(END)[2]}", encoding="utf-8")
