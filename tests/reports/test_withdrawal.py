"""After a withdrawal nothing holds the person's words: every column of the database, every page, file and endpoint.

The walks look for a sentinel. Before, each place that is meant to hold it does; a walk that never finds it is no proof.
"""

import json
import re
from collections.abc import Iterator
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from annotation.adjudication import adjudication_record
from annotation.guideline_selectors import guideline_newest, state_of
from annotation.guideline_services import guideline_write
from annotation.models import Campaign, Item, Rater, Reference
from annotation.places import label_withdraw, place_skip
from annotation.reference_services import Right, reference_add
from annotation.services import adjudicator_set, campaign_close
from corpus.models import Answer, AnswerRevision, Sitting
from corpus.services import INCOMPLETE
from reports import withdrawal
from reports.exports import EXPORTS
from reports.models import Release
from reports.withdrawal import Way, participant_withdraw
from scoring.models import Judgement
from scoring.selectors import labels_of
from scoring.services import PAPER_RUBRIC, paper_rubric
from studies.models import AuditEntry, Blinding
from surveys.exclusion_services import sitting_exclude
from surveys.models import Exposure, ImportBatch, Participant, Question, QuestionResponse, Survey
from surveys.question_services import questions_respond
from surveys.rights import receipt_issue
from surveys.services import survey_create, survey_set_state
from tests.annotation.factories import NO, YES, give, judge, make_campaign, make_rater, post
from tests.api.conftest import client_of
from tests.api.routes import OF_A_STUDY
from tests.architecture.test_write_routes import PAGES
from tests.conftest import Cast
from tests.surveys.people import make_person, secret_of, sitting_of

WORD = "Заклинание"  # what is looked for, whatever the case
TEXT = f"{WORD} сидит на широком столе"
EARLIER = f"{WORD} лежит под столом тихо"
PLATFORM_ID = "5f2c9d0000000000deadbeef"
DUPLICATE = "мышь бежит от кошки"  # another person's answer, word for word


@pytest.fixture(autouse=True)
def quiet(settings) -> None:
    settings.ALLOW_PRIVATE_ENDPOINTS = True


@pytest.fixture
def survey(cast: Cast, instrument) -> Survey:
    survey = survey_create(
        instrument=instrument, title="By link", contact="c@example.org", consent_text="Yes.", actor=cast.alice
    )
    survey_set_state(survey=survey, state="open", actor=cast.alice)
    survey.refresh_from_db()
    return survey


@pytest.fixture
def person(cast: Cast, survey: Survey) -> Participant:
    """Somebody whose words have come everywhere they can come."""
    person = make_person(
        survey,
        [TEXT, DUPLICATE, f"{WORD} и дети были очень счастливы"],
        external_id=PLATFORM_ID,
        visit_id="visit-" + PLATFORM_ID,
        flags=["browser_again"],
        timing={"pastes": 2, "pasted_characters": 20, "device": "phone"},
    )
    answer = Answer.objects.get(sitting__respondent=person.respondent, stimulus__position=1)
    AnswerRevision.objects.create(answer=answer, number=1, outcome="given", text=EARLIER, made_at=answer.changed_at)
    question = Question.objects.create(
        survey=survey, position=1, place="after", code="about", kind="long", text={"ru": "О чём вы думали?"}
    )
    QuestionResponse.objects.create(
        participant=person,
        question=question,
        value=f"{WORD} думал о кошках весь день",
        earlier=[{"value": f"{WORD} не думал"}],
    )
    ImportBatch.objects.create(
        survey=survey,
        format="csv",
        files=[],
        skipped=[
            {"record": 3, "reason": "double", "excerpt": TEXT},
            {"record": 4, "reason": "double", "person": PLATFORM_ID},
        ],
    )
    return person


@pytest.fixture
def other(survey: Survey) -> Participant:
    """Somebody else who gave one of the same answers and is not touched."""
    return make_person(survey, ["кот спит на диване", DUPLICATE, "дети играли во дворе"])


@pytest.fixture
def raters(cast: Cast) -> list[Rater]:
    return [make_rater(cast.study, name) for name in ("lena", "misha", "nina")]


