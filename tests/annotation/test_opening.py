"""Which answers a campaign holds, and what is fixed when it opens: the services."""

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from annotation.choosing import EVERYTHING, Selection, chosen, sources_of
from annotation.errors import (
    CampaignClosedError,
    CriterionUnknownError,
    DeadlinePassedError,
    GuidelineUnknownError,
    NothingToRateError,
    RepeatsTooFarError,
    SelectionChangedError,
    TooManyPlacesError,
)
from annotation.layout import PLAIN, Plan, laid_out, repeats_of
from annotation.models import Campaign, Guideline, Item, Place, Purpose, Rater, Reference, Seat
from annotation.opening import campaign_deadline_set
from annotation.preview import campaign_preview
from annotation.services import campaign_close
from corpus.models import Answer, Instrument, Respondent, Sitting
from scoring.models import Judgement, Round, Rubric
from scoring.services import CHILDREN_RUBRIC, PAPER_RUBRIC, paper_rubric
from studies.models import AuditEntry, Study
from tests.annotation.factories import (
    GOOD,
    NO,
    YES,
    give,
    judge,
    make_campaign,
    make_rater,
    make_sitting,
    many_answers,
    post,
)
from tests.annotation.test_checks import work_off
from tests.conftest import Cast

HUMAN, MODEL = Respondent.Kind.HUMAN, Respondent.Kind.MODEL


@pytest.fixture
def mixed(cast: Cast, instrument: Instrument) -> Instrument:
    """Two people of a survey, one of another, two runs of one model: fifteen answers."""
    for kind, label in ((HUMAN, "first"), (HUMAN, "first"), (HUMAN, "second"), (MODEL, "gpt"), (MODEL, "gpt")):
        make_sitting(instrument, kind=kind, label=label)
    return instrument


def refer(study: Study, answer: Answer, purpose: str, **kwargs: Any) -> Reference:
    values = {"expected": YES, "explanation": "потому что"} | kwargs
    return Reference.objects.create(study=study, rubric=paper_rubric(), answer=answer, purpose=purpose, **values)


def answers_in(study: Study, **kwargs: Any) -> set[int]:
    return {one.answer_id for one in chosen(study, Selection(**kwargs), seed=1).answers}


def given(study: Study, **filters: Any) -> set[int]:
    return set(Answer.objects.filter(sitting__instrument__study=study, **filters).values_list("pk", flat=True))


# --- filters -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "filters", "n"),
    [
        ({}, {}, 15),
        ({"kind": "human"}, {"sitting__respondent__kind": "human"}, 9),
        ({"kind": "model"}, {"sitting__respondent__kind": "model"}, 6),
        ({"sources": ["first"]}, {"sitting__source_label": "first"}, 6),
        ({"sources": ["second", "gpt"]}, {"sitting__source_label__in": ["second", "gpt"]}, 9),
        ({"complexity": ["medium"]}, {"stimulus__complexity": "medium"}, 5),
        ({"shuffled": True}, {"stimulus__shuffled": True}, 5),
        ({"shuffled": False}, {"stimulus__shuffled": False}, 10),
        ({"kind": "model", "shuffled": True}, {"sitting__respondent__kind": "model", "stimulus__shuffled": True}, 2),
    ],
    ids=str,
)  # fmt: skip
def test_each_filter_lets_through_what_it_says(
    cast: Cast, mixed: Instrument, asked: dict[str, Any], filters: dict[str, Any], n: int
) -> None:
    found = answers_in(cast.study, **asked)
    assert found == given(cast.study, **filters)
    assert len(found) == n
    campaign = make_campaign(cast.study, cast.alice, **asked)
    assert set(campaign.items.values_list("answer_id", flat=True)) == found


def test_stimuli_and_instrument_narrow_too(cast: Cast, mixed: Instrument) -> None:
    first = mixed.stimuli.get(position=1)
    assert answers_in(cast.study, stimuli=[first.pk]) == given(cast.study, stimulus=first)
    assert answers_in(cast.study, instrument=mixed) == given(cast.study)


