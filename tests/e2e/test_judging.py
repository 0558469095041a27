"""A linguist at a Russian keyboard: lost connections, an ended session, a crash. Each answer is judged once."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib.sessions.models import Session
from playwright.sync_api import Browser, BrowserContext, Page, expect
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from annotation.models import Campaign, Guideline, Item, Place, Rater, Skip
from annotation.services import campaign_close
from benchmarks.raters import CONFIGURE
from benchmarks.server import HOST, server
from corpus.models import Instrument
from embedded import postgres
from scoring.models import Judgement, Round
from tests.annotation.factories import YES, make_campaign, make_rater, make_sitting
from tests.conftest import Cast
from tests.e2e.conftest import Person

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]

# What a keyboard says whose layout is Russian: the place of the key, and the letter that is printed on it.
RUSSIAN = {
    "Digit1": "1", "Digit2": "2", "Digit5": "5", "KeyQ": "й", "KeyW": "ц", "KeyA": "ф", "KeyS": "ы", "KeyX": "ч",
    "KeyZ": "я", "KeyU": "г", "KeyV": "м", "KeyC": "с", "KeyH": "р",
    "ArrowLeft": "ArrowLeft", "Enter": "Enter", "Escape": "Escape",
}  # fmt: skip


class Keys:
    """Hands that never leave the keyboard."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.devtools = page.context.new_cdp_session(page)

    def press(self, *codes: str) -> None:
        for code in codes:
            text = {"text": "\r"} if code == "Enter" else {}
            down = {"type": "keyDown", "code": code, "key": RUSSIAN[code], **text}
            self.devtools.send("Input.dispatchKeyEvent", down)
            self.devtools.send("Input.dispatchKeyEvent", {"type": "keyUp", "code": code, "key": RUSSIAN[code]})


def keys_at(page: Page) -> Keys:
    page.wait_for_selector("#judge[data-keys=bound]")
    return Keys(page)


@pytest.fixture
def raters(cast: Cast) -> list[Rater]:
    return [make_rater(cast.study, name) for name in ("lena", "misha", "nina")]


@pytest.fixture
def campaign(cast: Cast, instrument: Instrument) -> Campaign:
    for number in range(4):
        make_sitting(
            instrument,
            [f"кошка сидит на столе {number}", f"мышь бежит от кошки {number}", f"дети {number} раз играли во дворе"],
        )
    return make_campaign(cast.study, cast.alice, k=2)


@dataclass
class Desk:
    person: Person
    page: Page
    keys: Keys
    rater: Rater

    @property
    def answer(self) -> str:
        return self.page.locator("#answer").inner_text()

    def judge(self, *codes: str) -> str:
        """Judge what lies there, by default as right in everything; returns its text."""
        expect(self.page.locator("#desk")).to_be_visible()  # a fast hand may have to wait for a slow server
        text = self.answer
        self.keys.press(*(codes or ("Digit1", "KeyQ", "KeyA")), "Enter")
        return text

    def all_saved(self) -> None:
        expect(self.page.locator("#saved")).to_have_text("Saved.")


Sit = Callable[..., Desk]


@pytest.fixture
def sit(
    person: Callable[..., Person],
    cast: Cast,
    campaign: Campaign,
    raters: list[Rater],
    settings: Settings,
    live_server: LiveServer,
) -> Iterator[Sit]:
    def sit_down(who: int = 0, **how: object) -> Desk:
        rater = raters[who]
        visitor = person(**how)
        session = cast.client(rater.user).cookies[settings.SESSION_COOKIE_NAME].value
        visitor.context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": session, "url": live_server.url}])
        page = visitor.go("/rate/")
        page.get_by_role("button", name="Begin").click()
        return Desk(visitor, page, keys_at(page), rater)

    yield sit_down


def live(campaign: Campaign, rater: Rater) -> int:
    return Judgement.objects.filter(round=campaign.round_id, judge=rater.judge_id, retracted_at=None).count()


