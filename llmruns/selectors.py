"""What the pages of models and experiments show."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Case, Count, Exists, Max, Min, OuterRef, Q, QuerySet, Subquery, Sum, Value, When
from django.db.models.fields import BooleanField
from django.utils import timezone

from corpus.models import Answer
from llmruns.catalogue import prices_of_today
from llmruns.credentials import key_of
from llmruns.keys import KeyMissingError, KeyNameRefusedError
from llmruns.models import Call, Credential, Experiment, ModelConfig, Price, ReplyImport, Run, RunStimulus
from llmruns.parameters import refused_parameters
from llmruns.states import RUN_COUNTS, STUCK
from llmruns.wording import kind_words, model_difference, remedy
from studies.models import Study


@dataclass(frozen=True)
class ConfigRow:
    config: ModelConfig
    key_is_set: bool
    runs: int
    trial: Call | None
    price: Price | None  # of today
    refused: list[str]  # asked for, and not sent because the model does not take them


def config_rows(study: Study) -> list[ConfigRow]:
    """The study's configurations with their last trial and the price of today. Three queries."""
    last = Call.objects.filter(config=OuterRef("pk"), purpose=Call.Purpose.TRIAL).order_by("-pk").values("pk")[:1]
    configs = list(
        ModelConfig.objects.filter(study=study)
        .select_related("credential")
        .annotate(runs_count=Count("runs"), trial_id=Subquery(last))
        .order_by("label")
    )
    trials = _light(Call.objects.filter(pk__in=[config.trial_id for config in configs if config.trial_id])).in_bulk()
    prices = prices_of_today(study)
    return [
        ConfigRow(
            config,
            key_is_set=_key_is_set(config),
            runs=config.runs_count,
            trial=trials.get(config.trial_id),
            price=prices.get((config.provider, config.model)),
            refused=refused_parameters(config),
        )
        for config in configs
    ]


def credential_rows(study: Study) -> QuerySet[Credential]:
    """The study's stored keys without what is stored, with how many configurations name each. One query."""
    rows = Credential.objects.filter(study=study).defer("ciphertext").select_related("created_by")
    return rows.annotate(configs_count=Count("model_configs")).order_by("retired_at", "name")


def _key_is_set(config: ModelConfig) -> bool:
    try:
        key_of(config)
    except (KeyMissingError, KeyNameRefusedError):
        return False
    return True


def _light(calls: QuerySet[Call]) -> QuerySet[Call]:
    """Without the columns that may hold megabytes."""
    return calls.defer("request", "response", "raw_body", "raw_reply")


def experiments_of(study: Study) -> QuerySet[Experiment]:
    """Newest first, with how many runs there are and how many have finished. One query."""
    return (
        Experiment.objects.filter(study=study)
        .select_related("instrument", "prompt")
        .annotate(
            **RUN_COUNTS,
            runs_stuck=Count("runs", filter=Q(runs__state__in=STUCK)),
            is_set_aside=Exists(ReplyImport.objects.filter(experiment=OuterRef("pk"), set_aside_at__isnull=False)),
        )
        .order_by("-pk")
    )


@dataclass
class RunProgress:
    run: Run
    stimuli: int = 0
    answered: int = 0  # a given answer
    no_valid_reply: int = 0
    given_up: int = 0
    attempts: int = 0
    failures: int = 0  # technical, since the launch
    lost: int = 0
    in_flight: int = 0
    waiting: int = 0  # for a limit or after a failure
    next_due: datetime | None = None
    waits_for: Counter[str] = field(default_factory=Counter)

    def add_stimuli(self, group: Mapping[str, Any]) -> None:
        self.stimuli += group["number"]
        self.attempts += group["attempts_sum"]
        if group["state"] == RunStimulus.State.DONE:
            self.answered += group["number"]
        elif group["state"] == RunStimulus.State.GIVEN_UP:
            self.given_up += group["number"]
        if group["waits"]:
            self.waiting += group["number"]
            self.waits_for[group["problem"]] += group["number"]
            self.next_due = min(self.next_due or group["next_due"], group["next_due"])

    @property
    def waiting_words(self) -> list[str]:
        return [kind_words(kind) for kind, _ in self.waits_for.most_common()]

    @property
    def problem_words(self) -> str:
        return kind_words(self.run.problem)

    @property
    def remedy(self) -> str:
        return remedy(self.run.problem)


@dataclass(frozen=True)
class Progress:
    runs: list[RunProgress]
    stimuli: int
    settled: int  # have an answer or the outcome that there is none
    attempts: int
    failures: int
    lost: int
    in_flight: int