def test_answers_of_another_study_are_never_chosen(cast: Cast, mixed: Instrument) -> None:
    assert answers_in(cast.other_study) == set()
    assert answers_in(cast.other_study, instrument=mixed) == set()


def test_sources_are_listed_people_first(cast: Cast, mixed: Instrument) -> None:
    assert [(one.label, one.answers, one.is_model) for one in sources_of(cast.study)] == [
        ("first", 6, False),
        ("second", 3, False),
        ("gpt", 6, True),
    ]


def test_only_what_no_campaign_holds(cast: Cast, mixed: Instrument) -> None:
    first = make_campaign(cast.study, cast.alice, title="people", kind="human")
    assert answers_in(cast.study, only_new=True) == given(cast.study, sitting__respondent__kind="model")
    assert campaign_preview(cast.study, Selection(only_new=True)).outside.earlier == first.items.count() == 9


def test_only_what_is_undecided_in_a_closed_campaign(cast: Cast, instrument: Instrument, raters: list[Rater]) -> None:
    for text in ("кошка сидит на столе", "на столе сидит кошка"):
        make_sitting(instrument, (text, None, None))
    campaign = make_campaign(cast.study, cast.alice, k=2)
    decided, divided = campaign.items.order_by("position")
    for rater, values in zip(raters, (YES, NO), strict=False):
        post(give(decided, rater), rater, YES)
        post(give(divided, rater), rater, values)
    campaign_close(campaign=campaign, actor=cast.alice)
    assert answers_in(cast.study, undecided_in=campaign) == {divided.answer_id}
    again = make_campaign(cast.study, cast.alice, title="Again", k=1, undecided_in=campaign)
    assert again.selection["asked"] == {"undecided_in": campaign.pk}
    assert [item.answer_id for item in again.items.all()] == [divided.answer_id]


def test_undecided_answers_with_one_text_are_all_chosen(cast: Cast, mixed: Instrument, raters: list[Rater]) -> None:
    campaign = make_campaign(cast.study, cast.alice, k=2, identical="once")
    root = campaign.items.get(answer__stimulus__position=1, same_as=None)
    for rater, values in zip(raters, (YES, NO), strict=False):
        post(give(root, rater), rater, values)
    campaign_close(campaign=campaign, actor=cast.alice)
    assert answers_in(cast.study, undecided_in=campaign) == given(cast.study, stimulus__position=1)


def test_refusals_are_in_where_they_are_asked_for(cast: Cast, instrument: Instrument) -> None:
    make_sitting(instrument, ("нет", "мышь бежит от кошки", None))
    assert len(answers_in(cast.study)) == 1
    assert len(answers_in(cast.study, with_refusals=True)) == 2
    campaign = make_campaign(cast.study, cast.alice, with_refusals=True)
    assert sorted(campaign.items.values_list("is_refusal", flat=True)) == [False, True]


# --- the sample --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 7, 12, 29])
def test_a_balanced_sample_takes_the_same_from_each_stimulus(cast: Cast, instrument: Instrument, size: int) -> None:
    many_answers(instrument, sittings=10)
    found = chosen(cast.study, Selection(sample=size), seed=3).answers
    by_stimulus = Counter(one.stimulus_id for one in found)
    assert len({one.answer_id for one in found}) == len(found) == size
    assert max(by_stimulus.values()) - min([*by_stimulus.values(), *([0] if len(by_stimulus) < 3 else [])]) <= 1


def test_a_stimulus_with_few_answers_gives_them_all(cast: Cast, instrument: Instrument) -> None:
    many_answers(instrument, sittings=10)
    rare = instrument.stimuli.get(position=1)
    Answer.objects.filter(stimulus=rare).exclude(
        pk__in=Answer.objects.filter(stimulus=rare).order_by("pk").values("pk")[:2]
    ).update(outcome=Answer.Outcome.DECLINED, text="")
    by_stimulus = Counter(one.stimulus_id for one in chosen(cast.study, Selection(sample=12), seed=3).answers)
    assert sorted(by_stimulus.values()) == [2, 5, 5]


