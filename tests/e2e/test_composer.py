"""A researcher composes a test in a real browser, from the keyboard."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from corpus import compositions
from corpus.models import Composition, Instrument
from corpus.tasks import composition_read
from tests.conftest import Cast
from tests.corpus.treebanks import bands
from tests.e2e.conftest import Person

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]


def originals(page: Page) -> list[str]:
    return page.locator(".composition-slot .fs-5").all_inner_texts()


def test_a_test_from_a_treebank_without_the_mouse(
    cast: Cast,
    person: Callable[..., Person],
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    live_server: LiveServer,
    tmp_path: Path,
) -> None:
    settings.DATA_DIR = tmp_path / "files"
    monkeypatch.setattr(compositions, "composition_enqueue", lambda _pk: None)  # the test is the worker
    treebank = tmp_path / "small.conllu"
    treebank.write_bytes(bands())

    alice = person()
    session = cast.client(cast.alice).cookies[settings.SESSION_COOKIE_NAME].value
    alice.context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": session, "url": live_server.url}])
    page = alice.page
    alice.go("/studies/ours/")
    alice.follow("Tests from treebanks")
    alice.follow("New test from a treebank")
    page.get_by_label("Title").fill("Small")
    page.get_by_label("New treebank file").set_input_files(treebank)
    page.get_by_label("Tasks", exact=True).fill("2, 2, 2")
    alice.press("Search the treebank")

    expect(page.get_by_text("Waiting for a worker")).to_be_visible()
    composition_read(Composition.objects.get().pk)
    expect(page.get_by_text("0 of 6 accepted")).to_be_visible()  # the page has noticed by itself
    expect(page.locator("#slots[data-keys=bound]")).to_be_visible()

    before = originals(page)
    page.keyboard.press("s")
    expect(page.locator("#slot-1.current .fs-5")).not_to_have_text(before[0])
    page.keyboard.press("j")
    page.keyboard.press("r")
    expect(page.locator("#slot-2.current .fs-5")).not_to_have_text(before[1])
    assert originals(page)[2:] == before[2:]
    page.keyboard.press("k")
    for done in range(1, 7):  # each acceptance goes on to the next one
        page.keyboard.press("a")
        expect(page.get_by_text(f"{done} of 6 accepted")).to_be_visible()
        expect(page.locator(f"#slot-{min(done + 1, 6)}.current")).to_be_visible()
    page.reload()
    shown = originals(page)
    alice.follow("Make the instrument")
    page.get_by_label("Address").fill("small")
    alice.press("Make the instrument")
    expect(page.get_by_text("has been made of these tasks")).to_be_visible()
    assert list(Instrument.objects.get().stimuli.values_list("original", flat=True)) == shown
