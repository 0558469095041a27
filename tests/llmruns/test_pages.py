"""Pages of models, experiments, runs and calls: what they show, and to whom they do not."""

import logging
import uuid

import pytest
from django.apps import apps
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from corpus.models import Instrument
from llmruns.models import (
    Call,
    CatalogueEntry,
    Credential,
    Experiment,
    ModelConfig,
    Price,
    Prompt,
    ProviderLimit,
    Run,
)
from llmruns.prompts import prompt_create
from llmruns.services import paper_prompt_text
from llmruns.urls import urlpatterns
from studies.services import blinding_impose
from tests import chat_server as chat
from tests.chat_server import ChatServer
from tests.conftest import Cast
from tests.llmruns.conftest import KEY, ONE, TWO, Launch, work
from tests.llmruns.judges import ACTIONS, OF_ALL, OF_ONE

pytestmark = pytest.mark.django_db

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>=cmd|'/c'!A1"


@pytest.fixture
def alice(cast: Cast) -> Client:
    return cast.client(cast.alice)


def get(client: Client, path: str) -> str:
    response = client.get(f"/studies/ours/{path}")
    assert response.status_code == 200, path
    return response.content.decode()


NEW_MODEL = {
    "label": "GPT",
    "base_url": "http://127.0.0.1:9/v1/",
    "model": "gpt-4o",
    "key_variable": "TEST_API_KEY",
    "temperature": "1",
    "max_output_tokens": "",
    "timeout": "60",
    "provider": "openai_compatible",
}


def test_a_model_is_added(cast: Cast, alice: Client) -> None:
    response = alice.post("/studies/ours/models/new/", NEW_MODEL)
    assert response.status_code == 302
    config = ModelConfig.objects.get()
    assert (config.label, config.base_url, config.model, config.respondent.kind) == (
        "GPT",
        "http://127.0.0.1:9/v1",
        "gpt-4o",
        "model",
    )
    page = get(alice, "models/")
    assert "GPT" in page and "is not set" in page


@pytest.mark.parametrize(
    "change",
    [
        {"label": ""},
        {"base_url": "ftp://127.0.0.1/v1"},
        {"base_url": "http://user:secret@127.0.0.1/v1"},
        {"base_url": "http://127.0.0.1/v1?key=1"},
        {"base_url": "http://127.0.0.1/v1#a"},
        {"base_url": "http://[::1/v1"},
        {"base_url": "http:///v1"},
        {"base_url": "http://a..b/v1"},
        {"base_url": f"http://{'a' * 64}.com/v1"},
        {"base_url": "http://пример..рф/v1"},
        {"base_url": "http://[v1.x]/v1"},
        {"base_url": "http://127.0.0.1:99999/v1"},
        {"base_url": "http://127.0.0.1/v1\x00"},
        {"model": "x" * 201},
        {"model": "a\x00b"},
        {"key_variable": "SECRET_KEY"},
        {"key_variable": KEY},
        {"temperature": "3"},
        {"temperature": "nan"},
        {"max_output_tokens": "0"},
        {"max_output_tokens": "99999999999"},
        {"timeout": "0"},
        {"timeout": "601"},
    ],
)
def test_a_wrong_model_is_refused_in_words(alice: Client, change: dict[str, str]) -> None:
    response = alice.post("/studies/ours/models/new/", NEW_MODEL | change)
    assert response.status_code == 200
    assert "text-danger" in response.content.decode()
    assert not ModelConfig.objects.exists()


def test_a_key_typed_in_place_of_its_name_is_not_shown_again(alice: Client) -> None:
    response = alice.post("/studies/ours/models/new/", NEW_MODEL | {"key_variable": KEY})
    assert KEY not in response.content.decode()


def test_a_name_is_taken_once(alice: Client) -> None:
    alice.post("/studies/ours/models/new/", NEW_MODEL)
    assert alice.post("/studies/ours/models/new/", NEW_MODEL).status_code == 200
    assert ModelConfig.objects.count() == 1


