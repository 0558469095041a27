"""Models, prompts and runs of a published dataset. Nothing is ever sent for them: their answers are there."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.utils import timezone

from corpus.models import Instrument, Respondent, Sitting
from llmruns.models import Experiment, ModelConfig, ModelJudge, Prompt, Provider, Run
from scoring.models import Judge, Rubric
from studies.models import Study, User
from studies.services import audit_record


@dataclass(frozen=True, slots=True)
class RestoredModel:
    label: str
    model: str
    temperature: float | None
    top_p: float | None
    max_output_tokens: int | None
    extra_body: dict[str, Any]
    accepts: list[str] | None


@dataclass(frozen=True, slots=True)
class RestoredRun:
    config: ModelConfig
    sitting: Sitting
    ordinal: int
    state: str


@transaction.atomic
def model_restore(*, study: Study, respondent: Respondent, given: RestoredModel) -> ModelConfig:
    """A configuration that no call can be made with: its replies were given elsewhere."""
    return ModelConfig.objects.create(
        study=study,
        respondent=respondent,
        label=given.label,
        provider=Provider.REPLAYED,
        base_url="",
        model=given.model,
        temperature=given.temperature,
        top_p=given.top_p,
        max_output_tokens=given.max_output_tokens,
        extra_body=given.extra_body,
        accepts=given.accepts,
    )


def prompt_restore(*, study: Study, slug: str, version: int, purpose: str, text: str) -> Prompt:
    """This very version. The study is new: nobody else takes it meanwhile."""
    return Prompt.objects.create(study=study, slug=slug, version=version, purpose=purpose, text=text)


@transaction.atomic
def model_judge_restore(*, config: ModelConfig, prompt: Prompt, rubric: Rubric) -> ModelJudge:
    """A model judge whose judgements are there. They were given elsewhere, so there is no judging and no call."""
    judge = Judge.objects.create(kind=Judge.Kind.MODEL)
    return ModelJudge.objects.create(judge=judge, config=config, prompt=prompt, rubric=rubric)


@transaction.atomic
def experiment_restore(
    *,
    study: Study,
    instrument: Instrument,
    prompt: Prompt,
    title: str,
    runs_planned: int,
    max_attempts: int,
    runs: Sequence[RestoredRun],
    actor: User | None,
) -> Experiment:
    """An experiment that is over, with its runs in the given order.

    A run that was waiting or going on where it comes from is cancelled here: nobody will finish it. An incomplete one
    stays incomplete, for it makes the majority undefined.
    """
    whole = all(run.state == Run.State.FINISHED for run in runs)
    experiment = Experiment.objects.create(
        study=study,
        instrument=instrument,
        prompt=prompt,
        title=title,
        runs_planned=runs_planned,
        max_attempts=max_attempts,
        state=Experiment.State.FINISHED if whole else Experiment.State.CANCELLED,
        imported=True,
        launched_by=actor,
        ended_at=timezone.now(),
    )
    kept = (Run.State.FINISHED, Run.State.INCOMPLETE)
    Run.objects.bulk_create(
        Run(
            experiment=experiment,
            config=run.config,
            sitting=run.sitting,
            ordinal=run.ordinal,
            state=run.state if run.state in kept else Run.State.CANCELLED,
        )
        for run in runs
    )
    detail = {"runs": len(runs), "title": title}
    audit_record(actor=actor, study=study, action="experiment_restore", target=experiment, detail=detail)
    return experiment
