"""No page of a study scrolls sideways on a phone: tables scroll, the page does not."""

from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.management import call_command
from django.urls import get_resolver, reverse
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from llmruns.liveness import worker_lock_release
from reports.management.commands.luria_setup import RESEARCHER
from studies.models import User
from tests.architecture.test_write_routes import routes
from tests.conftest import Cast
from tests.e2e.conftest import Person

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]

WIDTH = 390
NAMES = sorted(
    {
        str(pattern.name)
        for route, pattern in routes(get_resolver().url_patterns)
        if pattern.name and route.startswith("studies/") and list(pattern.pattern.converters) == ["slug"]
    }
)


@pytest.fixture
def researcher(cast: Cast, settings: Settings, tmp_path: Path) -> User:
    settings.CLASSIFIERS_DIR = tmp_path
    researcher = User.objects.create_user(RESEARCHER)
    call_command("demo", people=8, runs=1, verbosity=0)
    worker_lock_release()  # simulated models were asked here, and not by a worker
    return researcher


def test_no_page_of_a_study_scrolls_sideways(
    researcher: User, cast: Cast, person: Callable[..., Person], settings: Settings, live_server: LiveServer
) -> None:
    tired = person(width=WIDTH, language="ru")
    session = cast.client(researcher).cookies[settings.SESSION_COOKIE_NAME].value
    tired.context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": session, "url": live_server.url}])
    looked_at, wide = 0, []
    for name in NAMES:
        address = live_server.url + reverse(name, args=["demo"])
        answer = tired.context.request.get(address)
        if answer.status != 200 or not answer.headers["content-type"].startswith("text/html"):
            continue  # a file, or a route that only takes forms
        page = tired.go(address)
        looked_at += 1
        if page.evaluate("document.documentElement.scrollWidth") > WIDTH:
            wide.append(name)
    assert looked_at > 20
    assert wide == []
