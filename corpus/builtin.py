"""The published study's own instrument, instruction and prompt, kept as data in study/."""

from pathlib import Path

from corpus.importing import read_stimuli
from corpus.models import Instrument
from corpus.services import instrument_create
from studies.models import Study, User

FOLDER = Path(__file__).resolve().parent.parent / "study"


def study_text(name: str) -> str:
    """A file of the published study, such as `prompt.ru.txt`."""
    return (FOLDER / name).read_text(encoding="utf-8").strip()


def builtin_instrument_create(*, study: Study, actor: User | None) -> Instrument:
    """The paper's 18 tasks with its instruction: no practice, no checks."""
    return instrument_create(
        study=study,
        slug="luria-18",
        title="Составление предложений, 18 заданий",
        language="ru",
        instruction=study_text("instruction.ru.md"),
        stimuli=read_stimuli((FOLDER / "stimuli.csv").read_bytes()),
        actor=actor,
    )
