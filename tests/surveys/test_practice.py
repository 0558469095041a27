"""Practice: between the instruction and the tasks, with feedback, outside of all that counts."""

import pytest
from django.test import Client

from corpus.importing import StimulusRow
from corpus.instruments import practice_add
from corpus.models import Answer, Instrument, Sitting
from reports.withdrawal import Way, participant_withdraw
from scoring.services import paper_rubric, rules_apply
from studies.services import blinding_impose
from surveys.models import PracticeAnswer, Survey
from tests.conftest import Cast
from tests.surveys.conftest import Visitor

ROWS = [
    StimulusRow(1, "заяц бежать", "заяц бежит", "easy", False, True, "Изменилась форма <b>слова</b>."),
    StimulusRow(2, "волк выть", "волк воет", "easy", False, True),
]


@pytest.fixture
def practised(survey: Survey) -> Visitor:
    practice_add(instrument=survey.instrument, seen=1, rows=ROWS, actor=None)
    visitor = Visitor(survey)
    visitor.client.cookies["luria_language"] = "en"
    return visitor.start()


def post(visitor: Visitor, number: int, **data: str):
    return visitor.client.post(f"{visitor.address}practice/{number}/", data)


def shown(visitor: Visitor, tail: object = "") -> str:
    response = visitor.get(tail)
    assert response.status_code == 200, response.status_code
    return response.content.decode()


def test_practice_comes_after_the_instruction_with_feedback_and_then_the_tasks(practised: Visitor) -> None:
    first = f"{practised.address}practice/1/"
    page = shown(practised)
    assert f'href="{first}"' in page and "2 tasks for practice" in page and "There are 3 tasks" in page
    page = shown(practised, "practice/1")
    assert "Practice 1 of 2" in page and "заяц бежать" in page
    assert "заяц бежит" not in page  # not before the person has tried
    response = post(practised, 1, text="заяц бежал\r\nбыстро")
    assert response.status_code == 302 and response["Location"] == first
    page = shown(practised, "practice/1")
    assert "заяц бежал\nбыстро" in page and "заяц бежит" in page
    assert "Изменилась форма &lt;b&gt;слова&lt;/b&gt;." in page
    assert f'href="{practised.address}practice/2/"' in page
    post(practised, 2, declined="1")
    page = shown(practised, "practice/2")
    assert "that you cannot make a sentence" in page and f'href="{practised.address}1/"' in page
    page = shown(practised)  # the instruction once more: now straight on, and practice to look at again
    assert f'href="{practised.address}1/"' in page and "See the practice again" in page and f'href="{first}"' in page


def test_what_is_kept_is_no_answer_and_counts_nowhere(cast: Cast, practised: Visitor) -> None:
    post(practised, 1, text="заяц бежал")
    assert list(PracticeAnswer.objects.values_list("number", "text")) == [(1, "заяц бежал")]
    assert not Answer.objects.exists() and len(practised.sitting.order) == 3
    for number in (1, 2, 3):
        practised.answer(number, "ответ из пяти слов здесь")
    assert practised.sitting.state == Sitting.State.FINISHED
    assert rules_apply(study=cast.study, rubric=paper_rubric()) == 6  # three answers, two rules
    exported = cast.client(cast.alice).get("/studies/ours/exports/answers.csv")
    text = b"".join(exported.streaming_content).decode()
    assert "ответ из пяти" in text and "заяц" not in text


def test_a_look_keeps_nothing_and_a_double_click_keeps_one(practised: Visitor) -> None:
    for _ in range(2):
        shown(practised, "practice/1")
        practised.client.head(f"{practised.address}practice/1/")
    assert not PracticeAnswer.objects.exists()
    for _ in range(2):
        post(practised, 1, text="заяц бежал")
    assert PracticeAnswer.objects.count() == 1
    page = practised.client.get(f"{practised.address}practice/1/", {"again": 1}).content.decode()
    assert "заяц бежал</textarea>" in page and "One right answer" not in page
    post(practised, 1, text="заяц бежит")
    assert list(PracticeAnswer.objects.order_by("number").values_list("number", "text")) == [
        (1, "заяц бежал"), (2, "заяц бежит"),
    ]  # fmt: skip


def test_practice_never_blocks(practised: Visitor) -> None:
    assert practised.get("1").status_code == 200  # straight to the first task
    practised.answer(1, "ответ")
    page = shown(practised, "practice/1")  # and back to practice in the middle
    assert f'href="{practised.address}2/">Skip the practice' in page  # to where the person is
    assert practised.get()["Location"] == f"{practised.address}2/"


def test_it_works_without_cookies(practised: Visitor) -> None:
    bare = Client(enforce_csrf_checks=True)
    response = bare.post(f"{practised.address}practice/1/", {"text": "заяц"})
    assert response.status_code == 302
    assert "заяц бежит" in Client().get(response["Location"]).content.decode()


@pytest.mark.parametrize(
    ("text", "message"),
    [(" ", "Nothing is written"), ("я" * 2001, "too long"), ("за\x00яц", "cannot be stored")],
)
def test_what_cannot_be_kept_is_said_and_not_lost(practised: Visitor, text: str, message: str) -> None:
    response = post(practised, 1, text=text)
    page = response.content.decode()
    assert response.status_code == 422 and message in page
    assert text.replace("\x00", "") + "</textarea>" in page
    assert not PracticeAnswer.objects.exists()


