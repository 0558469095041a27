from hypothesis import given
from hypothesis import strategies as st

from corpus.ordering import order_within_bands

BANDS = st.lists(st.sampled_from(["easy", "medium", "hard"]), max_size=30)


@given(BANDS, st.text())
def test_every_place_keeps_its_band(bands: list[str], seed: str) -> None:
    order = order_within_bands(list(enumerate(bands)), seed)
    assert sorted(order) == list(range(len(bands)))
    assert [bands[pk] for pk in order] == bands
    assert order == order_within_bands(list(enumerate(bands)), seed)


def test_seeds_differ() -> None:
    stimuli = [(number, "easy") for number in range(18)]
    assert len({tuple(order_within_bands(stimuli, str(seed))) for seed in range(20)}) == 20
