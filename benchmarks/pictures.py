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
TALLEST_OF = {"results": 5_000, "results-classifier": 5_000}  # their figures are drawn further down
NOT_FOUND = ("not-found", "participant-wrong-link")  # the pages that are meant to be so
DRAWN = "[...document.querySelectorAll('[data-vega]')].every((place) => place.querySelector('svg, img'))"

# For a shell in the server's environment: a survey with practice and questions in the demonstration study.
ASKING_SURVEY = """
from corpus.builtin import instruction_examples, study_text
from corpus.instruments import instrument_copy, practice_add
from studies.models import Study
from surveys.question_services import question_create
from surveys.services import survey_create, survey_set_state
study = Study.objects.get(slug="demo")
first = study.instruments.get()
draft = instrument_copy(instrument=first, study=study, slug=first.slug, title=first.title, actor=None)
practice_add(instrument=draft, seen=draft.revision, rows=instruction_examples(), actor=None)
texts = {"consent_text": "consent.ru.md", "publication_text": "consent.publication.ru.md"}
texts |= {"third_party_text": "consent.third_parties.ru.md"}
survey = survey_create(
    instrument=draft, title="Prolific", contact="A. Researcher, researcher@example.org", platform="prolific",
    completion_code="C1A2B3C4", quota=120, actor=None, **{name: study_text(file) for name, file in texts.items()},
)
def ask(place, code, kind, ru, en, **more):
    question_create(survey=survey, actor=None, place=place, code=code, kind=kind, text={"ru": ru, "en": en}, **more)
def options(*values):
    return [{"value": value, "text": {"ru": ru, "en": en}} for value, ru, en in values]
ask("before", "age", "number", "Сколько вам лет?", "How old are you?", minimum=18, maximum=99, required=True)
ask("before", "native", "single", "Русский язык для вас родной?", "Is Russian your first language?", required=True,
    options=options(("yes", "да", "yes"), ("no", "нет", "no")), screens_out=["no"])
ask("before", "languages", "multiple", "На каких ещё языках вы говорите?", "Which other languages do you speak?",
    options=options(("en", "английский", "English"), ("tt", "татарский", "Tatar"), ("other", "другие", "others")))
ask("between", "check", "short", "Напишите здесь слово «река».", "Write the word “река” here.", after_task=1,
    expected="река", required=True)
ask("after", "tired", "scale", "Насколько вы устали?", "How tired are you?", minimum=1, maximum=5,
    end_labels={"low": {"ru": "совсем нет", "en": "not at all"}, "high": {"ru": "очень", "en": "very"}})
survey_set_state(survey=survey, state="open", actor=None)
print(survey.slug, survey.pk, draft.pk)
"""
# Likewise: the address of the comparison of prompts; there is one prompt, so it stands beside itself.
PROMPTS = """
from llmruns.models import Prompt
prompt = Prompt.objects.filter(study__slug="demo", purpose=Prompt.Purpose.ANSWER).first()
instrument = prompt.study.instruments.order_by("pk").first()
print(f"first={prompt.pk}&second={prompt.pk}&instrument={instrument.pk}")
"""
# Likewise: a link that lets a simulated rater in.
RATER_LINK = """
from studies.models import Study, User
from studies.services import invitation_create
from django.conf import settings
study = Study.objects.get(slug="demo")
user = User.objects.get(username="{name}")
print(settings.PUBLIC_URL + "/join/" + invitation_create(study=study, role="rater", actor=None, user=user)[1] + "/")
"""


# The first row of a list; and of the demonstration's two campaigns the one that raters have worked on.
FIRST = "main table a, main h2 a, main li a"
RATED = "main table tr:last-child a"


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
            answer = page.goto(address)
            if answer is None or (answer.status in (403, 404, 500) and name not in NOT_FOUND):
                raise RuntimeError(f"{name}: {address} answers {answer and answer.status}.")
            for width, pixels in WIDTHS.items():
                self.shoot(page, f"{name}.{language}.{width}", pixels)
        self.names.append(name)

    def take_unsent(self, page: Page, name: str, language: str, width: str) -> None:
        """A page as somebody has filled it in, which a reload would empty."""
        self.shoot(page, f"{name}.{language}.{width}", WIDTHS[width])

    def shoot(self, page: Page, name: str, pixels: int) -> None:
        page.set_viewport_size({"width": pixels, "height": 800})
        page.wait_for_load_state("networkidle")
        page.wait_for_function(DRAWN)
        tallest = TALLEST_OF.get(name.partition(".")[0], TALLEST)
        height = min(tallest, page.evaluate("document.documentElement.scrollHeight"))
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
                    page.get_by_role("alert").wait_for()
                    album.take_unsent(page, "participant-nothing-written", language, width)
            album.names += ["participant-draft", "participant-nothing-written"]
            album.take(page, "participant-leave", path=f"{own}leave/")
            page.goto(f"{album.base}{own}5/")
        page.locator("#text").fill("кошка сидит на столе и играет с мячом")
        page.locator("#task button").first.click()
        page.wait_for_url(lambda address, own=f"/{number}/": not address.endswith(own))  # type: ignore[misc]
    album.take(page, "participant-end")
    album.take(page, "withdraw", path="/withdraw/")
    album.take(page, "withdraw-own", path=f"{own}withdraw/")
    album.take(page, "participant-wrong-link", path="/p/copied-incompletely/")


