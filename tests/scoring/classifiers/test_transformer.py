"""The transformer recipes on a small model made here: they learn, repeat themselves, and resume."""

from pathlib import Path

import numpy as np
import pytest
import torch

from scoring.classifiers import recipes
from scoring.classifiers.data import Dataset
from scoring.classifiers.problems import ClassifierError, StoppedError
from scoring.classifiers.storing import folder_hash
from scoring.classifiers.tokens import batches_of, encode, padded
from tests.scoring.classifiers.tiny import QUICK, base_make, dataset_make, sentences, tokenizer_make, trained_make


def quiet(done: int, total: int) -> None:
    assert 0 <= done <= total


def fit(recipe: str, base: Path, dataset: Dataset, *, seed: int = 1, progress=quiet, checkpoint=None, **more):
    parameters = recipes.parameters_of(recipe, QUICK | more)
    return recipes.train(
        recipe, dataset, parameters, base=str(base), seed=seed, progress=progress, checkpoint=checkpoint, threads=1
    )


def stored(model, recipe: str, folder: Path) -> str:
    folder.mkdir()
    recipes.save(model, recipe, recipes.parameters_of(recipe, QUICK), folder)
    return folder_hash(folder)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return base_make(tmp_path_factory.mktemp("base") / "tiny--bert")


@pytest.mark.parametrize("recipe", [recipes.TRANSFORMER, recipes.SHARED])
def test_it_learns_what_can_be_learned(recipe: str, base: Path, tmp_path: Path) -> None:
    model = fit(recipe, base, dataset_make(200))
    fresh = sentences(100, seed=99)
    before, _ = recipes.say(model, [text for text, *_ in fresh])
    right = [
        sum(said.value == row[1 + place] for said, row in zip(column, fresh, strict=True))
        for place, column in enumerate(before)
    ]
    assert min(right) >= 90, right
    assert len(model.nets) == (1 if recipe == recipes.SHARED else 2)
    stored(model, recipe, tmp_path / "kept")
    after, _ = recipes.say(recipes.load(tmp_path / "kept"), [text for text, *_ in fresh])
    assert [[said.value for said in column] for column in after] == [[said.value for said in c] for c in before]
    np.testing.assert_allclose(
        [said.confidence for said in after[0]], [said.confidence for said in before[0]], atol=1e-6
    )


