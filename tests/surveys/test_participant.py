from uuid import uuid4

import pytest
from django.db.models import QuerySet
from django.test import Client

from corpus.models import Answer, Respondent, Sitting
from corpus.services import instrument_create
from surveys.models import Consent, Exposure, Participant, Survey
from surveys.services import exposure_begin, survey_create, survey_set_state
from tests.surveys.conftest import Visitor, agreeing

pytestmark = pytest.mark.django_db


def test_it_walks_from_consent_to_thanks(survey: Survey) -> None:
    visitor = Visitor(survey)
    assert "I agree." in visitor.client.get(f"/s/{survey.slug}/").content.decode()
    visitor.start()
    assert "Составьте предложение." in visitor.get().content.decode()
    page = visitor.get(1).content.decode()
    assert "кошка сидеть на стол" in page and 'lang="ru"' in page and 'translate="no"' in page
    assert visitor.answer(1, "кошка сидит на столе", timing='{"duration": 1234}')["Location"] == f"{visitor.address}2/"
    assert visitor.answer(2, declined="1")["Location"] == f"{visitor.address}3/"
    assert visitor.answer(3, "дети были счастливы")["Location"] == f"{visitor.address}end/"
    assert survey.completion_code in visitor.get("end").content.decode()

    sitting = visitor.sitting
    assert sitting.state == Sitting.State.FINISHED and sitting.finished_at is not None
    assert sitting.respondent.kind == Respondent.Kind.HUMAN
    outcomes = list(
        Answer.objects.filter(sitting=sitting).order_by("stimulus__position").values_list("outcome", "text")
    )
    assert outcomes == [("given", "кошка сидит на столе"), ("declined", ""), ("given", "дети были счастливы")]
    consent = Consent.objects.get(participant__respondent=sitting.respondent)
    assert consent.document.text == "I agree."
    first = Exposure.objects.get(sitting=sitting, stimulus__position=1)
    assert first.duration_ms == 1234
    assert first.submitted_at is not None and first.onset_at <= first.submitted_at


def test_looking_at_the_link_starts_nothing(survey: Survey) -> None:
    client = Client()
    assert client.get(f"/s/{survey.slug}/").status_code == 200
    assert client.head(f"/s/{survey.slug}/").status_code == 200
    assert not Participant.objects.exists() and not Sitting.objects.exists()


def test_a_double_click_on_consent_starts_once(survey: Survey) -> None:
    key = uuid4()
    addresses = {Visitor(survey).start(key).address for _ in range(2)}
    assert len(addresses) == 1 and Participant.objects.count() == 1 and Sitting.objects.count() == 1


def test_a_closed_browser_resumes_where_it_was(survey: Survey) -> None:
    visitor = Visitor(survey).start()
    visitor.answer(1, "кошка сидит на столе")
    assert visitor.client.get(f"/s/{survey.slug}/")["Location"] == visitor.address  # by cookie
    assert Client().get(visitor.address)["Location"] == f"{visitor.address}2/"  # by address, without cookies
    second = visitor.client.post(f"/s/{survey.slug}/", agreeing(survey))
    assert second["Location"] == visitor.address and Participant.objects.count() == 1


