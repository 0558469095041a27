"""Training, gold and repeats in the queue; skips; answers that share a text; what lies ahead."""

import itertools

import pytest
from django.urls import reverse

from annotation.models import Campaign, Item, Place, Purpose, Rater, Seat, Skip
from annotation.places import Remark, place_judge, place_skip
from annotation.queue import AHEAD, places_hold
from annotation.removal import answers_remove
from annotation.services import campaign_close
from annotation.tally import tally_of
from scoring.models import Judgement, Round
from tests.annotation.factories import NO, YES, form, give, hand_of, judge, live, post
from tests.annotation.test_rater_pages import signed_in

JSON = {"accept": "application/json"}


def work_off(campaign: Campaign, rater: Rater) -> list[Place]:
    """Judge until nothing is left. The places in the order in which they were judged."""
    judged = []
    hand = hand_of(campaign, rater)
    while hand.cards:
        (card,) = hand.cards
        hand = place_judge(place_uuid=card.place, user_id=rater.user_id, values=YES, version=card.version, ahead=1).hand
        judged.append(Place.objects.select_related("item").get(uuid=card.place))
    return judged


def test_training_first_then_gold_and_repeats_among_the_others(checked: Campaign, raters: list[Rater]) -> None:
    judged = work_off(checked, raters[0])
    purposes = [place.purpose for place in judged]
    assert purposes[0] == Purpose.TRAINING
    assert sorted(purposes) == sorted(["training", "gold", "gold", "repeat", *["rating"] * 9])
    again = next(place for place in judged if place.purpose == Purpose.REPEAT)
    first = next(place for place in judged if place.item_id == again.item_id and place.purpose == Purpose.RATING)
    between = judged[judged.index(first) + 1 : judged.index(again)]
    assert sum(place.purpose == Purpose.RATING for place in between) >= 3
    golds = [number for number, purpose in enumerate(purposes) if purpose == Purpose.GOLD]
    assert golds[1] - golds[0] > 1
    assert sorted(place.ordinal for place in judged if place.purpose == Purpose.RATING) == list(range(1, 10))
    seat = Seat.objects.get(campaign=checked, rater=raters[0])
    assert (seat.done, seat.checks) == (9, 4)


def test_gold_stands_among_answers_to_its_own_stimulus(checked: Campaign, raters: list[Rater]) -> None:
    judged = [place for place in work_off(checked, raters[0]) if place.purpose in (Purpose.RATING, Purpose.GOLD)]
    stimuli = [place.item.stimulus_text for place in judged]
    assert sum(one != other for one, other in itertools.pairwise(stimuli)) == 2  # three blocks, gold in them
    texts = [place.item.display_text for place in judged]
    golds = [number for number, place in enumerate(judged) if place.purpose == Purpose.GOLD]
    assert all(texts[number] not in texts[number + 1 : number + 2] for number in golds)


def test_the_counter_moves_at_every_answer_alike(checked: Campaign, raters: list[Rater]) -> None:
    checked.selection = {"numbers": {"repeats": 1}}  # as opening writes it
    checked.save(update_fields=["selection"])
    assert tally_of(checked.pk, raters[0].pk).total == 13  # before the first, too
    client, done = signed_in(raters[0]), 0
    hand_of(checked, raters[0])
    totals = []
    while place := Place.objects.filter(rater=raters[0], state=Place.State.HELD).order_by("held_at", "pk").first():
        answer = client.post(reverse("rate_place", args=[place.uuid]), form(YES), headers=JSON).json()
        done += 1
        assert answer["progress"]["done"] == done, place.purpose
        totals.append(answer["progress"]["total"])
    assert done == 13  # nine, the training one, two gold ones, one repeat
    assert set(totals) == {13}


