"""Raters and campaigns."""

import itertools

import pytest
from django.db import IntegrityError, transaction

from annotation.choosing import Selection
from annotation.errors import NotAMemberError, NothingToRateError, TitleTakenError
from annotation.models import Campaign, Guideline, Item, Place, Rater
from annotation.preview import campaign_preview
from annotation.selectors import raters_expected
from annotation.services import (
    adjudicator_set,
    campaign_close,
    rater_deactivate,
    rater_ensure,
    rater_reactivate,
)
from corpus.models import Instrument, Respondent, Sitting
from scoring.models import Judge, Round
from studies.access import is_blinded
from studies.models import AuditEntry, Blinding, Role
from studies.services import membership_deactivate, membership_set
from tests.annotation.factories import GOOD, judge, live, make_campaign, make_rater, make_sitting, take
from tests.conftest import Cast


def test_rater_gets_a_pseudonym_and_a_judge_once(cast: Cast) -> None:
    first = rater_ensure(user=cast.rita, study=cast.study, actor=cast.alice)
    again = rater_ensure(user=cast.rita, study=cast.study, actor=cast.alice)
    second = make_rater(cast.study, "oleg")
    assert (first.pseudonym, again.pk, second.pseudonym) == ("R1", first.pk, "R2")
    assert first.judge.kind == Judge.Kind.RATER
    assert AuditEntry.objects.filter(action="rater_ensure", target=f"Rater {first.pk}").count() == 1


def test_rater_must_be_a_member(cast: Cast) -> None:
    with pytest.raises(NotAMemberError):
        rater_ensure(user=cast.bob, study=cast.study, actor=cast.alice)
    assert not Rater.objects.exists()


def test_researcher_may_rate_too(cast: Cast) -> None:
    assert rater_ensure(user=cast.alice, study=cast.study, actor=cast.alice).pseudonym == "R1"


def test_campaign_freezes_answers_and_makes_k_places(cast: Cast, campaign: Campaign) -> None:
    assert campaign.items.count() == 6
    assert campaign.places.count() == 18
    assert list(campaign.items.order_by("position").values_list("position", flat=True)) == [1, 2, 3, 4, 5, 6]
    item = Item.objects.get(campaign=campaign, answer__text="мышь бежал от кошки")
    assert (item.stimulus_text, item.display_text) == (". мышь бежать от кошка", "мышь бежал от кошки")
    assert campaign.round.purpose == Round.Purpose.RATING
    assert Guideline.objects.get(study=cast.study).version == campaign.round.guideline_version == 1


def test_display_text_is_what_raters_get(cast: Cast, instrument: Instrument, raters: list[Rater]) -> None:
    make_sitting(instrument, ("**Кошка** сидит на столе.", "«Мышь бежит от кошки»", GOOD[2]))
    campaign = make_campaign(cast.study, cast.alice)
    assert set(campaign.items.values_list("display_text", flat=True)) == set(GOOD)


def test_order_is_a_shuffle_within_stimuli_that_the_seed_decides(cast: Cast, instrument: Instrument) -> None:
    for number in range(8):
        kind = Respondent.Kind.MODEL if number % 2 else Respondent.Kind.HUMAN
        make_sitting(instrument, kind=kind)
    one, two = (make_campaign(cast.study, cast.alice, title=title) for title in ("one", "two"))
    orders = [
        list(campaign.items.order_by("position").values_list("answer_id", "answer__stimulus_id"))
        for campaign in (one, two)
    ]
    assert orders[0] == orders[1]
    stimuli = [stimulus for _answer, stimulus in orders[0]]
    assert sum(before != after for before, after in itertools.pairwise(stimuli)) == 2  # three blocks
    assert orders[0] != sorted(orders[0])
    # Ids grow with the position: the queue relies on it.
    ids = list(one.items.order_by("position").values_list("pk", flat=True))
    assert ids == sorted(ids)
    # People's and models' answers stand mixed, not one after the other.
    kinds = list(one.items.order_by("position").values_list("answer__sitting__respondent__kind", flat=True))
    assert sum(before != after for before, after in itertools.pairwise(kinds)) > 5


def test_only_answers_that_no_longer_change_and_count(cast: Cast, instrument: Instrument) -> None:
    make_sitting(instrument, ("нет", None, GOOD[2]))
    make_sitting(instrument, GOOD[:2], finish=False)
    pilot = make_sitting(instrument)
    pilot.standing = Sitting.Standing.PILOT
    pilot.save(update_fields=["standing"])
    preview = campaign_preview(cast.study)
    assert (preview.answers, preview.layout.found.refusals, preview.outside.declined) == (1, 1, 1)
    assert (preview.outside.in_open_sittings, preview.outside.not_counted, preview.texts) == (2, 3, 1)
    campaign = make_campaign(cast.study, cast.alice)
    assert list(campaign.items.values_list("display_text", flat=True)) == [GOOD[2]]


def test_refusals_on_request(cast: Cast, instrument: Instrument) -> None:
    make_sitting(instrument, ("нет", None, GOOD[2]))
    campaign = make_campaign(cast.study, cast.alice, with_refusals=True)
    assert set(campaign.items.values_list("display_text", "is_refusal")) == {("нет", True), (GOOD[2], False)}