def asked_participant(album: Album, browser: Browser, survey: str) -> None:
    """Somebody from Prolific, through questions and practice."""
    page = context_of(browser).new_page()
    album.take(page, "participant-nameless", path=survey)
    link = f"{survey}?PROLIFIC_PID=5af0000000000000000f0001&SESSION_ID=6600aa0000000000b0000001"
    album.take(page, "participant-consents", path=link)
    page.locator("main form button").last.click()
    own = urlsplit(page.url).path.removesuffix("questions/before/")
    album.take(page, "participant-questions")
    page.locator("input[inputmode=numeric]").fill("31")
    page.locator("input[type=radio]").first.check()
    page.locator("main form button").last.click()
    album.take(page, "participant-instruction-practice")
    album.take(page, "participant-practice", path=f"{own}practice/1/")
    page.locator("#text").fill("кошка сидит за столом и играет с мячом")
    page.locator("main form button").first.click()
    album.take(page, "participant-practice-compared", path=f"{own}practice/1/")
    page.goto(f"{album.base}{own}1/")
    page.locator("#text").fill("и добавил бы пару нехитрых мыслей")
    page.context.set_offline(True)
    page.locator("#task button").first.click()
    page.locator(".unsent").wait_for()
    for language in LANGUAGES:  # as it is, in whichever language: a reload would need the connection
        for width in WIDTHS:
            album.take_unsent(page, "participant-offline", language, width)
    album.names.append("participant-offline")
    page.context.set_offline(False)
    page.wait_for_url("**/questions/1/")
    album.take(page, "participant-question-between")


def researcher(album: Album, page: Page, asking: str, draft: str, prompts: str) -> None:
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
        "campaign-count": f"{demo}campaigns/new/?title=Пилот&raters_per_answer=3&seed=7&sample=180&repeat_percent=5"
        "&repeat_distance=20",
        "judgement-imports": f"{demo}campaigns/imports/",
        "judgement-upload": f"{demo}campaigns/imports/new/",
        "guideline-list": f"{demo}guidelines/",
        "guideline-new": f"{demo}guidelines/new/",
        "results": f"{demo}results/",
        "results-answers": f"{demo}results/answers/",
        "results-errors": f"{demo}results/errors/",
        "judge-comparison": f"{demo}judges/",
        "classifier-list": f"{demo}classifiers/",
        "classifier-new": f"{demo}classifiers/new/",
        "judging-list": f"{demo}judgings/",
        "judging-new": f"{demo}judgings/new/",
        "judge-prompt-list": f"{demo}judgings/prompts/",
        "prompt-list": f"{demo}prompts/",
        "prompt-compare": f"{demo}prompts/compare/?{prompts}",
        "reply-imports": f"{demo}experiments/imports/",
        "reply-upload": f"{demo}experiments/imports/new/",
        "exports": f"{demo}exports/",
        "release-list": f"{demo}releases/",
        "release-new": f"{demo}releases/new/",
        "release": f"{demo}releases/1/",
        "instrument-list": f"{demo}instruments/",
        "instrument-new": f"{demo}instruments/new/",
        "instrument": f"{demo}instruments/{draft}/",
        "composition-list": f"{demo}compositions/",
        "composition-new": f"{demo}compositions/new/",
        "survey-edit": f"{demo}surveys/{asking}/edit/",
        "survey-preview": f"{demo}surveys/{asking}/preview/",
        "survey-asking": f"{demo}surveys/{asking}/",
        "question-list": f"{demo}surveys/{asking}/questions/",
        "import-list": f"{demo}imports/",
        "import-new": f"{demo}imports/new/",
        "flow": f"{demo}flow/",
        "not-found": "/studies/somebody-elses/",
    }.items():
        album.take(page, name, path=path)
    for name, page_of, link in (
        ("survey", f"{demo}surveys/", FIRST),
        ("experiment", f"{demo}experiments/", FIRST),
        ("campaign", f"{demo}campaigns/", RATED),
        ("classifier", f"{demo}classifiers/", FIRST),
        ("judging", f"{demo}judgings/", FIRST),
    ):
        page.goto(album.base + page_of)
        page.locator(link).first.click()
        page.wait_for_url(lambda address, of=page_of: not address.endswith(of))  # type: ignore[misc]
        album.take(page, name)
        own = urlsplit(page.url).path
        if name == "survey":
            album.take(page, "survey-watch", path=f"{own}watch/")
            album.take(page, "survey-exclusion", path=f"{own}exclusion/")
        if name == "experiment":
            page.locator("a[href*='/runs/']").first.click()
            album.take(page, "run")
            album.take(page, "call-list", path=f"{own}calls/")
            page.locator("a[href*='/calls/']:not([href$='/calls/'])").first.click()
            album.take(page, "call")
        if name == "campaign":
            references(album, page, f"{demo}references/")
            album.take(page, "campaign-answers", path=f"{own}answers/")
            album.take(page, "campaign-agreement", path=f"{own}agreement/?dawid_skene=1")
            album.take(page, "campaign-quality", path=f"{own}quality/")
        if name == "judging":
            album.take(page, "judging-agreement", path=f"{own}agreement/")
    page.goto(f"{album.base}{demo}results/")
    baseline = (
        page.locator(".form-check", has_text="baseline").locator("input[name=judge]").first.get_attribute("value")
    )
    album.take(page, "results-classifier", path=f"{demo}results/?basis=judges-{baseline}&runs=majority")