def test_the_seed_decides_the_sample_and_the_order(cast: Cast, instrument: Instrument) -> None:
    many_answers(instrument, sittings=20)

    def order(seed: int, **kwargs: Any) -> list[int]:
        layout = laid_out(cast.study, Selection(sample=30, **kwargs), PLAIN, seed=seed, raters_per_answer=1)
        return [one.answer_id for one in layout.order]

    assert order(1) == order(1)
    assert set(order(1)) != set(order(2))
    unbalanced = [order(seed, balanced=False) for seed in (1, 1, 2)]
    assert unbalanced[0] == unbalanced[1] and set(unbalanced[0]) != set(unbalanced[2])


def test_a_sample_larger_than_what_fits_takes_all(cast: Cast, mixed: Instrument) -> None:
    assert len(answers_in(cast.study, sample=1_000)) == 15
    preview = campaign_preview(cast.study, Selection(sample=4))
    assert (preview.answers, preview.sampled_from) == (4, 15)
    assert campaign_preview(cast.study, Selection(sample=15)).sampled_from is None


# --- what is written ---------------------------------------------------------------------------------------------


def contents(campaign: Campaign) -> list[tuple[Any, ...]]:
    items = campaign.items.order_by("position")
    return list(
        items.values_list("position", "answer_id", "same_as__answer_id", "is_repeated", "purpose", "display_text")
    )


def test_the_same_question_opens_the_same_campaign(cast: Cast, instrument: Instrument) -> None:
    many_answers(instrument, sittings=20)
    refer(cast.study, Answer.objects.order_by("pk")[0], "gold")
    options: dict[str, Any] = {"sample": 30, "identical": "once", "gold_every": 5}
    options |= {"repeat_percent": 20, "repeat_distance": 3}
    first, second, other = (
        make_campaign(cast.study, cast.alice, title=str(number), seed=seed, **options)
        for number, seed in enumerate((11, 11, 12))
    )
    assert contents(first) == contents(second)
    assert first.selection == second.selection
    assert contents(first) != contents(other)
    assert first.selection["sha256"] != other.selection["sha256"]


def test_what_was_asked_for_is_stored(cast: Cast, mixed: Instrument) -> None:
    stimulus = mixed.stimuli.get(position=2)
    campaign = make_campaign(
        cast.study, cast.alice, instrument=mixed, kind="human", sources=["first"], shuffled=True,
        stimuli=[stimulus.pk], sample=1, codes=["order", "logical"], repeat_distance=9,
    )  # fmt: skip
    assert campaign.selection["asked"] == {
        "instrument": mixed.pk,
        "kind": "human",
        "sources": ["first"],
        "shuffled": True,
        "stimuli": [stimulus.pk],
        "sample": 1,
        "balanced": True,
    }
    assert campaign.selection["plan"] == {
        "rubric": PAPER_RUBRIC,
        "criteria": ["order", "logical"],
        "repeat_percent": 0,
        "repeat_distance": 9,
        "training": False,
        "gold_every": 0,
        "guideline": None,
    }
    assert campaign.selection["numbers"] == {
        "found": 2,
        "answers": 1,
        "left_out_references": 0,
        "training": 0,
        "gold": 0,
        "repeats": 0,
    }
    assert [one.code for one in campaign.criteria.order_by("position")] == ["logical", "order"]
    entry = AuditEntry.objects.get(action="campaign_open")
    assert entry.detail["sha256"] == campaign.selection["sha256"]


def test_identical_texts_have_one_set_of_places(cast: Cast, mixed: Instrument) -> None:
    """Five people and runs gave the same three texts."""
    campaign = make_campaign(cast.study, cast.alice, k=3, identical="once")
    assert (campaign.items.count(), campaign.n_items, campaign.n_places) == (15, 3, 9)
    roots = campaign.items.filter(same_as=None)
    assert [root.sharing.count() for root in roots] == [4, 4, 4]
    assert set(Place.objects.filter(campaign=campaign).values_list("item", flat=True)) == {one.pk for one in roots}
    for root in roots:  # the first in the campaign's order, so that the queue meets it where it stands
        assert root.position == min(root.sharing.values_list("position", flat=True)) - 1
    apart = make_campaign(cast.study, cast.alice, k=3, title="apart", identical="separately")
    assert (apart.n_items, apart.n_places, apart.items.exclude(same_as=None).count()) == (15, 45, 0)


