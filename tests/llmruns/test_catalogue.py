"""The catalogue of models: built-in rows, a study's own above them, and what a configuration takes from it."""

from datetime import date
from decimal import Decimal

import pytest
from django.test import Client
from django.utils import timezone

from llmruns.calls import question_body
from llmruns.catalogue import (
    catalogue_load,
    catalogue_rows,
    entry_find,
    entry_save,
    price_add,
    prices_of,
)
from llmruns.models import Call, CatalogueEntry, ModelConfig, Price
from llmruns.parameters import extra_body_problem, parameter_rows
from llmruns.pricing import price_at
from llmruns.providers import BASE_URLS
from llmruns.services import model_config_create
from studies.models import AuditEntry
from tests.chat_server import ChatServer
from tests.conftest import Cast
from tests.llmruns.test_pages import NEW_ENTRY, NEW_MODEL, NEW_PRICE

pytestmark = pytest.mark.django_db

# The list of the paper and its judges, as issue and paper name them.
PAPER = {
    "Claude-3-haiku", "Claude-opus-4", "Claude-sonnet-4.5", "Claude-opus-4.8", "GPT-3.5-turbo", "GPT-4o", "GPT-5",
    "GPT-5.4", "Qwen3.5-9B", "Qwen3.5-27B", "Qwen3.5-35B-A3B", "Qwen3.5-122B-A10B", "Qwen3.5-397B-A17B", "GigaChat-2",
    "GigaChat-2-Pro", "GigaChat-2-Max", "Yandex-lite", "Yandex-5.1", "gpt-oss-120b (judge)", "Claude-sonnet-4 (judge)",
}  # fmt: skip


@pytest.fixture
def alice(cast: Cast) -> Client:
    return cast.client(cast.alice)


def test_it_is_loaded_once_and_the_same_each_time() -> None:
    entries, prices = catalogue_load()
    assert set(CatalogueEntry.objects.values_list("label", flat=True)) == PAPER
    assert entries == len(PAPER) == CatalogueEntry.objects.count()
    before = list(Price.objects.order_by("pk").values())
    assert catalogue_load() == (entries, 0) and prices == len(before)
    assert list(Price.objects.order_by("pk").values()) == before


def test_what_it_says_is_sourced_and_of_a_known_shape() -> None:
    catalogue_load()
    for entry in CatalogueEntry.objects.all():
        assert entry.source.startswith("https://") and entry.provider in BASE_URLS, entry
        assert entry.accepts is None or set(entry.accepts) <= set(ModelConfig.PARAMETERS), entry
    for price in Price.objects.all():
        assert price.source and price.valid_from <= date(2026, 11, 30), price
        # Yandex has one price for both.
        assert price.input_million < price.output_million or price.provider == "yandex", price


def test_own_rows_stand_above_built_in_ones_and_nowhere_else(cast: Cast) -> None:
    catalogue_load()
    named = {"provider": "openai", "model": "gpt-5"}
    entry_save(study=cast.study, actor=cast.alice, **named, label="Ours", accepts=["top_p", "temperature", "x"])
    price_add(
        study=cast.study,
        actor=cast.alice,
        **named,
        currency="RUB",
        input_million=Decimal(100),
        output_million=Decimal(200),
        valid_from=date(2025, 1, 1),
    )
    (row,) = [row for row in catalogue_rows(cast.study) if row.entry.model == "gpt-5"]
    assert row.is_own and row.entry.label == "Ours" and row.entry.accepts == ["temperature", "top_p"]
    assert row.price is not None and row.price.currency == "RUB"  # older than the built-in one, and the study's own
    (other,) = [row for row in catalogue_rows(cast.other_study) if row.entry.model == "gpt-5"]
    assert not other.is_own and other.price is not None and other.price.currency == "USD"
    catalogue_load()
    assert entry_find(study=cast.study, **named) == row.entry
    assert [price.study_id for price in prices_of(study=cast.study, **named)] == [cast.study.pk, None]
    assert AuditEntry.objects.filter(study=cast.study, action__in=["price_add", "catalogue_entry_create"]).count() == 2


def test_a_price_of_tomorrow_does_not_count_today(cast: Cast) -> None:
    catalogue_load()
    price_add(
        study=cast.study,
        actor=None,
        provider="openai",
        model="gpt-5",
        currency="USD",
        input_million=Decimal(9),
        output_million=Decimal(9),
        valid_from=date(2999, 1, 1),
    )
    (row,) = [row for row in catalogue_rows(cast.study) if row.entry.model == "gpt-5"]
    assert row.price is not None and row.price.output_million == 10


# --- what a configuration takes from it --------------------------------------------------------------------------


