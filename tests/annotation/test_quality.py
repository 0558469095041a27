"""What the quality page of a campaign counts, and who may look."""

import csv
import io
import re
from dataclasses import replace
from datetime import timedelta
from typing import get_args

import numpy as np
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from annotation.models import Campaign, Place, Purpose, Rater, Skip
from annotation.places import Remark, place_judge, place_skip
from annotation.quality import OnCriterion, Quality, RaterQuality, quality_of
from annotation.ratings import ratings_of, strict_majority
from annotation.reference_services import Right, reference_add
from annotation.removal import answers_remove
from annotation.selectors import Standing
from annotation.services import campaign_close, rater_deactivate
from annotation.votes import campaign_agreement, labels_of_round
from corpus.models import Answer, Instrument
from reports.quality_figure import MOST, can_be_drawn, drift_specification
from reports.quality_views import COLUMNS, quality_rows
from scoring.models import Judge, Judgement
from scoring.services import PAPER_RUBRIC
from studies.models import Membership
from studies.services import membership_deactivate
from tests.annotation.factories import (
    NO,
    YES,
    give,
    hand_of,
    judge,
    judge_all,
    make_campaign,
    make_rater,
    make_sitting,
    many_answers,
    post,
)
from tests.annotation.test_checks import share, work_off
from tests.conftest import ROOT, Cast

PAGES = ("campaign_quality", "campaign_quality_csv")
FIGURES = ("campaign_quality_vega", "campaign_quality_figure")


def address_of(campaign: Campaign, name: str = "campaign_quality") -> str:
    kind = ["svg"] if name == "campaign_quality_figure" else []
    return reverse(name, args=[campaign.study.slug, campaign.pk, *kind])


def page_of(cast: Cast, campaign: Campaign) -> str:
    client = Client(headers={"accept-language": "en"})
    client.force_login(cast.alice)
    response = client.get(address_of(campaign))
    assert response.status_code == 200
    return response.content.decode()


def rows_of(cast: Cast, campaign: Campaign, query: str = "") -> list[dict[str, str]]:
    response = cast.client(cast.alice).get(address_of(campaign, "campaign_quality_csv") + query)
    text = b"".join(response.streaming_content).decode().removeprefix("\ufeff")
    return list(csv.DictReader(io.StringIO(text, newline="")))


def own(campaign: Campaign, rater: Rater) -> RaterQuality:
    (found,) = [row for row in quality_of(campaign).raters if row.rater == rater]
    return found


def on(found: RaterQuality, campaign: Campaign, code: str) -> OnCriterion:
    codes = [criterion.code for criterion in quality_of(campaign).criteria]
    return found.by_criterion[codes.index(code)]


def work(campaign: Campaign, rater: Rater, answers: dict[str, dict[str, float]], seconds: float = 10) -> list[Place]:
    """Judge until nothing is left: by purpose, what is said."""
    judged = []
    hand = hand_of(campaign, rater)
    while hand.cards:
        (card,) = hand.cards
        hand = place_judge(
            place_uuid=card.place,
            user_id=rater.user_id,
            values=answers.get(card.purpose, YES),
            version=card.version,
            remark=Remark(seconds=seconds),
            ahead=1,
        ).hand
        judged.append(Place.objects.select_related("item").get(uuid=card.place))
    return judged


# --- checks ------------------------------------------------------------------------------------------------------


def test_gold_and_training_are_right_by_criterion_and_as_a_whole(checked: Campaign, raters: list[Rater]) -> None:
    work(checked, raters[0], {"gold": YES | {"order": 0.0}})
    found = own(checked, raters[0])
    for code, hits in (("grammatical", 2), ("order", 0)):
        gold = on(found, checked, code).gold
        assert (gold.hits, gold.n) == (hits, 2)
        assert on(found, checked, code).training.value == 1
    assert (found.gold.hits, found.gold.n, found.training.hits) == (0, 2, 1)
    assert found.gold.high == pytest.approx(0.6576, abs=1e-4)  # Wilson: z² / (n + z²) for 0 of 2
    assert (found.done, found.checks) == (9, 4)


