"""What of a classifier goes out, what comes of a release that was made before classifiers did, and what is refused."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from django.utils import timezone

from corpus.models import Answer
from reports.releases import layout
from reports.releases.importing import release_import
from scoring.models import Classifier, Judge, Judgement, Round, Split, SplitSide
from scoring.services import automatic_round_create, paper_rubric
from tests.reports.releases.conftest import Released, archive_of, everything_is_gone, files_of
from tests.reports.releases.test_refusals import Files, edited, packed, refused

OLD = Path(__file__).parent / "old" / "format-1.zip"
"""A release of the fixture's study, as it was made before classifiers came along."""


@pytest.fixture
def judged(released: Released) -> Classifier:
    """A classifier that learned from Ann and from a person who is not released, and was kept from the third task."""
    split = Split.objects.create(study=released.study, seed=7, fraction=0.7, people_hash="1" * 64)
    for name, trains in (("ann", True), ("no consent", True), ("ben", False)):
        SplitSide.objects.create(split=split, respondent=released.people[name].respondent, trains=trains)
    stimulus = released.survey.instrument.stimuli.get(position=3)
    made = Classifier.objects.create(
        judge=Judge.objects.create(kind=Judge.Kind.CLASSIFIER),
        study=released.study,
        rubric=paper_rubric(),
        split=split,
        title="shared · /home/lena/models/rubert",
        recipe="shared",
        base_model="/home/lena/models/rubert",
        parameters={"epochs": 5, "seed": 4, "held_out": [stimulus.pk]},
        n_train=40,
        data_hash="a" * 64,
        weights_hash="b" * 64,
        state="finished",
        finished_at=timezone.now(),
    )
    made.criteria.set(made.rubric.criteria.filter(code__in=["grammatical", "order"]))
    round_ = automatic_round_create(study=released.study, rubric=made.rubric, judge=made.judge)
    for answer in Answer.objects.filter(sitting__instrument=released.survey.instrument, outcome="given"):
        for criterion in made.criteria.all():
            Judgement.objects.create(
                round=round_, answer=answer, criterion=criterion, judge=made.judge, value=1, confidence=0.625
            )
    return made


def rows_of(files: Files, name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(files[layout.TABLES[name].path].decode(), newline="")))


@pytest.mark.django_db
def test_what_goes_out_of_a_classifier(released: Released, judged: Classifier) -> None:
    files = files_of(archive_of(released.release()))
    row = next(row for row in rows_of(files, "judges") if row["recipe"])
    assert (row["title"], row["base_model"], row["criteria"]) == (
        "shared · rubert",
        "rubert",
        '["grammatical", "order"]',
    )
    assert json.loads(row["parameters"]) == {"epochs": 5, "seed": 4}
    assert json.loads(row["held_out"]) == [["small", 1, 3]]
    assert (row["n_train"], row["data_sha256"], row["weights_sha256"]) == ("40", "a" * 64, "b" * 64)
    (split,) = rows_of(files, "splits")
    assert (row["split"], split["seed"], split["fraction"]) == (split["split"], "7", "0.7")
    assert (split["n_train"], split["n_test"]) == ("2", "1")
    people = {one["respondent"] for one in rows_of(files, "sittings") if one["kind"] == "human"}
    sides = {one["respondent"]: one["side"] for one in rows_of(files, "sides")}
    assert sides.keys() == people and sorted(sides.values()) == ["test", "train"]
    said = [one for one in rows_of(files, "judgements") if one["judge"] == row["judge"]]
    answers = [one["answer"] for one in rows_of(files, "answers") if one["outcome"] == "given"]
    assert len(said) == 2 * len(answers) and {one["answer"] for one in said} == set(answers)
    assert {one["confidence"] for one in said} == {"0.625"}
    card = files[layout.README].decode()
    assert "shared · rubert, a classifier (grammatical, order)" in card and "Model M, a language model" in card
    for path, data in files.items():
        assert b"lena/models" not in data, path