@pytest.fixture
def judged(cast: Cast, person: Participant, other: Participant, raters: list[Rater]) -> Campaign:
    """A closed campaign whose adjudicator, researcher and one rater quote the answer in their reasons.

    One of the person's answers is a reference, the explanation of another's quotes it, and so do the rules.
    """
    campaign = make_campaign(cast.study, cast.alice, k=2, title="Closed", adjudicator=raters[2].user)
    item = campaign.items.get(answer__sitting__respondent=person.respondent, answer__stimulus__position=1)
    post(give(item, raters[0]), raters[0], YES)
    post(give(item, raters[1]), raters[1], NO)
    neighbour = campaign.items.get(answer__sitting__respondent=other.respondent, answer__stimulus__position=1)
    place = post(give(neighbour, raters[0]), raters[0], YES)
    label_withdraw(place_id=place.pk, actor=cast.alice, reason=f"смешал с «{TEXT.upper()}», проверить")
    passed = give(
        campaign.items.get(answer__sitting__respondent=other.respondent, answer__stimulus__position=3), raters[1]
    )
    place_skip(place_uuid=passed.uuid, user_id=raters[1].user_id, reason=f"как «{TEXT}»", ahead=0)
    campaign_close(campaign=campaign, actor=cast.alice)
    adjudication_record(item_uuid=item.uuid, rater_id=raters[2].pk, values=YES, reason=f"«{TEXT}» — так говорят")
    for answer in (item.answer, neighbour.answer):
        right = Right(purpose="gold", values=YES, explanation=f"ср. «{TEXT}»")
        reference_add(study=cast.study, answer=answer, rubric=PAPER_RUBRIC, right=right, actor=cast.alice)
    guideline_write(
        study=cast.study,
        rubric_slug=PAPER_RUBRIC,
        text=f"Например, «{TEXT}».",
        note=f"пример: {TEXT}",
        seen=state_of(guideline_newest(cast.study, PAPER_RUBRIC)),
        actor=cast.alice,
    )
    return campaign


def columns_with(word: str) -> set[str]:
    """Every column of the database that holds the word, asked of PostgreSQL itself."""
    found = set()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = current_schema() "
            "AND data_type IN ('text', 'character varying', 'character', 'json', 'jsonb', 'bytea', 'ARRAY')"
        )
        for table, column in cursor.fetchall():
            cursor.execute(
                f'SELECT 1 FROM "{table}" WHERE "{column}"::text ILIKE %s LIMIT 1',  # noqa: S608 - names of our own tables
                [f"%{word}%"],
            )
            if cursor.fetchone():
                found.add(f"{table}.{column}")
    return found


def test_no_column_of_the_database_holds_the_words(person: Participant, judged: Campaign, cast: Cast) -> None:
    sitting_exclude(survey=person.survey, sitting_id=sitting_of(person).pk, reason=f"«{TEXT}»", actor=cast.alice)
    Release.objects.create(study=cast.study, number=1, policy={}, note=f"исправлено «{TEXT}»", state="failed")
    assert columns_with(WORD) == {
        "corpus_answer.text",
        "corpus_answerrevision.text",
        "corpus_sitting.standing_reason",
        "reports_release.note",
        "annotation_guideline.note",
        "annotation_guideline.text",
        "annotation_item.display_text",
        "annotation_reference.explanation",
        "annotation_skip.reason",
        "scoring_judgement.reason",
        "studies_auditentry.detail",
        "surveys_exclusionrule.reason",
        "surveys_importbatch.skipped",
        "surveys_questionresponse.value",
        "surveys_questionresponse.earlier",
    }
    assert columns_with(PLATFORM_ID)
    assert participant_withdraw(participant_id=person.pk, way=Way.RECEIPT)
    assert columns_with(WORD) == set()
    assert columns_with(PLATFORM_ID) == set()