def test_training_counts_as_it_was_judged_first(checked: Campaign, raters: list[Rater]) -> None:
    place = Place.objects.get(uuid=hand_of(checked, raters[0]).cards[0].place)
    assert place.purpose == Purpose.TRAINING
    post(place, raters[0], NO)
    post(place, raters[0], YES, version=1)  # having been told
    found = own(checked, raters[0])
    assert (found.training.hits, found.training.n) == (0, 1)


def test_gold_counts_as_it_stands(checked: Campaign, raters: list[Rater]) -> None:
    gold = next(place for place in work_off(checked, raters[0]) if place.purpose == Purpose.GOLD)
    post(gold, raters[0], NO, version=1)
    assert own(checked, raters[0]).gold.hits == 1
    post(gold, raters[0], YES, version=2)
    assert own(checked, raters[0]).gold.hits == 2


def test_not_an_attempt_is_right_where_it_is_expected(checked: Campaign, raters: list[Rater]) -> None:
    checked.items.filter(purpose="gold").update(expected=NO, expected_not_attempt=True)
    work(checked, raters[0], {"gold": NO})
    found = own(checked, raters[0])
    assert on(found, checked, "logical").gold.hits == 2  # each value is right
    assert found.gold.hits == 0  # and the mark is missing
    for place in Place.objects.filter(rater=raters[0], purpose=Purpose.GOLD):
        place_judge(place_uuid=place.uuid, user_id=raters[0].user_id, values={}, not_attempt=True, version=1, ahead=0)
    assert own(checked, raters[0]).gold.hits == 2


def test_withdrawn_checks_count_nowhere(checked: Campaign, raters: list[Rater]) -> None:
    work_off(checked, raters[0])
    assert on(own(checked, raters[0]), checked, "order").again.n == 1
    items = checked.items.exclude(purpose="rating") | checked.items.filter(is_repeated=True)
    answers_remove(answer_ids=list(items.values_list("answer", flat=True)))
    found = own(checked, raters[0])
    assert (found.gold.n, found.training.n, on(found, checked, "order").again.n) == (0, 0, 0)


def test_agreement_with_oneself_and_why_it_is_undefined(checked: Campaign, raters: list[Rater]) -> None:
    checked.items.filter(purpose="rating", position__lte=5).update(is_repeated=True)
    work(checked, raters[0], {"repeat": YES | {"order": 0.0}})
    first = Place.objects.get(rater=raters[0], purpose=Purpose.RATING, item__position=2)
    post(first, raters[0], YES | {"order": 0.0}, version=1)
    found = own(checked, raters[0])
    same, order = on(found, checked, "logical"), on(found, checked, "order")
    assert (same.again.hits, same.again.n) == (4, 4)
    assert (same.again_alpha.value, same.again_alpha.reason) == (None, "no_variation")
    assert (order.again.hits, order.again.n) == (1, 4)
    # Pairs 1-0, 0-0, 1-0, 1-0: observed 3/4; of 8 values 3 are 1, so expected 2 · 3 · 5 / (8 · 7) = 15/28.
    assert order.again_alpha.value == pytest.approx(1 - (3 / 4) / (15 / 28))
    assert order.again_alpha.n_units == 4


def test_a_campaign_as_it_is_planned_and_opened(cast: Cast, instrument: Instrument, raters: list[Rater]) -> None:
    """References made by the researcher, one criterion of three left out, identical answers judged once."""
    for _ in range(8):
        make_sitting(instrument)
    many_answers(instrument, sittings=5)
    first, second, third = Answer.objects.order_by("pk")[:3]
    for answer, right in (
        (first, Right(purpose="training", values=YES)),
        (second, Right(purpose="gold", values=YES | {"order": 0.0})),
        (third, Right(purpose="gold", values={}, not_attempt=True)),
    ):
        reference_add(study=cast.study, answer=answer, rubric=PAPER_RUBRIC, right=right, actor=cast.alice)
    campaign = make_campaign(
        cast.study,
        cast.alice,
        identical="once",
        training=True,
        gold_every=3,
        repeat_percent=50,
        repeat_distance=2,
        codes=["grammatical", "order"],
    )
    repeated = campaign.items.filter(is_repeated=True).count()
    work(campaign, raters[0], {})
    found = own(campaign, raters[0])
    assert [criterion.code for criterion in quality_of(campaign).criteria] == ["grammatical", "order"]
    assert (found.training.hits, found.training.n, found.gold.hits, found.gold.n) == (1, 1, 0, 2)
    assert [(one.gold.hits, one.gold.n) for one in found.by_criterion] == [(1, 2), (0, 2)]
    assert [(one.again.hits, one.again.n) for one in found.by_criterion] == [(repeated, repeated)] * 2
    # One vote for each text, however many answers share it.
    assert found.done == campaign.n_items == found.by_criterion[0].values.shares[0][1].n
    assert found.done < campaign.items.filter(purpose="rating").count()


