"""A study's classifier: from closed labels to stored weights, and what can go wrong on the way."""

import json
import os
from pathlib import Path

import pytest
from django.db import IntegrityError, transaction

from corpus.models import Answer, Instrument, Sitting
from corpus.services import sitting_withdraw
from scoring import tasks
from scoring.classifiers import finetuning, jobs, recipes, storing
from scoring.classifiers import training as training_module
from scoring.classifiers.applying import model_of
from scoring.classifiers.jobs import JobProgress, job_cancel, job_claim, job_lock
from scoring.classifiers.problems import ClassifierError, StoppedError, problem_text
from scoring.classifiers.services import (
    ParameterUnknownError,
    classifier_create,
    classifier_restart,
    classifiers_flag_withdrawn,
    held_out_choose,
)
from scoring.classifiers.study_data import labelled_of, training_set
from scoring.classifiers.training import classifier_work
from scoring.models import Classifier, Criterion, Evaluation, Judgement, Round, Rubric, Split, SplitSide
from scoring.services import round_close
from studies.models import AuditEntry
from tests.conftest import Cast
from tests.scoring.classifiers.conftest import make_split, people_answer, rate
from tests.scoring.classifiers.tiny import QUICK, base_make, trained_make

pytestmark = pytest.mark.django_db


def make(split: Split, criteria: list[Criterion], recipe: str = recipes.BASELINE, **more) -> Classifier:
    if recipe in (recipes.TRANSFORMER, recipes.SHARED):
        more["parameters"] = QUICK | {"epochs": 2} | more.get("parameters", {})
    return classifier_create(split=split, criteria=criteria, recipe=recipe, actor=None, enqueue=False, **more)


def worked(classifier: Classifier) -> Classifier:
    assert classifier_work(classifier.pk)
    classifier.refresh_from_db()
    return classifier


# --- the split ---------------------------------------------------------------------------------------------------


def test_the_split_is_made_once_and_kept(cast: Cast, rubric: Rubric, rated: list[Answer]) -> None:
    first = make_split(cast.study, rubric)
    assert make_split(cast.study, rubric) == first != make_split(cast.study, rubric, seed=2)
    assert SplitSide.objects.filter(split=first, trains=True).count() == 21
    assert SplitSide.objects.filter(split=first, trains=False).count() == 9
    assert AuditEntry.objects.filter(action="split_make").count() == 2


def test_one_person_in_two_surveys_is_on_one_side(cast: Cast, rubric: Rubric, rated: list[Answer]) -> None:
    respondents = sorted({answer.sitting.respondent_id for answer in rated})
    pairs = tuple(zip(respondents[::2], respondents[1::2], strict=True))
    for seed in range(5):
        sides = dict(
            SplitSide.objects.filter(split=make_split(cast.study, rubric, seed=seed, same=pairs)).values_list(
                "respondent", "trains"
            )
        )
        assert all(sides[one] == sides[other] for one, other in pairs)


def test_only_people_with_labels_are_divided(
    cast: Cast, rubric: Rubric, rated: list[Answer], test_of_four: Instrument
) -> None:
    people_answer(test_of_four, 2, kind="model", seed=5)
    people_answer(test_of_four, 2, seed=6)  # not rated
    Sitting.objects.filter(pk=rated[0].sitting_id).update(standing="excluded")
    assert SplitSide.objects.filter(split=make_split(cast.study, rubric)).count() == 29


def test_labels_of_open_rounds_are_not_learned_from(
    cast: Cast, rubric: Rubric, rating: Round, test_of_four: Instrument, learned: list[Criterion]
) -> None:
    people_answer(test_of_four, 5, round_=rating)
    with pytest.raises(ClassifierError) as caught:
        make_split(cast.study, rubric)
    assert caught.value.code == "no_labels"
    round_close(round_id=rating.pk)
    assert SplitSide.objects.filter(split=make_split(cast.study, rubric)).count() == 5


def test_an_open_second_campaign_does_not_change_what_is_learned(
    cast: Cast, rubric: Rubric, rated: list[Answer], learned: list[Criterion]
) -> None:
    before = labelled_of(study=cast.study, criteria=learned)
    second = Round.objects.create(study=cast.study, rubric=rubric, purpose=Round.Purpose.RATING)
    rate(second, {answer: [0, 0] for answer in rated})
    assert labelled_of(study=cast.study, criteria=learned) == before


