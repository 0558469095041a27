"""Pictures of every page for docs/pictures/: Russian and English, desktop and phone, from a fresh demonstration study.

make bench ARGS=pictures
"""

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from benchmarks.server import Server, server
from embedded.check import browser as browser_path

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "pictures"
WIDTHS = {"desktop": 1280, "phone": 390}
LANGUAGES = ("ru", "en")
PASSWORD = "only for these pictures"
TALLEST = 1_600  # px; a longer page is cut, its beginning says enough

# For a shell in the server's environment: a link that lets a simulated rater in.
RATER_LINK = """
from studies.models import Study, User
from studies.services import invitation_create
from django.conf import settings
study = Study.objects.get(slug="demo")
user = User.objects.get(username="{name}")
print(settings.PUBLIC_URL + "/join/" + invitation_create(study=study, role="rater", actor=None, user=user)[1] + "/")
"""


class Album:
    """Takes each page four times, under names such as `results.ru.phone.png`."""

    def __init__(self, base: str) -> None:
        self.base = base
        self.names: list[str] = []

    def take(self, page: Page, name: str, *, path: str | None = None) -> None:
        """The page that is open, or the one at `path`; the page is left as it was found, in Russian."""
        if path is not None:
            page.goto(self.base + path)
        address = page.url
        for language in reversed(LANGUAGES):
            page.context.add_cookies([{"name": "luria_language", "value": language, "url": self.base}])
            page.goto(address)
            for width, pixels in WIDTHS.items():
                self.shoot(page, f"{name}.{language}.{width}", pixels)
        self.names.append(name)

    def take_unsent(self, page: Page, name: str, language: str, width: str) -> None:
        """A page as somebody has filled it in, which a reload would empty."""
        self.shoot(page, f"{name}.{language}.{width}", WIDTHS[width])

    def shoot(self, page: Page, name: str, pixels: int) -> None:
        page.set_viewport_size({"width": pixels, "height": 800})
        page.wait_for_load_state("networkidle")
        height = min(TALLEST, page.evaluate("document.documentElement.scrollHeight"))
        page.set_viewport_size({"width": pixels, "height": max(600, height)})
        page.screenshot(path=FOLDER / f"{name}.png")


def context_of(browser: Browser, language: str = "ru") -> BrowserContext:
    return browser.new_context(viewport={"width": 1280, "height": 800}, locale=language)


def log_in(browser: Browser, link: str) -> Page:
    page = context_of(browser).new_page()
    page.goto(link)
    page.locator("input[type=password]").fill(PASSWORD)
    page.locator("main button").click()
    return page


def participant(album: Album, browser: Browser, survey: str) -> None:
    page = context_of(browser).new_page()
    album.take(page, "participant-consent", path=survey)
    page.locator("main button").click()
    own = urlsplit(page.url).path
    album.take(page, "participant-instruction")
    album.take(page, "participant-task", path=f"{own}1/")
    for number in range(1, 19):
        page.goto(f"{album.base}{own}{number}/")
        if number == 5:
            for language in LANGUAGES:
                page.context.add_cookies([{"name": "luria_language", "value": language, "url": album.base}])
                for width in WIDTHS:
                    page.goto(f"{album.base}{own}5/")
                    page.locator("#text").fill("но часто остается надежда, что время")
                    album.take_unsent(page, "participant-draft", language, width)
                    page.locator("#text").fill("")
                    page.locator("#task button").first.click()
                    album.take_unsent(page, "participant-nothing-written", language, width)
            album.names += ["participant-draft", "participant-nothing-written"]
            album.take(page, "participant-leave", path=f"{own}leave/")
            page.goto(f"{album.base}{own}5/")
        page.locator("#text").fill("кошка сидит на столе и играет с мячом")
        page.locator("#task button").first.click()
    album.take(page, "participant-end")
    album.take(page, "participant-wrong-link", path="/p/copied-incompletely/")


