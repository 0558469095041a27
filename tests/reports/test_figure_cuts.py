"""The paper's second and third figures, and the fourth that it does not have."""

import json

import pytest
from django.urls import reverse

from reports.choice import default_choice, with_runs
from reports.figure_contrasts import contrast_data
from reports.figure_cuts import cut_data, cut_specification
from reports.figure_set import FIGURES
from reports.figures import LINE, compiled, drawn
from reports.selectors import results_of
from scoring.services import rules_apply
from tests.reports.conftest import ALL, RIGHT, Built, add_model, add_run


def results(built: Built, **more):
    rules_apply(study=built.cast.study, rubric=built.rubric)
    return results_of(study=built.cast.study, instrument=built.instrument, rubric=built.rubric, **more)


def marks(specification: dict) -> list[dict]:
    return [layer["mark"] for layer in specification["layer"]]


def test_bars_have_the_numbers_of_the_table(built):
    found = cut_data(results(built), "shuffled")
    values = {(bar.bar.label, bar.level): bar.bar.value for bar in found.bars}
    # See test_results: in order P1 alone has a score, 2 of 4; shuffled P1 3 and P2 4.
    assert values == pytest.approx(
        {
            ("People", "in order"): 1 / 2,
            ("People", "shuffled"): 3.5 / 4,
            ("Model M", "in order"): (2 + 3.5 + 2) / 3 / 4,
            ("Model M", "shuffled"): 11 / 12,
        }
    )
    assert found.labels == ["People", "Model M"]
    complexity = cut_data(results(built), "complexity")
    assert complexity.levels == ["easy", "medium"]
    assert {(bar.bar.label, bar.level): bar.bar.value for bar in complexity.bars}["People", "medium"] == 0


def test_a_deviation_over_runs_and_an_interval_over_people_are_different_marks(built):
    found = cut_data(results(built), "shuffled")
    people = [bar for bar in found.bars if bar.is_people]
    models = [bar for bar in found.bars if not bar.is_people]
    assert all(bar.bar.sd is None for bar in people) and all(bar.low is None for bar in models)
    assert any(bar.low is not None for bar in people) and all(bar.bar.sd is not None for bar in models)
    rules = [mark for mark in marks(cut_specification(found)) if mark["type"] == "rule"]
    interval, whisker = rules
    assert interval["color"] == LINE["light"] != whisker["color"]
    assert interval["strokeWidth"] > 3 * whisker["strokeWidth"]


def test_an_incomplete_run_leaves_the_majority_undrawn(bare):
    add_model(bare, runs=2)
    add_run(bare, 1, RIGHT)
    for number in (1, 2, 3):
        bare.judge(f"M1/{number}", ALL)
    chosen = with_runs(default_choice(bare.instrument), "majority")
    found = cut_data(results(bare, chosen=chosen), "complexity")
    assert found.bars == []
    assert found.not_drawn == [("Model M, easy", "missing_runs"), ("Model M, medium", "missing_runs")]
    assert len(cut_data(results(bare), "complexity").bars) == 2  # by the mean of the one run
    assert contrast_data(results(bare)).not_drawn == [("Model M", "no_people")]


def test_one_person_and_no_model(bare):
    bare.sitting("P", RIGHT)
    for number in (1, 2, 3):
        bare.judge(f"P/{number}", ALL)
    found = results(bare)
    for number, figure in FIGURES.items():
        drawing = figure.draw(found)
        assert drawing.is_empty == (number == 4)
        if not drawing.is_empty:
            assert drawn(drawing.specification("light"), "svg").startswith(b"<svg")
    page = bare.cast.client(bare.cast.alice).get(reverse("results", args=["ours"])).content.decode()
    assert "No model has taken the test." in page and "nan" not in page.lower().split()


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_hostile_labels_are_text_in_every_figure(bare, number):
    add_model(bare, label="</script><script>alert(1)</script>", runs=1)
    add_run(bare, 1, RIGHT)
    bare.sitting("P", RIGHT)
    for name in ("M1", "P"):
        for position in (1, 2, 3):
            bare.judge(f"{name}/{position}", ALL)
    client = bare.cast.client(bare.cast.alice)
    for kind in ("svg", "png", "pdf"):
        response = client.get(reverse("figure_file", args=["ours", number, kind]))
        assert response.status_code == 200
        assert b"<script>" not in response.content
    page = client.get(reverse("results", args=["ours"])).content.decode()
    assert "<script>alert" not in page
    spec = json.loads(client.get(reverse("figures_vega", args=["ours"])).content)
    assert {"1", "2", "3", "4"} == set(spec)


def test_an_empty_study_draws_nothing(cast, instrument):
    client = cast.client(cast.alice)
    assert json.loads(client.get(reverse("figures_vega", args=["ours"])).content) == {}
    page = client.get(reverse("results", args=["ours"])).content.decode()
    assert page.count("There is nothing to draw yet") == 4


def test_figures_that_do_not_exist_are_not_found(built):
    client = built.cast.client(built.cast.alice)
    assert client.get("/studies/ours/results/figure9.svg").status_code == 404
    assert client.get("/studies/ours/results/figure9.json").status_code == 404
    assert client.get("/studies/ours/results/figure2.exe").status_code == 404


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("runs", ["mean", "majority"])
def test_every_figure_compiles_in_every_form(built, theme, runs):
    found = results(built, chosen=with_runs(default_choice(built.instrument), runs))
    for figure in FIGURES.values():
        assert "marks" in compiled(figure.draw(found).specification(theme))