def test_a_private_address_is_refused_on_a_server(alice: Client, settings: Settings) -> None:
    settings.ALLOW_PRIVATE_ENDPOINTS = False
    for host in ["127.0.0.1", "10.0.0.1", "169.254.169.254", "[::1]", "[::ffff:10.0.0.1]", "localhost", "2130706433"]:
        response = alice.post("/studies/ours/models/new/", NEW_MODEL | {"base_url": f"http://{host}/v1"})
        assert response.status_code == 200, host
    assert not ModelConfig.objects.exists()


NEW_ENTRY = {"label": "New", "known": "known", "accepts": ["max_output_tokens"]}
NEW_PRICE = {"currency": "RUB", "input_million": "1", "output_million": "2", "valid_from": "2026-01-01"}
NEW_CREDENTIAL = {"provider": "openai", "name": "Ours", "key": KEY}


def experiment_form(instrument: Instrument, config: ModelConfig) -> dict[str, object]:
    return {
        "title": "Five runs",
        "instrument": instrument.pk,
        "prompt": "",
        "configs": [config.pk],
        "runs": 5,
        "max_attempts": 10,
        "launch_key": str(uuid.uuid4()),
    }


def test_nothing_is_launched_before_it_is_said_what_will_be_sent(
    alice: Client, instrument: Instrument, config: ModelConfig
) -> None:
    form = experiment_form(instrument, config)
    page = alice.post("/studies/ours/experiments/new/", form | {"step": "confirm"}).content.decode()
    # 1 model × 5 runs × 3 stimuli; at most ten attempts each.
    assert "At least 15 and at most 150 replies" in page
    assert config.base_url.split("/")[2] in page
    assert not Experiment.objects.exists()
    response = alice.post("/studies/ours/experiments/new/", form | {"step": "launch"})
    again = alice.post("/studies/ours/experiments/new/", form | {"step": "launch"})
    experiment = Experiment.objects.get()
    assert response.url == again.url == f"/studies/ours/experiments/{experiment.pk}/"
    assert Run.objects.count() == 5


@pytest.mark.parametrize(
    "change",
    [
        {"runs": 0},
        {"runs": 101},
        {"max_attempts": 51},
        {"configs": []},
        {"instrument": 999_999},
        {"launch_key": "x"},
        {"title": "a\x00b"},
    ],
)
def test_a_wrong_experiment_is_refused_in_words(
    alice: Client, instrument: Instrument, config: ModelConfig, change: dict[str, object]
) -> None:
    form = experiment_form(instrument, config) | change | {"step": "launch"}
    assert alice.post("/studies/ours/experiments/new/", form).status_code == 200
    assert not Experiment.objects.exists()


