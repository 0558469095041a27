"""No page takes a post from somebody who is not logged in, but for those that are there for them."""

from collections.abc import Iterator
from uuid import uuid4

import pytest
from django.contrib import admin
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from surveys.models import Survey
from tests.api.conftest import add_survey
from tests.conftest import Cast

# The route, and why a visitor without an account may post there.
OPEN_TO_VISITORS = {
    "login": "this is where one logs in",
    "logout": "ends whatever session there is, which may be none",
    "set_language": "chooses the language of the pages, in a cookie",
    "join": "a newcomer follows an invitation: its secret is in the address",
    "survey_enter": "participants have no account: consent makes one a participant",
    "participant": "participants have no account: the secret in the address is theirs alone",
    "participant_task": "likewise: an answer",
    "participant_practice": "likewise: a practice task",
    "participant_end": "likewise: the end of the sitting",
    "participant_leave": "likewise: leaving the study",
    "participant_questions": "likewise: the questionnaire",
    "survey_arrive": "a consent page says that it was opened; nothing of the person is kept",
    "participant_withdraw": "likewise: withdrawing",
    "withdraw": "participants have no account: the receipt code that is sent is theirs alone",
}
SAMPLES = {"slug": "ours", "pk": 1, "run_pk": 1, "number": 1, "secret": "x" * 20, "name": "answers", "kind": "svg"}
SAMPLES |= {"place": "before", "question": 1, "sitting_pk": 1, "rule_pk": 1, "slot": 1}
SAMPLES |= {"stimulus_pk": 1, "shape": "long"}


def routes(patterns: list[URLPattern | URLResolver], prefix: str = "") -> Iterator[tuple[str, URLPattern]]:
    """Every named page with its address; the API has its own walk in tests/api, the admin its own login."""
    for pattern in patterns:
        route = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            if pattern.app_name != admin.site.name:
                yield from routes(pattern.url_patterns, route)
        elif not route.startswith(("api/", "^api/")):
            yield route, pattern


PAGES = list(routes(get_resolver().url_patterns))


def address(pattern: URLPattern) -> str:
    """A sample address. A route with a parameter that nobody has described here fails by its name."""
    values = {
        name: uuid4() if type(converter).__name__ == "UUIDConverter" else SAMPLES[name]
        for name, converter in pattern.pattern.converters.items()
    }
    return reverse(pattern.name, kwargs=values)


@pytest.fixture
def survey(cast: Cast, instrument: object) -> Survey:
    return add_survey(cast.study, instrument, "ours")  # type: ignore[arg-type]


def test_the_walk_finds_the_pages() -> None:
    names = [pattern.name for _route, pattern in PAGES]
    assert len(names) > 40 and all(names)
    assert set(OPEN_TO_VISITORS) <= set(names), "an exception for a route that is no more"


def test_a_visitor_without_an_account_writes_nowhere(cast: Cast, survey: Survey) -> None:
    """Refused is: sent to log in, 403, 404, or 405 where the page takes no post from anybody."""
    through = {}
    for _route, pattern in PAGES:
        response = Client().post(address(pattern), {"title": "a", "slug": "a"})
        to_login = response.status_code == 302 and response.headers["Location"].startswith(reverse("login"))
        if not to_login and response.status_code not in (403, 404, 405):
            through[pattern.name] = response.status_code
    assert set(through) <= set(OPEN_TO_VISITORS), through


def test_what_needs_a_login_says_405_only_to_those_who_are_in(cast: Cast, survey: Survey) -> None:
    """A page that takes no post does not hide behind that: a visitor who reads it is sent to log in, or gets 404."""
    readable = {}
    for _route, pattern in PAGES:
        response = Client().get(address(pattern))
        if response.status_code == 200:
            readable[pattern.name] = response.status_code
    assert set(readable) <= {*OPEN_TO_VISITORS, "home", "javascript_catalog"}, readable


def test_the_admin_sends_visitors_to_log_in(cast: Cast) -> None:
    for path in ("/admin/", "/admin/studies/user/add/", "/admin/studies/user/1/delete/"):
        response = Client().post(path, {})
        assert response.status_code == 302 and "/login/" in response.headers["Location"], path