def test_checks_are_in_no_label_and_in_no_alpha(checked: Campaign, raters: list[Rater]) -> None:
    """The same judgements of the campaign's own answers, with and without whatever was said at the checks."""
    work(checked, raters[0], {"training": NO, "gold": NO, "repeat": NO})
    labels, agreement = labels_of_round(checked), campaign_agreement(checked)
    assert set(labels) == set(checked.items.filter(purpose="rating").values_list("pk", flat=True))
    assert all(label.votes == 1 for by_code in labels.values() for label in by_code.values())
    assert agreement.n_items == 9
    assert {share.n for row in agreement.attempts for share in row.shares} == {0, 9}  # one vote each: undecided
    ratings = ratings_of(checked)
    assert all(np.nanmin(matrix) == 1 for matrix in ratings.matrices.values())
    checks = Judgement.objects.exclude(round=checked.round)
    assert checks.count() == 3 * 4
    checks.update(retracted_at=timezone.now())
    assert (labels_of_round(checked), campaign_agreement(checked)) == (labels, agreement)


# --- pace, votes and drift ---------------------------------------------------------------------------------------


def test_pace_is_the_median_of_what_the_page_measured(campaign: Campaign, raters: list[Rater]) -> None:
    for seconds in (2, 4, 6, 8, 400):
        post(
            Place.objects.get(uuid=hand_of(campaign, raters[0]).cards[0].place),
            raters[0],
            remark=Remark(seconds=seconds),
        )
    post(Place.objects.get(uuid=hand_of(campaign, raters[0]).cards[0].place), raters[0])
    found = own(campaign, raters[0])
    assert (found.pace.median, found.pace.lower, found.pace.upper) == (6, 4, 8)
    assert (found.pace.n, found.pace.n_long, found.done) == (5, 1, 6)
    assert found.seconds == 2 + 4 + 6 + 8 + 300
    assert quality_of(campaign).raters == [found]  # the others have taken nothing


def test_without_a_measured_time_pace_is_undefined(cast: Cast, campaign: Campaign, raters: list[Rater]) -> None:
    judge(campaign, raters[0])
    assert own(campaign, raters[0]).pace.median is None
    assert "no time measured" in page_of(cast, campaign)
    (row,) = [row for row in rows_of(cast, campaign) if row["measure"].startswith("seconds_median")]
    assert (row["value"], row["reason"]) == ("", "no_time_measured")


def test_drift_by_fifths_of_ones_own_sequence(campaign: Campaign, raters: list[Rater]) -> None:
    begun = timezone.now() - timedelta(days=7)
    for number in range(6):
        place = post(
            Place.objects.get(uuid=hand_of(campaign, raters[0]).cards[0].place),
            raters[0],
            YES if number < 3 else NO,
            remark=Remark(seconds=10 + number),
        )
        Place.objects.filter(pk=place.pk).update(done_at=begun + timedelta(days=number))
        for rater in raters[1:]:
            post(give(place.item, rater), rater, YES)
    parts = own(campaign, raters[0]).parts
    assert [part.n for part in parts] == [2, 1, 1, 1, 1]
    assert [part.pace.median for part in parts] == [10.5, 12, 13, 14, 15]
    assert [(part.first - begun).days for part in parts] == [0, 2, 3, 4, 5]
    yes = [part.by_criterion[0].shares[0][1].hits for part in parts]
    assert yes == [2, 1, 0, 0, 0]
    assert [part.by_criterion[0].with_others.value for part in parts] == [1, 1, 0, 0, 0]
    assert on(own(campaign, raters[0]), campaign, "order").values.with_others.hits == 3
    # The others of the second rater are of two minds about the last three answers: no majority, nothing to compare.
    second = on(own(campaign, raters[1]), campaign, "order").values.with_others
    assert (second.hits, second.n) == (3, 3)


