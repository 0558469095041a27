"""One person judged one answer more than once: the last judgement counts, the earlier ones are history."""

import csv
import io
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from annotation.import_report import ImportReport
from annotation.importers.plan import Source
from annotation.models import Campaign, Place, Seat
from annotation.places import label_withdraw
from annotation.versions import chain_verify
from annotation.votes import campaign_agreement, labels_of_round
from corpus.models import Answer
from scoring.models import Judgement
from tests.annotation.importing.conftest import WIDE, YES_NO, ls, ls_annotation, ls_task, table
from tests.conftest import Cast

Run = Callable[..., ImportReport]
LONG = {
    "key": "answer",
    "annotator": "who",
    "criterion_column": "what",
    "value_column": "said",
    "time": "when",
    "time_zone": "Europe/Moscow",
    "criteria": {"grammatical": YES_NO, "logical": YES_NO},
}
HEADER = ("answer", "who", "what", "said", "when")


def live() -> dict[str, float]:
    return dict(Judgement.objects.filter(retracted_at__isnull=True).values_list("criterion__code", "value"))


def history() -> list[tuple[str, float]]:
    rows = Judgement.objects.filter(retracted_at__isnull=False).order_by("pk")
    return list(rows.values_list("criterion__code", "value"))


def skipped(report: ImportReport) -> list[tuple[int | str, str]]:
    return [(one.annotation or one.record, one.reason) for one in report.skipped]


def order_at(number: int, value: str, **more: Any) -> dict[str, Any]:
    return ls_annotation(number, 7, {"order": [value]}, **more)


ORDER = {"key": "answer", "criteria": {"order": YES_NO}}


def test_without_times_the_last_in_the_file_counts(answers: list[Answer], run: Run) -> None:
    data = table(*((answers[0].blind_id, "лена", value, "", "") for value in ("да", "нет", "да")))
    dry = run(data, dry_run=True)
    assert skipped(dry) == [(1, "duplicate"), (2, "duplicate")] and dry.counts["imported"] == 1
    assert run(data).imported
    assert live() == {"grammatical": 1} and history() == [("grammatical", 1), ("grammatical", 0)]
    assert Place.objects.count() == 1 and Seat.objects.get().done == 1


def test_with_times_the_last_by_the_clock_counts(answers: list[Answer], run: Run) -> None:
    """Two names of one person; the later one stands first in the file."""
    late = ls_annotation(1, 7, {"order": ["да"]}, updated_at="2024-05-02T10:00:00Z")
    early = ls_annotation(2, 8, {"order": ["нет"]}, updated_at="2024-05-01T10:00:00Z")
    data = ls(ls_task({"answer": str(answers[0].blind_id)}, late, early))
    report = run(data, settings=ORDER | {"raters": {"8": "=7"}})
    assert skipped(report) == [("2", "duplicate")] and live() == {"order": 1}
    old = Judgement.objects.get(retracted_at__isnull=False)
    assert (old.value, old.made_at, old.retracted_at) == (
        0,
        datetime(2024, 5, 1, 10, tzinfo=UTC),
        datetime(2024, 5, 2, 10, tzinfo=UTC),
    ), "retracted when the later one was made"


def test_where_one_has_no_time_the_file_decides(answers: list[Answer], run: Run) -> None:
    late = order_at(1, "да", updated_at="2024-05-02T10:00:00Z")
    timeless = order_at(2, "нет", updated_at="", created_at="")
    early = order_at(3, "нет", updated_at="2024-05-01T10:00:00Z")
    report = run(ls(ls_task({"answer": str(answers[0].blind_id)}, late, timeless, early)), settings=ORDER)
    assert skipped(report) == [("1", "duplicate"), ("2", "duplicate")] and live() == {"order": 0}
    assert all(one.retracted_at >= one.made_at for one in Judgement.objects.filter(retracted_at__isnull=False))


def test_at_one_time_the_file_decides(answers: list[Answer], run: Run) -> None:
    data = ls(ls_task({"answer": str(answers[0].blind_id)}, order_at(1, "да"), order_at(2, "нет")))
    assert skipped(run(data, settings=ORDER)) == [("1", "duplicate")] and live() == {"order": 0}


def test_what_the_later_one_leaves_open_is_open(answers: list[Answer], run: Run) -> None:
    """Not patched up with what the person said before."""
    key = answers[0].blind_id
    run(table((key, "лена", "да", "да", "да"), (key, "лена", "нет", "", "да")))
    assert live() == {"grammatical": 0, "order": 1}
    assert history() == [("grammatical", 1), ("logical", 1), ("order", 1)]