def test_sg2_refresh_back_and_second_tab(cast, stimuli_18) -> None:
    """Scenario SG2, on eighteen tasks."""
    instrument = instrument_create(
        study=cast.study, slug="full", title="Full", language="ru", instruction="…", stimuli=stimuli_18, actor=None
    )
    survey = survey_create(instrument=instrument, title="S", contact="c", consent_text="t", actor=None)
    survey_set_state(survey=survey, state="open", actor=None)
    survey.refresh_from_db()
    visitor = Visitor(survey).start()
    for number in range(1, 6):
        visitor.answer(number, f"ответ {number}", seen="0")
    reloaded = visitor.get(6).content.decode()  # half an answer was typed; F5
    assert "Ответ сохраняется, когда вы нажимаете «Дальше»" in reloaded
    stale_third = {"text": "ответ 3", "seen": "1"}  # a tab that shows task 3 as it was
    assert 'name="seen" value="1"' in visitor.get(3).content.decode()
    visitor.answer(3, "ответ 3, исправленный", seen="1")
    # The second tab: task 1 as it stands, sent untouched; task 6 opened before it was answered, sent empty; and the
    # outdated page of task 3, sent untouched.
    visitor.answer(1, "ответ 1", seen="1")
    visitor.answer(6, "ответ 6", seen="0")
    assert visitor.answer(6, "", seen="0").status_code == 422
    visitor.client.post(f"{visitor.address}3/", stale_third)
    for number in range(7, 19):
        visitor.answer(number, f"ответ {number}", seen="0")

    expected = {number: f"ответ {number}" for number in range(1, 19)} | {3: "ответ 3, исправленный"}
    assert visitor.texts() == expected
    assert list(visitor.sitting.answers.get(stimulus__position=3).revisions.values_list("text", flat=True)) == [
        "ответ 3"
    ]
    again = visitor.client.get(f"/s/{survey.slug}/", follow=True)
    assert again.redirect_chain[-1][0].endswith("/end/")
    assert Sitting.objects.count() == 1 and Participant.objects.count() == 1


def test_after_the_end_nothing_changes(visitor: Visitor) -> None:
    for number in (1, 2, 3):
        visitor.answer(number, "одно и то же")
    for number, text in ((1, "другое"), (99, "одно и то же")):
        response = visitor.answer(number, text)
        assert response.status_code == 409 and "не сохранено" in response.content.decode()
        assert visitor.survey.completion_code in response.content.decode()
    assert visitor.answer(1, "одно и то же")["Location"] == f"{visitor.address}end/"  # the same again loses nothing
    assert visitor.get(1)["Location"] == f"{visitor.address}end/"
    assert visitor.texts()[1] == "одно и то же"


def test_a_page_shown_while_its_answer_arrives_costs_no_answer(visitor: Visitor, monkeypatch) -> None:
    """The post finds no onset and notes one itself; meanwhile the page has noted its own."""

    def begin_late(**_: object) -> int:
        monkeypatch.undo()
        exposure_begin(sitting_id=visitor.sitting.pk, stimulus_id=visitor.sitting.order[0])
        return 0

    monkeypatch.setattr(QuerySet, "update", lambda _, **__: begin_late())
    assert visitor.answer(1, "ответ").status_code == 302
    assert visitor.texts() == {1: "ответ"}
    assert Exposure.objects.get().submitted_at is not None


def test_tasks_ahead_stay_closed(visitor: Visitor) -> None:
    assert visitor.get(3)["Location"] == f"{visitor.address}1/"
    assert visitor.answer(3, "рано")["Location"] == f"{visitor.address}1/"
    assert visitor.texts() == {}
    assert visitor.get(99)["Location"] == f"{visitor.address}1/"
    assert visitor.get(0)["Location"] == f"{visitor.address}1/"


@pytest.mark.parametrize(
    ("text", "kept"),
    [("", ""), ("   \n", "   \n"), ("я" * 100_000, "я" * 100_000), ("a\x00b", "ab")],
    ids=["empty", "blank", "100,000 characters", "NUL"],
)
def test_an_answer_that_cannot_be_stored_stays_in_the_field(visitor: Visitor, text: str, kept: str) -> None:
    visitor.answer(1, "первая попытка")
    response = visitor.answer(1, text)
    assert response.status_code == 422
    assert 'role="alert"' in response.content.decode() and f">\n{kept}</textarea>" in response.content.decode()
    assert visitor.texts() == {1: "первая попытка"}


def test_hostile_text_is_shown_as_text(visitor: Visitor) -> None:
    visitor.answer(1, "</textarea><script>alert(1)</script>")
    page = visitor.get(1).content.decode()
    assert "<script>alert" not in page and "&lt;script&gt;alert(1)" in page
    assert visitor.texts()[1] == "</textarea><script>alert(1)</script>"


