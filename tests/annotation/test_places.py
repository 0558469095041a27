"""The queue and the judgements, one after another; what happens at once is in test_threads."""

import pytest

from annotation.adjudication import adjudication_record
from annotation.errors import (
    CampaignClosedError,
    CampaignOpenError,
    NotUndecidedError,
    PlaceNotYoursError,
    PlaceStaleError,
    RaterInactiveError,
    ReasonMissingError,
    ValuesMissingError,
)
from annotation.models import Campaign, Place, Rater
from annotation.places import label_withdraw, place_withdraw
from annotation.services import adjudicator_set, campaign_close, rater_deactivate
from annotation.votes import items_undecided, labels_of_round
from corpus.models import Instrument
from scoring.models import Judgement
from scoring.services import ValueOutsideScaleError
from studies.models import AuditEntry
from tests.annotation.factories import (
    CODES,
    NO,
    YES,
    give,
    hand_of,
    idle,
    judge,
    live,
    make_campaign,
    make_rater,
    make_sitting,
    post,
    take,
)
from tests.conftest import Cast


def test_held_place_is_handed_out_again(campaign: Campaign, raters: list[Rater]) -> None:
    assert take(campaign, raters[0]).pk == take(campaign, raters[0]).pk
    assert campaign.places.filter(state=Place.State.HELD).count() == 1


def test_rater_never_has_an_answer_twice(campaign: Campaign, raters: list[Rater]) -> None:
    items = [judge(campaign, raters[0]).item_id for _ in range(6)]
    assert len(set(items)) == 6
    assert hand_of(campaign, raters[0]).cards == ()


def test_done_only_when_nothing_is_left(campaign: Campaign, raters: list[Rater]) -> None:
    late = make_rater(campaign.study, "late")
    for rater in raters[:2]:
        for _ in range(6):
            judge(campaign, rater)
    for _ in range(5):
        judge(campaign, raters[2])
    held = take(campaign, raters[2])
    found = hand_of(campaign, late)
    assert (found.cards, found.later) == ((), True)  # one answer is with somebody else, and may come back
    idle(held)
    assert take(campaign, late).pk == held.pk
    found = hand_of(campaign, raters[2])
    assert (found.cards, found.later) == ((), True)
    judge(campaign, late)
    found = hand_of(campaign, raters[2])
    assert (found.cards, found.later) == ((), False)


def test_idle_place_stays_while_others_are_free(campaign: Campaign, raters: list[Rater]) -> None:
    held = take(campaign, raters[0])
    idle(held)
    assert take(campaign, raters[1]).pk != held.pk
    assert take(campaign, raters[0]).pk == held.pk


def test_judgement_after_the_place_went_to_another_is_refused(
    cast: Cast, instrument: Instrument, raters: list[Rater]
) -> None:
    make_sitting(instrument)
    campaign = make_campaign(cast.study, cast.alice, k=1)
    held = take(campaign, raters[0])
    idle(held)
    for _ in range(3):
        judge(campaign, raters[1])
    with pytest.raises(PlaceNotYoursError):
        post(held, raters[0], NO)
    assert live(campaign) == 9
    assert not Judgement.objects.filter(value=0).exists()


def test_judgement_of_a_place_given_back_takes_it_again(campaign: Campaign, raters: list[Rater]) -> None:
    held = take(campaign, raters[0])
    Place.objects.filter(pk=held.pk).update(state=Place.State.FREE, rater=None)
    assert post(held, raters[0]).rater == raters[0]
    Place.objects.filter(pk=held.pk).update(state=Place.State.FREE, rater=None)
    give(held.item, raters[0])  # the first free place, which is this one again
    other = Place.objects.filter(item=held.item, state=Place.State.FREE).first()
    with pytest.raises(PlaceNotYoursError):  # never a second place at the same answer
        post(other, raters[0])


def test_judgement_is_stored_and_changed(campaign: Campaign, raters: list[Rater]) -> None:
    place = judge(campaign, raters[0])
    assert (place.state, place.version) == (Place.State.DONE, 1)
    changed = post(place, raters[0], YES | {"order": 0.0}, version=1)
    assert (changed.version, changed.done_at) == (2, place.done_at)
    assert live(campaign) == 3
    assert Judgement.objects.count() == 4  # the earlier one of the changed criterion is history


def test_not_an_attempt_is_zero_on_every_judged_criterion(campaign: Campaign, raters: list[Rater]) -> None:
    post(take(campaign, raters[0]), raters[0], {}, not_attempt=True)
    assert set(Judgement.objects.values_list("criterion__code", "value", "not_attempt")) == {
        (code, 0.0, True) for code in CODES
    }


def test_refused_judgements_store_nothing(cast: Cast, campaign: Campaign, raters: list[Rater]) -> None:
    place = take(campaign, raters[0])
    with pytest.raises(ValuesMissingError) as missing:
        post(place, raters[0], {"grammatical": 1.0})
    assert missing.value.codes == ["logical", "order"]
    for bad in (0.5, float("nan"), 2.0):
        with pytest.raises(ValueOutsideScaleError):
            post(place, raters[0], YES | {"order": bad})
    with pytest.raises(PlaceNotYoursError):
        post(place, raters[1])
    with pytest.raises(PlaceStaleError):
        post(place, raters[0], version=3)
    campaign_close(campaign=campaign, actor=cast.alice)
    with pytest.raises(CampaignClosedError):
        post(place, raters[0])
    with pytest.raises(CampaignClosedError):
        hand_of(campaign, raters[0])
    assert live(campaign) == 0