def addresses(campaign: Campaign, person: Participant) -> Iterator[str]:
    """Every page of a researcher, rater and participant, with each export in both forms."""
    sitting = sitting_of(person)
    item = campaign.items.get(answer__sitting=sitting, answer__stimulus__position=1)
    ids = {
        "slug": "ours",
        "number": 1,
        "secret": secret_of(person),
        "place": item.places.first().uuid,
        "item": item.uuid,
        "kind": "svg",
        "sitting_pk": sitting.pk,
        "key": uuid4(),
        "shape": "wide",
        "answer": item.answer.blind_id,
    }
    reference = Reference.objects.filter(study=campaign.study, answer=item.answer).first()
    pks = {
        "rate/c/": campaign.pk,
        "campaign": campaign.pk,
        "survey": person.survey_id,
        "reference": reference.pk if reference else 1,
    }
    for route, pattern in PAGES:
        names = list(pattern.pattern.converters)
        if pattern.name == "export_file":
            for name in EXPORTS:
                address = reverse(pattern.name, args=["ours", name])
                yield from (address, f"{address}?for=excel")
            continue
        pk = next((pks[noun] for noun in pks if noun in route), 1)
        values = {name: ids.get(name, pk if name == "pk" else 1) for name in names}
        if pattern.name == "survey_enter":
            values["slug"] = person.survey.slug
        yield reverse(pattern.name, kwargs=values)
    for query in ("?show=all", "?show=undecided"):
        yield reverse("campaign_answers", args=["ours", campaign.pk]) + query
    yield reverse("result_answers", args=["ours"]) + f"?sitting={sitting.pk}"
    yield "/admin/studies/auditentry/"
    for pk in AuditEntry.objects.values_list("pk", flat=True):
        yield f"/admin/studies/auditentry/{pk}/change/"


def body(response) -> str:
    content = b"".join(response.streaming_content) if response.streaming else response.content
    return content.decode("utf-8", "replace")


def seen_at(clients: list[Client], paths: list[str]) -> tuple[set[str], int]:
    """The addresses where the word stands, and how many answered with a page."""
    found, answered = set(), 0
    for path in paths:
        for client in clients:
            response = client.get(path, follow=True)
            answered += response.status_code == 200
            if WORD.casefold() in body(response).casefold():
                found.add(path)
    return found, answered


def test_no_page_and_no_file_shows_the_words(
    person: Participant, judged: Campaign, cast: Cast, raters: list[Rater]
) -> None:
    cast.alice.is_staff = cast.alice.is_superuser = True
    cast.alice.save()
    visitor = Client()
    clients = [cast.client(cast.alice), *(cast.client(rater.user) for rater in raters), visitor]
    paths = list(addresses(judged, person))
    before, answered = seen_at(clients, paths)
    assert answered > 60
    exported = ("answers.csv", "annotations.csv", "judgements.csv")
    pages = ("/sittings/", "/decide/", "/decided/", "/results/answers/", "/quality/", "/references/", "/guidelines/")
    for expected in exported + pages:
        assert any(expected in path for path in before), (expected, before)
    participant_withdraw(participant_id=person.pk, way=Way.OWN_LINK)
    after, answered_after = seen_at(clients, paths)
    assert after == set()
    assert answered_after > 60


def test_no_endpoint_shows_the_words(person: Participant, judged: Campaign, cast: Cast) -> None:
    Blinding.objects.all().delete()
    client = client_of(cast.alice)
    answer = Answer.objects.get(sitting__respondent=person.respondent, stimulus__position=1)
    samples = {
        "study": "ours",
        "answer": answer.blind_id,
        "survey": person.survey.slug,
        "api-instruments": person.survey.instrument_id,
        "api-rounds": judged.round_id,
        "api-campaigns": judged.pk,
    }

    def found() -> set[str]:
        names = set()
        for route in OF_A_STUDY:
            if route.method == "get":
                known = {name: samples.get(name, 1) for name in (*route.parameters, route.base)}
                response = route.ask(client, known)
                if WORD.casefold() in json.dumps(response.json(), ensure_ascii=False).casefold():
                    names.add(route.name)
        return names

    assert found() >= {"api-answers-list", "api-answers-detail", "api-judgements-list"}
    participant_withdraw(participant_id=person.pk, way=Way.RECEIPT)
    assert found() == set()
    assert client.get(f"/api/v1/studies/ours/answers/{answer.blind_id}/").status_code == 404
    (survey,) = client.get("/api/v1/studies/ours/surveys/").json()["results"]
    assert (survey["n_withdrawn"], survey["n_finished"]) == (1, 2), "who withdrew stays in the steps passed"
    results = client.get("/api/v1/studies/ours/results/").json()
    assert results["n_withdrawn"] == 1 and results["rows"][0]["n_sittings"] == 1


