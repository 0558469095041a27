"""Writes of exclusion: a rule is written down, applied, applied again, lifted. The survey's row puts them in a line."""

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from django.db import transaction
from django.utils import timezone

from corpus.models import Sitting
from corpus.services import excluded_set_reason, sittings_set_standing
from studies.models import User
from studies.services import audit_record
from surveys.exclusion import BY_HAND
from surveys.facts import sittings_taken
from surveys.models import Exclusion, ExclusionRule, Survey


class ListChangedError(Exception):
    """The rule would now take other sittings than those that the page showed."""


class NotExcludableError(Exception):
    """The sitting is a pilot or withdrawn: it counts nowhere as it is."""


def list_digest(sitting_ids: Iterable[int]) -> str:
    """What a preview's form carries, to say later that it had shown just these."""
    return hashlib.sha256(",".join(map(str, sorted(sitting_ids))).encode()).hexdigest()


@dataclass(frozen=True)
class Applied:
    rule: ExclusionRule
    taken: int  # sittings that the rule holds from now on
    newly: int  # of these, counted until now


@transaction.atomic
def rule_apply(
    *, survey: Survey, kind: str, limit: float | None, reason: str, seen: str, actor: User | None
) -> Applied:
    """Write a rule down and leave out whom it takes: those that the preview showed (`list_digest`), or nobody.

    Raises ListChangedError.
    """
    survey = _locked(survey)
    taken = sittings_taken(survey, kind, limit)
    if list_digest(taken) != seen:
        raise ListChangedError
    rule = ExclusionRule.objects.create(survey=survey, kind=kind, limit=limit, reason=reason, made_by=actor)
    detail = {"kind": kind, "limit": limit, "reason": reason, "sittings": len(taken)}
    audit_record(actor=actor, study=survey.instrument.study, action="exclusion_apply", target=rule, detail=detail)
    return Applied(rule, len(taken), _hold(rule, survey, taken, actor))


@transaction.atomic
def sitting_exclude(*, survey: Survey, sitting_id: int, reason: str, actor: User | None) -> Applied:
    """Leave one sitting out by hand. Twice is once. Raises NotExcludableError."""
    survey = _locked(survey)
    sitting = Sitting.objects.get(pk=sitting_id, respondent__participant__survey=survey)
    if sitting.standing in (Sitting.Standing.PILOT, Sitting.Standing.WITHDRAWN):
        raise NotExcludableError
    live = Exclusion.objects.filter(sitting=sitting, rule__kind=BY_HAND, lifted_at__isnull=True).first()
    if live:
        return Applied(live.rule, 1, 0)
    rule = ExclusionRule.objects.create(survey=survey, kind=BY_HAND, reason=reason, made_by=actor)
    detail = {"kind": BY_HAND, "sitting": sitting_id, "reason": reason}
    audit_record(actor=actor, study=survey.instrument.study, action="exclusion_apply", target=rule, detail=detail)
    return Applied(rule, 1, _hold(rule, survey, [sitting_id], actor))


@transaction.atomic
def rule_apply_again(*, rule: ExclusionRule, actor: User | None) -> Applied:
    """Take those who came, or became such, after the rule was applied. Repeating changes nothing."""
    survey = _locked(rule.survey)
    rule = ExclusionRule.objects.get(pk=rule.pk)
    if rule.lifted_at is not None or rule.kind == BY_HAND:
        return Applied(rule, 0, 0)
    held = set(rule.exclusions.filter(lifted_at__isnull=True).values_list("sitting", flat=True))
    fresh = [pk for pk in sittings_taken(survey, rule.kind, rule.limit) if pk not in held]
    if fresh:
        audit_record(
            actor=actor,
            study=survey.instrument.study,
            action="exclusion_apply_again",
            target=rule,
            detail={"sittings": len(fresh)},
        )
    return Applied(rule, len(fresh), _hold(rule, survey, fresh, actor))


@transaction.atomic
def rule_lift(*, rule: ExclusionRule, actor: User | None) -> int:
    """Take a rule back. Its sittings stand as before it unless another live rule holds them.

    Returns how many count again.
    """
    survey = _locked(rule.survey)
    now = timezone.now()
    if not ExclusionRule.objects.filter(pk=rule.pk, lifted_at__isnull=True).update(lifted_at=now, lifted_by=actor):
        return 0
    exclusions = list(Exclusion.objects.filter(rule=rule, lifted_at__isnull=True))
    Exclusion.objects.filter(pk__in=[one.pk for one in exclusions]).update(lifted_at=now)
    audit_record(
        actor=actor,
        study=survey.instrument.study,
        action="exclusion_lift",
        target=rule,
        detail={"sittings": len(exclusions)},
    )
    others = dict(
        Exclusion.objects.filter(sitting__in=[one.sitting_id for one in exclusions], lifted_at__isnull=True)
        .order_by("-pk")
        .values_list("sitting", "rule__reason")
    )
    counted = 0
    free = [one for one in exclusions if one.sitting_id not in others]
    for standing, reason in sorted({(one.standing_before, one.reason_before) for one in free}):
        again = [one.sitting_id for one in free if (one.standing_before, one.reason_before) == (standing, reason)]
        if standing == Sitting.Standing.EXCLUDED:  # it came so from where it was imported
            excluded_set_reason(sitting_ids=again, reason=reason)
        else:
            counted += len(_stand(survey, again, Sitting.Standing.COUNTED, reason, actor))
    for reason in set(others.values()):  # still out, for the reason of the rule that holds them now
        held = [pk for pk, own in others.items() if own == reason]
        excluded_set_reason(sitting_ids=held, reason=reason)
    return counted


def _locked(survey: Survey) -> Survey:
    return (
        Survey.objects.select_for_update(of=("self",), no_key=True)
        .select_related("instrument__study")
        .get(pk=survey.pk)
    )


def _hold(rule: ExclusionRule, survey: Survey, sitting_ids: Collection[int], actor: User | None) -> int:
    """The rule holds these sittings. Returns how many of them counted until now."""
    held = Exclusion.objects.filter(sitting__in=sitting_ids, lifted_at__isnull=True)
    now = Sitting.objects.filter(pk__in=sitting_ids)
    before = {pk: (standing, reason) for pk, standing, reason in now.values_list("pk", "standing", "standing_reason")}
    before |= {
        pk: (standing, reason)
        for pk, standing, reason in held.values_list("sitting", "standing_before", "reason_before")
    }
    excluded = Sitting.Standing.EXCLUDED
    Exclusion.objects.bulk_create(
        Exclusion(
            rule=rule,
            sitting_id=pk,
            standing_before=excluded if before[pk][0] == excluded else Sitting.Standing.COUNTED,
            reason_before=before[pk][1],
        )
        for pk in sitting_ids
    )
    return len(_stand(survey, sitting_ids, Sitting.Standing.EXCLUDED, rule.reason, actor))


def _stand(survey: Survey, sitting_ids: Iterable[int], standing: str, reason: str, actor: User | None) -> list[int]:
    return sittings_set_standing(
        sitting_ids=list(sitting_ids), standing=standing, reason=reason, study=survey.instrument.study, actor=actor
    )