def test_everything_by_keyboard_to_the_end(sit: Sit, campaign: Campaign) -> None:
    desk = sit()
    expect(desk.page.locator("input:checked")).to_have_count(0)
    desk.keys.press("Digit1", "Enter")
    expect(desk.page.locator("#missing")).to_contain_text("Not chosen yet: Logical?")
    texts = {desk.judge() for _ in range(2)} | {desk.judge("KeyX")}
    texts |= {desk.judge("Digit2", "KeyW", "KeyS") for _ in range(3)}
    texts |= {desk.judge() for _ in range(6)}
    expect(desk.page.locator("#waiting_text")).to_have_text(
        "Done: nothing is left for you in this campaign. Thank you!"
    )
    desk.all_saved()
    assert len(texts) == 12 and live(campaign, desk.rater) == 36
    assert Judgement.objects.filter(not_attempt=True).count() == 3
    assert Place.objects.filter(state="done", seconds__isnull=False).count() == 12


def test_the_next_answer_is_there_before_the_server_has_answered(sit: Sit, campaign: Campaign) -> None:
    desk = sit()
    desk.page.route("**/rate/*-*/", lambda route: None)  # no answer comes, and no refusal
    first = desk.judge()
    assert desk.answer != first
    second = desk.judge()
    assert desk.answer not in (first, second)
    expect(desk.page.locator("#saved")).to_have_text("Saving…")
    assert live(campaign, desk.rater) == 0
    address = desk.page.url
    desk.page.close(run_before_unload=False)
    page = desk.person.context.new_page()  # both were kept in the browser, and are sent by the new page
    page.goto(address)
    expect(page.locator("#saved")).to_have_text("Saved.")
    assert live(campaign, desk.rater) == 6


def test_lost_connection(sit: Sit, campaign: Campaign) -> None:
    desk = sit()
    desk.judge()
    desk.all_saved()
    desk.person.context.set_offline(True)
    for _ in range(3):
        desk.judge()
    expect(desk.page.locator("#trouble")).to_contain_text("no connection")
    expect(desk.page.locator("#trouble")).to_contain_text("Waiting: 3")
    expect(desk.page.locator("#waiting_text")).to_contain_text("The next answers come when")
    desk.person.context.set_offline(False)
    desk.all_saved()
    assert live(campaign, desk.rater) == 12
    desk.judge()
    desk.all_saved()
    assert live(campaign, desk.rater) == 15
    desk.person.complaints.clear()  # the browser reports each failed attempt


def test_ended_session(sit: Sit, campaign: Campaign, cast: Cast, settings: Settings, live_server: LiveServer) -> None:
    desk = sit()
    Session.objects.all().delete()
    desk.judge()
    expect(desk.page.locator("#trouble")).to_contain_text("you have been logged out")
    expect(desk.page.locator("#login a")).to_be_visible()
    desk.judge()
    assert live(campaign, desk.rater) == 0
    session = cast.client(desk.rater.user).cookies[settings.SESSION_COOKIE_NAME].value
    token = "n" * 32  # logging in gives the forms another token too
    for name, value in ((settings.SESSION_COOKIE_NAME, session), ("csrftoken", token)):
        desk.person.context.add_cookies([{"name": name, "value": value, "url": live_server.url}])
    desk.page.evaluate("dispatchEvent(new Event('focus'))")
    desk.all_saved()
    assert live(campaign, desk.rater) == 6
    desk.person.complaints.clear()  # 403, as it should be


def test_logging_in_by_the_link_of_the_page(sit: Sit, campaign: Campaign) -> None:
    desk = sit()
    desk.rater.user.set_password("correct horse battery")
    desk.rater.user.save(update_fields=["password"])
    Session.objects.all().delete()
    desk.judge()
    desk.judge()
    with desk.person.context.expect_page() as opened:
        desk.page.locator("#login a").click()
    login = opened.value
    login.get_by_label("Username").fill(desk.rater.user.username)
    login.get_by_label("Password").fill("correct horse battery")
    login.keyboard.press("Enter")
    expect(login.get_by_role("heading", name="Rating")).to_be_visible()
    desk.page.bring_to_front()
    desk.page.evaluate("dispatchEvent(new Event('focus'))")
    desk.all_saved()
    desk.judge()
    desk.all_saved()
    assert Judgement.objects.count() == live(campaign, desk.rater) == 9  # whichever page sent them
    desk.person.complaints.clear()  # 403, as it should be