def test_others_keep_what_they_said_and_how_it_was_judged(
    person: Participant, other: Participant, judged: Campaign
) -> None:
    before = list(Answer.objects.filter(sitting__respondent=other.respondent).values_list("pk", "text", "outcome"))
    participant_withdraw(participant_id=person.pk, way=Way.RECEIPT)
    assert before == list(
        Answer.objects.filter(sitting__respondent=other.respondent).values_list("pk", "text", "outcome")
    )
    item = Item.objects.get(answer__sitting__respondent=other.respondent, answer__stimulus__position=2)
    assert item.display_text == DUPLICATE and item.removed_at is None
    assert "[…]" in AuditEntry.objects.get(action="label_withdraw").detail["reason"]


def test_what_is_left_of_a_person(person: Participant) -> None:
    participant_withdraw(participant_id=person.pk, way=Way.RECEIPT)
    person.refresh_from_db()
    sitting = sitting_of(person)
    assert (sitting.standing, sitting.state) == ("withdrawn", "finished")
    assert set(Answer.objects.filter(sitting=sitting).values_list("outcome", "text")) == {("withdrawn", "")}
    assert set(AnswerRevision.objects.values_list("outcome", "text")) == {("withdrawn", "")}
    assert person.flags == [] and person.external_id == person.visit_id == "" and person.withdrawn_at
    assert person.consents.count() == 1
    exposure = Exposure.objects.filter(sitting=sitting).first()
    assert exposure.onset_at and exposure.submitted_at
    assert {exposure.duration_ms, exposure.pastes, exposure.pasted_characters, exposure.translated} == {None}
    assert exposure.device == ""
    entry = AuditEntry.objects.get(action="participant_withdraw")
    assert entry.detail == {
        "way": "receipt",
        "sittings": 1,
        "campaign_answers": 0,
        "judge_calls": 0,
        "notes": 0,
        "participant": 1,
        "classifiers": 0,
        "import_drafts": 0,
        "releases": 0,
    }


def test_labels_agreement_and_results_forget_them(person: Participant, judged: Campaign, cast: Cast) -> None:
    rubric = paper_rubric()
    instrument = person.survey.instrument
    assert len(labels_of(instrument=instrument, rubric=rubric).answers) == 6
    kept = Judgement.objects.filter(answer__sitting__respondent=person.respondent, retracted_at__isnull=True)
    values = sorted(kept.values_list("pk", "value"))
    participant_withdraw(participant_id=person.pk, way=Way.RECEIPT)
    for counted in (True, False):
        assert len(labels_of(instrument=instrument, rubric=rubric, counted=counted).answers) == 3
    assert sorted(kept.values_list("pk", "value")) == values, "judgements stay as numbers"
    page = cast.client(cast.alice).get(f"/studies/ours/campaigns/{judged.pk}/").content.decode()
    assert "3 answers were withdrawn" in re.sub(r"\s+", " ", page)
    page = cast.client(cast.alice).get("/studies/ours/results/").content.decode()
    assert "1 withdrawn" in page
    assert "1 withdrawn" in cast.client(cast.alice).get("/studies/ours/").content.decode()


def test_an_id_in_what_researchers_wrote_goes_too(
    person: Participant, other: Participant, judged: Campaign, cast: Cast
) -> None:
    Blinding.objects.all().delete()
    told = f"same as {PLATFORM_ID.upper()}, see the platform"
    sitting_exclude(survey=person.survey, sitting_id=sitting_of(other).pk, reason=told, actor=cast.alice)
    neighbour = Judgement.objects.filter(answer__sitting__respondent=other.respondent).first()
    Judgement.objects.filter(pk=neighbour.pk).update(reason=told)
    assert columns_with(f"as {PLATFORM_ID}") == {
        "corpus_sitting.standing_reason",
        "scoring_judgement.reason",
        "studies_auditentry.detail",
        "surveys_exclusionrule.reason",
    }
    participant_withdraw(participant_id=person.pk, way=Way.REQUEST, reason=f"letter of {PLATFORM_ID}", actor=cast.alice)
    assert columns_with(PLATFORM_ID) == set()
    assert sitting_of(other).standing_reason == "same as […], see the platform"


