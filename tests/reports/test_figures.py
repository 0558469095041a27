import json

import pytest
from django.urls import reverse
from django.utils import translation

from reports.figures import (
    Bar,
    FigureData,
    Line,
    bar_values,
    compiled,
    drawn,
    figure_data,
    in_lines,
    name_height,
    specification,
)
from reports.selectors import results_of
from scoring.services import rules_apply
from studies.models import Study
from tests.reports.conftest import Built, add_model

DATA = FigureData(["Ours"], [Bar("M", 0.5, 0.1, 5), Bar("N", 0.25, None, 1)], Line(0.728, 0.7, 0.75, 108), [])


def data(built: Built) -> FigureData:
    rules_apply(study=built.cast.study, rubric=built.rubric)
    study = Study.objects.get(pk=built.cast.study.pk)
    return figure_data(results_of(study=study, instrument=built.instrument, rubric=built.rubric))


def test_the_figure_has_the_numbers_of_the_table(built):
    found = data(built)
    (bar,) = found.bars
    assert (bar.label, bar.mean, bar.n) == ("Model M", pytest.approx(13 / 18), 3)
    assert bar.sd == pytest.approx((13 / 3) ** 0.5 / 12)
    assert (found.line.mean, found.line.low, found.line.n) == (pytest.approx(7 / 12), None, 1)


def test_what_is_undefined_is_named_and_not_drawn(bare):
    add_model(bare, label="Silent")
    bare.config.runs.create(
        experiment=bare.experiment,
        ordinal=1,
        state="incomplete",
        sitting=bare.sitting("S", {}, respondent=bare.config.respondent, state="stopped", finished_at=None),
    )
    found = data(bare)
    assert (found.bars, found.line, found.not_drawn) == ([], None, [("Silent", "no_sittings")])
    page = bare.cast.client(bare.cast.alice).get(reverse("results", args=["ours"])).content.decode()
    assert "Not drawn: Silent, because nothing is finished yet." in page


def test_simulated_stands_in_the_title(built):
    assert "SIMULATED DATA" not in data(built).title
    Study.objects.filter(pk=built.cast.study.pk).update(simulated=True)
    assert data(built).title[0] == "SIMULATED DATA"
    svg = built.cast.client(built.cast.alice).get(reverse("figure_file", args=["ours", "svg"]))
    assert "SIMULATED DATA" in svg.content.decode()
    assert "ours-simulated-figure1.svg" in svg["Content-Disposition"]


def test_one_specification_for_page_and_files():
    vega = compiled(specification(DATA))
    assert vega["$schema"].startswith("https://vega.github.io/schema/vega/v6")
    assert drawn(specification(DATA), "svg").startswith(b"<svg")
    assert drawn(specification(DATA), "png").startswith(b"\x89PNG")
    assert drawn(specification(DATA), "pdf").startswith(b"%PDF")


def test_numbers_are_written_as_the_language_writes_them():
    with translation.override("ru"):
        assert "0,728" in drawn(specification(DATA), "svg").decode()
    with translation.override("en"):
        assert "0.728" in drawn(specification(DATA), "svg").decode()


def test_a_whisker_is_drawn_whole_beyond_the_ends_of_the_score():
    bars = [Bar("High", 0.967, 0.054, 5), Bar("Low", 0.02, 0.05, 5)]
    vega = compiled(specification(FigureData(["Ours"], bars, None, [])))
    (scale,) = [scale for scale in vega["scales"] if scale["name"] == "x"]
    assert scale["domain"] == pytest.approx([0.02 - 0.05, 0.967 + 0.054])
    (axis,) = [axis for axis in vega["axes"] if axis["scale"] == "x" and axis.get("title")]
    assert axis["values"] == [0, 0.2, 0.4, 0.6, 0.8, 1]
    high, low = (bar_values(bar) for bar in bars)
    assert high["to"] - high["mean"] == pytest.approx(high["mean"] - high["from"])
    assert low["to"] - low["mean"] == pytest.approx(low["mean"] - low["from"])
    (scale,) = [one for one in compiled(specification(DATA))["scales"] if one["name"] == "x"]
    assert scale["domain"] == [0, 1]


def test_people_alone_are_drawn():
    alone = FigureData(["Ours"], [], Line(0.728, None, None, 1), [])
    assert b"0.728" in drawn(specification(alone), "svg")


def test_a_label_is_text_wherever_it_goes():
    odd = FigureData(["<b>&"], [Bar("</script><script>", 0.5, None, 1)], None, [])
    assert b"<script>" not in drawn(specification(odd), "svg")


@pytest.mark.parametrize(("kind", "status"), [("svg", 200), ("png", 200), ("pdf", 200), ("exe", 404)])
def test_files(built, kind, status):
    response = built.cast.client(built.cast.alice).get(reverse("figure_file", args=["ours", kind]))
    assert response.status_code == status


def test_the_page_gets_vega_and_not_vega_lite(built):
    response = built.cast.client(built.cast.alice).get(reverse("figure_vega", args=["ours"]) + "?theme=dark")
    spec = json.loads(response.content)
    assert {"marks", "scales", "data"} <= set(spec)


def test_long_names_are_whole_in_lines_that_are_centred_on_their_bar():
    names = ["Qwen3.5-122B-A10B (own server, 8 bits)", "Qwen3.5-122B-A10B (own server, 4 bits)", "Claude"]
    spec = specification(FigureData(["Ours"], [Bar(name, 0.5, None, 1) for name in names], None, []))
    svg = drawn(spec, "svg").decode()
    for name in names:
        assert all(f">{line}<" in svg for line in in_lines(name).split("\n"))
        assert len(in_lines(name).split("\n")) == (1 if name == "Claude" else 2)
    assert "…" not in svg
    (axis,) = [axis for axis in compiled(spec)["axes"] if axis["scale"] == "y"]
    assert axis["encode"]["labels"]["update"]["dy"]["signal"].startswith("-7 * (")
    assert name_height(names, 10) == 2 * 14 + 4 and name_height(["Claude"], 30) == 30


def test_what_is_drawn_has_a_line_of_its_own_in_a_long_title(built):
    assert data(built).title == ["Ours: people and models"]
    Study.objects.filter(pk=built.cast.study.pk).update(title="A study with a title that is not short at all")
    assert data(built).title[-1] == "people and models"
