"""What an experiment has cost so far, how well its models keep the format, and whether they repeat themselves."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from django.db.models import Count, Q, QuerySet, Sum

from corpus.models import Instrument, Sitting
from llmruns.models import Call, Experiment, Judging, ModelConfig, Provider, Run
from llmruns.pricing import UNCERTAIN

# The alarm for identical repeats: so many stimuli must be comparable, and so large a share of them identical.
COMPARABLE_STIMULI = 5
IDENTICAL_SHARE = 0.9


@dataclass
class Money:
    """Sums of one currency. `known` is what calls cost; `possible` what others may have cost at the very most."""

    currency: str
    known: Decimal = Decimal(0)
    possible: Decimal = Decimal(0)  # lost, or replies without a count of tokens: possibly billed
    in_flight: Decimal = Decimal(0)  # reserved


@dataclass
class Account:
    """Of a run, a model or an experiment, over all attempts and failures."""

    money: dict[str, Money] = field(default_factory=dict)
    unpriced: int = 0  # calls that may have cost something, and no price says how much
    unknown: int = 0  # calls with a price that may have cost something, and nobody can say even at most how much
    simulated: int = 0  # sent nowhere: they cost nothing
    replies: int = 0  # completed ones, which providers bill
    perhaps: int = 0  # calls without a reply that may have been billed all the same
    first: int = 0  # first attempts
    first_valid: int = 0  # of them in the required format
    in_flight: int = 0  # calls, as below
    failures: int = 0  # technical
    lost: int = 0

    @property
    def sums(self) -> list[Money]:
        return [self.money[currency] for currency in sorted(self.money)]

    @property
    def first_percent(self) -> float | None:
        """None before the first reply."""
        return 100 * self.first_valid / self.first if self.first else None

    def add(self, group: Mapping[str, Any]) -> None:
        self.unpriced += group["unpriced"]
        self.unknown += group["unknown"]
        self.simulated += group["simulated"]
        self.replies += group["replies"]
        self.perhaps += group["perhaps"]
        self.first += group["first"]
        self.first_valid += group["first_valid"]
        self.in_flight += group["calls_in_flight"]
        self.failures += group["calls_failed"]
        self.lost += group["calls_lost"]
        if group["currency"]:
            money = self.money.setdefault(group["currency"], Money(group["currency"]))
            money.known += group["known"] or 0
            money.possible += group["possible"] or 0
            money.in_flight += group["in_flight"] or 0


@dataclass
class Accounts:
    total: Account = field(default_factory=Account)
    by_config: dict[int, Account] = field(default_factory=dict)


_SILENT = Q(cost=None) & ~Q(state=Call.State.IN_FLIGHT)
# A failure that the provider answered with an error is not billed, whether or not there is a price.
_COMPLETED = Q(state__in=[Call.State.OK, Call.State.BAD_REPLY, Call.State.SURPLUS])
_LOST = Q(state=Call.State.LOST)
_SIMULATED = Q(config__provider=Provider.SIMULATED)
# As pricing.failure_may_be_billed has it.
_PERHAPS = Q(state=Call.State.FAILED, sent=True, kind__in=UNCERTAIN) & ~Q(http_status__gte=300)
_UNKNOWN = _SILENT & (_COMPLETED | _LOST | _PERHAPS) & Q(reserved=None) & ~_SIMULATED


def judging_account(judging: Judging) -> Account:
    """What a judging has cost. One query."""
    found = Account()
    for group in _groups(Call.objects.filter(judging=judging)):
        found.add(group)
    return found


def accounts_of(experiment: Experiment) -> Accounts:
    """Sums per model and over all, currencies apart. One query."""
    found = Accounts()
    for group in _groups(Call.objects.filter(run__experiment=experiment), "config_id"):
        found.total.add(group)
        found.by_config.setdefault(group["config_id"], Account()).add(group)
    return found


def accounts_of_runs(runs: Sequence[Run]) -> dict[int, Account]:
    """The same per run, for some of an experiment's. One query."""
    found: dict[int, Account] = {}
    for group in _groups(Call.objects.filter(run__in=runs), "run_id"):
        found.setdefault(group["run_id"], Account()).add(group)
    return found


def instrument_accounts(instrument: Instrument) -> dict[tuple[int, int], Account]:
    """By configuration and experiment, of the runs that count. One query."""
    counted = Call.objects.filter(
        run__experiment__instrument=instrument, run__sitting__standing=Sitting.Standing.COUNTED
    )
    found: dict[tuple[int, int], Account] = {}
    for group in _groups(counted, "config_id", "run__experiment_id"):
        found.setdefault((group["config_id"], group["run__experiment_id"]), Account()).add(group)
    return found


def _groups(calls: QuerySet[Call], *by: str) -> Iterable[Mapping[str, Any]]:
    return (
        calls.order_by()
        .values(*by, "currency")
        .annotate(
            known=Sum("cost"),
            possible=Sum("reserved", filter=_SILENT),
            in_flight=Sum("reserved", filter=Q(state=Call.State.IN_FLIGHT)),
            unpriced=Count("pk", filter=_UNKNOWN & Q(price=None)),
            unknown=Count("pk", filter=_UNKNOWN & Q(price__isnull=False)),
            simulated=Count("pk", filter=_SIMULATED),
            replies=Count("pk", filter=_COMPLETED),
            perhaps=Count("pk", filter=_SILENT & ~_COMPLETED & (_LOST | _PERHAPS | Q(reserved__isnull=False))),
            first=Count("pk", filter=Q(attempt=1)),
            first_valid=Count("pk", filter=Q(attempt=1, state=Call.State.OK)),
            calls_in_flight=Count("pk", filter=Q(state=Call.State.IN_FLIGHT)),
            calls_failed=Count("pk", filter=Q(state=Call.State.FAILED)),
            calls_lost=Count("pk", filter=Q(state=Call.State.LOST)),
        )
    )


@dataclass(frozen=True)
class Repetition:
    """How many stimuli have valid replies in several runs of a model, and in how many these are one text."""

    config_id: int
    compared: int
    identical: int

    @property
    def is_suspicious(self) -> bool:
        return self.compared >= COMPARABLE_STIMULI and self.identical >= IDENTICAL_SHARE * self.compared


def repetitions_of(experiment: Experiment) -> dict[int, Repetition]:
    """Per configuration. Compared are whole replies, byte for byte, of the stimuli that two runs or more answered.

    One query. Nothing is changed by what it finds: a model that is sure of itself may well repeat itself.
    """
    groups = (
        Call.objects.filter(run__experiment=experiment, state=Call.State.OK)
        .values("config_id", "stimulus_id")
        .annotate(replies=Count("pk"), texts=Count("raw_reply", distinct=True))
        .filter(replies__gt=1)
    )
    found: dict[int, list[bool]] = {}
    for group in groups:
        found.setdefault(group["config_id"], []).append(group["texts"] == 1)
    return {config: Repetition(config, len(same), sum(same)) for config, same in found.items()}


@dataclass(frozen=True)
class ModelRow:
    config: ModelConfig
    account: Account
    repetition: Repetition | None


def model_rows(
    configs: Iterable[ModelConfig], accounts: Accounts, repetitions: dict[int, Repetition]
) -> list[ModelRow]:
    return [
        ModelRow(config, accounts.by_config.get(config.pk, Account()), repetitions.get(config.pk)) for config in configs
    ]
