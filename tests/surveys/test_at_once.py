from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection

from corpus.models import Answer, Sitting
from corpus.services import instrument_create
from surveys.models import Exposure, Participant, Survey
from surveys.services import survey_create, survey_set_state
from tests.conftest import Cast
from tests.surveys.conftest import Visitor

PEOPLE = 50


@pytest.mark.django_db(transaction=True)
def test_50_people_at_once_each_answer_posted_twice(cast: Cast, stimuli_18) -> None:
    instrument = instrument_create(
        study=cast.study, slug="full", title="Full", language="ru", instruction="…", stimuli=stimuli_18, actor=None
    )
    survey = survey_create(instrument=instrument, title="S", contact="c", consent_text="t", actor=None)
    survey_set_state(survey=survey, state="open", actor=None)
    survey = Survey.objects.get()
    barriers = [Barrier(2, timeout=60) for _ in range(PEOPLE)]
    visitors = [Visitor(survey) for _ in range(PEOPLE)]

    def start(person: int) -> None:
        visitors[person].start()
        connection.close()

    def half(person: int) -> list[int]:
        """One of two clicks that arrive at the same moment, task after task."""
        twin = Visitor(survey)
        twin.address = visitors[person].address
        codes = []
        for number in range(1, 19):
            barriers[person].wait()
            codes.append(twin.answer(number, f"ответ {number} участника {person}", seen="0").status_code)
            barriers[person].wait()
        connection.close()
        return codes

    with ThreadPoolExecutor(2 * PEOPLE) as pool:
        list(pool.map(start, range(PEOPLE)))
        codes = [code for codes in pool.map(half, [p for p in range(PEOPLE) for _ in (1, 2)]) for code in codes]

    assert codes == [302] * (PEOPLE * 18 * 2)
    assert Participant.objects.count() == Sitting.objects.filter(state="finished").count() == PEOPLE
    assert Answer.objects.count() == Exposure.objects.filter(submitted_at__isnull=False).count() == PEOPLE * 18
    assert Answer.objects.filter(revision=1).count() == PEOPLE * 18
    for person, visitor in enumerate(visitors):
        assert visitor.texts() == {n: f"ответ {n} участника {person}" for n in range(1, 19)}
