"""What goes wrong with a classifier is on its page, in words, with what to do: here through the page alone."""

import errno
import re
from pathlib import Path

import psycopg
import pytest
from django.db import OperationalError
from django.test import Client
from django.utils import translation
from transformers import T5Config

from corpus.models import Answer, Instrument
from scoring import tasks
from scoring.classifiers import applying, services
from scoring.classifiers import training as training_module
from scoring.classifiers.jobs import job_claim, job_lock
from scoring.classifiers.problems import MESSAGES
from scoring.models import Application, Classifier, Criterion, Round, Rubric
from scoring.services import round_close
from tests.conftest import Cast
from tests.scoring.classifiers.conftest import people_answer
from tests.scoring.classifiers.test_pages import form, page
from tests.scoring.classifiers.tiny import base_make

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "classifier_enqueue", lambda _: None)
    monkeypatch.setattr(applying, "application_enqueue", lambda _: None)


@pytest.fixture
def alice(cast: Cast) -> Client:
    return cast.client(cast.alice)


def train(client: Client, criteria: list[Criterion], **more: object) -> Classifier:
    """By the form; then what a worker does."""
    client.post(page("classifier_new"), form(criteria, **more))
    made = Classifier.objects.order_by("-pk").first()
    assert made is not None
    tasks.classifier_train(made.pk)
    made.refresh_from_db()
    return made


def shown(client: Client, classifier: Classifier) -> str:
    return " ".join(client.get(page("classifier", classifier.pk)).content.decode().split())


def offers(client: Client, classifier: Classifier) -> set[str]:
    """The names of the page's addresses that a press of a button goes to, and that its link to a new one leads to."""
    text = shown(client, classifier)
    found = set(re.findall(r'(?:action|href)="/studies/ours/classifiers/(?:\d+/)?(\w+)/', text))
    return found & {"again", "judge", "stop", "new", "arrival"}


def test_too_few_labels(
    alice: Client, folder: Path, rating: Round, test_of_four: Instrument, learned: list[Criterion]
) -> None:
    people_answer(test_of_four, 5, round_=rating)
    round_close(round_id=rating.pk)
    failed = train(alice, learned)
    assert (failed.state, failed.problem) == ("failed", "too_few_labels")
    assert "20 are needed. Close a campaign, or choose other criteria." in shown(alice, failed)
    assert offers(alice, failed) == {"again", "new"}


def test_one_class(alice: Client, folder: Path, rated: list[Answer], rubric: Rubric) -> None:
    failed = train(alice, list(rubric.criteria.filter(code="order")))
    assert failed.problem == "one_class"
    assert "only learn to tell apart what differs" in shown(alice, failed)
    assert offers(alice, failed) == {"again", "new"}


def test_a_wrong_base_model_and_a_damaged_one(
    alice: Client, folder: Path, rated: list[Answer], learned: list[Criterion]
) -> None:
    wrong = folder / "bases" / "own--t5"
    base_make(wrong)
    T5Config().save_pretrained(wrong)
    damaged = folder / "bases" / "own--torn"
    base_make(damaged)
    (damaged / "model.safetensors").write_bytes(b"\xff" * 100)
    for name, code, words in (
        ("own/t5", "base_wrong_kind", "made of an encoder such as BERT or RoBERTa"),
        ("own/torn", "base_corrupt", "Fetch or copy them again"),
        ("own/absent", "base_missing", "Put its folder into"),
    ):
        failed = train(alice, learned, recipe="shared", base_model=name)
        assert (failed.state, failed.problem) == ("failed", code)
        assert words in shown(alice, failed) and name.split("/")[1] in shown(alice, failed)
        assert offers(alice, failed) == {"again", "new"}


