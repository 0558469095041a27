import re

import pytest

from surveys.models import Participant, Survey
from surveys.receipts import ALPHABET, receipt_code, receipt_digest, receipt_read
from surveys.rights import receipt_issue
from tests.surveys.people import make_person

CODE = receipt_code(secret="a secret")


def test_a_code_has_140_bits_in_groups_that_are_easy_to_copy() -> None:
    assert re.fullmatch(rf"([{ALPHABET}]{{4}}-){{6}}[{ALPHABET}]{{4}}", CODE)
    assert len(ALPHABET) == 32  # 5 bits for each of 28 characters
    assert CODE == receipt_code(secret="a secret") != receipt_code(secret="another")


@pytest.mark.parametrize(
    "typed",
    [
        CODE.lower(),
        CODE.replace("-", ""),
        f"  {CODE.replace('-', ' ')}\n",
        CODE.replace("-", "—"),
        CODE.replace("0", "O").replace("1", "l"),
        CODE.replace("0", "о").replace("1", "I").replace("V", "u"),
        CODE.translate(str.maketrans("ABEKMHPCTXY", "АВЕКМНРСТХУ")),  # typed in a Russian layout
    ],
)
def test_it_forgives_how_people_type(typed: str) -> None:
    assert receipt_digest(typed) == receipt_digest(CODE)


@pytest.mark.parametrize("typed", ["", "ABCD", CODE[:-1], CODE + "A", "Ж" * 28, "\x00" * 28, "２" * 28])
def test_what_can_be_no_code_has_no_digest(typed: str) -> None:
    assert receipt_read(typed) == receipt_digest(typed) == ""


def test_every_letter_that_is_read_for_another_is_one_of_the_alphabet() -> None:
    assert set(receipt_read("OIL" + "А" * 25)) <= set(ALPHABET)


@pytest.mark.django_db
def test_it_is_stored_as_a_digest_and_shown_again_on_a_reload(survey: Survey) -> None:
    participant = make_person(survey)
    code = receipt_issue(participant=participant)
    stored = Participant.objects.values().get(pk=participant.pk)
    assert stored["receipt_digest"] == receipt_digest(code)
    assert code not in str(stored) and code.replace("-", "") not in str(stored)
    assert receipt_issue(participant=Participant.objects.get(pk=participant.pk)) == code
    assert receipt_issue(participant=make_person(survey)) != code
