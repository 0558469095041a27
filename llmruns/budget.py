"""The cap of an experiment, or of a judging. A call reserves the most that it can cost before it is sent, and gives it
back afterwards.

All of it happens under the lock of that row, which is taken last of all locks and held to the end of the transaction
that writes the call. `spent` holds what calls have cost, and the reservations of those that may have been billed
without saying so.
"""

from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Literal

import structlog
from django.db import transaction

from llmruns.models import Experiment, Judging
from llmruns.pricing import LARGEST
from llmruns.rows import assigned_values, assignments, columns, instance
from studies.database import planned_cursor
from studies.models import User
from studies.services import audit_record

log = structlog.get_logger(__name__)

Purse = Experiment | Judging  # what has a cap of its own
Decision = Literal["granted", "wait", "stopped"]
NOTHING = Decimal(0)
# Messages that one finished call sends: one in its place, and one by which fewer in flight become more again.
MOST_SENT = 2


class CapRefusedError(Exception):
    """`reason` is one of: uncapped (it was launched without one), low (it is spent already), ended, bounds."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def money_reserve(*, experiment_id: int, most: Decimal | None, of: type[Purse] = Experiment) -> Decision:
    """Take `most` out of the cap. The caller is in the transaction that writes the call, and sends only if granted.

    `wait`: it would fit if the calls in flight gave back what they do not use, so whoever finishes one sends the next.
    `stopped`: it does not fit whatever they give back, or cannot be bounded, and the experiment is paused now.
    `of`: where the id is of something else that has a cap.
    """
    if most is not None and _fits(experiment_id, most, of):
        return "granted"
    experiment = _locked(experiment_id, of)
    if experiment.state != Experiment.State.RUNNING or experiment.cap is None:
        return "stopped"
    if most is None:
        _pause(experiment, "unbounded", None)
        return "stopped"
    if experiment.spent + most > experiment.cap:
        _pause(experiment, "cap", None)
        return "stopped"
    if experiment.spent + experiment.reserved + most > experiment.cap:
        if not experiment.waits_for_money:
            experiment.waits_for_money = True
            experiment.save(update_fields=["waits_for_money"])
        return "wait"
    experiment.reserved += most
    experiment.save(update_fields=["reserved"])
    return "granted"


def money_settle(
    *, experiment_id: int, held: Decimal, cost: Decimal | None, was_lost: bool, of: type[Purse] = Experiment
) -> int:
    """Give a reservation back and count what the call has cost; what is not known costs its reservation.

    A reply that was paid for is counted, even above the cap. `was_lost`: the call was given up before, and its
    reservation already counts as spent. Returns how many waiting calls are to be sent now, MOST_SENT at most.

    That calls wait is forgotten only when none is found any more (`money_awaited_no_more`): of many that end at once
    each sends for itself.
    """
    experiment = _locked(experiment_id, of)
    if was_lost:
        experiment.spent = max(NOTHING, experiment.spent - held)
    else:
        experiment.reserved = max(NOTHING, experiment.reserved - held)
    experiment.spent = min(LARGEST, experiment.spent + (held if cost is None else cost))
    values = assigned_values(of, {name: getattr(experiment, name) for name in _SETTLED})
    with planned_cursor() as cursor:
        cursor.execute(_statements(of).settle, {**values, "id": experiment_id})
    if not experiment.waits_for_money or experiment.cap is None:
        return 0
    room = experiment.cap - experiment.spent - experiment.reserved
    # At least one: it finds room, waits again, or stops the experiment. Nobody else would.
    return min(MOST_SENT, max(1, int(room / held))) if held else MOST_SENT


def money_awaited_no_more(*, experiment_id: int, of: type[Purse] = Experiment) -> None:
    """Nothing is due any more. One that comes to wait at this very moment is found by the look for lost work."""
    of._default_manager.filter(pk=experiment_id, waits_for_money=True).update(waits_for_money=False)


def _fits(pk: int, most: Decimal, of: type[Purse]) -> bool:
    """What nearly every call needs: it takes the lock, looks and reserves in one statement."""
    with planned_cursor() as cursor:
        cursor.execute(_statements(of).reserve, {"id": pk, "most": most})
        return cursor.rowcount == 1


_MONEY = ("id", "state", "cap", "spent", "reserved", "waits_for_money")
_SETTLED = ("spent", "reserved")


@dataclass(frozen=True)
class _Statements:
    reserve: str
    lock: str
    settle: str


@cache
def _statements(of: type[Purse]) -> _Statements:
    table = of._meta.db_table
    return _Statements(
        reserve=f"UPDATE {table} SET reserved = reserved + %(most)s"  # noqa: S608 - our own names
        " WHERE id = %(id)s AND state = 'running' AND spent + reserved + %(most)s <= cap",
        lock=f"SELECT {columns(of, 'e', _MONEY)} FROM {table} e WHERE id = %(id)s FOR NO KEY UPDATE",  # noqa: S608
        settle=f"UPDATE {table} SET {assignments(of, _SETTLED)} WHERE id = %(id)s",  # noqa: S608
    )


def _locked(pk: int, of: type[Purse]) -> Purse:
    with planned_cursor() as cursor:
        cursor.execute(_statements(of).lock, {"id": pk})
        row = cursor.fetchone()
    if row is None:
        raise of.DoesNotExist
    found: Purse = instance(of, row, _MONEY)
    return found


def _pause(purse: Purse, why: str, actor: User | None) -> None:
    name = purse._meta.model_name
    purse.state, purse.problem = Experiment.State.PAUSED, why
    purse.save(update_fields=["state", "problem"])
    audit_record(actor=actor, study=purse.study, action=f"{name}_pause", target=purse, detail={"reason": why})
    log.warning(f"{name}_paused", pk=purse.pk, reason=why)


@transaction.atomic
def experiment_pause(*, experiment: Purse, actor: User | None) -> bool:
    """Send nothing more until somebody resumes. Calls in flight end and count. False where it is not running."""
    locked = _locked(experiment.pk, type(experiment))
    if locked.state != Experiment.State.RUNNING:
        return False
    _pause(locked, "person", actor)
    return True


@transaction.atomic
def cap_set(*, experiment: Purse, cap: Decimal, actor: User | None) -> None:
    """Another cap in the same currency. It does not resume by itself. Raises CapRefusedError."""
    locked = _locked(experiment.pk, type(experiment))
    if locked.cap is None:
        raise CapRefusedError("uncapped")
    if locked.state == Experiment.State.CANCELLED:
        raise CapRefusedError("ended")
    if not 0 < cap <= LARGEST:
        raise CapRefusedError("bounds")
    if cap < locked.spent + locked.reserved:
        raise CapRefusedError("low")
    before, locked.cap = locked.cap, cap
    locked.save(update_fields=["cap"])
    audit_record(
        actor=actor,
        study=locked.study,
        action="cap_set",
        target=locked,
        detail={"before": str(before), "after": str(cap), "currency": locked.currency},
    )