def new_config(cast: Cast, server: ChatServer, **changes: object) -> ModelConfig:
    values = {"label": "GPT-5", "provider": "openai", "model": "gpt-5", "base_url": server.base_url, **changes}
    return model_config_create(study=cast.study, actor=cast.alice, **values)


def test_a_refused_parameter_is_not_sent_and_the_call_says_so(cast: Cast, server: ChatServer, alice: Client) -> None:
    catalogue_load()
    config = new_config(cast, server, temperature=0.3, top_p=0.9, max_output_tokens=50)
    body = question_body(config, "кошка")
    assert "temperature" not in body and "top_p" not in body and body["max_completion_tokens"] == 50
    alice.post(f"/studies/ours/models/{config.pk}/try/")
    call = Call.objects.get()
    assert call.asked == {"temperature": 0.3, "top_p": 0.9, "max_output_tokens": 50}
    assert "temperature" not in server.seen[0].json
    page = alice.get(f"/studies/ours/calls/{call.pk}/").content.decode()
    assert page.count("not sent, the model does not accept it: provider default") == 2
    assert "provider default" in alice.get("/studies/ours/models/").content.decode()


def test_what_the_catalogue_learns_later_changes_no_configuration(cast: Cast, server: ChatServer) -> None:
    config = new_config(cast, server, temperature=0.3)
    assert question_body(config, "кошка")["temperature"] == 0.3  # nothing was known
    entry_save(study=cast.study, actor=None, provider="openai", model="gpt-5", label="x", accepts=[])
    config.refresh_from_db()
    assert question_body(config, "кошка")["temperature"] == 0.3
    assert "temperature" not in question_body(new_config(cast, server, label="Another"), "кошка")


def test_three_columns() -> None:
    asked = {"temperature": 0.3, "top_p": None, "max_output_tokens": None}
    request = {"model": "m", "messages": [], "max_tokens": 4096, "reasoning_effort": "low"}
    rows = {row.name: row for row in parameter_rows(asked, request, {"temperature": 1.0, "service_tier": "default"})}
    assert (rows["temperature"].refused, rows["temperature"].used) == (True, 1.0)
    assert (rows["top_p"].asked, rows["top_p"].sent, rows["top_p"].refused) == (None, None, False)
    assert rows["max_output_tokens"].added and rows["max_output_tokens"].sent == 4096
    assert rows["reasoning_effort"].sent == "low" and rows["service_tier"].used == "default"


@pytest.mark.parametrize(
    ("extra_body", "problem"),
    [
        ({"chat_template_kwargs": {"enable_thinking": False}}, ""),
        ({"Temperature": 1}, "own_field"),
        ({"messages": []}, "own_field"),
        ({"stream": True}, "never"),
        ({"seed": 1}, "never"),
        ({"Authorization": "x"}, "secret"),
        ({"a": "x" * 11_000}, "long"),
        ({"a": "\x00"}, "form"),
        ({"a": "\ud800"}, "form"),
        ({"a": float("nan")}, "form"),
        ([1], "form"),
        ("text", "form"),
    ],
)
def test_what_may_go_with_each_request(extra_body: object, problem: str) -> None:
    assert extra_body_problem(extra_body) == problem


# --- pages -------------------------------------------------------------------------------------------------------


def test_a_model_is_added_from_an_entry(cast: Cast, alice: Client) -> None:
    catalogue_load()
    entry = CatalogueEntry.objects.get(model="claude-opus-4-8")
    page = alice.get(f"/studies/ours/models/new/?entry={entry.pk}")
    form = page.context["form"]
    assert form["model"].value() == "claude-opus-4-8" and form["temperature"].value() is None
    assert form["base_url"].value() == "https://api.anthropic.com"
    data = NEW_MODEL | {"provider": "anthropic", "model": entry.model, "base_url": "", "temperature": "", "top_p": ""}
    data |= {"extra_body": '{"thinking": {"type": "disabled"}}', "label": entry.label}
    assert alice.post("/studies/ours/models/new/", data).status_code == 302
    config = ModelConfig.objects.get()
    assert (config.provider, config.base_url) == ("anthropic", "https://api.anthropic.com")
    assert (config.temperature, config.accepts) == (None, ["max_output_tokens"])
    assert config.extra_body == {"thinking": {"type": "disabled"}}


