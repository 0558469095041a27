"""What the endpoints return: the same facts under the same names as the CSV files, and the results page's numbers."""

import csv
import io
from datetime import datetime
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from annotation.votes import campaign_agreement
from llmruns.models import Call
from reports.csvfile import cell
from tests.api.conftest import Ready, grow
from tests.api.routes import LISTS


def file(ready: Ready, name: str) -> list[dict[str, str]]:
    cast = ready.built.cast
    response = cast.client(cast.alice).get(reverse("export_file", args=["ours", name]))
    text = b"".join(response.streaming_content).decode("utf-8-sig")
    return list(csv.DictReader(io.StringIO(text, newline=""), strict=True))


def as_cell(value: Any, beside: str) -> str:
    """The API's value as the file writes it; times to the file's milliseconds."""
    if beside.endswith("+00:00") and isinstance(value, str):
        return cell(datetime.fromisoformat(value))
    return cell(value)


def assert_same(rows: list[dict[str, Any]], written: list[dict[str, str]]) -> None:
    assert len(rows) == len(written) > 0
    for row, line in zip(rows, written, strict=True):
        assert set(line) <= set(row)
        assert {name: as_cell(row[name], text) for name, text in line.items()} == line


@pytest.mark.parametrize("name", ["answers", "judgements", "scores"])
def test_a_list_says_what_its_file_says(ready: Ready, name: str) -> None:
    written = file(ready, name)
    assert_same(ready.everything(f"{name}/"), written)


def test_labels_say_what_their_file_says(ready: Ready) -> None:
    rows = [
        {**{name: answer[name] for name in ("study", "simulated", "answer", "position")}, **label}
        for answer in ready.everything("labels/")
        for label in answer["labels"]
    ]
    assert_same(rows, file(ready, "labels"))


def test_calls_say_what_their_file_says(ready: Ready) -> None:
    Call.objects.create(config=ready.built.config, purpose="trial", state="failed", kind="timeout", request={"n": 1})
    listed = ready.everything("calls/")
    assert [row["run"] for row in listed] == [1, None]
    assert "raw_reply" not in listed[0], "a list leaves out what may be megabytes"
    whole = [ready.get(f"calls/{row['id']}/") for row in listed]
    written = file(ready, "calls")
    requests = [line.pop("request") for line in written]
    assert_same(whole, written)
    assert [cell(row["request"]) for row in whole] == requests
    assert whole[0]["response"] is None


def test_answers_say_where_they_come_from(ready: Ready) -> None:
    first = ready.get(f"answers/{ready.built.answers['P1/1'].blind_id}/")
    assert (first["survey"], first["run"], first["duration_ms"], first["words"]) == ("autumn", None, 4321, 4)
    of_model = ready.get(f"answers/{ready.built.answers['M2/1'].blind_id}/")
    assert (of_model["survey"], of_model["run"], of_model["kind"]) == (None, 2, "model")
    assert of_model["experiment_id"] == ready.built.experiment.pk


def test_answers_of_withdrawn_sittings_stay_in_the_house(ready: Ready) -> None:
    answer = ready.built.answers["P1/1"]
    answer.sitting.standing = "withdrawn"
    answer.sitting.save(update_fields=["standing"])
    ready.get(f"answers/{answer.blind_id}/", 404)
    for name in ("sittings", "answers", "judgements", "labels", "scores"):
        text = str(ready.everything(f"{name}/"))
        assert str(answer.blind_id) not in text
        assert str(answer.sitting.respondent.public_id) not in text


def test_results_are_those_derived_by_hand(ready: Ready) -> None:
    found = ready.get("results/")
    assert found["criteria"] == ["grammatical", "logical", "order", "sequence"]
    people, model = found["rows"]
    assert (people["kind"], people["n_sittings"], people["n_refusals"], people["n_undecided"]) == ("human", 2, 1, 1)
    everything = people["cuts"][0]
    assert (everything["factor"], everything["n_stimuli"], everything["n_scored"]) == ("all", 3, 1)
    # only P1 has a score: 7/3
    assert everything["mean"] == {
        "score": pytest.approx(7 / 3),
        "score_norm": pytest.approx(7 / 12),
        "reason": None,
    }
    assert everything["interval"]["low"] is None
    assert everything["interval"]["reason"] == "too_few"
    assert everything["sd_over_runs"] is everything["majority"] is None
    # P1 7/3 and P2 between 9/3 and 10/3: their mean between 16/6 and 17/6
    assert everything["bounds"]["low"] == pytest.approx(16 / 6)
    assert everything["bounds"]["high_norm"] == pytest.approx(17 / 24)
    assert (model["group"], model["experiment"], model["n_no_valid_reply"]) == ("Model M", "First", 1)
    # the runs have 8/3, 11/3 and 7/3
    assert model["cuts"][0]["mean"]["score"] == pytest.approx(26 / 9)
    assert model["cuts"][0]["interval"] is None
    assert [(cut["factor"], cut["level"]) for cut in model["cuts"]] == [
        ("all", ""),
        ("shuffled", "no"),
        ("shuffled", "yes"),
        ("complexity", "easy"),
        ("complexity", "medium"),
    ]
    third = people["stimuli"][2]
    # P1 declined (0), P2 is undecided
    assert (third["position"], third["score"], third["n_scored"], third["n_undecided"]) == (3, 0, 1, 1)


