"""The log, the experiment's accounts, caps and prompts, as people see them."""

import json
from decimal import Decimal

import pytest
from django.test import Client

from corpus.models import Instrument
from llmruns.accounts import accounts_of, accounts_of_runs, repetitions_of
from llmruns.models import Call, Experiment, ModelConfig, Price, Prompt, ProviderLimit
from llmruns.pricing import UNCERTAIN, failure_may_be_billed
from llmruns.replies import lenient_answer
from llmruns.storing import DEEPEST, is_storable_json
from studies.models import AuditEntry
from tests import chat_server as chat
from tests.chat_server import ChatServer
from tests.conftest import Cast
from tests.llmruns.conftest import KEY, ONE, THREE, TWO, Launch, work
from tests.llmruns.test_pages import experiment_form, get

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice(cast: Cast) -> Client:
    return cast.client(cast.alice)


@pytest.fixture
def priced(config: ModelConfig) -> Price:
    """Two dollars a million in, eight out; the configuration has a limit of output tokens."""
    ModelConfig.objects.filter(pk=config.pk).update(max_output_tokens=1000)
    config.refresh_from_db()
    return Price.objects.create(
        study=config.study,
        provider=config.provider,
        model=config.model,
        currency="USD",
        input_million=2,
        output_million=8,
        valid_from="2026-01-01",
    )


def lines(client: Client, query: str = "") -> list[dict[str, object]]:
    response = client.get(f"/studies/ours/calls.jsonl{query}")
    assert response.status_code == 200 and "calls.jsonl" in response["Content-Disposition"]
    return [json.loads(line) for line in b"".join(response.streaming_content).decode().splitlines()]


# --- the log -----------------------------------------------------------------------------------------------------


def test_calls_are_found_by_each_filter_and_the_file_holds_the_same(
    alice: Client, launch: Launch, config: ModelConfig, server: ChatServer
) -> None:
    server.script(ONE, chat.BAD_FORMAT, chat.answer("готово"))
    server.script(TWO, chat.rate_limited(1), chat.answer("Мышь бежала"))
    first, second = launch(), launch()
    work(first)
    work(second)
    alice.post(f"/studies/ours/models/{config.pk}/try/")
    # 3 + 1 bad + 1 limited in the first (the scripts are used up), 3 in the second, and the trial.
    run, stimulus = first.runs.get(), Call.objects.filter(stimulus__text=ONE).first().stimulus_id
    for query, number in [
        ("", 9),
        (f"?experiment={first.pk}", 5),
        (f"?experiment={second.pk}", 3),
        (f"?model={config.pk}", 9),
        ("?model=999999", 0),
        (f"?run={run.pk}", 5),
        (f"?stimulus={stimulus}", 3),
        ("?state=bad_reply", 1),
        ("?kind=rate_limited", 1),
        ("?purpose=trial", 1),
        ("?purpose=answer", 8),
        ("?text=мЫШЬ", 2),
        (f"?experiment={first.pk}&text=мышь&state=ok", 1),
        ("?text=%25", 0),  # a percent sign is looked for as itself
        ("?experiment=x&state=x&kind=x&purpose=x&run=²&stimulus=-1&text=%00&page=x", 9),
    ]:
        page = get(alice, f"calls/{query}")
        assert f"<span>{number} call{'' if number == 1 else 's'}</span>" in page, query
        assert len(lines(alice, query)) == number, query


def test_the_file_says_everything_of_a_call(alice: Client, launch: Launch, priced: Price, server: ChatServer) -> None:
    server.script(ONE, chat.HANG, chat.answer("готово"))
    experiment = launch()
    work(experiment)
    hang, ok = [line for line in lines(alice) if line["stimulus"] == ONE]
    assert (ok["cost"], ok["currency"], ok["cost_at_most"], ok["price"]) == ("0.00069600", "USD", None, priced.pk)
    assert ok["request"] == Call.objects.get(pk=ok["call"]).request and ok["raw_reply"] == '{"results": "готово"}'
    assert ok["parameters_asked"] == {"temperature": 1.0, "top_p": None, "max_output_tokens": 1000}
    assert (hang["cost"], hang["cost_unknown_because"]) == (None, "lost") and Decimal(hang["cost_at_most"]) > 0


def test_keys_are_blanked_in_the_file_and_on_the_page(alice: Client, launch: Launch) -> None:
    work(launch())
    call = Call.objects.first()
    call.request = {**call.request, "api_key": KEY, "extra": [{"Authorization": KEY}]}
    call.save(update_fields=["request"])
    assert KEY not in json.dumps(lines(alice)) and KEY not in get(alice, f"calls/{call.pk}/")