def test_going_back_after_the_session_has_ended(sit: Sit, campaign: Campaign) -> None:
    desk = sit()
    desk.judge()
    desk.all_saved()
    desk.page.reload()  # what was judged before is not on this page
    keys = keys_at(desk.page)
    here = desk.answer
    Session.objects.all().delete()
    keys.press("KeyU")
    expect(desk.page.locator("#told")).to_contain_text("You have been logged out.")
    expect(desk.page.locator("#login a")).to_be_visible()
    assert desk.answer == here
    desk.person.complaints.clear()  # 403, as it should be


def test_double_enter_is_one_judgement(sit: Sit, campaign: Campaign) -> None:
    desk = sit()
    desk.keys.press("Digit1", "KeyQ", "KeyA", "Enter", "Enter", "Enter")
    expect(desk.page.locator("#missing")).to_contain_text("Not chosen yet:")
    desk.all_saved()
    assert live(campaign, desk.rater) == 3


def test_going_back_and_changing(sit: Sit, campaign: Campaign) -> None:
    desk = sit()
    first = desk.judge()
    second = desk.judge()
    third = desk.answer
    desk.keys.press("Digit2", "KeyU")
    assert desk.answer == second
    expect(desk.page.locator("#c-grammatical-1")).to_be_checked()
    desk.keys.press("KeyU")
    assert desk.answer == first
    desk.keys.press("KeyS", "Enter")  # a change, and on to where we were
    assert desk.answer == second
    desk.keys.press("Enter")  # left as it was
    assert desk.answer == third
    expect(desk.page.locator("#c-grammatical-2")).to_be_checked()  # half chosen before going back
    desk.all_saved()
    assert live(campaign, desk.rater) == 6
    history = Judgement.objects.filter(round=campaign.round_id, retracted_at__isnull=False)
    assert [(one.criterion.code, one.value) for one in history] == [("order", 1.0)]
    # A new page goes back over what an earlier one judged.
    desk.page.reload()
    keys = keys_at(desk.page)
    keys.press("KeyU")
    expect(desk.page.locator("#answer")).to_have_text(second)


def test_another_window_is_told_of(sit: Sit, campaign: Campaign) -> None:
    desk = sit()
    other = desk.person.context.new_page()
    other.goto(desk.page.url)
    keys_at(other).press("Digit2", "KeyW", "KeyS", "Enter")
    expect(other.locator("#saved")).to_have_text("Saved.")
    desk.judge()
    told = desk.page.locator("#told")
    expect(told).to_contain_text("Stored: Grammatically correct? No; Logical? No; Natural word order? No")
    assert set(Judgement.objects.filter(retracted_at=None).values_list("value", flat=True)) == {0.0}
    told.get_by_role("button", name="Save what I chose here").click()
    desk.all_saved()
    assert set(Judgement.objects.filter(retracted_at=None).values_list("value", flat=True)) == {1.0}
    assert Judgement.objects.count() == 6
    desk.person.complaints.clear()  # 409, as it should be


def test_two_windows_side_by_side_to_the_end(sit: Sit, campaign: Campaign) -> None:
    """Somebody who forgot a window goes on in both: nothing is double, nothing is left out."""
    desk = sit()
    other = desk.person.context.new_page()
    other.goto(desk.page.url)
    windows = [desk, Desk(desk.person, other, keys_at(other), desk.rater)]
    for _ in range(24):
        for window in windows:
            expect(window.page.locator("#desk, #waiting").locator("visible=true")).to_have_count(1)
            if window.page.locator("#desk").is_visible():
                window.judge()
                window.all_saved()
    for window in windows:
        expect(window.page.locator("#waiting_text")).to_contain_text("Done: nothing is left for you")
    assert Judgement.objects.count() == live(campaign, desk.rater) == 36