def researcher(album: Album, page: Page) -> None:
    demo = "/studies/demo/"
    for name, path in {
        "dashboard": "/",
        "study-new": "/studies/new/",
        "study": demo,
        "account": "/account/",
        "people": f"{demo}people/",
        "survey-list": f"{demo}surveys/",
        "survey-new": f"{demo}surveys/new/",
        "model-list": f"{demo}models/",
        "model-new": f"{demo}models/new/",
        "experiment-list": f"{demo}experiments/",
        "experiment-new": f"{demo}experiments/new/",
        "campaign-list": f"{demo}campaigns/",
        "campaign-new": f"{demo}campaigns/new/",
        "results": f"{demo}results/",
        "results-answers": f"{demo}results/answers/",
        "exports": f"{demo}exports/",
        "not-found": "/studies/somebody-elses/",
    }.items():
        album.take(page, name, path=path)
    for name, page_of, link in (
        ("survey", f"{demo}surveys/", "main table a"),
        ("experiment", f"{demo}experiments/", "main table a, main h2 a, main li a"),
        ("campaign", f"{demo}campaigns/", "main table a, main h2 a, main li a"),
    ):
        page.goto(album.base + page_of)
        page.locator(link).first.click()
        album.take(page, name)
    campaign = urlsplit(page.url).path
    album.take(page, "campaign-answers", path=f"{campaign}answers/")
    page.goto(f"{album.base}{demo}experiments/")
    page.locator("main table a, main h2 a, main li a").first.click()
    experiment = urlsplit(page.url).path
    page.locator("a[href*='/runs/']").first.click()
    album.take(page, "run")
    album.take(page, "call-list", path=f"{experiment}calls/")
    page.locator("a[href*='/calls/']:not([href$='/calls/'])").first.click()
    album.take(page, "call")


def raters(album: Album, found: Server, browser: Browser, boss: Page) -> None:
    def link(name: str) -> str:
        return found.manage("shell", "-v0", "-c", RATER_LINK.format(name=name)).strip()

    page = context_of(browser).new_page()
    album.take(page, "join", path=urlsplit(link("simulated-rater-2")).path)
    judge = log_in(browser, link("simulated-rater-3"))
    album.take(judge, "rate-home", path="/rate/")
    judge.locator("main form button").first.click()
    album.take(judge, "rate-place")
    boss.goto(f"{album.base}/studies/demo/campaigns/")
    boss.locator("main table a, main h2 a, main li a").first.click()
    campaign = urlsplit(boss.url).path
    form = boss.locator(f"form[action='{campaign}adjudicator/']")
    form.locator("select").select_option(index=0)
    form.locator("button").click()
    album.take(boss, "campaign-close", path=f"{campaign}close/")
    boss.locator("main form button").first.click()
    album.take(boss, "campaign-closed", path=campaign)
    decider = log_in(browser, link("simulated-rater-1"))
    decider.goto(f"{album.base}/rate/")
    decider.locator("main a.btn").first.click()
    album.take(decider, "decide")


@contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path(), args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


def measure() -> str:
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    with server() as found, chromium() as browser:
        addresses = json.loads(found.manage("luria_setup"))
        found.manage("demo")
        found.web_start()
        album = Album(f"http://127.0.0.1:{found.port}")
        participant(album, browser, urlsplit(addresses["survey_url"]).path)
        album.take(context_of(browser).new_page(), "welcome", path="/")
        album.take(context_of(browser).new_page(), "login", path="/login/")
        boss = log_in(browser, addresses["login_url"])
        researcher(album, boss)
        raters(album, found, browser, boss)
    index_write(album.names)
    if mogrify := shutil.which("mogrify"):  # ImageMagick: a quarter of the size, and no difference that one sees
        subprocess.run(
            [mogrify, "-colors", "64", "-define", "png:compression-level=9", *FOLDER.glob("*.png")], check=True
        )
    return f"{len(album.names)} pages, {len(list(FOLDER.glob('*.png')))} pictures"


def index_write(names: list[str]) -> None:
    lines = [
        "# Pictures of every page",
        "",
        "Made by `make bench ARGS=pictures` from a fresh demonstration study; its data are simulated.",
        "",
        "| page | Russian | | English | |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name in names:
        cells = [f"[{width}]({name}.{language}.{width}.png)" for language in LANGUAGES for width in WIDTHS]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    (FOLDER / "README.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