def test_nothing_of_another_study_is_in_the_log(cast: Cast, launch: Launch) -> None:
    experiment = launch()
    work(experiment)
    bob = cast.client(cast.bob)
    assert "No calls." in bob.get(f"/studies/theirs/calls/?experiment={experiment.pk}").content.decode()
    response = bob.get(f"/studies/theirs/calls.jsonl?experiment={experiment.pk}")
    assert b"".join(response.streaming_content) == b""


def test_a_call_shows_what_was_asked_sent_and_used_and_what_it_cost(
    alice: Client, launch: Launch, priced: Price, server: ChatServer
) -> None:
    work(launch())
    call = Call.objects.first()
    call.used, call.reasoning_tokens = {"temperature": 0.7}, 5
    call.asked = {**call.asked, "top_p": 0.9}
    call.save(update_fields=["used", "reasoning_tokens", "asked"])
    page = get(alice, f"calls/{call.pk}/")
    assert "0.00069600 USD" in page and "of the output reasoning: 5" in page
    assert "<td>1.0</td><td>1.0</td><td>0.7</td>" in page, "temperature"
    assert "the model does not accept it" in page and "provider default" in page, "top_p was asked for and not sent"


@pytest.mark.parametrize(
    ("raw", "lenient"),
    [
        ('Вот ответ: {"results": "кошка сидит"}', "кошка сидит"),
        ('{"results": "кошка', "кошка"),
        ("{'results': ['кошка сидит',]}", "кошка сидит"),
        ('<think>{"results": "нет"}</think> {results: "кошка"}', "кошка"),
        ("кошка сидит на столе", None),
        ('{"answer": "кошка"}', None),
        ("[" * 5000, None),
        ('вот: {"results": "\\ud800 кошка"}', None),
        ("", None),
    ],
)
def test_a_lenient_reader_is_shown(raw: str, lenient: str | None) -> None:
    assert lenient_answer(raw) == lenient


def test_the_lenient_verdict_stands_beside_and_scores_nothing(
    alice: Client, launch: Launch, server: ChatServer
) -> None:
    server.script(ONE, chat.completion('Ответ: {"results": "кошка на столе"}'), chat.answer("готово"))
    work(launch())
    call = Call.objects.get(state="bad_reply")
    page = get(alice, f"calls/{call.pk}/")
    assert "not in the required format" in page and '<q class="answer">кошка на столе</q>' in page
    assert set(call.run.sitting.answers.values_list("text", flat=True)) == {"готово", "кошка сидит на столе"}


# --- accounts ----------------------------------------------------------------------------------------------------


def test_sums_are_per_currency_and_over_all_attempts(
    alice: Client, launch: Launch, priced: Price, server: ChatServer
) -> None:
    server.script(ONE, chat.BAD_FORMAT, chat.answer("готово"))
    server.script(TWO, chat.HANG, chat.answer("готово"))
    experiment = launch()
    work(experiment)
    Call.objects.filter(stimulus__text__contains=THREE).update(currency="RUB", cost=5)
    accounts = accounts_of(experiment)
    held = Call.objects.get(state="failed").reserved
    rub, usd = accounts.total.sums
    assert (rub.currency, rub.known, rub.possible) == ("RUB", 5, 0)
    assert (usd.currency, usd.known, usd.possible) == ("USD", 3 * Decimal("0.000696"), held)
    run = experiment.runs.get()
    assert accounts_of_runs([run]) == {run.pk: accounts.total}
    assert (accounts.total.unpriced, accounts.total.unknown) == (0, 0)
    # Two of three first attempts were valid: that of ONE was not.
    assert (accounts.total.first, accounts.total.first_valid) == (3, 2)
    page = get(alice, f"experiments/{experiment.pk}/")
    assert "5.0000 RUB" in page and "0.0021 USD" in page and "66.7 %" in page and "possibly billed on top" in page


def test_a_cost_that_nobody_knows_is_counted_and_not_added(alice: Client, launch: Launch) -> None:
    experiment = launch()
    work(experiment)
    account = accounts_of(experiment).total
    assert (account.sums, account.unpriced, account.unknown) == ([], 3, 0)
    page = get(alice, f"experiments/{experiment.pk}/")
    assert page.count("No price was known for 3 calls") == 1, "once, and not in every row"
    assert "unknown cost" not in page