def experiment_progress(experiment: Experiment) -> Progress:
    """How far each run is, all of them: for the API. Four queries, whatever the number of runs, stimuli and calls."""
    runs = experiment.runs.select_related("config").order_by("config__label", "ordinal")
    rows = {run.pk: RunProgress(run) for run in runs}
    for group in stimulus_groups(Q(run__experiment=experiment)):
        rows[group["run_id"]].add_stimuli(group)
    calls = Call.objects.filter(run__experiment=experiment).values("run_id", "state").annotate(number=Count("pk"))
    for group in calls:
        _add_calls(rows[group["run_id"]], group)
    by_sitting = {row.run.sitting_id: row for row in rows.values()}
    answers = Answer.objects.filter(sitting__run__experiment=experiment, outcome=Answer.Outcome.NO_VALID_REPLY)
    for group in answers.values("sitting_id").annotate(number=Count("pk")):
        by_sitting[group["sitting_id"]].no_valid_reply = group["number"]
    found = list(rows.values())
    for row in found:
        row.answered -= row.no_valid_reply
    return Progress(
        runs=found,
        stimuli=sum(row.stimuli for row in found),
        settled=sum(row.answered + row.no_valid_reply for row in found),
        attempts=sum(row.attempts for row in found),
        failures=sum(row.failures for row in found),
        lost=sum(row.lost for row in found),
        in_flight=sum(row.in_flight for row in found),
    )


def stimulus_groups(where: Q, by: tuple[str, ...] = ("run_id", "state", "problem")) -> Any:
    """Numbers of stimuli by these columns and by whether they wait. One query."""
    waits = Case(
        When(due_at__gt=timezone.now(), state=RunStimulus.State.TODO, then=Value(True)),
        default=Value(False),
        output_field=BooleanField(),
    )
    return (
        RunStimulus.objects.filter(where)
        .annotate(waits=waits)
        .values(*by, "waits")
        .annotate(number=Count("pk"), attempts_sum=Sum("attempts"), next_due=Min("due_at"))
    )


def _add_calls(row: RunProgress, group: Mapping[str, Any]) -> None:
    if group["state"] == Call.State.FAILED:
        row.failures += group["number"]
    elif group["state"] == Call.State.LOST:
        row.lost += group["number"]
    elif group["state"] == Call.State.IN_FLIGHT:
        row.in_flight += group["number"]


@dataclass(frozen=True)
class StimulusRow:
    item: RunStimulus
    answer: Answer | None
    failures: int
    lost: int
    in_flight: bool
    last_call: int | None
    waiting: bool

    @property
    def problem_words(self) -> str:
        return kind_words(self.item.problem) if self.item.problem else ""


def run_rows(run: Run) -> list[StimulusRow]:
    """The run's stimuli with what became of them. Three queries."""
    answers = {answer.stimulus_id: answer for answer in Answer.objects.filter(sitting_id=run.sitting_id)}
    calls: dict[int | None, Any] = {
        row["stimulus_id"]: row
        for row in Call.objects.filter(run=run)
        .values("stimulus_id")
        .annotate(
            failures=Count("pk", filter=Q(state=Call.State.FAILED)),
            lost=Count("pk", filter=Q(state=Call.State.LOST)),
            in_flight=Count("pk", filter=Q(state=Call.State.IN_FLIGHT)),
            last=Max("pk"),
        )
    }
    none: dict[str, Any] = {"failures": 0, "lost": 0, "in_flight": 0, "last": None}
    now = timezone.now()
    rows = []
    for item in run.run_stimuli.select_related("stimulus").order_by("stimulus__position"):
        of_item = calls.get(item.stimulus_id, none)
        rows.append(
            StimulusRow(
                item=item,
                answer=answers.get(item.stimulus_id),
                failures=of_item["failures"],
                lost=of_item["lost"],
                in_flight=bool(of_item["in_flight"]),
                last_call=of_item["last"],
                waiting=item.state == RunStimulus.State.TODO and item.due_at > now,
            )
        )
    return rows


@dataclass(frozen=True)
class Reported:
    """Which model says that it has answered, beside the one asked for."""

    name: str
    difference: str


def reported_models(experiment: Experiment) -> dict[int, list[Reported]]:
    """Per configuration, the names under which models answered, where they are not the name asked for. One query."""
    found: dict[int, list[Reported]] = {}
    names = (
        Call.objects.filter(run__experiment=experiment)
        .exclude(model_reported="")
        .values_list("config_id", "config__model", "model_reported")
        .distinct()
        .order_by("config_id", "model_reported")[:200]
    )
    for config_id, asked, reported in names:
        difference = model_difference(asked, reported)
        if difference != "same":
            found.setdefault(config_id, []).append(Reported(reported, difference))
    return found