def test_an_undefined_result_is_null_with_its_reason(ready: Ready) -> None:
    run = ready.built.experiment.runs.get(ordinal=1)
    run.state, sitting = "incomplete", run.sitting
    run.save(update_fields=["state"])
    sitting.state, sitting.finished_at = "open", None  # it can be resumed
    sitting.save(update_fields=["state", "finished_at"])
    model = ready.get("results/")["rows"][1]
    majority = model["cuts"][0]["majority"]
    assert (majority["score"], majority["score_norm"]) == (None, None)
    assert majority["reason"] == "incomplete_run"
    unfinished = [row for row in ready.everything("scores/") if row["sitting_state"] == "open"]
    assert [(row["score"], row["reason"]) for row in unfinished] == [(None, "unfinished")]


def test_results_of_an_instrument_that_is_not_there(ready: Ready) -> None:
    for name in ("results", "labels", "scores"):
        ready.get(f"{name}/?instrument=nothing", 404)
        assert ready.get(f"{name}/?instrument=small&instrument_version=1")
        ready.get(f"{name}/?instrument=small&instrument_version=2", 404)


def test_campaigns_with_progress_and_agreement(ready: Ready) -> None:
    (campaign,) = ready.everything("campaigns/")
    assert (campaign["n_answers"], campaign["n_places"], campaign["n_done"]) == (13, 13, 13)
    assert (campaign["adjudicator"], campaign["state"]) == ("R1", "open")
    progress = ready.get(f"campaigns/{campaign['id']}/progress/")
    assert [(row["rater"], row["n_done"]) for row in progress["raters"]] == [("R1", 13), ("R2", 0), ("R3", 0)]
    found = ready.get(f"campaigns/{campaign['id']}/agreement/")
    page = campaign_agreement(ready.campaign)
    assert [row["criterion"] for row in found["criteria"]] == ["grammatical", "logical", "order"]
    for row, beside in zip(found["criteria"], page.attempts, strict=True):
        assert row["alpha"]["value"] == pytest.approx(beside.agreement.value)
        assert row["alpha"]["interval"]["low"] == pytest.approx(beside.agreement.interval.low)
        assert row["percent"]["n_pairs"] == beside.percent.n_pairs
        assert row["alpha"]["reason"] is None
    ready.campaign.round.judgements.update(retracted_at=timezone.now())
    empty = ready.get(f"campaigns/{campaign['id']}/agreement/")["criteria"][0]
    assert (empty["alpha"]["value"], empty["alpha"]["reason"]) == (None, "no_common_unit")


def test_instruments_surveys_rounds_models(ready: Ready) -> None:
    (instrument,) = ready.everything("instruments/")
    assert [row["position"] for row in instrument["stimuli"]] == [1, 2, 3]
    assert (instrument["instrument"], instrument["instrument_version"], instrument["n_sittings"]) == ("small", 1, 5)
    (survey,) = ready.everything("surveys/")
    assert (survey["n_started"], survey["n_finished"], survey["n_left"]) == (1, 1, 0)
    rounds = {row["purpose"]: row for row in ready.everything("rounds/")}
    assert rounds["adjudication"]["adjudicates"] == rounds["rating"]["round"]
    assert [row["criterion"] for row in rounds["rating"]["criteria"]][-2:] == ["sequence", "vocabulary"]
    (model,) = ready.everything("models/")
    assert (model["model"], model["model_requested"], model["key_variable"]) == ("Model M", "m-1", "")