def test_identical_repeats_ring_from_five_stimuli_on(launch: Launch, server: ChatServer) -> None:
    server.script(ONE, chat.answer("раз"), chat.answer("два"))
    experiment = launch(runs=3)
    work(experiment)
    found = repetitions_of(experiment)
    (repetition,) = found.values()
    assert (repetition.compared, repetition.identical, repetition.is_suspicious) == (3, 2, False)
    assert type(repetition)(1, 5, 5).is_suspicious and not type(repetition)(1, 4, 4).is_suspicious
    assert type(repetition)(1, 20, 18).is_suspicious and not type(repetition)(1, 20, 17).is_suspicious


# --- caps, pause, limits on pages --------------------------------------------------------------------------------


def test_a_cap_that_is_not_possible_is_refused_in_words(
    alice: Client, instrument: Instrument, config: ModelConfig
) -> None:
    form = experiment_form(instrument, config) | {"cap": "1", "currency": "USD"}
    for step in ("confirm", "launch"):
        page = alice.post("/studies/ours/experiments/new/", form | {"step": step}).content.decode()
        assert "no price is known for it" in page and not Experiment.objects.exists()
    page = alice.post("/studies/ours/experiments/new/", form | {"step": "confirm", "cap": ""}).content.decode()
    assert "cannot be capped: no price is known for it" in page and "no bound" in page


def test_an_estimate_rests_on_earlier_calls_or_on_bounds(
    alice: Client, launch: Launch, instrument: Instrument, config: ModelConfig, priced: Price, server: ChatServer
) -> None:
    form = experiment_form(instrument, config) | {"step": "confirm", "cap": "2", "currency": "USD", "deadline": "30"}
    page = alice.post("/studies/ours/experiments/new/", form).content.decode()
    assert "no earlier replies to tell from" in page and "Cap: 2 USD" in page
    work(launch(runs=4))
    Price.objects.update(input_million=2000, output_million=8000)
    page = alice.post("/studies/ours/experiments/new/", form).content.decode()
    # 15 replies of 300 · 2000 + 12 · 8000 = 0.696 dollars: 10.44.
    assert "10.44 USD" in page and "from 12 earlier replies" in page
    alice.post("/studies/ours/experiments/new/", form | {"step": "launch"})
    experiment = Experiment.objects.latest("pk")
    assert (experiment.cap, experiment.currency, experiment.deadline) == (2, "USD", 1800)


def test_a_researcher_pauses_raises_the_cap_and_resumes(
    alice: Client, launch: Launch, priced: Price, server: ChatServer
) -> None:
    experiment = launch(cap=Decimal("0.0001"), currency="USD")
    work(experiment)
    at = f"experiments/{experiment.pk}/"
    page = get(alice, at)
    assert "might pass the cap" in page and "Raise the cap" in page and server.seen == []
    alice.post(f"/studies/ours/{at}cap/", {"cap": "0"})
    alice.post(f"/studies/ours/{at}cap/", {"cap": "x"})
    experiment.refresh_from_db()
    assert experiment.cap == Decimal("0.0001")
    alice.post(f"/studies/ours/{at}cap/", {"cap": "1"})
    alice.post(f"/studies/ours/{at}resume/")
    alice.post(f"/studies/ours/{at}pause/")
    experiment.refresh_from_db()
    assert (experiment.state, experiment.problem) == ("paused", "person")
    assert "paused by a researcher" in get(alice, at)
    alice.post(f"/studies/ours/{at}resume/")
    work(experiment)
    experiment.refresh_from_db()
    assert experiment.state == "finished"
    actions = AuditEntry.objects.filter(action__in=["experiment_pause", "cap_set", "experiment_resume"])
    assert list(actions.order_by("pk").values_list("action", flat=True)) == [
        "experiment_pause", "cap_set", "experiment_resume", "experiment_pause", "experiment_resume",
    ]  # fmt: skip


def test_a_paused_experiment_can_be_cancelled(alice: Client, launch: Launch) -> None:
    experiment = launch()
    at = f"/studies/ours/experiments/{experiment.pk}/"
    alice.post(f"{at}pause/")
    alice.post(f"{at}cancel/")
    experiment.refresh_from_db()
    assert experiment.state == "cancelled"


def test_limits_are_kept_changed_and_removed(alice: Client) -> None:
    at = "/studies/ours/limits/"
    alice.post(at, {"provider": "openai", "parallel": "4", "per_minute": "60"})
    limit = ProviderLimit.objects.get()
    assert (limit.provider, limit.base_url, limit.parallel, limit.per_minute) == ("openai", "", 4, 60)
    for wrong in ({"provider": "openai", "parallel": "9"}, {"provider": "openai"}, {"provider": "x", "parallel": "1"}):
        assert alice.post(at, wrong).status_code == 200 and ProviderLimit.objects.count() == 1
    for number in ("0", "-1", "99999999999", "x"):
        assert alice.post(f"{at}{limit.pk}/", {"provider": "openai", "parallel": number}).status_code == 200
    alice.post(f"{at}{limit.pk}/", {"provider": "openai", "parallel": "2", "per_minute": ""})
    limit.refresh_from_db()
    assert (limit.parallel, limit.per_minute) == (2, None)
    alice.post(f"{at}{limit.pk}/remove/")
    assert not ProviderLimit.objects.exists()
    assert AuditEntry.objects.filter(action__startswith="limit_").count() == 3


