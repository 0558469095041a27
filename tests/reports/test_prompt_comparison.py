"""Two versions of a prompt on the same models."""

from collections.abc import Iterator

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from corpus.models import Instrument, Sitting
from llmruns.liveness import worker_lock_release
from llmruns.models import ModelConfig, Prompt
from llmruns.prompts import prompt_create
from llmruns.services import experiment_launch, model_config_create, paper_prompt_text, prompt_ensure
from reports.prompt_comparison import comparison_of
from scoring.services import paper_rubric, rules_apply
from studies.services import blinding_impose
from tests import chat_server as chat
from tests.chat_server import ChatServer
from tests.conftest import Cast
from tests.llmruns.conftest import ONE, THREE, TWO, work

pytestmark = pytest.mark.django_db


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer() as server:
        yield server
    worker_lock_release()


@pytest.fixture
def config(cast: Cast, server: ChatServer) -> ModelConfig:
    return model_config_create(
        study=cast.study, label="Test model", base_url=server.base_url, model="test-model", timeout=5, actor=cast.alice
    )


@pytest.fixture
def prompts(cast: Cast) -> tuple[Prompt, Prompt]:
    second = prompt_create(study=cast.study, slug="paper", text="Все слова по разу: {words}", actor=cast.alice)
    first = prompt_create(study=cast.study, slug="other", text="Составьте: {words}", actor=cast.alice)
    return first, second


def run(cast: Cast, instrument: Instrument, prompt: Prompt, *configs: ModelConfig, runs: int = 1) -> None:
    work(
        experiment_launch(
            study=cast.study, instrument=instrument, prompt=prompt, configs=configs, actor=cast.alice, runs=runs
        )
    )


def address(instrument: Instrument, prompts: tuple[Prompt, Prompt]) -> str:
    return f"/studies/ours/prompts/compare/?first={prompts[0].pk}&second={prompts[1].pk}&instrument={instrument.pk}"


def test_answers_stand_side_by_side_with_what_can_be_said_of_them(
    cast: Cast, instrument: Instrument, config: ModelConfig, server: ChatServer, prompts: tuple[Prompt, Prompt]
) -> None:
    # The originals have four, four and seven words.
    server.script(f"Составьте: {ONE}", chat.BAD_FORMAT, chat.answer("кошка сидит на столе"))
    server.script(f"Составьте: {TWO}", chat.answer("мышь бежит от большой кошки"))
    server.script(f"Составьте: {THREE}", chat.answer("дети играли"))
    server.script("Все слова по разу", chat.answer("мышь бежит от кошки"))
    lonely = model_config_create(
        study=cast.study, label="Lonely", base_url=server.base_url, model="m", timeout=5, actor=cast.alice
    )
    run(cast, instrument, prompts[0], config, lonely)
    run(cast, instrument, prompts[1], config)
    rubric = paper_rubric()
    rules_apply(study=cast.study, rubric=rubric)
    (row,), single = comparison_of(instrument=instrument, rubric=rubric, prompts=prompts)
    assert single == [lonely] and row.config == config and row.runs == (1, 1)
    first, second = row.sides
    assert (first.first, first.first_valid, second.first_valid) == (3, 2, 3)
    # First: 4 = 4 holds, 5 and 2 (a refusal) do not. Second: 4, 4 and not 7.
    assert (first.sequence.value, first.sequence.n) == (pytest.approx(1 / 3), 3)
    assert second.sequence.value == pytest.approx(2 / 3)
    assert row.difference == pytest.approx(100 / 3)
    # Nobody has rated: the score is undefined, and says how many answers it waits for. The refusal is 0 by rule.
    assert (first.score.value, first.score.reason, first.score.undecided) == (None, "undecided", 2)

    page = cast.client(cast.alice).get(address(instrument, prompts)).content.decode()
    for words in ("мышь бежит от большой кошки", "дети играли", "мышь бежит от кошки"):
        assert words in page
    assert "66.7 %" in page and "+33.3" in page and "undefined: 2 of 3 undecided" in page and "Lonely" in page


def test_what_was_not_asked_under_both_is_not_compared(
    cast: Cast, instrument: Instrument, config: ModelConfig, prompts: tuple[Prompt, Prompt]
) -> None:
    client = cast.client(cast.alice)
    assert "No model has taken this instrument" in client.get(address(instrument, prompts)).content.decode()
    run(cast, instrument, prompts[0], config)
    assert "No model has taken this instrument" in client.get(address(instrument, prompts)).content.decode()
    run(cast, instrument, prompts[1], config)
    Sitting.objects.filter(run__experiment__prompt=prompts[1]).update(standing="excluded", standing_reason="test")
    assert "No model has taken this instrument" in client.get(address(instrument, prompts)).content.decode()
    assert "one version twice" in client.get(address(instrument, (prompts[0], prompts[0]))).content.decode()


def test_the_wrong_person_is_refused(cast: Cast, instrument: Instrument, prompts: tuple[Prompt, Prompt]) -> None:
    path = address(instrument, prompts)
    for user in (cast.bob, cast.rita):
        assert cast.client(user).get(path).status_code == 404
    assert cast.client(cast.bob).get(path.replace("/ours/", "/theirs/")).status_code == 404
    assert cast.client(cast.alice).post(path).status_code == 405
    for wrong in ("first=x", f"first={'9' * 5000}", "second=0", "instrument=²"):
        name = wrong.partition("=")[0]
        parts = [part for part in path.partition("?")[2].split("&") if not part.startswith(name)]
        response = cast.client(cast.alice).get("/studies/ours/prompts/compare/?" + "&".join([*parts, wrong]))
        assert response.status_code == 404
    blinding_impose(user=cast.alice, study=cast.study, cause="campaign 1")
    assert cast.client(cast.alice).get(path).status_code == 403


def test_queries_do_not_grow(
    cast: Cast, instrument: Instrument, config: ModelConfig, server: ChatServer, prompts: tuple[Prompt, Prompt]
) -> None:
    client = cast.client(cast.alice)

    def queries() -> int:
        client.get(address(instrument, prompts))
        with CaptureQueriesContext(connection) as captured:
            assert client.get(address(instrument, prompts)).status_code == 200
        return len(captured)

    for prompt in prompts:
        run(cast, instrument, prompt, config)
    few = queries()
    other = model_config_create(
        study=cast.study, label="Other", base_url=server.base_url, model="m", timeout=5, actor=cast.alice
    )
    for prompt in prompts:
        run(cast, instrument, prompt, config, other, runs=3)
    assert queries() == few


def test_the_papers_prompt_is_its_text_to_the_letter(cast: Cast, prompts: tuple[Prompt, Prompt]) -> None:
    ensured = prompt_ensure(study=cast.study)
    assert ensured not in prompts, "other texts of that name are not what is shown as the paper's prompt"
    assert (ensured.slug, ensured.version, ensured.text) == ("paper", 2, paper_prompt_text())
    assert prompt_ensure(study=cast.study) == ensured
