import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from annotation.models import Campaign, Item, Place
from corpus.models import Instrument
from reports.dashboard import cards_of
from reports.services import StudySlugTakenError, study_begin
from studies.access import studies_of
from studies.models import AuditEntry, Membership, Role, Study, User
from studies.services import blinding_impose, membership_set, study_create
from surveys.models import ConsentDocument, Survey
from tests.reports.conftest import RIGHT, Built, add_model, add_run


def card(user, study):
    return next(card for card in cards_of(user, studies_of(user)) if card.study == study)


def state(found, code: str) -> str:
    return next(station.state for station in found.stations if station.code == code)


def survey(built: Built, **more) -> Survey:
    document = ConsentDocument.objects.create(study=built.cast.study, text="Да", sha256="0" * 64)
    values = {"slug": "s", "title": "S", "state": "open", "contact": "x", "completion_code": "C"}
    return Survey.objects.create(instrument=built.instrument, consent_document=document, **(values | more))


def campaign(built: Built, done: int, free: int) -> Campaign:
    found = Campaign.objects.create(
        round=built.rating,
        study=built.cast.study,
        title="First",
        raters_per_answer=1,
        seed=1,
        n_items=1,
        n_places=done + free,
    )
    found.criteria.set(built.rubric.criteria.filter(kind="judged"))
    answer = next(iter(built.answers.values()))
    item = Item.objects.create(campaign=found, answer=answer, position=1, stimulus_text="", display_text="")
    for number in range(done):
        Place.objects.create(campaign=found, item=item, number=number + 1, state="done", rater=built.raters[number])
    for number in range(free):
        Place.objects.create(campaign=found, item=item, number=done + number + 1)
    return found


def test_an_empty_study_begins_with_its_instrument(cast):
    found = card(cast.alice, cast.study)
    assert [station.code for station in found.stations] == ["instrument", "people", "models", "raters", "results"]
    assert not any(station.is_ready for station in found.stations)
    assert found.step.text == "Load the published test"


def test_each_station_in_one_line_and_one_next_step(bare):
    cast = bare.cast
    assert card(cast.alice, cast.study).step.url == "survey_list"
    survey(bare)
    assert card(cast.alice, cast.study).step.text == "Send the survey's link"
    bare.sitting("P1", RIGHT)
    bare.sitting("P2", {1: RIGHT[1]}, state="open", finished_at=None)
    bare.sitting("pilot", RIGHT, standing="pilot")  # is not counted
    found = card(cast.alice, cast.study)
    assert state(found, "people") == "1 of 2 have finished, 1 pilot"
    assert found.step.text == "Let a model take the test"
    add_model(bare)
    add_run(bare, 1, RIGHT)
    broken = add_run(bare, 2, {}, state="incomplete")
    found = card(cast.alice, cast.study)
    assert state(found, "models") == "1 of 2 runs, 1 incomplete"
    assert found.step.text == "See why runs wait"
    broken.state = "finished"
    broken.save(update_fields=["state"])
    found = card(cast.alice, cast.study)
    assert state(found, "raters") == "4 raters, no campaign"
    assert found.step.url == "campaign_list"
    campaign(bare, done=1, free=2)
    found = card(cast.alice, cast.study)
    assert state(found, "raters") == "1 of 3 ratings made"
    assert found.step.text == "Follow the rating"
    Place.objects.filter(number=2).update(state="done", rater=bare.raters[1])
    Place.objects.filter(number=3).update(state="withdrawn", rater=bare.raters[2])
    found = card(cast.alice, cast.study)
    assert state(found, "raters") == "2 of 2 ratings made"  # what was withdrawn is asked of nobody
    assert (found.step.text, state(found, "results")) == ("Close the campaign", "1 person, 2 runs")
    Campaign.objects.update(state="closed", closed_at=timezone.now())
    assert card(cast.alice, cast.study).step.url == "results"
    Campaign.objects.update(state="open", closed_at=None)
    blinding_impose(user=cast.alice, study=cast.study, cause="campaign 1")
    found = card(cast.alice, cast.study)
    assert state(found, "results") == "closed to you while you rate or decide"
    assert found.step.text == "Close the campaign"
    Campaign.objects.update(state="closed", closed_at=timezone.now())
    assert card(cast.alice, cast.study).step.text == "Decide what waits for you"


