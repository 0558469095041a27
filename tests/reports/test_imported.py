"""Imported and own runs side by side: on the results page, in the files, in the API."""

import csv
import io

import pytest
from django.urls import reverse

from llmruns.models import Call, Price, Run
from llmruns.replay import Target, replies_count_again, replies_import, replies_set_aside
from reports.model_facts import model_facts
from reports.result_views import current_results
from reports.selectors import row_labels
from tests.llmruns.replay.conftest import as_file, record, source_of, whole
from tests.reports.conftest import ALL, RIGHT, Built

pytestmark = pytest.mark.django_db


def rows(built: Built, name: str) -> list[dict[str, str]]:
    response = built.cast.client(built.cast.alice).get(reverse("export_file", args=["ours", name]))
    text = b"".join(response.streaming_content).decode("utf-8-sig")
    return list(csv.DictReader(io.StringIO(text, newline=""), strict=True))


def take_in(built: Built, lines: list[dict[str, object]]):
    report = replies_import(
        instrument=built.instrument,
        source=source_of(as_file(lines)),
        target=Target(title="Old"),
        actor=built.cast.alice,
    )
    assert report.problems == []
    return report.made


def judge_import(built: Built) -> None:
    """All right, three raters of three."""
    for run in Run.objects.filter(experiment__imported=True):
        for answer in run.sitting.answers.select_related("stimulus"):
            built.answers[f"I{run.ordinal}/{answer.stimulus.position}"] = answer
            built.judge(f"I{run.ordinal}/{answer.stimulus.position}", ALL)


@pytest.fixture
def mixed(built: Built) -> Built:
    """Beside people and Model M: a model of two imported runs, right throughout, with a bad reply and costs."""
    more = {"parameters_asked": {"temperature": 0.5}, "request": {"model": "g", "temperature": 0.5}, "currency": "RUB"}
    texts = [
        record(n, run, raw_reply=f'{{"results": "{RIGHT[n]}"}}', cost=2, **more) for run in (1, 2) for n in (1, 2, 3)
    ]
    texts[0]["attempt"] = 2
    texts.append(record(1, 1, attempt=1, raw_reply="нет", cost="0.5", **more))
    texts.append(record(2, 1, raw_reply=None, state="lost", cost_at_most=9, ended_at="2023-05-01T10:00:00Z", **more))
    texts[3] |= {"sent_at": "2023-05-01T09:00:00Z", "ended_at": "2023-05-01T09:00:01Z"}
    built.made = take_in(built, texts)  # type: ignore[attr-defined]
    judge_import(built)
    return built


def test_an_import_is_scored_like_the_rest_and_marked(mixed: Built) -> None:
    results = current_results(mixed.cast.study, mixed.instrument, {})
    people, own, imported = results.rows
    assert (people.imported, own.imported, imported.imported) == (None, False, True)
    assert imported.label == "GPT-0" and imported.scores[0].mean.norm == 1.0 and imported.scores[0].majority.norm == 1.0
    assert own.scores[0].mean.norm == pytest.approx(26 / 36), "the own runs' score stays what it was"
    page = mixed.cast.client(mixed.cast.alice).get(reverse("results", args=["ours"])).content.decode()
    assert page.count('came in as a file.">imported</span>') == 2, "in the table of scores and in that of parameters"


def test_how_each_model_was_asked_and_what_it_cost(mixed: Built) -> None:
    own, imported = model_facts(current_results(mixed.cast.study, mixed.instrument, {}))
    (temperature,) = imported.parameters
    assert (temperature.asked, temperature.sent, temperature.used) == ([0.5], [0.5], [])
    assert not temperature.is_default and not temperature.is_unknown
    assert (imported.account.first, imported.account.first_valid) == (6, 5)
    assert (imported.account.replies, imported.account.perhaps) == (7, 1)
    money = imported.account.money["RUB"]
    assert (money.known, money.possible) == (12.5, 9)
    # The own model's call asked for nothing that is recorded, and sent a temperature of 1.
    (temperature,) = own.parameters
    assert (temperature.asked, temperature.sent) == ([], [1])
    page = mixed.cast.client(mixed.cast.alice).get(reverse("results", args=["ours"])).content.decode()
    assert "12.5000 RUB" in page and "at most 9.0000 RUB" in page and "83.3 %" in page and "and 1 possibly" in page


