import pytest
from django.test import Client

from corpus.builtin import builtin_instrument_create
from corpus.models import Instrument, Sitting
from surveys.models import Question, QuestionResponse, Survey
from surveys.question_services import question_create, question_delete, question_move, questions_copy
from surveys.questionnaire import QuestionsForm, attention_passed
from surveys.services import (
    QuestionMisplacedError,
    SurveyFieldFrozenError,
    survey_create,
    survey_set_state,
    survey_update,
)
from tests.conftest import Cast

from .conftest import Visitor

NEW = {"place": "after", "kind": "short", "code": "note", "text_ru": "Что-нибудь ещё?"}


def add(survey: Survey, code: str, place: str = "before", kind: str = "short", **more: object) -> Question:
    fields = {"text": {"ru": f"Вопрос {code}", "en": f"Question {code}"}, **more}
    return question_create(survey=survey, actor=None, code=code, place=place, kind=kind, **fields)


def options(*values: str) -> list[dict]:
    return [{"value": value, "text": {"ru": value.upper()}} for value in values]


def name(question: Question) -> str:
    return f"q{question.pk}"


def test_all_kinds_are_asked_and_kept(survey: Survey) -> None:
    questions = [
        add(survey, "sex", kind="single", options=options("f", "m"), required=True),
        add(survey, "languages", kind="multiple", options=options("ru", "tt", "en")),
        add(survey, "age", kind="number", minimum=18, maximum=99, required=True),
        add(survey, "town"),
        add(survey, "story", kind="long"),
        add(survey, "mood", kind="scale", minimum=1, maximum=7, end_labels={"low": {"ru": "плохо"}}),
    ]
    visitor = Visitor(survey).start()
    assert visitor.client.get(visitor.address)["Location"] == f"{visitor.address}questions/before/"
    page = visitor.get("questions/before").content.decode()
    assert "Вопрос sex" in page and "плохо" in page and 'type="radio"' in page and 'type="checkbox"' in page
    sent = {name(questions[0]): "f", name(questions[1]): ["ru", "tt"], name(questions[2]): "31"}
    sent |= {name(questions[3]): "<b>Казань</b>", name(questions[5]): "6"}
    response = visitor.client.post(f"{visitor.address}questions/before/", sent)
    assert response["Location"] == visitor.address
    assert "Составьте предложение" in visitor.get().content.decode()
    kept = {one.question.code: one.value for one in QuestionResponse.objects.select_related("question")}
    assert kept == {"sex": "f", "languages": ["ru", "tt"], "age": 31, "town": "<b>Казань</b>", "story": None, "mood": 6}


def test_what_is_missing_or_cannot_be_is_said_and_nothing_typed_is_lost(survey: Survey) -> None:
    age = add(survey, "age", kind="number", minimum=18, maximum=99, required=True)
    town = add(survey, "town")
    visitor = Visitor(survey).start()
    for wrong in ("", "сто", "17", "1" * 40):
        sent = {name(age): wrong, name(town): "Казань"}
        page = visitor.client.post(f"{visitor.address}questions/before/", sent)
        assert page.status_code == 422 and 'value="Казань"' in page.content.decode()
    assert not QuestionResponse.objects.exists()


@pytest.mark.parametrize("value", ["x", "f,m", "\x00"])
def test_a_value_that_is_no_option_is_refused(survey: Survey, value: str) -> None:
    sex = add(survey, "sex", kind="single", options=options("f", "m"), required=True)
    visitor = Visitor(survey).start()
    page = visitor.client.post(f"{visitor.address}questions/before/", {name(sex): value})
    assert page.status_code == 422 and not QuestionResponse.objects.exists()


def test_a_question_between_comes_in_its_place(survey: Survey) -> None:
    check = add(survey, "check", place="between", after_task=1, expected="река")
    visitor = Visitor(survey).start()
    response = visitor.answer(1, "ответ")
    assert response["Location"] == f"{visitor.address}questions/1/"
    assert visitor.get(2)["Location"] == f"{visitor.address}questions/1/"  # not stepped over by a typed address
    assert visitor.client.get(visitor.address)["Location"] == f"{visitor.address}questions/1/"
    response = visitor.client.post(f"{visitor.address}questions/1/", {name(check): "море"})
    assert response["Location"] == f"{visitor.address}2/"  # a wrong response is a flag, not a gate
    kept = QuestionResponse.objects.get()
    assert attention_passed(check, kept.value) is False and attention_passed(check, " Река ") is True
    visitor.client.post(f"{visitor.address}questions/1/", {name(check): "река"})
    kept.refresh_from_db()
    assert kept.value == "река" and [one["value"] for one in kept.earlier] == ["море"]


