"""Platforms, codes, quota, times, orders: what a researcher sets and a participant meets."""

import threading
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone
from psycopg import sql

from corpus.builtin import builtin_instrument_create
from corpus.models import Answer, Instrument, Respondent, Sitting
from reports.withdrawal import participant_withdraw
from surveys.models import Arrival, Consent, Exposure, Participant, Purpose, Survey
from surveys.services import (
    Newcomer,
    QuotaFullError,
    SurveyFieldFrozenError,
    participant_start,
    places_taken,
    survey_create,
    survey_set_state,
    survey_update,
)
from tests.conftest import Cast

from .conftest import Visitor, agreeing

PID, OTHER_PID, SESSION = "5af0000000000000000f0001", "5af0000000000000000f0002", "6600aa0000000000b0000001"


def fielded(cast: Cast, instrument: Instrument, **fields: object) -> Survey:
    own = {"title": "S", "contact": "c@example.org", "consent_text": "I agree.", **fields}
    survey = survey_create(instrument=instrument, actor=cast.alice, **own)
    survey_set_state(survey=survey, state="open", actor=cast.alice)
    survey.refresh_from_db()
    return survey


def start(survey: Survey, **ids: str) -> str:
    return participant_start(survey_id=survey.pk, newcomer=Newcomer(start_key=uuid4(), **ids))


def come(survey: Survey, client: Client, query: str, **extra: str):
    """Open the link and press the button, as a browser does."""
    page = client.get(f"/s/{survey.slug}/{query}")
    if page.status_code != 200:
        return page
    sent = {"start_key": page.context["start_key"], "documents": page.context["documents"]}
    sent |= {"person": page.context["person"], "visit": page.context["visit"]}
    return client.post(f"/s/{survey.slug}/", {**sent, **extra})


def test_a_prolific_participant_comes_and_goes(cast: Cast, instrument: Instrument) -> None:
    survey = fielded(cast, instrument, platform="prolific", completion_code="C1A2B3C4")
    assert (survey.person_parameter, survey.visit_parameter) == ("PROLIFIC_PID", "SESSION_ID")
    client = Client()
    response = come(survey, client, f"?PROLIFIC_PID=%20{PID.upper()}&STUDY_ID=x&SESSION_ID={SESSION}")
    participant = Participant.objects.get()
    assert (participant.external_id, participant.visit_id) == (PID, SESSION)
    for number in (1, 2, 3):
        client.post(f"{response['Location']}{number}/", {"text": "ответ"})
    page = client.get(f"{response['Location']}end/").content.decode()
    assert "C1A2B3C4" in page and "https://app.prolific.com/submissions/complete?cc=C1A2B3C4" in page


@pytest.mark.parametrize("query", ["", "?PROLIFIC_PID=", "?PROLIFIC_PID={{%25PROLIFIC_PID%25}}", "?PROLIFIC_PID=<b>x"])
def test_a_link_without_a_proper_id_starts_nothing(cast: Cast, instrument: Instrument, query: str) -> None:
    survey = fielded(cast, instrument, platform="prolific")
    page = Client().get(f"/s/{survey.slug}/{query}")
    assert page.status_code == 400 and "из самого задания" in page.content.decode()
    assert "<b>x" not in page.content.decode()
    posted = Client().post(f"/s/{survey.slug}/", {"start_key": uuid4(), "person": "<b>x"})
    assert posted.status_code == 400 and not Participant.objects.exists()


def test_the_same_id_is_the_same_person(cast: Cast, instrument: Instrument) -> None:
    survey = fielded(cast, instrument, platform="prolific")
    first = come(survey, Client(), f"?PROLIFIC_PID={PID}&SESSION_ID={SESSION}")["Location"]
    again = come(survey, Client(), f"?PROLIFIC_PID={PID}&SESSION_ID={OTHER_PID}")["Location"]
    assert again == first and Sitting.objects.count() == 1
    assert Participant.objects.get().flags == ["visit_again"]  # said, and nobody is turned away
    assert come(survey, Client(), f"?PROLIFIC_PID={OTHER_PID}")["Location"] != first


def test_who_took_everything_back_does_not_start_again_under_the_same_id(cast: Cast, instrument: Instrument) -> None:
    survey = fielded(cast, instrument, platform="prolific")
    come(survey, Client(), f"?PROLIFIC_PID={PID}")
    participant_withdraw(participant_id=Participant.objects.get().pk, way="own_link")
    page = come(survey, Client(), f"?PROLIFIC_PID={PID}")
    assert page.status_code == 409 and "c@example.org" in page.content.decode()
    assert Participant.objects.count() == 1


