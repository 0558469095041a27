import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surveys.timing import Timing, timing_read


def test_it_reads_what_the_page_measured() -> None:
    sent = {"duration": 5200, "first_key": 900, "away": 0, "pastes": 1, "pasted": 12, "translated": False}
    assert timing_read(json.dumps({**sent, "device": "phone"})) == Timing(5200, 900, 0, 1, 12, False, "phone")


@pytest.mark.parametrize(
    "text",
    ["", "null", "[]", "7", "{", "[" * 100_000]
    + [f'{{"duration": {value}}}' for value in ("-1", "true", "1e3", '"5"', "99999999999999")]
    + ['{"device": "<b>"}', '{"translated": 1}'],
)
def test_what_is_odd_stays_unknown(text: str) -> None:
    assert timing_read(text) == Timing()


@given(st.text())
def test_nothing_breaks_it(text: str) -> None:
    assert isinstance(timing_read(text), Timing)