@pytest.mark.parametrize(
    "change",
    [
        {"provider": "simulated"},
        {"provider": "replayed"},
        {"provider": "x"},
        {"base_url": ""},
        {"provider": "yandex"},
        {"top_p": "0"},
        {"top_p": "1.1"},
        {"extra_body": "{"},
        {"extra_body": "[]"},
        {"extra_body": '{"a": "\\u0000"}'},
        {"extra_body": '{"seed": 1}'},
        {"extra_body": "[" * 10_000},
        {"folder": "x" * 101},
        {"credential": "1"},
    ],
)
def test_a_wrong_model_is_refused_in_words(alice: Client, change: dict[str, str]) -> None:
    response = alice.post("/studies/ours/models/new/", NEW_MODEL | change)
    assert response.status_code == 200 and "text-danger" in response.content.decode()
    assert not ModelConfig.objects.exists()


def test_nonsense_for_an_entry_is_no_entry(alice: Client) -> None:
    for nonsense in ("x", "999999", "-1", "99999999999999999999"):
        assert alice.get(f"/studies/ours/models/new/?entry={nonsense}").status_code == 200


def test_an_entry_is_changed_for_the_study_alone(cast: Cast, alice: Client) -> None:
    catalogue_load()
    entry = CatalogueEntry.objects.get(model="gpt-4o")
    at = f"/studies/ours/models/catalogue/{entry.pk}/"
    response = alice.post(f"{at}edit/", NEW_ENTRY | {"label": "Ours"})
    own = CatalogueEntry.objects.get(study=cast.study)
    assert response.url == f"/studies/ours/models/catalogue/{own.pk}/"
    assert (own.provider, own.model, own.accepts) == ("openai", "gpt-4o", ["max_output_tokens"])
    assert alice.get(at).url == response.url  # the old address leads to it
    assert CatalogueEntry.objects.get(pk=entry.pk).label == "GPT-4o"
    theirs = cast.client(cast.bob).get("/studies/theirs/models/catalogue/").content.decode()
    assert "GPT-4o" in theirs


def test_a_model_is_in_the_catalogue_once(alice: Client) -> None:
    catalogue_load()
    response = alice.post("/studies/ours/models/catalogue/new/", NEW_ENTRY | {"provider": "openai", "model": "gpt-4o"})
    assert response.status_code == 200 and "text-danger" in response.content.decode()
    response = alice.post("/studies/ours/models/catalogue/new/", NEW_ENTRY | {"provider": "openai", "model": "new"})
    assert response.status_code == 302 and CatalogueEntry.objects.filter(model="new").count() == 1


def test_a_price_is_added_and_never_changed(cast: Cast, alice: Client) -> None:
    catalogue_load()
    entry = CatalogueEntry.objects.get(model="GigaChat-2")
    at = f"/studies/ours/models/catalogue/{entry.pk}/prices/new/"
    assert alice.post(at, NEW_PRICE).status_code == 302
    assert alice.post(at, NEW_PRICE | {"input_million": "5"}).status_code == 200
    price = Price.objects.get(model="GigaChat-2")
    assert (price.study, price.currency, price.input_million) == (cast.study, "RUB", 1)
    assert "RUB" in alice.get(f"/studies/ours/models/catalogue/{entry.pk}/").content.decode()


def test_a_model_that_no_catalogue_knows_has_a_price(cast: Cast, alice: Client, config: ModelConfig) -> None:
    """One on a server of the researcher's own, say."""
    at = f"/studies/ours/models/{config.pk}/prices/new/"
    assert at in alice.get("/studies/ours/models/").content.decode(), "where one looks for it"
    assert "every model of this study with the name test-model" in alice.get(at).content.decode()
    response = alice.post(at, NEW_PRICE)
    assert (response.status_code, response.url) == (302, "/studies/ours/models/")
    price = Price.objects.get()
    assert (price.study, price.provider, price.model) == (cast.study, "openai_compatible", "test-model")
    assert price_at(config, timezone.localdate()) == price
    assert "1 / 2 RUB" in alice.get("/studies/ours/models/").content.decode()
    assert alice.post(at, NEW_PRICE).status_code == 200, "one a day"
    ModelConfig.objects.update(provider="replayed")
    assert alice.get(at).status_code == 404 and at not in alice.get("/studies/ours/models/").content.decode()


@pytest.mark.parametrize(
    "change",
    [
        {"input_million": "-1"},
        {"input_million": "nan"},
        {"input_million": "1e99"},
        {"output_million": ""},
        {"currency": "EUR"},
        {"valid_from": "yesterday"},
        {"source": "a\x00b"},
    ],
)
def test_a_wrong_price_is_refused_in_words(alice: Client, change: dict[str, str]) -> None:
    catalogue_load()
    entry = CatalogueEntry.objects.get(model="GigaChat-2")
    response = alice.post(f"/studies/ours/models/catalogue/{entry.pk}/prices/new/", NEW_PRICE | change)
    assert response.status_code == 200 and "text-danger" in response.content.decode()
    assert not Price.objects.filter(model="GigaChat-2").exists()
