"""The researcher's pages, and everybody else in front of them."""

import re
from typing import Any

import pytest
from django.db import connection
from django.template.loader import render_to_string
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import translation

from annotation.adjudication import adjudication_record
from annotation.deciding import items_to_decide, waiting_of
from annotation.models import Campaign, Place, Rater
from annotation.services import adjudicator_set, campaign_close, rater_ensure
from corpus.models import Instrument
from scoring.models import Judgement, Round
from studies.models import AuditEntry, Blinding
from tests.annotation.factories import (
    NO,
    YES,
    give,
    judge,
    judge_all,
    live,
    make_campaign,
    make_sitting,
    many_answers,
    post,
)
from tests.conftest import Cast

OPENING = {"title": "Round", "raters_per_answer": "3", "seed": "7", "identical": "separately"}


def english(cast: Cast, user: Any) -> Client:
    client = Client(headers={"accept-language": "en"})
    client.force_login(user)
    return client


def test_empty_list_teaches(cast: Cast) -> None:
    text = english(cast, cast.alice).get(reverse("campaign_list", args=["ours"])).content.decode()
    assert "without seeing whether a person or a model" in text


def test_counting_opens_nothing_and_opening_does_what_was_counted(cast: Cast, instrument: Instrument) -> None:
    make_sitting(instrument, ("нет", None, "дети, которые играли во дворе, были счастливы"))
    make_sitting(instrument)
    client = english(cast, cast.alice)
    address = reverse("campaign_new", args=["ours"])
    assert client.get(address).status_code == 200
    text = client.get(address, OPENING).content.decode()
    assert "Opening fixes these 4 answers" in text
    assert "12 judgements in all" in text
    assert "fewer raters than each answer asks for" in text
    assert not Campaign.objects.exists()
    response = client.post(address, OPENING)
    campaign = Campaign.objects.get()
    assert response.url == reverse("campaign", args=["ours", campaign.pk])
    assert (campaign.items.count(), campaign.places.count(), campaign.seed) == (4, 12, 7)


def test_opening_with_everything_chosen(cast: Cast, instrument: Instrument) -> None:
    make_sitting(instrument, ("нет", None, "дети, которые играли во дворе, были счастливы"))
    member = cast.study.memberships.get(user=cast.rita)
    data = OPENING | {"instrument": instrument.pk, "with_refusals": "True", "only_new": "on", "adjudicator": member.pk}
    assert english(cast, cast.alice).post(reverse("campaign_new", args=["ours"]), data).status_code == 302
    campaign = Campaign.objects.get()
    assert (campaign.items.count(), campaign.adjudicator.user) == (2, cast.rita)


def test_nothing_to_rate_and_the_second_click_are_explained(cast: Cast, instrument: Instrument) -> None:
    client = english(cast, cast.alice)
    address = reverse("campaign_new", args=["ours"])
    response = client.post(address, OPENING)
    assert response.status_code == 400
    assert "There is no answer to rate" in response.content.decode()
    make_sitting(instrument)
    assert client.post(address, OPENING).status_code == 302
    response = client.post(address, OPENING)
    assert response.status_code == 400
    assert "open already" in response.content.decode()
    assert Campaign.objects.count() == 1


@pytest.mark.parametrize(
    "bad",
    [
        {"title": ""},
        {"title": "x\x00"},
        {"title": "x" * 201},
        {"raters_per_answer": "0"},
        {"raters_per_answer": "21"},
        {"seed": "-1"},
        {"seed": str(2**31)},
        {"instrument": "999999"},
        {"adjudicator": "\x00"},
        {"adjudicator": "9" * 40},
    ],
)
def test_bad_forms_open_nothing(cast: Cast, instrument: Instrument, bad: dict[str, str]) -> None:
    make_sitting(instrument)
    client = english(cast, cast.alice)
    assert client.post(reverse("campaign_new", args=["ours"]), OPENING | bad).status_code == 400
    assert client.get(reverse("campaign_new", args=["ours"]), OPENING | bad).status_code == 200
    assert not Campaign.objects.exists()


