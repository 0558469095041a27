"""The published study's 18 originals and its 18 given texts echoed back, and the same of a children's test, as the
pages and files show them: which match, and which are marked as left as given."""

import csv
import html
import io
import re

import pytest
from django.test import Client
from django.urls import reverse

from corpus.builtin import builtin_instrument_create, children_instrument_create
from corpus.models import Instrument
from scoring.models import Round
from scoring.services import CHILDREN_RUBRIC, paper_rubric
from tests.annotation.factories import make_campaign
from tests.conftest import Cast
from tests.reports.conftest import Built, add_model, add_run

KINDS = ("inserted", "missing", "replaced", "left_as_given")


def answered(cast: Cast, instrument: Instrument) -> Built:
    """A person writes the originals; a model echoes the given words."""
    rubric = paper_rubric()
    rating = Round.objects.create(study=cast.study, rubric=rubric, purpose=Round.Purpose.RATING)
    built = Built(cast, instrument, rubric, rating, [])
    stimuli = list(instrument.stimuli.filter(is_practice=False))
    built.sitting("P1", {one.position: one.original for one in stimuli})
    add_model(built, label="Echo", runs=1)
    add_run(built, 1, {one.position: one.text for one in stimuli})
    return built


def rows(client: Client, name: str, *args: str) -> list[dict[str, str]]:
    response = client.get(reverse(name, args=["ours", *args]))
    assert response.status_code == 200
    return list(csv.DictReader(io.StringIO(b"".join(response.streaming_content).decode().removeprefix("\ufeff"))))


def words_shown(client: Client, group: str, position: int) -> list[list[str]]:
    """The table of words of one stimulus: what, given, in the answer, in the original, answers, example."""
    page = client.get(reverse("errors", args=["ours"]), {"group": group, "stimulus": str(position)}).content.decode()
    _, _, section = page.partition('id="words-title"')
    table = re.search(r"<tbody>(.*?)</tbody>", section.partition("<h3")[0], re.S)
    if table is None:
        assert "No answer to this stimulus inserts, leaves out or leaves a word." in section
        return []
    cells = [re.findall(r"<td[^>]*>(.*?)</td>", row, re.S) for row in table[1].split("</tr>") if "<td" in row]
    return [[html.unescape(re.sub(r"<[^>]+>", "", cell)).strip() for cell in row] for row in cells]


def model_group(client: Client) -> str:
    page = client.get(reverse("errors", args=["ours"])).content.decode()
    (found,) = set(re.findall(r"model-\d+-\d+", page))
    return found


def matches_and_marks(client: Client, instrument: Instrument) -> None:
    """By the file: everything matches; of the originals nothing is marked, of the echoes only *left as given*."""
    found = {(row["group"], int(row["position"])): row for row in rows(client, "errors_csv")}
    group = model_group(client)
    for one in instrument.stimuli.filter(is_practice=False):
        original, echo = found["people", one.position], found["Echo", one.position]
        assert (original["n_answers"], original["n_matching"]) == (echo["n_answers"], echo["n_matching"]) == ("1", "1")
        assert [original[f"n_{kind}"] for kind in KINDS] == ["0", "0", "0", "0"], one.original
        assert [echo[f"n_{kind}"] for kind in KINDS] == ["0", "0", "0", "1"], one.text
        assert not any(int(value) for name, value in original.items() if name.endswith("_missed")), one.original
        assert words_shown(client, "people", one.position) == []
        shown = words_shown(client, group, one.position)
        assert {what for what, *_ in shown} >= {"left as given"}
        for what, given, used, needed, n, example in shown:
            assert (given.lower(), n, example) == (used.lower(), "1", one.text)
            assert needed.lower() != given.lower() and given in one.text, what


@pytest.mark.django_db
def test_the_18_originals_and_the_18_texts_echoed(cast: Cast) -> None:
    instrument = builtin_instrument_create(study=cast.study, actor=cast.alice)
    answered(cast, instrument)
    client = cast.client(cast.alice)
    assert client.get(reverse("results", args=["ours"])).status_code == 200  # the counting rules see every answer
    labels = {(row["answer"], row["criterion"]): row["label"] for row in rows(client, "export_file", "labels")}
    answers = {(row["kind"], int(row["position"])): row["answer"] for row in rows(client, "export_file", "answers")}
    assert len(answers) == 36
    for position in range(1, 19):
        assert [labels[answers["human", position], code] for code in ("sequence", "vocabulary")] == ["1", "1"], position
        assert labels[answers["model", position], "vocabulary"] == "1", position
    matches_and_marks(client, instrument)


@pytest.mark.django_db
def test_a_childrens_test_is_read_the_same_way(cast: Cast) -> None:
    """Its rubric has no criterion for words; the page counts them all the same."""
    instrument = children_instrument_create(study=cast.study, actor=cast.alice)
    answered(cast, instrument)
    make_campaign(cast.study, cast.alice, k=1, rubric=CHILDREN_RUBRIC)
    client = cast.client(cast.alice)
    assert {row["criterion"] for row in rows(client, "export_file", "labels")} == {"sentence"}
    assert client.get(reverse("results", args=["ours"])).context["results"].criteria[0].code == "sentence"
    assert instrument.stimuli.filter(is_practice=False).count() == 8
    matches_and_marks(client, instrument)
