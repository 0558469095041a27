"""Who is named to decide: no rater by that, blinded while something waits; and the page on which they decide."""

import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotation.adjudication import adjudication_record
from annotation.models import Campaign, Place, Rater
from annotation.places import label_withdraw
from annotation.removal import answers_remove
from annotation.selectors import raters_expected, raters_progress
from annotation.services import adjudicator_set, adjudicator_unset, campaign_close, rater_ensure
from corpus.models import Instrument
from studies.access import is_blinded
from studies.models import AuditEntry, Role, User
from studies.services import membership_set
from tests.annotation.factories import NO, YES, give, make_campaign, post
from tests.conftest import Cast

RESULTS = ("/studies/ours/results/", "/studies/ours/exports/")


def english(user: User | None) -> Client:
    client = Client(headers={"accept-language": "en"})
    assert user is not None
    client.force_login(user)
    return client


def page(client: Client, path: str) -> str:
    response = client.get(path)
    assert response.status_code == 200
    return response.content.decode()


def words(text: str) -> str:
    """As it is read: without tags."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", text))


@pytest.fixture
def second(cast: Cast) -> User:
    """Another researcher of the study."""
    user = User.objects.create_user("carol")
    membership_set(user=user, study=cast.study, role=Role.RESEARCHER, actor=cast.alice)
    return user


@pytest.fixture
def split(campaign: Campaign, raters: list[Rater]) -> Campaign:
    """Still open. Two raters disagree about the order of the first two answers; the third answer has one vote."""
    for position in (1, 2):
        item = campaign.items.get(position=position)
        post(give(item, raters[0]), raters[0], YES)
        post(give(item, raters[1]), raters[1], YES | {"order": 0.0})
    return campaign


def decide(campaign: Campaign, position: int, **kwargs: Any) -> int:
    campaign.refresh_from_db()
    given = {"values": {"order": 0.0}, "reason": "inversion"} | kwargs
    item = campaign.items.get(position=position)
    return adjudication_record(item_uuid=item.uuid, rater_id=campaign.adjudicator_id or 0, **given)


# --- naming ------------------------------------------------------------------------------------------------------


def test_naming_an_adjudicator_makes_no_rater_and_blinds_nobody(cast: Cast, campaign: Campaign) -> None:
    expected = raters_expected(cast.study)
    adjudicator_set(campaign=campaign, user=cast.alice, actor=cast.alice)
    assert not is_blinded(cast.alice, cast.study)
    client = english(cast.alice)
    assert [client.get(path).status_code for path in RESULTS] == [200, 200]
    assert "alice" not in {row.name for row in raters_progress(campaign)}
    assert raters_expected(cast.study) == expected
    assert reverse("rate_next", args=[campaign.pk]) not in page(client, reverse("rate_home"))
    assert client.post(reverse("rate_next", args=[campaign.pk])).status_code == 404
    assert not Place.objects.filter(rater__user=cast.alice).exists()
    assert "You are rater" not in page(client, reverse("campaign_list", args=["ours"]))
    assert not AuditEntry.objects.filter(action="rater_ensure", detail__user=cast.alice.pk).exists()


def test_a_campaign_opened_later_does_not_blind_an_adjudicator(
    cast: Cast, campaign: Campaign, instrument: Instrument
) -> None:
    adjudicator_set(campaign=campaign, user=cast.alice, actor=cast.alice)
    make_campaign(cast.study, cast.alice, title="Later", adjudicator=cast.alice)
    assert not is_blinded(cast.alice, cast.study)
    assert is_blinded(cast.rita, cast.study)


def test_an_adjudicator_who_begins_to_rate_is_a_rater_like_the_others(cast: Cast, campaign: Campaign) -> None:
    named = adjudicator_set(campaign=campaign, user=cast.alice, actor=cast.alice)
    english(cast.alice).post(reverse("rate_too", args=["ours"]))
    rater = Rater.objects.get(user=cast.alice)
    assert (rater.pk, rater.only_decides) == (named.pk, False)
    assert is_blinded(cast.alice, cast.study)
    assert "alice" in {row.name for row in raters_progress(campaign)}
    assert rater_ensure(user=cast.alice, study=cast.study, actor=cast.alice) == rater
    assert AuditEntry.objects.filter(action="rater_ensure", detail__user=cast.alice.pk).count() == 1


def test_a_member_in_the_raters_role_rates_although_named(cast: Cast, campaign: Campaign) -> None:
    before = raters_expected(cast.study)
    Rater.objects.filter(user=cast.rita).delete()
    adjudicator_set(campaign=campaign, user=cast.rita, actor=cast.alice)
    assert [row.rater for row in raters_progress(campaign) if row.name == "rita"] == [None]  # has not begun
    assert raters_expected(cast.study) == before
    assert english(cast.rita).post(reverse("rate_next", args=[campaign.pk])).status_code == 302
    assert not Rater.objects.get(user=cast.rita).only_decides


# --- blinded while something waits -------------------------------------------------------------------------------


def test_blinded_from_the_closing_until_nothing_waits(cast: Cast, split: Campaign) -> None:
    adjudicator_set(campaign=split, user=cast.alice, actor=cast.alice)
    assert not is_blinded(cast.alice, cast.study)
    campaign_close(campaign=split, actor=cast.alice)
    client = english(cast.alice)
    for path in (*RESULTS, reverse("campaign_answers", args=["ours", split.pk])):
        response = client.get(path)
        assert response.status_code == 403
        assert "wait for your decision" in response.content.decode()
    assert "no answer waits for your decision" in page(client, reverse("campaign", args=["ours", split.pk]))
    assert decide(split, 1) == 1
    assert is_blinded(cast.alice, cast.study)
    assert decide(split, 2) == 1
    assert not is_blinded(cast.alice, cast.study)
    assert client.get(RESULTS[0]).status_code == 200


def test_nothing_waits_nobody_is_blinded(cast: Cast, campaign: Campaign) -> None:
    adjudicator_set(campaign=campaign, user=cast.alice, actor=cast.alice)
    campaign_close(campaign=campaign, actor=cast.alice)
    assert not is_blinded(cast.alice, cast.study)


def test_a_flagged_answer_blinds_as_an_undecided_one_does(cast: Cast, campaign: Campaign, raters: list[Rater]) -> None:
    item = campaign.items.get(position=1)
    for rater in raters[:2]:
        post(give(item, rater), rater, YES)
    Place.objects.filter(item=item, rater=raters[0]).update(is_flagged=True)
    adjudicator_set(campaign=campaign, user=cast.alice, actor=cast.alice)
    campaign_close(campaign=campaign, actor=cast.alice)
    assert is_blinded(cast.alice, cast.study)
    decide(campaign, 1, values=YES)
    assert not is_blinded(cast.alice, cast.study)


def test_another_one_named_after_closing_is_blinded_instead(cast: Cast, split: Campaign, second: User) -> None:
    adjudicator_set(campaign=split, user=cast.alice, actor=cast.alice)
    campaign_close(campaign=split, actor=cast.alice)
    adjudicator_set(campaign=split, user=second, actor=cast.alice)
    assert (is_blinded(cast.alice, cast.study), is_blinded(second, cast.study)) == (False, True)
    adjudicator_unset(campaign=split, actor=cast.alice)
    split.refresh_from_db()
    assert split.adjudicator is None
    assert not is_blinded(second, cast.study)


def test_what_changes_the_votes_later_changes_who_is_blinded(
    cast: Cast, split: Campaign, raters: list[Rater], second: User
) -> None:
    adjudicator_set(campaign=split, user=cast.alice, actor=cast.alice)
    third = split.items.get(position=3)
    for rater in raters[:2]:
        post(give(third, rater), rater, NO)
    campaign_close(campaign=split, actor=cast.alice)
    decide(split, 1)
    decide(split, 2)
    assert not is_blinded(cast.alice, cast.study)
    # One judgement taken out: the other alone decides nothing.
    place = Place.objects.get(item=third, rater=raters[0])
    label_withdraw(place_id=place.pk, actor=second, reason="wrong keys")
    assert is_blinded(cast.alice, cast.study)
    answers_remove(answer_ids=[third.answer_id])
    assert not is_blinded(cast.alice, cast.study)


# --- a rater who is named ----------------------------------------------------------------------------------------


def test_naming_who_judged_here_asks_for_a_second_post(cast: Cast, split: Campaign, raters: list[Rater]) -> None:
    client = english(cast.alice)
    address = reverse("adjudicator_name", args=["ours", split.pk])
    lena = cast.study.memberships.get(user=raters[0].user).pk
    misha = cast.study.memberships.get(user=raters[1].user).pk
    response = client.post(address, {"adjudicator": lena})
    assert response.status_code == 200
    assert "lena judged 2 answers of this campaign as a rater" in words(response.content.decode())
    client.post(address, {"adjudicator": lena, "confirmed": misha})  # of somebody else
    split.refresh_from_db()
    assert split.adjudicator is None
    client.post(address, {"adjudicator": lena, "confirmed": lena})
    split.refresh_from_db()
    assert split.adjudicator == raters[0]
    assert "They judged 2 answers of this campaign themselves." in page(client, f"/studies/ours/campaigns/{split.pk}/")


def test_naming_nobody_and_naming_without_a_word(cast: Cast, split: Campaign, second: User) -> None:
    client = english(cast.alice)
    address = reverse("adjudicator_name", args=["ours", split.pk])
    client.post(address, {"adjudicator": cast.study.memberships.get(user=second).pk})  # judged nothing: at once
    client.post(address, {})  # a form without the field names nobody
    split.refresh_from_db()
    assert split.adjudicator is not None
    assert split.adjudicator.user == second
    assert "themselves" not in words(page(client, f"/studies/ours/campaigns/{split.pk}/"))
    client.post(address, {"adjudicator": ""})
    split.refresh_from_db()
    assert split.adjudicator is None


def test_the_page_says_what_naming_does_before_it(cast: Cast, campaign: Campaign) -> None:
    client = english(cast.alice)
    for path in (reverse("campaign_new", args=["ours"]), reverse("campaign", args=["ours", campaign.pk])):
        assert "Naming makes nobody a rater. Results and exports are closed to this person" in page(client, path)


# --- the page ----------------------------------------------------------------------------------------------------


@pytest.fixture
def waiting(cast: Cast, split: Campaign, raters: list[Rater]) -> Campaign:
    """Closed; two answers wait for nina."""
    adjudicator_set(campaign=split, user=raters[2].user, actor=cast.alice)
    campaign_close(campaign=split, actor=cast.alice)
    split.refresh_from_db()
    return split


def at(campaign: Campaign, position: int) -> str:
    return reverse("decide", args=[campaign.items.get(position=position).uuid])


def field(text: str, name: str) -> str:
    found = re.search(rf'name="{name}" value="([^"]*)"', text)
    assert found is not None
    return found[1]


def test_what_is_left_is_counted(waiting: Campaign, raters: list[Rater]) -> None:
    client = english(raters[2].user)
    assert "2 answers left to decide" in page(client, at(waiting, 1))
    client.post(at(waiting, 1), {"c-order": "1", "reason": "fine", "seen": ""})
    assert "1 answer left to decide" in page(client, at(waiting, 2))
    assert "this one is decided" not in page(client, at(waiting, 2))
    assert "this one is decided" in page(client, at(waiting, 1))


def test_what_is_decided_is_listed_and_decided_again(cast: Cast, waiting: Campaign, raters: list[Rater]) -> None:
    client = english(raters[2].user)
    address = reverse("decided", args=[waiting.pk])
    assert "Nothing is decided here yet" in page(client, address)
    assert 'id="back"' not in page(client, at(waiting, 1))
    for position, value in ((1, "1"), (2, "0")):
        client.post(at(waiting, position), {"c-order": value, "reason": f"because {position}", "seen": ""})
    text = page(client, address)
    assert text.index(at(waiting, 2)) < text.index(at(waiting, 1))  # the newest first
    assert "No · because 2" in words(text)
    assert "Yes · because 1" in words(text)
    # From a decided answer the key leads to the one before it, from the first one nowhere.
    assert f'href="{at(waiting, 1)}" id="back"' in page(client, at(waiting, 2))
    first = page(client, at(waiting, 1))
    assert 'id="back"' not in first
    again = {"c-order": "0", "reason": "on second thoughts", "seen": field(first, "seen")}
    assert client.post(at(waiting, 1), again).status_code == 302
    assert "No · on second thoughts" in words(page(client, address))
    assert f'href="{at(waiting, 1)}" id="back"' not in page(client, at(waiting, 1))
    for user in (raters[0].user, cast.alice, cast.bob):
        assert english(user).get(address).status_code == 404


def test_from_an_undecided_answer_the_key_leads_to_the_last_decision(waiting: Campaign, raters: list[Rater]) -> None:
    client = english(raters[2].user)
    client.post(at(waiting, 1), {"c-order": "1", "reason": "fine", "seen": ""})
    assert f'href="{at(waiting, 1)}" id="back"' in page(client, at(waiting, 2))


def test_two_windows_do_not_overwrite_each_other(waiting: Campaign, raters: list[Rater]) -> None:
    client = english(raters[2].user)
    seen = field(page(client, at(waiting, 1)), "seen")
    one = {"c-order": "1", "reason": "natural", "seen": seen}
    other = {"c-order": "0", "reason": "inversion", "seen": seen}
    assert client.post(at(waiting, 1), one).status_code == 302
    response = client.post(at(waiting, 1), other)
    assert response.status_code == 409
    text = response.content.decode()
    assert "decided in another window" in text
    assert "No · inversion" in words(text)  # what was chosen here
    assert 'value="natural"' in text  # what is stored
    assert re.search(r'name="c-order" value="1"[^>]* checked', text)
    decided = waiting.round.adjudication.judgements.filter(retracted_at=None)
    assert [row.value for row in decided] == [1.0]
    assert client.post(at(waiting, 1), one).status_code == 302  # the very same twice is once
    assert waiting.round.adjudication.judgements.count() == 1
    assert client.post(at(waiting, 1), other | {"seen": field(text, "seen")}).status_code == 302
    assert [row.value for row in decided.all()] == [0.0]


def test_a_problem_does_not_make_a_stale_page_fresh(waiting: Campaign, raters: list[Rater]) -> None:
    """What is missing is asked for again; what another window decided meanwhile is still noticed after that."""
    client = english(raters[2].user)
    client.post(at(waiting, 1), {"c-order": "1", "reason": "natural", "seen": ""})
    response = client.post(at(waiting, 1), {"c-order": "0", "reason": "", "seen": ""})
    assert response.status_code == 400
    assert field(response.content.decode(), "seen") == ""
    assert client.post(at(waiting, 1), {"c-order": "0", "reason": "x", "seen": ""}).status_code == 409


def test_no_attempt_sent_twice_is_once(waiting: Campaign, raters: list[Rater]) -> None:
    client = english(raters[2].user)
    sent = {"not_attempt": "1", "reason": "an apology", "seen": ""}
    assert [client.post(at(waiting, 1), sent).status_code for _ in range(2)] == [302, 302]
    assert waiting.round.adjudication.judgements.count() == 3
