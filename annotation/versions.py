"""The labels of a closed campaign are frozen: a digest over its votes, and one more for every change since.

Version 1 is made at the closing. Its digest is over the policy, the answers and every live vote in a canonical form. A
later version's is over the digest before it and the change, which holds no free text: who reads a label can tell from
one digest that the whole history behind it is the one that was recorded. `chain_verify` counts it again.
"""

import hashlib
import json
from collections.abc import Collection, Iterable
from datetime import UTC
from itertools import pairwise
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from annotation.models import Campaign, Item, LabelVersion, Place, Purpose, Rater
from annotation.selectors import criteria_asked
from annotation.votes import CampaignVotes
from corpus.models import Sitting
from scoring.models import Criterion, Judgement
from studies.models import User

POLICY = "strict majority of two votes or more; refusals 0 by rule; the adjudicator's decision before the majority"
Change = dict[str, Any]


def digest_of(*parts: Any) -> str:
    """sha256 over the parts as JSON, keys sorted, one on each line."""
    lines = (json.dumps(part, ensure_ascii=False, sort_keys=True, separators=(",", ":")) for part in parts)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def canonical_votes(campaign: Campaign, gone: Collection[int] = ()) -> list[list[Any]]:
    """The round's live votes, and those of the given ids that have been taken out since, sorted. Four queries."""
    found = Judgement.objects.filter(round=campaign.round_id).filter(Q(retracted_at__isnull=True) | Q(pk__in=gone))
    rows = found.values_list(
        "answer_id", "criterion_id", "judge_id", "value", "not_attempt", "shared_from_id", "made_at"
    )
    answers = {
        pk: str(blind)
        for pk, blind in Item.objects.filter(campaign=campaign).values_list("answer_id", "answer__blind_id")
    }
    codes = dict(Criterion.objects.filter(rubric=campaign.round.rubric_id).values_list("pk", "code"))
    names = _names(campaign)
    return sorted(
        [
            answers.get(answer, str(answer)),
            codes[criterion],
            names.get(judge, str(judge)),
            value,
            mark,
            shared is not None,
            made_at.astimezone(UTC).isoformat(),
        ]
        for answer, criterion, judge, value, mark, shared, made_at in rows.iterator(chunk_size=20_000)
    )


def _names(campaign: Campaign) -> dict[int, str]:
    return dict(Rater.objects.filter(study=campaign.study_id).values_list("judge_id", "pseudonym"))


def _items(campaign: Campaign) -> list[tuple[str, bool, bool, bool]]:
    """Each answer: its random number, whether a refusal, removed, counted. One query, sorted."""
    rows = Item.objects.filter(campaign=campaign, purpose=Purpose.RATING).values_list(
        "answer__blind_id", "is_refusal", "removed_at", "answer__sitting__standing"
    )
    return sorted(
        (str(blind), refusal, removed is not None, standing == Sitting.Standing.COUNTED)
        for blind, refusal, removed, standing in rows
    )


@transaction.atomic
def labels_freeze(*, campaign: Campaign, actor: User | None) -> LabelVersion:
    """Version 1 of a closed campaign; the one there is, where it was frozen before. Six queries."""
    locked = Campaign.objects.select_for_update(of=("self",), no_key=True).select_related("round").get(pk=campaign.pk)
    known = LabelVersion.objects.filter(campaign=locked, version=1).first()
    if known is not None:
        return known
    items = _items(locked)
    votes = canonical_votes(locked)
    policy = {
        "labels": POLICY,
        "guideline_version": locked.round.guideline_version,
        "criteria": [criterion.code for criterion in criteria_asked(locked)],
        "with_refusals": locked.with_refusals,
        "raters_per_answer": locked.raters_per_answer,
        "counts": {"answers": len(items), "votes": len(votes)} | _label_counts(locked),
        # Known here, so that what has left since can be told from what had left before.
        "removed": [blind for blind, _refusal, removed, _counted in items if removed],
        "not_counted": [blind for blind, _refusal, removed, counted in items if not counted and not removed],
    }
    sha256 = digest_of(policy, [[blind, refusal] for blind, refusal, *_rest in items], votes)
    return LabelVersion.objects.create(campaign=locked, version=1, policy=policy, sha256=sha256, actor=actor)


def _label_counts(campaign: Campaign) -> dict[str, int]:
    found = [one for by_code in CampaignVotes(campaign).labels().values() for one in by_code.values()]
    return {"labels": sum(one.value is not None for one in found), "undecided": sum(one.value is None for one in found)}