def test_the_same_seed_gives_the_same_weights(base: Path, tmp_path: Path) -> None:
    dataset = dataset_make(60)
    first, second, other = (
        stored(fit(recipes.TRANSFORMER, base, dataset, seed=seed, epochs=2), recipes.TRANSFORMER, tmp_path / name)
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    assert first == second != other


def test_training_leaves_torchs_own_generator_alone(base: Path) -> None:
    torch.manual_seed(3)
    state = torch.get_rng_state()
    fit(recipes.SHARED, base, dataset_make(40), epochs=1)
    assert torch.equal(torch.get_rng_state(), state)


class Stopper:
    """Stops after so many reports, as a killed process does."""

    def __init__(self, after: int) -> None:
        self.left = after

    def __call__(self, done: int, total: int) -> None:
        self.left -= 1
        if self.left < 0:
            raise StoppedError


@pytest.mark.parametrize("cut", [0.0, 0.25])
@pytest.mark.parametrize("after", [3, 9, 14, 19])
def test_a_training_taken_up_again_ends_with_the_same_weights(
    after: int, cut: float, base: Path, tmp_path: Path
) -> None:
    """Two networks of three epochs of three or four steps: stopped in the first epoch or later."""
    dataset, kept = dataset_make(60), tmp_path / "training"
    whole = stored(fit(recipes.TRANSFORMER, base, dataset, epochs=3, cut=cut), recipes.TRANSFORMER, tmp_path / "whole")
    with pytest.raises(StoppedError):
        fit(recipes.TRANSFORMER, base, dataset, epochs=3, cut=cut, checkpoint=kept, progress=Stopper(after))
    reports: list[int] = []

    def report(done: int, total: int) -> None:
        reports.append(done)

    resumed = fit(recipes.TRANSFORMER, base, dataset, epochs=3, cut=cut, checkpoint=kept, progress=report)
    assert stored(resumed, recipes.TRANSFORMER, tmp_path / "resumed") == whole
    if after > 9:
        assert reports[0] > 0, "it began anew"


def test_what_was_kept_of_another_training_is_not_taken_up(base: Path, tmp_path: Path) -> None:
    kept = tmp_path / "training"
    with pytest.raises(StoppedError):
        fit(recipes.SHARED, base, dataset_make(60, seed=1), checkpoint=kept, epochs=3, progress=Stopper(9))
    fresh = stored(fit(recipes.SHARED, base, dataset_make(60, seed=2), epochs=3), recipes.SHARED, tmp_path / "a")
    again = fit(recipes.SHARED, base, dataset_make(60, seed=2), checkpoint=kept, epochs=3)
    assert stored(again, recipes.SHARED, tmp_path / "b") == fresh


def test_damaged_checkpoints_are_begun_anew(base: Path, tmp_path: Path) -> None:
    dataset, kept = dataset_make(60), tmp_path / "training"
    whole = stored(fit(recipes.SHARED, base, dataset, epochs=3), recipes.SHARED, tmp_path / "whole")
    with pytest.raises(StoppedError):
        fit(recipes.SHARED, base, dataset, epochs=3, checkpoint=kept, progress=Stopper(9))
    (kept / "epoch-0" / "optimizer").write_bytes(b"\x00" * 50)
    again = fit(recipes.SHARED, base, dataset, epochs=3, checkpoint=kept)
    assert stored(again, recipes.SHARED, tmp_path / "again") == whole


def test_the_cut_chooses_threshold_and_epoch(base: Path) -> None:
    model = fit(recipes.SHARED, base, dataset_make(200), cut=0.3)
    assert set(model.thresholds) == {"grammatical", "logical"}
    assert fit(recipes.SHARED, base, dataset_make(60), epochs=1).thresholds == {}


def test_long_answers_are_read_by_their_beginning(base: Path) -> None:
    model = fit(recipes.SHARED, base, dataset_make(40), epochs=1)
    long = "кошка спала дома " * 6_000  # more than 100,000 characters
    said, cut = recipes.say(
        model, ["кошка спала дома", long, "ж" * 100_000, " ".join(["мышь"] * 30), " ".join(["мышь"] * 31)]
    )
    assert cut == [False, True, True, False, True]  # 32 places, two of them for the ends
    assert len(said[0]) == 5


def test_equal_texts_are_read_once(base: Path) -> None:
    model = fit(recipes.SHARED, base, dataset_make(40), epochs=1)
    totals = []
    said, _ = recipes.say(model, ["мышь ела", "кошка ела", "мышь ела"], lambda done, total: totals.append(total))
    assert totals[-1] == 2 and said[0][0] == said[0][2]


def test_batches_hold_little_padding_and_everything_once() -> None:
    lengths = [3, 40, 5, 700, 12, 12, 3]
    batches = batches_of(lengths, budget=48)
    assert sorted(place for batch in batches for place in batch) == list(range(7))
    assert [3] in batches  # longer than the budget: alone
    assert all(len(batch) * max(lengths[place] for place in batch) <= 48 for batch in batches if batch != [3])


def test_padding_changes_no_probability(base: Path) -> None:
    model = fit(recipes.SHARED, base, dataset_make(40), epochs=1)
    texts = [text for text, *_ in sentences(20, seed=4)] + ["мышь", "кошка " * 20]
    together, _ = model.predict(texts)
    alone = np.concatenate([model.predict([text])[0][0] for text in texts])
    np.testing.assert_allclose(together[0], alone, atol=1e-5)


def test_rows_of_one_length_need_no_mask() -> None:
    assert padded([[1, 2], [3, 4]], 0)[1] is None
    ids, mask = padded([[1, 2], [3]], 0)
    assert ids.tolist() == [[1, 2], [3, 0]] and mask.tolist() == [[1, 1], [1, 0]]


def test_nothing_to_encode() -> None:
    assert encode(tokenizer_make(), [], 8).ids == []


def test_a_loss_that_is_no_number_stops_it(base: Path) -> None:
    with pytest.raises(ClassifierError) as caught:
        fit(recipes.SHARED, base, dataset_make(60), learning_rate=1e30)
    assert caught.value.code == "diverged"


def test_an_acceptability_model_as_it_is(tmp_path: Path) -> None:
    base = trained_make(tmp_path / "rucola")
    model = fit_as_is(base)
    said, _ = recipes.say(model, ["мышь ела дома", "ела"])
    assert said[0] == said[1]  # the same for every criterion
    stored_as = tmp_path / "kept"
    stored_as.mkdir()
    recipes.save(model, recipes.ACCEPTABILITY, {"max_tokens": 32}, stored_as)
    again, _ = recipes.say(recipes.load(stored_as), ["мышь ела дома", "ела"])
    assert [[one.value for one in column] for column in again] == [[one.value for one in column] for column in said]
    confidences = [one.confidence for column in said for one in column]
    assert [one.confidence for column in again for one in column] == pytest.approx(confidences, abs=1e-6)


def fit_as_is(base: Path):
    return recipes.train(
        recipes.ACCEPTABILITY, dataset_make(2), {"max_tokens": 32}, base=str(base), seed=1, progress=quiet
    )


def test_an_acceptability_model_has_two_labels(tmp_path: Path) -> None:
    for folder in (trained_make(tmp_path / "three", labels=3), base_make(tmp_path / "none")):
        with pytest.raises(ClassifierError) as caught:
            fit_as_is(folder)
        assert caught.value.code == "base_wrong_kind"