def test_refusals_and_held_out_stimuli_teach_nothing(cast: Cast, rated: list[Answer], learned: list[Criterion]) -> None:
    Answer.objects.filter(pk=rated[0].pk).update(text="знаю")
    answers = labelled_of(study=cast.study, criteria=learned)
    everybody = {answer.respondent_id for answer in answers}
    stimulus = rated[1].stimulus_id
    dataset = training_set(answers, criteria=learned, respondents=everybody, held_out=[stimulus], language="ru")
    assert len(answers) == 120 and len(dataset.examples) == 89
    assert held_out_choose([1, 2, 3], n=5, seed=1) != [1, 2, 3]


# --- training ----------------------------------------------------------------------------------------------------


def test_the_baseline_is_trained_and_stored(folder: Path, divided: Split, learned: list[Criterion]) -> None:
    classifier = worked(make(divided, learned))
    assert (classifier.state, classifier.problem) == ("finished", "")
    assert classifier.n_train == 84 and classifier.done == classifier.total == 4
    stored = storing.folder_of(classifier.pk, classifier.weights_hash)
    assert storing.folder_hash(stored) == classifier.weights_hash
    assert sorted(path.name for path in folder.iterdir()) == [stored.name]
    card = json.loads((stored / "model_card.json").read_text())
    assert card["learned_from"]["respondents"] == 21 and card["weights_hash"] == classifier.weights_hash
    assert "кошка" not in (stored / "model_card.md").read_text()
    said, _ = recipes.say(model_of(classifier), ["кошка спала дома", "кошка спать дома", "мышь ела в супе"])
    assert [one.value for one in said[0]] == [1.0, 0.0, 1.0]
    assert [one.value for one in said[1]] == [1.0, 1.0, 0.0]


@pytest.mark.parametrize("recipe", [recipes.TRANSFORMER, recipes.SHARED])
def test_a_transformer_is_trained_and_repeats_itself(
    recipe: str, folder: Path, divided: Split, learned: list[Criterion], tiny_base: Path
) -> None:
    first = worked(make(divided, learned, recipe, base_model=str(tiny_base)))
    second = worked(make(divided, learned, recipe, base_model=str(tiny_base)))
    other = worked(make(divided, learned, recipe, base_model=str(tiny_base), seed=2))
    assert first.state == "finished" and first.weights_hash == second.weights_hash != other.weights_hash
    assert first.total == first.done == {"transformer": 2, "shared": 1}[recipe] * 2 * 6
    assert {path.name for path in folder.iterdir()} == {
        storing.folder_of(one.pk, one.weights_hash).name for one in (first, second, other)
    }


def test_an_acceptability_model_needs_no_labels_of_every_class(
    folder: Path, divided: Split, rubric: Rubric, tmp_path: Path
) -> None:
    base = trained_make(tmp_path / "rucola")
    judged = list(rubric.criteria.filter(kind="judged"))  # order has one class only
    classifier = worked(make(divided, judged, recipes.ACCEPTABILITY, base_model=str(base)))
    assert (classifier.state, classifier.n_train) == ("finished", 0)


def test_a_finished_one_is_not_trained_again(folder: Path, divided: Split, learned: list[Criterion]) -> None:
    classifier = worked(make(divided, learned))
    assert not classifier_work(classifier.pk)
    assert not classifier_restart(classifier=classifier, actor=None, enqueue=False)


def test_who_holds_the_lock_is_alone(
    folder: Path, divided: Split, learned: list[Criterion], django_db_blocker: object
) -> None:
    classifier = make(divided, learned)
    with job_lock(Classifier, classifier.pk) as taken:
        assert taken
        assert not classifier_work(classifier.pk)
    assert classifier_work(classifier.pk)


def test_an_older_attempt_writes_nothing_more(folder: Path, divided: Split, learned: list[Criterion]) -> None:
    classifier = make(divided, learned)
    old = job_claim(Classifier, classifier.pk)
    new = job_claim(Classifier, classifier.pk)
    assert new == old + 1
    with pytest.raises(StoppedError):
        JobProgress(Classifier, classifier.pk, old)(1, 2)
    jobs.job_fail(Classifier, classifier.pk, old, RuntimeError())
    classifier.refresh_from_db()
    assert classifier.state == "running"


# --- what can go wrong -------------------------------------------------------------------------------------------


def failed(classifier: Classifier, code: str) -> str:
    classifier = worked(classifier)
    assert (classifier.state, classifier.problem, classifier.weights_hash) == ("failed", code, "")
    text = problem_text(classifier.problem, classifier.problem_detail)
    assert text and "%(" not in text
    return text


def test_too_few_labels(
    folder: Path, cast: Cast, rubric: Rubric, rating: Round, test_of_four: Instrument, learned
) -> None:
    people_answer(test_of_four, 5, round_=rating)
    round_close(round_id=rating.pk)
    assert "12" in failed(make(make_split(cast.study, rubric), learned), "too_few_labels")


