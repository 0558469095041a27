"""SG4 and SG6 of the field's scenarios. SG5, which needs two requests at once, is in test_threads."""

import re

import pytest
from django.test import Client
from django.urls import reverse

from annotation.agreement import alpha
from annotation.models import Campaign, Rater
from annotation.places import place_withdraw
from annotation.ratings import ratings_of
from annotation.votes import campaign_agreement, items_with_votes, labels_of_round
from corpus.models import Instrument
from tests.annotation.factories import CODES, NO, YES, form, give, make_campaign, make_sitting, post
from tests.conftest import Cast


def test_sg4_who_said_what(cast: Cast, instrument: Instrument, raters: list[Rater]) -> None:
    """Three linguists, answers A and B; the first two annotate both, the third only A."""
    make_sitting(instrument, ("нет", "мышь бежит от кошки", "дети, которые играли во дворе, были счастливы"))
    campaign = make_campaign(cast.study, cast.alice)
    first, second = campaign.items.order_by("position")
    said = {0: (YES, NO), 1: (YES | {"order": 0.0}, NO), 2: (NO,)}

    for number, of_rater in said.items():
        client = Client()
        client.force_login(raters[number].user)
        for item, values in zip((first, second), of_rater, strict=False):
            address = reverse("rate_place", args=[give(item, raters[number]).uuid])
            before = client.get(address).content.decode()
            # Nothing of those who saved before: no choice made, no name, and the count is one's own.
            assert " checked" not in before
            assert not re.search(r"\bR[123]\b|lena|misha", before.replace(raters[number].user.username, ""))
            assert client.post(address, form(values)).status_code == 302

    rows = items_with_votes(campaign, labels_of_round(campaign), [first.pk, second.pk])
    annotations = [
        (one.item.pk, place.rater.pseudonym, values, place.done_at is not None)
        for one in rows
        for place, values in one.rows
    ]
    assert annotations == [
        (first.pk, "R1", [1.0, 1.0, 1.0], True),
        (first.pk, "R2", [1.0, 1.0, 0.0], True),
        (first.pk, "R3", [0.0, 0.0, 0.0], True),
        (second.pk, "R1", [0.0, 0.0, 0.0], True),
        (second.pk, "R2", [0.0, 0.0, 0.0], True),
    ]
    label = labels_of_round(campaign)[second.pk]["logical"]
    assert (label.value, label.votes, label.basis) == (0.0, 2, "majority")
    shown = cast.client(cast.alice).get(reverse("campaign_answers", args=["ours", campaign.pk]), {"show": "all"})
    assert shown.content.decode().count("2 of 2") + shown.content.decode().count("2 из 2") == 3


@pytest.fixture
def gaps(cast: Cast, instrument: Instrument, raters: list[Rater]) -> Campaign:
    """Grammar by three linguists for three answers: 1 1 0 / 1 1 – / – 1 0."""
    make_sitting(instrument)
    campaign = make_campaign(cast.study, cast.alice)
    items = list(campaign.items.order_by("position"))
    for rater, values in zip(raters, ([1, 1, 0], [1, 1, None], [None, 1, 0]), strict=True):
        for item, value in zip(items, values, strict=True):
            if value is not None:
                post(give(item, rater), rater, dict.fromkeys(CODES, float(value)))
    return campaign


def test_sg6_a_gap_is_not_a_class(gaps: Campaign, raters: list[Rater]) -> None:
    first, second, third = gaps.items.order_by("position")
    grammar = campaign_agreement(gaps).attempts[0]
    assert (grammar.agreement.value, grammar.agreement.n_pairable) == (1.0, 7)
    labels = {pk: by_code["grammatical"] for pk, by_code in labels_of_round(gaps).items()}
    assert [labels[item.pk].value for item in (first, second, third)] == [1.0, 1.0, 0.0]
    assert [labels[item.pk].votes for item in (first, second, third)] == [2, 3, 2]

    place = gaps.places.get(item=first, rater=raters[0])
    place_withdraw(place_uuid=place.uuid, user_id=raters[0].user_id)

    label = labels_of_round(gaps)[first.pk]["grammatical"]
    assert (label.value, label.votes, label.reason) == (None, 1, "single_vote")
    after = campaign_agreement(gaps)
    assert (after.attempts[0].agreement.value, after.attempts[0].agreement.n_pairable) == (1.0, 5)
    assert after.undecided == 1
    # A gap is nowhere a number.
    assert alpha(ratings_of(gaps).matrices["grammatical"]).n_units == 2


def test_sg6_on_the_pages(cast: Cast, gaps: Campaign, raters: list[Rater]) -> None:
    client = Client(headers={"accept-language": "en"})
    client.force_login(cast.alice)
    address = reverse("campaign", args=["ours", gaps.pk])
    assert '<td class="n">1.000</td>' in client.get(address).content.decode()
    place = gaps.places.get(item__position=1, rater=raters[0])
    data = {"place": place.pk, "reason": "mistaken key"}
    assert client.post(reverse("label_withdraw", args=["ours", gaps.pk]), data).status_code == 302
    text = client.get(reverse("campaign_answers", args=["ours", gaps.pk])).content.decode()
    assert text.count("undecided: one vote") == 3
    assert re.search(r"<td>R1</td>(<td class=\"n\">–</td>){3}", text)
