"""What raters and adjudicators meet over HTTP, and what they are refused."""

import re
import uuid

import pytest
from django.test import Client
from django.urls import reverse

from annotation import facts
from annotation.models import Campaign, Place, Rater
from annotation.services import adjudicator_set, campaign_close, rater_deactivate
from scoring.models import Judgement
from studies.models import Membership
from tests.annotation.factories import NO, YES, form, give, judge, live, take
from tests.conftest import Cast

NOT_SAVED = "What you just sent was not saved."


def url(place: Place) -> str:
    return reverse("rate_place", args=[place.uuid])


def signed_in(rater: Rater, language: str = "en") -> Client:
    client = Client(headers={"accept-language": language})
    client.force_login(rater.user)
    return client


def page(client: Client, path: str) -> str:
    response = client.get(path)
    assert response.status_code == 200
    return response.content.decode()


def test_walk_from_the_first_page_to_the_last_answer(campaign: Campaign, raters: list[Rater]) -> None:
    client = signed_in(raters[0])
    home = page(client, reverse("rate_home"))
    assert campaign.title in home
    assert "0 of 6 judged" in home
    response = client.post(reverse("rate_next", args=[campaign.pk]))
    for done in range(6):
        text = page(client, response.url)
        assert f"{done} of 6" in text
        response = client.post(response.url, form())
        assert response.status_code == 302
    assert response.url == reverse("rate_home")
    assert "Done: nothing is left for you" in page(client, response.url)
    assert live(campaign) == 18


def test_nothing_is_chosen_in_advance_and_what_was_chosen_is_shown_later(
    campaign: Campaign, raters: list[Rater]
) -> None:
    client = signed_in(raters[0])
    place = take(campaign, raters[0])
    assert " checked" not in page(client, url(place))
    client.post(url(place), form(YES | {"order": 0.0}))
    text = page(client, url(place))
    assert re.findall(r'name="(c-\w+)" value="(\d)"[^>]* checked', text) == [
        ("c-grammatical", "1"),
        ("c-logical", "1"),
        ("c-order", "0"),
    ]
    assert "not a second one" in text


def test_simulated_data_say_so_on_the_judging_page(campaign: Campaign, raters: list[Rater]) -> None:
    client = signed_in(raters[0])
    assert "Simulated data" not in page(client, url(take(campaign, raters[0])))
    campaign.study.simulated = True
    campaign.study.save(update_fields=["simulated"])
    facts._facts.clear()  # a study is simulated from its beginning; only this test changes its mind
    assert "Simulated data" in page(client, url(take(campaign, raters[0])))


def test_looking_takes_no_place(campaign: Campaign, raters: list[Rater]) -> None:
    client = signed_in(raters[0])
    page(client, reverse("rate_home"))
    assert client.get(reverse("rate_next", args=[campaign.pk])).status_code == 405
    assert not campaign.places.exclude(state=Place.State.FREE).exists()


def test_back_leads_to_the_own_previous_answer(campaign: Campaign, raters: list[Rater]) -> None:
    first, second = judge(campaign, raters[0]), judge(campaign, raters[0])
    held = take(campaign, raters[0])
    client = signed_in(raters[0])
    assert f'id="back" href="{url(second)}"' in page(client, url(held))
    assert f'id="back" href="{url(first)}"' in page(client, url(second))
    assert 'id="back" href="/rate/c/' in page(client, url(first))


def test_reasons_to_pass_by_speak_the_raters_language(campaign: Campaign, raters: list[Rater]) -> None:
    client = Client(headers={"accept-language": "ru"})
    client.force_login(raters[0].user)
    text = page(client, url(take(campaign, raters[0])))
    assert 'value="Не могу решить"' in text and "I cannot decide" not in text


def test_missing_choices_are_named_and_the_others_kept(campaign: Campaign, raters: list[Rater]) -> None:
    client = signed_in(raters[0])
    place = take(campaign, raters[0])
    response = client.post(url(place), {"version": "0", "c-grammatical": "1"})
    text = response.content.decode()
    assert response.status_code == 400
    assert "Not saved yet" in text
    assert text.count("judge-missing") == 2
    assert text.count(" checked") == 1
    assert live(campaign) == 0