def test_questions_after_the_tasks_stand_before_the_code(survey: Survey) -> None:
    note = add(survey, "note", place="after")
    visitor = Visitor(survey).start()
    assert visitor.get("questions/after")["Location"] == visitor.address  # not before its time
    for number in (1, 2):
        visitor.answer(number, "ответ")
    response = visitor.answer(3, "ответ")
    assert response["Location"] == f"{visitor.address}questions/after/"
    assert visitor.sitting.state == Sitting.State.FINISHED  # the test itself is done and safe
    assert visitor.get("end")["Location"] == f"{visitor.address}questions/after/"
    response = visitor.client.post(f"{visitor.address}questions/after/", {name(note): ""})
    assert response["Location"] == f"{visitor.address}end/"
    assert survey.completion_code in visitor.get("end").content.decode()
    assert visitor.answer(3, "ответ")["Location"] == f"{visitor.address}end/"  # the other half of a double click


def test_who_is_screened_out_gets_the_code_for_it(survey: Survey) -> None:
    survey_update(survey=survey, actor=None, screen_out_code="OUT77", return_url="https://example.org/?c={code}")
    native = add(survey, "native", kind="single", options=options("yes", "no"), required=True, screens_out=["no"])
    visitor = Visitor(survey).start()
    response = visitor.client.post(f"{visitor.address}questions/before/", {name(native): "no"})
    assert response["Location"] == f"{visitor.address}end/"
    page = visitor.get("end").content.decode()
    assert "https://example.org/?c=OUT77" in page and survey.completion_code not in page
    assert visitor.sitting.state == Sitting.State.STOPPED and visitor.visit.screened_out
    assert visitor.answer(1, "ответ").status_code == 409
    again = visitor.client.post(f"{visitor.address}questions/before/", {name(native): "yes"})
    assert again["Location"] == visitor.address and visitor.get()["Location"] == f"{visitor.address}end/"


def test_it_speaks_the_participants_language(survey: Survey, settings) -> None:
    add(survey, "town")
    visitor = Visitor(survey).start()
    assert "Вопрос town" in visitor.get("questions/before").content.decode()
    visitor.client.cookies[settings.LANGUAGE_COOKIE_NAME] = "en"
    assert "Question town" in visitor.get("questions/before").content.decode()


def test_a_researcher_writes_moves_copies_and_removes(cast: Cast, survey: Survey, instrument: Instrument) -> None:
    client, base = cast.client(cast.alice), f"/studies/ours/surveys/{survey.pk}/questions/"
    single = {
        "place": "before",
        "kind": "single",
        "code": "sex",
        "text_ru": "Пол",
        "options": "f | женский | female\nm",
    }
    assert client.post(f"{base}new/", {**single, "required": "on"})["Location"] == base
    assert client.post(f"{base}new/", {**NEW, "place": "before"})["Location"] == base
    sex, note = survey.questions.all()
    assert sex.options[0] == {"value": "f", "text": {"ru": "женский", "en": "female"}} and sex.required
    client.post(f"{base}{note.pk}/change/", {"action": "up"})
    assert [one.code for one in survey.questions.all()] == ["note", "sex"]
    client.post(f"{base}{sex.pk}/", {**single, "code": "gender"})
    sex.refresh_from_db()
    assert sex.code == "gender" and not sex.required
    other = survey_create(instrument=instrument, title="B", contact="c", consent_text="t", actor=cast.alice)
    client.post(f"/studies/ours/surveys/{other.pk}/questions/copy/", {"source": survey.pk})
    assert [one.code for one in other.questions.all()] == ["note", "gender"]
    client.post(f"{base}{note.pk}/change/", {"action": "delete"})
    assert [one.code for one in survey.questions.all()] == ["gender"]
    assert client.get(base).status_code == client.get(f"/studies/ours/surveys/{survey.pk}/preview/").status_code == 200
    assert client.post(f"{base}{sex.pk}/change/", {"action": "burn"}).status_code == 400


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("options", {"kind": "single", "options": "a"}),
        ("options", {"kind": "single", "options": "a\na"}),
        ("options", {"kind": "multiple", "options": "a|b|c|d\nb"}),
        ("maximum", {"kind": "number", "minimum": 5, "maximum": 5}),
        ("maximum", {"kind": "scale", "minimum": 1, "maximum": 40}),
        ("after_task", {"place": "between", "after_task": 3}),  # there is no fourth task
        ("after_task", {"place": "between"}),
        ("screens_out", {"screens_out": "no"}),
        ("expected", {"kind": "single", "options": "a\nb", "expected": "c"}),
        ("text_ru", {"text_ru": ""}),
        ("code", {"code": "taken"}),
        ("code", {"code": "два слова"}),
    ],
)
def test_a_question_that_cannot_work_is_refused(cast: Cast, survey: Survey, field: str, fields: dict) -> None:
    add(survey, "taken")
    page = cast.client(cast.alice).post(f"/studies/ours/surveys/{survey.pk}/questions/new/", {**NEW, **fields})
    assert page.status_code == 200 and page.context["form"].errors.keys() == {field}
    assert survey.questions.count() == 1


