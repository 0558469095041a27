"""One person decides what raters left without a majority in a closed campaign, and what one of them flagged.

Nothing here reads who answered, and what is shown names no rater. Elsewhere the study's results are closed to the
adjudicator from the closing until nothing waits for them (`annotation.deciding`); before it they are closed only to an
adjudicator who rates too, so a researcher who adjudicates may have seen them. An adjudicator may have been one of the
raters: the campaign's page says so.
"""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import transaction
from django.db.models import Max, OuterRef, Subquery

from annotation.deciding import decisions_blind
from annotation.errors import (
    AnswerRemovedError,
    CampaignOpenError,
    DecisionChangedError,
    NotUndecidedError,
    PlaceNotYoursError,
    RaterInactiveError,
    ReasonMissingError,
)
from annotation.models import Campaign, Item, Place, Purpose, Rater
from annotation.places import verdicts_of
from annotation.selectors import Chosen, criteria_asked
from annotation.versions import decision_change, version_add
from annotation.votes import Tally, tallies_of
from scoring.models import Criterion, Judgement, Round
from scoring.services import judgements_record, judgements_retract


@dataclass(frozen=True)
class Case:
    """What an adjudicator sees of the raters' work on one answer: votes and remarks, and nobody's name."""

    tallies: list[Tally]
    is_flagged: bool
    comments: list[str]

    @property
    def criteria(self) -> list[Criterion]:
        """Those to decide: a flagged answer is decided as a whole, else the majorities stand."""
        return [tally.criterion for tally in self.tallies if self.is_flagged or tally.is_undecided]


@dataclass(frozen=True)
class Decision:
    """What is decided of an answer. `digest` changes with each change of it, and is empty where nothing is."""

    chosen: Chosen
    digest: str


def case_of(item: Item) -> Case:
    """Three queries."""
    judged = Place.objects.filter(item=item, purpose=Purpose.RATING, state=Place.State.DONE)
    remarks = list(judged.order_by("comment", "pk").values_list("is_flagged", "comment"))
    return Case(
        tallies=tallies_of(item),
        is_flagged=any(flagged for flagged, _ in remarks),
        comments=[comment for _, comment in remarks if comment],
    )


def decisions_of(campaign: Campaign, answer_ids: Collection[int]) -> dict[int, Decision]:
    """What holds now of each answer, whoever decided it. One query."""
    live = Judgement.objects.filter(
        round__adjudicates=campaign.round_id, answer__in=answer_ids, retracted_at__isnull=True
    )
    found: dict[int, list[Judgement]] = {answer: [] for answer in answer_ids}
    for one in live.select_related("criterion").order_by("pk"):
        found[one.answer_id].append(one)
    return {answer: _decision(rows) for answer, rows in found.items()}


def _decision(rows: Sequence[Judgement]) -> Decision:
    if not rows:
        return Decision(Chosen({}), "")
    chosen = Chosen(
        values={one.criterion.code: one.value for one in rows},
        not_attempt=any(one.not_attempt for one in rows),
        reason=rows[-1].reason,
    )
    return Decision(chosen, hashlib.sha256(",".join(str(one.pk) for one in rows).encode()).hexdigest())


def decision_of(item: Item) -> Decision:
    """One query."""
    return decisions_of(item.campaign, [item.answer_id])[item.answer_id]


def items_decided(campaign: Campaign) -> list[int]:
    """Items with a decision that holds, the newest first. One query."""
    decided = (
        Judgement.objects.filter(round__adjudicates=campaign.round_id, retracted_at__isnull=True)
        .values("answer")
        .annotate(newest=Max("pk"))
        .values("newest")
    )
    return list(
        Item.objects.filter(campaign=campaign, same_as__isnull=True, removed_at__isnull=True)
        .annotate(newest=Subquery(decided.filter(answer=OuterRef("answer"))))
        .filter(newest__isnull=False)
        .order_by("-newest")
        .values_list("pk", flat=True)
    )


@transaction.atomic
def adjudication_record(
    *,
    item_uuid: UUID,
    rater_id: int,
    values: Mapping[str, float],
    reason: str,
    not_attempt: bool = False,
    seen: str | None = None,
) -> int:
    """Decide the criteria on which an answer of a closed campaign has no majority. Returns how many changed.

    All of them where a rater flagged the answer, or where it is *not an attempt*. Whatever else was decided before is
    retracted. Answers that share the text share the decision. `seen` is the digest of the decision that the page
    showed; the same decision sent twice is made once.

    Raises PlaceNotYoursError (not this campaign's adjudicator), AnswerRemovedError, CampaignOpenError,
    NotUndecidedError, DecisionChangedError (another one was made meanwhile), ReasonMissingError, ValuesMissingError,
    ValueOutsideScaleError.
    """
    if not reason.strip():
        raise ReasonMissingError
    rater = Rater.objects.select_for_update(no_key=True).get(pk=rater_id)
    if not rater.is_active:
        raise RaterInactiveError
    # The campaign's lock puts two adjudicators, the old one and the new, in a row.
    item = (
        Item.objects.select_for_update(of=("campaign",), no_key=True)
        .select_related("campaign__round", "answer")
        .filter(uuid=item_uuid, campaign__adjudicator=rater)
        .first()
    )
    if item is None or item.same_as_id is not None:  # what shares a text is decided where it is judged
        raise PlaceNotYoursError
    if item.campaign.state == Campaign.State.OPEN:
        raise CampaignOpenError
    if Item.objects.filter(pk=item.pk, removed_at__isnull=False).exists():  # after the lock
        raise AnswerRemovedError
    undecided = case_of(item).criteria
    if not undecided:
        raise NotUndecidedError
    stored = decision_of(item)
    if seen is not None and seen != stored.digest:
        if stored.chosen.says(values, not_attempt=not_attempt, reason=reason.strip()):
            return 0
        raise DecisionChangedError
    # What is no attempt is 0 on every criterion, those among them on which the raters agreed.
    criteria = criteria_asked(item.campaign) if not_attempt else undecided
    round_ = Round.objects.get(adjudicates=item.campaign.round_id)
    verdicts = verdicts_of(criteria, values, not_attempt=not_attempt, reason=reason.strip())
    sharing = list(item.sharing.filter(removed_at__isnull=True).values_list("answer_id", flat=True))
    earlier = Judgement.objects.filter(round=round_, answer=item.answer_id, retracted_at__isnull=True)
    live = Judgement.objects.filter(
        round=round_, answer__in=[item.answer_id, *sharing], retracted_at__isnull=True
    ).select_related("criterion")
    before = set(live.values_list("pk", flat=True))
    for judge_id in set(earlier.values_list("judge_id", flat=True)):
        kept = verdicts if judge_id == rater.judge_id else ()
        judgements_retract(
            round_id=round_.pk,
            answer_id=item.answer_id,
            judge_id=judge_id,
            but_criteria=list(kept),
            sharing=sharing,
        )
    changed = judgements_record(
        round_id=round_.pk, answer_id=item.answer_id, judge_id=rater.judge_id, verdicts=verdicts, sharing=sharing
    )
    after = {one.pk: one for one in live.all()}
    if set(after) != before:
        fresh = [one for pk, one in after.items() if pk not in before]
        change = decision_change(
            item=item, rater=rater, judgements=fresh, retracted=before - set(after), sharing=sharing
        )
        version_add(campaign=item.campaign, change=change, actor=rater.user)
        decisions_blind(item.campaign)
    return changed