def test_campaign_page_shows_progress_and_agreement(cast: Cast, campaign: Campaign, raters: list[Rater]) -> None:
    client = english(cast, cast.alice)
    address = reverse("campaign", args=["ours", campaign.pk])
    assert "no answer has two judgements yet" in client.get(address).content.decode()
    for rater in raters[:2]:
        for _ in range(6):
            judge(campaign, rater)
    text = client.get(address).content.decode()
    assert "all judgements have the same value" in text
    assert "12 of 18 judgements" in text
    assert "Yes: 6 (100%)" in text
    item = campaign.items.get(position=1)
    post(Place.objects.get(item=item, rater=raters[0]), raters[0], NO, version=1)
    text = client.get(address).content.decode()
    assert "1 answer is undecided" in text
    assert "0.000" in text  # eleven ones and a zero: observed = expected disagreement = 1/6


def test_blinded_researcher_sees_progress_and_no_votes(cast: Cast, campaign: Campaign, raters: list[Rater]) -> None:
    judge(campaign, raters[0])
    rater_ensure(user=cast.alice, study=cast.study, actor=cast.alice)
    client = english(cast, cast.alice)
    text = client.get(reverse("campaign", args=["ours", campaign.pk])).content.decode()
    assert "1 of 18 judgements" in text
    assert "open when no campaign of the study is open" in text
    assert "alpha" not in text
    response = client.get(reverse("campaign_answers", args=["ours", campaign.pk]))
    assert response.status_code == 403
    assert "You are rating answers of this study" in response.content.decode()
    place = Place.objects.get(state=Place.State.DONE)
    data = {"place": place.pk, "reason": "x"}
    assert client.post(reverse("label_withdraw", args=["ours", campaign.pk]), data).status_code == 403
    assert live(campaign) == 3
    campaign_close(campaign=campaign, actor=cast.alice)
    assert client.get(reverse("campaign_answers", args=["ours", campaign.pk])).status_code == 200


def test_undecided_answers_with_their_votes(cast: Cast, campaign: Campaign, raters: list[Rater]) -> None:
    item = campaign.items.get(position=2)
    post(give(item, raters[0]), raters[0], YES)
    post(give(item, raters[1]), raters[1], NO)
    client = english(cast, cast.alice)
    address = reverse("campaign_answers", args=["ours", campaign.pk])
    text = client.get(address).content.decode()
    assert item.display_text in text
    assert text.count("undecided: a tie") == 3
    assert text.count("<section") == 1
    assert client.get(address, {"show": "all"}).content.decode().count("<section") == 6
    assert client.get(address, {"page": "\x00"}).status_code == 200


def test_closing_says_what_will_happen(cast: Cast, campaign: Campaign, raters: list[Rater]) -> None:
    judge(campaign, raters[0])
    client = english(cast, cast.alice)
    address = reverse("campaign_close", args=["ours", campaign.pk])
    assert "1 of 18 judgements are made" in client.get(address).content.decode()
    campaign.refresh_from_db()
    assert campaign.state == Campaign.State.OPEN
    for _ in range(2):
        assert client.post(address).status_code == 302
    campaign.refresh_from_db()
    assert campaign.state == Campaign.State.CLOSED


def test_rater_is_stopped_and_let_go_on(cast: Cast, campaign: Campaign, raters: list[Rater]) -> None:
    client = english(cast, cast.alice)
    for active in ("0", "1"):
        client.post(
            reverse("rater_state", args=["ours", raters[0].pk]), {"active": active, "campaign": str(campaign.pk)}
        )
        raters[0].refresh_from_db()
        assert raters[0].is_active is (active == "1")
    response = client.post(reverse("rater_state", args=["ours", raters[0].pk]), {"active": "7", "campaign": "9" * 50})
    assert response.url == reverse("campaign_list", args=["ours"])


def test_researcher_rates_too(cast: Cast, campaign: Campaign) -> None:
    client = english(cast, cast.alice)
    assert "stay closed to you" in client.get(reverse("campaign_list", args=["ours"])).content.decode()
    assert client.post(reverse("rate_too", args=["ours"])).url == reverse("rate_home")
    assert Blinding.objects.filter(user=cast.alice, lifted_at__isnull=True).count() == 1
    assert "You are rater" in client.get(reverse("campaign_list", args=["ours"])).content.decode()