@pytest.mark.parametrize("purpose", ["gold", "repeat", "rating"])
def test_passing_by_lowers_the_total_by_one_whatever_it_is(
    checked: Campaign, raters: list[Rater], purpose: str
) -> None:
    checked.selection = {"numbers": {"repeats": 1}}
    checked.save(update_fields=["selection"])
    client = signed_in(raters[0])
    hand_of(checked, raters[0])
    passed = False
    while place := Place.objects.filter(rater=raters[0], state=Place.State.HELD).order_by("held_at", "pk").first():
        before = tally_of(checked.pk, raters[0].pk)
        if place.purpose == purpose and not passed:
            passed = True
            client.post(reverse("rate_skip", args=[place.uuid]), {"reason": "устала"}, headers=JSON)
            after = tally_of(checked.pk, raters[0].pk)
            assert (after.done, after.total) == (before.done, before.total - 1)
            break
        client.post(reverse("rate_place", args=[place.uuid]), form(YES), headers=JSON)
    assert passed


def test_each_purpose_has_its_round_and_only_rating_counts(checked: Campaign, raters: list[Rater]) -> None:
    work_off(checked, raters[0])
    assert live(checked) == 9 * 3
    for round_, n in ((checked.training_round, 1), (checked.gold_round, 2), (checked.repeat_round, 1)):
        assert Judgement.objects.filter(round=round_, retracted_at=None).count() == 3 * n
    campaign_close(campaign=checked, actor=raters[0].user)
    assert not Round.objects.filter(study=checked.study, closed_at=None).exclude(purpose="adjudication").exists()


def test_gold_and_repeats_look_like_every_other_answer(checked: Campaign, raters: list[Rater]) -> None:
    client = signed_in(raters[0])
    place = Place.objects.get(uuid=hand_of(checked, raters[0]).cards[0].place)
    seen = []
    while place is not None:
        address = reverse("rate_place", args=[place.uuid])
        card = client.get(address, headers=JSON).json()["card"]
        assert card["training"] is (place.purpose == Purpose.TRAINING)
        answer = client.post(address, form(YES), headers=JSON).json()
        assert (answer["feedback"] is not None) is (place.purpose == Purpose.TRAINING)
        seen.append((place.purpose, frozenset(card), frozenset(answer), frozenset(answer["saved"])))
        place = Place.objects.filter(rater=raters[0], state=Place.State.HELD).order_by("held_at", "pk").first()
    assert {purpose for purpose, *_ in seen} == set(Purpose)
    assert len({shape for _, *shape in seen for shape in [tuple(shape)]}) == 1
    page = client.get(reverse("rate_mine", args=[checked.pk])).content.decode()
    assert "gold" not in page and "repeat" not in page


def test_training_tells_what_is_right(checked: Campaign, raters: list[Rater]) -> None:
    client = signed_in(raters[0])
    (card,) = hand_of(checked, raters[0]).cards
    address = reverse("rate_place", args=[card.place])
    feedback = client.post(address, form(YES | {"order": 0.0}), headers=JSON).json()["feedback"]
    assert feedback["right"] is False and feedback["explanation"] == "потому что"
    assert {row["code"]: (row["chosen"], row["expected"], row["right"]) for row in feedback["rows"]} == {
        "grammatical": ("1", "1", True),
        "logical": ("1", "1", True),
        "order": ("0", "1", False),
    }


def test_skipped_answer_goes_to_somebody_else(campaign: Campaign, raters: list[Rater]) -> None:
    (card,) = hand_of(campaign, raters[0]).cards
    address = reverse("rate_skip", args=[card.place])
    client = signed_in(raters[0])
    assert client.post(address, {"reason": " "}).status_code == 400
    assert client.post(address, {"reason": "не понимаю"}).status_code == 302
    assert client.post(address, {"reason": "не понимаю"}).status_code == 302  # twice is once
    assert Skip.objects.get().reason == "не понимаю"
    assert [judge(campaign, raters[0]).item_id == card.item_id for _ in range(5)] == [False] * 5
    assert hand_of(campaign, raters[0]).cards == ()
    for _ in range(6):
        judge(campaign, raters[1])
    item = Item.objects.get(pk=card.item_id)
    assert not item.places.filter(rater=raters[0]).exists()
    assert item.places.filter(rater=raters[1], state=Place.State.DONE).exists()
    page = client.get(reverse("rate_mine", args=[campaign.pk]), {"only": "skipped"}).content.decode()
    assert item.display_text in page


