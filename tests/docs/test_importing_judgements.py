"""What docs/importing-judgements.md says is so: every word of it that a machine can check, and its examples are run."""

import io
import re
import shlex
from pathlib import Path
from typing import NamedTuple

import pytest
from django.core.management import call_command
from django.core.management.base import CommandParser

from annotation.import_words import FAULTS, REASONS
from annotation.importers.formats import FORMATS
from annotation.importers.settings import Settings
from annotation.models import Campaign, JudgementImport
from corpus.models import Answer, Instrument
from reports.management.commands.judgements_import import Command
from tests.annotation.factories import make_sitting
from tests.conftest import ROOT, Cast

TEXT = (ROOT / "docs" / "importing-judgements.md").read_text()
CODE = "".join(
    path.read_text()
    for place, files in (("annotation", "import*/*.py"), ("annotation", "import*.py"), ("corpus", "tables/*.py"))
    for path in (ROOT / place).glob(files)
)
DESCRIBED = set(re.findall(r"`([\w-]+)`", TEXT))


class Example(NamedTuple):
    file: str
    content: str
    command: str
    told: str


def examples() -> list[Example]:
    """Three indented blocks make one: a file, whose first line is its name; the command; what it tells."""
    part = TEXT[TEXT.index("## The formats") : TEXT.index("## What is decided")]
    blocks = [
        "\n".join(line[4:] for line in block.splitlines())
        for block in part.split("\n\n")
        if block.strip() and all(line.startswith("    ") for line in block.strip("\n").splitlines())
    ]
    found = []
    for file, command, told in zip(blocks[::3], blocks[1::3], blocks[2::3], strict=True):
        name, _line, content = file.partition("\n")
        found.append(Example(name.strip(), content, command, told))
    return found


def words(text: str) -> list[str]:
    return text.split()


@pytest.mark.django_db
@pytest.mark.parametrize("example", examples(), ids=lambda one: one.file)
def test_the_examples_are_what_happens(cast: Cast, instrument: Instrument, tmp_path: Path, example: Example) -> None:
    make_sitting(instrument, ("кошка сидит на столе", "мышь бежал от кошки", "дети играли во дворе"))
    for number, answer in enumerate(Answer.objects.order_by("pk"), start=1):
        blind_id = f"5b6f2c1a-3d0e-4c57-9a51-0f6f2f3f8a0{number}"
        Answer.objects.filter(pk=answer.pk).update(blind_id=blind_id)
    (tmp_path / example.file).write_text(example.content)
    _make, _manage, arguments = shlex.split(example.command)
    command, *options = shlex.split(arguments.removeprefix("ARGS="))
    options = [{"luria": "ours", example.file: str(tmp_path / example.file)}.get(one, one) for one in options]
    out = io.StringIO()
    call_command(command, *options, stdout=out)
    assert words(out.getvalue()) == words(example.told)
    assert not JudgementImport.objects.exists()
    options.remove("--dry-run")
    call_command(command, *options, stdout=io.StringIO())
    assert Campaign.objects.get().judgement_import, "what the dry run said can be imported"


def test_there_is_an_example_of_every_format() -> None:
    told = {words(one.told)[1].rstrip(",") for one in examples()}
    assert {"columns" if name.startswith("columns") else name for name in told} == set(FORMATS)


def test_every_message_is_described() -> None:
    assert set(REASONS) <= DESCRIBED, set(REASONS) - DESCRIBED
    assert set(FAULTS) <= DESCRIBED, set(FAULTS) - DESCRIBED


def test_every_message_that_is_raised_has_words() -> None:
    raised = set(re.findall(r'FaultError\(\s*"(\w+)"', CODE))
    assert raised and raised <= set(FAULTS), raised - set(FAULTS)
    named = set(re.findall(r'named\("(\w+)"|_skip\(raw, "(\w+)"|reason="(\w+)"|reason = "(\w+)"', CODE))
    used = {code for codes in named for code in codes if code}
    assert used and used <= set(REASONS), used - set(REASONS)


def test_every_format_setting_and_option_is_described() -> None:
    parser = CommandParser()
    Command().add_arguments(parser)
    options = {name for action in parser._actions for name in action.option_strings if name not in ("-h", "--help")}
    for name in (*FORMATS, *Settings.__dataclass_fields__, *options):
        assert f"`{name}`" in TEXT, name
