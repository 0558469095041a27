"""Every way to fail × every provider, through the worker's own path: the state, the bytes kept, the money, and after it
the next question.

The providers' own modules are tested in test_providers.py and test_vendors.py; here it is what stands in the tables.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal

import pytest
from django.utils import timezone
from pytest_django import Settings

from corpus.models import Instrument
from llmruns import tokens
from llmruns.calls import stimulus_work
from llmruns.models import Call, Experiment, ModelConfig, Price, Run, RunStimulus
from llmruns.pricing import bound, call_cost
from llmruns.services import experiment_launch, model_config_create, prompt_ensure
from llmruns.storing import BODY_KEPT
from tests import chat_server as chat
from tests.chat_server import Behaviour, ChatServer
from tests.conftest import Cast
from tests.llmruns import vendors
from tests.llmruns.conftest import KEY, ONE
from tests.llmruns.vendors import GigaServer, claude_error, giga_error, message

pytestmark = pytest.mark.django_db

VENDORS = ["openai", "anthropic", "gigachat", "yandex", "openai_compatible"]
PRICE = Decimal("0.000696")  # 300 tokens in at 2 dollars for a million and 12 out at 8
BLACKLISTED = chat.completion("Не люблю менять тему", finish_reason="blacklist")
NO_CREDIT = claude_error(400, "invalid_request_error", "Your credit balance is too low")
CLAUDE_FILTER = claude_error(400, "invalid_request_error", "Output blocked by content filtering policy")


@dataclass(frozen=True)
class Case:
    """`billed`: yes (what the reply counts), no (nothing), maybe (at most the reservation)."""

    kind: str
    state: str
    billed: str
    behaviour: Behaviour
    anthropic: Behaviour | None = None  # where the vendor says it in other words
    gigachat: Behaviour | None = None
    pauses: bool = False
    kept: bytes | None = None  # the beginning of what is kept of the body
    unknown_cost: tuple[str, ...] = field(default=())  # vendors that say no number of tokens with it

    def of(self, vendor: str) -> Behaviour:
        return {"anthropic": self.anthropic, "gigachat": self.gigachat}.get(vendor) or self.behaviour


def bad_reply(kind: str, behaviour: Behaviour, **more: object) -> Case:
    return Case(kind, "bad_reply", "yes", behaviour, **more)  # type: ignore[arg-type]


def failed(kind: str, billed: str, behaviour: Behaviour, **more: object) -> Case:
    return Case(kind, "failed", billed, behaviour, **more)  # type: ignore[arg-type]


CASES = {
    "rate limit in seconds": failed("rate_limited", "no", chat.rate_limited(600)),
    "rate limit with a date": failed(
        "rate_limited", "no", chat.rate_limited_until(600)
    ),  # made anew: its date is soon past
    "exhausted quota": failed(
        "quota", "no", chat.OUT_OF_QUOTA, anthropic=NO_CREDIT, gigachat=giga_error(402, "Payment Required"), pauses=True
    ),
    "wrong key": failed(
        "authentication",
        "no",
        chat.WRONG_KEY,
        anthropic=claude_error(401, "authentication_error", "invalid x-api-key"),
        gigachat=giga_error(403, "Permission denied"),
        pauses=True,
    ),
    "unknown model": failed(
        "unknown_model",
        "no",
        chat.UNKNOWN_MODEL,
        anthropic=claude_error(404, "not_found_error", "model: claude-9"),
        gigachat=giga_error(404, "No such model"),
        pauses=True,
    ),
    "content filter": bad_reply(
        "filtered", chat.FILTERED, anthropic=CLAUDE_FILTER, gigachat=BLACKLISTED, unknown_cost=("anthropic",)
    ),
    "truncated": bad_reply(
        "truncated", chat.TRUNCATED, anthropic=message('{"results": "кош', stop_reason="max_tokens")
    ),
    "empty": bad_reply("empty", chat.EMPTY, anthropic=message(None)),
    "refusal": bad_reply("refused", chat.REFUSED, anthropic=message("", stop_reason="refusal")),
    "bad format": bad_reply("format", chat.BAD_FORMAT, anthropic=message("вот ответ")),
    "NUL in the answer": bad_reply(
        "format", chat.completion('{"results": "кошка\x00"}'), anthropic=message('{"results": "кошка\x00"}')
    ),
    "server error": failed("server_error", "no", chat.BROKEN, anthropic=claude_error(529, "overloaded_error")),
    "streams": failed("not_a_model", "maybe", chat.STREAM, kept=b'data: {"choices": []}'),
    "hangs": failed("timeout", "maybe", chat.HANG),
    "hangs half way": failed("timeout", "maybe", chat.HANG_HALF_WAY, kept=b'{"choices": ['),
    "drips": failed("timeout", "maybe", chat.DRIPS, kept=b'{"choices"'),
    "closes early": failed("connection", "maybe", chat.CLOSES_EARLY, kept=b'{"choices": ['),
    "ten megabytes": failed("too_large", "maybe", chat.HUGE, kept=b'{"choices": "xxx'),
    "no UTF-8": failed("not_a_model", "maybe", chat.NOT_UTF8, kept=b'{"choices": [{"message": {"content": "\\xff\\xfe'),
    "NUL in the body": failed("not_a_model", "maybe", chat.NUL_BODY, kept=b'{"choices": \\u0000}'),
    "a page": failed("not_a_model", "maybe", chat.HTML, kept=b"<html><body>Welcome"),
}


@pytest.fixture(params=VENDORS)
def vendor(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def vendor_server(vendor: str, settings: Settings) -> Iterator[ChatServer]:
    tokens._known.clear()
    with ExitStack() as stack:
        if vendor == "gigachat":
            server: ChatServer = stack.enter_context(GigaServer())
            settings.GIGACHAT_AUTH_URL = server.auth_url  # type: ignore[attr-defined]
        else:
            server = stack.enter_context(ChatServer())
        if vendor == "anthropic":
            server.default = vendors.said("кошка сидит на столе")
        yield server
    tokens._known.clear()


@pytest.fixture
def vendor_config(vendor: str, vendor_server: ChatServer, cast: Cast, monkeypatch: pytest.MonkeyPatch) -> ModelConfig:
    monkeypatch.setenv("TEST_API_KEY", KEY)
    Price.objects.create(
        study=cast.study,
        provider=vendor,
        model="test-model",
        currency="USD",
        input_million=Decimal(2),
        output_million=Decimal(8),
        valid_from=date(2026, 1, 1),
    )
    return model_config_create(
        study=cast.study,
        label="Test model",
        provider=vendor,
        base_url=vendor_server.base_url,
        model="test-model",
        key_variable="TEST_API_KEY",
        folder="b1gfolder" if vendor == "yandex" else "",
        max_output_tokens=1000,
        timeout=20,
        actor=cast.alice,
    )


@pytest.fixture
def run(cast: Cast, instrument: Instrument, vendor_config: ModelConfig) -> Run:
    return experiment_launch(
        study=cast.study,
        instrument=instrument,
        prompt=prompt_ensure(study=cast.study),
        configs=[vendor_config],
        runs=1,
        cap=Decimal(1),
        currency="USD",
        actor=cast.alice,
    ).runs.get()


def money(run: Run) -> tuple[Decimal, Decimal]:
    return Experiment.objects.values_list("spent", "reserved").get(pk=run.experiment_id)


def ask_one(run: Run) -> Call:
    """The first of the three stimuli; what comes of it."""
    first = RunStimulus.objects.get(run=run, stimulus__text=ONE)
    stimulus_work(run_id=run.pk, stimulus_id=first.stimulus_id)
    return Call.objects.select_related("price").get(run=run, stimulus_id=first.stimulus_id)


def check_money(run: Run, call: Call, billed: str) -> None:
    most = bound(call.request, call.price).value
    assert most is not None and most > PRICE
    if billed == "yes":
        assert (call.cost, call.reserved, call_cost(call).reason) == (PRICE, None, "")
        assert money(run) == (PRICE, 0)
    elif billed == "no":
        assert (call.cost, call.reserved, call_cost(call).reason) == (0, None, "not_billed")
        assert money(run) == (0, 0)
    else:
        assert (call.cost, call.reserved) == (None, most)
        assert call_cost(call).reason in ("lost", "no_tokens")
        assert money(run) == (most, 0), "it counts with the most that it can cost"


def check_the_next(run: Run, server: ChatServer, *, paused: bool) -> None:
    """The worker lives: it asks the next question, or rightly does not."""
    before = len(server.seen)
    second = RunStimulus.objects.filter(run=run).exclude(stimulus__text=ONE).order_by("pk").first()
    assert second is not None
    stimulus_work(run_id=run.pk, stimulus_id=second.stimulus_id)
    run.refresh_from_db()
    if paused:
        assert run.state == Run.State.PAUSED and len(server.seen) == before
    else:
        assert run.state == Run.State.RUNNING and len(server.seen) == before + 1
        assert Call.objects.get(run=run, stimulus_id=second.stimulus_id).state == Call.State.OK


@pytest.mark.parametrize("name", CASES)
def test_a_failure_is_a_state_with_its_bytes_and_its_money(
    vendor: str, run: Run, vendor_server: ChatServer, vendor_config: ModelConfig, name: str
) -> None:
    case = CASES[name]
    if case.kind == "timeout":
        ModelConfig.objects.filter(pk=vendor_config.pk).update(timeout=1)
    dated = name == "rate limit with a date"
    vendor_server.script(ONE, chat.rate_limited_until(600) if dated else case.of(vendor))
    call = ask_one(run)
    assert (call.state, call.kind) == (case.state, case.kind)
    assert len(vendor_server.seen) == 1 and call.ended_at is not None
    check_money(run, call, "maybe" if vendor in case.unknown_cost else case.billed)
    assert call.sent
    assert len(call.raw_body) <= BODY_KEPT
    if case.kept is not None:
        assert call.raw_body.startswith(case.kept.decode())
    item = RunStimulus.objects.get(run=run, stimulus_id=call.stimulus_id)
    assert (item.attempts, call.attempt) == ((1, 1) if case.state == "bad_reply" else (0, None))
    if name.startswith("rate limit"):
        assert item.due_at > timezone.now() + timedelta(seconds=60), "as long as it asks for"
    check_the_next(run, vendor_server, paused=case.pauses)


def test_a_valid_reply(vendor: str, run: Run, vendor_server: ChatServer) -> None:
    call = ask_one(run)
    assert (call.state, call.kind, call.attempt) == ("ok", "", 1)
    check_money(run, call, "yes")
    check_the_next(run, vendor_server, paused=False)


def test_a_redirect_to_another_host(vendor: str, run: Run, vendor_server: ChatServer) -> None:
    with ChatServer() as other:
        vendor_server.script(ONE, chat.redirect(other.base_url + "/chat/completions"))
        call = ask_one(run)
        assert other.seen == []
        assert (call.state, call.kind) == ("failed", "redirect") and other.base_url in call.detail
    check_money(run, call, "no")
    check_the_next(run, vendor_server, paused=True)


def test_a_private_address_on_a_server_installation(
    vendor: str, run: Run, vendor_server: ChatServer, settings: Settings
) -> None:
    """It was public when the model was added, and is looked up anew for every call."""
    settings.ALLOW_PRIVATE_ENDPOINTS = False
    call = ask_one(run)
    assert (call.state, call.kind, call.sent) == ("failed", "private_address", False)
    assert vendor_server.seen == []
    check_money(run, call, "no")
    check_the_next(run, vendor_server, paused=True)


def test_a_server_that_is_not_there(vendor: str, run: Run, vendor_server: ChatServer) -> None:
    """Nothing went out, so that nothing was billed: said by the transport, whatever the words of the failure are."""
    if vendor == "gigachat":  # its token is there already
        check_the_next(run, vendor_server, paused=False)
        Call.objects.all().delete()
        Experiment.objects.update(spent=0)
    ModelConfig.objects.update(base_url="http://127.0.0.1:9/v1")
    call = ask_one(run)
    assert (call.state, call.kind, call.sent) == ("failed", "connection", False)
    check_money(run, call, "no")


def test_a_key_that_vanished(vendor: str, run: Run, vendor_server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TEST_API_KEY")
    call = ask_one(run)
    assert (call.state, call.kind, call.sent) == ("failed", "key_missing", False)
    check_money(run, call, "no")
    check_the_next(run, vendor_server, paused=True)


@pytest.mark.parametrize(
    ("behaviour", "kind"),
    [
        (giga_error(401, "credentials doesn't match db data"), "authentication"),
        (giga_error(429, "too many", Retry_After="7"), "rate_limited"),
        (chat.HTML, "not_a_model"),
        (chat.CLOSES_EARLY, "connection"),
    ],
)
@pytest.mark.parametrize("vendor", ["gigachat"], indirect=True)
def test_a_token_that_is_not_given_costs_nothing(
    run: Run, vendor_server: GigaServer, behaviour: Behaviour, kind: str
) -> None:
    vendor_server.token_behaviours = [behaviour]
    call = ask_one(run)
    assert (call.state, call.kind, call.sent) == ("failed", kind, False)
    assert vendor_server.seen == []
    check_money(run, call, "no")


def test_a_server_that_never_learns_the_format_bills_exactly_ten_calls_for_each_stimulus(
    vendor: str, run: Run, vendor_server: ChatServer
) -> None:
    vendor_server.default = message("вот ответ") if vendor == "anthropic" else chat.BAD_FORMAT
    for _ in range(12):
        for item in RunStimulus.objects.filter(run=run):
            stimulus_work(run_id=run.pk, stimulus_id=item.stimulus_id)
    run.refresh_from_db()
    assert run.state == Run.State.FINISHED
    assert len(vendor_server.seen) == 30 == Call.objects.filter(state="bad_reply", cost=PRICE).count()
    for item in RunStimulus.objects.filter(run=run):
        assert item.attempts == 10
        attempts = Call.objects.filter(run=run, stimulus_id=item.stimulus_id).values_list("attempt", flat=True)
        assert sorted(attempts) == list(range(1, 11))
    assert list(run.sitting.answers.values_list("outcome", "text")) == [("no_valid_reply", "")] * 3
    assert money(run) == (30 * PRICE, 0)
