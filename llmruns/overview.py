"""An experiment's page: sums over everything, and the rows of one page of its runs.

Every sum is made in the database, and only the runs that are shown become objects: 2,800 of them take seconds.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import Count, Q

from corpus.models import Answer
from llmruns.accounts import Account, Accounts, accounts_of, accounts_of_runs
from llmruns.models import Experiment, ModelConfig, Run
from llmruns.selectors import RunProgress, stimulus_groups
from llmruns.states import GOING, STUCK

RUNS_SHOWN = 100  # the paper's eighteen models with five runs each fit a page
NAMED = 20  # runs of a group that stands still that are named one by one


@dataclass(frozen=True)
class StuckGroup:
    """Runs of one model that stand still for one reason."""

    first: RunProgress
    ordinals: list[int]

    @property
    def named(self) -> list[int]:
        return self.ordinals[:NAMED]

    @property
    def more(self) -> int:
        return len(self.ordinals) - len(self.named)


@dataclass(frozen=True)
class Overview:
    configs: list[ModelConfig]
    accounts: Accounts
    page: Page[Run]
    rows: list[tuple[RunProgress, Account | None]]
    problems: list[StuckGroup]
    stimuli: int
    settled: int  # have an answer or the outcome that there is none
    waiting: int
    resumable: int
    unfinished: int  # runs
    going: int  # runs that wait or run

    @property
    def in_flight(self) -> int:
        return self.accounts.total.in_flight

    @property
    def lost(self) -> int:
        return self.accounts.total.lost

    @property
    def percent(self) -> int:
        return 100 * self.settled // self.stimuli if self.stimuli else 0


class _Counted(Paginator[Run]):
    """The number is known already."""

    def __init__(self, *arguments: Any, number: int) -> None:
        super().__init__(*arguments)
        self._number = number

    @property
    def count(self) -> int:
        return self._number


def experiment_overview(experiment: Experiment, number: Any) -> Overview:
    """Everything, and page `number` of the runs. Seven queries, one more where runs stand still."""
    configs = list(_configs(experiment))
    runs = experiment.runs.select_related("config").order_by("config__label", "ordinal")
    page = _Counted(runs, RUNS_SHOWN, number=sum(_of(configs, "runs_count"))).get_page(number)
    shown = list(page.object_list)
    accounts = accounts_of(experiment)
    by_run = accounts_of_runs(shown)
    rows = _rows(shown, by_run)
    groups = list(stimulus_groups(Q(run__experiment=experiment), by=("state",)))
    resumable = sum(_of(configs, "runs_stuck"))
    return Overview(
        configs=configs,
        accounts=accounts,
        page=page,
        rows=[(row, by_run.get(row.run.pk)) for row in rows],
        problems=_stuck(experiment) if resumable else [],
        stimuli=sum(group["number"] for group in groups),
        settled=sum(group["number"] for group in groups if group["state"] == "done"),
        waiting=sum(group["number"] for group in groups if group["waits"]),
        resumable=resumable,
        unfinished=sum(_of(configs, "runs_unfinished")),
        going=sum(_of(configs, "runs_going")),
    )


def _configs(experiment: Experiment) -> Iterable[ModelConfig]:
    return (
        ModelConfig.objects.filter(runs__experiment=experiment)
        .annotate(
            runs_count=Count("runs"),
            runs_stuck=Count("runs", filter=Q(runs__state__in=STUCK)),
            runs_going=Count("runs", filter=Q(runs__state__in=GOING)),
            runs_unfinished=Count("runs", filter=~Q(runs__state=Run.State.FINISHED)),
        )
        .order_by("label")
    )


def _of(configs: Iterable[ModelConfig], name: str) -> Iterable[int]:
    return (getattr(config, name) for config in configs)


def _rows(runs: list[Run], accounts: Mapping[int, Account]) -> list[RunProgress]:
    """Two queries."""
    rows = {run.pk: RunProgress(run) for run in runs}
    for group in stimulus_groups(Q(run__in=runs)):
        rows[group["run_id"]].add_stimuli(group)
    by_sitting = {run.sitting_id: rows[run.pk] for run in runs}
    none = Answer.objects.filter(sitting__in=list(by_sitting), outcome=Answer.Outcome.NO_VALID_REPLY)
    for sitting_id, found in none.values_list("sitting_id").annotate(number=Count("pk")):
        by_sitting[sitting_id].no_valid_reply = found
        by_sitting[sitting_id].answered -= found
    for pk, account in accounts.items():
        rows[pk].failures, rows[pk].lost = account.failures, account.lost
    return list(rows.values())


def _stuck(experiment: Experiment) -> list[StuckGroup]:
    groups: dict[tuple[Any, ...], StuckGroup] = {}
    runs = experiment.runs.filter(state__in=STUCK).select_related("config").order_by("config__label", "ordinal")
    for run in runs:
        key = (run.config_id, run.state, run.problem, run.reason)
        groups.setdefault(key, StuckGroup(RunProgress(run), [])).ordinals.append(run.ordinal)
    return list(groups.values())


def runs_like(experiment: Experiment, pk: int) -> list[int]:
    """The runs that stand still as that one does: of its model, for its reason. Two queries."""
    one = experiment.runs.filter(pk=pk, state__in=STUCK).first()
    if one is None:
        return []
    like = experiment.runs.filter(config=one.config_id, state=one.state, problem=one.problem, reason=one.reason)
    return list(like.values_list("pk", flat=True))