def test_adjudicator_is_named_from_the_members(cast: Cast, campaign: Campaign) -> None:
    client = english(cast, cast.alice)
    address = reverse("adjudicator_name", args=["ours", campaign.pk])
    for wrong in ("", "\x00", str(cast.other_study.memberships.get().pk)):
        client.post(address, {"adjudicator": wrong})
        campaign.refresh_from_db()
        assert campaign.adjudicator is None
    client.post(address, {"adjudicator": cast.study.memberships.get(user=cast.rita).pk})
    campaign.refresh_from_db()
    assert campaign.adjudicator.user == cast.rita


def test_a_named_adjudicator_is_told_of_what_is_so(cast: Cast, campaign: Campaign, raters: list[Rater]) -> None:
    client = english(cast, cast.alice)
    member = cast.study.memberships.get(user=raters[0].user)
    address = reverse("adjudicator_name", args=["ours", campaign.pk])
    text = client.post(address, {"adjudicator": member.pk}, follow=True).content.decode()
    assert "gets the undecided answers when the campaign closes" in text
    campaign_close(campaign=campaign, actor=cast.alice)
    text = client.post(address, {"adjudicator": member.pk}, follow=True).content.decode()
    assert "finds the undecided answers on their page “Rating” now" in text and "when the campaign closes" not in text


def test_flagged_answers_with_a_majority_are_told_apart(cast: Cast, campaign: Campaign, raters: list[Rater]) -> None:
    """Two answers are agreed on and one of them flagged; a third is tied and flagged too."""
    agreed, flagged, tied = campaign.items.order_by("position")[:3]
    for item, other in ((agreed, YES), (flagged, YES), (tied, NO)):
        for rater, values in ((raters[0], YES), (raters[1], other)):
            post(give(item, rater), rater, values)
    Place.objects.filter(item__in=[flagged, tied], rater=raters[1]).update(is_flagged=True)
    client = english(cast, cast.alice)
    text = client.get(reverse("campaign", args=["ours", campaign.pk])).content.decode()
    assert "1 answer is undecided." in text
    assert "1 more has a majority and waits because a rater flagged it." in text
    adjudicator_set(campaign=campaign, user=raters[2].user, actor=cast.alice)
    campaign_close(campaign=campaign, actor=cast.alice)
    assert waiting_of(campaign) == (1, 1) and len(items_to_decide(campaign)) == waiting_of(campaign).total == 2
    home = english(cast, raters[2].user).get(reverse("rate_home")).content.decode()
    assert "1 answer has no majority." in home and "1 answer has a majority, and a rater asks you" in home
    decide = {"rater_id": raters[2].pk, "reason": "x", "values": YES}
    adjudication_record(item_uuid=tied.uuid, **decide)
    home = english(cast, raters[2].user).get(reverse("rate_home")).content.decode()
    assert "no majority" not in home and "1 answer has a majority, and a rater asks you" in home
    adjudication_record(item_uuid=flagged.uuid, **decide)
    assert "All are decided." in english(cast, raters[2].user).get(reverse("rate_home")).content.decode()


def test_without_a_refusal_there_is_one_table(cast: Cast, instrument: Instrument, raters: list[Rater]) -> None:
    client = english(cast, cast.alice)
    make_sitting(instrument)
    without = make_campaign(cast.study, cast.alice, title="without", with_refusals=True)
    text = client.get(reverse("campaign", args=["ours", without.pk])).content.decode()
    assert without.with_refusals and "With refusals" not in text and "Without refusals" not in text
    assert text.count("alpha</th>") == 1
    make_sitting(instrument, ("нет", "мышь бежит от кошки", None))
    campaign_close(campaign=without, actor=cast.alice)
    holds = make_campaign(cast.study, cast.alice, title="holds", with_refusals=True)
    text = client.get(reverse("campaign", args=["ours", holds.pk])).content.decode()
    assert "With refusals" in text and "Without refusals" in text and text.count("alpha</th>") == 2


def test_label_of_another_campaign_is_not_withdrawn(cast: Cast, campaign: Campaign, raters: list[Rater]) -> None:
    other = make_campaign(cast.study, cast.alice, title="other")
    place = judge(other, raters[0])
    client = english(cast, cast.alice)
    address = reverse("label_withdraw", args=["ours", campaign.pk])
    assert client.post(address, {"place": place.pk, "reason": "x"}).status_code == 404
    assert client.post(address, {"place": str(2**63), "reason": "x"}).status_code == 302
    assert client.post(reverse("label_withdraw", args=["ours", other.pk]), {"place": place.pk}).status_code == 302
    assert live(other) == 3


