"""A participant in a real browser, with everything that goes wrong on a phone: eighteen answers, one each."""

import re
from collections.abc import Callable

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, Route, ViewportSize, expect
from pytest_django.live_server_helper import LiveServer

from corpus.builtin import builtin_instrument_create, instruction_examples
from corpus.instruments import practice_add
from corpus.models import Answer, AnswerRevision, Sitting
from surveys.models import Arrival, Exposure, Participant, Survey
from surveys.question_services import question_create
from surveys.services import survey_create, survey_set_state
from tests.conftest import Cast
from tests.e2e.conftest import Person

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]

TASKS = 18


@pytest.fixture
def survey(cast: Cast, request: pytest.FixtureRequest) -> Survey:
    instrument = builtin_instrument_create(study=cast.study, actor=cast.alice)
    if getattr(request, "param", "") == "with practice":
        rows = instruction_examples()[:1]
        practice_add(instrument=instrument, seen=instrument.revision, rows=rows, actor=cast.alice)
    texts = {"consent_text": "Согласие.", "publication_text": "Публикация.", "third_party_text": "Третьи лица."}
    survey = survey_create(instrument=instrument, title="S", contact="c@example.org", actor=cast.alice, **texts)
    survey_set_state(survey=survey, state="open", actor=cast.alice)
    return survey


def begin(page: Page, survey: Survey) -> str:
    """Consent and instruction; returns the participant's address."""
    page.goto(f"/s/{survey.slug}/")
    page.get_by_role("button", name="Согласен, начать").click()
    page.get_by_role("link", name="К первому заданию").click()
    found = re.search(r"/p/[^/]+/", page.url)
    assert found
    return found[0]


def at_task(page: Page, number: int) -> None:
    expect(page.get_by_text(f"Задание {number} из {TASKS}", exact=True).first).to_be_visible()


def answer(page: Page, number: int, text: str | None = None) -> None:
    at_task(page, number)
    page.locator("#text").fill(f"ответ {number}" if text is None else text)
    page.get_by_role("button", name="Дальше").click()


def at_the_end(page: Page, survey: Survey) -> None:
    expect(page.get_by_text(survey.completion_code)).to_be_visible()


def stored() -> dict[int, str]:
    assert Sitting.objects.count() == Participant.objects.count() == 1
    assert Sitting.objects.get().state == Sitting.State.FINISHED
    assert Answer.objects.count() == TASKS
    return dict(Answer.objects.values_list("stimulus__position", "text"))


EXPECTED = {number: f"ответ {number}" for number in range(1, TASKS + 1)}


def test_it_reloads_at_every_task_goes_back_and_opens_two_tabs(person: Callable[..., Person], survey: Survey) -> None:
    one = person(width=390, language="ru")
    page = one.page
    address = begin(page, survey)
    for number in range(1, TASKS + 1):
        at_task(page, number)
        page.locator("#text").fill(f"ответ {number}")
        page.reload()
        expect(page.locator("#text")).to_have_value(f"ответ {number}")  # the draft is back, and says so
        expect(page.locator("#state")).to_contain_text("черновик восстановлен")
        if number == 6:  # back to the third, changed, and forth again
            page.get_by_role("link", name="Предыдущее задание").click()
            page.go_back()
            page.goto(f"{address}3/")
            expect(page.locator("#text")).to_have_value("ответ 3")
            answer(page, 3, "ответ 3, исправленный")
            at_task(page, 4)
            page.goto(f"{address}6/")
            expect(page.locator("#text")).to_have_value("ответ 6")
        if number == 9:  # a second tab sends the first task as it stands
            second = one.context.new_page()
            second.goto(f"{address}1/")
            expect(second.locator("#text")).to_have_value("ответ 1")
            second.get_by_role("button", name="Дальше").click()
            at_task(second, 2)
            second.close()
        page.get_by_role("button", name="Дальше").click()
    at_the_end(page, survey)
    assert stored() == EXPECTED | {3: "ответ 3, исправленный"}
    assert list(AnswerRevision.objects.values_list("text", flat=True)) == ["ответ 3"]
    assert Arrival.objects.count() == 1
    kept = page.evaluate("Object.keys(localStorage).filter((name) => name.startsWith('luria-draft'))")
    assert kept == []  # cleared on submit


