from dataclasses import dataclass

from django.db.models import Count, Q, QuerySet

from corpus.models import Answer, Sitting, Stimulus
from studies.models import Study
from studies.services import secret_digest
from surveys.models import Survey


@dataclass(frozen=True)
class Progress:
    """Where a participant is in a sitting. Numbers count from 1, in the sitting's own order."""

    sitting: Sitting
    stimuli: list[Stimulus]
    answers: dict[int, Answer]  # by stimulus id

    @property
    def total(self) -> int:
        return len(self.stimuli)

    @property
    def next_number(self) -> int | None:
        """The first task without an answer; None when all have one."""
        for number, stimulus in enumerate(self.stimuli, start=1):
            if stimulus.pk not in self.answers:
                return number
        return None


def sitting_of(secret: str) -> Sitting | None:
    """The sitting behind a participant's address, with survey, instrument and study. One query."""
    return (
        Sitting.objects.filter(respondent__participant__digest=secret_digest(secret))
        .select_related("instrument__study", "respondent__participant__survey")
        .first()
    )


def progress_of(sitting: Sitting) -> Progress:
    """Two queries."""
    stimuli = {stimulus.pk: stimulus for stimulus in Stimulus.objects.filter(instrument_id=sitting.instrument_id)}
    answers = {answer.stimulus_id: answer for answer in Answer.objects.filter(sitting=sitting)}
    return Progress(sitting, [stimuli[pk] for pk in sitting.order], answers)


def surveys_of(study: Study) -> QuerySet[Survey]:
    """Surveys with `n_started`, `n_finished`, `n_left`, counted people only. One query."""
    sittings = "participants__respondent__sittings"
    counted = Q(**{f"{sittings}__standing": Sitting.Standing.COUNTED})
    return (
        Survey.objects.filter(instrument__study=study)
        .select_related("instrument", "consent_document")
        .annotate(
            n_started=Count(sittings, filter=counted),
            n_finished=Count(sittings, filter=counted & Q(**{f"{sittings}__state": Sitting.State.FINISHED})),
            n_left=Count(sittings, filter=counted & Q(**{f"{sittings}__state": Sitting.State.STOPPED})),
        )
        .order_by("pk")
    )