def test_after_the_end_nothing_is_kept(practised: Visitor) -> None:
    practised.client.post(f"{practised.address}leave/")
    response = post(practised, 1, text="заяц")
    assert response["Location"] == f"{practised.address}end/" and not PracticeAnswer.objects.exists()
    assert practised.get("practice/1")["Location"] == f"{practised.address}end/"


@pytest.mark.parametrize("number", [0, 3, 10**12])
def test_a_number_that_is_not_there_leads_back(practised: Visitor, number: int) -> None:
    assert practised.get(f"practice/{number}")["Location"] == practised.address
    assert post(practised, number, text="заяц")["Location"] == practised.address


def test_a_wrong_secret_finds_nothing(practised: Visitor) -> None:
    response = Client().post(f"/p/{'0' * 43}/practice/1/", {"text": "заяц"})
    assert response.status_code == 404 and not PracticeAnswer.objects.exists()


def test_without_practice_the_instruction_leads_to_the_first_task(visitor: Visitor) -> None:
    page = shown(visitor)
    assert f'href="{visitor.address}1/"' in page and "practice" not in page.lower()
    assert visitor.get("practice/1")["Location"] == visitor.address


def test_the_researcher_sees_first_tries_but_not_while_rating(cast: Cast, practised: Visitor) -> None:
    other = Visitor(practised.survey).start()
    post(practised, 1, text="заяц бежал")
    post(practised, 1, text="заяц бежит")
    post(other, 1, declined="1")
    address = f"/studies/ours/instruments/{practised.survey.instrument_id}/practice/"
    page = cast.client(cast.alice).get(address).content.decode()
    assert "2 participants" in page and "1 could not make a sentence" in page and "заяц бежал" in page
    assert page.count("заяц бежит") == 1  # the original; the second try, after the feedback, says nothing
    Sitting.objects.filter(pk=practised.sitting.pk).update(standing="withdrawn")
    assert "заяц бежал" not in cast.client(cast.alice).get(address).content.decode()
    blinding_impose(user=cast.alice, study=cast.study, cause="campaign 1")
    assert cast.client(cast.alice).get(address).status_code == 403


def test_a_withdrawal_takes_practice_with_it(practised: Visitor) -> None:
    post(practised, 1, text="заяц бежал к маме")
    participant_withdraw(participant_id=practised.visit.participant_id, way=Way.REQUEST)
    assert list(PracticeAnswer.objects.values_list("text", flat=True)) == [""]
    post(practised, 1, text="заяц бежал ещё")  # from a tab that was still open
    assert list(PracticeAnswer.objects.values_list("text", flat=True)) == [""]


# --- preview ---------------------------------------------------------------------------------------------------------


def test_a_preview_is_the_participants_pages_and_keeps_nothing(cast: Cast, instrument: Instrument) -> None:
    practice_add(instrument=instrument, seen=1, rows=ROWS, actor=None)
    alice = cast.client(cast.alice)
    alice.cookies["luria_language"] = "en"
    root = f"/p/preview-{instrument.pk}/"
    page = alice.get(root).content.decode()
    assert "nothing is stored" in page and "There are 3 tasks" in page and f'href="{root}practice/1/"' in page
    assert "заяц бежит" not in alice.get(f"{root}practice/1/").content.decode()
    page = alice.post(f"{root}practice/1/", {"text": "мой <заяц>"}).content.decode()
    assert "мой &lt;заяц&gt;" in page and "заяц бежит" in page and f'href="{root}practice/2/"' in page
    assert alice.post(f"{root}practice/1/", {"text": ""}).status_code == 422
    for number in (1, 2, 3):
        page = alice.get(f"{root}{number}/").content.decode()
        assert f"Task {number} of 3" in page and "nothing is stored" in page
        assert "task.js" not in page  # which would keep a draft in the browser
        assert alice.post(f"{root}{number}/", {"text": ""}).status_code == 422
        onward = alice.post(f"{root}{number}/", {"text": "ответ"})["Location"]
        assert onward == (f"{root}{number + 1}/" if number < 3 else f"{root}end/")
    assert "nothing is stored" in alice.get(f"{root}end/").content.decode()
    left = alice.post(f"{root}leave/")["Location"]
    assert "You have left the study" in alice.get(left).content.decode()
    instrument.refresh_from_db()
    assert instrument.state == "draft"
    assert not (Sitting.objects.exists() or Answer.objects.exists() or PracticeAnswer.objects.exists())


def test_a_preview_is_for_the_studys_researchers(cast: Cast, instrument: Instrument) -> None:
    for tail in ("", "1/", "practice/1/", "end/", "leave/"):
        address = f"/p/preview-{instrument.pk}/{tail}"
        for user in (cast.bob, cast.rita):
            assert cast.client(user).get(address).status_code == 404
            assert cast.client(user).post(address, {"text": "x"}).status_code in (404, 405)
        assert Client().get(address)["Location"].startswith("/login/")


def test_an_instrument_without_tasks_is_previewed_too(cast: Cast, instrument: Instrument) -> None:
    instrument.stimuli.all().delete()
    alice = cast.client(cast.alice)
    root = f"/p/preview-{instrument.pk}/"
    assert alice.get(root).status_code == 200
    assert alice.get(f"{root}1/")["Location"] == f"{root}end/"