def test_only_new_answers(cast: Cast, instrument: Instrument) -> None:
    make_sitting(instrument)
    make_campaign(cast.study, cast.alice)
    make_sitting(instrument)
    assert campaign_preview(cast.study, Selection(only_new=True)).outside.earlier == 3
    assert make_campaign(cast.study, cast.alice, title="second", only_new=True).items.count() == 3


def test_nothing_to_rate_is_refused(cast: Cast, instrument: Instrument) -> None:
    make_sitting(instrument, GOOD[:2], finish=False)
    with pytest.raises(NothingToRateError):
        make_campaign(cast.study, cast.alice)
    assert not Round.objects.exists()


def test_second_click_opens_no_second_campaign(cast: Cast, campaign: Campaign) -> None:
    with pytest.raises(TitleTakenError):
        make_campaign(cast.study, cast.alice)
    assert Campaign.objects.count() == 1


def test_open_campaign_blinds_its_raters_until_it_closes(cast: Cast, instrument: Instrument) -> None:
    rater_ensure(user=cast.alice, study=cast.study, actor=cast.alice)
    make_sitting(instrument)
    one, two = (make_campaign(cast.study, cast.alice, title=title) for title in ("one", "two"))
    assert is_blinded(cast.alice, cast.study)
    assert is_blinded(cast.rita, cast.study)
    campaign_close(campaign=one, actor=cast.alice)
    assert is_blinded(cast.alice, cast.study)
    campaign_close(campaign=two, actor=cast.alice)
    assert not is_blinded(cast.alice, cast.study)


def test_rater_who_joins_meanwhile_is_blinded_too(cast: Cast, campaign: Campaign) -> None:
    assert not is_blinded(cast.alice, cast.study)
    rater_ensure(user=cast.alice, study=cast.study, actor=cast.alice)
    assert is_blinded(cast.alice, cast.study)


def test_closing_twice_is_closing_once(cast: Cast, campaign: Campaign) -> None:
    for _ in range(2):
        campaign_close(campaign=campaign, actor=cast.alice)
    campaign.refresh_from_db()
    assert campaign.round.closed_at is not None
    assert AuditEntry.objects.filter(action="campaign_close").count() == 1
    assert not Blinding.objects.filter(lifted_at__isnull=True).exists()


def test_deactivated_rater_keeps_work_and_gives_the_rest_back(
    cast: Cast, campaign: Campaign, raters: list[Rater]
) -> None:
    judge(campaign, raters[0])
    held = take(campaign, raters[0])
    rater_deactivate(rater=raters[0], actor=cast.alice)
    held.refresh_from_db()
    assert (held.state, held.rater) == (Place.State.FREE, None)
    assert live(campaign) == 3
    assert rater_ensure(user=raters[0].user, study=cast.study, actor=None).is_active is False
    rater_reactivate(rater=raters[0], actor=cast.alice)
    assert take(campaign, raters[0]).item_id == held.item_id


def test_adjudicator_gets_a_round(cast: Cast, campaign: Campaign) -> None:
    adjudicator_set(campaign=campaign, user=cast.alice, actor=cast.alice)
    adjudicator_set(campaign=campaign, user=cast.rita, actor=cast.alice)
    campaign.refresh_from_db()
    assert campaign.adjudicator.user == cast.rita
    assert campaign.round.adjudication.purpose == Round.Purpose.ADJUDICATION
    with pytest.raises(NotAMemberError):
        adjudicator_set(campaign=campaign, user=cast.bob, actor=cast.alice)


def test_constraints_hold_what_they_name(cast: Cast, campaign: Campaign, raters: list[Rater]) -> None:
    place = take(campaign, raters[0])
    other = Place.objects.filter(item=place.item, state=Place.State.FREE).first()
    with pytest.raises(IntegrityError, match="place_one_per_rater_item"), transaction.atomic():
        Place.objects.filter(pk=other.pk).update(state="held", rater=raters[0])
    with pytest.raises(IntegrityError, match="place_taken_has_rater"), transaction.atomic():
        Place.objects.filter(pk=other.pk).update(state="withdrawn")
    with pytest.raises(IntegrityError, match="campaign_one_open_per_title"), transaction.atomic():
        round_ = Round.objects.create(study=cast.study, rubric=campaign.round.rubric, purpose="rating")
        Campaign.objects.create(study=cast.study, round=round_, title="Round", raters_per_answer=1, seed=1)


def test_member_in_this_role_is_a_rater_when_a_campaign_opens(cast: Cast, campaign: Campaign) -> None:
    assert Rater.objects.get(user=cast.rita).study == cast.study
    membership_set(user=cast.bob, study=cast.study, role=Role.RATER, actor=cast.alice)
    assert not Rater.objects.filter(user=cast.bob).exists()  # made when they begin


def test_who_has_left_the_study_is_not_expected_to_rate(cast: Cast) -> None:
    rater = make_rater(cast.study, "nina")
    assert raters_expected(cast.study) == 2  # nina, and rita, who has not begun
    membership_deactivate(membership=rater.user.memberships.get(study=cast.study), actor=cast.alice)
    assert raters_expected(cast.study) == 1