def test_skip_flag_and_comment(sit: Sit, campaign: Campaign) -> None:
    desk = sit()
    passed = desk.answer
    desk.keys.press("KeyZ", "Digit1")
    flagged = desk.answer
    assert flagged != passed
    desk.keys.press("KeyV", "KeyC")
    desk.page.locator("#comment").press_sequentially("1 странно q")
    desk.keys.press("Enter")  # a line of the comment, and no judgement
    desk.page.keyboard.press("Escape")
    desk.judge()
    desk.all_saved()
    skip = Skip.objects.select_related("item").get()
    assert (skip.item.display_text, skip.reason) == (passed, "I cannot decide")
    place = Place.objects.select_related("item").get(state="done")
    assert (place.item.display_text, place.is_flagged, place.comment) == (flagged, True, "1 странно q")
    page = desk.person.go(f"/rate/c/{campaign.pk}/mine/?only=skipped")
    page.get_by_role("link", name=passed).click()
    keys_at(page).press("Digit1", "KeyQ", "KeyA", "Enter")  # judged after all
    expect(page.locator("#saved")).to_have_text("Saved.")
    assert Skip.objects.get().undone_at is not None


def test_passing_by_is_undone(sit: Sit, campaign: Campaign) -> None:
    desk = sit()
    passed = desk.answer
    desk.keys.press("KeyZ", "Digit2")
    desk.all_saved()
    desk.keys.press("ArrowLeft")
    assert desk.answer == passed
    expect(desk.page.locator("#standing")).to_contain_text("You have passed this answer by.")
    desk.judge()
    desk.all_saved()
    assert Skip.objects.get().undone_at is not None and live(campaign, desk.rater) == 3


def test_a_reason_is_left_by_escape_and_sent_by_enter(sit: Sit, campaign: Campaign) -> None:
    desk = sit()
    desk.keys.press("KeyZ", "Digit5")
    desk.page.locator("#own").press_sequentially("1")
    desk.keys.press("Escape", "Digit1")  # a judgement again, and no reason
    expect(desk.page.locator("#c-grammatical-1")).to_be_checked()
    expect(desk.page.locator("#skip_form")).to_be_hidden()
    judged_by_and_by = desk.answer
    desk.keys.press("KeyQ", "KeyA", "KeyZ")
    desk.page.locator("#reason-2").check()  # with a mouse, though all is chosen
    desk.keys.press("Enter")
    desk.all_saved()
    skip = Skip.objects.select_related("item").get()
    assert (skip.item.display_text, skip.reason) == (judged_by_and_by, "The words or the answer are shown wrongly")
    desk.keys.press("KeyZ", "Digit5")
    desk.page.locator("#own").press_sequentially("не знаю")
    desk.page.keyboard.press("Control+Enter")
    desk.all_saved()
    assert set(Skip.objects.values_list("reason", flat=True)) == {skip.reason, "не знаю"}
    assert live(campaign, desk.rater) == 0


def test_back_of_the_browser_leads_to_the_answer_before(sit: Sit, campaign: Campaign) -> None:
    desk = sit()
    first = desk.judge()
    second = desk.answer
    desk.keys.press("Digit2")
    desk.page.go_back()
    expect(desk.page.locator("#answer")).to_have_text(first)
    expect(desk.page.locator("#c-grammatical-1")).to_be_checked()
    desk.page.go_forward()
    expect(desk.page.locator("#answer")).to_have_text(second)
    expect(desk.page.locator("#c-grammatical-2")).to_be_checked()
    desk.all_saved()