def test_one_text_given_to_two_stimuli_is_two(cast: Cast, instrument: Instrument) -> None:
    make_sitting(instrument, ("кошка сидит на столе", "Кошка сидит на столе.", None))
    make_sitting(instrument, ("«Кошка сидит на столе»", None, None))
    campaign = make_campaign(cast.study, cast.alice, identical="once")
    assert (campaign.items.count(), campaign.n_items) == (3, 2)


def test_ids_ascend_with_the_order_and_references_come_last(cast: Cast, mixed: Instrument) -> None:
    for answer, purpose in zip(Answer.objects.order_by("pk"), ("gold", "training"), strict=False):
        refer(cast.study, answer, purpose)
    campaign = make_campaign(cast.study, cast.alice, training=True, gold_every=3)
    by_id = list(campaign.items.order_by("pk").values_list("position", "purpose"))
    assert [position for position, _ in by_id] == list(range(1, 16))
    assert [purpose for _, purpose in by_id[13:]] == ["gold", "training"]
    assert not Place.objects.filter(campaign=campaign).exclude(item__purpose=Purpose.RATING).exists()


# --- checks ------------------------------------------------------------------------------------------------------


@pytest.fixture
def referred(cast: Cast, mixed: Instrument) -> Instrument:
    """Of the fifteen answers one trains and two are gold."""
    for answer, purpose in zip(Answer.objects.order_by("-pk"), ("training", "gold", "gold"), strict=False):
        refer(cast.study, answer, purpose)
    return mixed


def test_the_queue_deals_what_was_planned(cast: Cast, referred: Instrument, raters: list[Rater]) -> None:
    campaign = make_campaign(
        cast.study, cast.alice, k=1, training=True, gold_every=4, repeat_percent=25, repeat_distance=3
    )
    assert (campaign.items.filter(purpose="rating").count(), campaign.n_items, campaign.n_places) == (12, 12, 12)
    assert campaign.items.filter(is_repeated=True).count() == 3
    assert campaign.selection["numbers"] | {"found": 0} == {
        "found": 0, "answers": 12, "left_out_references": 3, "training": 1, "gold": 2, "repeats": 3,
    }  # fmt: skip
    judged = work_off(campaign, raters[0])
    assert Counter(place.purpose for place in judged) == {"rating": 12, "training": 1, "gold": 2, "repeat": 3}
    assert judged[0].purpose == Purpose.TRAINING
    for again in (place for place in judged if place.purpose == Purpose.REPEAT):
        first = next(one for one in judged if one.item_id == again.item_id and one.purpose == Purpose.RATING)
        between = judged[judged.index(first) + 1 : judged.index(again)]
        assert sum(one.purpose == Purpose.RATING for one in between) >= 3
    for name in ("training", "gold", "repeat"):
        round_ = getattr(campaign, f"{name}_round")
        assert (round_.purpose, round_.guideline_version) == (name, campaign.round.guideline_version)
        assert Judgement.objects.filter(round=round_).exists()
    assert Seat.objects.get(campaign=campaign, rater=raters[0]).checks == 6


def test_without_checks_there_are_no_rounds_for_them(cast: Cast, referred: Instrument) -> None:
    campaign = make_campaign(cast.study, cast.alice)
    assert campaign.items.count() == 15  # references that are not used are rated as any answer
    assert (campaign.training_round, campaign.gold_round, campaign.repeat_round) == (None, None, None)
    assert Round.objects.count() == 1