def test_fewer_than_five_have_no_fifths(campaign: Campaign, raters: list[Rater]) -> None:
    for _ in range(4):
        judge(campaign, raters[0])
    assert own(campaign, raters[0]).parts == []
    judge(campaign, raters[0])
    assert len(own(campaign, raters[0]).parts) == 5


def test_majority_of_the_others_is_that_of_each(cast: Cast, instrument: Instrument, raters: list[Rater]) -> None:
    """Counted at once for all raters; here each is left out by hand."""
    many_answers(instrument, sittings=30)
    raters.append(make_rater(cast.study, "olya"))
    campaign = make_campaign(cast.study, cast.alice, k=4)
    judge_all(campaign, raters)
    half = campaign.items.filter(position__gt=50).values("answer")
    Judgement.objects.filter(judge=raters[3].judge, answer__in=half).update(retracted_at=timezone.now())
    found, ratings = quality_of(campaign), ratings_of(campaign)
    for row in found.raters:
        for criterion, one in zip(found.criteria, row.by_criterion, strict=True):
            matrix = ratings.matrices[criterion.code]
            number = ratings.judges.tolist().index(row.rater.judge_id)
            others = strict_majority(np.delete(matrix, number, axis=0), criterion.scale)
            decided = ~np.isnan(others) & ~np.isnan(matrix[number])
            assert one.values.with_others.n == decided.sum()
            assert one.values.with_others.hits == (others[decided] == matrix[number][decided]).sum()


def test_shared_and_excluded_answers(campaign: Campaign, raters: list[Rater]) -> None:
    root, _ = share(campaign)
    for rater in raters:
        post(give(root, rater), rater, YES)
    one = on(own(campaign, raters[0]), campaign, "order").values
    assert (one.with_others.n, one.shares[0][1].n) == (1, 1)  # what was judged once counts once
    type(root.answer.sitting).objects.update(standing="excluded")
    found = own(campaign, raters[0])
    assert on(found, campaign, "order").values.shares[0][1].n == 0
    assert found.done == 1  # the work was done


def test_skips_flags_and_comments(cast: Cast, campaign: Campaign, raters: list[Rater]) -> None:
    for reason in ("<i>не по-русски</i>", "<i>не по-русски</i>", "знаю автора"):
        place_skip(
            place_uuid=hand_of(campaign, raters[0]).cards[0].place, user_id=raters[0].user_id, reason=reason, ahead=0
        )
    place = Place.objects.get(uuid=hand_of(campaign, raters[0]).cards[0].place)
    post(place, raters[0], remark=Remark(is_flagged=True, comment="тайное слово"))
    found = own(campaign, raters[0])
    assert found.skips == [("<i>не по-русски</i>", 2), ("знаю автора", 1)]
    assert (found.skipped, found.flags, found.comments) == (3, 1, 1)
    text = page_of(cast, campaign)
    assert "&lt;i&gt;не по-русски&lt;/i&gt;</span> × 2" in text
    assert "тайное слово" not in text
    answers_remove(answer_ids=[Skip.objects.get(reason="знаю автора").item.answer_id])
    assert "withdrawn by its author" in page_of(cast, campaign)
    assert not any("автора" in value for row in rows_of(cast, campaign) for value in row.values())


# --- the page and the file ---------------------------------------------------------------------------------------


def test_page_without_raters_teaches(cast: Cast, campaign: Campaign) -> None:
    assert "Nobody has taken an answer yet" in page_of(cast, campaign)
    assert rows_of(cast, campaign) == []


