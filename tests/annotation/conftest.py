import pytest

from annotation.models import Campaign, Rater
from corpus.models import Instrument
from tests.annotation.factories import make_campaign, make_rater, make_sitting
from tests.conftest import Cast


@pytest.fixture
def raters(cast: Cast) -> list[Rater]:
    return [make_rater(cast.study, name) for name in ("lena", "misha", "nina")]


@pytest.fixture
def campaign(cast: Cast, instrument: Instrument, raters: list[Rater]) -> Campaign:
    """Two sittings of three answers each, three raters per answer, adjudicated by nobody."""
    make_sitting(instrument)
    make_sitting(instrument, ("кошка на столе сидит", "мышь бежал от кошки", "дети играли во дворе счастливые"))
    return make_campaign(cast.study, cast.alice)
