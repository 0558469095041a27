import pytest
from django.db import IntegrityError, transaction

from corpus.models import Answer, Instrument, Respondent, Sitting, Stimulus
from corpus.services import (
    AnswerEmptyError,
    SittingClosedError,
    SittingUnansweredError,
    StimulusNotInSittingError,
    answer_record,
    sitting_finish,
    sitting_start,
    sitting_stop,
)
from tests.conftest import Cast


@pytest.fixture
def sitting(cast: Cast, instrument: Instrument) -> Sitting:
    respondent = Respondent.objects.create(study=cast.study, kind="human")
    return sitting_start(respondent=respondent, instrument=instrument, source_label="test")


def test_a_sitting_has_the_instruments_order_and_next_ordinal(sitting: Sitting) -> None:
    assert sitting.order == list(Stimulus.objects.order_by("position").values_list("pk", flat=True))
    again = sitting_start(respondent=sitting.respondent, instrument=sitting.instrument, source_label="test")
    assert (sitting.ordinal, again.ordinal) == (1, 2)


def test_the_same_answer_twice_is_one_answer_without_history(sitting: Sitting) -> None:
    for expected in (True, False):
        recorded = answer_record(
            sitting_id=sitting.pk, stimulus_id=sitting.order[0], outcome="given", text="раз", seen_revision=0
        )
        assert recorded.changed is expected
    assert Answer.objects.get().revision == 1 and not Answer.objects.get().revisions.exists()


def test_a_changed_answer_keeps_what_it_was(sitting: Sitting) -> None:
    for text in ("раз", "два", "три"):
        answer_record(sitting_id=sitting.pk, stimulus_id=sitting.order[0], outcome="given", text=text)
    answer = Answer.objects.get()
    assert answer.text == "три"
    assert list(answer.revisions.order_by("number").values_list("number", "text")) == [(1, "раз"), (2, "два")]


def test_only_open_sittings_and_their_own_stimuli_take_answers(sitting: Sitting) -> None:
    with pytest.raises(StimulusNotInSittingError):
        answer_record(sitting_id=sitting.pk, stimulus_id=10**9, outcome="given", text="x")
    with pytest.raises(AnswerEmptyError):
        answer_record(sitting_id=sitting.pk, stimulus_id=sitting.order[0], outcome="given", text="\u3000\n")
    with pytest.raises(SittingUnansweredError):
        sitting_finish(sitting_id=sitting.pk)
    sitting_stop(sitting_id=sitting.pk, reason="technical")
    with pytest.raises(SittingClosedError):
        answer_record(sitting_id=sitting.pk, stimulus_id=sitting.order[0], outcome="given", text="x")
    with pytest.raises(SittingClosedError):
        sitting_finish(sitting_id=sitting.pk)


def test_finishing_twice_is_finishing_once(sitting: Sitting) -> None:
    for pk in sitting.order:
        answer_record(sitting_id=sitting.pk, stimulus_id=pk, outcome="declined", text="ignored")
    first = sitting_finish(sitting_id=sitting.pk).finished_at
    assert first is not None and sitting_finish(sitting_id=sitting.pk).finished_at == first
    assert set(Answer.objects.values_list("text", flat=True)) == {""}


@pytest.mark.parametrize("change", ["instrument", "stimulus", "new stimulus", "delete"])
def test_an_instrument_that_was_sat_is_frozen(sitting: Sitting, change: str) -> None:
    stimulus = Stimulus.objects.first()
    assert stimulus
    with pytest.raises(IntegrityError, match="frozen"), transaction.atomic():
        match change:
            case "instrument":
                Instrument.objects.update(title="other")
            case "stimulus":
                Stimulus.objects.filter(pk=stimulus.pk).update(text="other")
            case "new stimulus":
                Stimulus.objects.create(
                    instrument=sitting.instrument, position=9, text="a", original="a", complexity="easy", shuffled=False
                )
            case "delete":
                Stimulus.objects.filter(pk=stimulus.pk).delete()


def test_an_instrument_nobody_has_sat_may_change(instrument: Instrument) -> None:
    assert Instrument.objects.update(title="other") == 1
    assert Stimulus.objects.update(source="treebank") == 3


def test_the_database_holds_the_invariants(sitting: Sitting) -> None:
    answer_record(sitting_id=sitting.pk, stimulus_id=sitting.order[0], outcome="given", text="раз")
    for constraint, write in {
        "answer_one_per_sitting_stimulus": lambda: Answer.objects.create(
            sitting=sitting, stimulus_id=sitting.order[0], outcome="given", text="два"
        ),
        "answer_text_only_when_given": lambda: Answer.objects.create(
            sitting=sitting, stimulus_id=sitting.order[1], outcome="declined", text="text"
        ),
        "sitting_finished_has_time": lambda: Sitting.objects.update(state="finished"),
        "sitting_known_standing": lambda: Sitting.objects.update(standing="lost"),
    }.items():
        with pytest.raises(IntegrityError, match=constraint), transaction.atomic():
            write()