def test_a_consent_page_sent_under_another_id_opens_nobodys_answers(cast: Cast, instrument: Instrument) -> None:
    survey = fielded(cast, instrument, platform="prolific")
    key = uuid4()
    for person, status in ((PID, 302), (PID, 302), (OTHER_PID, 409)):
        response = Client().post(f"/s/{survey.slug}/", agreeing(survey, start_key=key, person=person))
        assert response.status_code == status
    assert Participant.objects.count() == 1


def test_the_default_consent_tells_the_number_of_tasks(cast: Cast, instrument: Instrument) -> None:
    page = cast.client(cast.alice).get("/studies/ours/surveys/new/").content.decode()
    assert "Заданий 3, это занимает примерно 2–3 минут" in page


def test_a_short_id_alone_opens_nobodys_answers(cast: Cast, instrument: Instrument) -> None:
    survey = fielded(cast, instrument, platform="other", person_parameter="who", visit_parameter="visit")
    client = Client()
    first = come(survey, client, "?who=7&visit=a1")["Location"]
    stranger = come(survey, Client(), "?who=7&visit=a2")
    assert stranger.status_code == 409 and "c@example.org" in stranger.content.decode()
    assert come(survey, Client(), "?who=7&visit=a1").status_code == 409  # nor does a short visit's id
    assert client.get(f"/s/{survey.slug}/?who=7")["Location"] == first  # and so is the browser
    assert Participant.objects.count() == 1


def test_a_long_visits_id_is_proof(cast: Cast, instrument: Instrument) -> None:
    survey = fielded(cast, instrument, platform="other", person_parameter="who", visit_parameter="visit")
    first = come(survey, Client(), f"?who=7&visit={SESSION}")["Location"]
    assert come(survey, Client(), f"?who=7&visit={SESSION}")["Location"] == first
    assert come(survey, Client(), f"?who=7&visit={SESSION[:-1]}2").status_code == 409


def test_a_browser_that_starts_twice_and_an_id_seen_elsewhere_are_flagged(cast: Cast, instrument: Instrument) -> None:
    one, two = (fielded(cast, instrument, platform="prolific") for _ in range(2))
    client = Client()
    come(one, client, f"?PROLIFIC_PID={PID}")
    come(one, client, f"?PROLIFIC_PID={OTHER_PID}")
    come(two, Client(), f"?PROLIFIC_PID={PID}")
    flags = list(Participant.objects.order_by("pk").values_list("flags", flat=True))
    assert flags == [[], ["browser_again"], ["id_elsewhere"]]


def test_each_participant_has_their_own_code(cast: Cast, instrument: Instrument) -> None:
    survey = fielded(cast, instrument, codes="unique")
    people = [Visitor(survey).start() for _ in range(2)]
    codes = []
    for person in people:
        for number in (1, 2, 3):
            person.answer(number, "ответ")
        codes.append(person.visit.own_code)
        assert codes[-1] in person.get("end").content.decode()
    assert len(set(codes)) == 2 and survey.completion_code not in codes


def test_the_review_file_accepts_whoever_finished(cast: Cast, instrument: Instrument) -> None:
    survey = fielded(cast, instrument, platform="toloka")
    for number in (1, 2):
        address = come(survey, Client(), f"?worker_id=w{number}&assignment_id=0005--b{number}")["Location"]
        for task in range(1, 4 if number == 1 else 2):
            Client().post(f"{address}{task}/", {"text": "ответ"})
    Sitting.objects.filter(state="finished").update(standing="excluded")  # no reason not to pay
    page = cast.client(cast.alice).get(f"/studies/ours/surveys/{survey.pk}/review.tsv")
    header = "ASSIGNMENT:assignment_id\tACCEPT:verdict\tACCEPT:comment\r\n"
    assert page.content.decode() == header + "0005--b1\t+\t\r\n"
    page = cast.client(cast.alice).get(f"/studies/ours/surveys/{survey.pk}/review.tsv?unfinished=reject")
    assert "0005--b2" not in page.content.decode()  # still at it
    long_ago = timezone.now() - timedelta(days=1)
    Participant.objects.update(created_at=long_ago)
    Exposure.objects.update(onset_at=long_ago)
    page = cast.client(cast.alice).get(f"/studies/ours/surveys/{survey.pk}/review.tsv?unfinished=reject")
    assert page.content.decode().splitlines()[2].startswith("0005--b2\t-\t")
    assert cast.client(cast.bob).get(f"/studies/ours/surveys/{survey.pk}/review.tsv").status_code == 404