def test_odd_extras_do_not_stop_an_answer(visitor: Visitor) -> None:
    assert visitor.answer(1, "ответ", seen="-1", duration="9" * 400).status_code == 302
    assert visitor.texts() == {1: "ответ"}


def test_declining_and_changing_ones_mind(visitor: Visitor) -> None:
    visitor.answer(1, declined="1")
    answer = Answer.objects.get()
    assert (answer.outcome, answer.text) == ("declined", "")
    visitor.answer(1, "всё-таки", seen="1")
    answer.refresh_from_db()
    assert (answer.outcome, answer.text, answer.revision) == ("given", "всё-таки", 2)


def test_leaving_keeps_the_answers_and_ends_the_sitting(visitor: Visitor) -> None:
    visitor.answer(1, "ответ")
    assert "кода завершения не будет" in visitor.get("leave").content.decode()
    assert visitor.sitting.state == Sitting.State.OPEN
    visitor.client.post(f"{visitor.address}leave/")
    assert visitor.sitting.state == Sitting.State.STOPPED
    response = visitor.answer(2, "поздно")
    assert response.status_code == 409 and "не сохранено" in response.content.decode()
    assert visitor.survey.completion_code not in response.content.decode()
    assert visitor.texts() == {1: "ответ"}
    assert visitor.survey.completion_code not in visitor.get("end").content.decode()


def test_a_closed_survey_takes_nobody_new_and_lets_the_others_finish(survey: Survey) -> None:
    inside = Visitor(survey).start()
    survey_set_state(survey=survey, state="closed", actor=None)
    newcomer = Client()
    response = newcomer.get(f"/s/{survey.slug}/")
    assert response.status_code == 403 and "nobody@example.org" in response.content.decode()
    assert newcomer.post(f"/s/{survey.slug}/", agreeing(survey)).status_code == 403
    assert inside.answer(1, "ответ").status_code == 302
    assert Participant.objects.count() == 1


@pytest.mark.parametrize("tail", ["", "1/", "end/", "leave/"])
def test_a_wrong_link_says_so(db: None, tail: str) -> None:
    response = Client().get(f"/p/nonsense/{tail}")
    assert response.status_code == 404 and "<h1" in response.content.decode()
    assert Client().post("/p/nonsense/1/", {"text": "x"}).status_code == 404


def test_one_participants_address_opens_no_other_ones_answers(survey: Survey) -> None:
    one, other = Visitor(survey).start(), Visitor(survey).start()
    one.answer(1, "мой ответ")
    other.answer(1, "чужой ответ")
    assert one.texts() == {1: "мой ответ"} and other.texts() == {1: "чужой ответ"}


def test_an_outdated_page_with_another_text_is_told(visitor: Visitor) -> None:
    visitor.get(1)
    visitor.answer(1, "из первой вкладки", seen="0")
    page = visitor.answer(1, "из второй <b>вкладки", seen="0")
    assert page.status_code == 409 and "из первой вкладки" in page.content.decode()
    assert "из второй &lt;b&gt;вкладки</textarea>" in page.content.decode()  # nothing typed is lost
    assert visitor.texts() == {1: "из первой вкладки"}
    assert 'name="seen" value="1"' in page.content.decode()
    assert visitor.answer(1, "из второй вкладки", seen="1").status_code == 302
    assert visitor.texts() == {1: "из второй вкладки"}
    assert visitor.answer(1, declined="1", seen="1").status_code == 409
    assert visitor.texts() == {1: "из второй вкладки"}


def test_query_counts(visitor: Visitor, django_assert_max_num_queries) -> None:
    with django_assert_max_num_queries(4):  # in a process that meets the survey for the first time
        visitor.get(1)
    with django_assert_max_num_queries(2):
        visitor.get(1)
    # Where a request is one transaction, BEGIN and COMMIT are no queries; here they are savepoints, and counted.
    with django_assert_max_num_queries(3 + 2):
        visitor.answer(1, "ответ")
    visitor.answer(2, "ответ")
    with django_assert_max_num_queries(6 + 4):  # the last answer finishes the sitting
        visitor.answer(3, "ответ")