def test_once_somebody_has_come_the_questions_stay(cast: Cast, survey: Survey) -> None:
    question = add(survey, "town")
    Visitor(survey).start()
    for change in (
        lambda: add(survey, "more"),
        lambda: question_delete(question=question, actor=None),
        lambda: question_move(question=question, up=True, actor=None),
        lambda: questions_copy(source=survey, target=survey, actor=None),
    ):
        with pytest.raises(SurveyFieldFrozenError):
            change()
    page = cast.client(cast.alice).post(f"/studies/ours/surveys/{survey.pk}/questions/new/", NEW, follow=True)
    assert "no longer change" in page.content.decode() and survey.questions.count() == 1


def test_questions_of_another_study_are_not_reached(cast: Cast, survey: Survey) -> None:
    question = add(survey, "town")
    bob = cast.client(cast.bob)
    for tail, data in ((f"{question.pk}/", NEW), (f"{question.pk}/change/", {"action": "delete"})):
        assert bob.post(f"/studies/theirs/surveys/{survey.pk}/questions/{tail}", data).status_code == 404
        assert bob.post(f"/studies/ours/surveys/{survey.pk}/questions/{tail}", data).status_code == 404
    assert survey.questions.count() == 1
    survey_set_state(survey=survey, state="open", actor=None)
    assert Client().get(f"/p/{'x' * 43}/questions/before/").status_code == 404


@pytest.mark.parametrize(("age", "is_out"), [("16", True), ("18", False), ("65", False), ("66", True)])
def test_numbers_screen_out_by_comparison(survey: Survey, age: str, is_out: bool) -> None:
    question = add(survey, "age", kind="number", required=True, screens_out=["<18", ">65"])
    visitor = Visitor(survey).start()
    visitor.client.post(f"{visitor.address}questions/before/", {name(question): age})
    assert visitor.visit.screened_out is is_out


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("screens_out", {"kind": "number", "place": "before", "screens_out": "under 18"}),
        ("screens_out", {"kind": "scale", "place": "before", "screens_out": "<=2"}),
        ("expected", {"kind": "number", "expected": "семь"}),
    ],
)
def test_a_number_that_is_none_is_refused(cast: Cast, survey: Survey, field: str, fields: dict) -> None:
    page = cast.client(cast.alice).post(f"/studies/ours/surveys/{survey.pk}/questions/new/", {**NEW, **fields})
    assert page.status_code == 200 and page.context["form"].errors.keys() == {field}


def test_a_screening_question_without_a_code_is_said_before_opening(cast: Cast, survey: Survey) -> None:
    address = f"/studies/ours/surveys/{survey.pk}/"
    survey_update(survey=survey, actor=None, platform="other", person_parameter="who")
    add(survey, "age", kind="number", required=True, screens_out=["<18"])
    assert cast.client(cast.alice).get(address).context["lacks_screen_out"] is True
    survey_update(survey=survey, actor=None, screen_out_code="OUT77")
    assert cast.client(cast.alice).get(address).context["lacks_screen_out"] is False


@pytest.mark.parametrize(
    ("ends", "steps"), [((0, 10), range(11)), ((-5, 0), range(-5, 1)), ((None, None), range(1, 6))]
)
def test_a_scale_has_the_steps_that_were_asked_for(survey: Survey, ends: tuple, steps: range) -> None:
    question = add(survey, "mood", kind="scale", minimum=ends[0], maximum=ends[1])
    form = QuestionsForm(questions=[question], language="ru")
    assert [value for value, _ in form.fields[name(question)].choices] == [str(step) for step in steps]


def test_a_question_that_would_never_be_asked_is_not_copied(cast: Cast, survey: Survey) -> None:
    instrument = builtin_instrument_create(study=cast.study, actor=None)
    long = survey_create(instrument=instrument, title="B", contact="c", consent_text="t", actor=cast.alice)
    add(long, "late", place="between", after_task=10)
    base = f"/studies/ours/surveys/{survey.pk}/questions/"
    page = cast.client(cast.alice).post(f"{base}copy/", {"source": long.pk}, follow=True)
    assert "late" in page.content.decode() and not survey.questions.exists()
    with pytest.raises(QuestionMisplacedError, match="late"):
        survey_update(survey=long, actor=None, instrument=survey.instrument)
    assert cast.client(cast.alice).post(f"{base}copy/", {"source": "9" * 5_000}).status_code == 404


def test_the_questions_before_are_closed_once_a_task_is_answered(survey: Survey) -> None:
    native = add(survey, "native", kind="single", options=options("yes", "no"), required=True, screens_out=["no"])
    visitor = Visitor(survey).start()
    visitor.client.post(f"{visitor.address}questions/before/", {name(native): "yes"})
    visitor.answer(1, "ответ")
    response = visitor.client.post(f"{visitor.address}questions/before/", {name(native): "no"})
    assert response["Location"] == visitor.address and not visitor.visit.screened_out