def test_a_missing_key_is_named_before_the_launch(
    alice: Client, instrument: Instrument, config: ModelConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TEST_API_KEY")
    response = alice.post("/studies/ours/experiments/new/", experiment_form(instrument, config) | {"step": "launch"})
    assert response.status_code == 200 and "TEST_API_KEY is not set" in response.content.decode()
    assert not Experiment.objects.exists()


def test_progress_moves_while_it_runs_and_stands_when_it_ends(alice: Client, launch: Launch) -> None:
    experiment = launch(runs=2)
    page = get(alice, f"experiments/{experiment.pk}/")
    assert 'hx-trigger="every 2s"' in page and "0 of 6 stimuli" in page and "<noscript>" in page
    work(experiment)
    page = get(alice, f"experiments/{experiment.pk}/")
    assert "hx-trigger" not in page and "6 of 6 stimuli" in page


def test_a_pause_says_why_and_what_to_do(alice: Client, launch: Launch, server: ChatServer) -> None:
    server.script("", chat.OUT_OF_QUOTA)
    experiment = launch()
    work(experiment)
    page = get(alice, f"experiments/{experiment.pk}/")
    assert "quota is used up" in page and "Top up the account" in page and "You exceeded your current quota" in page
    server.script("", chat.answer("готово"))
    run = experiment.runs.get()
    response = alice.post(f"/studies/ours/experiments/{experiment.pk}/resume/", {"run": run.pk})
    assert response.status_code == 302
    work(experiment)
    run.refresh_from_db()
    assert run.state == Run.State.FINISHED
    alice.post(f"/studies/ours/experiments/{experiment.pk}/resume/")
    assert "nothing to resume" in get(alice, f"experiments/{experiment.pk}/")


@pytest.mark.parametrize("run", ["9" * 5000, str(2**63), "-1", "²", "x", ""])
def test_a_run_that_is_no_number_is_nobodys(alice: Client, launch: Launch, server: ChatServer, run: str) -> None:
    server.script(ONE, chat.OUT_OF_QUOTA)
    experiment = launch()
    work(experiment)
    assert experiment.runs.get().state == Run.State.PAUSED
    response = alice.post(f"/studies/ours/experiments/{experiment.pk}/resume/", {"run": run})
    assert response.status_code == 302
    assert experiment.runs.get().state == Run.State.PAUSED


def test_another_models_name_is_shown(alice: Client, launch: Launch, server: ChatServer) -> None:
    server.script(ONE, chat.answer("раз", model="cheap-model"))
    server.script(TWO, chat.answer("два", model="test-model-2024-08-06"))
    experiment = launch()
    work(experiment)
    page = get(alice, f"experiments/{experiment.pk}/")
    assert "answered as another model: cheap-model" in page
    assert "answered as test-model-2024-08-06" in page
    call = Call.objects.get(model_reported="cheap-model")
    assert "“test-model” was asked" in get(alice, f"calls/{call.pk}/")
    call = Call.objects.get(model_reported="test-model-2024-08-06")
    assert "a version of it" in get(alice, f"calls/{call.pk}/")


def test_a_trial_shows_what_came(alice: Client, config: ModelConfig, server: ChatServer) -> None:
    response = alice.post(f"/studies/ours/models/{config.pk}/try/")
    call = Call.objects.get()
    assert response.url == f"/studies/ours/calls/{call.pk}/"
    assert (call.purpose, call.state, call.run, call.attempt) == ("trial", "ok", None, None)
    page = get(alice, f"calls/{call.pk}/")
    assert "кошка сидит на столе" in page
    server.script("", chat.WRONG_KEY)
    alice.post(f"/studies/ours/models/{config.pk}/try/")
    call = Call.objects.order_by("pk").last()
    assert (call.state, call.kind) == ("failed", "authentication")
    assert "does not accept the key" in get(alice, f"calls/{call.pk}/")
    get(alice, "models/")


@pytest.mark.parametrize("where", ["answer", "reply", "model", "error", "finish_reason", "body"])
def test_hostile_text_is_text(alice: Client, launch: Launch, server: ChatServer, where: str) -> None:
    server.script(
        ONE,
        {
            "answer": chat.answer(HOSTILE),
            "reply": chat.completion(HOSTILE),
            "model": chat.answer("раз", model=HOSTILE),
            "error": chat.failure(400, HOSTILE),
            "finish_reason": chat.completion("{}", finish_reason=HOSTILE),
            "body": chat.Behaviour(body=HOSTILE.encode()),
        }[where],
    )
    experiment = launch()
    work(experiment)
    run = experiment.runs.get()
    paths = [f"experiments/{experiment.pk}/", f"experiments/{experiment.pk}/runs/{run.pk}/"]
    paths += [f"experiments/{experiment.pk}/calls/"] + [f"calls/{call.pk}/" for call in run.calls.all()]
    pages = "".join(get(alice, path) for path in paths)
    assert "<script>alert" not in pages and "<img" not in pages
    assert "&lt;script&gt;alert(1)" in pages


def test_the_key_is_nowhere(
    alice: Client,
    launch: Launch,
    config: ModelConfig,
    server: ChatServer,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """A server that sends every header back, in a page of its own, in an error and in a redirect."""
    caplog.set_level(logging.DEBUG)
    echo = chat.Behaviour(echo_headers=True)
    server.script(ONE, echo, chat.redirect(f"http://127.0.0.1:9/{KEY}"), chat.answer("раз"))
    server.script(TWO, chat.Behaviour(status=500, echo_headers=True), chat.answer(f"ключ {KEY}"))
    experiment = launch()
    work(experiment)
    alice.post(f"/studies/ours/experiments/{experiment.pk}/resume/")
    work(experiment)
    alice.post(f"/studies/ours/models/{config.pk}/try/")
    assert experiment.runs.get().state == Run.State.FINISHED
    assert any(KEY in str(seen.headers) for seen in server.seen), "it was sent, and only there"

    paths = ["models/", "experiments/", f"experiments/{experiment.pk}/", f"experiments/{experiment.pk}/calls/"]
    paths += [f"experiments/{experiment.pk}/runs/{run.pk}/" for run in experiment.runs.all()]
    paths += [f"calls/{call.pk}/" for call in Call.objects.all()]
    assert KEY not in "".join(get(alice, path) for path in paths)
    with connection.cursor() as cursor:
        for model in apps.get_models(include_auto_created=True):
            table = connection.ops.quote_name(model._meta.db_table)
            cursor.execute("SELECT count(*) FROM " + table + " t WHERE t::text LIKE %s", [f"%{KEY}%"])  # noqa: S608
            assert cursor.fetchone()[0] == 0, model
    out, err = capfd.readouterr()
    assert KEY not in caplog.text and KEY not in out and KEY not in err


def routes(experiment: Experiment, config: ModelConfig) -> dict[str, tuple[str, str]]:
    run, call = experiment.runs.first(), Call.objects.first()
    limit, _ = ProviderLimit.objects.get_or_create(study=experiment.study, provider="openai", parallel=3)
    at = f"/studies/ours/experiments/{experiment.pk}/"
    named = {"study": config.study, "provider": "openai"}
    entry, _ = CatalogueEntry.objects.get_or_create(**named, model="gpt-own", label="Own")
    credential, _ = Credential.objects.get_or_create(**named, name="Own", defaults={"ciphertext": b"sealed"})
    catalogue = f"/studies/ours/models/catalogue/{entry.pk}/"
    return {
        "catalogue_list": ("get", "/studies/ours/models/catalogue/"),
        "catalogue_new": ("post", "/studies/ours/models/catalogue/new/"),
        "catalogue_entry": ("get", catalogue),
        "catalogue_edit": ("post", f"{catalogue}edit/"),
        "price_new": ("post", f"{catalogue}prices/new/"),
        "credential_list": ("get", "/studies/ours/models/keys/"),
        "credential_new": ("post", "/studies/ours/models/keys/new/"),
        "credential_retire": ("post", f"/studies/ours/models/keys/{credential.pk}/retire/"),
        "model_list": ("get", "/studies/ours/models/"),
        "model_new": ("post", "/studies/ours/models/new/"),
        "model_price_new": ("post", f"/studies/ours/models/{config.pk}/prices/new/"),
        "model_try": ("post", f"/studies/ours/models/{config.pk}/try/"),
        "experiment_list": ("get", "/studies/ours/experiments/"),
        "experiment_new": ("post", "/studies/ours/experiments/new/"),
        "experiment_detail": ("get", at),
        "experiment_cancel": ("post", f"{at}cancel/"),
        "experiment_resume": ("post", f"{at}resume/"),
        "experiment_pause": ("post", f"{at}pause/"),
        "experiment_cap": ("post", f"{at}cap/"),
        "prompt_list": ("get", "/studies/ours/prompts/"),
        "prompt_new": ("post", "/studies/ours/prompts/new/"),
        "limit_list": ("post", "/studies/ours/limits/"),
        "limit_edit": ("post", f"/studies/ours/limits/{limit.pk}/"),
        "limit_delete": ("post", f"/studies/ours/limits/{limit.pk}/remove/"),
        "call_log": ("get", "/studies/ours/calls/"),
        "call_file": ("get", "/studies/ours/calls.jsonl"),
        "run_detail": ("get", f"{at}runs/{run.pk}/"),
        "call_list": ("get", f"{at}calls/"),
        "call_detail": ("get", f"/studies/ours/calls/{call.pk}/"),
    }


ROUTES = [
    "model_list", "model_new", "model_try", "experiment_list", "experiment_new", "experiment_detail",
    "experiment_cancel", "experiment_resume", "run_detail", "call_list", "call_detail", "experiment_pause",
    "experiment_cap", "limit_list", "limit_edit", "limit_delete", "call_log", "call_file",
    "prompt_list", "prompt_new",
    "catalogue_list", "catalogue_new", "catalogue_entry", "catalogue_edit", "price_new",
    "model_price_new",
    "credential_list", "credential_new", "credential_retire",
]  # fmt: skip


@pytest.fixture
def finished(launch: Launch) -> Experiment:
    experiment = launch()
    work(experiment)
    return experiment


def test_every_route_is_asked_for() -> None:
    of_judges = {*ACTIONS, *OF_ONE, *OF_ALL} - {"judging_new", "judging_agreement", "judging_csv"}  # those of reports
    of_imports = {name for name in (pattern.name for pattern in urlpatterns) if name.startswith("reply_")}
    assert of_imports, "asked for in tests/llmruns/replay"
    assert {pattern.name for pattern in urlpatterns} - of_imports == set(ROUTES) | of_judges


@pytest.mark.parametrize("name", ROUTES)
def test_the_wrong_person_is_refused(
    cast: Cast, finished: Experiment, config: ModelConfig, server: ChatServer, instrument: Instrument, name: str
) -> None:
    method, path = routes(finished, config)[name]
    data = {
        "model_new": NEW_MODEL,
        "catalogue_new": NEW_ENTRY | {"provider": "openai", "model": "gpt-new"},
        "catalogue_edit": NEW_ENTRY,
        "price_new": NEW_PRICE,
        "model_price_new": NEW_PRICE,
        "credential_new": NEW_CREDENTIAL,
    }.get(name, experiment_form(instrument, config) | {"step": "launch", "cap": "1"})
    # What must not change, whoever asks: the rows and the key that could be deleted.
    kept = [list(model.objects.order_by("pk").values()) for model in (CatalogueEntry, Price, Credential)]
    if name == "prompt_new":
        data = {"slug": "paper", "text": "Слова: {words}", "instrument": instrument.pk, "step": "save"}
    if name.startswith("limit"):
        data = {"provider": "anthropic", "parallel": "9"}
    asked = len(server.seen)
    before = (Experiment.objects.count(), ModelConfig.objects.count(), Call.objects.count())
    prompts = Prompt.objects.count()
    limits = list(ProviderLimit.objects.values())
    for user in (cast.bob, cast.rita):
        assert getattr(cast.client(user), method)(path, data).status_code == 404
    nobody = getattr(Client(), method)(path, data)
    assert nobody.status_code == 302 and "/login/" in nobody.url
    if method == "post":
        for verb in ("put", "delete"):
            assert getattr(cast.client(cast.alice), verb)(path).status_code == 405
    assert (Experiment.objects.count(), ModelConfig.objects.count(), Call.objects.count()) == before
    assert [list(model.objects.order_by("pk").values()) for model in (CatalogueEntry, Price, Credential)] == kept
    assert Prompt.objects.count() == prompts
    assert list(ProviderLimit.objects.values()) == limits
    assert len(server.seen) == asked


@pytest.mark.parametrize(
    "name",
    [
        "model_try",
        "experiment_cancel",
        "experiment_resume",
        "experiment_pause",
        "experiment_cap",
        "limit_delete",
        "credential_retire",
    ],
)
def test_a_get_starts_nothing(
    cast: Cast, finished: Experiment, config: ModelConfig, server: ChatServer, name: str
) -> None:
    asked = len(server.seen)
    assert cast.client(cast.alice).get(routes(finished, config)[name][1]).status_code == 405
    assert len(server.seen) == asked


def test_nothing_of_another_study_is_found_under_ones_own(
    cast: Cast, finished: Experiment, config: ModelConfig
) -> None:
    bob = cast.client(cast.bob)
    for method, path in routes(finished, config).values():
        if any(character.isdigit() for character in path):
            assert getattr(bob, method)(path.replace("/ours/", "/theirs/")).status_code == 404, path


def test_who_is_rating_sees_no_reply(cast: Cast, finished: Experiment, config: ModelConfig) -> None:
    blinding_impose(user=cast.alice, study=cast.study, cause="campaign 1")
    alice = cast.client(cast.alice)
    for name in ("run_detail", "call_list", "call_detail", "model_try", "call_log", "call_file"):
        method, path = routes(finished, config)[name]
        assert getattr(alice, method)(path).status_code == 403, name
    assert alice.get(routes(finished, config)["experiment_detail"][1]).status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "models/",
        "limits/",
        "prompts/",
        "calls/",
        "experiments/",
        "experiments/{e}/",
        "experiments/{e}/calls/",
        "experiments/{e}/runs/{r}/",
    ],
)
def test_queries_do_not_grow(alice: Client, launch: Launch, cast: Cast, path: str) -> None:
    def queries(experiment: Experiment) -> int:
        run = experiment.runs.first()
        with CaptureQueriesContext(connection) as captured:
            get(alice, path.format(e=experiment.pk, r=run.pk))
        return len(captured)

    small = launch(runs=1)
    work(small)
    queries(small)
    few = queries(small)
    large = launch(runs=6)
    work(large)
    assert queries(large) == few <= 14


