"""New answers are judged as they come: once, together, not for ever where it fails, and by wish alone."""

from datetime import timedelta
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from corpus.models import Answer, Instrument, Sitting
from scoring import tasks
from scoring.classifiers import applying, arrival, recipes
from scoring.classifiers.applying import application_create, application_work
from scoring.classifiers.arrival import (
    LASTING,
    RETRIES,
    arrival_begin,
    arrival_of,
    arrival_switch,
    arrivals_look,
    arrived_count,
)
from scoring.classifiers.jobs import job_claim, job_lock
from scoring.classifiers.problems import MESSAGES, ClassifierError
from scoring.classifiers.services import classifier_create
from scoring.classifiers.training import classifier_work
from scoring.models import Application, Classifier, Criterion, Judgement, Split
from scoring.services import round_close
from studies.models import AuditEntry
from studies.services import blinding_impose
from tests.conftest import Cast
from tests.scoring.classifiers.conftest import people_answer

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What would have gone to the workers."""
    ids: list[int] = []
    monkeypatch.setattr(applying, "application_enqueue", ids.append)
    monkeypatch.setattr(tasks, "application_enqueue", ids.append)
    monkeypatch.setattr(tasks, "classifier_enqueue", ids.append)
    return ids


@pytest.fixture
def classifier(folder: Path, divided: Split, learned: list[Criterion]) -> Classifier:
    """Finished, and it has judged what is there."""
    made = classifier_create(split=divided, criteria=learned, recipe=recipes.BASELINE, actor=None, enqueue=False)
    assert classifier_work(made.pk)
    made.refresh_from_db()
    application = application_create(classifier=made, actor=None, enqueue=False)
    assert application_work(application.pk)
    long_ago(made)
    return made


@pytest.fixture
def arriving(classifier: Classifier) -> Classifier:
    arrival_switch(classifier=classifier, actor=None, on=True)
    classifier.refresh_from_db()
    return classifier


def long_ago(classifier: Classifier, by: timedelta = timedelta(days=1)) -> None:
    """As if all that it did had been a day earlier."""
    for row in Application.objects.filter(classifier=classifier):
        Application.objects.filter(pk=row.pk).update(
            created_at=row.created_at - by, finished_at=row.finished_at and row.finished_at - by
        )
    if classifier.arrival_since is not None:
        classifier.arrival_since -= by
        classifier.save(update_fields=["arrival_since"])


def page(classifier: Classifier, name: str = "classifier") -> str:
    return reverse(name, args=["ours", classifier.pk])


def text_of(client: Client, classifier: Classifier) -> str:
    return " ".join(client.get(page(classifier)).content.decode().split())


def work_all() -> list[Application]:
    """A look, and what the workers do of it."""
    begun = [Application.objects.get(pk=pk) for pk in arrivals_look()]
    for application in begun:
        assert application_work(application.pk)
        application.refresh_from_db()
    return begun


def test_what_comes_is_judged_in_one_application(arriving: Classifier, test_of_four: Instrument) -> None:
    assert arrivals_look() == [] and arrived_count(arriving) == 0
    people_answer(test_of_four, 2, seed=21)
    people_answer(test_of_four, 1, seed=22, kind="model")
    assert arrived_count(arriving) == 12
    (application,) = work_all()
    assert (application.on_arrival, application.created_by, application.total) == (True, None, 12)
    assert arrived_count(arriving) == 0 and arrivals_look() == []
    live = Judgement.objects.filter(judge=arriving.judge, retracted_at__isnull=True)
    assert live.count() == 2 * 132 == live.values("answer", "criterion").distinct().count()


def test_nothing_begins_without_the_wish(classifier: Classifier, test_of_four: Instrument) -> None:
    people_answer(test_of_four, 1, seed=21)
    assert arrivals_look() == [] and arrived_count(classifier) == 4
    assert Application.objects.count() == 1


def test_what_has_not_arrived_waits_for_nothing(arriving: Classifier, test_of_four: Instrument) -> None:
    """Open sittings, withdrawn ones, what was declined, and refusals, which are 0 by rule."""
    still_open = people_answer(test_of_four, 1, seed=21)
    Sitting.objects.filter(pk=still_open[0].sitting_id).update(state="open", finished_at=None)
    people_answer(test_of_four, 1, seed=22, standing="withdrawn")
    declined, refused, *_ = people_answer(test_of_four, 1, seed=23)
    Answer.objects.filter(sitting=declined.sitting).exclude(pk=refused.pk).update(outcome="declined", text="")
    Answer.objects.filter(pk=refused.pk).update(text="знаю")
    assert arrived_count(arriving) == 0 and arrivals_look() == []
    Sitting.objects.filter(pk=still_open[0].sitting_id).update(state="finished", finished_at=timezone.now())
    assert arrived_count(arriving) == 4 and len(arrivals_look()) == 1


def test_a_changed_answer_has_arrived_anew(arriving: Classifier, rated: list[Answer]) -> None:
    Answer.objects.filter(pk=rated[0].pk).update(text="кошка спать дома", changed_at=timezone.now())
    assert arrived_count(arriving) == 1
    (application,) = work_all()
    assert application.total == 1


def test_answers_of_a_minute_go_together(arriving: Classifier, test_of_four: Instrument) -> None:
    people_answer(test_of_four, 1, seed=21)
    assert len(work_all()) == 1
    people_answer(test_of_four, 1, seed=22)
    assert arrivals_look() == [], "the last one began less than a minute ago"
    people_answer(test_of_four, 1, seed=23)
    long_ago(arriving, timedelta(seconds=61))
    (application,) = work_all()
    assert application.total == 8


def test_two_workers_begin_one(arriving: Classifier, test_of_four: Instrument) -> None:
    people_answer(test_of_four, 1, seed=21)
    assert len(arrivals_look()) == 1
    assert arrivals_look() == []
    assert arrival_begin(classifier_id=arriving.pk) is None, "another worker that saw the same answers"
    Application.objects.filter(state="queued").update(state="finished", finished_at=timezone.now())
    assert arrival_begin(classifier_id=arriving.pk) is None, "or came when the first was done"


def test_one_query_for_each_that_is_switched_on_and_one_for_its_past(
    arriving: Classifier, test_of_four: Instrument
) -> None:
    people_answer(test_of_four, 1, seed=21)
    assert len(work_all()) == 1
    long_ago(arriving)
    with CaptureQueriesContext(connection) as queries:
        assert arrivals_look() == []
    assert len(queries) == 3
    arrival_switch(classifier=arriving, actor=None, on=False)
    with CaptureQueriesContext(connection) as queries:
        assert arrivals_look() == []
    assert len(queries) == 1


def test_a_passing_failure_is_tried_again_ever_later_and_then_no_more(
    arriving: Classifier, test_of_four: Instrument, monkeypatch: pytest.MonkeyPatch, cast: Cast
) -> None:
    def full(_: Classifier) -> None:
        raise ClassifierError("disk_full", folder="/somewhere")

    monkeypatch.setattr(applying, "model_of", full)
    people_answer(test_of_four, 1, seed=21)
    client = cast.client(cast.alice)
    for number, wait in enumerate(RETRIES, start=1):
        (failed,) = work_all()
        assert (failed.state, failed.problem) == ("failed", "disk_full")
        arriving.refresh_from_db()
        now = arrival_of(arriving)
        assert (now.is_on, now.failures, now.gives_up) == (True, number, False)
        assert now.next_at == failed.finished_at + wait
        assert arrivals_look() == [], "it does not loop"
        shown = text_of(client, arriving)
        assert "The disk is full" in shown and "Next try, by itself" in shown and "Judge only when asked" in shown
        long_ago(arriving, wait + timedelta(seconds=1))
    assert len(work_all()) == 1
    assert arrivals_look() == []
    arriving.refresh_from_db()
    assert (arriving.arrival_since, arriving.arrival_problem) == (None, "disk_full")
    shown = text_of(client, arriving)
    assert "The disk is full: /somewhere" in shown and "switch it on again" in shown
    long_ago(arriving)
    assert arrivals_look() == [] and Application.objects.filter(state="failed").count() == len(RETRIES) + 1
    monkeypatch.undo()
    assert client.post(page(arriving, "classifier_arrival"), {"on": "1"}).status_code == 302
    arriving.refresh_from_db()
    assert arriving.arrival_since is not None and arriving.arrival_problem == ""
    begun = [Application.objects.get(pk=pk) for pk in arrivals_look()]
    assert len(begun) == 1 and application_work(begun[0].pk)
    assert "switch it on again" not in text_of(client, arriving) and arrived_count(arriving) == 0


def test_a_success_forgets_the_failures(
    arriving: Classifier, test_of_four: Instrument, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(applying, "model_of", lambda _: 1 / 0)
        people_answer(test_of_four, 1, seed=21)
        (pk,) = arrivals_look()
        with pytest.raises(ZeroDivisionError):
            application_work(pk)
    arriving.refresh_from_db()
    assert (arrival_of(arriving).failures, arrival_of(arriving).problem) == (1, "unforeseen")
    long_ago(arriving)
    assert [one.state for one in work_all()] == ["finished"]
    assert (arrival_of(arriving).failures, arrival_of(arriving).problem) == (0, "")


def test_damaged_weights_switch_it_off_at_once(
    arriving: Classifier, test_of_four: Instrument, folder: Path, cast: Cast
) -> None:
    (stored,) = folder.iterdir()
    whole = (stored / "classifier.json").read_bytes()
    (stored / "classifier.json").write_bytes(whole[:40])
    people_answer(test_of_four, 1, seed=21)
    (failed,) = work_all()
    assert (failed.state, failed.problem) == ("failed", "weights_corrupt")
    client = cast.client(cast.alice)
    for _look in range(2):  # before a worker has written it down, and after
        shown = text_of(client, arriving)
        assert "weights of this classifier are damaged" in shown and "switch it on again" in shown
        assert "Judge new answers as they come" in shown and "Train another one" in shown
        assert arrivals_look() == []
    arriving.refresh_from_db()
    assert (arriving.arrival_since, arriving.arrival_problem) == (None, "weights_corrupt")
    entry = AuditEntry.objects.filter(action="classifier_arrival_off").get()
    assert (entry.actor, entry.detail) == (None, {"problem": "weights_corrupt"})


def test_a_closed_round_switches_it_off(arriving: Classifier, test_of_four: Instrument, cast: Cast) -> None:
    round_close(round_id=Application.objects.get().round_id)
    people_answer(test_of_four, 1, seed=21)
    assert arrivals_look() == []
    arriving.refresh_from_db()
    assert (arriving.arrival_since, arriving.arrival_problem) == (None, "round_closed")
    assert "takes no more judgements" in text_of(cast.client(cast.alice), arriving)


def test_stopping_it_stops_the_wish_too(arriving: Classifier, test_of_four: Instrument, cast: Cast) -> None:
    people_answer(test_of_four, 1, seed=21)
    (pk,) = arrivals_look()
    client = cast.client(cast.alice)
    assert (
        "not judged by themselves any more"
        in client.post(page(arriving, "classifier_stop"), follow=True).content.decode()
    )
    arriving.refresh_from_db()
    assert Application.objects.get(pk=pk).state == "cancelled" and arriving.arrival_since is None
    long_ago(arriving)
    assert arrivals_look() == []


def test_the_switch_on_the_page(classifier: Classifier, test_of_four: Instrument, cast: Cast) -> None:
    client = cast.client(cast.alice)
    shown = text_of(client, classifier)
    assert "only when somebody asks" in shown and "No answer of a finished sitting waits" in shown
    assert client.get(page(classifier, "classifier_arrival")).status_code == 405
    client.post(page(classifier, "classifier_arrival"), {"on": "1"})
    client.post(page(classifier, "classifier_arrival"), {"on": "1"})  # a second press changes nothing
    people_answer(test_of_four, 1, seed=21)
    shown = text_of(client, classifier)
    assert "It judges new answers as they come" in shown and "4 answers of finished sittings wait" in shown
    assert "Last judged:" in shown
    client.post(page(classifier, "classifier_arrival"), {"on": "0"})
    classifier.refresh_from_db()
    assert classifier.arrival_since is None
    entries = AuditEntry.objects.filter(action__startswith="classifier_arrival").order_by("pk")
    assert [(one.action, one.actor) for one in entries] == [
        ("classifier_arrival_on", cast.alice),
        ("classifier_arrival_off", cast.alice),
    ]


def test_others_do_not_switch_it(classifier: Classifier, cast: Cast) -> None:
    address = page(classifier, "classifier_arrival")
    for user in (cast.bob, cast.rita):
        assert cast.client(user).post(address, {"on": "1"}).status_code == 404
    assert Client().post(address, {"on": "1"}).status_code == 302
    theirs = reverse("classifier_arrival", args=["theirs", classifier.pk])
    assert cast.client(cast.bob).post(theirs, {"on": "1"}).status_code == 404
    blinding_impose(user=cast.alice, study=cast.study, cause="campaign 1")
    assert cast.client(cast.alice).post(address, {"on": "1"}).status_code == 403
    classifier.refresh_from_db()
    assert classifier.arrival_since is None


def test_an_untrained_one_is_not_switched_on(divided: Split, learned: list[Criterion], cast: Cast) -> None:
    waiting = classifier_create(split=divided, criteria=learned, recipe=recipes.BASELINE, actor=None, enqueue=False)
    response = cast.client(cast.alice).post(page(waiting, "classifier_arrival"), {"on": "1"}, follow=True)
    assert "has not finished its training" in response.content.decode()
    waiting.refresh_from_db()
    assert waiting.arrival_since is None


def test_the_command_switches(classifier: Classifier, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("classifier_apply", str(classifier.pk), "--study", "ours", "--on-arrival")
    classifier.refresh_from_db()
    assert classifier.arrival_since is not None and "as they come; 0 of finished sittings" in capsys.readouterr().out
    call_command("classifier_apply", str(classifier.pk), "--study", "ours", "--no-on-arrival")
    classifier.refresh_from_db()
    assert classifier.arrival_since is None
    assert Application.objects.count() == 1, "switching judges nothing"


def test_every_lasting_problem_has_its_words() -> None:
    assert set(MESSAGES) >= LASTING


def test_a_job_that_kills_its_workers_is_given_up(arriving: Classifier, test_of_four: Instrument, cast: Cast) -> None:
    people_answer(test_of_four, 1, seed=21)
    (pk,) = arrivals_look()
    claims = [job_claim(Application, pk) for _ in range(6)]  # each as after a kill -9 at once
    assert claims == [1, 2, 3, 4, None, None]
    application = Application.objects.get(pk=pk)
    assert (application.state, application.problem) == ("failed", "worker_died")
    assert "worker died 4 times in a row" in text_of(cast.client(cast.alice), arriving)
    assert arrivals_look() == []
    arriving.refresh_from_db()
    assert arriving.arrival_problem == "worker_died"


def test_a_worker_that_lived_long_does_not_count(arriving: Classifier, test_of_four: Instrument) -> None:
    people_answer(test_of_four, 1, seed=21)
    (pk,) = arrivals_look()
    for attempt in range(1, 9):
        assert job_claim(Application, pk) == attempt
        Application.objects.filter(pk=pk).update(started_at=timezone.now() - timedelta(hours=1))


def test_what_lost_its_worker_is_put_in_again_and_the_page_says_so(
    arriving: Classifier, test_of_four: Instrument, sent: list[int], cast: Cast
) -> None:
    people_answer(test_of_four, 1, seed=21)
    (pk,) = arrivals_look()
    client = cast.client(cast.alice)
    tasks.lost_enqueue()
    assert sent == [], "whoever asked a moment ago may be about to do it"
    tasks.lost_enqueue(settled=timedelta(0))
    assert sent == [pk]
    with job_lock(Application, pk):
        assert job_claim(Application, pk) == 1
        tasks.lost_enqueue(settled=timedelta(0))
        assert sent == [pk] and "Its worker has ended" not in text_of(client, arriving)
    tasks.lost_enqueue(settled=timedelta(0))
    assert sent == [pk, pk] and "Its worker has ended" in text_of(client, arriving)
    assert application_work(pk)
    assert arrived_count(arriving) == 0


def test_memory_that_is_not_enough_is_said(
    arriving: Classifier, test_of_four: Instrument, monkeypatch: pytest.MonkeyPatch, cast: Cast
) -> None:
    def hungry(_: Classifier) -> None:
        raise MemoryError

    monkeypatch.setattr(applying, "model_of", hungry)
    people_answer(test_of_four, 1, seed=21)
    (pk,) = arrivals_look()
    with pytest.raises(MemoryError):
        application_work(pk)
    assert "The memory was not enough" in text_of(cast.client(cast.alice), arriving)


def test_the_look_is_of_the_workers_of_its_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[object] = []

    class Thread:
        def __init__(self, **options: object) -> None:
            self.options = options

        def start(self) -> None:
            started.append(self.options["target"])

    class Sender:
        def __init__(self, *queues: str) -> None:
            self.app = type("App", (), {"amqp": type("Amqp", (), {})()})()
            self.app.amqp.queues = type("Queues", (), {"consume_from": dict.fromkeys(queues)})()

    monkeypatch.setattr(tasks.threading, "Thread", Thread)
    tasks.unfinished_look_for(sender=Sender("default", "llm"))
    assert started == []
    tasks.unfinished_look_for(sender=Sender("ml"))
    assert started == [tasks._look]
    assert arrival.REST.total_seconds() >= tasks.LOOK_EVERY