def test_skip_is_undone_by_judging_while_the_place_is_free(campaign: Campaign, raters: list[Rater]) -> None:
    (card,) = hand_of(campaign, raters[0]).cards
    place_skip(place_uuid=card.place, user_id=raters[0].user_id, reason="устала", ahead=0)
    place = post(Place.objects.get(uuid=card.place), raters[0])
    assert (place.state, place.rater) == (Place.State.DONE, raters[0])
    assert Skip.objects.get().undone_at is not None


@pytest.mark.parametrize("who", [1, 2])
def test_only_its_rater_skips(campaign: Campaign, raters: list[Rater], who: int) -> None:
    (card,) = hand_of(campaign, raters[0]).cards
    response = signed_in(raters[who]).post(reverse("rate_skip", args=[card.place]), {"reason": "x"}, headers=JSON)
    assert (response.status_code, response.json()["error"]) == (404, "not_yours")
    assert not Skip.objects.exists()


def test_identical_answers_share_the_judgement(campaign: Campaign, raters: list[Rater]) -> None:
    root, other = share(campaign)
    place = post(give(root, raters[0]), raters[0])
    copies = Judgement.objects.filter(answer=other.answer, retracted_at=None)
    assert sorted(copies.values_list("value", flat=True)) == [1, 1, 1]
    originals = Judgement.objects.filter(answer=root.answer)
    assert set(copies.values_list("shared_from", flat=True)) == set(originals.values_list("pk", flat=True))
    post(place, raters[0], NO, version=1)
    live_ = Judgement.objects.filter(answer__in=[root.answer_id, other.answer_id], retracted_at=None)
    assert sorted(live_.values_list("value", flat=True)) == [0] * 6
    signed_in(raters[0]).post(reverse("rate_withdraw", args=[place.uuid]))
    assert not live_.exists()
    post(place, raters[0], YES, version=3)
    assert live_.count() == 6


def share(campaign: Campaign) -> tuple[Item, Item]:
    """The second item is judged at the first."""
    root, other = campaign.items.order_by("position")[:2]
    other.places.all().delete()
    other.same_as = root
    other.save(update_fields=["same_as"])
    return root, other


def test_another_takes_over_when_the_first_of_them_is_withdrawn(campaign: Campaign, raters: list[Rater]) -> None:
    root, other = share(campaign)
    done = post(give(root, raters[0]), raters[0])
    held = give(root, raters[1])
    answers_remove(answer_ids=[root.answer_id])
    for place in (done, held):
        place.refresh_from_db()
        assert place.item_id == other.pk and place.state != Place.State.VOID
    post(held, raters[1], NO)
    post(done, raters[0], NO, version=1)
    assert Judgement.objects.filter(answer=other.answer, retracted_at=None, value=0).count() == 6
    root.refresh_from_db()
    assert (root.display_text, root.same_as_id) == ("", other.pk)


def test_the_script_gets_the_next_answers_before_it_needs_them(campaign: Campaign, raters: list[Rater]) -> None:
    client = signed_in(raters[0])
    first = client.post(reverse("rate_next", args=[campaign.pk]), headers=JSON).json()
    assert len(first["ahead"]) == AHEAD and first["progress"] == {"done": 0, "total": 6, "minutes": None}
    have = ",".join(card["place"] for card in first["ahead"])
    answer = client.post(first["ahead"][0]["url"], form(YES) | {"have": have, "seconds": "3.5"}, headers=JSON)
    data = answer.json()
    assert data["saved"] == {"place": first["ahead"][0]["place"], "version": 1}
    assert len(data["ahead"]) == 1 and data["ahead"][0]["place"] not in have
    assert data["held"][:2] == [card["place"] for card in first["ahead"][1:]]
    again = client.post(first["ahead"][0]["url"], form(YES) | {"have": have}, headers=JSON)
    assert again.json()["saved"] == data["saved"]
    assert live(campaign) == 3
    assert Place.objects.get(uuid=data["saved"]["place"]).seconds == 3.5