def test_not_an_attempt_needs_no_other_choice(campaign: Campaign, raters: list[Rater]) -> None:
    client = signed_in(raters[0])
    place = take(campaign, raters[0])
    assert client.post(url(place), {"version": "0", "not_attempt": "1"}).status_code == 302
    assert Judgement.objects.filter(not_attempt=True).count() == 3
    assert re.search(r'id="not_attempt"[^>]* checked', page(client, url(place)))


@pytest.mark.parametrize(
    "bad",
    [
        {"c-order": "0.5"},
        {"c-order": "nan"},
        {"c-order": "inf"},
        {"c-order": "1\x00"},
        {"c-order": "да"},
        {"version": "x"},
        {"version": "9" * 6000},
        {"version": "\x00"},
    ],
)
def test_values_from_elsewhere_are_refused(campaign: Campaign, raters: list[Rater], bad: dict[str, str]) -> None:
    place = take(campaign, raters[0])
    response = signed_in(raters[0], "ru").post(url(place), form() | bad)
    assert response.status_code == 400
    assert live(campaign) == 0


def test_fields_that_we_did_not_ask_for_change_nothing(campaign: Campaign, raters: list[Rater]) -> None:
    place = take(campaign, raters[0])
    data = form() | {"c-sequence": "1", "c-\x00": "1", "rater": "5", "answer": "1"}
    assert signed_in(raters[0]).post(url(place), data).status_code == 302
    assert set(Judgement.objects.values_list("criterion__code", flat=True)) == set(YES)


def test_stale_page_is_told_and_overwrites_nothing(campaign: Campaign, raters: list[Rater]) -> None:
    client = signed_in(raters[0])
    place = take(campaign, raters[0])
    client.post(url(place), form(NO))
    response = client.post(url(place), form(YES))
    text = response.content.decode()
    assert response.status_code == 409
    assert "judged in another window" in text
    assert 'name="version" value="1"' in text  # the page that says so can be sent
    assert set(Judgement.objects.values_list("value", flat=True)) == {0.0}


def test_anothers_place_does_not_exist(campaign: Campaign, raters: list[Rater]) -> None:
    place = judge(campaign, raters[0])
    client = signed_in(raters[1])
    withdraw = reverse("rate_withdraw", args=[place.uuid])
    unknown = reverse("rate_place", args=[uuid.uuid4()])
    answers = [client.get(url(place)), client.post(url(place), form(NO, 1)), client.post(withdraw), client.get(unknown)]
    assert [answer.status_code for answer in answers] == [404] * 4
    # Whether somebody has it or nobody, the words are the same.
    assert len({re.sub(rb"/rate/[^\"]*|value=\"\w{64}\"", b"", a.content) for a in (answers[0], answers[3])}) == 1
    assert not Judgement.objects.filter(value=0).exists()
    assert live(campaign) == 3


@pytest.mark.parametrize("path", ["/rate/garbage/", "/rate/%00/", "/rate/c/x/next/", "/rate/decide/1/"])
@pytest.mark.parametrize("language", ["ru", "en"])
def test_garbage_addresses(cast: Cast, path: str, language: str) -> None:
    response = cast.client(cast.rita).get(path, headers={"accept-language": language})
    assert response.status_code == 404
    assert f'<html lang="{language}"' in response.content.decode()


def test_numbers_that_no_column_holds(cast: Cast) -> None:
    client = cast.client(cast.rita)
    assert client.post(f"/rate/c/{10**30}/next/").status_code == 404
    assert client.get(f"/rate/c/{10**30}/decide/").status_code == 404


def test_closed_campaign_says_so(cast: Cast, campaign: Campaign, raters: list[Rater]) -> None:
    place = judge(campaign, raters[0])
    campaign_close(campaign=campaign, actor=cast.alice)
    client = signed_in(raters[0])
    answers = [
        client.get(url(place)),
        client.post(url(place), form(NO, 1)),
        client.post(reverse("rate_withdraw", args=[place.uuid])),
        client.post(reverse("rate_next", args=[campaign.pk])),
    ]
    assert [answer.status_code for answer in answers] == [409] * 4
    assert all("This campaign is closed" in answer.content.decode() for answer in answers)
    # Only where something was sent: to look at an answer, or to ask for the next one, loses nothing.
    assert [answer.content.decode().count(NOT_SAVED) for answer in answers] == [0, 1, 1, 0]
    skipped = client.post(
        reverse("rate_skip", args=[place.uuid]), {"reason": "x"}, headers={"accept": "application/json"}
    )
    told = skipped.json()
    assert (skipped.status_code, told["error"], told["lost"]) == (409, "closed", NOT_SAVED)
    assert NOT_SAVED in told["message"] and NOT_SAVED not in told["over"] and "This campaign is closed" in told["over"]
    assert set(Judgement.objects.filter(retracted_at=None).values_list("value", flat=True)) == {1.0}


