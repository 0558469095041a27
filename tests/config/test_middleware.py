from django.test import Client

from surveys.services import survey_create, survey_set_state
from tests.conftest import Cast


def test_a_button_pressed_after_the_session_ended_is_not_passed_over_in_silence(cast: Cast, instrument) -> None:
    survey = survey_create(instrument=instrument, title="A", contact="a", consent_text="a", actor=cast.alice)
    survey_set_state(survey=survey, state="open", actor=cast.alice)
    client = Client()
    address = f"/studies/ours/surveys/{survey.pk}/state/"
    response = client.post(address, {"state": "closed"})
    assert response.status_code == 302
    response = client.post(response.url, {"username": "alice", "password": "correct horse"}, follow=True)
    assert response.status_code == 405 and response.headers["Allow"] == "POST"
    assert "was not carried out" in response.content.decode()
    survey.refresh_from_db()
    assert survey.state == "open"


def test_it_says_so_in_the_readers_language(cast: Cast) -> None:
    response = cast.client(cast.rita).get("/rate/c/1/next/", headers={"Accept-Language": "ru"})
    assert response.status_code == 405 and "Ничего не сделано" in response.content.decode()


def test_the_api_keeps_its_own_form(cast: Cast) -> None:
    assert Client().put("/api/v1/studies/").headers["Content-Type"] == "application/json"
