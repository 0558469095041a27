"""A real browser on a real server: Debian's chromium through Playwright."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright
from pytest_django.live_server_helper import LiveServer

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
expect.set_options(timeout=60_000)  # a wait for what will come, however slow the machine
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking", "--no-first-run"]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = os.environ.get("LURIA_CHROMIUM") or next((p for p in map(shutil.which, BROWSERS) if p), None)
    if not path or not Path(path).exists():
        pytest.skip("no Chromium is installed; `make test` as root installs Debian's, or name one in LURIA_CHROMIUM")
    # Playwright's loop lives in this thread, and Django takes any loop for an async context; the tests use the database
    # only between the browser's steps.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield chromium
        chromium.close()
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


class Person:
    """Somebody at a browser of their own. What the console complains of is kept and looked at."""

    def __init__(self, browser: Browser, server: str, *, width: int = 1280, language: str = "en") -> None:
        self.context: BrowserContext = browser.new_context(
            viewport={"width": width, "height": 800}, locale=language, base_url=server
        )
        self.context.set_default_timeout(30_000)
        self.page: Page = self.context.new_page()
        self.complaints: list[str] = []
        self.context.on("console", lambda m: self.complaints.append(m.text) if m.type in ("error", "warning") else None)
        self.context.on("weberror", lambda e: self.complaints.append(str(e.error)))

    def go(self, path: str) -> Page:
        self.page.goto(path)
        return self.page

    def press(self, name: str) -> None:
        """Press the button of that name."""
        self.page.get_by_role("button", name=name).first.click()

    def follow(self, name: str) -> None:
        self.page.get_by_role("link", name=name).first.click()


@pytest.fixture
def person(browser: Browser, live_server: LiveServer) -> Iterator[Callable[..., Person]]:
    """People at browsers of their own; at the end no console has complained."""
    people: list[Person] = []

    def arrive(**how: object) -> Person:
        people.append(Person(browser, live_server.url, **how))  # type: ignore[arg-type]
        return people[-1]

    yield arrive
    complaints = [text for one in people for text in one.complaints]
    for one in people:
        one.context.close()  # or the server's threads would keep their connections to the database
    assert complaints == []
