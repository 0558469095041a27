import pytest

from surveys.models import Platform
from surveys.platforms import ParameterMissingError, ParameterRefusedError, ids_read, parameter_clean

PID = "5af0000000000000000f0001"


@pytest.mark.parametrize(
    ("platform", "value", "expected"),
    [
        (Platform.PROLIFIC, PID, PID),
        (Platform.PROLIFIC, f"  {PID.upper()}\u00a0", PID),  # Prolific's ids have no capitals
        (Platform.TOLOKA, " 00055d4a80--6600aa0000000000B0000001 ", "00055d4a80--6600aa0000000000B0000001"),
        (Platform.OTHER, "Anna.K@lab-3", "Anna.K@lab-3"),
    ],
)
def test_an_id_is_trimmed_as_its_platform_needs(platform: str, value: str, expected: str) -> None:
    assert parameter_clean(platform, value) == expected


@pytest.mark.parametrize(
    ("platform", "value"),
    [
        (Platform.PROLIFIC, "{{%PROLIFIC_PID%}}"),  # the placeholder, never filled in
        (Platform.PROLIFIC, PID[:-1]),
        (Platform.PROLIFIC, PID + "0"),
        (Platform.OTHER, "<script>alert(1)</script>"),
        (Platform.OTHER, "a b"),
        (Platform.OTHER, "a\x00b"),
        (Platform.OTHER, "x" * 101),
        (Platform.TOLOKA, "ид"),
    ],
)
def test_what_is_no_id_is_refused(platform: str, value: str) -> None:
    with pytest.raises(ParameterRefusedError):
        parameter_clean(platform, value)


def test_ids_come_from_the_named_parameters() -> None:
    link = {"PROLIFIC_PID": PID.upper(), "SESSION_ID": " " + PID, "STUDY_ID": "x"}
    assert ids_read(Platform.PROLIFIC, "PROLIFIC_PID", "SESSION_ID", link) == (PID, PID)
    assert ids_read(Platform.OTHER, "who", "", {"who": "7", "visit": "8"}) == ("7", "")
    assert ids_read(Platform.DIRECT, "", "", link) == ("", "")


@pytest.mark.parametrize("link", [{}, {"PROLIFIC_PID": "  "}, {"prolific_pid": PID}])
def test_a_link_without_the_persons_id_says_so(link: dict[str, str]) -> None:
    with pytest.raises(ParameterMissingError):
        ids_read(Platform.PROLIFIC, "PROLIFIC_PID", "SESSION_ID", link)
