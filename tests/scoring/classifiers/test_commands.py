"""classifier_train, classifier_evaluate, classifier_apply on a study and on files."""

import csv
import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from corpus.models import Answer, Instrument
from reports.classifying import same_person
from scoring.models import Application, Classifier, Judgement, Rubric, Split, SplitSide
from surveys.models import Participant
from tests.api.conftest import add_survey
from tests.conftest import Cast
from tests.scoring.classifiers.conftest import people_answer
from tests.scoring.classifiers.tiny import sentences


def run(name: str, *arguments: str, **options) -> str:
    out = StringIO()
    call_command(name, *arguments, stdout=out, **options)
    return out.getvalue()


@pytest.mark.django_db
def test_a_study_from_labels_to_judgements(
    cast: Cast,
    folder: Path,
    rated: list[Answer],
    test_of_four: Instrument,
    tmp_path: Path,
) -> None:
    people_answer(test_of_four, 3, kind="model", seed=4)
    out = run("classifier_train", study="ours", criteria="grammatical,logical", hold_out=1, seed=3)
    assert "21 people train, 9 test" in out
    classifier = Classifier.objects.get()
    assert classifier.state == "finished" and len(classifier.parameters["held_out"]) == 1
    assert classifier.n_train == 63
    text = run("classifier_evaluate", str(classifier.pk), study="ours", json=tmp_path / "found.json")
    assert "grammatical, held_out: 9 texts by 9" in text and "always 1" in text
    assert len(json.loads((tmp_path / "found.json").read_text())) >= 6
    assert f"{132} answers judged" in run("classifier_apply", str(classifier.pk), study="ours")
    assert Judgement.objects.filter(judge=classifier.judge).count() == 264
    assert "0 answers judged" in run("classifier_apply", "all", study="ours")


@pytest.mark.django_db
def test_left_to_the_workers(cast: Cast, folder: Path, rated: list[Answer]) -> None:
    assert "waits for a worker" in run("classifier_train", study="ours", criteria="logical", queue=True)
    assert Classifier.objects.get().state == "queued"
    run("classifier_train", again=Classifier.objects.get().pk)
    run("classifier_apply", "all", study="ours", queue=True)
    assert Application.objects.get().state == "queued"


@pytest.mark.django_db
def test_what_goes_wrong_is_said(cast: Cast, folder: Path, rated: list[Answer], tmp_path: Path) -> None:
    for words, name, arguments, options in [
        ("no study nowhere", "classifier_train", [], {"study": "nowhere"}),
        ("no judged criterion sequence", "classifier_train", [], {"study": "ours", "criteria": "sequence"}),
        ("of criterion order are 1", "classifier_train", [], {"study": "ours"}),
        ("no parameter 'epochs'", "classifier_train", [], {"study": "ours", "parameters": {"epochs": 3}}),
        ("between 0 and 1", "classifier_train", [], {"study": "ours", "fraction": 1.0}),
        ("--study, or --train", "classifier_train", [], {}),
        ("no labels of closed", "classifier_train", [], {"study": "theirs"}),
        ("no classifier 999", "classifier_evaluate", ["999"], {"study": "ours"}),
        ("--study, or --data", "classifier_evaluate", [str(tmp_path)], {}),
        ("no classifier x", "classifier_apply", ["x"], {"study": "ours"}),
        ("not in", "classifier_apply", [str(tmp_path)], {"data": tmp_path / "a", "out": tmp_path / "b"}),
        ("no classifier 999", "classifier_train", [], {"again": 999}),
    ]:
        with pytest.raises(CommandError, match=words):
            run(name, *arguments, **options)


@pytest.mark.django_db
def test_one_person_in_two_surveys(cast: Cast, test_of_four: Instrument, rated: list[Answer], rubric: Rubric) -> None:
    """The external id is known to surveys alone, and reaches the split."""
    respondents = sorted({answer.sitting.respondent_id for answer in rated})
    surveys = [add_survey(cast.study, test_of_four, slug) for slug in ("first", "second")]
    for number, respondent in enumerate(respondents):
        Participant.objects.create(
            respondent_id=respondent,
            survey=surveys[number % 2],
            digest=f"{number}",
            external_id=f"person-{number // 2}" if number < 20 else "",
        )
    assert same_person(cast.study) == [
        {one, two} for one, two in zip(respondents[:20:2], respondents[1:20:2], strict=True)
    ]
    for seed in range(4):
        run("classifier_train", study="ours", criteria="logical", split_seed=seed, queue=True)
        sides = dict(SplitSide.objects.filter(split=Split.objects.latest("pk")).values_list("respondent", "trains"))
        assert all(sides[one] == sides[two] for one, two in zip(respondents[:20:2], respondents[1:20:2], strict=True))


def write(path: Path, rows: list[tuple[str, int]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([("text", "label"), *rows])
    return path


def test_files_by_a_transformer(tmp_path: Path, tiny_base: Path) -> None:
    """Trained, measured and applied without a database."""
    train = write(tmp_path / "train.csv", [row[:2] for row in sentences(120, seed=1)])
    dev = write(tmp_path / "dev.csv", [row[:2] for row in sentences(40, seed=2)] + [("Собака лаяла.", 1)])
    made = tmp_path / "made"
    parameters = {"epochs": 6, "learning_rate": 2e-3, "max_tokens": 16}
    run("classifier_train", train=train, out=made, recipe="transformer", base=str(tiny_base), parameters=parameters)
    assert {path.name for path in made.iterdir()} >= {"net-0", "tokenizer", "model_card.md", "classifier.json"}
    run("classifier_evaluate", str(made), data=[dev], train=train, json=tmp_path / "found.json")
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["dev.csv"]["estimates"]["f1_macro"]["value"] > 0.9
    assert found["dev.csv, texts unseen in training"]["n"] < 41
    assert "41 texts judged" in run("classifier_apply", str(made), data=dev, out=tmp_path / "said.csv")
    with (tmp_path / "said.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 41 and {row["acceptable"] for row in rows} <= {"0", "1"}


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    out = tmp_path / "made"
    for words, content in [
        ("no column label", "text\nа\n"),
        ("row 3", "text,label\nа,1\nб,да\n"),
        ("2 labelled", "text,label\nа,1\nб,0\n"),
        ("row 2", "text,label\nа,nan\n"),
    ]:
        (tmp_path / "bad.csv").write_text(content, encoding="utf-8")
        with pytest.raises(CommandError, match=words):
            run("classifier_train", train=tmp_path / "bad.csv", out=out)
    (tmp_path / "bad.csv").write_bytes(b"text,label\n\xff\xfe,1\n")
    with pytest.raises(CommandError, match="cannot be used"):
        run("classifier_train", train=tmp_path / "bad.csv", out=out)
    assert not out.exists()
