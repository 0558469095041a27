from collections.abc import Callable, Iterator

import pytest
from django.utils import timezone

from corpus.models import Instrument
from llmruns.calls import stimulus_work
from llmruns.liveness import worker_lock_release
from llmruns.models import Experiment, ModelConfig, RunStimulus
from llmruns.sending import due_stimuli
from llmruns.services import experiment_launch, model_config_create, prompt_ensure
from tests.chat_server import ChatServer
from tests.conftest import Cast

KEY = "sk-test-0123456789abcdef0123456789"

# The words of the three stimuli of the fixture `instrument`.
ONE, TWO, THREE = "кошка сидеть на стол .", ". мышь бежать от кошка", "дети , который играть"


@pytest.fixture(autouse=True)
def no_lock_is_left() -> Iterator[None]:
    yield
    worker_lock_release()


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer() as server:
        yield server


@pytest.fixture
def config(cast: Cast, server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> ModelConfig:
    monkeypatch.setenv("TEST_API_KEY", KEY)
    return model_config_create(
        study=cast.study,
        label="Test model",
        base_url=server.base_url,
        model="test-model",
        key_variable="TEST_API_KEY",
        timeout=1,
        actor=cast.alice,
    )


Launch = Callable[..., Experiment]


@pytest.fixture
def launch(cast: Cast, instrument: Instrument, config: ModelConfig) -> Launch:
    def launch(**changes: object) -> Experiment:
        arguments = {"configs": [config], "runs": 1, **changes}
        return experiment_launch(
            study=cast.study,
            instrument=instrument,
            prompt=prompt_ensure(study=cast.study),
            actor=cast.alice,
            **arguments,
        )

    return launch


def work(experiment: Experiment, *, rounds: int = 60) -> None:
    """What the workers do, in this process: every wait is over at once, and its length is not lost (see `waits`)."""
    for _ in range(rounds):
        RunStimulus.objects.filter(run__experiment=experiment, state="todo").update(due_at=timezone.now())
        due = due_stimuli(experiment_id=experiment.pk)
        if not due:
            return
        for run_id, stimulus_id in due:
            stimulus_work(run_id=run_id, stimulus_id=stimulus_id)
    raise AssertionError("the work does not end")