def version_add(*, campaign: Campaign, change: Change, actor: User | None) -> LabelVersion | None:
    """A change of a frozen campaign's labels, in the caller's transaction, which holds the campaign's lock.

    None, and nothing is written, while the campaign is not frozen.
    """
    last = LabelVersion.objects.filter(campaign=campaign).order_by("-version").first()
    if last is None:
        return None
    return LabelVersion.objects.create(
        campaign=campaign,
        version=last.version + 1,
        policy=last.policy,
        change=change,
        sha256=digest_of(last.sha256, change),
        actor=actor,
    )


def decision_change(
    *, item: Item, rater: Rater, judgements: Iterable[Judgement], retracted: Iterable[int], sharing: Collection[int]
) -> Change:
    rows = sorted(judgements, key=lambda one: one.pk)
    return {
        "kind": "decision",
        "answer": str(item.answer.blind_id),
        "rater": rater.pseudonym,
        "values": {one.criterion.code: one.value for one in rows if one.answer_id == item.answer_id},
        "not_attempt": any(one.not_attempt for one in rows),
        "judgements": [one.pk for one in rows],
        "retracted": sorted(retracted),
        "shared_with": len(sharing),
    }


@transaction.atomic
def versions_catch_up(*, campaign: Campaign) -> LabelVersion | None:
    """A version for the answers whose sitting has come to count, or ceased to, since the last one.

    Surveys decide that, in a layer that knows nothing of campaigns; so it is recorded when somebody next looks.
    """
    locked = Campaign.objects.select_for_update(no_key=True).get(pk=campaign.pk)
    versions = list(LabelVersion.objects.filter(campaign=locked).order_by("version"))
    if not versions:
        return None
    out = _not_counted(versions)
    gone = _removed(versions)
    now = {blind for blind, _refusal, removed, counted in _items(locked) if not counted and not removed}
    left, back = sorted(now - out), sorted(out - now - gone)
    if not left and not back:
        return None
    return version_add(campaign=locked, change={"kind": "standing", "not_counted": left, "counted": back}, actor=None)


def _not_counted(versions: list[LabelVersion]) -> set[str]:
    out = set(versions[0].policy["not_counted"])
    for one in versions:
        out |= set(one.change.get("not_counted", ()))
        out -= set(one.change.get("counted", ()))
    return out


def _removed(versions: list[LabelVersion]) -> set[str]:
    return set(versions[0].policy["removed"]).union(*(one.change.get("removed", ()) for one in versions))


def label_change(place: Place, gone: Collection[int]) -> Change:
    return {
        "kind": "label_withdrawn",
        "answer": str(place.item.answer.blind_id),
        "rater": place.rater.pseudonym if place.rater else "",
        "retracted": sorted(gone),
    }


def removal_change(blind_ids: Iterable[UUID]) -> Change:
    return {"kind": "answer_withdrawn", "removed": sorted(map(str, blind_ids))}


def chain_verify(campaign: Campaign) -> list[str]:
    """Count the whole chain again from the judgements' history. What does not hold, in words; nothing: it holds.

    Six queries.
    """
    versions = list(LabelVersion.objects.filter(campaign=campaign).order_by("version"))
    if not versions:
        return ["the campaign's labels are not frozen"]
    first, problems = versions[0], []
    taken = {pk for one in versions if one.change.get("kind") == "label_withdrawn" for pk in one.change["retracted"]}
    items = _items(campaign)
    votes = canonical_votes(campaign, taken)
    if digest_of(first.policy, [[blind, refusal] for blind, refusal, *_rest in items], votes) != first.sha256:
        problems.append("version 1: the votes are not those of the closing")
    for before, after in pairwise(versions):
        if after.version != before.version + 1:
            problems.append(f"version {before.version + 1} is missing")
        if digest_of(before.sha256, after.change) != after.sha256:
            problems.append(f"version {after.version}: the digest is not that of its change")
    if Judgement.objects.filter(round=campaign.round_id, pk__in=taken, retracted_at__isnull=True).exists():
        problems.append("a judgement that was taken out is live")
    live = Judgement.objects.filter(round__adjudicates=campaign.round_id, retracted_at__isnull=True)
    if set(live.values_list("pk", flat=True)) != _decided(versions, before=set()):
        problems.append("the decisions are not those that were recorded")
    if {blind for blind, _refusal, removed, _counted in items if removed} != _removed(versions):
        problems.append("the withdrawn answers are not those that were recorded")
    return problems


def _decided(versions: list[LabelVersion], *, before: set[int]) -> set[int]:
    live = before
    for one in versions:
        live = (live - set(one.change.get("retracted", ()))) | set(one.change.get("judgements", ()))
    return live
