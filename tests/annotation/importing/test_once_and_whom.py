"""An import counts once, and belongs to the right people."""

import json
from collections.abc import Callable

import pytest

from annotation.import_report import ImportReport
from annotation.importers.plan import Source
from annotation.importers.planning import MAX_ANNOTATORS
from annotation.models import JudgementImport, Place, Rater, Seat
from annotation.selectors import raters_expected
from corpus.models import Answer
from scoring.models import Judgement
from studies.models import AuditEntry
from tests.annotation.importing.conftest import WIDE, table
from tests.conftest import Cast

Run = Callable[..., ImportReport]


def test_what_is_stored_is_what_was_said(answers: list[Answer], run: Run) -> None:
    """A blank and an unknown value are no judgements; counters and places are those of the votes."""
    first, second, third = (one.blind_id for one in answers[:3])
    report = run(
        table(
            (first, "anna", "да", "", ""),
            (first, "olga", "что-то", "нет", ""),
            (second, "anna", "", "", ""),
            (third, "olga", "нет", "нет", "да"),
        )
    )
    assert report.imported is not None
    stored = Judgement.objects.values_list(
        "answer__blind_id", "judge__rater__imported_name", "criterion__code", "value", "round__purpose"
    )
    assert set(stored) == {
        (first, "anna", "grammatical", 1.0, "imported"),
        (first, "olga", "logical", 0.0, "imported"),
        (third, "olga", "grammatical", 0.0, "imported"),
        (third, "olga", "logical", 0.0, "imported"),
        (third, "olga", "order", 1.0, "imported"),
    }
    assert [one.reason for one in report.conflicts] == ["unknown_value"]
    assert [one.reason for one in report.skipped] == ["no_annotation"]
    campaign = report.imported.campaign
    campaign.refresh_from_db()
    assert (campaign.state, campaign.raters_per_answer, campaign.n_items, campaign.n_places) == ("closed", 2, 2, 3)
    assert campaign.closed_at and campaign.round.closed_at
    assert set(Seat.objects.values_list("rater__imported_name", "done")) == {("anna", 1), ("olga", 2)}
    numbers = Place.objects.filter(state="done").values_list("item__answer__blind_id", "number")
    assert set(numbers) == {(first, 1), (first, 2), (third, 1)}


def test_said_to_be_new_twice_is_still_one_import(answers: list[Answer], run: Run) -> None:
    """The same command with the same settings, run again."""
    data = table((answers[0].blind_id, "anna", "да", "нет", "да"), (answers[0].blind_id, "olga", "да", "да", "да"))
    chosen = WIDE | {"raters": {"anna": "new", "olga": "new"}}
    assert run(data, settings=chosen).imported
    again = run(data, settings=chosen)
    assert again.already and not again.imported
    assert (JudgementImport.objects.count(), Judgement.objects.count(), Rater.objects.count()) == (1, 6, 2)


def test_somebody_else_of_the_same_name_is_another_rater(answers: list[Answer], run: Run) -> None:
    """11 of one server is not 11 of another, if the person importing says so."""
    assert run(table((answers[0].blind_id, "11", "да", "нет", "да"))).imported
    other = run(table((answers[1].blind_id, "11", "да", "нет", "да")), settings=WIDE | {"raters": {"11": "new"}})
    assert other.imported
    assert set(Rater.objects.values_list("pseudonym", "imported_name")) == {("R1", "11"), ("R2", "11 (2)")}


def test_a_column_of_annotators_that_is_none_is_refused(answers: list[Answer], run: Run) -> None:
    """Else every record would make a rater."""
    rows = [(answers[0].blind_id, f"row {number}", "да", "да", "да") for number in range(MAX_ANNOTATORS + 1)]
    assert run(table(*rows[:-1]), dry_run=True).fault is None
    fault = run(table(*rows)).fault
    assert fault and fault[1].code == "too_many_annotators" and fault[1].detail == str(MAX_ANNOTATORS + 1)
    assert not Rater.objects.exists()


def test_members_who_have_not_begun_are_still_expected(cast: Cast, answers: list[Answer], run: Run) -> None:
    assert raters_expected(cast.study) == 1, "rita, a rater who has not begun"
    run(table((answers[0].blind_id, "anna", "да", "нет", "да")))
    assert raters_expected(cast.study) == 1


def test_no_address_and_no_text_is_kept_with_the_import(answers: list[Answer], run: Run) -> None:
    line = {"id": 1, "text": answers[0].text, "answer": str(answers[0].blind_id), "label": ["g"]}
    report = run(
        Source("anna@example.org.jsonl", json.dumps(line).encode()),
        settings={
            "key": "answer",
            "text": "text",
            "annotator": "file name",
            "labels": {"g": ["grammatical", 1]},
            "raters": {"anna@example.org": "new"},
            "keys": {"x": str(answers[0].blind_id)},
        },
    )
    assert report.imported
    kept = json.dumps([*JudgementImport.objects.values(), *AuditEntry.objects.values()], default=str)
    assert "anna@" not in kept and json.dumps(answers[0].text) not in kept and answers[0].text not in kept


@pytest.mark.parametrize("page", ["", "answers/?show=all", "agreement/", "agreement.csv", "labels/"])
def test_the_pages_of_such_a_campaign(cast: Cast, answers: list[Answer], run: Run, page: str) -> None:
    report = run(table(*((one.blind_id, who, "да", "нет", "да") for one in answers for who in ("anna", "<b>olga</b>"))))
    assert report.imported
    response = cast.client(cast.alice).get(f"/studies/ours/campaigns/{report.imported.campaign_id}/{page}")
    text = response.content.decode()
    assert response.status_code == 200
    assert "<b>olga" not in text and "version None" not in text