def test_another_language_shows_the_same_answer(sit: Sit, campaign: Campaign) -> None:
    desk = sit()
    desk.judge()
    here = desk.answer
    desk.all_saved()
    desk.page.get_by_role("button", name="Русский").click()
    expect(desk.page.get_by_role("group", name="Логично?")).to_be_visible()
    assert desk.answer == here


def test_what_a_closed_tab_left_is_sent_from_the_list(sit: Sit, campaign: Campaign) -> None:
    desk = sit()
    desk.page.route("**/rate/*-*/", lambda route: route.abort())
    desk.judge()
    expect(desk.page.locator("#trouble")).to_contain_text("no connection")
    desk.page.close(run_before_unload=False)
    desk.person.complaints.clear()
    page = desk.person.context.new_page()
    page.goto("/rate/")
    expect(page.get_by_text("What was still waiting in this browser is saved. Answers: 1")).to_be_visible()
    assert live(campaign, desk.rater) == 3
    assert page.evaluate("Object.keys(localStorage).filter((one) => one.startsWith('luria-outbox'))") == []


def test_what_waited_for_a_campaign_that_closed_is_not_lost_in_silence(
    sit: Sit, campaign: Campaign, cast: Cast
) -> None:
    desk = sit()
    desk.page.route("**/rate/*-*/", lambda route: route.abort())
    desk.judge()
    desk.judge()
    expect(desk.page.locator("#trouble")).to_contain_text("Waiting: 2")
    desk.page.close(run_before_unload=False)
    campaign_close(campaign=campaign, actor=cast.alice)
    page = desk.person.context.new_page()
    page.goto("/rate/")
    box = page.locator("[data-raters]:visible")
    expect(box).to_contain_text("This campaign is closed.")
    expect(box).to_contain_text("Answers: 2")
    page.reload()
    expect(page.get_by_role("heading", name="Rating")).to_be_visible()
    expect(box).to_have_count(0)  # said once
    assert live(campaign, desk.rater) == 0
    desk.person.complaints.clear()  # 409, as it should be


def test_somebody_else_logged_in_meanwhile(
    sit: Sit, campaign: Campaign, cast: Cast, raters: list[Rater], settings: Settings, live_server: LiveServer
) -> None:
    """The choice is kept for whoever made it, and is never saved as another's."""
    desk = sit()

    def log_in(rater: Rater) -> None:
        session = cast.client(rater.user).cookies[settings.SESSION_COOKIE_NAME].value
        cookie = {"name": settings.SESSION_COOKIE_NAME, "value": session, "url": live_server.url}
        desk.person.context.add_cookies([cookie])

    log_in(raters[1])
    desk.judge()
    expect(desk.page.locator("#trouble")).to_contain_text("somebody else is logged in")
    assert Judgement.objects.count() == 0
    log_in(raters[0])
    desk.page.evaluate("dispatchEvent(new Event('focus'))")
    desk.all_saved()
    assert live(campaign, raters[0]) == 3 and live(campaign, raters[1]) == 0
    desk.person.complaints.clear()  # 403, as it should be


def test_a_server_in_trouble_stops_one_answer_and_not_the_others(sit: Sit, campaign: Campaign) -> None:
    desk = sit()
    broken = desk.page.url
    desk.page.route(broken, lambda route: route.fulfill(status=500, body="broken"))
    desk.judge()
    desk.judge()
    expect(desk.page.locator("#trouble")).to_contain_text("Not saved yet")
    expect(desk.page.locator("#trouble")).to_contain_text("Waiting: 1")
    expect(desk.page.get_by_role("button", name="Try now")).to_be_visible()
    desk.page.unroute_all(behavior="ignoreErrors")
    desk.page.locator("#retry").evaluate("one => one.click()")  # by now it may have been sent by itself
    desk.all_saved()
    expect(desk.page.locator("#retry")).to_be_hidden()
    assert live(campaign, desk.rater) == 6
    desk.person.complaints.clear()


