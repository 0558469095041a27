"""A classifier judges its study's answers: each once, anew where the text has changed, and on after a stop."""

from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from corpus.models import Answer, Instrument, Sitting
from scoring.classifiers import applying, recipes
from scoring.classifiers.applying import application_create, application_work
from scoring.classifiers.jobs import job_cancel
from scoring.classifiers.problems import ClassifierError, StoppedError
from scoring.classifiers.services import classifier_create
from scoring.classifiers.training import classifier_work
from scoring.models import Application, Classifier, Criterion, Judgement, Round, Rubric, Split
from scoring.selectors import labels_of
from scoring.services import round_close, rules_apply
from tests.conftest import Cast
from tests.scoring.classifiers.conftest import people_answer

pytestmark = pytest.mark.django_db


@pytest.fixture
def classifier(folder: Path, divided: Split, learned: list[Criterion]) -> Classifier:
    made = classifier_create(split=divided, criteria=learned, recipe=recipes.BASELINE, actor=None, enqueue=False)
    assert classifier_work(made.pk)
    made.refresh_from_db()
    return made


def apply(classifier: Classifier, **options) -> Application:
    application = application_create(classifier=classifier, actor=None, enqueue=False)
    assert application_work(application.pk, **options)
    application.refresh_from_db()
    return application


def live(classifier: Classifier):
    return Judgement.objects.filter(judge=classifier.judge, retracted_at__isnull=True)


def test_every_answer_is_judged_once_with_confidence(
    classifier: Classifier, rated: list[Answer], test_of_four: Instrument
) -> None:
    people_answer(test_of_four, 5, kind="model", seed=8)
    application = apply(classifier, chunk=50)
    assert (application.state, application.done, application.total) == ("finished", 140, 140)
    assert live(classifier).count() == 280 == Judgement.objects.filter(judge=classifier.judge).count()
    assert set(live(classifier).values_list("round__purpose", flat=True)) == {"automatic"}
    judged = dict(live(classifier).filter(criterion__code="grammatical").values_list("answer__text", "value"))
    assert {text: value for text, value in judged.items() if "спать" in text or "есть" in text or "бежать" in text}
    for text, value in judged.items():
        assert value == float(not any(word in text for word in ("спать", "есть", "бежать")))
    assert all(0 < one.confidence <= 1 for one in live(classifier))
    assert apply(classifier).total == 0


def test_rater_labels_do_not_hear_it(classifier: Classifier, test_of_four: Instrument, rubric: Rubric) -> None:
    before = labels_of(instrument=test_of_four, rubric=rubric).answers
    apply(classifier)
    assert labels_of(instrument=test_of_four, rubric=rubric).answers == before


def test_a_classifier_has_a_round_of_its_own(
    classifier: Classifier, cast: Cast, rubric: Rubric, rated: list[Answer]
) -> None:
    apply(classifier)
    assert rules_apply(study=cast.study, rubric=rubric) == 240, "two rules judge each of the answers"
    rounds = Round.objects.filter(study=cast.study, purpose="automatic")
    assert set(rounds.values_list("judge", flat=True)) == {classifier.judge_id, None}
    assert apply(classifier).total == 0
    assert rounds.count() == 2