@pytest.mark.parametrize("ours", ["left by the participant", "screened out by the questionnaire", INCOMPLETE])
def test_our_own_words_stay_though_somebody_answered_just_so(survey: Survey, ours: str) -> None:
    person, other, excluded = make_person(survey, [ours]), make_person(survey), make_person(survey)
    Sitting.objects.filter(respondent=other.respondent).update(standing_reason=ours)
    standing = "excluded" if ours == INCOMPLETE else "counted"
    Sitting.objects.filter(respondent=excluded.respondent).update(standing=standing, standing_reason=ours)
    participant_withdraw(participant_id=person.pk, way=Way.RECEIPT)
    assert sitting_of(other).standing_reason == sitting_of(excluded).standing_reason == ours


def test_an_open_sitting_is_stopped_and_takes_no_more(survey: Survey) -> None:
    person = make_person(survey, [TEXT], state="open")
    participant_withdraw(participant_id=person.pk, way=Way.OWN_LINK)
    assert sitting_of(person).state == "stopped"
    Client().post(f"/p/{secret_of(person)}/2/", {"text": TEXT})
    assert columns_with(WORD) == set()


def test_twice_is_once(person: Participant) -> None:
    assert participant_withdraw(participant_id=person.pk, way=Way.RECEIPT)
    entries = AuditEntry.objects.count()
    assert not participant_withdraw(participant_id=person.pk, way=Way.OWN_LINK)
    assert AuditEntry.objects.count() == entries


def test_a_step_that_fails_leaves_everything(person: Participant, monkeypatch) -> None:
    def broken(found) -> int:
        raise RuntimeError

    monkeypatch.setattr(withdrawal, "STEPS", (*withdrawal.STEPS, ("later", broken)))
    with pytest.raises(RuntimeError):
        participant_withdraw(participant_id=person.pk, way=Way.RECEIPT)
    assert Answer.objects.filter(text=TEXT).exists() and not Sitting.objects.filter(standing="withdrawn").exists()


# --- the queue of an open campaign -----------------------------------------------------------------------------------


@pytest.fixture
def rating(cast: Cast, person: Participant, other: Participant, raters: list[Rater]) -> Campaign:
    return make_campaign(cast.study, cast.alice, k=2, title="Open")


def test_the_queue_hands_out_only_what_is_left(
    person: Participant, rating: Campaign, raters: list[Rater], cast: Cast
) -> None:
    item = rating.items.get(answer__sitting__respondent=person.respondent, answer__stimulus__position=1)
    held = give(item, raters[0])
    done = post(give(item, raters[1]), raters[1], YES)
    participant_withdraw(participant_id=person.pk, way=Way.RECEIPT)
    states = set(rating.places.filter(item__removed_at__isnull=False).values_list("state", flat=True))
    assert states == {"void", "done"}
    for client, place in ((cast.client(raters[0].user), held), (cast.client(raters[1].user), done)):
        address = reverse("rate_place", args=[place.uuid])
        looked = client.get(address)
        posted = client.post(address, {"version": "0", "c-grammatical": "1", "c-logical": "1", "c-order": "1"})
        assert (looked.status_code, posted.status_code) == (410, 410)
        assert "no longer there" in posted.content.decode() and "not saved" in posted.content.decode()
        assert "withdr" not in posted.content.decode().lower(), "that a person withdrew says that it was a person"
    assert Judgement.objects.filter(answer=item.answer_id).count() == 3, "one rater's, as before"
    for rater in raters[:2]:
        for _ in range(3):
            judge(rating, rater)
    assert not rating.places.filter(state__in=["free", "held"]).exists()
    page = cast.client(raters[0].user).get("/rate/").content.decode()
    assert "Open" in page
    row = cast.client(cast.alice).get("/studies/ours/campaigns/").content.decode()
    assert '<td class="n">7</td><td class="n">7</td>' in row, "six places of the other person, and one that was judged"


def test_an_adjudicator_is_not_asked_about_it(
    person: Participant, rating: Campaign, raters: list[Rater], cast: Cast
) -> None:
    item = rating.items.get(answer__sitting__respondent=person.respondent, answer__stimulus__position=1)
    post(give(item, raters[0]), raters[0], YES)
    post(give(item, raters[1]), raters[1], NO)
    adjudicator_set(campaign=rating, user=raters[2].user, actor=cast.alice)
    campaign_close(campaign=rating, actor=cast.alice)
    client = cast.client(raters[2].user)
    address = reverse("decide", args=[item.uuid])
    assert client.get(address).status_code == 200
    participant_withdraw(participant_id=person.pk, way=Way.RECEIPT)
    assert client.get(address).status_code == 410
    values = {f"c-{code}": "1" for code in YES}
    assert client.post(address, {"version": "0", "reason": TEXT, **values}).status_code == 410
    assert client.get(reverse("decide_next", args=[rating.pk]))["Location"] == "/rate/"
    assert columns_with(WORD) == set()


