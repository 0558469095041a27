"""The states of experiments and runs in words, and what to do about them: true of what lies below and above."""

import pytest
from django.test import Client

from llmruns.budget import experiment_pause
from llmruns.models import Call, Experiment, Run
from llmruns.states import experiment_words, run_words
from tests import chat_server as chat
from tests.chat_server import ChatServer
from tests.conftest import Cast
from tests.llmruns.conftest import ONE, Launch, work

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice(cast: Cast) -> Client:
    return cast.client(cast.alice)


def get(client: Client, path: str) -> str:
    response = client.get(f"/studies/ours/{path}")
    assert response.status_code == 200, path
    return response.content.decode()


@pytest.mark.parametrize(
    ("state", "going", "paused", "incomplete", "words"),
    [
        ("running", 1, 0, 0, "running"),
        ("running", 1, 4, 0, "running"),
        ("running", 0, 4, 1, "stands still"),
        ("paused", 5, 0, 0, "paused"),
        ("finished", 0, 0, 0, "finished"),
        ("finished", 0, 0, 1, "incomplete"),
        ("cancelled", 0, 0, 1, "cancelled"),
    ],
)
def test_an_experiment_is_what_its_runs_are(state: str, going: int, paused: int, incomplete: int, words: str) -> None:
    assert experiment_words(state, going=going, paused=paused, incomplete=incomplete) == words


def test_a_run_is_not_under_way_where_its_experiment_is_paused() -> None:
    assert run_words("running", "running") == "running"
    assert run_words("pending", "running") == "waiting"
    assert run_words("running", "paused") == run_words("pending", "paused") == "paused with the experiment"
    assert run_words("finished", "paused") == "finished"
    assert run_words("paused", "paused") == "paused"


def test_an_incomplete_experiment_is_called_finished_on_no_page(
    alice: Client, launch: Launch, server: ChatServer
) -> None:
    server.script(ONE, chat.BROKEN)
    experiment = launch()
    Experiment.objects.update(deadline=0)
    work(experiment)
    assert Experiment.objects.get().state == Experiment.State.FINISHED
    assert Run.objects.get().state == Run.State.INCOMPLETE
    assert "<strong>Incomplete.</strong>" in get(alice, f"experiments/{experiment.pk}/")
    assert "<td>incomplete" in get(alice, "experiments/")
    assert "First</a> · incomplete ·".replace("First", experiment.title) in get(alice, "")


def test_a_run_of_a_paused_experiment_says_so(alice: Client, launch: Launch, server: ChatServer) -> None:
    experiment = launch()
    run = experiment.runs.get()
    run.state = Run.State.RUNNING
    run.save(update_fields=["state"])
    path = f"experiments/{experiment.pk}/runs/{run.pk}/"
    assert "<strong>Running.</strong>" in get(alice, path) and "hx-trigger" in get(alice, path)
    experiment_pause(experiment=experiment, actor=None)
    assert "<td>paused with the experiment" in get(alice, f"experiments/{experiment.pk}/")
    page = get(alice, path)
    assert "<strong>Paused with the experiment.</strong>" in page
    assert "hx-trigger" not in page, "nothing moves"


def test_an_experiment_with_paused_runs_alone_stands_still(alice: Client, launch: Launch, server: ChatServer) -> None:
    server.script("", chat.OUT_OF_QUOTA)
    experiment = launch()
    work(experiment)
    assert "<strong>Stands still.</strong>" in get(alice, f"experiments/{experiment.pk}/")
    assert "<td>stands still" in get(alice, "experiments/")


def test_a_reply_that_is_too_large_has_advice_of_its_own(alice: Client, launch: Launch, server: ChatServer) -> None:
    server.script(ONE, chat.HUGE)
    experiment = launch()
    work(experiment)
    assert Call.objects.filter(kind="too_large").exists() and Run.objects.get().state == Run.State.INCOMPLETE
    page = get(alice, f"experiments/{experiment.pk}/")
    assert "The reply is larger than 5 MB" in page and "a maximum of output tokens stops it" in page
    assert "it usually ends in /v1" not in page
