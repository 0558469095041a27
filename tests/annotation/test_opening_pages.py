"""Planning a campaign in the browser: count, look, open; what is wrong is said; the deadline."""

import re
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation.models import Campaign, Guideline, Place, Rater, Reference, Seat
from annotation.services import campaign_close, rater_ensure
from corpus.models import Answer, Instrument, Respondent
from scoring.services import CHILDREN_RUBRIC, PAPER_RUBRIC, paper_rubric
from tests.annotation.factories import GOOD, YES, form, hand_of, judge, live, make_campaign, make_sitting, many_answers
from tests.annotation.test_campaign_pages import OPENING, english
from tests.annotation.test_threads import at_once
from tests.conftest import Cast

NEW = "/studies/ours/campaigns/new/"


@pytest.fixture
def mixed(cast: Cast, instrument: Instrument) -> Instrument:
    """One person of each of two surveys, one run of a model: nine answers."""
    make_sitting(instrument, label="first")
    make_sitting(instrument, label="second")
    make_sitting(instrument, kind=Respondent.Kind.MODEL, label="gpt")
    return instrument


def hidden_fields(text: str) -> dict[str, list[str]]:
    """What the button that opens would post."""
    ready = text.partition('<form method="post">')[2].partition("</form>")[0]
    found: dict[str, list[str]] = {}
    for tag in re.findall(r"<input[^>]*>", ready):
        name, value = re.search(r'name="([^"]*)"', tag), re.search(r'value="([^"]*)"', tag)
        if name and name[1] != "csrfmiddlewaretoken":
            found.setdefault(name[1], []).append(value[1] if value else "")
    return found