def test_ended_rater_and_former_member(cast: Cast, campaign: Campaign, raters: list[Rater]) -> None:
    place = take(campaign, raters[0])
    rater_deactivate(rater=raters[0], actor=cast.alice)
    client = signed_in(raters[0])
    assert client.post(url(place), form()).status_code == 403
    for answer in (
        client.post(reverse("rate_next", args=[campaign.pk])),
        client.get(reverse("rate_mine", args=[campaign.pk])),
        client.get(url(place)),
    ):
        assert answer.status_code == 403
        assert "Your work in this study has ended" in answer.content.decode()
        assert NOT_SAVED not in answer.content.decode()
    assert NOT_SAVED in client.post(url(place), form()).content.decode()
    home = page(client, reverse("rate_home"))
    assert f"{campaign.study.title}: your work has ended" in home and "A researcher has ended it." in home
    assert "Nothing waits for you now" not in home
    held = take(campaign, raters[1])
    Membership.objects.filter(user=raters[1].user).update(is_active=False)
    client = signed_in(raters[1])
    assert [client.get(url(held)).status_code, client.post(url(held), form()).status_code] == [404, 404]
    assert live(campaign) == 0


def test_stranger_and_other_study(cast: Cast, campaign: Campaign) -> None:
    """A researcher of another study, and this study's researcher who does not rate."""
    for user in (cast.bob, cast.alice):
        client = cast.client(user)
        assert client.post(reverse("rate_next", args=[campaign.pk])).status_code == 404
    assert not campaign.places.exclude(state=Place.State.FREE).exists()


def test_judgement_after_logging_out_is_said_to_be_lost(campaign: Campaign, raters: list[Rater]) -> None:
    place = take(campaign, raters[0])
    client = Client(headers={"accept-language": "en"})
    assert client.get(url(place)).url == f"/login/?next={url(place)}"
    response = client.post(url(place), form())
    assert response.status_code == 403
    assert "was not saved" in response.content.decode()
    assert f"/login/?next={url(place)}" in response.content.decode()
    for name in ("rate_withdraw", "decide"):
        assert client.post(reverse(name, args=[place.uuid])).status_code == 403
    assert client.post(reverse("rate_next", args=[campaign.pk])).status_code == 403
    assert live(campaign) == 0


def test_a_comment_with_a_nul_is_said_to_be_one(campaign: Campaign, raters: list[Rater]) -> None:
    place = take(campaign, raters[0])
    response = signed_in(raters[0]).post(url(place), form(YES) | {"comment": "a\x00b"})
    text = response.content.decode()
    assert response.status_code == 400 and "the comment holds a NUL" in text and "not on the scale" not in text
    assert len(re.findall(r'name="c-\w+" value="1"[^>]* checked', text)) == 3, "what was chosen is still chosen"
    assert live(campaign) == 0


def test_post_without_csrf_token_is_refused(campaign: Campaign, raters: list[Rater]) -> None:
    place = take(campaign, raters[0])
    client = Client(enforce_csrf_checks=True)
    client.force_login(raters[0].user)
    assert client.post(url(place), form()).status_code == 403
    assert live(campaign) == 0


def test_rater_withdraws(campaign: Campaign, raters: list[Rater]) -> None:
    place = judge(campaign, raters[0])
    client = signed_in(raters[0])
    response = client.post(reverse("rate_withdraw", args=[place.uuid]))
    text = page(client, response.url)
    assert "is withdrawn" in text
    assert " checked" not in text
    assert live(campaign) == 0