def test_page_says_what_the_campaign_has_not(cast: Cast, campaign: Campaign, raters: list[Rater]) -> None:
    judge(campaign, raters[0])
    text = page_of(cast, campaign)
    assert "opened without: training answers, gold answers, planned repeats." in text
    assert "Gold, right" not in text


def test_page_informs(cast: Cast, checked: Campaign, raters: list[Rater]) -> None:
    work_off(checked, raters[0])
    text = page_of(cast, checked)
    assert "Gold, right" in text and "opened without" not in text
    assert f"{raters[0].pseudonym} · lena" in text
    assert "all of these judgements have one value" in text
    for word in ("text-danger", "table-danger", "bg-danger", "text-warning"):
        assert word not in text


def test_file_has_the_numbers_of_the_page(cast: Cast, checked: Campaign, raters: list[Rater]) -> None:
    work(checked, raters[0], {"gold": YES | {"order": 0.0}}, seconds=7.5)
    rows = rows_of(cast, checked)
    cells = {(row["measure"], row["criterion"], row["category"]): row for row in rows if not row["part"]}
    assert {row["rater"] for row in rows} == {raters[0].pseudonym}
    gold = cells["gold", "order", ""]
    assert (gold["value"], gold["low"], gold["n"]) == ("0", "0", "2")
    assert float(gold["high"]) == own(checked, raters[0]).by_criterion[2].gold.high
    assert cells["repeats_alpha", "order", ""]["reason"] == "no_variation"
    assert cells["with_others", "order", ""]["reason"] == "none_judged"
    assert cells["seconds_median_and_quartiles", "", ""]["value"] == "7.5"
    assert cells["value", "order", "1"]["value"] == "1"
    assert {row["part"] for row in rows} == {"", "1", "2", "3", "4", "5"}
    assert not any("lena" in value for row in rows for value in row.values())
    assert rows_of(cast, checked, "?for=excel")


