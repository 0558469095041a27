"""Real ml workers, killed in the middle of an epoch and in the middle of an application."""

import uuid
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from celery import current_app
from django.utils import timezone

from corpus.models import Answer, Instrument
from scoring.classifiers import recipes, storing
from scoring.classifiers.applying import application_create
from scoring.classifiers.arrival import arrival_switch
from scoring.classifiers.services import classifier_create
from scoring.classifiers.training import classifier_work
from scoring.models import Application, Classifier, Criterion, Judgement, Split
from tests.llmruns.workers import Worker, wait_for, worker
from tests.scoring.classifiers.conftest import people_answer
from tests.scoring.classifiers.tiny import QUICK

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def prefix() -> Iterator[str]:
    """Messages of this test alone. This process sends none: a worker finds its work in the database."""
    prefix = f"test-{uuid.uuid4().hex}-"
    yield prefix
    with current_app.connection_for_write() as broker:
        client = broker.channel().client
        keys = list(client.scan_iter(f"{prefix}*", count=1000))
        if keys:
            client.delete(*keys)


def ml(prefix: str, folder: Path, log: Path):
    return worker(prefix=prefix, log=log, threads=2, queues="ml", CLASSIFIERS_DIR=str(folder), ML_THREADS="1")


def test_killed_in_an_epoch_the_training_goes_on_and_ends_the_same(
    divided: Split, learned: list[Criterion], tiny_base: Path, folder: Path, prefix: str, tmp_path: Path
) -> None:
    options = {
        "split": divided,
        "criteria": learned,
        "recipe": recipes.TRANSFORMER,
        "base_model": str(tiny_base),
        "parameters": QUICK | {"epochs": 20, "batch_size": 4},
        "actor": None,
        "enqueue": False,
    }
    undisturbed, killed = classifier_create(**options), classifier_create(**options)
    assert classifier_work(undisturbed.pk)
    undisturbed.refresh_from_db()
    log = tmp_path / "worker.log"
    now = Classifier.objects.filter(pk=killed.pk)
    with ml(prefix, folder, log) as first:
        # Progress is written once a second: what it says lies behind, and an epoch (21 steps) has been kept.
        wait_for(lambda: now.filter(done__gte=42).exists(), seconds=120, log=log)
        first.kill()
    killed.refresh_from_db()
    assert killed.state == "running" and killed.weights_hash == "" and killed.done < killed.total
    assert storing.checkpoint_of(killed.pk).is_dir()
    assert not [
        path for path in folder.iterdir() if path.name.startswith(f"{killed.pk}-") and "training" not in path.name
    ]
    with ml(prefix, folder, log):
        wait_for(lambda: now.exclude(state="running").exists(), seconds=180, log=log)
    killed.refresh_from_db()
    assert (killed.state, killed.attempt) == ("finished", 2)
    assert killed.weights_hash == undisturbed.weights_hash
    left = {path.name for path in folder.iterdir()}
    assert left == {storing.folder_of(one.pk, one.weights_hash).name for one in (undisturbed, killed)}


def test_killed_while_it_judges_it_goes_on_and_doubles_nothing(
    divided: Split,
    learned: list[Criterion],
    test_of_four: Instrument,
    folder: Path,
    prefix: str,
    tmp_path: Path,
) -> None:
    classifier = classifier_create(split=divided, criteria=learned, recipe=recipes.BASELINE, actor=None, enqueue=False)
    assert classifier_work(classifier.pk)
    classifier.refresh_from_db()
    answers = people_answer(test_of_four, 1_500, seed=9)
    # Every text is another one, so that each chunk takes its time.
    for number, answer in enumerate(answers):
        answer.text = f"{answer.text} {' '.join(['кошка', 'мышь'] * 15)} {number}"
    Answer.objects.bulk_update(answers, ["text"], batch_size=2_000)
    application = application_create(classifier=classifier, actor=None, enqueue=False)
    made = Judgement.objects.filter(judge=classifier.judge)
    log = tmp_path / "worker.log"
    with ml(prefix, folder, log) as first:
        wait_for(lambda: made.count() >= 1_000, seconds=120, log=log)
        first.kill()
    before = made.count()
    application.refresh_from_db()
    assert application.state == "running" and before < 2 * 6_120, "it was too quick to be killed in the middle"
    with ml(prefix, folder, log):
        wait_for(lambda: not Application.objects.filter(state="running").exists(), seconds=240, log=log)
    application.refresh_from_db()
    assert (application.state, application.attempt) == ("finished", 2)
    assert made.count() == 2 * 6_120 == made.values("answer", "criterion").distinct().count()


def test_new_answers_are_judged_by_a_worker_that_is_killed_and_by_the_next(
    divided: Split,
    learned: list[Criterion],
    test_of_four: Instrument,
    folder: Path,
    prefix: str,
    tmp_path: Path,
) -> None:
    classifier = classifier_create(split=divided, criteria=learned, recipe=recipes.BASELINE, actor=None, enqueue=False)
    assert classifier_work(classifier.pk)
    classifier.refresh_from_db()
    arrival_switch(classifier=classifier, actor=None, on=True)
    answers = people_answer(test_of_four, 1_500, seed=9)
    for number, answer in enumerate(answers):  # so that each chunk takes its time
        answer.text = f"{answer.text} {' '.join(['кошка', 'мышь'] * 15)} {number}"
    Answer.objects.bulk_update(answers, ["text"], batch_size=2_000)
    made = Judgement.objects.filter(judge=classifier.judge)
    log = tmp_path / "worker.log"
    with ml(prefix, folder, log) as first:
        wait_for(lambda: made.count() >= 1_000, seconds=120, log=log)
        first.kill()
    assert Application.objects.get().state == "running" and made.count() < 2 * 6_120
    with ml(prefix, folder, log):
        wait_for(lambda: Application.objects.filter(state="finished").exists(), seconds=240, log=log)
        application = Application.objects.get()
        assert (application.on_arrival, application.created_by, application.attempt) == (True, None, 2)
        assert made.count() == 2 * 6_120 == made.values("answer", "criterion").distinct().count()
        # The same worker finds what comes while it lives, when the minute's rest is over.
        Application.objects.update(created_at=timezone.now() - timedelta(minutes=5))
        people_answer(test_of_four, 2, seed=10)
        wait_for(lambda: Application.objects.filter(state="finished").count() == 2, seconds=120, log=log)
    assert made.count() == 2 * 6_128 == made.values("answer", "criterion").distinct().count()


def test_a_worker_takes_what_waits_from_the_queue(
    divided: Split, learned: list[Criterion], folder: Path, prefix: str, tmp_path: Path
) -> None:
    classifier = classifier_create(split=divided, criteria=learned, recipe=recipes.BASELINE, actor=None, enqueue=False)
    log = tmp_path / "worker.log"
    with ml(prefix, folder, log) as running:
        assert isinstance(running, Worker)
        wait_for(lambda: Classifier.objects.filter(pk=classifier.pk, state="finished").exists(), seconds=120, log=log)