@pytest.mark.django_db
def test_a_study_that_was_imported_is_released_again(released: Released, judged: Classifier) -> None:
    first = files_of(archive_of(released.release()))
    done = release_import(stream=io.BytesIO(packed(first)), name="r.zip", slug="copy", actor=None)
    restored = Classifier.objects.get(study=done.study)
    assert restored.imported and not judged.imported
    assert restored.judge.judgements.count() > 0
    released.survey.instrument.study = done.study
    again = files_of(archive_of(released.release()))
    (old,), (new,) = ([row for row in rows_of(files, "judges") if row["recipe"]] for files in (first, again))
    same = [name for name in old if name not in ("study", "judge", "judged_from", "judged_until")]
    assert [old[name] for name in same] == [new[name] for name in same]
    # When it judged is not known here: the import's day would say something else.
    assert old["judged_until"] and not new["judged_until"]


@pytest.mark.django_db
def test_a_release_from_before_classifiers_comes_in() -> None:
    with OLD.open("rb") as stream:
        done = release_import(stream=stream, name="old.zip", actor=None)
    assert done.study is not None and done.left_aside == {"judgements_classifier": 1}
    assert done.counts["people"] == 2 and done.counts["automatic_judges"] == 1
    assert Judgement.objects.filter(judge__kind="model", round__purpose=Round.Purpose.AUTOMATIC).count() == 1
    assert not Classifier.objects.exists() and not Split.objects.exists()


@pytest.mark.django_db
def test_the_format_says_which_files_there_are(released: Released) -> None:
    files = files_of(archive_of(released.release()))
    splits = layout.TABLES["splits"].path
    assert refused(packed({path: data for path, data in files.items() if path != splits})).code == "absent"
    old = files_of(OLD.read_bytes())
    everything_is_gone()
    assert refused(packed(old | {splits: files[splits]})).code == "unexpected"
    judges = layout.TABLES["judges"].path
    assert refused(packed(old | {judges: files[judges]})).code == "columns"


@pytest.mark.django_db
def test_a_classifier_that_cannot_be(released: Released, judged: Classifier) -> None:
    files = files_of(archive_of(released.release()))

    def of(**cells: str) -> Callable[[list[dict[str, str]]], None]:
        def change(rows: list[dict[str, str]]) -> None:
            next(row for row in rows if row["recipe"]).update(cells)

        return change

    for cells, code in (
        ({"recipe": "magic"}, "value"),
        ({"criteria": '["kindness"]'}, "reference"),
        ({"criteria": "[]"}, "value"),
        ({"criteria": '["order", "order"]'}, "value"),
        ({"parameters": '{"seed": "x"}'}, "value"),
        ({"parameters": "3"}, "value"),
        ({"held_out": '[["small", 1, 9]]'}, "reference"),
        ({"held_out": '[["small", 1, [3]]]'}, "reference"),
        ({"held_out": '["abc"]'}, "value"),
        ({"split": "9"}, "reference"),
        ({"split": ""}, "reference"),
        ({"n_train": "-1"}, "value"),
        ({"n_train": "99999999999999"}, "value"),
        ({"weights_sha256": ""}, "value"),
        ({"weights_sha256": "../../etc"}, "value"),
        ({"data_sha256": "x"}, "value"),
        ({"title": "x" * 201}, "value"),
        ({"base_model": "x" * 301}, "value"),
    ):
        assert refused(packed(edited(files, "judges", of(**cells)))).code == code, cells
    for table, column, value, code in (
        ("splits", "fraction", "1", "value"),
        ("splits", "seed", "-1", "value"),
        ("sides", "side", "both", "value"),
        ("sides", "split", "4", "reference"),
    ):
        change = edited(files, table, lambda rows, column=column, value=value: rows[0].update({column: value}))
        assert refused(packed(change)).code == code, (table, column)
    model = next(row["respondent"] for row in rows_of(files, "sittings") if row["kind"] == "model")
    assert refused(packed(edited(files, "sides", lambda rows: rows[0].update(respondent=model)))).code == "value"
    assert refused(packed(edited(files, "sides", lambda rows: rows.append(rows[0])))).code == "twice"


@pytest.mark.django_db
def test_a_round_is_of_the_judge_that_it_names(released: Released, judged: Classifier) -> None:
    files = files_of(archive_of(released.release()))

    def give(rows: list[dict[str, str]]) -> None:
        next(row for row in rows if row["confidence"] == "0.625").update(judge="model-1", judge_kind="model")

    assert refused(packed(edited(files, "judgements", give))).code == "reference"
