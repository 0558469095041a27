"""The log of an experiment, taken into an empty study, gives the same answers, attempts, calls, costs and scores."""

from datetime import datetime
from typing import Any

import pytest

from corpus.importing import read_stimuli
from corpus.models import Answer, Instrument
from corpus.services import instrument_create
from llmruns.accounts import accounts_of
from llmruns.models import Call, Experiment, ModelConfig, Price, RunStimulus
from llmruns.replay import Target, replies_import
from tests import chat_server as chat
from tests.chat_server import ChatServer
from tests.conftest import SMALL_CSV, Cast
from tests.llmruns.conftest import ONE, TWO, Launch, work
from tests.llmruns.replay.conftest import as_file, problems, record, source_of

pytestmark = pytest.mark.django_db


COLUMNS = (
    "run__ordinal", "stimulus__position", "attempt", "state", "kind", "raw_reply", "request", "response",
    "asked", "used", "finish_reason", "http_status", "model_reported", "input_tokens", "output_tokens",
    "cost", "currency", "reserved", "detail", "escaped", "sent", "sent_at", "ended_at",
)  # fmt: skip


def _milliseconds(moment: datetime | None) -> datetime | None:
    """The log has no more of a time."""
    return moment and moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def facts(experiment: Experiment) -> dict[str, Any]:
    """All that makes a result, without the numbers of rows."""
    calls = Call.objects.filter(run__experiment=experiment).order_by("pk")
    return {
        "answers": sorted(
            Answer.objects.filter(sitting__run__experiment=experiment).values_list(
                "sitting__run__config__label", "sitting__run__ordinal", "stimulus__position", "outcome", "text"
            )
        ),
        "runs": sorted(experiment.runs.values_list("config__label", "ordinal", "state", "problem", "sitting__state")),
        "attempts": sorted(
            RunStimulus.objects.filter(run__experiment=experiment).values_list(
                "run__ordinal", "stimulus__position", "attempts", "state"
            )
        ),
        "calls": [
            (*columns, _milliseconds(sent_at), _milliseconds(ended_at))
            for *columns, sent_at, ended_at in calls.values_list(*COLUMNS)
        ],
        "money": {
            currency: (money.known, money.possible) for currency, money in accounts_of(experiment).total.money.items()
        },
        "model": list(experiment.runs.values_list("config__model", "config__temperature").distinct()),
        "prompt": experiment.prompt.text,
        "terms": (experiment.runs_planned, experiment.max_attempts),
    }


def test_a_log_comes_back_as_it_was(cast: Cast, launch: Launch, config: ModelConfig, server: ChatServer) -> None:
    ModelConfig.objects.filter(pk=config.pk).update(max_output_tokens=1000)
    config.refresh_from_db()
    Price.objects.create(
        study=cast.study,
        provider=config.provider,
        model=config.model,
        currency="USD",
        input_million=2,
        output_million=8,
        valid_from="2026-01-01",
    )
    # A bad reply and a hanging server before the answer; a limit before another; ten bad replies in the second run.
    server.script(ONE, chat.BAD_FORMAT, chat.HANG, chat.answer("кошка сидит"), *[chat.BAD_FORMAT] * 10)
    server.script(TWO, chat.rate_limited(1), chat.answer(""))
    experiment = launch(runs=2)
    work(experiment)
    assert Call.objects.filter(kind="rate_limited").update(sent=False) == 1
    cast.client(cast.alice).post(f"/studies/ours/models/{config.pk}/try/")  # a trial is in the log as well
    response = cast.client(cast.alice).get("/studies/ours/calls.jsonl")
    data = b"".join(response.streaming_content)
    other = instrument_create(
        study=cast.other_study,
        slug="small",
        title="Small",
        language="ru",
        instruction="Составьте предложение.",
        stimuli=read_stimuli(SMALL_CSV.encode()),
        actor=cast.bob,
        refusal_below=3,
    )
    report = replies_import(instrument=other, source=source_of(data), target=Target(), actor=cast.bob)
    assert report.problems == [] and {one.code for one in report.notes} == {"not_answers", "prompt_new"}
    expected = facts(experiment)
    assert len(expected["calls"]) > 15 and ("Test model", 2, 1, "no_valid_reply", "") in expected["answers"]
    assert facts(report.made.experiment) == expected


def test_the_log_of_an_import_comes_back_too(cast: Cast, instrument: Instrument) -> None:
    lines = [record(1, attempt=n) for n in (1, 2)] + [record(2, raw_reply=None, state="lost"), record(2), record(3)]
    first = replies_import(
        instrument=instrument, source=source_of(as_file(lines)), target=Target(), actor=cast.alice
    ).made.experiment
    data = b"".join(cast.client(cast.alice).get("/studies/ours/calls.jsonl").streaming_content)
    other = instrument_create(
        study=cast.other_study,
        slug="small",
        title="Small",
        language="ru",
        instruction="Составьте предложение.",
        stimuli=read_stimuli(SMALL_CSV.encode()),
        actor=cast.bob,
        refusal_below=3,
    )
    report = replies_import(instrument=other, source=source_of(data), target=Target(), actor=cast.bob)
    assert report.problems == []
    assert facts(report.made.experiment) == facts(first)


def test_a_study_does_not_take_its_own_log(cast: Cast, launch: Launch, instrument: Instrument) -> None:
    work(launch())
    data = b"".join(cast.client(cast.alice).get("/studies/ours/calls.jsonl").streaming_content)
    report = replies_import(instrument=instrument, source=source_of(data), target=Target(), actor=cast.alice)
    assert problems(report) == [("own_log", 0)] and Experiment.objects.count() == 1


def test_a_log_of_several_experiments_is_to_be_divided(cast: Cast, launch: Launch, instrument: Instrument) -> None:
    first, second = launch(), launch()
    work(first)
    work(second)
    data = b"".join(cast.client(cast.alice).get("/studies/ours/calls.jsonl").streaming_content)
    report = replies_import(instrument=instrument, source=source_of(data), target=Target(), actor=cast.alice)
    assert ("several_experiments", 0) in problems(report)
