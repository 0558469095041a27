import pytest

from surveys.exclusion import KINDS, Facts


@pytest.mark.parametrize("code", ["translated", "pasted"])
def test_what_was_not_measured_is_never_taken_and_at_least_none_is_no_rule(code: str) -> None:
    kind = KINDS[code]
    unknown, none, one = (Facts(is_finished=True, is_gone=False, **{code: value}) for value in (None, 0, 1))
    assert [kind.takes(facts, 0) for facts in (unknown, none, one)] == [False, False, True]
    assert [kind.takes(facts, 1) for facts in (unknown, none, one)] == [False, False, True]
