"""The CSV file of a study's questionnaires."""

from collections.abc import Iterator, Sequence
from typing import Any

from django.db.models import QuerySet

from scoring.models import Rubric
from studies.models import Study
from surveys.models import QuestionResponse
from surveys.questionnaire import attention_passed

COLUMNS = (
    "study",
    "simulated",
    "survey",
    "respondent",
    "standing",
    "question",
    "place",
    "after_task",
    "kind",
    "text",
    "value",
    "attention_passed",
    "responded_at",
)


def responses_of(study: Study) -> QuerySet[QuestionResponse]:
    """Of people who have not withdrawn."""
    return QuestionResponse.objects.filter(
        question__survey__instrument__study=study, participant__withdrawn_at__isnull=True
    )


def response_rows(study: Study, rubric: Rubric) -> Iterator[Sequence[Any]]:
    """One row for each participant and question; several values are cut by semicolons. One query."""
    rows = (
        responses_of(study)
        .select_related("question__survey", "participant__respondent")
        .order_by("participant", "question__position")
        .prefetch_related("participant__respondent__sittings")
    )
    for response in rows.iterator(chunk_size=2_000):
        question, value = response.question, response.value
        sittings = response.participant.respondent.sittings.all()
        yield [
            study.slug,
            study.simulated,
            question.survey.slug,
            response.participant.respondent.public_id,
            sittings[0].standing if sittings else None,
            question.code,
            question.place,
            question.after_task,
            question.kind,
            question.text.get("ru") or question.text.get("en"),
            "; ".join(value) if isinstance(value, list) else value,
            attention_passed(question, value),
            response.at,
        ]