WRITES: list[tuple[str, dict[str, str]]] = [
    ("campaign_new", OPENING | {"title": "Another"}),
    ("rate_too", {}),
    ("campaign_close", {}),
    ("campaign_deadline", {"deadline": "2100-01-01T10:00"}),
    ("adjudicator_name", {"adjudicator": "MEMBER"}),
    ("label_withdraw", {"place": "PLACE", "reason": "x"}),
    ("rater_state", {"active": "0"}),
]


def snapshot() -> list[Any]:
    tables = [AuditEntry, Blinding, Campaign, Judgement, Place, Rater, Round]
    return [sorted(table.objects.values_list()) if table is not Place else table.objects.count() for table in tables]


@pytest.mark.parametrize(("name", "data"), WRITES, ids=[name for name, _ in WRITES])
def test_write_routes_refuse_everybody_else(
    cast: Cast, campaign: Campaign, raters: list[Rater], name: str, data: dict[str, str]
) -> None:
    place = judge(campaign, raters[0])
    member = cast.study.memberships.get(user=cast.rita)
    data = {key: {"PLACE": str(place.pk), "MEMBER": str(member.pk)}.get(value, value) for key, value in data.items()}
    pks = {"campaign_new": [], "rate_too": [], "rater_state": [raters[0].pk]}.get(name, [campaign.pk])
    address = reverse(name, args=["ours", *pks])
    before = snapshot()
    for user in (cast.bob, cast.rita):
        assert cast.client(user).post(address, data).status_code == 404
    assert Client().post(address, data).url.startswith("/login/")
    # Through the other study's address, by its own researcher.
    if pks:
        assert cast.client(cast.bob).post(reverse(name, args=["theirs", *pks]), data).status_code == 404
    assert snapshot() == before
    assert cast.client(cast.alice).post(address, data).status_code == 302
    assert snapshot() != before


@pytest.mark.parametrize("name", ["campaign_list", "campaign_new", "campaign", "campaign_answers", "campaign_close"])
def test_read_pages_are_for_the_studys_researchers(cast: Cast, campaign: Campaign, name: str) -> None:
    pks = [] if name in ("campaign_list", "campaign_new") else [campaign.pk]
    address = reverse(name, args=["ours", *pks])
    assert [cast.client(user).get(address).status_code for user in (cast.alice, cast.bob, cast.rita)] == [200, 404, 404]
    assert Client().get(address).status_code == 302


def test_pages_run_as_many_queries_for_many_answers_as_for_six(
    cast: Cast, instrument: Instrument, raters: list[Rater]
) -> None:
    counts = []
    client = cast.client(cast.alice)
    for sittings in (2, 20):
        many_answers(instrument, sittings=sittings)
        campaign = make_campaign(cast.study, cast.alice, title=f"of {sittings}", only_new=True)
        judge_all(campaign, raters)
        of_pages = {}
        for name in ("campaign_list", "campaign", "campaign_answers", "campaign_close", "campaign_new"):
            pks = [] if name in ("campaign_list", "campaign_new") else [campaign.pk]
            address = reverse(name, args=["ours", *pks]) + ("?show=all" if name == "campaign_answers" else "")
            with CaptureQueriesContext(connection) as queries:
                assert client.get(address).status_code == 200
            of_pages[name] = len(queries)
        counts.append(of_pages)
    assert counts[0] == counts[1]
    assert max(counts[0].values()) <= 17


def test_resamples_are_counted_in_russian_too(cast: Cast) -> None:
    """One, two and many: three forms of the verb."""
    told = []
    with translation.override("ru"):
        for n in (1, 2, 5, 11, 21):
            text = render_to_string(
                "reports/_agreement_cells.html",
                {
                    "cells": [
                        {
                            "agreement": {
                                "value": 0.5,
                                "interval": {"low": 0.1, "high": 0.9, "undefined": n, "resamples": 1000},
                            }
                        }
                    ]
                },
            )
            told.append(re.search(r"не определ[её]н\w* \d+ из", text)[0])  # type: ignore[index]
    assert told == [
        "не определён 1 из",
        "не определены 2 из",
        "не определено 5 из",
        "не определено 11 из",
        "не определён 21 из",
    ]
    with translation.override("ru"):
        assert translation.gettext("simulated data") == "смоделированные данные"