def test_a_full_disk_in_training_and_a_second_try(
    alice: Client, folder: Path, rated: list[Answer], learned: list[Criterion], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(training_module.recipes, "save", full)
        failed = train(alice, learned)
    assert failed.problem == "disk_full"
    assert "Make room and start again" in shown(alice, failed) and offers(alice, failed) == {"again", "new"}
    alice.post(page("classifier_again", failed.pk))
    tasks.classifier_train(failed.pk)
    assert offers(alice, failed) == {"judge", "arrival"} and "Make room" not in shown(alice, failed)


def test_a_full_database_while_it_judges(
    alice: Client, folder: Path, rated: list[Answer], learned: list[Criterion], monkeypatch: pytest.MonkeyPatch
) -> None:
    classifier = train(alice, learned)

    def full(*_: object) -> None:
        raise OperationalError("could not extend file") from psycopg.errors.DiskFull()

    alice.post(page("classifier_judge", classifier.pk))
    with monkeypatch.context() as patched:
        patched.setattr(applying, "_store", full)
        with pytest.raises(OperationalError):
            tasks.classifier_apply(Application.objects.get().pk)
    assert "The disk of the database is full" in shown(alice, classifier)
    assert offers(alice, classifier) == {"judge", "arrival", "new"}


@pytest.mark.parametrize("size", [0, 40])
def test_damaged_weights_and_their_return(
    size: int, alice: Client, folder: Path, rated: list[Answer], learned: list[Criterion]
) -> None:
    classifier = train(alice, learned)
    (path,) = folder.glob("*/classifier.json")
    whole = path.read_bytes()
    path.write_bytes(whole[:size])
    alice.post(page("classifier_judge", classifier.pk))
    tasks.classifier_apply(Application.objects.get().pk)
    text = shown(alice, classifier)
    assert "weights of this classifier are damaged" in text and "Bring them back from a copy, or train it again" in text
    assert offers(alice, classifier) == {"judge", "arrival", "new"}
    path.write_bytes(whole)
    alice.post(page("classifier_judge", classifier.pk))
    tasks.classifier_apply(Application.objects.order_by("-pk")[0].pk)
    assert "are damaged" not in shown(alice, classifier) and "120 of 120" in shown(alice, classifier)


def test_a_killed_worker(alice: Client, folder: Path, rated: list[Answer], learned: list[Criterion]) -> None:
    alice.post(page("classifier_new"), form(learned))
    classifier = Classifier.objects.get()
    assert "A worker takes it as soon as one is free" in shown(alice, classifier)
    with job_lock(Classifier, classifier.pk):
        assert job_claim(Classifier, classifier.pk) == 1
        assert "Its worker has ended" not in shown(alice, classifier)
    assert "Its worker has ended. The next free one goes on where it was" in shown(alice, classifier)
    assert offers(alice, classifier) == {"stop"}
    for _ in range(4):  # each dies at once
        job_claim(Classifier, classifier.pk)
    assert "worker died 4 times in a row" in shown(alice, classifier)
    assert offers(alice, classifier) == {"again", "new"}
    alice.post(page("classifier_again", classifier.pk))
    tasks.classifier_train(classifier.pk)
    assert offers(alice, classifier) == {"judge", "arrival"}


def test_an_answer_of_100_000_characters_arrives(
    alice: Client, folder: Path, rated: list[Answer], learned: list[Criterion], test_of_four: Instrument
) -> None:
    classifier = train(alice, learned)
    Answer.objects.filter(pk=rated[0].pk).update(text=("кошка спала дома " * 6_000)[:100_000])
    alice.post(page("classifier_arrival", classifier.pk), {"on": "1"})
    assert "120 answers of finished sittings wait" in shown(alice, classifier)
    (pk,) = tasks.arrivals_look()
    tasks.classifier_apply(pk)
    text = shown(alice, classifier)
    assert "1 answer was too long and judged by its beginning" in text and "120 of 120" in text
    assert "No answer of a finished sitting waits" in text


def test_every_problem_is_said_in_russian(alice: Client) -> None:
    with translation.override("ru"):
        untranslated = [code for code, words in MESSAGES.items() if str(words).isascii()]
    assert untranslated == []
