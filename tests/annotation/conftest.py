import pytest

from annotation.models import Campaign, Rater
from corpus.models import Instrument
from scoring.models import Round
from tests.annotation.factories import YES, make_campaign, make_rater, make_sitting
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


@pytest.fixture
def checked(cast: Cast, instrument: Instrument) -> Campaign:
    """Nine answers to rate, of which the first is judged twice; one training and two gold answers beside them."""
    for _ in range(4):
        make_sitting(instrument)
    campaign = make_campaign(cast.study, cast.alice, k=1)
    for position, purpose in ((12, "training"), (8, "gold"), (4, "gold")):  # one to each stimulus
        item = campaign.items.get(position=position)
        item.places.all().delete()
        item.purpose, item.expected, item.explanation = purpose, YES, "потому что"
        item.display_text += " сегодня"  # the other answers to one stimulus are the same sentence
        item.save(update_fields=["purpose", "expected", "explanation", "display_text"])
    first = campaign.items.get(position=1)
    first.is_repeated = True
    first.save(update_fields=["is_repeated"])
    for purpose in ("training", "gold", "repeat"):
        setattr(
            campaign,
            f"{purpose}_round",
            Round.objects.create(study=cast.study, rubric=campaign.round.rubric, purpose=purpose),
        )
    campaign.gold_every, campaign.repeat_distance, campaign.n_items, campaign.n_places = 4, 3, 9, 9
    campaign.save()
    return campaign
