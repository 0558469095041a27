import csv

import pytest

from scoring.rules import sequence_equal
from tests.shared_cases import ABSENT, SHARED, case_params, cases


@pytest.mark.parametrize(
    ("text", "equal"),
    [
        ("Кошка сидит на столе", True),
        ("столе на сидит кошка!", True),  # order is not compared
        ("собака лежит под диваном", True),  # nor is vocabulary
        ("кошка - сидит на столе", True),
        ("кошка сидит-то на столе", True),
        ("кошка сидит на большом столе", False),
        ("кошка сидит", False),
        ("", False),
    ],
)
def test_sequence_equal_counts_words(text, equal):
    assert sequence_equal(text, "кошка сидит на столе.") is equal


def originals() -> dict[int, str]:
    path = SHARED / "study" / "stimuli.csv"
    if not path.exists():
        pytest.skip(ABSENT)
    with path.open(encoding="utf-8", newline="") as file:
        return {int(row["id"]): row["original"] for row in csv.DictReader(file)}


@pytest.mark.parametrize("case", case_params("tokens"))
def test_shared_case(case):
    assert sequence_equal(case["text"], originals()[case["item"]]) is case["sequence_equal"], case["why"]


def test_shared_answers_of_models():
    original = originals()
    for case in cases("llm_outputs"):
        if "sequence_equal" in case:
            assert sequence_equal(case["answer"], original[case["item"]]) is case["sequence_equal"], case["id"]
