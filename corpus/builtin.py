"""Instruments that come with the program: the published study's, in study/, and an example of a children's test."""

from pathlib import Path

from corpus.importing import StimulusRow, read_stimuli
from corpus.models import Instrument
from corpus.services import instrument_create
from studies.models import Study, User

FOLDER = Path(__file__).resolve().parent.parent / "study"
EXAMPLES = Path(__file__).resolve().parent / "examples"


def study_text(name: str) -> str:
    """A file of the published study, such as `prompt.ru.txt`."""
    return (FOLDER / name).read_text(encoding="utf-8").strip()


def builtin_instrument_create(*, study: Study, actor: User | None, version: int | None = None) -> Instrument:
    """The paper's 18 tasks with its instruction: no practice, no checks."""
    return instrument_create(
        study=study,
        slug="luria-18",
        title="Составление предложений, 18 заданий",
        language="ru",
        instruction=study_text("instruction.ru.md"),
        stimuli=read_stimuli((FOLDER / "stimuli.csv").read_bytes()),
        actor=actor,
        version=version,
    )


def instruction_examples() -> list[StimulusRow]:
    """The three examples of the study's instruction as practice tasks. The paper itself had no practice."""
    return read_stimuli((EXAMPLES / "practice.ru.csv").read_bytes())


def children_instrument_create(*, study: Study, actor: User | None, version: int | None = None) -> Instrument:
    """An example of a test for children: three to five ordered lemmas, invented here and taken from no source."""
    return instrument_create(
        study=study,
        slug="children-example",
        title="Пример детского теста, 8 заданий",
        language="ru",
        instruction=(EXAMPLES / "children.ru.md").read_text(encoding="utf-8").strip(),
        stimuli=read_stimuli((EXAMPLES / "children.ru.csv").read_bytes()),
        refusal_below=1,
        actor=actor,
        version=version,
    )
