"""One survey with every kind of person: its pages, the list, the dashboard, the flow and the API count alike."""

import csv
import io
import re
from uuid import uuid4

import pytest
from django.test import Client
from django.utils import timezone
from django.utils.html import strip_tags
from pytest_django import Settings

from studies.services import api_token_create
from surveys.models import Arrival, Participant, Question, QuestionResponse, Survey
from surveys.selectors import surveys_of
from surveys.watching import SittingFilter, flow_of, sittings_listed
from tests.conftest import Cast
from tests.surveys.people import TEXTS, make_person, sitting_of

# Three finished and counted, one finished each as pilot, withdrawn and excluded; two left, one of them excluded.
EXPECTED = {
    "consented": 12,
    "screened_out": 1,
    "not_started": 2,
    "started": 9,
    "under_way": 1,
    "left": 2,
    "finished": 6,
    "pilot": 1,
    "excluded": 2,
    "withdrawn": 2,
}


@pytest.fixture
def everybody(survey: Survey) -> Survey:
    for _ in range(3):
        Arrival.objects.create(survey=survey, key=uuid4())
    make_person(survey, begun=False, state="stopped", screened_out_at=timezone.now())
    make_person(survey, begun=False, state="open")
    make_person(survey, begun=False, state="stopped", standing="withdrawn", withdrawn_at=timezone.now())
    make_person(survey, TEXTS[:1], state="open")
    make_person(survey, TEXTS[:1], state="stopped")
    make_person(survey, TEXTS[:1], state="stopped", standing="excluded")
    for standing in ("counted", "counted", "counted", "pilot", "excluded"):
        make_person(survey, standing=standing)
    make_person(survey, standing="withdrawn", withdrawn_at=timezone.now())
    return survey


def text_of(client: Client, address: str) -> str:
    """The page's words, with single spaces."""
    return " ".join(strip_tags(client.get(address).content.decode().replace("<", " <")).split())


def test_every_place_counts_alike(cast: Cast, everybody: Survey) -> None:
    survey, client = everybody, cast.client(cast.alice)
    (row,) = surveys_of(cast.study)
    assert {name: getattr(row, f"n_{name}") for name in EXPECTED} == EXPECTED

    flow = flow_of([survey.pk])
    beside = ("pilot", "excluded", "withdrawn")
    assert {name: getattr(flow, f"{name}_in_all" if name in beside else name) for name in EXPECTED} == EXPECTED
    assert (flow.opened, flow.analysed) == (15, 3)

    token = api_token_create(user=cast.alice)
    api = Client(headers={"authorization": f"Token {token}"})
    (served,) = api.get("/api/v1/studies/ours/surveys/").json()["results"]
    assert {name: served[f"n_{name}"] for name in EXPECTED} == EXPECTED

    page = text_of(client, f"/studies/ours/surveys/{survey.pk}/")
    for words, name in (
        ("Consented", "consented"),
        ("Screened out", "screened_out"),
        ("Did not begin", "not_started"),
        ("Started", "started"),
        ("Not finished so far", "under_way"),
        ("Left early", "left"),
        ("Finished", "finished"),
        ("Pilot", "pilot"),
        ("Excluded", "excluded"),
        ("Withdrawn", "withdrawn"),
    ):
        assert f"{words} {EXPECTED[name]} " in page, words

    assert "By link open 9 6" in text_of(client, "/studies/ours/surveys/")
    assert "6 of 9 have finished" in text_of(client, "/studies/ours/")

    watched = text_of(client, f"/studies/ours/surveys/{survey.pk}/watch/")
    assert "12 consented 9 started 6 finished 3 analysed" in watched
    assert "screened out 1, did not begin 2, not finished so far 1, left 2." in watched
    assert "excluded 2, withdrawn 2, pilot 1." in watched
    assert "Openings of the consent page: 15. These are not people" in watched and "arrived" not in watched


def test_it_adds_up(cast: Cast, everybody: Survey) -> None:
    (row,) = surveys_of(cast.study)
    assert row.n_consented == row.n_screened_out + row.n_not_started + row.n_under_way + row.n_left + row.n_finished


def test_nobody_is_nobody_everywhere(cast: Cast, survey: Survey) -> None:
    (row,) = surveys_of(cast.study)
    assert {getattr(row, f"n_{name}") for name in EXPECTED} == {0}


