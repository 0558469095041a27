"""The fixed cast: two studies, their researchers, a rater, a stranger."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.test import Client
from django.utils import translation
from pytest_django import Settings

from corpus.importing import StimulusRow, read_stimuli
from corpus.models import Instrument
from corpus.services import instrument_create
from studies.models import Role, Study, User
from studies.services import membership_set, study_create

ROOT = Path(__file__).resolve().parent.parent

SMALL_CSV = """id,task,original,complexity,shuffled
1,кошка сидеть на стол .,кошка сидит на столе.,easy,false
2,". мышь бежать от кошка","мышь бежит от кошки.",easy,true
3,"дети , который играть во двор , быть счастливый","дети, которые играли во дворе, были счастливы.",medium,false
"""


@dataclass
class Cast:
    study: Study
    other_study: Study
    alice: User  # researcher of the study
    bob: User  # researcher of the other study: every write route must refuse him
    rita: User  # rater of the study

    def client(self, user: User) -> Client:
        client = Client()
        client.force_login(user)
        return client


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A long test that begins last, in random order, is waited for by a worker that has nothing else to do."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


@pytest.fixture(autouse=True)
def quick_passwords(settings: Settings) -> None:
    """A password is hashed slowly on purpose; a test has three people to make before it begins."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture(autouse=True)
def no_language_is_left() -> Iterator[None]:
    """A request leaves its language active in the thread, and the next test would read it there."""
    yield
    translation.deactivate()


@pytest.fixture
def cast(db: None) -> Cast:
    alice, bob, rita = (User.objects.create_user(name, password="correct horse") for name in ("alice", "bob", "rita"))
    study = study_create(slug="ours", title="Ours", actor=alice)
    other = study_create(slug="theirs", title="Theirs", actor=bob)
    membership_set(user=rita, study=study, role=Role.RATER, actor=alice)
    return Cast(study=study, other_study=other, alice=alice, bob=bob, rita=rita)


@pytest.fixture
def instrument(cast: Cast) -> Instrument:
    """Three stimuli: two easy (one shuffled), one medium."""
    return instrument_create(
        study=cast.study,
        slug="small",
        title="Small",
        language="ru",
        instruction="Составьте предложение.",
        stimuli=read_stimuli(SMALL_CSV.encode()),
        actor=cast.alice,
        refusal_below=3,
    )


@pytest.fixture
def stimuli_18() -> list[StimulusRow]:
    """The published study's own eighteen tasks."""
    return read_stimuli((ROOT / "study" / "stimuli.csv").read_bytes())