def test_ten_seconds_without_a_connection_cost_nothing(person: Callable[..., Person], survey: Survey) -> None:
    one = person(width=390, language="ru")
    page = one.page
    page.clock.install()
    begin(page, survey)
    for number in range(1, 8):
        answer(page, number)
    at_task(page, 8)
    one.context.set_offline(True)
    page.locator("#text").fill("ответ 8")
    page.get_by_role("button", name="Дальше").click()
    expect(page.locator("#state")).to_contain_text("Нет связи")
    page.clock.run_for(10_000)  # ten seconds by the page's clock, in which it tries again and again
    expect(page.locator("#state")).to_contain_text("Нет связи")
    expect(page.locator("#text")).to_have_value("ответ 8")
    assert Answer.objects.count() == 7
    one.context.set_offline(False)
    page.clock.run_for(5_000)
    for number in range(9, TASKS + 1):
        answer(page, number)
    at_the_end(page, survey)
    assert stored() == EXPECTED
    eighth = Exposure.objects.get(stimulus__position=8)
    assert eighth.duration_ms is not None and eighth.device == "desktop" and eighth.translated is False
    one.complaints[:] = [text for text in one.complaints if "ERR_INTERNET_DISCONNECTED" not in text]


def test_a_slow_server_and_an_impatient_finger(person: Callable[..., Person], survey: Survey) -> None:
    page = person(language="ru").page
    posts: list[str] = []

    def slowly(route: Route) -> None:
        if route.request.method == "POST":
            posts.append(route.request.url)
            page.wait_for_timeout(100)  # the server thinks; no clock is asserted
        route.continue_()

    begin(page, survey)
    page.route(re.compile(r"/p/[^/]+/\d+/"), slowly)
    for number in range(1, TASKS + 1):
        at_task(page, number)
        page.locator("#text").fill(f"ответ {number}")
        page.locator("#task").evaluate("(form) => { form.requestSubmit(); form.requestSubmit(); }")
    at_the_end(page, survey)
    assert len(posts) > TASKS  # some were sent twice
    assert stored() == EXPECTED and not AnswerRevision.objects.exists()


def test_without_javascript(browser: Browser, live_server: LiveServer, survey: Survey) -> None:
    size: ViewportSize = {"width": 390, "height": 800}
    context = browser.new_context(base_url=live_server.url, locale="ru", java_script_enabled=False, viewport=size)
    page = context.new_page()
    begin(page, survey)
    for number in range(1, TASKS + 1):
        answer(page, number)
    at_the_end(page, survey)
    context.close()
    assert stored() == EXPECTED
    assert not Exposure.objects.exclude(duration_ms=None).exists()  # not measured, so unknown


def test_without_cookies(person: Callable[..., Person], survey: Survey) -> None:
    one = person(language="ru")

    def no_cookies(route: Route) -> None:
        headers = {name: value for name, value in route.request.headers.items() if name != "cookie"}
        route.continue_(headers=headers)
        one.context.clear_cookies()

    one.page.route("**/*", no_cookies)
    begin(one.page, survey)
    for number in range(1, TASKS + 1):
        answer(one.page, number)
    at_the_end(one.page, survey)
    assert stored() == EXPECTED


def test_what_happened_on_the_page_is_recorded(person: Callable[..., Person], survey: Survey) -> None:
    page = person(language="ru").page
    page.clock.install()
    begin(page, survey)
    at_task(page, 1)
    page.clock.run_for(2_000)
    page.locator("#text").press_sequentially("ы")
    page.clock.run_for(1_000)
    page.evaluate("window.dispatchEvent(new Event('blur'))")
    page.clock.run_for(4_000)
    page.evaluate("window.dispatchEvent(new Event('focus'))")
    page.evaluate(
        """() => {
            const data = new DataTransfer();
            data.setData("text", "двенадцать!!");
            const paste = new ClipboardEvent("paste", { clipboardData: data, bubbles: true });
            document.getElementById("text").dispatchEvent(paste);
            document.documentElement.classList.add("translated-ltr");
        }"""
    )
    page.reload()  # measuring goes on where it was
    expect(page.locator("#text")).to_have_value("ы")
    page.clock.run_for(1_000)
    page.evaluate("document.documentElement.classList.add('translated-ltr')")
    page.get_by_role("button", name="Дальше").click()
    at_task(page, 2)
    exposure = Exposure.objects.get(stimulus__position=1)
    assert exposure.first_key_ms is not None and exposure.first_key_ms >= 2_000
    assert exposure.away_ms is not None and exposure.away_ms >= 4_000
    assert exposure.duration_ms is not None and exposure.duration_ms >= exposure.first_key_ms + 5_000
    assert (exposure.pastes, exposure.pasted_characters, exposure.translated) == (1, 12, True)