def references(album: Album, page: Page, path: str) -> None:
    """Two answers are made references; then the list of them."""
    album.take(page, "reference-answers", path=f"{path}answers/")
    for purpose, explanation in (("training", "Так говорят, хотя и редко."), ("gold", "")):
        page.goto(f"{album.base}{path}answers/")
        page.locator("main td a[href*='/references/answers/']").first.click()
        if explanation:
            album.take(page, "reference-new")
        page.locator(f"input[name=purpose][value={purpose}]").check()
        for code in ("grammatical", "logical", "order"):
            page.locator(f"input[name=c-{code}]").first.check()
        page.locator("textarea").fill(explanation)
        page.locator("main form button.btn-primary").click()
        page.locator("main nav, main .nav").first.wait_for()
    album.take(page, "reference-list", path=path)
    page.locator("main section a").first.click()
    album.take(page, "reference")


def judge_campaign(judge: Page) -> int:
    """The campaign of the judging page that is open."""
    return int(json.loads(judge.locator("#judging").text_content() or "{}")["campaign"]["id"])


def judge_some(judge: Page, keys: tuple[str, ...]) -> None:
    """Three answers, from the rater's home; the page of the fourth is left open."""
    judge.locator("main form button").first.click()
    judge.wait_for_load_state("networkidle")
    for key in (*keys, "Enter") * 3:
        judge.keyboard.press(key)
        judge.wait_for_load_state("networkidle")


def raters(album: Album, found: Server, browser: Browser, boss: Page) -> None:
    def link(name: str) -> str:
        return found.manage("shell", "-v0", "-c", RATER_LINK.format(name=name)).strip()

    page = context_of(browser).new_page()
    album.take(page, "join", path=urlsplit(link("simulated-rater-2")).path)
    judge = log_in(browser, link("simulated-rater-3"))
    album.take(judge, "rate-home", path="/rate/")
    judge_some(judge, ("Digit1", "KeyQ", "KeyA"))
    album.take(judge, "rate-place")
    own = judge_campaign(judge)
    album.take(judge, "rate-mine", path=f"/rate/c/{own}/mine/")
    other = log_in(browser, link("simulated-rater-2"))
    other.goto(f"{album.base}/rate/")
    judge_some(other, ("Digit2", "KeyQ", "KeyS"))  # so that there is something to decide
    boss.goto(f"{album.base}/studies/demo/campaigns/")
    boss.locator(RATED).click()
    boss.wait_for_url("**/campaigns/*/")
    album.take(boss, "campaign-closed")
    album.take(boss, "campaign-labels", path=f"{urlsplit(boss.url).path}labels/")
    campaign = f"/studies/demo/campaigns/{own}/"
    boss.goto(album.base + campaign)
    form = boss.locator(f"form[action='{campaign}adjudicator/']")
    rater = form.locator("select option", has_text="simulated-rater-1").get_attribute("value")
    form.locator("select").select_option(rater)
    form.locator("button").click()
    boss.wait_for_load_state("networkidle")
    album.take(boss, "campaign-close", path=f"{campaign}close/")
    boss.locator("main form button").first.click()
    boss.wait_for_load_state("networkidle")
    decider = log_in(browser, link("simulated-rater-1"))
    decider.goto(f"{album.base}/rate/")
    decider.locator("main a.btn").first.click()
    album.take(decider, "decide")
    for key in ("Digit1", "KeyQ", "KeyA"):  # the first value of each criterion that is undecided
        decider.keyboard.press(key)
    decider.locator("input[name=reason]").fill("обычный порядок слов")
    decider.locator("main form button.btn-primary").click()
    album.take(decider, "decided", path=f"/rate/c/{own}/decided/")


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
        found.manage("release", "--study", "demo", "--out", str(found.place.data / "demo.zip"))
        found.web_start()
        album = Album(f"http://127.0.0.1:{found.port}")
        participant(album, browser, urlsplit(addresses["survey_url"]).path)
        slug, asking, draft = found.manage("shell", "-v0", "-c", ASKING_SURVEY).split()
        asked_participant(album, browser, f"/s/{slug}/")
        album.take(context_of(browser).new_page(), "welcome", path="/")
        album.take(context_of(browser).new_page(), "login", path="/login/")
        boss = log_in(browser, addresses["login_url"])
        researcher(album, boss, asking, draft, found.manage("shell", "-v0", "-c", PROMPTS).strip())
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
