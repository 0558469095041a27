"""The adjudicator's page from the keyboard: a key never lands in the reason by accident."""

from collections.abc import Callable

from playwright.sync_api import expect
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from annotation.services import campaign_close
from corpus.models import Instrument
from scoring.models import Judgement
from tests.annotation.factories import YES, give, make_campaign, make_rater, make_sitting, post
from tests.conftest import Cast
from tests.e2e.conftest import Person


def test_deciding_by_keyboard(
    person: Callable[..., Person], cast: Cast, instrument: Instrument, settings: Settings, live_server: LiveServer
) -> None:
    make_sitting(instrument)
    lena, misha, nina = (make_rater(cast.study, name) for name in ("lena", "misha", "nina"))
    campaign = make_campaign(cast.study, cast.alice, k=2, adjudicator=nina.user)
    for item in campaign.items.order_by("position")[:2]:
        post(give(item, lena), lena, YES)
        post(give(item, misha), misha, YES | {"order": 0.0})
    campaign_close(campaign=campaign, actor=cast.alice)
    visitor = person()
    session = cast.client(nina.user).cookies[settings.SESSION_COOKIE_NAME].value
    visitor.context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": session, "url": live_server.url}])
    page = visitor.go("/rate/")
    page.get_by_role("link", name="Decide").first.click()
    reason, state = page.locator("[name=reason]"), page.locator("#state")
    expect(page.locator("#judge[data-keys=bound]")).to_be_visible()
    page.keyboard.press("Enter")
    expect(state).to_contain_text("Not chosen yet:")
    expect(reason).not_to_be_focused()
    page.keyboard.press("Digit1")
    expect(page.locator("#c-order-1")).to_be_checked()
    expect(reason).to_have_value("")
    page.keyboard.press("Enter")
    expect(state).to_have_text("Say why, then press Enter.")
    expect(reason).to_be_focused()
    page.keyboard.press("Escape")
    expect(reason).not_to_be_focused()
    page.keyboard.press("Digit2")
    expect(page.locator("#c-order-2")).to_be_checked()
    expect(reason).to_have_value("")
    page.keyboard.press("Enter")
    page.keyboard.type("inversion")
    first = page.url
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: url != first)
    expect(page.locator("#judge[data-keys=bound]")).to_be_visible()
    assert [one.value for one in Judgement.objects.filter(round__purpose="adjudication")] == [0.0]
    # Enter in the reason with nothing chosen says so, and the next key chooses.
    reason.fill("natural")
    reason.press("Enter")
    expect(state).to_contain_text("Not chosen yet:")
    page.keyboard.press("Digit1")
    expect(reason).to_have_value("natural")
    expect(page.locator("#c-order-1")).to_be_checked()
    page.keyboard.press("KeyU")
    page.wait_for_url(first)
    expect(page.locator("#c-order-2")).to_be_checked()
    expect(reason).to_have_value("inversion")