def test_what_was_refused_unknown_or_left_to_the_provider_is_told_apart(built: Built) -> None:
    take_in(built, whole(model="Silent"))
    call = Call.objects.get(config=built.config)
    call.asked = {"temperature": 1.0, "top_p": 0.9, "max_output_tokens": None}
    call.request = {"model": "m-1", "messages": []}
    call.used = {"temperature": 0.7}
    call.save(update_fields=["asked", "request", "used"])
    own, silent = model_facts(current_results(built.cast.study, built.instrument, {}))
    temperature, top_p = own.parameters
    assert (temperature.asked, temperature.sent, temperature.used) == ([1.0], [], [0.7])
    assert temperature.is_refused and temperature.is_default and top_p.is_refused
    (unknown,) = silent.parameters
    assert unknown.is_unknown and not unknown.is_default and not unknown.is_refused
    page = built.cast.client(built.cast.alice).get(reverse("results", args=["ours"])).content.decode()
    assert "not accepted: provider default" in page
    assert 'text-nowrap">unknown</span>' in page


def test_an_import_put_aside_is_in_no_result_and_comes_back(mixed: Built) -> None:
    made = mixed.made  # type: ignore[attr-defined]
    replies_set_aside(made=made, reason="wrong", actor=mixed.cast.alice)
    results = current_results(mixed.cast.study, mixed.instrument, {})
    assert [row.label for row in results.models] == ["Model M"] and len(model_facts(results)) == 1
    assert "GPT-0" not in row_labels(mixed.instrument).values()
    assert "GPT-0" not in {row["source"].partition(" ·")[0] for row in rows(mixed, "scores")}
    assert {row["standing"] for row in rows(mixed, "answers") if row["imported"] == "true"} == {"excluded"}
    replies_count_again(made=made, actor=mixed.cast.alice)
    assert len(current_results(mixed.cast.study, mixed.instrument, {}).models) == 2


def test_the_files_say_what_is_imported(mixed: Built) -> None:
    answers = rows(mixed, "answers")
    assert {row["imported"] for row in answers if row["source"].startswith("GPT-0")} == {"true"}
    assert {row["imported"] for row in answers if not row["source"].startswith("GPT-0")} == {"false"}
    times = {(row["sitting"], row["position"]): row["given_at"] for row in answers if row["imported"] == "true"}
    assert times["2", "1"] == "2023-05-01T09:00:01.000+00:00", "when it was given, not when it was imported"
    assert times["1", "1"] == "", "nobody knows"
    scores = rows(mixed, "scores")
    assert [row["imported"] for row in scores] == ["", "", "false", "false", "false", "true", "true"]
    assert {row["score"] for row in scores if row["imported"] == "true"} == {"4"}


def test_the_calls_say_what_was_asked_sent_used_and_paid(mixed: Built) -> None:
    price = Price.objects.create(
        study=mixed.cast.study,
        provider=mixed.config.provider,
        model="m-1",
        currency="USD",
        input_million=2,
        output_million=8,
        valid_from="2026-01-01",
    )
    Call.objects.filter(config=mixed.config).update(
        asked={"temperature": 1.0, "top_p": 0.9, "max_output_tokens": 100},
        request={"model": "m-1", "temperature": 1.0, "max_completion_tokens": 100, "api_key": "sk-secret"},
        used={"temperature": 0.7},
        price=price,
        cost="0.00069600",
        currency="USD",
        reasoning_tokens=7,
    )
    own, *imported = rows(mixed, "calls")
    asked = ("temperature", "top_p", "max_output_tokens")
    assert [own[f"{name}_{what}"] for name in asked for what in ("asked", "sent", "used")] == [
        "1", "1", "0.7", "0.9", "", "", "100", "100", ""
    ]  # fmt: skip
    assert (own["cost"], own["currency"], own["cost_unknown_because"], own["reasoning_tokens"]) == (
        "0.00069600",
        "USD",
        "",
        "7",
    )
    assert (own["imported"], own["kind"], own["attempt"]) == ("false", "", "1") and "sk-secret" not in own["request"]
    assert len(imported) == 8 and {row["imported"] for row in imported} == {"true"}
    assert {row["provider"] for row in imported} == {"replayed"}
    (lost,) = [row for row in imported if row["state"] == "lost"]
    assert (lost["cost"], lost["cost_unknown_because"], lost["cost_at_most"], lost["currency"], lost["attempt"]) == (
        "",
        "lost",
        "9.00000000",
        "RUB",
        "",
    )
    (bad,) = [row for row in imported if row["state"] == "bad_reply"]
    assert (bad["kind"], bad["attempt"], bad["cost"], bad["sent_at"]) == ("format", "1", "0.50000000", "")


def test_a_run_that_lacks_answers_has_no_score_and_nags_nobody(built: Built) -> None:
    take_in(built, [*whole(1), *whole(2)[:2]])
    model = current_results(built.cast.study, built.instrument, {}).models[1]
    assert (model.n_sittings, model.n_unfinished) == (1, 1)
    assert model.scores[0].majority.reason == "incomplete_runs" or model.scores[0].majority.value is None
    page = built.cast.client(built.cast.alice).get("/studies/ours/").content.decode()
    assert "See why runs wait" not in page, "nothing can be done about it"
