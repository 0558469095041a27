from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from corpus.importing import StimuliUnreadableError, StimulusRow, read_stimuli, stimuli_csv
from corpus.models import Instrument
from tests.conftest import ROOT, Cast

HEADER = "id,task,original,complexity,shuffled\n"
GOOD = "1,кошка сидеть на стол,кошка сидит на столе,easy,false\n"


def test_the_built_in_study_reads_as_published(stimuli_18) -> None:
    assert [row.position for row in stimuli_18] == list(range(1, 19))
    assert sum(row.shuffled for row in stimuli_18) == 11  # the paper's table, not its text
    assert [row.complexity for row in stimuli_18] == ["easy"] * 4 + ["medium"] * 6 + ["hard"] * 8
    assert stimuli_18[0].text == "добавить и бы нехитрый пара . мысль"


def test_bom_crlf_and_extra_columns_are_fine() -> None:
    data = ("\ufeff" + HEADER.strip() + ",note\r\n" + GOOD.strip() + ",x\r\n").encode()
    assert [row.text for row in read_stimuli(data)] == ["кошка сидеть на стол"]


def test_what_is_written_is_read_again() -> None:
    rows = [
        StimulusRow(1, 'он , "она" и\nмы', "он, она и мы.", "easy", True, source="UD Test; s 1, 2; CC BY-SA 4.0"),
        StimulusRow(2, "кошка сидеть", "кошка сидит.", "hard", False),
    ]
    assert read_stimuli(stimuli_csv(rows)) == rows
    assert stimuli_csv(rows) == stimuli_csv(list(rows))


def test_a_source_too_long_to_keep_is_named() -> None:
    data = HEADER.strip() + ",source\n" + GOOD.strip() + "," + "x" * 201 + "\n"
    with pytest.raises(StimuliUnreadableError, match="line 2: the source is longer than 200"):
        read_stimuli(data.encode())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "these columns are missing: id, task"),
        ("<!doctype html><html></html>", "these columns are missing"),
        ("id,task\n1,x\n", "these columns are missing: original, complexity, shuffled"),
        (HEADER, "there is no stimulus in the file"),
        (HEADER.replace(",", ";") + GOOD.replace(",", ";"), "separated by commas, not by semicolons"),
        (HEADER.replace(",", "\t"), "separated by commas"),
        (HEADER + GOOD + GOOD, "the id 1 stands more than once"),
        (HEADER + GOOD.replace("easy", "simple"), "line 2: complexity must be easy, medium or hard, not 'simple'"),
        (HEADER + GOOD.replace("false", "нет"), "line 2: shuffled must be true or false"),
        (HEADER + GOOD.replace("1,", "0,"), "line 2: the id must be a whole number"),
        (HEADER + GOOD.replace("1,", "99999999999999999999,"), "line 2: the id must be a whole number"),
        (HEADER + GOOD.replace("кошка сидеть на стол", "..."), "line 2: there is no word in the column task"),
        (HEADER + GOOD.strip() + ",extra\n", "line 2: more fields than columns"),
        (HEADER + GOOD.replace("стол,", "ст\x00ол,"), "NUL"),
        (HEADER + '1,"unclosed,b,easy,false\n', "not CSV"),
    ],
)
def test_a_faulty_file_says_where_and_why(text: str, message: str) -> None:
    with pytest.raises(StimuliUnreadableError) as error:
        read_stimuli(text.encode())
    assert message in str(error.value)


def test_other_encodings_say_so() -> None:
    with pytest.raises(StimuliUnreadableError, match="not UTF-8"):
        read_stimuli((HEADER + GOOD).encode("cp1251"))


@pytest.fixture
def instruction(tmp_path: Path) -> Path:
    path = tmp_path / "instruction.md"
    path.write_text("Составьте предложение.", encoding="utf-8")
    return path


def command(path: Path, instruction: Path, **extra: object) -> None:
    call_command(
        "instrument_import", str(path), study="ours", slug="new", title="New", instruction=instruction, **extra
    )


def test_the_command_imports_and_makes_versions(cast: Cast, instruction: Path, capsys) -> None:
    for _ in range(2):
        command(ROOT / "study" / "stimuli.csv", instruction)
    assert list(Instrument.objects.order_by("version").values_list("slug", "version")) == [("new", 1), ("new", 2)]
    assert Instrument.objects.get(version=2).stimuli.count() == 18
    assert "18 stimuli" in capsys.readouterr().out


@pytest.mark.parametrize("text", [HEADER + GOOD + GOOD, "id,task\n"])
def test_the_command_changes_nothing_on_a_faulty_file(cast: Cast, instruction: Path, tmp_path: Path, text: str) -> None:
    (tmp_path / "s.csv").write_text(text, encoding="utf-8")
    with pytest.raises(CommandError, match="Nothing was imported"):
        command(tmp_path / "s.csv", instruction)
    assert not Instrument.objects.exists()


def test_the_command_refuses_a_refusal_limit_that_swallows_right_answers(
    cast: Cast, instruction: Path, tmp_path: Path
) -> None:
    (tmp_path / "s.csv").write_text(HEADER + GOOD, encoding="utf-8")  # four words: at most 3
    with pytest.raises(CommandError, match="refusal-below"):
        command(tmp_path / "s.csv", instruction)
    command(tmp_path / "s.csv", instruction, refusal_below=3)
    with pytest.raises(CommandError, match="Cannot read"):
        command(tmp_path / "missing.csv", instruction)


@pytest.mark.parametrize(
    "change", [{"slug": "два слова"}, {"title": "я" * 201}, {"language": "neither-here-nor-there"}]
)
def test_the_command_refuses_names_that_cannot_be_stored(cast: Cast, instruction: Path, change: dict[str, str]) -> None:
    names = {"study": "ours", "slug": "new", "title": "New", "instruction": instruction, **change}
    with pytest.raises(CommandError, match="Nothing was imported"):
        call_command("instrument_import", str(ROOT / "study" / "stimuli.csv"), **names)
    assert not Instrument.objects.exists()