# --- prompts -----------------------------------------------------------------------------------------------------


def test_a_prompt_is_seen_with_every_stimulus_before_it_is_kept(alice: Client, instrument: Instrument) -> None:
    at = "/studies/ours/prompts/new/"
    form = {"slug": "paper", "text": "Слова:\r\n{words}\r\nВсе по разу.", "note": "", "instrument": instrument.pk}
    assert "{words}" in alice.get(at).content.decode()
    page = alice.post(at, form | {"step": "preview"}).content.decode()
    for words in instrument.stimuli.values_list("text", flat=True):
        assert f"Слова:\n<ins>{words}</ins>\nВсе по разу." in page
    assert not Prompt.objects.exists()
    alice.post(at, form | {"step": "save"})
    assert Prompt.objects.get().text == "Слова:\n{words}\nВсе по разу."
    assert alice.post(at, form | {"step": "save"}).status_code == 200, "the same text is no other version"
    alice.post(at, form | {"step": "save", "text": "{words}", "note": "nothing else"})
    assert list(Prompt.objects.order_by("version").values_list("version", "note")) == [(1, ""), (2, "nothing else")]
    assert "paper v2" in get(alice, "prompts/") and "nothing else" in get(alice, "prompts/")


@pytest.mark.parametrize(
    "change", [{"text": "no place"}, {"text": ""}, {"text": "{words}" + "a" * 20_000}, {"slug": "a b"}, {"slug": ""}]
)
def test_a_wrong_prompt_is_refused_in_words(alice: Client, instrument: Instrument, change: dict[str, str]) -> None:
    form = {"slug": "paper", "text": "{words}", "instrument": instrument.pk, "step": "save"} | change
    response = alice.post("/studies/ours/prompts/new/", form)
    assert response.status_code == 200 and "text-danger" in response.content.decode()
    assert not Prompt.objects.exists()


def test_the_cap_is_saved_as_it_is_filled_in(alice: Client, launch: Launch, priced: Price) -> None:
    experiment = launch(cap=Decimal("1.00000001"), currency="USD")
    form = alice.get(f"/studies/ours/experiments/{experiment.pk}/").context["cap_form"]
    alice.post(f"/studies/ours/experiments/{experiment.pk}/cap/", {"cap": form["cap"].value()})
    experiment.refresh_from_db()
    assert experiment.cap == Decimal("1.0001")


def test_a_call_that_was_perhaps_billed_is_counted_without_a_price_too(launch: Launch, server: ChatServer) -> None:
    server.script(ONE, chat.HANG, chat.answer("готово"))
    experiment = launch()
    work(experiment)
    total = accounts_of(experiment).total
    assert (total.unpriced, total.perhaps) == (4, 1), "three replies and one that went out and came to nothing"


def test_what_was_perhaps_billed_is_the_same_in_sums_as_in_the_rule(launch: Launch, config: ModelConfig) -> None:
    """The sums say in SQL what pricing.failure_may_be_billed says of one call."""
    run = launch().runs.get()
    kinds = [*sorted(UNCERTAIN), "rate_limited", "quota", "authentication"]
    cases = [(kind, status, sent) for kind in kinds for status in (None, 200, 299, 300, 503) for sent in (True, False)]
    expected = 0
    for kind, status, sent in cases:
        Call.objects.create(
            config=config,
            run=run,
            stimulus=run.experiment.instrument.stimuli.first(),
            state="failed",
            kind=kind,
            http_status=status,
            sent=sent,
            request={},
        )
        expected += failure_may_be_billed(kind, status, sent=sent)
    total = accounts_of(run.experiment).total
    assert 0 < expected < len(cases)
    assert (total.perhaps, total.unpriced) == (expected, expected)


def test_how_deep_a_document_may_be() -> None:
    def nested(levels: int) -> object:
        document: object = 1
        for level in range(levels):
            document = [document] if level % 2 else {"a": document}
        return document

    assert is_storable_json(nested(DEEPEST)) and not is_storable_json(nested(DEEPEST + 1))