# --- the pages -------------------------------------------------------------------------------------------------------


def test_by_the_receipt_code_without_cookies(person: Participant) -> None:
    code = receipt_issue(participant=person)
    client = Client(enforce_csrf_checks=True)
    assert client.get("/withdraw/").status_code == 200
    typed = code.lower().replace("-", " ").replace("0", "o")
    asked = client.post("/withdraw/", {"code": typed})
    assert asked.status_code == 200 and "Delete your answers?" in asked.content.decode()
    assert WORD not in asked.content.decode() and "By link" not in asked.content.decode()
    assert Answer.objects.filter(text=TEXT).exists(), "looking deletes nothing"
    done = client.post("/withdraw/", {"code": typed, "confirm": "1"})
    assert "3 answers are deleted" in done.content.decode()
    assert not Answer.objects.filter(text=TEXT).exists()
    again = client.post("/withdraw/", {"code": code, "confirm": "1"})
    assert "You took them back on" in again.content.decode()


@pytest.mark.parametrize("code", ["", "7KQ2", "A" * 28, "\x00" * 28, "'; --", "0" * 500])
def test_a_wrong_code_gets_one_answer(person: Participant, code: str) -> None:
    receipt_issue(participant=person)
    responses = [Client().post("/withdraw/", {"code": one, "confirm": "1"}) for one in (code, "Z" * 28)]
    assert {response.status_code for response in responses} == {422}
    texts = {re.sub(r'value="[^"]*"', "", response.content.decode()) for response in responses}
    assert len(texts) == 1
    assert Answer.objects.filter(text=TEXT).exists()


def test_a_person_without_a_receipt_is_nobodys_code(person: Participant) -> None:
    """An empty digest is no code: it would be everybody's who has not seen the last page."""
    assert person.receipt_digest == ""
    assert Client().post("/withdraw/", {"code": "", "confirm": "1"}).status_code == 422
    assert not Sitting.objects.filter(standing="withdrawn").exists()


def test_on_the_own_link(person: Participant) -> None:
    address = f"/p/{secret_of(person)}/withdraw/"
    client = Client(enforce_csrf_checks=True, headers={"accept-language": "en"})
    assert "Удалить ваши ответы?" in client.get(address).content.decode()
    assert Answer.objects.filter(text=TEXT).exists()
    client.post(address)
    assert Answer.objects.filter(text=TEXT).exists(), "without the confirmation nothing happens"
    client.post(address, {"confirm": "1"})
    assert not Answer.objects.filter(text=TEXT).exists()
    assert Client().get("/p/" + "x" * 43 + "/withdraw/").status_code == 404


def test_a_researcher_withdraws_at_a_request(person: Participant, cast: Cast) -> None:
    sitting = sitting_of(person)
    address = f"/studies/ours/surveys/{person.survey_id}/sittings/{sitting.pk}/withdraw/"
    client = cast.client(cast.alice)
    assert client.get(address).status_code == 200
    assert client.post(address, {"reason": ""}).status_code == 400
    assert Answer.objects.filter(text=TEXT).exists()
    client.post(address, {"reason": f"letter of 3 May, about {TEXT}"})
    assert not Answer.objects.filter(text=TEXT).exists()
    entry = AuditEntry.objects.get(action="participant_withdraw")
    assert entry.actor == cast.alice and entry.detail["reason"] == "letter of 3 May, about […]"
    assert "Nothing is left to delete" in client.get(address).content.decode()


def test_a_researcher_who_rates_may_carry_it_out_and_sees_no_text(person: Participant, cast: Cast) -> None:
    client = cast.client(cast.alice)
    Blinding.objects.create(user=cast.alice, study=cast.study, cause="campaign 1")
    sitting = sitting_of(person)
    base = f"/studies/ours/surveys/{person.survey_id}/sittings/{sitting.pk}/"
    for path in (base, base + "withdraw/"):
        assert WORD not in client.get(path).content.decode()
    client.post(base + "withdraw/", {"reason": "letter"})
    assert not Answer.objects.filter(text=TEXT).exists()