def test_a_conflict_is_not_forgotten_by_a_reload(sit: Sit, campaign: Campaign) -> None:
    desk = sit()
    other = desk.person.context.new_page()
    other.goto(desk.page.url)
    keys_at(other).press("Digit2", "KeyW", "KeyS", "Enter")
    expect(other.locator("#saved")).to_have_text("Saved.")
    desk.judge()
    expect(desk.page.locator("#told")).to_contain_text("Stored:")
    desk.page.reload()
    keys_at(desk.page)
    told = desk.page.locator("#told")
    expect(told).to_contain_text("Chosen here: Grammatically correct? Yes")
    told.get_by_role("button", name="Leave what is stored").click()
    desk.page.reload()
    keys_at(desk.page)
    expect(desk.page.locator("#told div")).to_have_count(0)
    assert set(Judgement.objects.values_list("value", flat=True)) == {0.0}
    desk.person.complaints.clear()  # 409, as it should be


def test_a_campaign_closed_meanwhile(sit: Sit, campaign: Campaign, cast: Cast) -> None:
    desk = sit()
    campaign_close(campaign=campaign, actor=cast.alice)
    desk.judge()
    expect(desk.page.locator("#waiting_text")).to_contain_text("This campaign is closed")
    expect(desk.page.get_by_text("What you just sent was not saved")).to_have_count(1)
    expect(desk.page.locator("#told")).to_contain_text("What you just sent was not saved")
    expect(desk.page.locator("#saved")).to_have_text("")
    expect(desk.page.get_by_role("link", name="To the first page of rating")).to_be_visible()
    assert live(campaign, desk.rater) == 0
    desk.person.complaints.clear()  # 409, as it should be


@pytest.fixture
def training(cast: Cast, campaign: Campaign) -> Item:
    item = campaign.items.get(position=campaign.n_items)
    item.places.all().delete()
    item.purpose, item.expected, item.explanation = "training", YES | {"order": 0.0}, "Порядок <b>непривычен</b>."
    item.save(update_fields=["purpose", "expected", "explanation"])
    campaign.training_round = Round.objects.create(study=cast.study, rubric=campaign.round.rubric, purpose="training")
    campaign.save(update_fields=["training_round"])
    return item


def test_training_shows_what_is_right(sit: Sit, campaign: Campaign, training: Item) -> None:
    desk = sit()
    expect(desk.page.locator("#training")).to_be_visible()
    desk.judge()
    feedback = desk.page.locator("#feedback")
    expect(feedback).to_contain_text("Not quite.")
    expect(feedback).to_contain_text("Natural word order? No")
    expect(feedback).to_contain_text("Порядок <b>непривычен</b>.")
    desk.keys.press("Enter")
    expect(desk.page.locator("#training")).to_be_hidden()
    desk.judge()
    desk.all_saved()
    assert live(campaign, desk.rater) == 3


def test_training_shows_what_is_right_after_a_crash_too(sit: Sit, campaign: Campaign, training: Item) -> None:
    desk = sit()
    desk.page.route("**/rate/*-*/", lambda route: route.abort())
    desk.judge()
    expect(desk.page.locator("#trouble")).to_contain_text("no connection")
    expect(desk.page.locator("#judge")).to_be_hidden()
    address = desk.page.url
    desk.page.close(run_before_unload=False)
    page = desk.person.context.new_page()
    page.goto(address)
    expect(page.locator("#feedback")).to_contain_text("Natural word order? No")
    expect(page.locator("#answer")).to_have_text(training.display_text)
    Keys(page).press("Enter", "Digit1", "KeyQ", "KeyA", "Enter")
    expect(page.locator("#saved")).to_have_text("Saved.")
    assert live(campaign, desk.rater) == 3
    desk.person.complaints.clear()  # the browser reports each failed attempt


