"""Which work is worth a message now."""

from collections.abc import Collection
from datetime import timedelta

from django.db.models import Exists, OuterRef
from django.utils import timezone

from corpus.models import Sitting
from llmruns.limits import configs_under, limit_woken, messages_for
from llmruns.models import Call, Experiment, Judging, JudgingItem, ProviderLimit, Run, RunStimulus
from llmruns.queue import judgements_enqueue, stimuli_enqueue

Pairs = list[tuple[int, int]]


def due_stimuli(
    *,
    overdue: timedelta = timedelta(0),
    experiment_id: int | None = None,
    config_ids: Collection[int] | None = None,
    without: Collection[int] = (),
    at_most: int | None = None,
) -> Pairs:
    """(run, stimulus) to be asked now and not in flight, in the order of runs and positions. One query.

    `config_ids` narrows to these configurations, `without` leaves some out. Limits are not looked at.
    """
    items = RunStimulus.objects.filter(
        state=RunStimulus.State.TODO,
        due_at__lte=timezone.now() - overdue,
        run__state__in=[Run.State.PENDING, Run.State.RUNNING],
        run__experiment__state=Experiment.State.RUNNING,
        run__sitting__state=Sitting.State.OPEN,
    ).exclude(
        Exists(
            Call.objects.filter(run=OuterRef("run_id"), stimulus=OuterRef("stimulus_id"), state=Call.State.IN_FLIGHT)
        )
    )
    if experiment_id is not None:
        items = items.filter(run__experiment_id=experiment_id)
    if config_ids is not None:
        items = items.filter(run__config_id__in=config_ids)
    if without:
        items = items.exclude(run__config_id__in=without)
    ordered = items.order_by("run__ordinal", "run_id", "stimulus__position").values_list("run_id", "stimulus_id")
    return list(ordered if at_most is None else ordered[:at_most])


def due_judgements(
    *,
    overdue: timedelta = timedelta(0),
    judging_id: int | None = None,
    config_ids: Collection[int] | None = None,
    without: Collection[int] = (),
    at_most: int | None = None,
) -> Pairs:
    """(judging, answer) likewise, in the order of their making. An answer that shares another's text is not asked."""
    items = JudgingItem.objects.filter(
        state=JudgingItem.State.TODO,
        same_as__isnull=True,
        due_at__lte=timezone.now() - overdue,
        judging__state=Judging.State.RUNNING,
    ).exclude(
        Exists(
            Call.objects.filter(
                judging=OuterRef("judging_id"), answer=OuterRef("answer_id"), state=Call.State.IN_FLIGHT
            )
        )
    )
    if judging_id is not None:
        items = items.filter(judging=judging_id)
    if config_ids is not None:
        items = items.filter(judging__model_judge__config__in=config_ids)
    if without:
        items = items.exclude(judging__model_judge__config__in=without)
    ordered = items.order_by("pk").values_list("judging_id", "answer_id")
    return list(ordered if at_most is None else ordered[:at_most])


def work_due(*, overdue: timedelta = timedelta(0), experiment_id: int | None = None) -> Pairs:
    """The same, but of what stands under a limit no more than there is room for. Two queries, four more per limit."""
    found: Pairs = []
    limited: set[int] = set()
    for limit in ProviderLimit.objects.all():
        configs = set(configs_under(limit).values_list("pk", flat=True))
        limited |= configs
        if configs:
            room = messages_for(limit)
            found += due_stimuli(overdue=overdue, experiment_id=experiment_id, config_ids=configs, at_most=room)
    return due_stimuli(overdue=overdue, experiment_id=experiment_id, without=limited) + found


def judging_due(*, overdue: timedelta = timedelta(0), judging_id: int | None = None) -> Pairs:
    """As `work_due`, of what is to be judged."""
    found: Pairs = []
    limited: set[int] = set()
    for limit in ProviderLimit.objects.all():
        configs = set(configs_under(limit).values_list("pk", flat=True))
        limited |= configs
        if configs:
            room = messages_for(limit)
            found += due_judgements(overdue=overdue, judging_id=judging_id, config_ids=configs, at_most=room)
    return due_judgements(overdue=overdue, judging_id=judging_id, without=limited) + found


def limit_send(limit_id: int) -> None:
    """Send what the limit has room for, whatever experiment it is of. About five queries."""
    limit = ProviderLimit.objects.filter(pk=limit_id).first()
    if limit is not None:
        _send_under(limit)


def limit_wake(*, limit_id: int) -> None:
    """What the countdown of a limit per minute comes to."""
    limit = limit_woken(limit_id=limit_id)
    if limit is not None:
        _send_under(limit)


def _send_under(limit: ProviderLimit) -> None:
    room = messages_for(limit)
    if room:
        configs = list(configs_under(limit).values_list("pk", flat=True))
        stimuli = due_stimuli(config_ids=configs, at_most=room)
        stimuli_enqueue(stimuli)
        if len(stimuli) < room:
            judgements_enqueue(due_judgements(config_ids=configs, at_most=room - len(stimuli)))


def experiment_send(experiment_id: int, *, at_most: int) -> None:
    """Send some of an experiment's due calls: money has come back."""
    stimuli_enqueue(due_stimuli(experiment_id=experiment_id, at_most=at_most))


def judging_send(judging_id: int, *, at_most: int | None = None) -> None:
    """Likewise of a judging: it begins, goes on, or money has come back."""
    if at_most is None:
        judgements_enqueue(judging_due(judging_id=judging_id))
    else:
        judgements_enqueue(due_judgements(judging_id=judging_id, at_most=at_most))
