from collections.abc import Iterator
from uuid import uuid4

import pytest
from django.test import Client

from corpus.models import Answer, Instrument, Sitting
from surveys.models import Survey
from surveys.services import documents_key, survey_create, survey_set_state
from surveys.visits import Visit, visit_of
from tests.conftest import Cast


@pytest.fixture
def survey(cast: Cast, instrument: Instrument) -> Survey:
    survey = survey_create(
        instrument=instrument, title="By link", contact="nobody@example.org", consent_text="I agree.", actor=cast.alice
    )
    survey_set_state(survey=survey, state="open", actor=cast.alice)
    survey.refresh_from_db()
    return survey


def agreeing(survey: Survey, **more: object) -> dict[str, object]:
    """What the consent page sends."""
    return {"start_key": uuid4(), "documents": documents_key(survey), **more}


class Visitor:
    """A participant's browser."""

    def __init__(self, survey: Survey) -> None:
        self.client = Client()
        self.survey = survey
        self.address = ""

    def start(self, start_key: object = None) -> "Visitor":
        response = self.client.post(f"/s/{self.survey.slug}/", agreeing(self.survey, start_key=start_key or uuid4()))
        assert response.status_code == 302, response.content.decode()
        self.address = response["Location"]
        return self

    def get(self, tail: object = ""):
        return self.client.get(self.address if tail == "" else f"{self.address}{tail}/")

    def answer(self, number: int, text: str = "", **extra: object):
        return self.client.post(f"{self.address}{number}/", {"text": text, **extra})

    @property
    def sitting(self) -> Sitting:
        return Sitting.objects.get(pk=self.visit.sitting_id)

    @property
    def visit(self) -> Visit:
        found = visit_of(self.address.split("/")[2])
        assert found
        return found

    def texts(self) -> dict[int, str]:
        answers = Answer.objects.filter(sitting=self.sitting).select_related("stimulus")
        return {answer.stimulus.position: answer.text for answer in answers}


@pytest.fixture
def visitor(survey: Survey) -> Iterator[Visitor]:
    yield Visitor(survey).start()