def test_the_runs_of_a_large_experiment_are_paged(
    alice: Client, launch: Launch, config: ModelConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("llmruns.overview.RUNS_SHOWN", 2)
    monkeypatch.setattr("llmruns.overview.NAMED", 2)
    experiment = launch(runs=5)
    stuck = list(experiment.runs.order_by("ordinal"))[:3]
    experiment.runs.filter(pk__in=[run.pk for run in stuck]).update(state="paused", problem="quota", reason="no money")
    at = f"experiments/{experiment.pk}/"
    first, last = get(alice, at), get(alice, f"{at}?page=3")
    assert "0 of 15 stimuli are settled" in first and "0 of 15 stimuli are settled" in last
    assert "Runs 1 to 2 of 5" in first and "Runs 5 to 5 of 5" in last
    assert "Runs 5 to 5 of 5" in get(alice, f"{at}?page=9")
    assert f"/runs/{stuck[0].pk}/" in first and f"/runs/{stuck[0].pk}/" not in last
    assert "run 1, run 2 and 1 more" in first and "no money" in last
    for nothing in ("", "x", str(experiment.runs.last().pk), "99999999999999999"):
        assert alice.post(f"/studies/ours/{at}resume/", {"like": nothing}).status_code == 302
    assert experiment.runs.filter(state="paused").count() == 3
    alice.post(f"/studies/ours/{at}resume/", {"like": str(stuck[1].pk)})
    assert not experiment.runs.filter(state="paused").exists()


def test_calls_are_filtered_and_paged(alice: Client, launch: Launch, server: ChatServer) -> None:
    server.script(ONE, chat.BAD_FORMAT)
    experiment = launch(runs=6)
    work(experiment)
    at = f"experiments/{experiment.pk}/calls/"
    assert "Page 1 of 2" in get(alice, at)
    assert "Page 2 of 2" in get(alice, f"{at}?page=2") and "Page 2 of 2" in get(alice, f"{at}?page=99")
    bad = get(alice, f"{at}?state=bad_reply&run={experiment.runs.first().pk}")
    assert "10 calls" in bad
    for nonsense in ("?page=x", "?state=x", "?run=x&stimulus=-1", "?run=99999999999999999999", "?run=²"):
        get(alice, at + nonsense)


def test_the_papers_prompt_is_what_is_shown_and_sent_whatever_versions_bear_its_name(
    cast: Cast, alice: Client, instrument: Instrument, config: ModelConfig
) -> None:
    other = prompt_create(study=cast.study, slug="paper", text="Совсем другое: {words}", actor=cast.alice)
    form = experiment_form(instrument, config)
    shown = alice.post("/studies/ours/experiments/new/", form | {"step": "confirm"}).content.decode()
    assert "Совсем другое" not in shown
    alice.post("/studies/ours/experiments/new/", form | {"step": "launch"})
    sent = Experiment.objects.get().prompt
    assert sent != other and sent.text == paper_prompt_text()


@pytest.mark.parametrize(
    "typed", ['{"a": "\\ud800"}', '{"a": ' + "[" * 600 + "]" * 600 + "}"], ids=["half a character", "nested deep"]
)
def test_further_parameters_that_cannot_be_kept_are_an_error_of_the_field(alice: Client, typed: str) -> None:
    response = alice.post("/studies/ours/models/new/", NEW_MODEL | {"extra_body": typed})
    assert response.status_code == 200 and response.context["form"].errors["extra_body"]
    assert not ModelConfig.objects.exists()
