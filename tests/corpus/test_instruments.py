"""Editing drafts: what is stored, what is refused, and that nothing half-done remains."""

from dataclasses import replace

import pytest
from django.db import transaction

from corpus.builtin import builtin_instrument_create, children_instrument_create, instruction_examples
from corpus.checks import finding_text, problems_of, warnings_of
from corpus.importing import ALL_COLUMNS, StimulusRow, read_stimuli, stimuli_csv, stimulus_rows
from corpus.instruments import (
    InstrumentChangedError,
    InstrumentFrozenError,
    InstrumentUsedError,
    instrument_copy,
    instrument_delete,
    instrument_update,
    practice_add,
    stimuli_replace,
    stimulus_add,
    stimulus_delete,
    stimulus_move,
    stimulus_update,
)
from corpus.models import Instrument, Respondent, Sitting, Stimulus
from corpus.services import (
    InstrumentIncompleteError,
    VersionTakenError,
    instrument_create,
    instrument_freeze,
    sitting_start,
)
from studies.models import AuditEntry
from tests.conftest import Cast

ROW = StimulusRow(0, "лодка плыть по река", "лодка плывет по реке", "easy", False)


def words(instrument: Instrument, practice: bool = False) -> list[tuple[int, str]]:
    rows = instrument.stimuli.filter(is_practice=practice).order_by("position")
    return [(one.position, one.text.split()[0]) for one in rows]


def revision(instrument: Instrument) -> int:
    instrument.refresh_from_db()
    return instrument.revision


def test_a_draft_is_added_to_moved_and_closed_up(cast: Cast, instrument: Instrument) -> None:
    def seen() -> dict:
        return {"instrument": instrument, "seen": revision(instrument), "actor": cast.alice}

    stimulus_add(row=replace(ROW, is_practice=True, text="заяц бежать"), **seen())
    added = stimulus_add(row=ROW, **seen())
    # real ones first, practice after them, whatever the order of adding
    assert words(instrument) == [(1, "кошка"), (2, "."), (3, "дети"), (4, "лодка")]
    assert words(instrument, practice=True) == [(5, "заяц")]
    stimulus_move(stimulus_id=added.pk, to=1, **seen())
    assert words(instrument) == [(1, "лодка"), (2, "кошка"), (3, "."), (4, "дети")]
    assert stimulus_move(stimulus_id=added.pk, to=0, **seen()) is False  # it is the first already
    stimulus_move(stimulus_id=added.pk, to=99, **seen())
    assert words(instrument)[-1] == (4, "лодка")
    stimulus_delete(stimulus_id=instrument.stimuli.get(position=2).pk, **seen())
    assert words(instrument) == [(1, "кошка"), (2, "дети"), (3, "лодка")]
    assert words(instrument, practice=True) == [(4, "заяц")]
    # a real task that becomes practice goes behind the real ones
    stimulus_update(stimulus_id=instrument.stimuli.get(position=1).pk, row=replace(ROW, is_practice=True), **seen())
    assert [position for position, _ in words(instrument)] == [1, 2]
    assert [position for position, _ in words(instrument, practice=True)] == [3, 4]
    actions = AuditEntry.objects.filter(target=f"Instrument {instrument.pk}").values_list("action", flat=True)
    assert list(actions.order_by("pk"))[1:] == [
        "stimulus_add", "stimulus_add", "stimulus_move", "stimulus_move", "stimulus_delete", "stimulus_update",
    ]  # fmt: skip


def test_an_edit_from_an_outdated_page_is_refused_and_writes_nothing(cast: Cast, instrument: Instrument) -> None:
    seen = instrument.revision
    stimulus_add(instrument=instrument, seen=seen, row=ROW, actor=cast.alice)
    before = stimuli_csv(stimulus_rows(instrument.stimuli.all())), AuditEntry.objects.count()
    first = instrument.stimuli.get(position=1).pk
    stale = {"instrument": instrument, "seen": seen, "actor": cast.alice}
    fields = {"title": "x", "language": "ru", "instruction": "x", "refusal_below": 3, "lower_case": True}
    for edit in (
        lambda: stimulus_add(row=ROW, **stale),
        lambda: stimulus_update(stimulus_id=first, row=ROW, **stale),
        lambda: stimulus_move(stimulus_id=first, to=2, **stale),
        lambda: stimulus_delete(stimulus_id=first, **stale),
        lambda: stimuli_replace(rows=[ROW], **stale),
        lambda: practice_add(rows=instruction_examples(), **stale),
        lambda: instrument_update(**fields, **stale),
        lambda: instrument_delete(**stale),
    ):
        with pytest.raises(InstrumentChangedError):
            edit()
        instrument_freeze_undone(edit, instrument)
    assert (stimuli_csv(stimulus_rows(instrument.stimuli.all())), AuditEntry.objects.count()) == before


