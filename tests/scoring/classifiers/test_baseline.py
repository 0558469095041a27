"""The baseline: what it sees, that it repeats itself, and that a stored one runs no code."""

import json
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from django.core.management import call_command
from sklearn.feature_extraction.text import TfidfVectorizer

from scoring.classifiers import baseline, recipes
from scoring.classifiers.data import Dataset, Example, Task
from scoring.classifiers.features import letter_terms, tag_terms
from scoring.classifiers.problems import ClassifierError
from scoring.classifiers.storing import folder_hash
from scoring.classifiers.thresholds import best_threshold
from tests.scoring.classifiers.tiny import dataset_make, sentences
from tests.shared_cases import SHARED

PARAMETERS = recipes.DEFAULTS[recipes.BASELINE]


def fit(dataset: Dataset, *, seed: int = 1) -> baseline.Baseline:
    return baseline.train(dataset, PARAMETERS, seed=seed, progress=lambda done, total: None)


def test_tags_are_case_number_and_the_like() -> None:
    assert list(tag_terms("Кошке"))[:3] == ["<", "NOUN,datv,femn,sing", ">"]
    assert "PREP" not in " ".join(tag_terms("в саду")) and "в" in list(tag_terms("в саду"))
    assert list(tag_terms("the cat", language="en")) == []
    assert list(tag_terms("")) == ["<", ">", "< >"]


def test_letters_stay_within_words() -> None:
    assert set(letter_terms("аб в")) == {" ", "а", "б", " а", "аб", "б ", " аб", "аб ", " аб ", "в", " в", "в ", " в "}


def test_weights_are_those_of_scikit_learn() -> None:
    texts = [text for text, *_ in sentences(30, seed=2)]
    counts = [Counter(letter_terms(text)) for text in texts]
    ours = baseline.Vocabulary.of(counts, 2)
    theirs = TfidfVectorizer(analyzer=lambda text: list(letter_terms(text)), sublinear_tf=True, min_df=2).fit(texts)
    assert ours.terms == list(theirs.get_feature_names_out())
    np.testing.assert_allclose(ours.weigh(counts).toarray(), theirs.transform(texts).toarray(), atol=1e-12)


def test_it_learns_and_repeats_itself(tmp_path: Path) -> None:
    dataset = dataset_make(200)
    hashes = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        recipes.save(fit(dataset), recipes.BASELINE, PARAMETERS, tmp_path / name)
        hashes.append(folder_hash(tmp_path / name))
    assert hashes[0] == hashes[1]
    fresh = sentences(60, seed=9)
    said, cut = recipes.say(recipes.load(tmp_path / "a"), [text for text, *_ in fresh])
    assert [one.value for one in said[0]] == [float(row[1]) for row in fresh]
    assert [one.value for one in said[1]] == [float(row[2]) for row in fresh]
    assert not any(cut)


def test_stored_without_pickle(tmp_path: Path) -> None:
    recipes.save(fit(dataset_make(60)), recipes.BASELINE, PARAMETERS, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"classifier.json", "vocabulary.json", "weights.npz"}
    with np.load(tmp_path / "weights.npz", allow_pickle=False) as arrays:
        assert all(arrays[name].dtype == np.float64 for name in arrays.files)
    # An array of objects, as an attacker would need it, is refused.
    np.savez(tmp_path / "weights.npz", tags=np.array([print], dtype=object), allow_pickle=True)
    with pytest.raises(ClassifierError) as caught:
        recipes.load(tmp_path)
    assert caught.value.code == "weights_corrupt"


@pytest.mark.parametrize("damage", ["weights.npz", "vocabulary.json", "classifier.json"])
def test_damage_is_said(damage: str, tmp_path: Path) -> None:
    recipes.save(fit(dataset_make(60)), recipes.BASELINE, PARAMETERS, tmp_path)
    path = tmp_path / damage
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(ClassifierError) as caught:
        recipes.load(tmp_path)
    assert caught.value.code == "weights_corrupt"


def test_a_graded_scale(tmp_path: Path) -> None:
    """Four values, one of which nobody gave: it is never said, and keeps its place."""
    rng = random.Random(1)
    marks = {"кошка": 0, "мышь": 1, "собака": 3}
    examples = tuple(
        Example(f"{word} {rng.choice(['спала', 'ела'])}", f"r{row % 12}", (marks[word],))
        for row in range(90)
        for word in [rng.choice(list(marks))]
    )
    task = Task("sentence", (0.0, 0.25, 0.5, 1.0))
    recipes.save(fit(Dataset((task,), examples)), recipes.BASELINE, PARAMETERS, tmp_path)
    said, _ = recipes.say(recipes.load(tmp_path), ["кошка ела", "мышь ела", "собака ела"])
    assert [one.value for one in said[0]] == [0.0, 0.25, 1.0]
    assert all(len(one.probabilities) == 4 and sum(one.probabilities) == pytest.approx(1) for one in said[0])


def test_probabilities_are_shares_of_the_data() -> None:
    """Labels are noise with three in four true: whatever it says, it is about that sure."""
    rng = random.Random(7)
    words = ["кошка", "мышь", "собака", "девочка", "спала", "ела", "дома"]
    examples = tuple(
        Example(" ".join(rng.sample(words, 4)), f"r{row % 40}", (int(rng.random() < 0.75),)) for row in range(400)
    )
    model = fit(Dataset((Task("x", (0.0, 1.0)),), examples))
    (found,), _ = model.predict([example.text for example in examples])
    if model.thresholds:  # a slope that is no better than chance is left alone
        assert abs(found[:, 1].mean() - 0.75) < 0.1


def test_the_best_threshold_is_in_the_middle_of_the_best() -> None:
    assert best_threshold(np.array([0.2, 0.3, 0.7, 0.8]), np.array([0, 0, 1, 1])) == pytest.approx(0.5, abs=0.01)
    assert best_threshold(np.array([0.2, 0.3]), np.array([1, 1])) is None


@pytest.mark.skipif(not (SHARED / "data" / "rucola").exists(), reason="../shared/data is not beside the repository")
def test_rucola_in_domain(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """The commands of docs/classifiers.md: MCC of at least 0.25 in domain, far less out of it."""

    folder = SHARED / "data" / "rucola"
    columns = {"text_column": "sentence", "label_column": "acceptable"}
    call_command("classifier_train", train=folder / "in_domain_train.csv", out=tmp_path / "made", **columns)
    call_command(
        "classifier_evaluate",
        str(tmp_path / "made"),
        data=[folder / "in_domain_dev.csv", folder / "out_of_domain_dev.csv"],
        json=tmp_path / "found.json",
        **columns,
    )
    found = json.loads((tmp_path / "found.json").read_text())
    inside, outside = (
        found[name]["estimates"]["mcc"]["value"] for name in ("in_domain_dev.csv", "out_of_domain_dev.csv")
    )
    assert inside >= 0.25 and outside < 0.2
    assert found["in_domain_dev.csv"]["majority"]["f1_micro"] == pytest.approx(733 / 983)
