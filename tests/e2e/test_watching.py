"""The researcher's pages of a survey on a phone: no broken words, no hidden buttons, no holes above headings."""

from collections.abc import Callable

import pytest
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from surveys.exclusion_services import sitting_exclude
from surveys.models import Survey
from surveys.services import survey_create
from tests.conftest import Cast
from tests.e2e.conftest import Person
from tests.surveys.people import make_person, sitting_of

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]

WIDTH = 390
LONG = "достопримечательность"


@pytest.fixture
def survey(cast: Cast, instrument) -> Survey:
    return survey_create(instrument=instrument, title="A", contact="c@example.org", consent_text="Yes.", actor=None)


def test_on_a_phone(
    cast: Cast, survey: Survey, person: Callable[..., Person], settings: Settings, live_server: LiveServer
) -> None:
    sitting = sitting_of(make_person(survey, [LONG, "мышь бежит от кошки", "дети играли во дворе"]))
    sitting_exclude(survey=survey, sitting_id=sitting.pk, reason="asked by telephone", actor=cast.alice)
    alice = person(width=WIDTH, language="ru")
    session = cast.client(cast.alice).cookies[settings.SESSION_COOKIE_NAME].value
    alice.context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": session, "url": live_server.url}])
    address = f"/studies/ours/surveys/{survey.pk}/"

    page = alice.go(f"{address}sittings/{sitting.pk}/")
    lines = page.locator("td.answer", has_text=LONG).evaluate(
        "cell => { const range = document.createRange(); range.selectNodeContents(cell);"
        " return new Set([...range.getClientRects()].map(one => one.top)).size; }"
    )
    assert lines == 1, "one word stands in one line"

    page = alice.go(f"{address}exclusion/")
    box = page.locator("form[action$='/lift/'] button").bounding_box()
    assert box and box["x"] >= 0 and box["x"] + box["width"] <= WIDTH

    page = alice.go(f"{address}watch/")
    for head in page.locator("thead").all():
        assert (head.bounding_box() or {})["height"] < 50, "headings take one line, so none has a hole above it"
    assert page.evaluate("document.documentElement.scrollWidth") <= WIDTH, "tables scroll, the page does not"