def test_file_is_described(campaign: Campaign, raters: list[Rater]) -> None:
    """docs/quality.md has every column, measure and standing that is written."""
    text = (ROOT / "docs" / "quality.md").read_text()
    heads = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", text, flags=re.MULTILINE)
    assert tuple(name for head in heads for name in re.findall(r"`(\w+)`", head)) == COLUMNS
    for _ in range(5):
        judge(campaign, raters[0])
    measures = {row[COLUMNS.index("measure")] for row in quality_rows(quality_of(campaign))}
    (listed,) = re.findall(r"^\| `measure` \| (.*) \|$", text, flags=re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", listed)) == measures
    assert all(f"`{standing}`" in text for standing in get_args(Standing))


def test_imported_votes_have_no_pace_and_no_order(cast: Cast, campaign: Campaign) -> None:
    """Somebody known from a file, who has no seat here."""
    rater = Rater.objects.create(
        judge=Judge.objects.create(kind="rater"), study=cast.study, pseudonym="R9", imported_name="old@example.org"
    )
    criterion = campaign.criteria.first()
    Judgement.objects.bulk_create(
        Judgement(round=campaign.round, answer_id=item.answer_id, criterion=criterion, judge=rater.judge, value=1)
        for item in campaign.items.all()
    )
    found = own(campaign, rater)
    assert (found.standing, found.pace.n, found.parts, found.active_at) == ("imported", 0, [], None)
    assert found.by_criterion[0].values.shares[0][1].n == 6
    assert "from an imported file" in page_of(cast, campaign)


def test_figure_has_the_numbers_of_the_fifths(cast: Cast, campaign: Campaign, raters: list[Rater]) -> None:
    for number in range(5):
        place = Place.objects.get(uuid=hand_of(campaign, raters[0]).cards[0].place)
        post(place, raters[0], YES if number else NO, remark=Remark(seconds=number + 1))
        for rater in raters[1:]:
            post(give(place.item, rater), rater, YES)
    found = quality_of(campaign)

    def points(drawn: str) -> list[float | None]:
        values = drift_specification(campaign.study, found, drawn)["data"]["values"]
        return [one["value"] for one in values if one["rater"] == raters[0].pseudonym]

    assert points("pace") == [1, 2, 3, 4, 5]
    assert points("order") == [0, 1, 1, 1, 1]
    client = cast.client(cast.alice)
    address = address_of(campaign, "campaign_quality_vega")
    for query in ("", "?drawn=order", "?drawn=nonsense", "?theme=dark"):
        assert client.get(address + query).json()["marks"]
    for kind, status in (("svg", 200), ("png", 200), ("pdf", 200), ("exe", 404)):
        figure = reverse("campaign_quality_figure", args=["ours", campaign.pk, kind])
        assert client.get(figure).status_code == status
    assert 'data-vega="' in page_of(cast, campaign)


def test_no_figure_of_nothing_and_of_too_many(cast: Cast, campaign: Campaign, raters: list[Rater]) -> None:
    judge(campaign, raters[0])
    assert cast.client(cast.alice).get(address_of(campaign, "campaign_quality_vega")).status_code == 404
    assert 'data-vega="' not in page_of(cast, campaign)
    for _ in range(4):
        judge(campaign, raters[0])
    found = quality_of(campaign)
    assert can_be_drawn(found)
    assert not can_be_drawn(replace(found, raters=found.raters * (MOST + 1)))


def test_who_may_not_look(cast: Cast, campaign: Campaign, raters: list[Rater]) -> None:
    for _ in range(5):
        judge(campaign, raters[0])
    for name in (*PAGES, *FIGURES):
        address = address_of(campaign, name)
        assert cast.client(raters[0].user).get(address).status_code == 404
        assert cast.client(cast.bob).get(address).status_code == 404
        assert Client().get(address).status_code == 302
        assert cast.client(cast.bob).get(address.replace("ours", "theirs")).status_code == 404
        assert cast.client(cast.alice).get(address).status_code == 200
        assert cast.client(cast.alice).post(address).status_code == 405
    cast.client(cast.alice).post(reverse("rate_too", args=["ours"]))  # from now on she rates, and is blinded
    for name in (*PAGES, *FIGURES):
        assert cast.client(cast.alice).get(address_of(campaign, name)).status_code == 403
    campaign_page = cast.client(cast.alice).get(reverse("campaign", args=["ours", campaign.pk])).content.decode()
    assert address_of(campaign) not in campaign_page
    campaign_close(campaign=campaign, actor=cast.alice)
    campaign_page = cast.client(cast.alice).get(reverse("campaign", args=["ours", campaign.pk])).content.decode()
    assert address_of(campaign) in campaign_page
    for name in PAGES:
        assert cast.client(cast.alice).get(address_of(campaign, name)).status_code == 200


def test_as_many_queries_for_many_raters_as_for_two(cast: Cast, checked: Campaign, raters: list[Rater]) -> None:
    counts = []
    work_off(checked, raters[0])
    client = cast.client(cast.alice)
    for number in range(2):
        for name in PAGES:
            with CaptureQueriesContext(connection) as queries:
                assert b"".join(client.get(address_of(checked, name))) != b""
            counts.append(len(queries))
        if number == 0:
            for name in ("more", "many", "most"):
                judge(checked, make_rater(cast.study, name))
    assert counts[:2] == counts[2:]
    assert max(counts) <= 18


# --- ending ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["work", "access"])
def test_ended_work_changes_no_alpha_no_label_and_no_number(
    cast: Cast, campaign: Campaign, raters: list[Rater], how: str
) -> None:
    judge_all(campaign, raters)
    for rater in raters:
        hand_of(campaign, rater)
    before: tuple[object, ...] = (campaign_agreement(campaign), labels_of_round(campaign), _numbers(campaign))
    member = Membership.objects.get(user=raters[0].user, study=cast.study)
    if how == "work":
        rater_deactivate(rater=raters[0], actor=cast.alice)
    else:
        membership_deactivate(membership=member, actor=cast.alice)
    assert (campaign_agreement(campaign), labels_of_round(campaign), _numbers(campaign)) == before
    assert {"work": "work ended", "access": "access ended"}[how] in page_of(cast, campaign)


def _numbers(campaign: Campaign) -> list[list[object]]:
    found: Quality = quality_of(campaign)
    return [[row.rater.pk, row.done, row.by_criterion, row.parts, row.pace] for row in found.raters]