def test_ended_rater_is_refused(cast: Cast, campaign: Campaign, raters: list[Rater]) -> None:
    place = judge(campaign, raters[0])
    rater_deactivate(rater=raters[0], actor=cast.alice)
    with pytest.raises(RaterInactiveError):
        hand_of(campaign, raters[0])
    with pytest.raises(RaterInactiveError):
        post(place, raters[0], NO, version=1)
    with pytest.raises(RaterInactiveError):
        place_withdraw(place_uuid=place.uuid, user_id=raters[0].user_id)


def test_withdrawn_label_leaves_and_is_not_asked_for_again(campaign: Campaign, raters: list[Rater]) -> None:
    place = judge(campaign, raters[0])
    place_withdraw(place_uuid=place.uuid, user_id=raters[0].user_id)
    place.refresh_from_db()
    assert (place.state, live(campaign)) == (Place.State.WITHDRAWN, 0)
    assert take(campaign, raters[0]).item_id != place.item_id
    with pytest.raises(PlaceStaleError):  # the page was opened before the withdrawal
        post(place, raters[0], version=1)
    assert post(place, raters[0], NO, version=2).state == Place.State.DONE
    assert live(campaign) == 3


def test_withdrawing_anothers_label_is_refused(campaign: Campaign, raters: list[Rater]) -> None:
    place = judge(campaign, raters[0])
    with pytest.raises(PlaceNotYoursError):
        place_withdraw(place_uuid=place.uuid, user_id=raters[1].user_id)
    assert live(campaign) == 3


def test_researcher_withdraws_after_closing_with_a_reason(cast: Cast, campaign: Campaign, raters: list[Rater]) -> None:
    place = judge(campaign, raters[0])
    campaign_close(campaign=campaign, actor=cast.alice)
    for _ in range(2):
        label_withdraw(place_id=place.pk, actor=cast.alice, reason="wrong keys")
    assert live(campaign) == 0
    assert AuditEntry.objects.get(action="label_withdraw").detail == {"reason": "wrong keys"}


@pytest.fixture
def split(cast: Cast, campaign: Campaign, raters: list[Rater]) -> Campaign:
    """One answer on which two raters disagree about the order only; alice adjudicates."""
    item = campaign.items.get(position=1)
    for rater, values in ((raters[0], YES), (raters[1], YES | {"order": 0.0})):
        place = give(item, rater)
        post(place, rater, values)
    adjudicator_set(campaign=campaign, user=cast.alice, actor=cast.alice)
    campaign.refresh_from_db()
    return campaign


def test_adjudication_decides_what_has_no_majority(cast: Cast, split: Campaign, raters: list[Rater]) -> None:
    item = split.items.get(position=1)
    decide = {"item_uuid": item.uuid, "rater_id": split.adjudicator_id, "values": {"order": 0.0}, "reason": "inversion"}
    with pytest.raises(CampaignOpenError):
        adjudication_record(**decide)
    campaign_close(campaign=split, actor=cast.alice)
    assert items_undecided(split) == [item.pk]
    with pytest.raises(ReasonMissingError):
        adjudication_record(**decide | {"reason": " "})
    with pytest.raises(PlaceNotYoursError):
        adjudication_record(**decide | {"rater_id": raters[0].pk})
    with pytest.raises(ValuesMissingError):
        adjudication_record(**decide | {"values": {}})
    assert [adjudication_record(**decide) for _ in range(2)] == [1, 0]
    label = labels_of_round(split)[item.pk]["order"]
    assert (label.value, label.basis, label.votes) == (0.0, "adjudication", 2)
    assert items_undecided(split) == []
    # Another adjudicator's decision replaces it, and both stay in the history.
    adjudicator_set(campaign=split, user=raters[2].user, actor=cast.alice)
    adjudication_record(**decide | {"rater_id": raters[2].pk, "values": {"order": 1.0}})
    assert labels_of_round(split)[item.pk]["order"].value == 1.0
    assert Judgement.objects.filter(round=split.round.adjudication).count() == 2


def test_an_adjudicators_no_attempt_is_0_on_every_criterion(cast: Cast, split: Campaign) -> None:
    """On those too that the raters agreed about; and a decision that follows leaves them to the raters again."""
    item = split.items.get(position=1)
    decide = {"item_uuid": item.uuid, "rater_id": split.adjudicator_id, "reason": "an apology"}
    campaign_close(campaign=split, actor=cast.alice)
    assert adjudication_record(**decide, values={}, not_attempt=True) == 3
    found = labels_of_round(split)[item.pk]
    assert {(one.value, one.basis) for one in found.values()} == {(0.0, "adjudication")}
    assert adjudication_record(**decide, values={"order": 1.0}) == 1
    found = labels_of_round(split)[item.pk]
    assert {code: (one.value, one.basis) for code, one in found.items()} == {
        "grammatical": (1.0, "majority"),
        "logical": (1.0, "majority"),
        "order": (1.0, "adjudication"),
    }


def test_majority_is_not_adjudicated(cast: Cast, split: Campaign, raters: list[Rater]) -> None:
    item = split.items.get(position=1)
    post(give(item, raters[2]), raters[2])
    campaign_close(campaign=split, actor=cast.alice)
    with pytest.raises(NotUndecidedError):
        adjudication_record(
            item_uuid=item.uuid, rater_id=split.adjudicator_id, values={"order": 0.0}, reason="I know better"
        )
