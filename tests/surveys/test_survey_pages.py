import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from studies.models import Study
from surveys.models import Survey
from tests.conftest import Cast
from tests.surveys.conftest import Visitor

FIELDS = {
    "title": "Second",
    "contact": "c@example.org",
    "platform": "direct",
    "codes": "common",
    "hold_minutes": 120,
    "order_scheme": "fixed",
    "seed": 1,
    "consent_text": "Yes.\n\n- one",
}


def test_a_researcher_makes_and_opens_a_survey(cast: Cast, instrument) -> None:
    client = cast.client(cast.alice)
    response = client.post("/studies/ours/surveys/new/", {**FIELDS, "instrument": instrument.pk})
    survey = Survey.objects.get()
    assert response["Location"] == f"/studies/ours/surveys/{survey.pk}/"
    assert survey.state == "draft"
    page = client.get(response["Location"]).content.decode()
    assert f"/s/{survey.slug}/" in page and survey.completion_code in page
    assert Client().get(f"/s/{survey.slug}/").status_code == 403  # a draft takes nobody
    client.post(f"/studies/ours/surveys/{survey.pk}/state/", {"state": "open"})
    assert Client().get(f"/s/{survey.slug}/").status_code == 200
    assert client.get("/studies/ours/surveys/").status_code == 200


def test_a_study_with_the_longest_address_has_surveys(cast: Cast, instrument) -> None:
    Study.objects.filter(pk=cast.study.pk).update(slug="a" * 60)
    client = cast.client(cast.alice)
    for _ in range(2):
        response = client.post(f"/studies/{'a' * 60}/surveys/new/", {**FIELDS, "instrument": instrument.pk})
        assert response.status_code == 302
    assert [survey.slug[-3:] for survey in Survey.objects.order_by("pk")] == ["a-1", "a-2"]


@pytest.mark.parametrize(("method", "tail"), [("get", ""), ("post", "new/"), ("get", "{pk}/"), ("post", "{pk}/state/")])
def test_it_refuses_others(cast: Cast, survey: Survey, method: str, tail: str) -> None:
    address = f"/studies/ours/surveys/{tail.format(pk=survey.pk)}"
    data = {**FIELDS, "state": "closed", "instrument": survey.instrument_id}
    for user in (cast.bob, cast.rita):
        assert getattr(cast.client(user), method)(address, data).status_code == 404
    assert getattr(Client(), method)(address, data)["Location"].startswith("/login/")
    survey.refresh_from_db()
    assert survey.state == "open" and Survey.objects.count() == 1


def test_it_refuses_another_studys_instrument_and_survey(cast: Cast, survey: Survey) -> None:
    client = cast.client(cast.bob)
    response = client.post("/studies/theirs/surveys/new/", {**FIELDS, "instrument": survey.instrument_id})
    assert response.status_code == 200 and Survey.objects.count() == 1
    assert client.post(f"/studies/theirs/surveys/{survey.pk}/state/", {"state": "closed"}).status_code == 404


def test_an_unknown_state_changes_nothing(cast: Cast, survey: Survey) -> None:
    response = cast.client(cast.alice).post(f"/studies/ours/surveys/{survey.pk}/state/", {"state": "paused"})
    survey.refresh_from_db()
    assert response.status_code == 400 and survey.state == "open"


def test_the_list_costs_the_same_however_many_answers(cast: Cast, survey: Survey, db: None) -> None:
    client = cast.client(cast.alice)
    counts = []
    for people in (1, 6):
        for _ in range(people):
            visitor = Visitor(survey).start()
            for number in (1, 2, 3):
                visitor.answer(number, "ответ")
        with CaptureQueriesContext(connection) as queries:
            page = client.get("/studies/ours/surveys/").content.decode()
        counts.append(len(queries))
    assert counts[0] == counts[1] and ">7</td>" in page
