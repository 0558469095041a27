import csv
import io
import json

import pytest
from django.test import Client
from django.utils import timezone

from reports.flow import FLOW_COLUMNS, flow_lines, flow_specification
from surveys.models import Survey
from surveys.services import survey_create
from surveys.watching import Flow, flow_of
from tests.conftest import Cast
from tests.surveys.people import make_person, sitting_of

FLOW = Flow(
    opened=10,
    consented=8,
    screened_out=1,
    started=6,
    left=1,
    finished=5,
    withdrawn=1,
    excluded=(("too fast", 2), ("<b>", 1)),
)


@pytest.fixture
def survey(cast: Cast, instrument) -> Survey:
    return survey_create(instrument=instrument, title="A", contact="c@example.org", consent_text="Yes.", actor=None)


def test_every_stage_is_the_one_before_less_the_losses() -> None:
    left = None
    for line in flow_lines(FLOW):
        if line.is_stage and left is not None:
            assert line.n == left, line.code
        left = line.n if line.is_stage else left - line.n
    assert flow_lines(FLOW)[-1].n == 1


def test_the_figure_draws_stages_and_the_losses_that_there_are(cast: Cast) -> None:
    specification = flow_specification(cast.study, FLOW)
    values = specification["layer"][0]["data"]["values"] if "data" in specification["layer"][0] else None
    values = values or specification["data"]["values"]
    assert [value["label"] for value in values] == [
        "openings of the consent page",
        "openings without a consent",
        "consented",
        "screened out",
        "did not begin",
        "started",
        "left",
        "finished",
        "withdrawn",
        "excluded: too fast",
        "excluded: <b>",
        "analysed",
    ]


def test_the_pages(cast: Cast, survey: Survey) -> None:
    make_person(survey)
    sitting = sitting_of(make_person(survey, standing="excluded"))
    sitting.standing_reason = "=too fast"
    sitting.save(update_fields=["standing_reason"])
    make_person(survey, standing="withdrawn", withdrawn_at=timezone.now())
    client = cast.client(cast.alice)
    query = f"?survey={survey.pk}"
    page = client.get(f"/studies/ours/flow/{query}").content.decode()
    assert "excluded: =too fast" in page and "Withdrawn in all, finished or not: 1" in page
    assert client.get("/studies/ours/flow/").status_code == 200
    assert json.loads(client.get(f"/studies/ours/flow/flow.json{query}").content)["marks"]
    svg = client.get(f"/studies/ours/flow/flow.svg{query}")
    assert svg["Content-Type"] == "image/svg+xml" and b"analysed" in svg.content
    text = b"".join(client.get(f"/studies/ours/flow/flow.csv{query}").streaming_content).decode("utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert tuple(rows[0]) == FLOW_COLUMNS
    by_step = {row["step"]: row for row in rows}
    assert (by_step["opened"]["n"], by_step["analysed"]["n"], by_step["withdrawn"]["n"]) == ("3", "1", "1")
    assert by_step["excluded"]["reason"] == "=too fast" and by_step["consented"]["share_of_consented"] == "1"
    assert by_step["opened"]["share_of_consented"] == by_step["not_consented"]["share_of_consented"] == ""
    excel = b"".join(client.get(f"/studies/ours/flow/flow.csv{query}&for=excel").streaming_content).decode()
    assert "'=too fast" in excel


def test_the_whole_study(cast: Cast, survey: Survey, instrument) -> None:
    second = survey_create(instrument=instrument, title="B", contact="c@example.org", consent_text="Yes.", actor=None)
    make_person(survey)
    make_person(second)
    assert flow_of([survey.pk, second.pk]).analysed == 2
    page = cast.client(cast.alice).get("/studies/ours/flow/").content.decode()
    assert "all of them" in page


def test_an_empty_study_and_an_unknown_survey(cast: Cast) -> None:
    client = cast.client(cast.alice)
    assert "no survey yet" in client.get("/studies/ours/flow/").content.decode()
    assert client.get("/studies/ours/flow/?survey=99").status_code == 404
    assert client.get("/studies/ours/flow/flow.exe").status_code == 404


@pytest.mark.parametrize("path", ["", "flow.json", "flow.csv", "flow.svg"])
def test_it_refuses_others(cast: Cast, survey: Survey, path: str) -> None:
    for user in (cast.bob, cast.rita):
        assert cast.client(user).get(f"/studies/ours/flow/{path}").status_code == 404
    assert cast.client(cast.bob).get(f"/studies/theirs/flow/{path}?survey={survey.pk}").status_code == 404
    assert Client().get(f"/studies/ours/flow/{path}")["Location"].startswith("/login/")