def test_equal_display_texts_are_read_once(
    classifier: Classifier, rated: list[Answer], monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    model = applying.model_of(classifier)
    predict = model.predict

    def reading(texts, progress=None):
        read.extend(texts)
        return predict(texts, progress)

    model.predict = reading
    monkeypatch.setattr(applying, "model_of", lambda _: model)
    Answer.objects.filter(pk__in=[rated[0].pk, rated[1].pk]).update(text="**Кошка спала дома.**")
    Answer.objects.filter(pk=rated[2].pk).update(text="«кошка  спала дома»")
    apply(classifier)
    assert len(read) == len(set(read)) and "кошка спала дома" in read
    values = live(classifier).filter(answer__in=rated[:3], criterion__code="grammatical")
    assert len({(one.value, one.confidence) for one in values}) == 1 and len(values) == 3


def test_what_is_no_answer_is_not_judged(classifier: Classifier, rated: list[Answer]) -> None:
    Answer.objects.filter(pk=rated[0].pk).update(text="знаю")  # a refusal: 0 by rule
    Answer.objects.filter(pk=rated[1].pk).update(text="", outcome="declined")
    Sitting.objects.filter(pk=rated[-1].sitting_id).update(standing="withdrawn")
    assert apply(classifier).total == 120 - 2 - 4


def test_a_changed_answer_is_judged_again(classifier: Classifier, rated: list[Answer]) -> None:
    apply(classifier)
    answer = rated[0]
    Answer.objects.filter(pk=answer.pk).update(text="кошка спать дома", changed_at=timezone.now())
    assert apply(classifier).total == 1
    assert live(classifier).count() == 240
    assert Judgement.objects.filter(judge=classifier.judge, retracted_at__isnull=False).count() == 2
    assert live(classifier).get(answer=answer, criterion__code="grammatical").value == 0.0


def test_an_answer_that_changes_while_it_is_read_waits_for_the_next(
    classifier: Classifier, rated: list[Answer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its change began before the reading, by the clock, and was there only afterwards."""
    answer, say = rated[0], recipes.say
    before = timezone.now() - timedelta(seconds=30)
    Answer.objects.update(changed_at=before - timedelta(hours=1))

    def changing(*arguments: object, **options: object) -> object:
        Answer.objects.filter(pk=answer.pk).update(text="кошка спать дома", changed_at=before)
        return say(*arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(recipes, "say", changing)
        apply(classifier)
    assert not live(classifier).filter(answer=answer).exists() and live(classifier).count() == 238
    assert apply(classifier).total == 1
    assert live(classifier).get(answer=answer, criterion__code="grammatical").value == 0.0


def test_new_answers_alone_are_judged_the_next_time(
    classifier: Classifier, rated: list[Answer], test_of_four: Instrument
) -> None:
    apply(classifier)
    people_answer(test_of_four, 2, seed=77)
    assert apply(classifier).total == 8


def test_stopped_in_the_middle_it_goes_on(classifier: Classifier, rated: list[Answer]) -> None:
    application = application_create(classifier=classifier, actor=None, enqueue=False)

    def die(done: int, total: int) -> None:
        if done >= 60:
            raise KeyboardInterrupt  # as a process that is killed: nothing is written about it

    with pytest.raises(KeyboardInterrupt):
        application_work(application.pk, also=die, chunk=30)
    application.refresh_from_db()
    assert application.state == "running" and live(classifier).count() == 120
    assert application_work(application.pk, chunk=30)
    assert live(classifier).count() == 240 == Judgement.objects.filter(judge=classifier.judge).count()
    application.refresh_from_db()
    assert application.state == "finished"


def test_a_cancelled_one_keeps_what_it_has_judged(classifier: Classifier, rated: list[Answer]) -> None:
    application = application_create(classifier=classifier, actor=None, enqueue=False)

    def cancel(done: int, total: int) -> None:
        if done == 60:
            job_cancel(job=application, actor=None)

    assert application_work(application.pk, also=cancel, chunk=30)
    application.refresh_from_db()
    assert application.state == "cancelled" and live(classifier).count() == 120
    assert apply(classifier).total == 60


def test_an_older_attempt_stores_nothing(classifier: Classifier, rated: list[Answer]) -> None:
    application = application_create(classifier=classifier, actor=None, enqueue=False)
    Application.objects.filter(pk=application.pk).update(state="running", attempt=2)
    application.refresh_from_db()
    with pytest.raises(StoppedError):
        applying._store(application, 1, [], [], timezone.now(), 0)


def test_one_at_a_time(classifier: Classifier) -> None:
    first = application_create(classifier=classifier, actor=None, enqueue=False)
    assert application_create(classifier=classifier, actor=None, enqueue=False) == first


def test_an_untrained_one_judges_nothing(divided: Split, learned: list[Criterion]) -> None:
    waiting = classifier_create(split=divided, criteria=learned, recipe=recipes.BASELINE, actor=None, enqueue=False)
    with pytest.raises(ClassifierError) as caught:
        application_create(classifier=waiting, actor=None, enqueue=False)
    assert caught.value.code == "not_finished"


def test_lost_weights_are_said(classifier: Classifier, folder: Path, rated: list[Answer]) -> None:
    (stored,) = folder.iterdir()
    stored.rename(folder / "elsewhere")
    application = apply(classifier)
    assert (application.state, application.problem) == ("failed", "weights_missing")
    (folder / "elsewhere").rename(stored)
    assert apply(classifier).state == "finished"


def test_a_closed_round_takes_none(classifier: Classifier, rated: list[Answer]) -> None:
    application = application_create(classifier=classifier, actor=None, enqueue=False)
    round_close(round_id=application.round_id)
    assert application_work(application.pk)
    application.refresh_from_db()
    assert (application.state, application.problem) == ("failed", "round_closed")
    with pytest.raises(ClassifierError):
        application_create(classifier=classifier, actor=None, enqueue=False)


def test_a_very_long_answer_is_judged_by_its_beginning(
    classifier: Classifier, rated: list[Answer], divided: Split, learned: list[Criterion], tiny_base: Path
) -> None:
    """The baseline reads 20,000 characters, the tiny transformer 32 tokens; both say nothing slower or later."""
    Answer.objects.filter(pk=rated[0].pk).update(text="кошка спала дома " * 6_000)
    assert apply(classifier).truncated == 1
    other = classifier_create(
        split=divided,
        criteria=learned,
        recipe=recipes.SHARED,
        base_model=str(tiny_base),
        parameters={"epochs": 1, "max_tokens": 32},
        actor=None,
        enqueue=False,
    )
    assert classifier_work(other.pk)
    other.refresh_from_db()
    assert apply(other).truncated == 1
    assert live(other).filter(answer=rated[0]).count() == 2
