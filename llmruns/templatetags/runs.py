from django import template

from llmruns import states
from llmruns.models import Experiment, Run

register = template.Library()


@register.filter
def experiment_state(experiment: Experiment) -> str:
    """Of one annotated with states.RUN_COUNTS."""
    counts = {name: getattr(experiment, f"runs_{name}") for name in ("going", "paused", "incomplete")}
    return states.experiment_words(experiment.state, **counts)


@register.filter
def run_state(run: Run, experiment: Experiment) -> str:
    return states.run_words(run.state, experiment.state)