def test_without_scripts(
    browser: Browser, cast: Cast, campaign: Campaign, raters: list[Rater], settings: Settings, live_server: LiveServer
) -> None:
    context: BrowserContext = browser.new_context(java_script_enabled=False, base_url=live_server.url, locale="en")
    session = cast.client(raters[0].user).cookies[settings.SESSION_COOKIE_NAME].value
    context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": session, "url": live_server.url}])
    page = context.new_page()
    page.goto("/rate/")
    page.get_by_role("button", name="Begin").click()
    for _ in range(2):
        for label in page.locator("[data-criterion] label:first-of-type").all():
            label.click()
        page.get_by_role("button", name="Save and next").click()
    page.get_by_text("Pass it by").first.click()
    page.get_by_label("I cannot decide").check()
    page.get_by_role("button", name="Pass it by").click()
    context.close()
    assert live(campaign, raters[0]) == 6 and Skip.objects.count() == 1


def faults(page: Page) -> list[tuple[str, list[str]]]:
    found = Axe().run(page).response["violations"]
    return [(one["id"], [node["html"] for node in one["nodes"]]) for one in found]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_state_is_for_everybody(sit: Sit, campaign: Campaign, scheme: Literal["light", "dark"]) -> None:
    guideline = guideline_of_campaign(campaign)
    desk = sit()
    page = desk.page
    page.emulate_media(color_scheme=scheme)
    expect(page.locator(f"html[data-bs-theme={scheme}]")).to_be_attached()
    desk.keys.press("KeyH", "Digit1", "Enter")
    expect(page.locator("#rules")).to_contain_text(guideline)
    desk.keys.press("KeyZ")
    assert faults(page) == []
    desk.keys.press("Escape", "KeyX", "KeyV", "KeyC", "Escape")
    assert faults(page) == []
    desk.judge("KeyX")
    desk.keys.press("KeyZ", "Digit1")
    desk.all_saved()
    desk.person.context.set_offline(True)
    while page.locator("#desk").is_visible():
        desk.judge()
    expect(page.locator("#trouble")).to_contain_text("no connection")
    assert faults(page) == []
    desk.keys.press("KeyU")
    expect(page.locator("#standing")).to_contain_text("You have judged this answer.")
    assert faults(page) == []
    desk.person.context.set_offline(False)
    page.evaluate("dispatchEvent(new Event('focus'))")
    desk.all_saved()
    for address in ("/rate/", f"/rate/c/{campaign.pk}/mine/", f"/rate/c/{campaign.pk}/mine/?only=skipped"):
        page.goto(address)
        assert faults(page) == []
    desk.person.complaints.clear()  # the browser reports each failed attempt


def guideline_of_campaign(campaign: Campaign) -> str:
    text = "Согласование и управление."
    rubric = campaign.round.rubric.slug
    made = Guideline.objects.create(study=campaign.study, rubric_slug=rubric, version=90, text=f"# Правила\n\n{text}")
    campaign.round.guideline_version = made.version
    campaign.round.save(update_fields=["guideline_version"])
    return text


# 640 and 320 pixels are what 1280 leave at 200 % and 400 %.
@pytest.mark.parametrize("width", [320, 390, 640, 1280])
def test_wide_and_narrow_and_for_everybody(sit: Sit, campaign: Campaign, width: int) -> None:
    items = list(campaign.items.order_by("position")[:3])
    for item, text in zip(
        items, ["длинноесловобезпробелов" * 40, "слово " * 500, "<img src=x onerror=alert(1)>"], strict=True
    ):
        item.display_text = text
        item.save(update_fields=["display_text"])
    desk = sit(width=width)
    for _ in items:
        assert desk.page.evaluate("document.documentElement.scrollWidth") <= width
        assert faults(desk.page) == []
        small = desk.page.locator("#judge .btn:visible").evaluate_all(
            "all => all.filter(one => one.getBoundingClientRect().height < 44).length"
        )
        assert small == 0
        desk.judge()
    assert desk.page.locator("img").count() == 0
    desk.all_saved()


