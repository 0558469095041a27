"""One study from an empty installation to the results table, as its people would do it."""

import csv
import io
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from corpus.models import Answer
from llmruns.models import Call, Experiment
from reports.management.commands.luria_setup import Command
from scoring.models import Judgement
from tests.chat_server import BAD_FORMAT, BROKEN, HANG, ChatServer, answer, rate_limited
from tests.conftest import ROOT
from tests.e2e.conftest import Person
from tests.llmruns.workers import wait_for, worker

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]

RUNS = 2
STIMULI = list(csv.DictReader(io.StringIO((ROOT / "study" / "stimuli.csv").read_text(encoding="utf-8"))))


def chat_server() -> ChatServer:
    """Gives each stimulus its original back, after the troubles that providers have."""
    server = ChatServer()
    for row in STIMULI:
        server.script(row["task"], answer(row["original"]))
    first, second, third, fourth = (row["task"] for row in STIMULI[:4])
    server.script(first, rate_limited(1), answer(STIMULI[0]["original"]))
    server.script(second, BAD_FORMAT, answer(STIMULI[1]["original"]))
    server.script(third, BROKEN, answer(STIMULI[2]["original"]))
    server.script(fourth, HANG, answer(STIMULI[3]["original"]))
    return server


def test_the_whole_loop(
    person: Callable[..., Person],
    live_server: LiveServer,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    settings.PUBLIC_URL = live_server.url
    monkeypatch.setenv("E2E_API_KEY", "sk-e2e-not-a-real-key-000000")

    researcher = person()
    log_in(researcher)
    begin_study(researcher)
    link = open_survey(researcher)
    take_part(person(width=390, language="ru"), link)

    with (
        chat_server() as server,
        worker(prefix="", log=tmp_path / "worker.log", E2E_API_KEY="sk-e2e-not-a-real-key-000000"),
    ):
        run_experiment(researcher, server, tmp_path / "worker.log")

    raters = [person() for _ in range(3)]
    for number, rater in enumerate(raters):
        join(rater, invite(researcher), f"rater{number}")
    open_campaign(researcher)
    for rater in raters:
        judge_everything(rater)
    n_rated = 18 + RUNS * 18
    assert Judgement.objects.filter(round__purpose="rating", retracted_at=None).count() == n_rated * 3 * 3
    see_results(researcher)


def log_in(researcher: Person) -> None:
    """The one-time link of a new installation."""
    out = io.StringIO()
    Command(stdout=out).handle()
    login_url = re.search(r'"login_url": "([^"]+)"', out.getvalue())
    assert login_url
    page = researcher.go(login_url[1])
    page.get_by_label("Password").fill("correct horse battery")
    researcher.press("Continue")
    expect(page.get_by_role("heading", name="Studies")).to_be_visible()


def begin_study(researcher: Person) -> None:
    page = researcher.page
    researcher.follow("New study")
    page.get_by_label("Title").fill("Loop")
    page.locator("input[name=slug]").fill("loop")
    researcher.press("Begin the study")
    expect(page.get_by_role("heading", name="Loop")).to_be_visible()


def open_survey(researcher: Person) -> str:
    page = researcher.go("/studies/loop/surveys/new/")
    page.get_by_label("Title").fill("By link")
    page.get_by_label("Contact").fill("lab@example.org")
    researcher.press("Make a draft")
    researcher.press("Open the survey")
    return page.locator("a", has_text="/s/loop-1/").inner_text()


def take_part(participant: Person, link: str) -> None:
    page = participant.go(link)
    participant.press("Согласен, начать")
    participant.follow("К первому заданию")
    for number, row in enumerate(STIMULI, start=1):
        expect(page).to_have_title(re.compile(rf"Задание {number} из 18"))
        assert page.locator("#words").inner_text() == row["task"]
        page.locator("#text").fill(row["original"])
        if number == 6:  # half an answer survives a reload
            page.reload()
            expect(page.locator("#text")).to_have_value(row["original"])
            expect(page.locator("#state")).to_contain_text("черновик восстановлен")
        participant.press("Дальше")
    expect(page.get_by_role("heading", name="Спасибо")).to_be_visible()
    assert re.fullmatch(r"[0-9A-Z]{8}", page.locator("#code").inner_text())
    assert Answer.objects.filter(sitting__respondent__kind="human", outcome="given").count() == 18
    page.goto(link)  # the link again: it is over, and says so
    expect(page.get_by_role("heading", name="Спасибо")).to_be_visible()


def run_experiment(researcher: Person, server: ChatServer, log: Path) -> None:
    page = researcher.go("/studies/loop/models/new/")
    page.locator("[name=label]").fill("Local")
    page.locator("[name=base_url]").fill(server.base_url)
    page.locator("[name=model]").fill("test-model")
    page.locator("[name=key_variable]").fill("E2E_API_KEY")
    page.locator("[name=timeout]").fill("2")
    researcher.press("Add")
    page.goto("/studies/loop/experiments/new/")
    page.locator("[name=title]").fill("Two runs")
    page.get_by_label("Local").check()
    page.locator("[name=runs]").fill(str(RUNS))
    researcher.press("Continue")
    researcher.press("Launch")
    wait_for(lambda: Experiment.objects.filter(state="finished").exists(), seconds=90, log=log)
    expect(page.get_by_text(re.compile(r"Finished", re.IGNORECASE)).first).to_be_visible()  # the page follows by itself
    assert Answer.objects.filter(sitting__respondent__kind="model", outcome="given").count() == RUNS * 18
    assert set(Call.objects.values_list("state", flat=True)) == {"ok", "bad_reply", "failed"}
    assert Call.objects.filter(state="bad_reply").count() == 1
    call = Call.objects.filter(state="bad_reply").get()
    page.goto(f"/studies/loop/calls/{call.pk}/")
    expect(page.get_by_text("Вот ответ").first).to_be_visible()
    assert "sk-e2e" not in page.content()


def invite(researcher: Person) -> str:
    page = researcher.go("/studies/loop/people/")
    page.get_by_label("Role").select_option("rater")
    researcher.press("Make a link")
    return page.locator("code", has_text="/join/").inner_text()


def join(rater: Person, link: str, name: str) -> None:
    page = rater.go(link)
    page.get_by_label("User name").fill(name)
    page.get_by_label("Password").fill("correct horse battery")
    rater.press("Continue")
    expect(page).to_have_url(re.compile(r"/rate/$"))


def open_campaign(researcher: Person) -> None:
    page = researcher.go("/studies/loop/campaigns/new/")
    page.get_by_label("Title").fill("First rating")
    page.get_by_label("Raters per answer").fill("3")
    page.get_by_text("How they are judged").click()
    page.get_by_label("The same text given several times").select_option("separately")
    researcher.press("Count the answers")
    researcher.press("Open the campaign")
    expect(page.get_by_role("heading", name="First rating")).to_be_visible()


def choose(page: Page, key: str) -> None:
    """Press until the choice is seen: Chromium drops keys until a page's first picture is on the screen."""
    option = page.locator(f'#judge [data-code="{key}"]')
    for _ in range(200):
        page.keyboard.press(key)
        if option.is_checked():
            return
    raise AssertionError(f"{key} chooses nothing")


def judge_everything(rater: Person) -> None:
    """By keyboard alone: 1 and 2, Q and W, A and S, Enter."""
    page = rater.go("/rate/")
    rater.press("Begin")
    for number in range(18 + RUNS * 18):
        # Every answer is saved before the next is judged, so that the title counts with us.
        expect(page).to_have_title(re.compile(rf"^{number} of 54"))
        expect(page.locator("#judge[data-keys=bound]")).to_be_visible()
        for key in ("Digit1", "KeyQ", "KeyS" if number % 9 == 0 else "KeyA"):
            choose(page, key)
        page.keyboard.press("Enter")
    expect(page.locator("#waiting_text")).to_contain_text("Done: nothing is left for you")
    rater.follow("To the first page of rating")
    expect(page.get_by_text("54 of 54")).to_be_visible()


def see_results(researcher: Person) -> None:
    page = researcher.go("/studies/loop/campaigns/")
    researcher.follow("First rating")
    expect(page.get_by_role("heading", name="Agreement")).to_be_visible()
    page.get_by_text("Close the campaign").click()
    researcher.press("Close the campaign")
    page.goto("/studies/loop/results/")
    expect(page.locator("svg.marks, canvas.marks, .figure svg").first).to_be_visible()
    row = page.get_by_role("row").filter(has_text="Local").first
    # Every answer is its original; a ninth of the orders is judged unusual. 0.25 of a point in four, at most.
    expect(row).to_contain_text(re.compile(r"0\.9\d\d|1\.000"))
    with page.expect_download() as download:
        page.goto("/studies/loop/exports/")
        page.locator("a[href$='annotations.csv']").click()
    rows = list(csv.DictReader(Path(download.value.path()).read_text(encoding="utf-8-sig").splitlines()))
    assert len(rows) == 54 * 3
