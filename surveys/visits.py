"""Where a participant is: read in one query on every page of theirs, beside what is the same for all of a survey.

These pages are the busiest of Luria, so the query is written out: the object mapper took four queries and five times
the processor's time for the same rows (docs/benchmarks.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from threading import Lock
from typing import Any

from django.db.models import Exists, OuterRef

from corpus.models import Instrument, Sitting, Stimulus
from studies.database import parsed, planned_cursor
from studies.models import Study
from studies.services import secret_digest
from surveys.models import Question, Survey

MAX_SURVEYS_KEPT = 100


@dataclass(frozen=True)
class Facts:
    """What a survey shows to everybody. Kept by each process until the survey's revision changes; never written to."""

    survey: Survey
    stimuli: dict[int, Stimulus]  # by id, in their order, without practice
    practice: list[Stimulus]
    questions: list[Question]

    @property
    def instrument(self) -> Instrument:
        return self.survey.instrument

    @property
    def study(self) -> Study:
        return self.survey.instrument.study

    def questions_at(self, place: str, after_task: int | None = None) -> list[Question]:
        return [one for one in self.questions if one.place == place and one.after_task == after_task]


_facts: dict[int, Facts] = {}
_facts_lock = Lock()


def facts_of(survey_id: int, revision: int) -> Facts:
    """Two queries the first time in a process and after a change (three where there are questions), else none.

    A draft's facts are read each time; once the instrument is frozen, as by the first sitting, nothing of it changes.
    """
    known = _facts.get(survey_id)
    if known is not None and known.survey.revision == revision:
        return known
    surveys = Survey.objects.select_related(
        "instrument__study", "consent_document", "publication_document", "third_party_document"
    )
    asks = Exists(Question.objects.filter(survey=OuterRef("pk")))
    survey = surveys.annotate(asks=asks).get(pk=survey_id)
    stimuli = list(Stimulus.objects.filter(instrument_id=survey.instrument_id).order_by("position"))
    facts = Facts(
        survey=survey,
        stimuli={stimulus.pk: stimulus for stimulus in stimuli if not stimulus.is_practice},
        practice=[stimulus for stimulus in stimuli if stimulus.is_practice],
        questions=list(Question.objects.filter(survey=survey)) if survey.asks else [],
    )
    is_frozen = survey.instrument.state == Instrument.State.FROZEN
    if is_frozen and survey.revision == revision:  # else it is changing at this moment: the next page reads it again
        with _facts_lock:
            if len(_facts) >= MAX_SURVEYS_KEPT:
                _facts.clear()
            _facts[survey_id] = facts
    return facts


def facts_by_slug(slug: str) -> Facts | None:
    """The survey behind a public link, as it is now. One query, and those of `facts_of`."""
    with planned_cursor() as cursor:
        cursor.execute("SELECT id, revision FROM surveys_survey WHERE slug = %s", [slug])
        row = cursor.fetchone()
    return facts_of(*row) if row else None


@dataclass(frozen=True)
class Given:
    """An answer as its task page needs it."""

    outcome: str
    text: str
    revision: int


@dataclass(frozen=True)
class Visit:
    """A participant's place in their sitting. Task numbers count from 1, in the sitting's own order."""

    secret: str
    participant_id: int
    respondent_id: int
    sitting_id: int
    state: str
    order: Sequence[int]  # stimulus ids
    answers: dict[int, Given]  # by stimulus id
    responded: frozenset[int]  # question ids, left out or not
    seen_at: datetime  # of the last page or answer that is on record
    now: datetime  # by the database's clock
    external_id: str
    visit_id: str
    own_code: str
    screened_out: bool
    withdrawn: bool
    facts: Facts

    @property
    def is_open(self) -> bool:
        return self.state == Sitting.State.OPEN

    @property
    def is_finished(self) -> bool:
        return self.state == Sitting.State.FINISHED

    @property
    def survey(self) -> Survey:
        return self.facts.survey

    @property
    def total(self) -> int:
        return len(self.order)

    @cached_property
    def next_number(self) -> int | None:
        """The first task without an answer; None when all have one."""
        for number, stimulus_id in enumerate(self.order, start=1):
            if stimulus_id not in self.answers:
                return number
        return None

    def stimulus(self, number: int) -> Stimulus:
        return self.facts.stimuli[self.order[number - 1]]

    def given(self, number: int) -> Given | None:
        return self.answers.get(self.order[number - 1])

    def unanswered(self, questions: Sequence[Question]) -> bool:
        return any(question.pk not in self.responded for question in questions)

    @property
    def was_away(self) -> bool:
        """Whether the pause before this page was so long that the instruction is worth reading again."""
        gap = self.survey.gap_minutes
        return gap is not None and bool(self.answers) and self.now - self.seen_at > timedelta(minutes=gap)


COLUMNS = """
SELECT participant.id, participant.respondent_id, sitting.id, sitting.state, sitting."order",
    (SELECT jsonb_agg(jsonb_build_array(answer.stimulus_id, answer.outcome, answer.text, answer.revision))
     FROM corpus_answer AS answer WHERE answer.sitting_id = sitting.id),
    (SELECT jsonb_agg(response.question_id) FROM surveys_questionresponse AS response
     WHERE response.participant_id = participant.id),
    GREATEST(sitting.started_at, (SELECT max(GREATEST(onset_at, submitted_at)) FROM surveys_exposure AS exposure
     WHERE exposure.sitting_id = sitting.id)),
    clock_timestamp(), participant.external_id, participant.visit_id, participant.completion_code,
    participant.screened_out_at IS NOT NULL, participant.withdrawn_at IS NOT NULL, survey.id, survey.revision
FROM surveys_participant AS participant
JOIN corpus_sitting AS sitting ON sitting.respondent_id = participant.respondent_id
JOIN surveys_survey AS survey ON survey.id = participant.survey_id
WHERE participant.digest = %s
"""


def visit_of(secret: str) -> Visit | None:
    """The visit behind a participant's address. One query; three more when a process meets the survey first."""
    with planned_cursor() as cursor:
        cursor.execute(COLUMNS, [secret_digest(secret)])
        row: Any = cursor.fetchone()
    if row is None:
        return None
    return Visit(
        secret=secret,
        participant_id=row[0],
        respondent_id=row[1],
        sitting_id=row[2],
        state=row[3],
        order=parsed(row[4]),
        answers={
            stimulus_id: Given(outcome, text, revision) for stimulus_id, outcome, text, revision in parsed(row[5]) or ()
        },
        responded=frozenset(parsed(row[6]) or ()),
        seen_at=row[7],
        now=row[8],
        external_id=row[9],
        visit_id=row[10],
        own_code=row[11],
        screened_out=row[12],
        withdrawn=row[13],
        facts=facts_of(row[14], row[15]),
    )


def visit_again(visit: Visit) -> Visit:
    """The same visit as it is now."""
    again = visit_of(visit.secret)
    if again is None:
        raise LookupError("participants are not deleted")
    return again