def test_a_preview_takes_no_place_and_starts_nothing(cast: Cast, instrument: Instrument) -> None:
    survey = fielded(cast, instrument, quota=1)
    for method in ("get", "head"):
        assert getattr(Client(), method)(f"/s/{survey.slug}/").status_code == 200
    assert places_taken(survey) == 0 and not Respondent.objects.exists() and not Arrival.objects.exists()


def test_the_consent_pages_script_counts_an_arrival_once(survey: Survey) -> None:
    key = uuid4()
    for _ in range(2):
        assert Client().post(f"/s/{survey.slug}/arrive/", {"start_key": key}).status_code == 204
    assert Arrival.objects.get().key == key and not Participant.objects.exists()
    assert Client().post(f"/s/{survey.slug}/arrive/", {"start_key": "x"}).status_code == 404
    assert Client().get(f"/s/{survey.slug}/arrive/").status_code == 405


def test_a_full_survey_says_so_and_lets_its_own_people_on(cast: Cast, instrument: Instrument) -> None:
    survey = fielded(cast, instrument, quota=1)
    inside = Visitor(survey).start()
    late = Client().get(f"/s/{survey.slug}/")
    assert late.status_code == 403 and "уже достаточно" in late.content.decode()
    assert Client().post(f"/s/{survey.slug}/", agreeing(survey)).status_code == 403
    assert inside.answer(1, "ответ").status_code == 302
    inside.client.post(f"{inside.address}leave/")
    assert Client().get(f"/s/{survey.slug}/").status_code == 200  # who leaves gives the place back


def test_who_stays_away_gives_the_place_back(cast: Cast, instrument: Instrument) -> None:
    survey = fielded(cast, instrument, quota=1, hold_minutes=60)
    visitor = Visitor(survey).start()
    visitor.get(1)
    long_ago = timezone.now() - timedelta(minutes=61)
    Sitting.objects.update(started_at=long_ago)
    assert places_taken(survey) == 1  # begun long ago, and still at it
    Exposure.objects.update(onset_at=long_ago)
    assert places_taken(survey) == 0
    visitor.answer(1, "ответ")
    assert places_taken(survey) == 1