def in_an_hour(hours: int = 1) -> str:
    return (timezone.localtime() + timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M")


# --- count, look, open -------------------------------------------------------------------------------------------


def test_the_first_page_counts_without_reading(cast: Cast, mixed: Instrument) -> None:
    text = english(cast, cast.alice).get(NEW).content.decode()
    assert "9 answers of finished sittings could be rated" in text
    assert "Open the campaign" not in text
    assert "Nothing is opened yet" in text


def test_what_was_looked_at_is_what_opens(cast: Cast, mixed: Instrument) -> None:
    for answer, purpose in zip(Answer.objects.order_by("pk"), ("training", "gold"), strict=False):
        Reference.objects.create(study=cast.study, rubric=paper_rubric(), answer=answer, purpose=purpose, expected=YES)
    asked = OPENING | {
        "instrument": str(mixed.pk), "kind": "human", "sources": ["first", "second"], "complexity": ["easy", "medium"],
        "shuffled": "", "stimuli": "1-3", "sample": "3", "criteria": ["logical", "order"], "identical": "once",
        "training": "on", "gold_every": "2", "repeat_percent": "50", "repeat_distance": "1", "deadline": in_an_hour(),
        "only_new": "on", "with_refusals": "on", "seed": "99",
    }  # fmt: skip
    client = english(cast, cast.alice)
    text = client.get(NEW, asked).content.decode()
    assert "Opening fixes these 3 answers" in text
    assert "drawn at random from 4" in text
    assert not Campaign.objects.exists()
    posted = hidden_fields(text)
    assert client.post(NEW, posted).status_code == 302
    campaign = Campaign.objects.get()
    assert campaign.selection["sha256"] == posted["seen"][0]
    assert campaign.selection["asked"] == {
        "instrument": mixed.pk, "kind": "human", "sources": ["first", "second"], "complexity": ["easy", "medium"],
        "stimuli": list(mixed.stimuli.order_by("pk").values_list("pk", flat=True)), "with_refusals": True,
        "only_new": True, "sample": 3, "balanced": True,
    }  # fmt: skip
    assert campaign.selection["numbers"]["answers"] == campaign.items.filter(purpose="rating").count() == 3
    assert (campaign.seed, campaign.gold_every, campaign.identical) == (99, 2, "once")
    assert campaign.items.filter(purpose="training").count() == campaign.items.filter(purpose="gold").count() == 1
    assert timezone.localtime(campaign.deadline).strftime("%Y-%m-%dT%H:%M") == asked["deadline"]
    assert list(campaign.criteria.values_list("code", flat=True).order_by("position")) == ["logical", "order"]


@pytest.mark.parametrize(
    ("asked", "n"),
    [
        ({"kind": "human"}, 6),
        ({"kind": "model"}, 3),
        ({"sources": ["gpt", "first"]}, 6),
        ({"complexity": ["easy"]}, 6),
        ({"shuffled": "1"}, 3),
        ({"shuffled": "0"}, 6),
        ({"stimuli": "2, 3", "instrument": "INSTRUMENT"}, 6),
        ({"sample": "4"}, 4),
        ({"sample": "400"}, 9),
    ],
    ids=str,
)
def test_each_filter_of_the_form(cast: Cast, mixed: Instrument, asked: dict[str, Any], n: int) -> None:
    data = OPENING | {key: str(mixed.pk) if value == "INSTRUMENT" else value for key, value in asked.items()}
    client = english(cast, cast.alice)
    assert f"Opening fixes these {n} answers" in client.get(NEW, data).content.decode()
    client.post(NEW, data)
    assert Campaign.objects.get().items.count() == n


def test_only_undecided_is_offered_of_closed_campaigns(cast: Cast, campaign: Campaign) -> None:
    client = english(cast, cast.alice)
    assert "Only what is undecided in" not in client.get(NEW).content.decode()
    data = OPENING | {"title": "Again", "undecided_in": str(campaign.pk)}
    campaign_close(campaign=campaign, actor=cast.alice)
    assert "Only what is undecided in" in client.get(NEW).content.decode()
    text = client.get(NEW, data).content.decode()  # nobody has judged: a gap, and nothing undecided
    assert "No answer fits what you chose" in text
    assert "Open the campaign" not in text


def test_another_study_s_campaign_is_not_looked_into(cast: Cast, campaign: Campaign) -> None:
    campaign_close(campaign=campaign, actor=cast.alice)
    data = OPENING | {"undecided_in": str(campaign.pk), "instrument": str(Instrument.objects.get().pk)}
    response = english(cast, cast.bob).post("/studies/theirs/campaigns/new/", data)
    assert response.status_code == 400
    assert not Campaign.objects.filter(study=cast.other_study).exists()


def test_a_rater_is_asked_only_the_chosen_criteria(cast: Cast, mixed: Instrument, raters: list[Rater]) -> None:
    english(cast, cast.alice).post(NEW, OPENING | {"criteria": ["logical"]})
    campaign = Campaign.objects.get()
    client = english(cast, raters[0].user)
    (card,) = hand_of(campaign, raters[0]).cards
    address = reverse("rate_place", args=[card.place])
    page = client.get(address).content.decode()
    assert 'name="c-logical"' in page and 'name="c-order"' not in page
    json = {"accept": "application/json"}
    assert client.post(address, form({"logical": 1.0}), headers=json).status_code == 200
    assert live(campaign) == 1


def test_few_raters_are_told_before_and_do_not_stop_it(cast: Cast, mixed: Instrument) -> None:
    client = english(cast, cast.alice)
    assert "fewer raters than each answer asks for" in client.get(NEW, OPENING).content.decode()
    one = OPENING | {"raters_per_answer": "1"}
    assert "fewer raters than each answer asks for" not in client.get(NEW, one).content.decode()


def test_checks_that_do_not_exist_are_told_before(cast: Cast, mixed: Instrument) -> None:
    text = english(cast, cast.alice).get(NEW, OPENING | {"training": "on", "gold_every": "5"}).content.decode()
    assert "The study has no training answers for these criteria" in text
    assert "The study has no gold answers for these criteria" in text


def test_what_is_zero_is_left_out_of_the_preview(cast: Cast, mixed: Instrument, raters: list[Rater]) -> None:
    client = english(cast, cast.alice)
    text = client.get(NEW, OPENING).content.decode()
    assert "Beside them" not in text and "0 training" not in text and "0 repeats" not in text
    many_answers(mixed, sittings=20)
    asked = OPENING | {"repeat_percent": "20", "repeat_distance": "1"}
    text = client.get(NEW, asked).content.decode()
    beside = re.search(r"Beside them, for each rater: (about \d+ repeats?)\.", text)
    assert beside and "training answer" not in beside[0] and "gold" not in beside[0]


def test_a_short_work_is_told_in_minutes(cast: Cast, instrument: Instrument, raters: list[Rater]) -> None:
    make_sitting(instrument)
    earlier = make_campaign(cast.study, cast.alice, title="earlier")
    Seat.objects.create(campaign=earlier, rater=raters[0], seconds=240.0, timed=20)
    text = english(cast, cast.alice).get(NEW, OPENING | {"raters_per_answer": "1"}).content.decode()
    assert "12 s an answer: about 1 minute of work in all." in text and "hours of work" not in text


# --- blindness ---------------------------------------------------------------------------------------------------


def test_who_rates_cannot_narrow_by_who_answered(cast: Cast, mixed: Instrument) -> None:
    make_campaign(cast.study, cast.alice, title="open")
    rater_ensure(user=cast.alice, study=cast.study, actor=cast.alice)
    client = english(cast, cast.alice)
    text = client.get(NEW).content.decode()
    for name in ("kind", "sources", "undecided_in"):
        assert f'name="{name}"' not in text
    data = OPENING | {"title": "models", "kind": "model", "sources": ["gpt"]}
    assert "Opening fixes these 9 answers" in client.get(NEW, data).content.decode()
    client.post(NEW, data)
    assert Campaign.objects.get(title="models").items.count() == 9


def test_a_rater_who_narrows_is_told_what_it_costs(cast: Cast, mixed: Instrument) -> None:
    client = english(cast, cast.alice)
    told = "your own judgements will not be blind"
    assert told not in client.get(NEW, OPENING | {"kind": "model"}).content.decode()
    rater_ensure(user=cast.alice, study=cast.study, actor=cast.alice)
    assert told in client.get(NEW, OPENING | {"kind": "model"}).content.decode()
    assert told not in client.get(NEW, OPENING).content.decode()


def test_what_was_asked_is_on_the_campaign_s_page_but_for_whose(cast: Cast, mixed: Instrument) -> None:
    campaign = make_campaign(
        cast.study, cast.alice, kind="human", sources=["first"], complexity=["easy"], sample=1, instrument=mixed
    )
    address = reverse("campaign", args=["ours", campaign.pk])
    client = english(cast, cast.alice)
    text = client.get(address).content.decode()
    for words in ("people only", "first", "1 answer · drawn at random from 2", "easy", "Small v1"):
        assert f">{words}</dd>" in text
    assert campaign.selection["sha256"] in text
    rater_ensure(user=cast.alice, study=cast.study, actor=cast.alice)
    text = client.get(address).content.decode()
    assert ">people only</dd>" not in text and ">first</dd>" not in text
    assert ">easy</dd>" in text
    assert ">1 answer · drawn at random</dd>" in text  # how many of them there are may tell whose they are


# --- again -------------------------------------------------------------------------------------------------------


def test_another_one_like_it_has_the_same_answers_in_the_same_order(cast: Cast, instrument: Instrument) -> None:
    many_answers(instrument, sittings=10)
    Guideline.objects.create(study=cast.study, rubric_slug=PAPER_RUBRIC, version=1, text="rules")
    options: dict[str, Any] = {"sample": 12, "codes": ["logical"], "identical": "separately", "guideline": 1}
    options |= {"repeat_percent": 20, "repeat_distance": 2, "stimuli": [one.pk for one in instrument.stimuli.all()[:2]]}
    first = make_campaign(cast.study, cast.alice, instrument=instrument, **options)
    client = english(cast, cast.alice)
    assert f"?like={first.pk}" in client.get(reverse("campaign", args=["ours", first.pk])).content.decode()
    initial = client.get(NEW, {"like": first.pk}).context["form"]
    data = {field.name: field.value() for field in initial if field.value() not in (None, False)}
    assert client.post(NEW, data | {"title": "Again", "seed": first.seed}).status_code == 302
    again = Campaign.objects.get(title="Again")
    assert again.selection == first.selection
    order = [list(one.items.order_by("position").values_list("answer_id", "is_repeated")) for one in (first, again)]
    assert order[0] == order[1]


@pytest.mark.parametrize("like", ["", "x", "9" * 30, "999999", "OTHER"])
def test_like_what_is_not_there_is_an_empty_form(cast: Cast, mixed: Instrument, like: str) -> None:
    other = make_campaign(cast.study, cast.alice, title="theirs", sample=5)
    Campaign.objects.filter(pk=other.pk).update(study=cast.other_study)
    response = english(cast, cast.alice).get(NEW, {"like": str(other.pk) if like == "OTHER" else like})
    assert response.status_code == 200
    assert response.context["form"]["sample"].value() is None


# --- what is refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"deadline": "2020-01-01T10:00"}, "This moment has passed"),
        ({"deadline": "tomorrow"}, "Enter a valid date/time"),
        ({"guideline": "9"}, "is not one of the available choices"),
        ({"guideline": "x\x00"}, "is not one of the available choices"),
        ({"guideline": "2"}, "These rules are not for what you chose"),
        ({"criteria": ["beauty"]}, "is not one of the available choices"),
        ({"criteria": ["logical"], "rubric": CHILDREN_RUBRIC}, "This is not asked in what you chose"),
        ({"rubric": "none"}, "is not one of the available choices"),
        ({"kind": "robot"}, "is not one of the available choices"),
        ({"sources": ["nobody"]}, "is not one of the available choices"),
        ({"sources": ["first\x00"]}, "is not one of the available choices"),
        ({"complexity": ["x"]}, "is not one of the available choices"),
        ({"shuffled": "2"}, "is not one of the available choices"),
        ({"identical": "never"}, "is not one of the available choices"),
        ({"sample": "0"}, "greater than or equal to 1"),
        ({"sample": "-1"}, "greater than or equal to 1"),
        ({"gold_every": "0"}, "greater than or equal to 1"),
        ({"repeat_percent": "101"}, "less than or equal to 100"),
        ({"repeat_percent": "10", "repeat_distance": ""}, "Say how many other answers come before a repeat"),
        ({"repeat_percent": "10", "repeat_distance": "9"}, "There are only 9 answers to judge"),
        ({"repeat_percent": "10", "repeat_distance": "0"}, "greater than or equal to 1"),
        ({"stimuli": "1"}, "Choose one instrument"),
        ({"stimuli": "one", "instrument": "INSTRUMENT"}, "Numbers and ranges"),
        ({"stimuli": "5-9", "instrument": "INSTRUMENT"}, "The instrument has no stimulus with such a number"),
        ({"stimuli": "3-1", "instrument": "INSTRUMENT"}, "The instrument has no stimulus with such a number"),
        ({"raters_per_answer": "21"}, "less than or equal to 20"),
        ({"seen": "0" * 64}, "has changed since you counted it"),
        ({"complexity": ["hard"]}, "There is no answer to rate"),
    ],
    ids=str,
)
def test_what_is_wrong_is_said_and_nothing_opens(
    cast: Cast, mixed: Instrument, bad: dict[str, Any], words: str
) -> None:
    Guideline.objects.create(study=cast.study, rubric_slug=CHILDREN_RUBRIC, version=2, text="for one grade")
    data = OPENING | {key: str(mixed.pk) if value == "INSTRUMENT" else value for key, value in bad.items()}
    client = english(cast, cast.alice)
    response = client.post(NEW, data)
    assert response.status_code == 400
    assert words in response.content.decode()
    assert client.get(NEW, data).status_code == 200
    assert not Campaign.objects.exists()