def test_a_zoomed_page_begins_with_the_answer(sit: Sit) -> None:
    desk = sit()
    desk.page.set_viewport_size({"width": 640, "height": 400})  # 1280 × 800 at 200 %
    desk.judge()
    for shown in ("#answer", "#judge fieldset:last-of-type"):
        expect(desk.page.locator(shown)).to_be_in_viewport(ratio=1)
    desk.all_saved()


def test_with_tab_and_space_alone(sit: Sit, campaign: Campaign) -> None:
    """As somebody goes who hears the page: each thing has its role and a name without the key."""
    desk = sit()
    page, form = desk.page, desk.page.locator("#judge")
    expect(page.locator("#answer")).not_to_be_focused()  # the beginning of a page is read from its top
    desk.judge("KeyX")
    expect(page.locator("#answer")).to_be_focused()
    for question in ("Grammatically correct?", "Logical?", "Natural word order?"):
        page.keyboard.press("Tab")
        choice = form.get_by_role("group", name=question).get_by_role("radio", name="Yes", exact=True)
        expect(choice).to_be_focused()
        page.keyboard.press("Space")
        expect(choice).to_be_checked()
    for name in ("Not an attempt", "To the adjudicator"):
        page.keyboard.press("Tab")
        expect(form.get_by_role("checkbox", name=name, exact=True)).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.locator("#remark summary")).to_be_focused()
    page.keyboard.press("Tab")
    expect(form.get_by_role("button", name="Save and next", exact=True)).to_be_focused()
    page.keyboard.press("Enter")
    desk.all_saved()
    assert live(campaign, desk.rater) == 6
    assert Judgement.objects.filter(value=1, not_attempt=False).count() == 3


def test_what_is_written_is_not_behind_the_button(sit: Sit) -> None:
    """On a phone the button to go on lies over the page's end."""
    desk = sit(width=390)
    desk.keys.press("KeyC")
    for field in ("#comment", "#own"):
        if field == "#own":
            desk.keys.press("Escape", "KeyZ", "Digit5")
        expect(desk.page.locator(field)).to_be_focused()
        assert desk.page.locator(field).evaluate(
            """one => { const box = one.getBoundingClientRect();
                return document.elementFromPoint(box.left + 9, box.bottom - 4) === one; }"""
        )


def test_a_hundred_answers_and_a_crash_of_everything(browser: Browser) -> None:
    """kill -9 of web server, PostgreSQL and Valkey: what was acknowledged is there, and the rest goes on."""
    with server() as found:
        found.manage("luria_setup")
        configure = CONFIGURE.format(sittings=6, k=1).replace("range(30)", "range(1)")
        sessions, _, places = json.loads(found.manage("shell", "-v0", "-c", configure))
        assert places == 108
        found.web_start()
        address = f"http://{HOST}:{found.port}"
        context = browser.new_context(base_url=address, locale="ru")
        context.set_default_timeout(60_000)
        context.add_cookies([{"name": "luria_session", "value": sessions[0], "url": address}])
        page = context.new_page()
        page.goto("/rate/")
        page.get_by_role("button", name="Начать").click()
        keys = keys_at(page)
        for number in range(1, 101):
            expect(page.locator("#desk")).to_be_visible()
            keys.press("Digit1", "KeyQ", "KeyA" if number % 2 else "KeyS", "Enter")
            if number == 50:
                expect(page.locator("#saved")).to_have_text("Сохранено.")
                found.kill()
                keys.press("Digit1", "KeyQ", "KeyS", "Enter")  # into the void: kept in the browser
                expect(page.locator("#trouble")).to_contain_text("нет связи")
                found.services.start()
                assert judged(found) == 50
                found.web_start()
        expect(page.locator("#saved")).to_have_text("Сохранено.")
        assert judged(found) == 101
        context.close()


def judged(found: object) -> int:
    with postgres.connect(found.place, name="luria") as connection:  # type: ignore[attr-defined]
        rows = connection.execute("SELECT answer_id, count(*) FROM scoring_judgement GROUP BY 1").fetchall()
    assert {n for _, n in rows} == {3}
    return len(rows)
