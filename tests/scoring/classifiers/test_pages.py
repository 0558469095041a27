"""The researcher's pages of classifiers, and everybody who may not use them."""

from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse

from corpus.models import Answer, Instrument
from scoring import tasks
from scoring.classifiers import applying, recipes, services
from scoring.classifiers.services import classifier_create
from scoring.classifiers.training import classifier_work
from scoring.models import Application, Classifier, Criterion, Evaluation, Judgement, Rubric, Split
from studies.services import blinding_impose
from tests.conftest import Cast

pytestmark = pytest.mark.django_db


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What would have gone to the workers."""
    ids: list[int] = []
    monkeypatch.setattr(services, "classifier_enqueue", ids.append)
    monkeypatch.setattr(applying, "application_enqueue", ids.append)
    return ids


@pytest.fixture
def trained(folder: Path, divided: Split, learned: list[Criterion]) -> Classifier:
    made = classifier_create(
        split=divided, criteria=learned, recipe=recipes.BASELINE, title="<b>Mine</b>", actor=None, enqueue=False
    )
    tasks.classifier_train(made.pk)
    made.refresh_from_db()
    return made


def page(name: str, *args: object) -> str:
    return reverse(name, args=["ours", *args])


def form(criteria: list[Criterion], **more: object) -> dict[str, object]:
    plain = {"recipe": "baseline", "epochs": 5, "seed": 1, "split_seed": 1, "hold_out": 0}
    return plain | {"criteria": [criterion.pk for criterion in criteria]} | more


def test_from_the_form_to_the_judgements(
    cast: Cast,
    folder: Path,
    rated: list[Answer],
    learned: list[Criterion],
    sent: list[int],
    django_capture_on_commit_callbacks,
) -> None:
    alice = cast.client(cast.alice)
    assert "learns from the labels" in alice.get(page("classifier_list")).content.decode()
    with django_capture_on_commit_callbacks(execute=True):
        response = alice.post(page("classifier_new"), form(learned, hold_out=1, title="Ours"))
    classifier = Classifier.objects.get()
    assert classifier.title == "Ours"
    assert response.headers["Location"] == page("classifier", classifier.pk) and sent == [classifier.pk]
    assert (classifier.created_by, len(classifier.parameters["held_out"])) == (cast.alice, 1)
    shown = alice.get(page("classifier", classifier.pk)).content.decode()
    assert "hx-trigger" in shown and "21 train, 9 test" in shown
    tasks.classifier_train(classifier.pk)
    shown = alice.get(page("classifier", classifier.pk)).content.decode()
    assert "F1 macro" in shown and "tasks held out of training" in shown and "hx-trigger" not in shown
    assert Evaluation.objects.filter(judge=classifier.judge).exists()
    with django_capture_on_commit_callbacks(execute=True):
        alice.post(page("classifier_judge", classifier.pk))
    application = Application.objects.get()
    assert application.created_by == cast.alice and sent[-1] == application.pk
    tasks.classifier_apply(application.pk)
    assert Judgement.objects.filter(judge=classifier.judge).count() == 240
    assert "120 of 120" in alice.get(page("classifier", classifier.pk)).content.decode()


def test_titles_are_text(cast: Cast, trained: Classifier) -> None:
    for address in (page("classifier", trained.pk), page("classifier_list")):
        shown = cast.client(cast.alice).get(address).content.decode()
        assert "<b>Mine" not in shown and "&lt;b&gt;Mine" in shown


def test_the_comparison_has_interval_and_constant_judge(cast: Cast, trained: Classifier) -> None:
    shown = cast.client(cast.alice).get(page("classifier_list")).content.decode()
    report = Evaluation.objects.get(judge=trained.judge, criterion__code="grammatical", subset="all").metrics
    assert f"({report['majority']['f1_macro']:.2f})" in shown
    assert f"{report['estimates']['f1_macro']['low']:.2f} … " in shown


def test_others_are_refused(cast: Cast, trained: Classifier, learned: list[Criterion], sent: list[int]) -> None:
    pages = [page("classifier_list"), page("classifier_new"), page("classifier", trained.pk)]
    posts = [page(name, trained.pk) for name in ("classifier_stop", "classifier_again", "classifier_judge")]
    for user in (cast.bob, cast.rita):
        client = cast.client(user)
        assert {client.get(address).status_code for address in pages} == {404}
        assert {client.post(address).status_code for address in posts} == {404}
        assert client.post(page("classifier_new"), form(learned)).status_code == 404
    assert {Client().post(address).status_code for address in posts} == {302}
    blinding_impose(user=cast.alice, study=cast.study, cause="campaign 1")
    client = cast.client(cast.alice)
    assert {client.get(address).status_code for address in pages} == {403}
    assert {client.post(address).status_code for address in posts} == {403}
    assert client.post(page("classifier_new"), form(learned)).status_code == 403
    assert Classifier.objects.count() == 1 and not Application.objects.exists() and sent == []


def test_a_classifier_of_another_study_is_not_there(cast: Cast, trained: Classifier) -> None:
    client = cast.client(cast.bob)
    assert client.get(reverse("classifier", args=["theirs", trained.pk])).status_code == 404
    assert client.post(reverse("classifier_judge", args=["theirs", trained.pk])).status_code == 404


def test_a_get_starts_nothing(cast: Cast, trained: Classifier) -> None:
    client = cast.client(cast.alice)
    for name in ("classifier_stop", "classifier_again", "classifier_judge"):
        assert client.get(page(name, trained.pk)).status_code == 405
    assert not Application.objects.exists()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("base_model", "/etc"),
        ("base_model", "../../bases/x"),
        ("epochs", 0),
        ("epochs", 1000),
        ("seed", -1),
        ("hold_out", -1),
        ("recipe", "other"),
        ("criteria", []),
        ("criteria", [999999]),
    ],
)
def test_bad_input(
    field: str, value: object, cast: Cast, rated: list[Answer], learned: list[Criterion], sent: list[int]
) -> None:
    sent_form = form(learned, recipe="transformer") | {field: value}
    response = cast.client(cast.alice).post(page("classifier_new"), sent_form)
    assert response.status_code == 200 and response.context["form"].errors
    assert not Classifier.objects.exists()


def test_without_labels_it_says_so(
    cast: Cast, rubric: Rubric, test_of_four: Instrument, learned: list[Criterion], sent: list[int]
) -> None:
    response = cast.client(cast.alice).post(page("classifier_new"), form(learned))
    assert "no labels of closed campaigns" in response.content.decode()
    assert not Classifier.objects.exists()


def test_stop_and_begin_again(
    cast: Cast,
    folder: Path,
    divided: Split,
    learned: list[Criterion],
    sent: list[int],
    django_capture_on_commit_callbacks,
) -> None:
    waiting = classifier_create(split=divided, criteria=learned, recipe=recipes.BASELINE, actor=None, enqueue=False)
    client = cast.client(cast.alice)
    client.post(page("classifier_stop", waiting.pk))
    waiting.refresh_from_db()
    assert waiting.state == "cancelled" and not classifier_work(waiting.pk)
    with django_capture_on_commit_callbacks(execute=True):
        client.post(page("classifier_again", waiting.pk))
    waiting.refresh_from_db()
    assert waiting.state == "queued" and sent == [waiting.pk]


def test_what_failed_says_why(cast: Cast, folder: Path, divided: Split, rubric: Rubric) -> None:
    order = list(rubric.criteria.filter(code="order"))
    failed = classifier_create(split=divided, criteria=order, recipe=recipes.BASELINE, actor=None, enqueue=False)
    tasks.classifier_train(failed.pk)
    client = cast.client(cast.alice)
    assert "only learn to tell apart what differs" in client.get(page("classifier", failed.pk)).content.decode()
    client.cookies["luria_language"] = "ru"
    shown = client.get(page("classifier", failed.pk)).content.decode()
    assert "Классификатор учится различать" in shown and "Обучить снова" in shown