@pytest.mark.django_db(transaction=True)
def test_a_hundred_starts_at_once_on_sixty_places(cast: Cast, instrument: Instrument) -> None:
    survey = fielded(cast, instrument, quota=60)
    ready, results = threading.Barrier(20), []

    def one() -> None:
        try:
            ready.wait()
            for _ in range(5):
                try:
                    results.append(start(survey))
                except QuotaFullError:
                    results.append("")
        finally:
            connection.close()

    threads = [threading.Thread(target=one) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 100
    assert sum(1 for secret in results if secret) == 60 == places_taken(survey)
    assert Participant.objects.count() == Sitting.objects.count() == Consent.objects.count() == 60


@pytest.mark.parametrize(
    ("opens", "closes", "status", "words"),
    [(1, None, 403, "ещё не открыт"), (-1, 1, 200, ""), (-2, -1, 403, "завершён"), (None, -1, 403, "завершён")],
)
def test_times_are_kept(cast: Cast, instrument: Instrument, opens, closes, status: int, words: str) -> None:
    now = timezone.now()
    times = {"opens_at": opens, "closes_at": closes}
    moments = {name: None if hours is None else now + timedelta(hours=hours) for name, hours in times.items()}
    survey = fielded(cast, instrument, **moments)
    for response in (
        Client().get(f"/s/{survey.slug}/"),
        Client().post(f"/s/{survey.slug}/", agreeing(survey)),
    ):
        assert response.status_code == (302 if status == 200 and response.wsgi_request.method == "POST" else status)
        assert words in response.content.decode()


def test_closing_time_lets_those_inside_finish(visitor: Visitor) -> None:
    survey_update(survey=visitor.survey, actor=None, closes_at=timezone.now() - timedelta(minutes=1))
    assert visitor.answer(1, "ответ").status_code == 302
    assert visitor.texts() == {1: "ответ"}


def test_a_pilots_answers_stand_apart(cast: Cast, instrument: Instrument) -> None:
    visitor = Visitor(fielded(cast, instrument, is_pilot=True)).start()
    assert visitor.sitting.standing == Sitting.Standing.PILOT


def test_an_order_within_bands_is_stored_and_kept(cast: Cast) -> None:
    instrument = builtin_instrument_create(study=cast.study, actor=None)
    survey = fielded(cast, instrument, order_scheme="within_bands", seed=7)
    visitors = [Visitor(survey).start() for _ in range(3)]
    stimuli = {stimulus.pk: stimulus for stimulus in instrument.stimuli.all()}
    orders = [visitor.sitting.order for visitor in visitors]
    assert len({tuple(order) for order in orders}) == 3
    for order in orders:
        assert [stimuli[pk].complexity for pk in order] == ["easy"] * 4 + ["medium"] * 6 + ["hard"] * 8
    first = visitors[0]
    for number in range(1, 19):
        assert stimuli[orders[0][number - 1]].text in first.get(number).context["stimulus"].text
        first.answer(number, f"ответ {number}")
    assert first.sitting.state == "finished"
    position = stimuli[orders[0][4]].position
    assert first.texts()[position] == "ответ 5"


def test_further_consents_are_asked_for_apart(cast: Cast, instrument: Instrument) -> None:
    texts = {"publication_text": "Publish.", "third_party_text": "Third parties."}
    survey = fielded(cast, instrument, **texts)
    page = Client().get(f"/s/{survey.slug}/").content.decode()
    assert "Publish." in page and "Third parties." in page and "checked" not in page
    client = Client()
    client.post(f"/s/{survey.slug}/", agreeing(survey, third_parties="1"))
    given = {consent.document.purpose: consent for consent in Consent.objects.select_related("document")}
    assert set(given) == {Purpose.PARTICIPATION, Purpose.THIRD_PARTIES}
    # printf 'Third parties.' | sha256sum
    assert given[Purpose.THIRD_PARTIES].sha256.startswith("060b851e097c4aac")


def test_a_consent_that_is_not_asked_for_cannot_be_given(survey: Survey) -> None:
    Client().post(f"/s/{survey.slug}/", agreeing(survey, publication="1"))
    assert [consent.document.purpose for consent in Consent.objects.all()] == [Purpose.PARTICIPATION]


def test_the_instruction_comes_again_after_a_long_gap(visitor: Visitor) -> None:
    visitor.get(1)
    visitor.answer(1, "ответ")
    assert "кошка" in visitor.get(1).content.decode()
    Exposure.objects.update(
        onset_at=timezone.now() - timedelta(hours=3), submitted_at=timezone.now() - timedelta(hours=2)
    )
    Sitting.objects.update(started_at=timezone.now() - timedelta(hours=3))
    page = visitor.get(2)
    assert "отсутствовали" in page.content.decode() and page.context["go_on"] == f"{visitor.address}2/?read"
    assert Exposure.objects.count() == 1  # the task itself has not been shown
    task = visitor.client.get(page.context["go_on"])
    assert task.context["number"] == 2 and Exposure.objects.count() == 2
    assert "stimulus" in visitor.get(2).context  # and not once more


def test_what_the_page_measured_is_kept(visitor: Visitor) -> None:
    visitor.get(1)
    timing = '{"duration": 4000, "first_key": 700, "away": 1500, "pastes": 2, "pasted": 40, "translated": true, '
    visitor.answer(1, "ответ", timing=timing + '"device": "tablet"}')
    exposure = Exposure.objects.get(submitted_at__isnull=False)
    assert (exposure.duration_ms, exposure.first_key_ms, exposure.away_ms) == (4000, 700, 1500)
    assert (exposure.pastes, exposure.pasted_characters, exposure.translated) == (2, 40, True)
    assert exposure.device == "tablet" and exposure.onset_at < exposure.submitted_at
    visitor.answer(1, "другой ответ", timing='{"duration": 9}')
    exposure.refresh_from_db()
    assert exposure.duration_ms == 4000  # of the first answer; a correction has its own page and no story


def test_no_address_and_no_browser_is_stored(survey: Survey) -> None:
    client = Client(REMOTE_ADDR="203.0.113.77", HTTP_USER_AGENT="Peculiar/1.0")
    address = client.post(f"/s/{survey.slug}/", agreeing(survey))["Location"]
    client.post(f"{address}1/", {"text": "ответ"})
    with connection.cursor() as cursor:
        tables = [name for name in connection.introspection.table_names() if not name.startswith("django_")]
        for table in tables:
            cursor.execute(
                sql.SQL("SELECT count(*) FROM {} AS one WHERE one::text ~ %s").format(sql.Identifier(table)),
                ["203.0.113.77|Peculiar"],
            )
            assert cursor.fetchone() == (0,), table


def test_what_participants_were_shown_is_frozen_by_the_first(cast: Cast, visitor: Visitor) -> None:
    survey_update(survey=visitor.survey, actor=cast.alice, title="New", quota=5)
    with pytest.raises(SurveyFieldFrozenError, match="consent_document"):
        survey_update(survey=visitor.survey, actor=cast.alice, consent_text="Another.")
    visitor.survey.refresh_from_db()
    assert visitor.survey.title == "New" and visitor.survey.consent_document.text == "I agree."
    page = cast.client(cast.alice).get(f"/studies/ours/surveys/{visitor.survey.pk}/edit/")
    assert page.status_code == 200 and page.content.decode().count(" disabled") > 5


def test_a_changed_survey_shows_at_once(visitor: Visitor) -> None:
    for number in (1, 2, 3):
        visitor.answer(number, "ответ")
    assert "nobody@example.org" in visitor.get("end").content.decode()
    survey_update(survey=visitor.survey, actor=None, contact="new@example.org")
    assert "new@example.org" in visitor.get("end").content.decode()


def test_editing_is_for_researchers_of_the_study(cast: Cast, survey: Survey) -> None:
    for user in (cast.bob, cast.rita):
        for tail in ("edit/", "preview/", "questions/", "questions/new/"):
            assert cast.client(user).get(f"/studies/ours/surveys/{survey.pk}/{tail}").status_code == 404
        for tail in ("edit/", "questions/new/", "questions/copy/"):
            assert cast.client(user).post(f"/studies/ours/surveys/{survey.pk}/{tail}").status_code == 404
    assert not Answer.objects.exists()


def test_the_consent_that_is_recorded_is_the_one_that_was_shown(cast: Cast, instrument: Instrument) -> None:
    survey = fielded(cast, instrument)
    client = Client()
    shown = client.get(f"/s/{survey.slug}/").context
    survey_update(survey=survey, actor=cast.alice, consent_text="I agree to something else.")
    sent = {"start_key": shown["start_key"], "documents": shown["documents"]}
    page = client.post(f"/s/{survey.slug}/", sent)
    assert page.status_code == 409 and "I agree to something else." in page.content.decode()
    assert client.post(f"/s/{survey.slug}/", {"start_key": uuid4()}).status_code == 409  # nothing was shown
    assert not Participant.objects.exists()
    sent = {"start_key": page.context["start_key"], "documents": page.context["documents"]}
    assert client.post(f"/s/{survey.slug}/", sent).status_code == 302
    assert Consent.objects.get().document.text == "I agree to something else."


def test_two_researchers_at_one_survey(cast: Cast, survey: Survey) -> None:
    client, address = cast.client(cast.alice), f"/studies/ours/surveys/{survey.pk}/edit/"
    seen = client.get(address).context["survey"].revision
    survey_update(survey=survey, actor=cast.alice, quota=60)
    fields = {"title": "Later", "instrument": survey.instrument_id, "contact": "c", "platform": "direct"}
    fields |= {"codes": "common", "hold_minutes": 120, "order_scheme": "fixed", "seed": 1, "consent_text": "I agree."}
    page = client.post(address, {**fields, "seen": seen})
    survey.refresh_from_db()
    assert page.status_code == 409 and survey.quota == 60 and 'value="Later"' in page.content.decode()
    assert client.post(address, {**fields, "quota": 60, "seen": survey.revision}).status_code == 302
    survey.refresh_from_db()
    assert (survey.title, survey.quota) == ("Later", 60)


def test_platform_ids_do_not_reach_the_log(cast: Cast, instrument: Instrument, capfd: pytest.CaptureFixture) -> None:
    survey = fielded(cast, instrument, platform="prolific")
    assert Client().get(f"/s/{survey.slug}/?PROLIFIC_PID={PID}zz&SESSION_ID={SESSION}").status_code == 400
    out, err = capfd.readouterr()
    assert PID not in out + err


@pytest.mark.django_db(transaction=True)
def test_a_page_that_is_shown_while_its_answer_arrives_waits_for_nothing(survey: Survey) -> None:
    """The note of the first showing and the first answer write the same row and point to the same sitting."""
    people = [Visitor(survey).start() for _ in range(6)]
    ready, codes = threading.Barrier(12), []

    def press(person: Visitor, post: bool) -> None:
        own = Visitor(survey)
        own.address = person.address
        try:
            for number in (1, 2, 3):
                ready.wait()
                codes.append((own.answer(number, "ответ") if post else own.get(number)).status_code)
        finally:
            connection.close()

    threads = [threading.Thread(target=press, args=(one, post)) for one in people for post in (True, False)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(codes) == 36 and set(codes) <= {200, 302}
    assert Answer.objects.count() == 18
