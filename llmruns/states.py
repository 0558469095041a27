"""The states of experiments and runs in words that are true of what lies below and above them.

An experiment ends when its runs have ended, incomplete ones among them, and a run knows nothing of its experiment's
pause: what stands in the two columns is what the workers need, and each by itself says too much to a reader.
"""

from typing import Any

from django.db.models import Count, Q
from django.utils.translation import gettext as _

from llmruns.models import Experiment, Run

GOING = [Run.State.PENDING, Run.State.RUNNING]
STUCK = [Run.State.PAUSED, Run.State.INCOMPLETE]

# To annotate experiments with; `experiment_words` reads them.
RUN_COUNTS: dict[str, Any] = {
    "runs_count": Count("runs"),
    "runs_going": Count("runs", filter=Q(runs__state__in=GOING)),
    "runs_finished": Count("runs", filter=Q(runs__state=Run.State.FINISHED)),
    "runs_paused": Count("runs", filter=Q(runs__state=Run.State.PAUSED)),
    "runs_incomplete": Count("runs", filter=Q(runs__state=Run.State.INCOMPLETE)),
}


def experiment_words(state: str, *, going: int, paused: int, incomplete: int) -> str:
    """What an experiment is, with so many runs under way, paused and incomplete."""
    if state == Experiment.State.FINISHED and incomplete:
        return str(Run.State.INCOMPLETE.label)
    if state == Experiment.State.RUNNING and paused and not going:
        return _("stands still")
    return str(Experiment.State(state).label)


def run_words(state: str, experiment_state: str) -> str:
    """What a run is: under way is none whose experiment is paused."""
    if state in GOING and experiment_state == Experiment.State.PAUSED:
        return _("paused with the experiment")
    return str(Run.State(state).label)