def instrument_freeze_undone(edit, instrument: Instrument) -> None:
    """The same edit once the instrument is frozen, with the freeze taken back: frozen goes before stale."""
    with transaction.atomic():
        instrument_freeze(instrument=instrument, actor=None)
        with pytest.raises(InstrumentFrozenError):
            edit()
        transaction.set_rollback(True)
    instrument.refresh_from_db()


def test_an_edit_that_changes_nothing_is_no_edit(cast: Cast, instrument: Instrument) -> None:
    stimulus = instrument.stimuli.get(position=1)
    (row,) = stimulus_rows([stimulus])
    assert not stimulus_update(instrument=instrument, seen=1, stimulus_id=stimulus.pk, row=row, actor=cast.alice)
    assert revision(instrument) == 1


def test_another_instruments_stimulus_is_not_reached(cast: Cast, instrument: Instrument) -> None:
    other = children_instrument_create(study=cast.study, actor=None)
    foreign = other.stimuli.get(position=1)
    edit = {"instrument": instrument, "seen": 1, "stimulus_id": foreign.pk, "actor": cast.alice}
    for call in (
        lambda: stimulus_update(row=ROW, **edit),
        lambda: stimulus_move(to=2, **edit),
        lambda: stimulus_delete(**edit),
    ):
        with pytest.raises(Stimulus.DoesNotExist):
            call()
    assert Stimulus.objects.filter(pk=foreign.pk, position=1).exists()


def test_what_cannot_be_scored_is_given_to_nobody(cast: Cast, instrument: Instrument) -> None:
    """The shortest original has four words: a limit of 4 would make a right answer a refusal."""
    Instrument.objects.update(refusal_below=4)
    instrument.refresh_from_db()
    respondent = Respondent.objects.create(study=cast.study, kind="human")
    for attempt in (
        lambda: instrument_freeze(instrument=instrument, actor=None),
        lambda: sitting_start(respondent=respondent, instrument=instrument, source_label="x"),
    ):
        with pytest.raises(InstrumentIncompleteError) as error:
            attempt()
        assert [problem.code for problem in error.value.problems] == ["refusal_limit"]
    assert not Sitting.objects.exists()
    empty = instrument_create(
        study=cast.study, slug="e", title="E", language="ru", instruction=" ", stimuli=[], actor=None
    )
    with pytest.raises(InstrumentIncompleteError) as error:
        instrument_freeze(instrument=empty, actor=None)
    assert [problem.code for problem in error.value.problems] == ["no_instruction", "no_real_stimulus"]


def test_word_counts_that_differ_and_doubled_sentences_are_warnings(stimuli_18) -> None:
    """The study's own are even: in stimulus 13 «гран-при» is one word by the rule, as «гранпри» is in its original.

    The instruction's second example has eight given words and a seven-word answer, as printed.
    """
    assert warnings_of(stimuli_18) == [] and problems_of(instruction="x", refusal_below=4, stimuli=stimuli_18) == []
    (found,) = warnings_of(instruction_examples())
    assert (found.code, found.place, found.detail) == ("word_counts", 2, {"given": 8, "original": 7})
    assert finding_text(found) == "Practice task 2: words given: 8, in the original: 7"
    (twice,) = warnings_of([ROW, replace(ROW, position=2)])
    assert (twice.code, twice.place) == ("same_original", 2)
    (told,) = warnings_of([ROW, replace(ROW, position=2, is_practice=True)])
    assert (told.code, told.place, told.is_practice) == ("original_practised", 1, True)
    assert [one.code for one in problems_of(instruction="x", refusal_below=5, stimuli=stimuli_18)] == ["refusal_limit"]


