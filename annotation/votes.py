"""Reads of a campaign's votes: agreement, labels, what is undecided. For researchers and adjudicators."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from annotation.agreement import Agreement, PercentAgreement
from annotation.breakdown import Found, summary_of
from annotation.models import Campaign, Item, Place, Purpose
from annotation.ratings import Floats, Mask, Ratings, ratings_of, strict_majority
from annotation.selectors import criteria_asked
from corpus.models import Sitting
from scoring.consensus import Label, label
from scoring.models import Criterion, Judgement

# Few ways of voting exist beside the number of answers, and a label is a value: each is made once.
_label = lru_cache(maxsize=4096)(label)


class Vote(NamedTuple):
    answer_id: int
    criterion_id: int
    judge_id: int
    value: float
    not_attempt: bool


def votes_of_round(
    round_id: int, *, counted_only: bool = True, answer_ids: Collection[int] | None = None
) -> list[Vote]:
    """The live judgements of a round, one query.

    Whether an answer counts is written at its sitting, which no page of a judge may read: those pass
    `counted_only=False` and at worst decide an answer that has since been excluded. One that was withdrawn is known
    by its item.
    """
    judgements = Judgement.objects.filter(round=round_id, retracted_at__isnull=True)
    if answer_ids is not None:
        judgements = judgements.filter(answer__in=answer_ids)
    if counted_only:
        judgements = judgements.filter(answer__sitting__standing=Sitting.Standing.COUNTED)
    rows = judgements.values_list("answer_id", "criterion_id", "judge_id", "value", "not_attempt")
    return list(map(Vote._make, rows.iterator(chunk_size=20_000)))


@dataclass(frozen=True)
class Share:
    value: float | None  # None: undecided
    n: int
    share: float | None  # of the answers that have a vote; None when there is none


@dataclass(frozen=True)
class CriterionAgreement:
    criterion: Criterion
    agreement: Agreement
    percent: PercentAgreement
    shares: Sequence[Share]


@dataclass(frozen=True)
class CampaignAgreement:
    attempts: list[CriterionAgreement]
    with_refusals: list[CriterionAgreement]  # empty unless the campaign was to hold refusals
    refusals: int  # answers
    n_items: int
    undecided: int  # answers with a vote and a criterion without a label
    without_votes: int


def campaign_agreement(campaign: Campaign) -> CampaignAgreement:
    """Per criterion, never averaged over criteria. Five queries, whatever the number of answers.

    Alpha is nominal on a scale of two values and ordinal on a graded one, over what was judged once (see
    `annotation.ratings`); labels are counted by answers.
    """
    ratings = ratings_of(campaign)
    breakdown = summary_of(ratings)
    labels, votes = item_labels(campaign, ratings)
    is_attempt = ~ratings.refusal[ratings.item_units]
    undecided = np.logical_or.reduce([np.isnan(labels[one.code]) & (votes[one.code] > 0) for one in ratings.criteria])
    silent = np.logical_and.reduce([votes[one.code] == 0 for one in ratings.criteria])

    def agreements(found: Sequence[Found], mask: Mask) -> list[CriterionAgreement]:
        return [
            CriterionAgreement(
                criterion, *pair, shares=_shares(criterion, labels[criterion.code][mask], votes[criterion.code][mask])
            )
            for criterion, pair in zip(ratings.criteria, found, strict=True)
        ]

    everything = np.ones_like(is_attempt)
    return CampaignAgreement(
        attempts=agreements(breakdown.attempts, is_attempt),
        with_refusals=agreements(breakdown.with_refusals, everything) if campaign.with_refusals else [],
        refusals=int(np.sum(~is_attempt)),
        n_items=len(ratings.item_ids),
        undecided=int(np.sum(undecided)),
        without_votes=int(np.sum(silent)) if len(ratings.item_ids) else 0,
    )


def item_labels(campaign: Campaign, ratings: Ratings) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """By criterion code, per item: the label (NaN: none) and the number of votes. One query.

    The rule of `scoring.consensus.label`, for many answers at once: refusal, adjudication, strict majority.
    """
    decisions = dict_of_decisions(campaign.round_id)
    place = {answer: number for number, answer in enumerate(ratings.item_answers.tolist())}
    refusal = ratings.refusal[ratings.item_units]
    labels, votes = {}, {}
    for criterion in ratings.criteria:
        matrix = ratings.matrices[criterion.code]
        found = strict_majority(matrix, criterion.scale)[ratings.item_units]
        for (answer, criterion_id), value in decisions.items():
            if criterion_id == criterion.pk and answer in place:
                found[place[answer]] = value
        found[refusal] = 0.0
        labels[criterion.code] = found
        votes[criterion.code] = (~np.isnan(matrix)).sum(axis=0)[ratings.item_units].astype(np.float64)
    return labels, votes


def _shares(criterion: Criterion, labels: Floats, votes: Floats) -> list[Share]:
    """Of the answers that have a vote or a label."""
    known = (votes > 0) | ~np.isnan(labels)
    total = int(known.sum())
    values: list[float | None] = [*criterion.scale, None]
    counts = [int((np.isnan(labels[known]) if value is None else labels[known] == value).sum()) for value in values]
    return [Share(value, n, n / total if total else None) for value, n in zip(values, counts, strict=True)]


class CampaignVotes:
    """Everything that labels are made of, read once: criteria, items, votes, decisions. Four queries."""

    def __init__(
        self, campaign: Campaign, *, counted_only: bool = True, answer_ids: Collection[int] | None = None
    ) -> None:
        items = Item.objects.filter(campaign=campaign, purpose=Purpose.RATING, removed_at__isnull=True)
        if counted_only:
            items = items.filter(answer__sitting__standing=Sitting.Standing.COUNTED)
        if answer_ids is not None:
            items = items.filter(answer__in=answer_ids)
        self.criteria = criteria_asked(campaign)
        self.answer_of: dict[int, int] = {}
        self.refusals: set[int] = set()
        for pk, answer_id, is_refusal in items.order_by("position").values_list("pk", "answer_id", "is_refusal"):
            self.answer_of[pk] = answer_id
            if is_refusal:
                self.refusals.add(answer_id)
        self.votes = votes_of_round(campaign.round_id, counted_only=counted_only, answer_ids=answer_ids)
        self.decisions: dict[tuple[int, int], float] = dict_of_decisions(campaign.round_id)

    def labels(self) -> dict[int, dict[str, Label]]:
        """Item → criterion code → label, in the order of the campaign."""
        values: dict[tuple[int, int], list[float]] = {}
        marks = Counter[tuple[int, int]]()
        for vote in self.votes:
            key = (vote.answer_id, vote.criterion_id)
            values.setdefault(key, []).append(vote.value)
            marks[key] += vote.not_attempt
        return {
            pk: {
                criterion.code: _label(
                    tuple(sorted(values.get((answer_id, criterion.pk), ()))),
                    adjudicated=self.decisions.get((answer_id, criterion.pk)),
                    is_refusal=answer_id in self.refusals,
                    not_attempt_votes=marks[answer_id, criterion.pk],
                )
                for criterion in self.criteria
            }
            for pk, answer_id in self.answer_of.items()
        }


def dict_of_decisions(round_id: int) -> dict[tuple[int, int], float]:
    """(answer, criterion) → value of the live adjudication of a rating round. One query."""
    decided = Judgement.objects.filter(round__adjudicates=round_id, retracted_at__isnull=True)
    return {
        (answer, criterion): value
        for answer, criterion, value in decided.values_list("answer_id", "criterion_id", "value")
    }


def labels_of_round(campaign: Campaign) -> dict[int, dict[str, Label]]:
    """Item → criterion code → label, counted answers only. Four queries, whatever the number of answers."""
    return CampaignVotes(campaign).labels()


def is_undecided(by_code: Mapping[str, Label]) -> bool:
    """Somebody voted, and a criterion has no label: what an adjudicator decides. No vote is a gap, not a case."""
    return any(one.value is None and one.votes > 0 for one in by_code.values())


def items_undecided(campaign: Campaign, *, counted_only: bool = True) -> list[int]:
    """Items that wait for the adjudicator, in the campaign's order. Four queries."""
    labels = CampaignVotes(campaign, counted_only=counted_only).labels()
    return [pk for pk, by_code in labels.items() if is_undecided(by_code)]