def test_checks_that_the_study_has_none_of_are_not_promised(cast: Cast, mixed: Instrument) -> None:
    campaign = make_campaign(cast.study, cast.alice, training=True, gold_every=5)
    assert (campaign.gold_every, campaign.gold_round, campaign.training_round) == (0, None, None)


def test_a_reference_is_used_only_where_it_can_be(cast: Cast, mixed: Instrument) -> None:
    answers = list(Answer.objects.order_by("pk"))
    refer(cast.study, answers[0], "gold", is_active=False)
    refer(cast.study, answers[1], "gold", expected={"grammatical": 1.0})
    withdrawn = refer(cast.study, answers[2], "gold")
    Answer.objects.filter(pk=withdrawn.answer_id).update(outcome=Answer.Outcome.WITHDRAWN, text="")
    open_sitting = make_sitting(mixed, GOOD[:1], finish=False)
    refer(cast.study, open_sitting.answers.get(stimulus=open_sitting.order[0]), "gold")
    good = refer(cast.study, answers[3], "gold", not_attempt=True, expected=NO)
    campaign = make_campaign(cast.study, cast.alice, gold_every=5)
    (item,) = campaign.items.filter(purpose="gold")
    assert (item.answer_id, item.expected, item.expected_not_attempt) == (good.answer_id, NO, True)
    assert item.explanation == "потому что"
    one = make_campaign(cast.study, cast.alice, title="one", gold_every=5, codes=["grammatical"])
    assert one.items.filter(purpose="gold").count() == 2  # here the second says enough
    other = make_campaign(cast.study, cast.alice, title="graded", gold_every=5, rubric=CHILDREN_RUBRIC)
    assert not other.items.filter(purpose="gold").exists()


def test_references_of_another_study_are_not_used(cast: Cast, mixed: Instrument) -> None:
    refer(cast.other_study, Answer.objects.order_by("pk")[0], "gold")
    assert not make_campaign(cast.study, cast.alice, gold_every=5).items.filter(purpose="gold").exists()


@pytest.mark.parametrize(
    ("n", "percent", "distance", "expected"),
    [
        (100, 10, 20, (10, 80)),
        (100, 1, 0, (1, 100)),
        (30, 5, 10, (2, 20)),  # 1.5: at least as many as asked
        (100, 100, 40, (60, 60)),  # the last forty cannot come again
        (10, 10, 10, (0, 0)),
        (10, 10, 50, (0, 0)),
    ],
)
def test_how_many_are_repeated(n: int, percent: int, distance: int, expected: tuple[int, int]) -> None:
    assert repeats_of(n, percent, distance) == expected


def test_refusals_are_not_repeated(cast: Cast, instrument: Instrument) -> None:
    for _ in range(5):
        make_sitting(instrument, ("нет", "мышь бежит от кошки", "не знаю"))
    campaign = make_campaign(
        cast.study, cast.alice, with_refusals=True, repeat_percent=100, repeat_distance=1, identical="separately"
    )
    repeated = campaign.items.filter(is_repeated=True)
    assert repeated.exists() and not repeated.filter(is_refusal=True).exists()


# --- the preview -------------------------------------------------------------------------------------------------


def test_the_preview_counts_what_opening_makes(cast: Cast, referred: Instrument, raters: list[Rater]) -> None:
    plan = Plan(training=True, gold_every=4, repeat_percent=50, repeat_distance=1)
    preview = campaign_preview(cast.study, EVERYTHING, plan, seed=7, raters_per_answer=2)
    campaign = make_campaign(cast.study, cast.alice, k=2, **vars(plan))
    assert preview.answers == campaign.items.filter(purpose=Purpose.RATING).count()
    assert (preview.layout.n_items, preview.places) == (campaign.n_items, campaign.n_places)
    assert preview.digest == campaign.selection["sha256"]
    assert (preview.raters, preview.per_rater) == (4, 2)  # three, and rita, who has not begun; 3 texts × 2 / 4
    # 2 texts are repeated, of which one rater may have judged 1 in time: 2 · (2 - 1) / (3 - 1)
    assert (preview.training, preview.gold, preview.repeats_per_rater) == (1, 0, 1)