# --- flags -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def inattentive(survey: Survey) -> Participant:
    """One who failed the attention check, beside one who passed it."""
    check = Question.objects.create(
        survey=survey, position=1, place="after", code="check", kind="short", text={"ru": "?"}, expected="кошка"
    )
    failed, passed = make_person(survey, flags=["browser_again"]), make_person(survey)
    QuestionResponse.objects.create(participant=failed, question=check, value="собака")
    QuestionResponse.objects.create(participant=passed, question=check, value="кошка")
    return failed


def test_a_failed_check_stands_among_the_flags(cast: Cast, survey: Survey, inattentive: Participant) -> None:
    client = cast.client(cast.alice)
    listed = client.get(f"/studies/ours/surveys/{survey.pk}/watch/").content.decode()
    cells = re.findall(r'<td class="small">(.*?)</td>', listed)
    assert [("failed an attention check" in cell) for cell in cells] == [False, True], "the newest first"
    assert "this browser had begun" in cells[1]
    page = client.get(f"/studies/ours/surveys/{survey.pk}/sittings/{sitting_of(inattentive).pk}/").content.decode()
    assert re.search(r"Flags: [^<]*failed an attention check", page)
    other = sittings_listed(survey, SittingFilter()).exclude(pk=sitting_of(inattentive).pk).get()
    page = client.get(f"/studies/ours/surveys/{survey.pk}/sittings/{other.pk}/").content.decode()
    assert "failed an attention check" not in page


def test_a_failed_check_is_a_flag_of_the_file(cast: Cast, survey: Survey, inattentive: Participant) -> None:
    response = cast.client(cast.alice).get("/studies/ours/exports/participants.csv")
    rows = list(csv.DictReader(io.StringIO(b"".join(response.streaming_content).decode("utf-8-sig"))))
    assert [row["flags"] for row in rows] == ["browser_again, check_failed", ""]


def test_every_signal_stands_in_the_row_and_on_the_page(cast: Cast, survey: Survey) -> None:
    person = make_person(survey, timing={"translated": True, "pastes": 1, "away_ms": 150_000})
    client = cast.client(cast.alice)
    address = f"/studies/ours/surveys/{survey.pk}/"
    (cell,) = re.findall(r'<td class="small">(.*?)</td>', client.get(f"{address}watch/").content.decode())
    page = client.get(f"{address}sittings/{sitting_of(person).pk}/").content.decode()
    for words in ("the browser had translated", "pasted into an answer", "away from the page for more than 5"):
        assert words in cell and words in page


# --- times -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("language", "form"), [("en", "2 Mar 2026, 00:00"), ("ru", "02.03.2026, 00:00")])
def test_times_have_one_form_and_a_named_zone(
    cast: Cast, survey: Survey, settings: Settings, language: str, form: str
) -> None:
    settings.TIME_ZONE = "Europe/Moscow"
    sitting = sitting_of(make_person(survey))
    sitting.started_at = sitting.started_at.replace(year=2026, month=3, day=1, hour=21, minute=0)
    sitting.save(update_fields=["started_at"])
    client = cast.client(cast.alice)
    client.cookies[settings.LANGUAGE_COOKIE_NAME] = language
    for tail in ("watch/", f"sittings/{sitting.pk}/"):
        page = client.get(f"/studies/ours/surveys/{survey.pk}/{tail}").content.decode()
        assert form in page and page.count("Europe/Moscow") == 1, tail


def test_the_button_that_lifts_stands_beside_the_rule(cast: Cast, survey: Survey) -> None:
    """In the first column: on a phone the last ones lie beyond the edge."""
    make_person(survey, minutes=1)
    client = cast.client(cast.alice)
    address = f"/studies/ours/surveys/{survey.pk}/exclusion/"
    seen = re.search(r'name="seen" value="(\w*)"', client.get(f"{address}?kind=total_faster&limit=5").content.decode())
    assert seen
    data = {"kind": "total_faster", "limit": "5", "seen": seen[1], "reason": "too fast"}
    assert client.post(f"{address}apply/", data).status_code == 302
    cell = re.search(r'<th scope="row".*?</th>', client.get(address).content.decode())
    assert cell and "Lift" in cell[0]