def test_experiments_and_runs(ready: Ready) -> None:
    (experiment,) = ready.everything("experiments/")
    assert (experiment["experiment"], experiment["n_runs"], experiment["n_finished"]) == ("First", 3, 3)
    runs = ready.everything(f"runs/?experiment_id={experiment['id']}")
    assert [(row["run"], row["state"], row["sitting"]) for row in runs] == [
        (1, "finished", 1),
        (2, "finished", 2),
        (3, "finished", 3),
    ]
    assert len(ready.get(f"experiments/{experiment['id']}/progress/")["progress"]) == 3


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("kind=human&position=1", {"P1/1", "P2/1"}),
        ("survey=autumn", {"P1/1", "P1/2", "P1/3"}),
        ("kind=model&position=3", {"M1/3", "M2/3", "M3/3"}),
        ("standing=pilot", set()),
        ("instrument=small&instrument_version=1&position=2&kind=human", {"P1/2", "P2/2"}),
        ("instrument=other", set()),
        ("run_id={run}", {"M1/1", "M1/2", "M1/3"}),
        ("experiment_id={experiment}&position=1", {"M1/1", "M2/1", "M3/1"}),
        ("respondent={respondent}", {"P1/1", "P1/2", "P1/3"}),
        ("experiment_id=9223372036854775807", set()),
    ],
)
def test_filters_narrow(ready: Ready, query: str, names: set[str]) -> None:
    built = ready.built
    query = query.format(
        run=built.experiment.runs.get(ordinal=1).pk,
        experiment=built.experiment.pk,
        respondent=built.answers["P1/1"].sitting.respondent.public_id,
    )
    known = {str(answer.blind_id): name for name, answer in built.answers.items()}
    assert {known[row["answer"]] for row in ready.everything(f"answers/?{query}")} == names
    judged = {known[row["answer"]] for row in ready.everything(f"judgements/?{query}")}
    assert judged <= names
    assert bool(judged) == bool(names)
    if "position" not in query:
        assert bool(ready.everything(f"sittings/?{query}")) == bool(names)


def test_filters_of_judgements(ready: Ready) -> None:
    rows = ready.everything("judgements/?judge_kind=rule&position=1")
    assert {row["judge"] for row in rows} == {"sequence_equal", "vocabulary_match"}
    rows = ready.everything(f"judgements/?answer={ready.built.answers['P1/2'].blind_id}&criterion=order&purpose=rating")
    assert [(row["judge"], row["value"]) for row in rows] == [("R1", 0), ("R2", 0), ("R3", 1)]
    rows = ready.everything(f"scores/?kind=model&run_id={ready.built.experiment.runs.get(ordinal=2).pk}")
    assert [row["score"] for row in rows] == [pytest.approx(11 / 3)]


def test_pages_hold_when_rows_come_in_between(ready: Ready) -> None:
    first = ready.get("answers/?page_size=5")
    ready.built.sitting("late", {1: "кошка сидит на столе"})
    second = ready.client.get(first["next"]).json()
    back = ready.client.get(second["previous"]).json()
    assert not {row["answer"] for row in first["results"]} & {row["answer"] for row in second["results"]}
    assert back["results"] == first["results"]
    assert first["previous"] is None


def test_a_page_costs_the_same_whatever_its_rows(ready: Ready) -> None:
    grow(ready)
    ready.get("judgements/")  # the counting rules judge what is new
    for route in LISTS:
        counts = {}
        for size in (5, 50):
            with CaptureQueriesContext(connection) as queries:
                page = ready.client.get(f"{route.address(ready.samples)}?page_size={size}").json()
            assert len(page["results"]) == size, route
            counts[size] = len(queries)
        assert counts[5] == counts[50] < 40, (route, counts)


def test_a_table_costs_the_same_whatever_its_rows(ready: Ready) -> None:
    paths = ["results/", f"campaigns/{ready.campaign.pk}/agreement/", f"campaigns/{ready.campaign.pk}/progress/"]
    paths += [f"experiments/{ready.built.experiment.pk}/progress/"]
    counts = []
    for _ in range(2):
        ready.get("results/")
        counts.append({})
        for path in paths:
            with CaptureQueriesContext(connection) as queries:
                ready.get(path)
            counts[-1][path] = len(queries)
        if len(counts) == 1:
            grow(ready)
    assert counts[0] == counts[1]


def test_no_secret_is_in_any_response(ready: Ready, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "sk-live-0123456789abcdef"
    monkeypatch.setenv("TEST_API_KEY", key)
    ready.built.config.key_variable = "TEST_API_KEY"
    ready.built.config.save(update_fields=["key_variable"])
    token = ready.client.defaults["HTTP_AUTHORIZATION"].removeprefix("Token ")
    assert "sk-secret" in str(Call.objects.get().request), "the request holds what must not be shown"
    for route in LISTS:
        text = ready.client.get(route.address(ready.samples)).content.decode()
        for secret in (key, "sk-secret", token, ready.survey.completion_code, "digest"):
            assert secret not in text, route
    whole = ready.get(f"calls/{Call.objects.get().pk}/")
    assert whole["request"] == {"model": "m-1", "temperature": 1}
    assert ready.everything("models/")[0]["key_variable"] == "TEST_API_KEY"