def test_pages_show_the_stations_in_order(built):
    survey(built)
    campaign(built, done=1, free=1)
    client = built.cast.client(built.cast.alice)
    for address in (reverse("home"), reverse("study_dashboard", args=["ours"])):
        page = client.get(address).content.decode()
        places = [page.index(f">{title}<") for title in ("Instrument", "People", "Models", "Raters", "Results")]
        assert places == sorted(places)
    assert "waits for its raters" in page
    assert "3 of 3 runs" in page


def test_home_shows_only_ones_own_studies(cast):
    page = cast.client(cast.alice).get(reverse("home")).content.decode()
    assert "Ours" in page
    assert "Theirs" not in page


def test_a_visitor_is_welcomed_with_the_way_to_log_in(client, db):
    page = client.get(reverse("home"))
    assert page.status_code == 200
    assert reverse("login") in page.content.decode()


def test_a_rater_is_led_to_the_desk(cast):
    response = cast.client(cast.rita).get(reverse("home"))
    assert (response.status_code, response.url) == (302, "/rate/")


def test_somebody_of_no_study_is_told_so(db, client):
    client.force_login(User.objects.create_user("nobody"))
    assert "You are in no study" in client.get(reverse("home")).content.decode()


def test_queries_do_not_grow_with_studies(cast):
    with CaptureQueriesContext(connection) as few:
        cards_of(cast.alice, studies_of(cast.alice))
    for number in range(10):
        study_begin(slug=f"s{number}", title="S", actor=cast.alice)
    with CaptureQueriesContext(connection) as many:
        assert len(cards_of(cast.alice, studies_of(cast.alice))) == 11
    assert len(few) == len(many)


def test_a_new_study_has_the_published_test(cast):
    client = cast.client(cast.alice)
    response = client.post(reverse("study_new"), {"title": "Новое", "slug": "new-one"})
    assert response.url == reverse("study_dashboard", args=["new-one"])
    instrument = Instrument.objects.get(study__slug="new-one")
    assert instrument.stimuli.count() == 18
    assert Membership.objects.get(study__slug="new-one").role == Role.RESEARCHER
    assert AuditEntry.objects.filter(study__slug="new-one", action="study_create", actor=cast.alice).exists()
    assert client.get(response.url).status_code == 200


@pytest.mark.parametrize("slug", ["ours", "new", "с пробелом", ""])
def test_an_address_that_will_not_do_is_refused_in_words(cast, slug):
    response = cast.client(cast.alice).post(reverse("study_new"), {"title": "T", "slug": slug})
    assert response.status_code == 200
    assert response.context["form"].errors["slug"]
    assert Study.objects.count() == 2


def test_an_address_taken_in_the_meantime_leaves_nothing(cast):
    with pytest.raises(StudySlugTakenError):
        study_begin(slug="ours", title="T", actor=cast.alice)
    assert Study.objects.count() == 2


def test_only_researchers_begin_studies(cast, client):
    form = {"title": "T", "slug": "t"}
    assert cast.client(cast.rita).post(reverse("study_new"), form).status_code == 403
    assert client.post(reverse("study_new"), form).url.startswith(reverse("login"))
    assert not Study.objects.filter(slug="t").exists()


def test_the_published_test_is_loaded_once(cast):
    address = reverse("instrument_load", args=["ours"])
    for _ in range(2):
        assert cast.client(cast.alice).post(address).status_code == 302
    assert Instrument.objects.filter(study=cast.study).count() == 1
    assert cast.client(cast.alice).get(address).status_code == 405


def test_only_the_studys_researchers_load_it(cast, client):
    address = reverse("instrument_load", args=["ours"])
    for user in (cast.bob, cast.rita):
        assert cast.client(user).post(address).status_code == 404
    assert client.post(address).url.startswith(reverse("login"))
    assert not Instrument.objects.filter(study=cast.study).exists()


def test_a_researcher_who_also_rates_elsewhere_sees_studies(cast):
    other = study_create(slug="third", title="Third", actor=cast.bob)
    membership_set(user=cast.alice, study=other, role=Role.RATER, actor=cast.bob)
    page = cast.client(cast.alice).get(reverse("home"))
    assert page.status_code == 200
    assert reverse("study_dashboard", args=["third"]) not in page.content.decode()