def test_hours_are_told_when_the_pace_is_known(cast: Cast, mixed: Instrument, raters: list[Rater]) -> None:
    assert campaign_preview(cast.study, raters_per_answer=2).hours is None
    earlier = make_campaign(cast.study, cast.alice, title="earlier")
    Seat.objects.create(campaign=earlier, rater=raters[0], seconds=240.0, timed=20)
    preview = campaign_preview(cast.study, EVERYTHING, Plan(identical="separately"), raters_per_answer=4)
    assert preview.pace == 12.0
    assert preview.places == 60
    assert preview.hours == pytest.approx(60 * 12 / 3600)
    assert preview.hours_each == pytest.approx(60 * 12 / 3600 / 4)


def test_the_preview_warns_of_repeats_that_never_come(cast: Cast, instrument: Instrument, raters: list[Rater]) -> None:
    many_answers(instrument, sittings=20)
    plan = Plan(identical="separately", repeat_percent=10, repeat_distance=20)
    assert campaign_preview(cast.study, EVERYTHING, plan, raters_per_answer=1).repeats_never_come  # 15 for each rater
    assert not campaign_preview(cast.study, EVERYTHING, plan, raters_per_answer=2).repeats_never_come  # 30


def test_the_preview_tells_what_checking_costs(cast: Cast, mixed: Instrument) -> None:
    """A training answer stays without a label, and the other four with its text are known to whoever trained on it."""
    refer(cast.study, Answer.objects.order_by("pk")[0], "training")
    preview = campaign_preview(cast.study, EVERYTHING, Plan(training=True))
    assert (preview.left_out_references, preview.unlabelled, preview.primed) == (1, 1, 4)


def test_what_stays_outside_is_counted(cast: Cast, instrument: Instrument) -> None:
    make_sitting(instrument, (None, "мышь бежит от кошки", "нет"))
    make_sitting(instrument, GOOD[:2], finish=False)
    pilot = make_sitting(instrument)
    Sitting.objects.filter(pk=pilot.pk).update(standing=Sitting.Standing.PILOT)
    preview = campaign_preview(cast.study)
    assert preview.answers == 1
    assert preview.layout.found.refusals == 1
    outside = preview.outside
    assert (outside.declined, outside.no_valid_reply, outside.in_open_sittings, outside.not_counted) == (1, 0, 2, 3)


# --- what is refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"kind": "model"}, NothingToRateError),
        ({"guideline": 7}, GuidelineUnknownError),
        ({"codes": ["beauty"]}, CriterionUnknownError),
        ({"codes": ["sequence"]}, CriterionUnknownError),  # by rule, never by a rater
        ({"repeat_percent": 10, "repeat_distance": 3}, RepeatsTooFarError),
        ({"seen": "0" * 64}, SelectionChangedError),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused_and_nothing_is_left(
    cast: Cast, instrument: Instrument, options: dict[str, Any], error: type[Exception]
) -> None:
    make_sitting(instrument)
    with pytest.raises(error):
        make_campaign(cast.study, cast.alice, **options)
    for table in (Campaign, Item, Place, Round, Guideline):
        assert not table.objects.exists()


def test_a_deadline_lies_ahead(cast: Cast, instrument: Instrument) -> None:
    make_sitting(instrument)
    with pytest.raises(DeadlinePassedError):
        make_campaign(cast.study, cast.alice, deadline=timezone.now() - timedelta(minutes=1))
    assert not Campaign.objects.exists()