def test_others_may_not(person: Participant, cast: Cast) -> None:
    sitting = sitting_of(person)
    address = f"/studies/ours/surveys/{person.survey_id}/sittings/{sitting.pk}/withdraw/"
    for user in (cast.bob, cast.rita):
        assert cast.client(user).post(address, {"reason": "letter"}).status_code == 404
    assert Client().post(address, {"reason": "letter"})["Location"].startswith("/login/")
    theirs = f"/studies/theirs/surveys/{person.survey_id}/sittings/{sitting.pk}/withdraw/"
    assert cast.client(cast.bob).post(theirs, {"reason": "letter"}).status_code == 404
    assert Answer.objects.filter(text=TEXT).exists()


def test_the_participants_file_has_them_without_a_text(person: Participant, other: Participant, cast: Cast) -> None:
    participant_withdraw(participant_id=person.pk, way=Way.RECEIPT)
    text = body(cast.client(cast.alice).get("/studies/ours/exports/participants.csv"))
    header, first, second = [line.split(",") for line in text.lstrip("\ufeff").strip().split("\r\n")]
    rows = [dict(zip(header, line, strict=True)) for line in (first, second)]
    assert [(row["standing"], row["n_answers"], row["n_declined"]) for row in rows] == [
        ("withdrawn", "3", ""),
        ("counted", "3", "0"),
    ]
    assert rows[0]["withdrawn_at"] and not rows[0]["median_ms"] and rows[1]["median_ms"] == "4000"
    assert PLATFORM_ID not in text


def test_no_code_reaches_the_log(person: Participant, capfd, caplog) -> None:
    code = receipt_issue(participant=person)
    with caplog.at_level("DEBUG"):
        Client().post("/withdraw/", {"code": code})
        Client().post("/withdraw/", {"code": code + "X"})
    out, err = capfd.readouterr()
    for logged in (caplog.text, out, err):
        assert code not in logged and code.replace("-", "") not in logged


def test_the_participants_pages_lead_to_what_is_left(survey: Survey) -> None:
    """From the last page by its code to the deletion; afterwards every page of theirs says that it is done."""
    person = make_person(survey)
    address = f"/p/{secret_of(person)}/"
    page = Client().get(address + "end/").content.decode()
    code = re.search(r'id="receipt">([^<]+)<', page).group(1)
    assert code in Client().get(address + "end/").content.decode(), "a reload shows the same"
    assert f'href="{address}withdraw/"' in page and 'href="/withdraw/"' in page
    Client().post("/withdraw/", {"code": code, "confirm": "1"})
    for tail in ("", "end/", "1/", "leave/"):
        assert Client().get(address + tail)["Location"] == f"{address}withdraw/", tail
    assert Client().post(address + "1/", {"text": TEXT})["Location"] == f"{address}withdraw/"
    assert columns_with(WORD) == set()


def test_a_questionnaire_sent_after_the_withdrawal_is_not_kept(person: Participant) -> None:
    """Its page was read before: the post comes to the service with what was true then."""
    question = Question.objects.get()
    participant_withdraw(participant_id=person.pk, way=Way.RECEIPT)
    questions_respond(
        participant_id=person.pk,
        sitting_id=sitting_of(person).pk,
        questions=[question],
        responses={question.pk: TEXT},
    )
    assert columns_with(WORD) == set()


def test_the_pages_promise_what_holds(survey: Survey) -> None:
    """Who comes by a platform's id is recognised by it; on a direct link a fresh browser is a new person."""
    again = "cannot take part in this survey again with the same number"
    afresh = "start the survey afresh in another browser"
    for external_id, said, unsaid in (("P-1", again, afresh), ("", afresh, again)):
        someone = make_person(survey, external_id=external_id)
        page = Client().post("/withdraw/", {"code": receipt_issue(participant=someone)}).content.decode()
        assert said in page and unsaid not in page and "with the same link" not in page
        for kept in ("when you began and ended", "how many answers", "to which consents", "completion code"):
            assert kept in page
    lost = Client().get("/withdraw/").content.decode()
    assert "with the date" not in lost and "a completion code that only you were given" in lost