def test_too_many_judgements_are_refused_with_their_number(
    cast: Cast, mixed: Instrument, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("annotation.layout.MAX_PLACES", 20)
    client = english(cast, cast.alice)
    for response in (client.get(NEW, OPENING), client.post(NEW, OPENING)):
        assert response.content.decode().count("This asks for 27 judgements") == 1
    assert not Campaign.objects.exists()


def test_what_changed_since_the_count_is_shown_anew(cast: Cast, mixed: Instrument) -> None:
    client = english(cast, cast.alice)
    posted = hidden_fields(client.get(NEW, OPENING).content.decode())
    make_sitting(mixed)
    response = client.post(NEW, posted)
    assert response.status_code == 400
    text = response.content.decode()
    assert "There are 12 answers now. Nothing was opened; look again." in text
    assert not Campaign.objects.exists()
    assert client.post(NEW, hidden_fields(text)).status_code == 302
    assert Campaign.objects.get().items.count() == 12


@pytest.mark.django_db(transaction=True)
def test_two_posts_at_once_open_one_campaign(cast: Cast, mixed: Instrument) -> None:
    posted = hidden_fields(english(cast, cast.alice).get(NEW, OPENING).content.decode())
    tabs = [english(cast, cast.alice) for _ in range(2)]
    codes = [response.status_code for response in at_once(*[lambda tab=tab: tab.post(NEW, posted) for tab in tabs])]
    assert sorted(codes) == [302, 400]
    campaign = Campaign.objects.get()
    assert (campaign.items.count(), campaign.places.count()) == (9, 27)


def test_titles_of_raters_pages_are_text(cast: Cast, mixed: Instrument, raters: list[Rater]) -> None:
    make_sitting(mixed, GOOD, label="<script>alert(1)</script>")
    client = english(cast, cast.alice)
    data = OPENING | {"title": "<b>bold</b>", "sources": ["<script>alert(1)</script>"]}
    assert "<script>alert(1)" not in client.get(NEW, data).content.decode()
    page = client.post(NEW, data, follow=True).content.decode()
    assert "<script>alert(1)" not in page and "<b>bold" not in page
    assert "<b>bold" not in english(cast, raters[0].user).get(reverse("rate_home")).content.decode()


# --- the deadline ------------------------------------------------------------------------------------------------


def passed(campaign: Campaign) -> None:
    Campaign.objects.filter(pk=campaign.pk).update(deadline=timezone.now() - timedelta(minutes=1))


def test_a_deadline_is_told_and_closes_nothing(cast: Cast, campaign: Campaign, raters: list[Rater]) -> None:
    rater, researcher = english(cast, raters[0].user), english(cast, cast.alice)
    home, page = reverse("rate_home"), reverse("campaign", args=["ours", campaign.pk])
    assert "Please finish by" not in rater.get(home).content.decode()
    assert "There is no deadline" in researcher.get(page).content.decode()
    Campaign.objects.filter(pk=campaign.pk).update(
        deadline=datetime(2100, 5, 17, 15, 30, tzinfo=timezone.get_current_timezone())
    )
    assert "Please finish by 17 May 2100, 15:30 UTC." in rater.get(home).content.decode()
    assert "Raters are asked to finish by 17 May 2100, 15:30 UTC." in researcher.get(page).content.decode()
    passed(campaign)
    text = rater.get(home).content.decode()
    assert "The deadline has passed" in text
    assert "what you judge counts until a researcher closes the campaign" in text
    assert "Begin" in text
    assert judge(campaign, raters[0]).state == Place.State.DONE
    text = researcher.get(page).content.decode()
    assert "Raters may still judge until you close the campaign" in text
    campaign_close(campaign=campaign, actor=cast.alice)
    text = researcher.get(page).content.decode()
    assert "The deadline was" in text and "Set the deadline" not in text


def test_the_deadline_is_moved_and_taken_away(cast: Cast, campaign: Campaign) -> None:
    client, address = english(cast, cast.alice), reverse("campaign_deadline", args=["ours", campaign.pk])
    later = in_an_hour(24)
    assert "The deadline is set" in client.post(address, {"deadline": later}, follow=True).content.decode()
    campaign.refresh_from_db()
    assert timezone.localtime(campaign.deadline).strftime("%Y-%m-%dT%H:%M") == later
    before = campaign.deadline
    for wrong in ("2020-01-01T10:00", "x\x00", "9" * 40):
        text = client.post(address, {"deadline": wrong}, follow=True).content.decode()
        assert "The deadline stays as it was" in text
        campaign.refresh_from_db()
        assert campaign.deadline == before
    client.post(address, {"deadline": ""})
    campaign.refresh_from_db()
    assert campaign.deadline is None
    campaign_close(campaign=campaign, actor=cast.alice)
    assert "The campaign is closed" in client.post(address, {"deadline": later}, follow=True).content.decode()
    assert client.get(address).status_code == 405


def test_the_wrong_person_neither_plans_nor_moves(cast: Cast, campaign: Campaign) -> None:
    addresses = [reverse("campaign_deadline", args=["ours", campaign.pk]), NEW]
    for address in addresses:
        for user in (cast.bob, cast.rita):
            assert cast.client(user).post(address, OPENING | {"title": "x", "deadline": ""}).status_code == 404
        assert Client().post(address, OPENING).url.startswith("/login/")
    for user in (cast.bob, cast.rita):
        assert cast.client(user).get(NEW, OPENING).status_code == 404
        assert cast.client(user).get(NEW, {"like": campaign.pk}).status_code == 404
    theirs = reverse("campaign_deadline", args=["theirs", campaign.pk])
    assert cast.client(cast.bob).post(theirs, {"deadline": in_an_hour()}).status_code == 404
    campaign.refresh_from_db()
    assert campaign.deadline is None and Campaign.objects.count() == 1
