"""What PostgreSQL writes is, byte for byte, what the rows would give."""

from datetime import UTC, datetime

import pytest

from reports.csvfile import stream
from reports.exports import EXPORTS
from scoring.models import Judge, Judgement, Round
from scoring.services import judgements_retract, rules_apply
from tests.reports.conftest import Built

REASONS = [
    'со «словами», запятой и "кавычками"',
    "две\nстроки",
    "возврат\rкаретки\r\nи обе",
    "\\.",
    "\\N",
    "  пробелы по краям  ",
    "\ttab",
    "=1+1",
    "\ue000\uffff😀",
    "NULL",
]


@pytest.mark.parametrize("name", ["judgements", "judgement_history"])
def test_the_same_bytes(built: Built, name: str) -> None:
    study, rubric = built.cast.study, built.rubric
    rules_apply(study=study, rubric=rubric)
    criterion = rubric.criteria.get(code="grammatical")
    for number, reason in enumerate(REASONS):
        kind = ["rater", "classifier", "model"][number % 3]
        round_ = Round.objects.create(study=study, rubric=rubric, purpose="repeat")
        original = Judgement.objects.create(
            round=round_,
            answer=built.answers["P1/1"],
            criterion=criterion,
            judge=Judge.objects.create(kind=kind),
            value=[0, 1, 0.25][number % 3],
            confidence=[None, 1, 0.1 + 0.2, 1e-7][number % 4],
            reason=reason,
            made_at=datetime(2026, 1, 2, 3, 4, 5, 999_999 - number, tzinfo=UTC),
        )
        Judgement.objects.create(
            round=round_,
            answer=built.answers["P2/1"],
            criterion=criterion,
            judge=original.judge,
            value=original.value,
            shared_from=original,
        )
    judgements_retract(round_id=built.rating.pk, answer_id=built.answers["P1/1"].pk, judge_id=built.raters[0].judge_id)
    export = EXPORTS[name]
    expected = "".join(stream(export.columns(study, rubric), export.rows(study, rubric))).encode()
    assert b"".join(export.pieces(study, rubric)) == expected
    assert expected.count(b"\r\n") > len(REASONS)


def test_a_study_without_judgements(cast, instrument) -> None:
    export = EXPORTS["judgements"]
    assert b"".join(export.pieces(cast.study, None)).decode().strip().endswith("shared_from")