@dataclass(frozen=True)
class Tally:
    """How the raters voted on one criterion of one answer, without their names."""

    criterion: Criterion
    counts: list[tuple[float, int]]  # value and votes, best value first
    not_attempts: int
    label: Label  # by votes alone: a decision does not change what was undecided

    @property
    def is_undecided(self) -> bool:
        return self.label.value is None and self.label.votes > 0


def tallies_of(item: Item) -> list[Tally]:
    """What an adjudicator sees of the votes for one answer. Two queries."""
    rows = list(
        Judgement.objects.filter(
            round=item.campaign.round_id, answer=item.answer_id, retracted_at__isnull=True
        ).values_list("criterion_id", "value", "not_attempt")
    )
    tallies = []
    for criterion in criteria_asked(item.campaign):
        values = [value for pk, value, _ in rows if pk == criterion.pk]
        marks = sum(mark for pk, _, mark in rows if pk == criterion.pk)
        tallies.append(
            Tally(
                criterion=criterion,
                counts=[(value, values.count(value)) for value in criterion.scale],
                not_attempts=marks,
                label=label(values, is_refusal=item.is_refusal, not_attempt_votes=marks),
            )
        )
    return tallies


@dataclass(frozen=True)
class ItemVotes:
    """One answer of a campaign with every place that has a label or had one, for the researcher's table."""

    item: Item
    cells: list[tuple[Criterion, Label]]
    rows: list[tuple[Place, list[float | None]]]


def items_with_votes(
    campaign: Campaign, labels: Mapping[int, Mapping[str, Label]], pks: Sequence[int]
) -> list[ItemVotes]:
    """The given items with their votes by rater. Four queries, whatever the number of items."""
    criteria = criteria_asked(campaign)
    items = {item.pk: item for item in Item.objects.filter(pk__in=pks).select_related("answer")}
    answers = {item.answer_id for item in items.values()}
    votes = {
        (answer, judge, criterion): value
        for answer, judge, criterion, value in Judgement.objects.filter(
            round=campaign.round_id, answer__in=answers, retracted_at__isnull=True
        ).values_list("answer_id", "judge_id", "criterion_id", "value")
    }
    places: dict[int, list[Place]] = {}
    judged = [Place.State.DONE, Place.State.WITHDRAWN]
    roots = {pk: item.same_as_id or pk for pk, item in items.items()}  # at which a shared text is judged
    found = Place.objects.filter(item__in=set(roots.values()), purpose=Purpose.RATING, state__in=judged)
    for place in found.select_related("rater").order_by("rater_id"):
        places.setdefault(place.item_id, []).append(place)
    return [
        ItemVotes(
            item=items[pk],
            cells=[(criterion, labels[pk][criterion.code]) for criterion in criteria],
            rows=[
                (
                    place,
                    [
                        votes.get((items[pk].answer_id, place.rater.judge_id if place.rater else 0, criterion.pk))
                        for criterion in criteria
                    ],
                )
                for place in places.get(roots[pk], [])
            ],
        )
        for pk in pks
    ]