def test_a_copy_is_the_same_and_the_next_version(cast: Cast, instrument: Instrument) -> None:
    practice_add(instrument=instrument, seen=1, rows=instruction_examples(), actor=None)
    instrument_freeze(instrument=instrument, actor=None)
    names = {"instrument": instrument, "title": "Second", "actor": cast.alice}
    copy = instrument_copy(study=cast.study, slug="small", version=2, **names)
    assert (copy.version, copy.state, copy.refusal_below) == (2, "draft", 3)
    assert stimulus_rows(copy.stimuli.all()) == stimulus_rows(instrument.stimuli.all())
    with pytest.raises(VersionTakenError):  # the other half of a double click
        instrument_copy(study=cast.study, slug="small", version=2, **names)
    elsewhere = instrument_copy(study=cast.other_study, slug="small", version=1, **names)
    assert (elsewhere.study, elsewhere.version) == (cast.other_study, 1)


def test_a_draft_is_deleted_only_where_nothing_points_to_it(cast: Cast, instrument: Instrument) -> None:
    from surveys.services import survey_create  # noqa: PLC0415 - a test may look up; the program may not

    lone = children_instrument_create(study=cast.study, actor=None)
    instrument_delete(instrument=lone, seen=1, actor=cast.alice)
    assert not Instrument.objects.filter(pk=lone.pk).exists()
    survey_create(instrument=instrument, title="S", contact="c", consent_text="t", actor=None)
    with pytest.raises(InstrumentUsedError):
        instrument_delete(instrument=instrument, seen=1, actor=cast.alice)
    assert instrument.stimuli.count() == 3


HOSTILE = [
    "=СУММ(1;2) слово", "+7 слово", "-1 слово", "@мысль", "'тис", "1-3 слово", '«ёлка»; "да", нет', "две\nстроки",
    "'=a",
]  # fmt: skip


def test_a_round_trip_through_csv_is_the_same_to_the_byte(cast: Cast) -> None:
    rows = [
        StimulusRow(number, text, text[::-1].strip() + " а б в", "hard", True, number % 2 == 0, text, text[:200])
        for number, text in enumerate(HOSTILE, start=1)
    ]
    first = stimuli_csv(rows)
    made = instrument_create(
        study=cast.study, slug="h", title="H", language="ru", instruction="x", stimuli=read_stimuli(first),
        actor=None, refusal_below=1,
    )  # fmt: skip
    second = stimuli_csv(stimulus_rows(made.stimuli.order_by("position")))
    assert first == second
    assert [row.text for row in read_stimuli(second)] == HOSTILE
    assert first.decode("utf-8-sig").split("\r\n")[0] == ",".join(ALL_COLUMNS)


def test_optional_columns_may_be_absent_and_faults_in_them_are_told() -> None:
    header = "id,task,original,complexity,shuffled,is_practice,source\n"
    row = read_stimuli((header + "1,а б,а б,easy,false,TRUE,UD 5\n").encode())[0]
    assert (row.is_practice, row.feedback, row.source) == (True, "", "UD 5")
    with pytest.raises(Exception, match="is_practice must be true, false or empty, not 'да'"):
        read_stimuli((header + "1,а б,а б,easy,false,да,\n").encode())
    with pytest.raises(Exception, match="source is longer than 200"):
        read_stimuli((header + f"1,а б,а б,easy,false,,{'x' * 201}\n").encode())


def test_the_built_in_study_has_no_practice_and_the_examples_can_be_added_once(cast: Cast) -> None:
    study = builtin_instrument_create(study=cast.study, actor=None)
    assert not study.stimuli.filter(is_practice=True).exists()
    assert practice_add(instrument=study, seen=1, rows=instruction_examples(), actor=None) == 3
    assert practice_add(instrument=study, seen=2, rows=instruction_examples(), actor=None) == 0
    assert [position for position, _ in words(study, practice=True)] == [19, 20, 21]
    # the examples are those of the instruction, word for word
    for row in instruction_examples():
        assert f"{row.text} → {row.original}" in study.instruction


def test_the_childrens_example_is_three_to_five_ordered_lemmas(cast: Cast) -> None:
    example = children_instrument_create(study=cast.study, actor=None)
    real = list(example.stimuli.filter(is_practice=False))
    assert {len(one.text.split()) for one in real} == {3, 4, 5} and not any(one.shuffled for one in real)
    assert all(len(one.text.split()) == len(one.original.split()) for one in real)
    assert instrument_freeze(instrument=example, actor=None)
