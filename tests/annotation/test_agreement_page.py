"""The agreement page: every cut of the votes, computed when it is opened."""

import csv
import io

import numpy as np
import pytest
from django.test import Client
from django.urls import reverse

from annotation.agreement import alpha
from annotation.breakdown import breakdown_of
from annotation.dawid_skene import fitted
from annotation.models import Campaign, Rater
from annotation.ratings import ratings_of, strict_majority
from annotation.removal import answers_remove
from annotation.services import campaign_close, rater_deactivate
from annotation.votes import campaign_agreement, item_labels, labels_of_round
from corpus.models import Sitting
from scoring.consensus import majority
from scoring.models import Judge, Judgement, Round
from tests.annotation.factories import NO, YES, give, judge_all, post
from tests.annotation.test_checks import share
from tests.conftest import Cast


def text_of(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200
    return response.content.decode()


def address_of(campaign: Campaign, name: str = "campaign_agreement") -> str:
    return reverse(name, args=[campaign.study.slug, campaign.pk])


@pytest.fixture
def judged(campaign: Campaign, raters: list[Rater]) -> Campaign:
    judge_all(campaign, raters)
    return campaign


def votes_by_value(campaign: Campaign, code: str) -> dict[tuple[str, float], int]:
    """Pseudonym and value → how many live judgements of attempts, counted one by one; values never chosen are 0."""
    said = Judgement.objects.filter(round=campaign.round, criterion__code=code, retracted_at__isnull=True)
    names = said.values_list("judge__rater__pseudonym", flat=True)
    counts = {(name, value): 0 for name in names for value in (0.0, 1.0)}
    for one in said.filter(answer__items__is_refusal=False).select_related("judge__rater"):
        counts[one.judge.rater.pseudonym, one.value] += 1
    return counts


def test_page_shows_each_cut_and_the_csv_the_same_numbers(cast: Cast, judged: Campaign) -> None:
    client = cast.client(cast.alice)
    page = text_of(client, address_of(judged))
    for title in (
        "Rater by rater",
        "All but",
        "By complexity",
        "By stimulus",
        "The answers that divide the raters most",
    ):
        assert title in page
    assert (
        "told apart here when the campaign is closed" in page and '<th scope="row" class="fw-normal">people' not in page
    )
    rows = list(csv.DictReader(io.StringIO(client.get(address_of(judged, "campaign_agreement_csv")).content.decode())))
    overall = {row["criterion"]: row for row in rows if row["part"] == "overall"}
    for found in campaign_agreement(judged).attempts:
        row = overall[found.criterion.code]
        assert float(row["alpha"]) == found.agreement.value and int(row["n_answers"]) == found.agreement.n_units
        assert float(row["low"]) == found.agreement.interval.low
    pairs = {(row["name"], row["other"]) for row in rows if row["part"] == "pair"}
    assert pairs == {("R1", "R2"), ("R1", "R3"), ("R2", "R3")}
    chosen = [row for row in rows if row["part"] == "chosen" and row["criterion"] == "grammatical"]
    votes = votes_by_value(judged, "grammatical")
    assert {(row["name"], float(row["value"])): int(row["n_chosen"]) for row in chosen if row["name"]} == votes
    assert sum(int(row["n_chosen"]) for row in chosen if not row["name"]) == sum(votes.values())
    assert not any("lena" in value for row in rows for value in row.values())
    campaign_close(campaign=judged, actor=cast.alice)
    assert 'class="fw-normal">people</th>' in text_of(client, address_of(judged))


def test_cuts_are_alpha_of_their_answers(judged: Campaign) -> None:
    ratings = ratings_of(judged)
    found = breakdown_of(judged, ratings)
    matrix = ratings.matrices["logical"]
    place = [criterion.code for criterion in found.criteria].index("logical")
    for line in found.lines:
        if line.kind == "stimulus":
            mask = ratings.stimulus == judged.items.filter(answer__stimulus__position=line.name)[0].answer.stimulus_id
            assert line.by_criterion[place][0].value == alpha(matrix[:, mask], resamples=0).value
    (one,) = [pair for pair in found.pairs if (pair.one, pair.other) == tuple(ratings.judges[:2].tolist())]
    assert one.by_criterion[place][0].value == alpha(matrix[:2], resamples=0).value
    without = dict(found.without)[int(ratings.judges[0])]
    assert without.by_criterion[place][0].value == alpha(matrix[1:], resamples=0).value


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval", "nonsense"])
def test_level_is_chosen(cast: Cast, judged: Campaign, level: str) -> None:
    address = address_of(judged, "campaign_agreement_csv")
    rows = list(csv.DictReader(io.StringIO(cast.client(cast.alice).get(address, {"level": level}).content.decode())))
    assert {row["level"] for row in rows} == {level if level != "nonsense" else "nominal"}


def test_who_may_not_look(cast: Cast, judged: Campaign, raters: list[Rater]) -> None:
    for name in ("campaign_agreement", "campaign_agreement_csv"):
        address = address_of(judged, name)
        assert cast.client(raters[0].user).get(address).status_code in (403, 404)
        assert cast.client(cast.bob).get(address).status_code == 404
        assert Client().get(address).status_code == 302
    cast.client(cast.alice).post(reverse("rate_too", args=["ours"]))  # from now on she rates, and is blinded
    assert cast.client(cast.alice).get(address_of(judged)).status_code == 403


def test_shared_judgement_counts_once(campaign: Campaign, raters: list[Rater]) -> None:
    root, _ = share(campaign)
    for rater in raters[:2]:
        post(give(root, rater), rater, YES)
    ratings = ratings_of(campaign)
    assert (ratings.n_votes >= 2).sum() == 1
    _, votes = item_labels(campaign, ratings)
    assert votes["order"].sum() == 4  # a label each, of two votes
    assert campaign_agreement(campaign).attempts[0].agreement.n_pairable == 2
    answers_remove(answer_ids=[root.answer_id])
    Sitting.objects.filter(pk=root.answer.sitting_id).update(standing=Sitting.Standing.WITHDRAWN)
    assert (ratings_of(campaign).n_votes >= 2).sum() == 1  # the other one stands for the text now


def test_other_purposes_stay_outside(judged: Campaign, raters: list[Rater]) -> None:
    before = campaign_agreement(judged).attempts[0].agreement
    repeat = Round.objects.create(study=judged.study, rubric=judged.round.rubric, purpose="repeat")
    item = judged.items.first()
    for criterion in judged.criteria.all():
        Judgement.objects.create(round=repeat, answer=item.answer, criterion=criterion, judge=raters[0].judge, value=0)
    assert campaign_agreement(judged).attempts[0].agreement == before


def test_deactivation_changes_no_alpha_and_no_label(cast: Cast, judged: Campaign, raters: list[Rater]) -> None:
    before, labels = campaign_agreement(judged), labels_of_round(judged)
    rater_deactivate(rater=raters[0], actor=cast.alice)
    assert campaign_agreement(judged) == before
    assert labels_of_round(judged) == labels


def test_model_judges_stand_beside(cast: Cast, judged: Campaign) -> None:
    before = campaign_agreement(judged).attempts[0].agreement
    round_ = Round.objects.create(study=judged.study, rubric=judged.round.rubric, purpose="automatic")
    model = Judge.objects.create(kind=Judge.Kind.MODEL)
    criterion = judged.criteria.first()
    labels = labels_of_round(judged)
    for item in judged.items.all():
        value = labels[item.pk][criterion.code].value
        if value is not None:
            Judgement.objects.create(round=round_, answer=item.answer, criterion=criterion, judge=model, value=value)
    found = breakdown_of(judged, ratings_of(judged))
    (beside,) = found.beside
    decided = sum(by_code[criterion.code].value is not None for by_code in labels.values())
    assert (beside.by_criterion[0][1].value, beside.by_criterion[0][0].n_units) == (1.0, decided)
    assert beside.by_criterion[1][0].reason == "no_common_unit"
    assert campaign_agreement(judged).attempts[0].agreement == before
    assert "Beside the raters" in text_of(cast.client(cast.alice), address_of(judged))


def test_majority_of_many_is_that_of_each() -> None:
    random = np.random.default_rng(3)
    matrix = random.choice([1.0, 0.5, 0.0, np.nan], size=(5, 400))
    found = strict_majority(matrix, [1, 0.5, 0])
    for column, value in zip(matrix.T, found, strict=True):
        expected = majority(None if np.isnan(one) else float(one) for one in column).value
        assert (None if np.isnan(value) else value) == expected


def test_labels_of_many_are_those_of_each(judged: Campaign, raters: list[Rater], cast: Cast) -> None:
    post(judged.places.get(item__position=1, rater=raters[0]), raters[0], NO, version=1)
    ratings = ratings_of(judged)
    labels, votes = item_labels(judged, ratings)
    slow = labels_of_round(judged)
    for number, pk in enumerate(ratings.item_ids.tolist()):
        for code, values in labels.items():
            expected = slow[pk][code]
            assert (None if np.isnan(values[number]) else values[number]) == expected.value
            assert votes[code][number] == expected.votes


def test_dawid_skene_trusts_who_is_right(cast: Cast, judged: Campaign) -> None:
    random = np.random.default_rng(1)
    truth = random.random(500) < 0.6
    matrix = np.stack([np.where(random.random(500) < error, ~truth, truth) for error in (0.05, 0.1, 0.4)]).astype(float)
    matrix[2, :100] = np.nan
    found, errors, shares = fitted(matrix, [7, 8, 9], [1, 0])
    assert (found == truth).mean() > (strict_majority(matrix, [1, 0]) == truth).mean()
    assert [judge for judge, _ in errors] == [7, 8, 9]
    assert errors[0][1] < errors[1][1] < errors[2][1]
    assert sum(share for _, share in shares) == pytest.approx(1)
    assert "Estimated share" in text_of(cast.client(cast.alice), f"{address_of(judged)}?dawid_skene=1")
