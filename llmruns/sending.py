"""Which work is worth a message now."""

from collections.abc import Callable, Collection
from datetime import timedelta

from django.db.models import Exists, OuterRef
from django.utils import timezone

from corpus.models import Sitting
from llmruns.budget import MOST_SENT, money_awaited_no_more
from llmruns.limits import configs_under, limit_woken, messages_for
from llmruns.models import Call, Experiment, Judging, JudgingItem, ProviderLimit, Run, RunStimulus
from llmruns.queue import judgements_enqueue, stimuli_enqueue

Pairs = list[tuple[int, int]]
WINDOW = 64  # where nothing says how many calls are in flight together


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


def limit_send(limit_id: int, *, call_id: int, after_judgement: bool) -> None:
    """What whoever has finished a call of the limit sends: MOST_SENT messages at most. Six queries at most.

    Of what is due, the other kind is looked for first, so that judgements and stimuli take turns.
    """
    limit = ProviderLimit.objects.filter(pk=limit_id).first()
    if limit is None:
        return
    room = min(MOST_SENT, messages_for(limit))
    if not room:
        return
    configs = list(configs_under(limit).values_list("pk", flat=True))
    first = MOST_SENT * (limit.parallel or WINDOW)
    kinds: list[tuple[Callable[..., Pairs], Callable[[Pairs], None]]] = [
        (due_judgements, judgements_enqueue),
        (due_stimuli, stimuli_enqueue),
    ]
    for due, enqueue in reversed(kinds) if after_judgement else kinds:
        found = _own_share(due(config_ids=configs, at_most=first), call_id, room)
        if found:
            enqueue(found)
        room -= len(found)
        if not room:
            return


def _own_share(due: Pairs, call_id: int, at_most: int) -> Pairs:
    """Some of the due ones, others for each finisher: many that finish at once must not all send the first ones.

    Calls that are in flight together have numbers near each other.
    """
    number = min(at_most, len(due))
    return [due[(MOST_SENT * call_id + place) % len(due)] for place in range(number)]


def limit_wake(*, limit_id: int) -> None:
    """What the countdown of a limit per minute comes to: all that there is room for, of each kind a half.

    The kind that was not asked last goes first: of a limit of one a minute the other would never have its turn.
    """
    limit = limit_woken(limit_id=limit_id)
    room = 0 if limit is None else messages_for(limit)
    if limit is None or not room:
        return
    configs = list(configs_under(limit).values_list("pk", flat=True))
    stimuli = due_stimuli(config_ids=configs, at_most=room)
    judgements = due_judgements(config_ids=configs, at_most=max(room - len(stimuli), room // 2))
    del stimuli[room - len(judgements) :]
    last = Call.objects.filter(config__in=configs).order_by("-sent_at").values_list("purpose", flat=True).first()
    if last != Call.Purpose.JUDGE:
        judgements_enqueue(judgements)
        stimuli_enqueue(stimuli)
    else:
        stimuli_enqueue(stimuli)
        judgements_enqueue(judgements)


def experiment_send(experiment_id: int, *, at_most: int, call_id: int) -> None:
    """Send some of an experiment's due calls: money has come back by the end of this call."""
    found = _own_share(due_stimuli(experiment_id=experiment_id, at_most=MOST_SENT * WINDOW), call_id, at_most)
    if found:
        stimuli_enqueue(found)
    else:
        money_awaited_no_more(experiment_id=experiment_id)


def judging_continue(judging_id: int, *, at_most: int, call_id: int) -> None:
    """Likewise of a judging."""
    found = _own_share(due_judgements(judging_id=judging_id, at_most=MOST_SENT * WINDOW), call_id, at_most)
    if found:
        judgements_enqueue(found)
    else:
        money_awaited_no_more(experiment_id=judging_id, of=Judging)


def judging_send(judging_id: int) -> None:
    """Send what is due of a judging and has room under its limits: it begins, or goes on."""
    judgements_enqueue(judging_due(judging_id=judging_id))