def test_no_campaign_asks_for_more_than_the_most(
    cast: Cast, instrument: Instrument, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_sitting(instrument)
    monkeypatch.setattr("annotation.layout.MAX_PLACES", 8)
    assert make_campaign(cast.study, cast.alice, title="fits", k=2).n_places == 6
    with pytest.raises(TooManyPlacesError) as refused:
        make_campaign(cast.study, cast.alice, k=3)
    assert refused.value.places == 9


def test_what_the_researcher_did_not_see_is_not_opened(cast: Cast, instrument: Instrument) -> None:
    """As many answers as before, but another one among them."""
    gone, _ = make_sitting(instrument), make_sitting(instrument)
    seen = campaign_preview(cast.study, seed=7).digest
    Sitting.objects.filter(pk=gone.pk).update(standing=Sitting.Standing.EXCLUDED, standing_reason="x")
    make_sitting(instrument)
    with pytest.raises(SelectionChangedError) as refused:
        make_campaign(cast.study, cast.alice, seen=seen, identical="once")
    assert refused.value.answers == 6
    now = campaign_preview(cast.study, seed=7).digest
    assert make_campaign(cast.study, cast.alice, seen=now, identical="once").items.count() == 6


# --- rules and deadline ------------------------------------------------------------------------------------------


def test_the_chosen_rules_are_stamped_on_the_round(cast: Cast, instrument: Instrument) -> None:
    make_sitting(instrument)
    for version, slug in ((1, PAPER_RUBRIC), (2, PAPER_RUBRIC), (3, CHILDREN_RUBRIC)):
        Guideline.objects.create(study=cast.study, rubric_slug=slug, version=version, text=f"rules {version}")
    Guideline.objects.create(study=cast.other_study, rubric_slug=PAPER_RUBRIC, version=4, text="theirs")
    newest = make_campaign(cast.study, cast.alice, title="newest")
    older = make_campaign(cast.study, cast.alice, title="older", guideline=1)
    assert (newest.round.guideline_version, older.round.guideline_version) == (2, 1)
    assert older.selection["plan"]["guideline"] == 1
    for wrong in (3, 4):
        with pytest.raises(GuidelineUnknownError):
            make_campaign(cast.study, cast.alice, title=f"of {wrong}", guideline=wrong)


def test_the_deadline_moves_and_closes_nothing(cast: Cast, campaign: Campaign, raters: list[Rater]) -> None:
    tomorrow = timezone.now() + timedelta(days=1)
    for _ in range(2):
        campaign_deadline_set(campaign=campaign, deadline=tomorrow, actor=cast.alice)
    campaign.refresh_from_db()
    assert campaign.deadline == tomorrow and not campaign.is_overdue
    assert AuditEntry.objects.filter(action="campaign_deadline_set").count() == 1
    with pytest.raises(DeadlinePassedError):
        campaign_deadline_set(campaign=campaign, deadline=timezone.now() - timedelta(days=1), actor=cast.alice)
    Campaign.objects.filter(pk=campaign.pk).update(deadline=timezone.now() - timedelta(days=1))
    campaign.refresh_from_db()
    assert campaign.is_overdue
    assert judge(campaign, raters[0]).state == Place.State.DONE
    campaign_deadline_set(campaign=campaign, deadline=None, actor=cast.alice)
    campaign_close(campaign=campaign, actor=cast.alice)
    with pytest.raises(CampaignClosedError):
        campaign_deadline_set(campaign=campaign, deadline=tomorrow, actor=cast.alice)
    campaign.refresh_from_db()
    assert campaign.deadline is None


def test_a_rubric_nobody_has_used_is_previewed_without_being_made(cast: Cast, instrument: Instrument) -> None:
    make_sitting(instrument)
    campaign_preview(cast.study, EVERYTHING, Plan(rubric=CHILDREN_RUBRIC, training=True))
    assert not Rubric.objects.exists() and not Guideline.objects.exists()


def test_more_raters_may_join_later(cast: Cast, instrument: Instrument) -> None:
    """Fewer raters than each answer asks for is told before, and no reason to refuse."""
    make_sitting(instrument)
    preview = campaign_preview(cast.study, raters_per_answer=3)
    assert (preview.raters, preview.raters_per_answer) == (1, 3)
    campaign = make_campaign(cast.study, cast.alice, k=3)
    for name in ("lena", "misha", "nina"):
        work_off(campaign, make_rater(cast.study, name))
    assert not campaign.places.exclude(state=Place.State.DONE).exists()
