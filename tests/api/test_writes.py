import uuid
from typing import Any

import pytest

from llmruns.models import Experiment, ModelConfig, Price, Prompt
from studies.models import AuditEntry
from tests.api.conftest import ROOT, Ready, client_of, launch_body

ADDRESS = ROOT + "experiments/"


def launch(ready: Ready, body: dict[str, Any]) -> Any:
    return ready.client.post(ADDRESS, body, content_type="application/json")


def test_a_launch(ready: Ready) -> None:
    response = launch(ready, launch_body(experiment="By API", max_attempts=3, prompt="paper", prompt_version=1))
    assert response.status_code == 201
    row = response.json()
    experiment = Experiment.objects.get(pk=row["id"])
    assert (row["experiment"], row["runs"], row["n_runs"], row["state"]) == ("By API", 2, 2, "running")
    assert (experiment.launched_by, experiment.max_attempts) == (ready.built.cast.alice, 3)
    assert str(experiment.launch_key) == row["launch_key"]
    assert {run.config for run in experiment.runs.all()} == {ready.built.config}
    assert AuditEntry.objects.get(action="experiment_launch").actor == ready.built.cast.alice
    assert ready.get(f"experiments/{experiment.pk}/") == row


def test_without_a_prompt_it_is_the_papers(ready: Ready) -> None:
    Prompt.objects.create(study=ready.built.cast.study, slug="own", text="{words}?")
    row = launch(ready, launch_body()).json()
    assert (row["prompt"], row["experiment"]) == ("paper", "Small")


def test_the_same_key_launches_once(ready: Ready) -> None:
    body = launch_body()
    first, second = launch(ready, body), launch(ready, body)
    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json() == second.json()
    assert Experiment.objects.count() == 2  # with the fixture's
    other = launch(ready, body | {"runs": 3})
    assert (other.status_code, other.json()["code"]) == (409, "launch_key_used")
    assert Experiment.objects.count() == 2


def test_a_key_of_another_study_is_free_here(ready: Ready) -> None:
    key = uuid.uuid4()
    theirs = ready.built.cast.other_study
    instrument = theirs.instruments.create(slug="t", title="T", instruction="…")
    prompt = Prompt.objects.create(study=theirs, slug="paper", text="{words}")
    Experiment.objects.create(study=theirs, instrument=instrument, prompt=prompt, title="T", launch_key=key)
    assert launch(ready, launch_body(launch_key=str(key))).status_code == 201


def test_a_missing_provider_key_is_a_conflict(ready: Ready, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ABSENT_API_KEY", raising=False)
    ModelConfig.objects.update(key_variable="ABSENT_API_KEY")
    response = launch(ready, launch_body())
    assert (response.status_code, response.json()["code"]) == (409, "key_missing")
    assert "ABSENT_API_KEY" in response.json()["detail"]
    assert Experiment.objects.count() == 1


def test_a_private_address_is_a_conflict(ready: Ready, settings: Any) -> None:
    settings.ALLOW_PRIVATE_ENDPOINTS = False
    response = launch(ready, launch_body())
    assert (response.status_code, response.json()["code"]) == (409, "address_refused")
    assert Experiment.objects.count() == 1


def test_cancel(ready: Ready) -> None:
    pk = launch(ready, launch_body()).json()["id"]
    for _ in range(2):  # cancelling twice is cancelling once
        response = ready.client.post(f"{ADDRESS}{pk}/cancel/")
        assert (response.status_code, response.json()["state"]) == (200, "cancelled")
    assert AuditEntry.objects.filter(action="experiment_cancel").count() == 1
    assert {run.state for run in Experiment.objects.get(pk=pk).runs.all()} == {"cancelled"}


def test_what_has_ended_is_not_cancelled(ready: Ready) -> None:
    Experiment.objects.update(state="finished")
    response = ready.client.post(f"{ADDRESS}{ready.built.experiment.pk}/cancel/")
    assert (response.status_code, response.json()["code"]) == (409, "not_running")
    assert Experiment.objects.get().state == "finished"


@pytest.mark.parametrize("who", ["bob", "rita"])
def test_others_neither_launch_nor_cancel(ready: Ready, who: str) -> None:
    client = client_of(getattr(ready.built.cast, who))
    assert client.post(ADDRESS, launch_body(), content_type="application/json").status_code == 404
    assert client.post(f"{ADDRESS}{ready.built.experiment.pk}/cancel/").status_code == 404
    assert list(Experiment.objects.values_list("state", flat=True)) == ["running"]


def test_a_cap_is_an_amount_with_a_currency_and_needs_models_that_can_be_bounded(ready: Ready) -> None:
    half = launch(ready, launch_body(cap="1.50"))
    assert half.status_code == 400 and "A cap is an amount" in half.content.decode()
    for cap in ("0", "-1", "x", "NaN"):
        assert launch(ready, launch_body(cap=cap, currency="USD")).status_code == 400
    refused = launch(ready, launch_body(cap="1.50", currency="USD"))
    assert (refused.status_code, refused.json()["code"]) == (409, "cap_impossible")
    assert "no price is known" in refused.content.decode() and Experiment.objects.count() == 1
    config = ModelConfig.objects.get(label="Model M")
    ModelConfig.objects.filter(pk=config.pk).update(max_output_tokens=100)
    Price.objects.create(
        study=config.study,
        provider=config.provider,
        model=config.model,
        currency="USD",
        input_million=1,
        output_million=1,
        valid_from="2026-01-01",
    )
    row = launch(ready, launch_body(cap="1.50", currency="USD")).json()
    assert (row["cap"], row["currency"], row["spent"]) == ("1.50000000", "USD", "0.00000000")