def test_hostile_answer_stays_text(cast: Cast, campaign: Campaign, raters: list[Rater]) -> None:
    item = campaign.items.get(position=1)
    item.display_text = "<script>alert(1)</script> {{ 7 }}"
    item.save(update_fields=["display_text"])
    text = page(signed_in(raters[0]), url(give(item, raters[0])))
    assert "&lt;script&gt;alert(1)&lt;/script&gt; {{ 7 }}" in text


def test_member_begins_without_having_been_a_rater(cast: Cast, campaign: Campaign) -> None:
    Rater.objects.filter(user=cast.rita).delete()
    client = cast.client(cast.rita)
    assert "0 of " in page(client, reverse("rate_home"))
    assert not Rater.objects.filter(user=cast.rita).exists()
    assert client.post(reverse("rate_next", args=[campaign.pk])).status_code == 302
    assert Rater.objects.get(user=cast.rita).places.count() == 3  # one on the screen, two ahead


# --- adjudication ------------------------------------------------------------------------------------------------


@pytest.fixture
def split(cast: Cast, campaign: Campaign, raters: list[Rater]) -> Campaign:
    """A closed campaign with one answer on whose order two raters disagree. Nina decides."""
    item = campaign.items.get(position=1)
    for rater, values in ((raters[0], YES), (raters[1], YES | {"order": 0.0})):
        signed_in(rater).post(url(give(item, rater)), form(values))
    adjudicator_set(campaign=campaign, user=raters[2].user, actor=cast.alice)
    return campaign


def test_adjudicator_decides(cast: Cast, split: Campaign, raters: list[Rater]) -> None:
    client = signed_in(raters[2])
    assert client.get(reverse("decide_next", args=[split.pk])).status_code == 404  # not before it is closed
    campaign_close(campaign=split, actor=cast.alice)
    assert "1 answer has no majority" in page(client, reverse("rate_home"))
    address = client.get(reverse("decide_next", args=[split.pk])).url
    text = page(client, address)
    assert "Yes: <span" in text
    words = set(re.findall(r"\w+", text))  # whole words: a random token of the form may hold "R3"
    assert not words & {"lena", "misha", "R1", "R2", "R3"}
    assert 'name="c-order"' in text
    assert 'name="c-logical"' not in text
    no = {"c-order": "0"}
    for data in (no, {"reason": "x"}, {"c-order": "3", "reason": "x"}, no | {"reason": "\x00"}):
        assert client.post(address, data).status_code == 400
    assert client.post(address, {"c-order": "0", "reason": "inversion"}).status_code == 302
    assert "All are decided." in page(client, reverse("rate_home"))
    assert "inversion" in page(client, address)
    assert client.get(reverse("decide_next", args=[split.pk])).url == reverse("rate_home")
    assert Judgement.objects.get(round__purpose="adjudication").value == 0.0


def test_only_the_adjudicator_decides(cast: Cast, split: Campaign, raters: list[Rater]) -> None:
    campaign_close(campaign=split, actor=cast.alice)
    address = reverse("decide", args=[split.items.get(position=1).uuid])
    for user in (raters[0].user, cast.alice, cast.bob):
        client = cast.client(user)
        assert client.get(address).status_code == 404
        assert client.post(address, {"c-order": "0", "reason": "x"}).status_code == 404
        assert client.get(reverse("decide_next", args=[split.pk])).status_code == 404
    assert not Judgement.objects.filter(round__purpose="adjudication").exists()


def test_answer_with_a_majority_is_not_decided(cast: Cast, split: Campaign, raters: list[Rater]) -> None:
    campaign_close(campaign=split, actor=cast.alice)
    address = reverse("decide", args=[split.items.get(position=2).uuid])
    client = signed_in(raters[2])
    assert "there is nothing to decide" in page(client, address)
    assert client.post(address, {"c-order": "0", "reason": "x"}).status_code == 409
    assert not Judgement.objects.filter(round__purpose="adjudication").exists()


def test_pages_of_a_judge_cost_the_same_however_many_answers(
    campaign: Campaign, raters: list[Rater], django_assert_max_num_queries: object
) -> None:
    client = signed_in(raters[0])
    judge(campaign, raters[0])
    place = take(campaign, raters[0])
    with django_assert_max_num_queries(10):  # session and user among them
        page(client, url(place))
    with django_assert_max_num_queries(24):  # the judgement and the taking of the next place
        client.post(url(place), form())