@pytest.mark.parametrize("survey", ["with practice"], indirect=True)
@pytest.mark.parametrize("width", [390, 1280])
def test_participant_pages_have_no_violation(person: Callable[..., Person], survey: Survey, width: int) -> None:
    for place, kind, more in (
        ("before", "single", {"options": [{"value": v, "text": {"ru": v}} for v in ("a", "b")], "required": True}),
        ("before", "multiple", {"options": [{"value": v, "text": {"ru": v}} for v in ("a", "b")]}),
        ("before", "scale", {"minimum": 1, "maximum": 5, "end_labels": {"low": {"ru": "мало"}}}),
        ("between", "number", {"after_task": 1}),
        ("after", "short", {}),
        ("after", "long", {}),
    ):
        code = f"{place}-{kind}"
        question_create(survey=survey, actor=None, code=code, place=place, kind=kind, text={"ru": "Вопрос?"}, **more)
    one = person(width=width, language="ru")
    page, seen = one.page, []

    def check(name: str, heading: str) -> None:
        expect(page.get_by_role("heading", name=heading or None).first).to_be_visible()
        found = Axe().run(page).response["violations"]
        seen.append(name)
        assert [(name, rule["id"], [node["html"] for node in rule["nodes"]]) for rule in found] == []

    page.goto(f"/s/{survey.slug}/")
    check("consent", "Участие в исследовании")
    page.get_by_text("Что именно").first.click()
    check("consent, opened", "Участие в исследовании")
    page.get_by_role("button", name="Согласен, начать").click()
    page.get_by_role("button", name="Дальше").click()
    check("questions, refused", "Несколько вопросов")
    page.get_by_label("a").first.check()
    page.get_by_role("button", name="Дальше").click()
    check("instruction", "Инструкция")
    page.get_by_role("link", name="К тренировке").click()
    check("practice", "Тренировка 1")
    page.locator("#text").fill("кошка сидит на столе")
    page.get_by_role("button", name="Проверить").click()
    check("practice, compared", "Сравните")
    page.get_by_role("link", name="К заданиям").click()
    at_task(page, 1)
    check("task", "Задание 1")
    page.get_by_text("Инструкция").click()
    page.get_by_role("button", name="Дальше").click()
    expect(page.get_by_role("alert")).to_be_visible()
    check("task, refused", "Задание 1")
    answer(page, 1)
    check("question in between", "Вопрос между")
    page.get_by_role("button", name="Дальше").click()
    at_task(page, 2)
    page.get_by_role("link", name="Выйти из исследования").click()
    check("leave", "Выйти")
    page.get_by_role("link", name="Продолжить тест").click()
    for number in range(2, TASKS + 1):
        answer(page, number)
    check("last questions", "Все задания")
    page.get_by_role("button", name="Дальше").click()
    at_the_end(page, survey)
    check("end", "Спасибо")
    address = page.url.removesuffix("end/")
    receipt = Participant.objects.get()
    page.goto("/withdraw/")
    check("withdraw", "")
    page.locator("input[name=code]").fill("AAAA AAAA")
    page.get_by_role("button", name="Продолжить").click()
    check("withdraw, refused", "")
    page.goto(f"{address}withdraw/")
    check("withdraw by the own link", "Удалить")
    page.get_by_role("button", name="Удалить мои ответы").click()
    expect(page.get_by_role("heading", name="удалены")).to_be_visible()
    check("withdrawn", "удалены")
    receipt.refresh_from_db()
    assert receipt.withdrawn_at is not None
    page.goto("/p/" + "x" * 43 + "/")
    check("wrong link", "Ссылка не")
    assert len(seen) == 17
    one.complaints[:] = [text for text in one.complaints if not re.search("status of (404|422)", text)]