def test_what_is_refused_is_told_to_the_script(campaign: Campaign, raters: list[Rater]) -> None:
    client = signed_in(raters[0])
    (card,) = hand_of(campaign, raters[0]).cards
    address = reverse("rate_place", args=[card.place])

    def told(data: dict[str, str], **kwargs: object) -> tuple[int, str]:
        response = client.post(address, data, headers=JSON)
        assert response.json().get("message")
        return response.status_code, response.json()["error"]

    assert told({"version": "0"}) == (400, "missing")
    assert told(form(YES) | {"c-order": "0.5"}) == (400, "value")
    assert told(form(YES) | {"c-order": "nan"}) == (400, "value")
    assert told(form(YES) | {"seconds": "x"}) == (400, "value")
    assert told(form(YES) | {"comment": "я" * 2_001}) == (400, "comment")
    assert live(campaign) == 0
    client.post(address, form(YES), headers=JSON)
    stale = client.post(address, form(NO), headers=JSON).json()
    assert stale["error"] == "stale" and stale["card"]["chosen"] == {"grammatical": "1", "logical": "1", "order": "1"}
    client.logout()
    out = client.post(address, form(NO), headers=JSON)
    assert (out.status_code, out.json()["error"]) == (403, "login")


def test_flag_and_comment_are_kept_and_a_flag_alone_is_a_change(campaign: Campaign, raters: list[Rater]) -> None:
    (card,) = hand_of(campaign, raters[0]).cards
    place = post(Place.objects.get(uuid=card.place), raters[0], remark=Remark(comment="странно"))
    assert (place.comment, place.is_flagged, place.version) == ("странно", False, 1)
    place = post(place, raters[0], version=1, remark=Remark(is_flagged=True, comment="странно"))
    assert (place.is_flagged, place.version) == (True, 2)
    assert live(campaign) == 3 and Judgement.objects.filter(round=campaign.round).count() == 3


def test_time_left_is_told_at_the_raters_own_pace(campaign: Campaign, raters: list[Rater]) -> None:
    for number in range(5):
        (card,) = hand_of(campaign, raters[0]).cards
        assert tally_of(campaign.pk, raters[0].pk).minutes is None
        post(Place.objects.get(uuid=card.place), raters[0], remark=Remark(seconds=60 if number else 100_000))
    tally = tally_of(campaign.pk, raters[0].pk)
    assert (tally.done, tally.total) == (5, 6)
    assert tally.minutes == round((4 * 60 + 300) / 5 / 60)  # the pause counts for five minutes


def test_places_ahead_are_not_given_to_others_while_their_rater_works(campaign: Campaign, raters: list[Rater]) -> None:
    first = places_hold(campaign_id=campaign.pk, rater_id=raters[0].pk)
    assert len(first.cards) == AHEAD
    for rater in raters[1:]:
        assert not set(first.cards) & set(places_hold(campaign_id=campaign.pk, rater_id=rater.pk).cards)


@pytest.mark.parametrize("purpose", ["training", "rating"])
def test_what_was_passed_by_is_judged_after_all_whatever_it_is_for(
    checked: Campaign, raters: list[Rater], purpose: str
) -> None:
    """A check that could not be gone back to would tell what it is; so would one that refuses the same post twice."""
    card = next(
        card for card in places_hold(campaign_id=checked.pk, rater_id=raters[0].pk).cards if card.purpose == purpose
    )
    client, skip = signed_in(raters[0]), reverse("rate_skip", args=[card.place])
    assert [client.post(skip, {"reason": "устала"}, headers=JSON).status_code for _ in range(2)] == [200, 200]
    place = reverse("rate_place", args=[card.place])
    assert client.get(place).status_code == 200
    assert client.post(place, form(), headers=JSON).status_code == 200
    assert Place.objects.get(uuid=card.place).state == "done"
    assert Skip.objects.get().undone_at is not None


def test_what_a_browser_kept_is_not_saved_as_the_work_of_another(campaign: Campaign, raters: list[Rater]) -> None:
    (card,) = hand_of(campaign, raters[1]).cards
    address, kept = reverse("rate_place", args=[card.place]), form() | {"user": str(raters[0].user_id)}
    response = signed_in(raters[1]).post(address, kept, headers=JSON)
    assert (response.status_code, response.json()["error"]) == (403, "other")
    assert Judgement.objects.count() == 0