def test_a_later_record_without_a_value_takes_no_place(answers: list[Answer], run: Run) -> None:
    key = answers[0].blind_id
    report = run(table((key, "лена", "да", "да", "да"), (key, "лена", "?", "", ""), (key, "лена", "", "", "")))
    assert skipped(report) == [(2, "nothing_usable"), (3, "no_annotation")]
    assert live() == {"grammatical": 1, "logical": 1, "order": 1} and history() == []


def test_history_is_no_vote(answers: list[Answer], run: Run) -> None:
    rows = [(answers[0].blind_id, who, "да", "да", "да") for who in ("лена", "миша")]
    run(table((answers[0].blind_id, "лена", "нет", "нет", "нет"), *rows))
    campaign = Campaign.objects.get()
    (label,) = [by_code["order"] for by_code in labels_of_round(campaign).values()]
    assert (label.value, label.votes) == (1, 2)
    assert campaign_agreement(campaign).attempts[0].agreement.n_pairable == 2


def test_history_is_exported_on_request_and_labels_are_frozen_without_it(
    cast: Cast, answers: list[Answer], run: Run
) -> None:
    run(table(*((answers[0].blind_id, "лена", value, "", "") for value in ("да", "нет"))))
    campaign = Campaign.objects.get()
    (version,) = campaign.label_versions.all()
    assert (version.version, version.policy["counts"]["votes"], version.actor) == (1, 1, cast.alice)
    assert chain_verify(campaign) == []
    alice = cast.client(cast.alice)

    def exported(name: str) -> list[tuple[str, bool]]:
        content = b"".join(alice.get(f"/studies/ours/exports/{name}.csv").streaming_content).decode("utf-8-sig")
        rows = csv.DictReader(io.StringIO(content))
        return [(row["value"], bool(row.get("retracted_at"))) for row in rows if row["purpose"] == "imported"]

    assert exported("judgements") == [("0", False)]
    assert sorted(exported("judgement_history")) == [("0", False), ("1", True)]
    label_withdraw(place_id=Place.objects.get().pk, actor=cast.alice, reason="по ошибке")
    assert chain_verify(campaign) == [] and campaign.label_versions.count() == 2


def test_records_of_other_criteria_complete_one_another(answers: list[Answer], run: Run) -> None:
    """A project per criterion, or a record per criterion: nobody said anything twice."""
    key = {"answer": str(answers[0].blind_id)}
    files = [
        Source(f"{name}.json", ls(ls_task(key, ls_annotation(number, 7, {name: ["да"]}))))
        for number, name in enumerate(("grammatical", "order"), start=1)
    ]
    chosen = {"key": "answer", "criteria": {"grammatical": YES_NO, "order": YES_NO}}
    report = run(*files, settings=chosen)
    assert skipped(report) == [] and live() == {"grammatical": 1, "order": 1}
    assert report.counts["imported"] == 1 and Place.objects.get().seconds == 15
    assert report.as_json()["labels"][0]["values"] == {"grammatical": 1, "order": 1}


def test_in_a_record_per_criterion_each_criterion_has_its_last_value(answers: list[Answer], run: Run) -> None:
    key = answers[0].blind_id
    rows = [
        (key, "лена", "logical", "нет", "13.05.2024 10:00"),
        (key, "лена", "grammatical", "да", "14.05.2024 10:00"),
        (key, "лена", "grammatical", "нет", "13.05.2024 12:00"),
    ]
    data = table(*rows, header=HEADER)
    report = run(data, settings=LONG)
    assert skipped(report) == [(3, "duplicate")]
    assert live() == {"logical": 0, "grammatical": 1} and history() == [("grammatical", 0)]
    assert Judgement.objects.get(value=1).made_at == datetime(2024, 5, 14, 7, tzinfo=UTC)
    assert [one["values"] for one in report.as_json()["labels"]] == [{"logical": 0, "grammatical": 1}]


def test_the_same_file_again_is_still_known(answers: list[Answer], run: Run) -> None:
    data = table(*((answers[0].blind_id, "лена", value, "", "") for value in ("да", "нет")))
    first = run(data).imported
    again = run(data)
    assert first and again.already == first and Judgement.objects.count() == 2


@pytest.mark.parametrize("said", [{"R2": "=R1"}, {}])
def test_joined_names_are_one_vote(answers: list[Answer], run: Run, said: dict[str, str]) -> None:
    rows = [(answers[0].blind_id, name, "да", "нет", "да") for name in ("R1", "R2")]
    report = run(table(*rows), settings=WIDE | {"raters": said})
    assert report.counts["imported"] == (1 if said else 2)
    assert len(skipped(report)) == (1 if said else 0)
