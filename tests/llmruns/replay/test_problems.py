"""Every problem of a file is told by its line, and a file with one stores nothing."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from corpus.importing import read_stimuli
from corpus.models import Answer, Instrument
from corpus.services import instrument_create
from llmruns.importers import records
from llmruns.importers.records import Problem, read_lines
from llmruns.models import Experiment, ModelConfig
from llmruns.replay import ReplayStaleError, Source, Target, replies_import
from llmruns.replay_words import NOTES, PROBLEMS, problem_text
from tests.conftest import ROOT, SMALL_CSV, Cast
from tests.llmruns.replay.conftest import Replay, as_file, problems, record, source_of, whole

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b'{"model": "GPT-0", "run": 1, "position": 2, "raw_reply": "\xff"}', "not_utf8"),
        (b'{"model": "GPT-0", "run": 1, "position": 2, "raw_reply": "\x00"}', "nul_in_line"),
        (b'{"model": "GPT-0", "run": 1, "position": 2, "raw_rep', "not_json"),
        (b'{"model": "GPT-0", "run": NaN, "position": 2}', "not_json"),
        (b'{"model": "GPT-0", "run": 1, "run": 2, "position": 2}', "not_json"),
        (b'{"model": "GPT-0", "run": ' + b"9" * 5_000 + b"}", "not_json"),
        (b"[" * 100_000, "too_deep"),
        (b"[1, 2]", "not_an_object"),
        (b'"text"', "not_an_object"),
        (record(2, model=""), "missing"),
        (record(2, model="  "), "missing"),
        (record(2, run=None), "missing"),
        (record(2, raw_reply=None), "missing"),
        (record(2, position=None), "missing"),
        (record(2, model=5), "wrong_type"),
        (record(2, model="м" * 101), "too_long"),
        (record(2, model="a\ud800"), "unstorable"),
        (record(2, raw_reply=["x"]), "wrong_type"),
        (record(2, run=True), "wrong_type"),
        (record(2, run=1.5), "wrong_type"),
        (record(2, run=0), "out_of_range"),
        (record(2, run=101), "out_of_range"),
        (record(2, attempt=0), "out_of_range"),
        (record(2, input_tokens=-1), "out_of_range"),
        (record(2, request="x"), "wrong_type"),
        (record(2, request={"a": "\x00"}), "unstorable"),
        (record(2, parameters_asked={"temperature": "hot"}), "wrong_type"),
        (record(2, cost=1), "no_currency"),
        (record(2, cost=1, currency="EUR"), "unknown_currency"),
        (record(2, cost="much", currency="USD"), "wrong_type"),
        (record(2, cost=-1, currency="USD"), "out_of_range"),
        (record(2, cost="1e30", currency="USD"), "out_of_range"),
        (record(2, sent_at="2024-05-01T10:00:00"), "no_time_zone"),
        (record(2, sent_at="yesterday"), "wrong_type"),
        (record(2, sent_at="0001-01-01T00:00:00+14:00"), "wrong_type"),
        (record(2, instrument="other"), "other_instrument"),
        (record(2, instrument="small", instrument_version=2), "other_instrument"),
        (record(4), "unknown_stimulus"),
        (record(2, position=None, stimulus="нет такого"), "unknown_stimulus"),
        (record(2, stimulus="кошка сидеть на стол ."), "other_stimulus"),
        (record(1), "duplicate_attempt"),
        (record(2, state="odd"), "unknown_state"),
        (record(2, raw_reply=None, state="failed", attempt=1), "failure_with_attempt"),
        (record(2, final_answer="x"), "reply_and_final"),
        (record(2, raw_reply=None, final_answer="x", cost=1, currency="USD"), "final_with_call"),
        (record(2, raw_reply=None, final_answer="x", outcome="no_valid_reply"), "outcome_unclear"),
        (record(2, raw_reply=None, outcome="declined"), "outcome_unclear"),
        (record(2, raw_reply=None, final_answer="а" * 2001), "too_long"),
        (record(2, raw_reply=None, final_answer="a\x00"), "unstorable"),
        (record(1, raw_reply=None, final_answer="x"), "second_final"),
    ],
)
def test_each_problem_is_told_by_its_line_and_nothing_is_stored(replay: Replay, line: Any, code: str) -> None:
    first = {"attempt": 1} if code == "duplicate_attempt" else {}
    if code == "duplicate_attempt":
        line = line | first
    if code == "second_final":
        report = replay([record(3), line, record(1)])
        assert (code, 3) in problems(report)
    else:
        report = replay([record(1, **first), line, record(3)])
        assert (code, 2) in problems(report), report.problems
    assert problem_text(report.problems[0]) != report.problems[0].code
    assert report.made is None and not Experiment.objects.exists() and not ModelConfig.objects.exists()


def test_every_problem_is_told_not_only_the_first(replay: Replay) -> None:
    report = replay([b"no", record(4), record(2, run=0, cost=1), b"\xff", record(3)])
    assert problems(report) == [
        ("not_json", 1),
        ("unknown_stimulus", 2),
        ("out_of_range", 3),
        ("no_currency", 3),
        ("not_utf8", 4),
    ]


def test_a_number_beside_an_unnumbered_reply_is_told(replay: Replay) -> None:
    report = replay([record(1, attempt=1, raw_reply="нет"), record(1), record(2), record(3)])
    assert problems(report) == [("attempt_missing", 2)]


@pytest.mark.parametrize(("data", "code"), [(b"", "empty"), (b"\n \n", "empty"), (b"\xef\xbb\xbf\n", "empty")])
def test_an_empty_file_is_none(replay: Replay, data: bytes, code: str) -> None:
    assert [one[0] for one in problems(replay(data))] == [code]


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(replay: Replay) -> None:
    data = b"\xef\xbb\xbf" + as_file(whole()).replace(b"\n", b"\r\n")
    assert replay(data).problems == [] and Answer.objects.count() == 3


def test_a_file_of_another_instrument_is_named_as_that(replay: Replay) -> None:
    report = replay([record(n, position=None, stimulus=f"другое {n}") for n in (1, 2, 3)])
    assert problems(report)[0] == ("wrong_instrument", 1) and problems(report)[1] == ("unknown_stimulus", 1)


def test_practice_is_not_answered_by_models(cast: Cast, replay: Replay) -> None:
    text = SMALL_CSV.replace("shuffled\n", "shuffled,is_practice\n").replace("false\n", "false,false\n")
    text = text.replace("easy,true\n", "easy,true,true\n")
    instrument = instrument_create(
        study=cast.study,
        slug="practised",
        title="Practised",
        language="ru",
        instruction="Составьте предложение.",
        stimuli=read_stimuli(text.encode()),
        actor=cast.alice,
        refusal_below=3,
    )
    report = replay(whole(), instrument=instrument)
    assert problems(report) == [("practice", 2)]


def test_an_incomplete_instrument_takes_no_replies(replay: Replay, instrument: Instrument) -> None:
    instrument.instruction = ""
    instrument.save(update_fields=["instruction"])
    assert problems(replay(whole()))[0][0] == "instrument_incomplete"


def test_a_field_that_means_nothing_is_told_once(replay: Replay) -> None:
    report = replay(whole(tempreature=1), dry_run=True)
    assert Problem("unknown_field", 1, "tempreature; 3") in report.notes


def test_fewer_runs_than_planned_are_told(replay: Replay) -> None:
    report = replay([*whole(1), *whole(2), *whole(1, model="B")], dry_run=True)
    assert Problem("fewer_runs", 0, "2; B: 1") in report.notes


# --- size --------------------------------------------------------------------------------------------------------


def test_a_line_that_is_too_long_is_told_and_the_next_is_read(monkeypatch: pytest.MonkeyPatch, replay: Replay) -> None:
    monkeypatch.setattr(records, "MAX_LINE", 1_000)
    report = replay([record(1, detail="x" * 5_000), *whole()[1:]])
    assert problems(report) == [("line_too_long", 1)]
    # A line that ends exactly where the next read would begin must not swallow its neighbour.
    for size in range(1_995, 2_010):
        lines = list(read_lines(source_of(b"x" * size + b"\n" + as_file(whole())).open()))
        assert [line.number for line in lines if not line.problems] == [2, 3, 4]


def test_a_file_that_is_too_large_is_not_read(cast: Cast, instrument: Instrument) -> None:
    def never() -> Any:
        raise AssertionError("read")

    source = Source("large.jsonl", records.MAX_BYTES + 1, never)
    report = replies_import(instrument=instrument, source=source, target=Target(), actor=cast.alice)
    assert problems(report) == [("too_large", 0)] and not Experiment.objects.exists()


# --- what was seen is what comes in ------------------------------------------------------------------------------


def test_what_is_no_longer_as_it_was_shown_is_not_imported(replay: Replay) -> None:
    shown = replay(whole(), dry_run=True).digest
    assert replay(whole(raw_reply='{"results": "другое"}')).made is not None
    ModelConfig.objects.update(model="renamed")  # the name is taken now, and another model's
    with pytest.raises(ReplayStaleError):
        replay(whole(), shown=shown)
    assert Experiment.objects.count() == 1


def test_a_file_that_changes_while_it_is_imported_stores_nothing(cast: Cast, instrument: Instrument) -> None:
    versions = iter([whole(), whole(raw_reply='{"results": "подмена"}')])
    source = Source("x.jsonl", 100, lambda: source_of(as_file(next(versions))).open())
    with pytest.raises(ReplayStaleError):
        replies_import(instrument=instrument, source=source, target=Target(), actor=cast.alice)
    assert not Experiment.objects.exists() and not Answer.objects.exists()


# --- the command -------------------------------------------------------------------------------------------------


def test_the_command_says_what_is_wrong_and_imports(
    cast: Cast, instrument: Instrument, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "old.jsonl"
    path.write_bytes(as_file([record(1), record(9)]))
    with pytest.raises(CommandError, match="Nothing was imported"):
        call_command("replies_import", path, study="ours", instrument="small")
    assert "problem: line 2: unknown_stimulus: the instrument has no such stimulus: 9" in capsys.readouterr().out
    path.write_bytes(as_file(whole()))
    call_command("replies_import", path, study="ours", instrument="small:1", dry_run=True)
    assert "answers 3" in capsys.readouterr().out and not Experiment.objects.exists()
    call_command("replies_import", path, study="ours", instrument="small", title="Old", json=True)
    assert json.loads(capsys.readouterr().out)["counts"]["answers"] == 3
    assert Experiment.objects.get().title == "Old"
    for wrong in [{"instrument": "none"}, {"study": "none"}, {"prompt": "none"}, {"max_attempts": 0}]:
        with pytest.raises(CommandError):
            call_command("replies_import", path, **{"study": "ours", "instrument": "small"} | wrong)
    with pytest.raises(CommandError, match="Cannot read"):
        call_command("replies_import", tmp_path / "none", study="ours", instrument="small")


def test_the_documents_name_every_code() -> None:
    text = (ROOT / "docs" / "replaying.md").read_text()
    assert [code for code in {**PROBLEMS, **NOTES} if f"`{code}`" not in text] == []
