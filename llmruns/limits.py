"""How much may be asked of one provider at once and in a minute, by all workers together.

Nobody waits in a queue for a limit. A call that finds no room is not claimed and its message is dropped; whoever
finishes a call of the limit asks a due one in its place (see turns.py). A limit per minute has one message on its way
that arrives when there is room again. What both miss, the look for lost work finds.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.utils import timezone

from llmruns.models import Call, ModelConfig, ProviderLimit
from llmruns.queue import limit_enqueue
from studies.models import Study, User
from studies.services import audit_record

MINUTE = timedelta(seconds=60)
UNLIMITED = 10_000


class LimitTakenError(Exception):
    """The study has a limit for this provider and address: change that one."""


def configs_under(limit: ProviderLimit) -> QuerySet[ModelConfig]:
    """The configurations that share this limit."""
    configs = ModelConfig.objects.filter(study=limit.study_id, provider=limit.provider)
    if limit.base_url:
        return configs.filter(base_url=limit.base_url)
    others = ProviderLimit.objects.filter(study=limit.study_id, provider=limit.provider).exclude(base_url="")
    return configs.exclude(base_url__in=others.values("base_url"))


def limit_admits(*, limit_id: int, now: datetime) -> bool:
    """Whether one more call may be sent now. The caller writes the call in the same transaction, under this lock."""
    limit = ProviderLimit.objects.select_for_update(no_key=True).filter(pk=limit_id).first()
    if limit is None:
        return True  # taken away a moment ago
    calls = Call.objects.filter(config__in=configs_under(limit))
    if limit.parallel is not None and calls.filter(state=Call.State.IN_FLIGHT).count() >= limit.parallel:
        return False
    if limit.per_minute is None:
        return True
    recent = calls.filter(sent_at__gt=now - MINUTE).order_by("-sent_at").values_list("sent_at", flat=True)
    first = recent[limit.per_minute - 1 : limit.per_minute].first()
    if first is None:
        return True
    _wake_later(limit, room_at=first + MINUTE, now=now)
    return False


def _wake_later(limit: ProviderLimit, *, room_at: datetime, now: datetime) -> None:
    if limit.wake_at is not None and limit.wake_at > now:
        return
    limit.wake_at = room_at
    limit.save(update_fields=["wake_at"])
    seconds = (room_at - now).total_seconds()
    transaction.on_commit(partial(limit_enqueue, limit.pk, countdown=max(0.0, seconds)))


def limit_woken(*, limit_id: int) -> ProviderLimit | None:
    """The message has arrived: the next call that is refused sends another one."""
    ProviderLimit.objects.filter(pk=limit_id).update(wake_at=None)
    return ProviderLimit.objects.filter(pk=limit_id).first()


def messages_for(limit: ProviderLimit) -> int:
    """How many messages are of use now. Two queries.

    With a limit per minute one more than there is room for: the one that is refused sends the next wake-up.
    """
    calls = Call.objects.filter(config__in=configs_under(limit))
    room = UNLIMITED
    if limit.parallel is not None:
        room = min(room, limit.parallel - calls.filter(state=Call.State.IN_FLIGHT).count())
    if limit.per_minute is not None:
        sent = calls.filter(sent_at__gt=timezone.now() - MINUTE).count()
        room = min(room, limit.per_minute - sent) + 1
    return max(0, room)


@dataclass(frozen=True)
class LimitRow:
    limit: ProviderLimit
    models: int
    in_flight: int
    last_minute: int


def limit_rows(study: Study) -> list[LimitRow]:
    """The study's limits with what is used of them now. Four queries."""
    limits = list(ProviderLimit.objects.filter(study=study).order_by("provider", "base_url"))
    configs = dict(
        ModelConfig.objects.filter(study=study).annotate(limit_id=Subquery(_limit_ids())).values_list("pk", "limit_id")
    )
    in_flight = list(
        Call.objects.filter(config__study=study, state=Call.State.IN_FLIGHT).values_list("config_id", flat=True)
    )
    recent = list(
        Call.objects.filter(config__in=list(configs), sent_at__gt=timezone.now() - MINUTE).values_list(
            "config_id", flat=True
        )
    )
    return [
        LimitRow(
            limit,
            models=sum(found == limit.pk for found in configs.values()),
            in_flight=sum(configs.get(config) == limit.pk for config in in_flight),
            last_minute=sum(configs.get(config) == limit.pk for config in recent),
        )
        for limit in limits
    ]


def _limit_ids() -> QuerySet[ProviderLimit, Any]:
    """A subquery of configurations: the limit that holds for each, that of its own address first."""
    return (
        ProviderLimit.objects.filter(
            Q(base_url=OuterRef("base_url")) | Q(base_url=""), study=OuterRef("study"), provider=OuterRef("provider")
        )
        .order_by("-base_url")
        .values("pk")[:1]
    )


def limit_set(
    *,
    study: Study,
    provider: str,
    base_url: str,
    parallel: int | None,
    per_minute: int | None,
    actor: User | None,
    limit: ProviderLimit | None = None,
) -> ProviderLimit:
    """A new limit, or other numbers for `limit`. It holds from the next call on. Raises LimitTakenError."""
    values = {"provider": provider, "base_url": base_url, "parallel": parallel, "per_minute": per_minute}
    try:
        with transaction.atomic():
            if limit is None:
                limit = ProviderLimit.objects.create(study=study, **values)
            else:
                limit = ProviderLimit.objects.select_for_update(no_key=True).get(pk=limit.pk, study=study)
                for name, value in values.items():
                    setattr(limit, name, value)
                limit.save(update_fields=list(values))
            audit_record(actor=actor, study=study, action="limit_set", target=limit, detail=values)
    except IntegrityError as error:
        if "providerlimit_unique" in str(error):
            raise LimitTakenError from error
        raise
    return limit


@transaction.atomic
def limit_remove(*, limit: ProviderLimit, actor: User | None) -> None:
    """Ask that provider without a limit of ours."""
    detail = {"provider": limit.provider, "base_url": limit.base_url}
    audit_record(actor=actor, study=limit.study, action="limit_remove", target=limit, detail=detail)
    limit.delete()