def test_one_class_only(folder: Path, divided: Split, rubric: Rubric) -> None:
    order = list(rubric.criteria.filter(code="order"))
    assert "order" in failed(make(divided, order), "one_class")
    assert not folder.exists()


def test_torch_is_not_there(
    folder: Path, divided: Split, learned: list[Criterion], monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(name: str) -> None:
        raise ModuleNotFoundError("No module named 'torch'")

    monkeypatch.setattr(recipes.importlib, "import_module", absent)
    assert "make ml" in failed(make(divided, learned, recipes.TRANSFORMER), "torch_missing")


def test_no_base_model_and_no_hub(folder: Path, settings, divided: Split, learned: list[Criterion]) -> None:
    """Nothing is fetched from anywhere: the tests' sockets would refuse it."""
    settings.HF_ENDPOINT = ""
    text = failed(make(divided, learned, recipes.TRANSFORMER), "base_missing")
    assert str(folder / "bases" / "ai-forever--ruBert-base") in text and "HF_ENDPOINT" in text


def test_a_full_disk_leaves_the_earlier_classifier_and_can_be_started_again(
    folder: Path, divided: Split, learned: list[Criterion], monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier = worked(make(divided, learned))
    classifier = make(divided, learned)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(training_module.recipes, "save", full)
        failed(classifier, "disk_full")
    assert [path.name for path in folder.iterdir()] == [storing.folder_of(earlier.pk, earlier.weights_hash).name]
    model_of(earlier)
    assert classifier_restart(classifier=classifier, actor=None, enqueue=False)
    assert worked(classifier).state == "finished"


def test_a_disk_that_fills_up_between_epochs(
    folder: Path, divided: Split, learned: list[Criterion], tiny_base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise finetuning.SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(finetuning, "save_file", full)
    failed(make(divided, learned, recipes.SHARED, base_model=str(tiny_base)), "disk_full")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written(folder: Path, divided: Split, learned: list[Criterion]) -> None:
    folder.mkdir()
    folder.chmod(0o500)
    failed(make(divided, learned), "folder_unwritable")


def test_damaged_weights_are_noticed(folder: Path, divided: Split, learned: list[Criterion], tiny_base: Path) -> None:
    classifier = worked(make(divided, learned, recipes.SHARED, base_model=str(tiny_base)))
    stored = storing.folder_of(classifier.pk, classifier.weights_hash)
    path = stored / "net-0" / "model.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(ClassifierError) as caught:
        model_of(classifier)
    assert caught.value.code == "weights_corrupt"
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ClassifierError) as caught:
        recipes.load(stored)
    assert caught.value.code == "weights_corrupt"
    (stored / "classifier.json").unlink()
    with pytest.raises(ClassifierError) as caught:
        recipes.load(stored)
    assert caught.value.code == "weights_missing"


def test_a_broken_base_model(folder: Path, divided: Split, learned: list[Criterion], tmp_path: Path) -> None:
    base = base_make(tmp_path / "base")
    (base / "model.safetensors").write_bytes(b"\xff" * 100)
    failed(make(divided, learned, recipes.SHARED, base_model=str(base)), "base_corrupt")


def test_something_unforeseen(
    folder: Path, divided: Split, learned: list[Criterion], monkeypatch: pytest.MonkeyPatch
) -> None:
    classifier = make(divided, learned)

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(training_module.recipes, "train", broken)
    with pytest.raises(ZeroDivisionError):
        classifier_work(classifier.pk)
    classifier.refresh_from_db()
    assert (classifier.state, classifier.problem) == ("failed", "unforeseen")


def test_a_cancelled_training_stops_and_can_be_started_again(
    folder: Path, divided: Split, learned: list[Criterion]
) -> None:
    classifier = make(divided, learned)

    def cancel(done: int, total: int) -> None:
        if done == 1:
            assert job_cancel(job=classifier, actor=None)

    assert classifier_work(classifier.pk, also=cancel)
    classifier.refresh_from_db()
    assert classifier.state == "cancelled" and not folder.exists()
    assert not job_cancel(job=classifier, actor=None)
    assert classifier_restart(classifier=classifier, actor=None, enqueue=False)
    assert worked(classifier).state == "finished"


def test_nothing_stays_of_a_cancelled_training(
    folder: Path, divided: Split, learned: list[Criterion], tiny_base: Path
) -> None:
    classifier = make(divided, learned, recipes.SHARED, base_model=str(tiny_base), parameters={"epochs": 5})
    seen: list[bool] = []

    def cancel(done: int, total: int) -> None:
        if done >= total // 2:
            seen.append(storing.checkpoint_of(classifier.pk).is_dir())
            job_cancel(job=classifier, actor=None)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jobs, "SHOWN_EVERY", 0.0)
        assert classifier_work(classifier.pk, also=cancel)
    classifier.refresh_from_db()
    assert classifier.state == "cancelled" and seen[0] and list(folder.iterdir()) == []


def test_a_lock_is_given_back_when_something_breaks(divided: Split, learned: list[Criterion]) -> None:
    classifier = make(divided, learned)
    with pytest.raises(ZeroDivisionError), job_lock(Classifier, classifier.pk) as taken:
        assert taken
        raise ZeroDivisionError
    with job_lock(Classifier, classifier.pk) as taken:
        assert taken


def test_the_worker_goes_on_with_what_waits(
    folder: Path, divided: Split, learned: list[Criterion], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message that comes while it is busy is dropped; one for a job that somebody is at starts no chase."""
    sent: list[int] = []
    monkeypatch.setattr(tasks, "classifier_enqueue", sent.append)
    first, second = make(divided, learned), make(divided, learned)
    with tasks._one_at_a_time:
        tasks.classifier_train(second.pk)
    second.refresh_from_db()
    assert second.state == "queued" and sent == []
    tasks.classifier_train(first.pk)
    assert sent == [second.pk]
    tasks.classifier_train(first.pk)  # it is done: nothing follows
    assert sent == [second.pk]


def test_a_worker_that_dies_while_it_measures_leaves_it_to_the_next(
    folder: Path, divided: Split, learned: list[Criterion], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def killed(**kwargs: object) -> None:
        raise Killed

    classifier = make(divided, learned)
    with monkeypatch.context() as patched:
        patched.setattr(tasks, "classifier_evaluate", killed)
        with pytest.raises(Killed):
            tasks.classifier_train(classifier.pk)
    figures = Evaluation.objects.filter(judge=classifier.judge)
    assert not figures.exists() and list(tasks.unmeasured()) == [classifier]
    tasks.classifier_train(classifier.pk)
    assert figures.exists() and not tasks.unmeasured().exists()
    n = figures.count()
    tasks.classifier_train(classifier.pk)
    assert figures.count() == n


def test_a_withdrawal_marks_who_has_learned_from_the_person(
    folder: Path, divided: Split, learned: list[Criterion]
) -> None:
    trained, waiting = worked(make(divided, learned)), make(divided, learned)
    sides = dict(SplitSide.objects.filter(split=divided).values_list("respondent", "trains"))
    who_trains, who_tests = (next(pk for pk, trains in sides.items() if trains is side) for side in (True, False))
    assert classifiers_flag_withdrawn(respondent_id=who_tests) == 0
    assert classifiers_flag_withdrawn(respondent_id=who_trains) == 1
    trained.refresh_from_db()
    waiting.refresh_from_db()
    assert (trained.withdrawn, waiting.withdrawn) == (1, 0)


def test_a_withdrawal_during_the_training_marks_it_too(
    folder: Path, divided: Split, learned: list[Criterion], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The texts were read before: it has learned from whoever takes back now."""
    train = recipes.train
    person = SplitSide.objects.filter(split=divided, trains=True).values_list("respondent", flat=True)[0]

    def withdrawn_meanwhile(*args: object, **kwargs: object) -> object:
        for pk in Sitting.objects.filter(respondent=person).values_list("pk", flat=True):
            sitting_withdraw(sitting_id=pk, reason="own_link", actor=None)
        assert classifiers_flag_withdrawn(respondent_id=person) == 0
        return train(*args, **kwargs)

    monkeypatch.setattr(recipes, "train", withdrawn_meanwhile)
    assert worked(make(divided, learned)).withdrawn == 1
    monkeypatch.undo()
    assert worked(make(divided, learned)).withdrawn == 0  # it was gone before


def test_parameters_are_the_recipes(divided: Split, learned: list[Criterion]) -> None:
    with pytest.raises(ParameterUnknownError, match="epoch"):
        make(divided, learned, parameters={"epoch": 3})


def test_a_finished_classifier_has_weights(folder: Path, divided: Split, learned: list[Criterion]) -> None:
    classifier = make(divided, learned)
    with pytest.raises(IntegrityError, match="classifier_finished_has_weights"), transaction.atomic():
        Classifier.objects.filter(pk=classifier.pk).update(state="finished")


def test_training_judges_nothing(folder: Path, divided: Split, learned: list[Criterion]) -> None:
    before = Judgement.objects.count()
    worked(make(divided, learned))
    assert Judgement.objects.count() == before
