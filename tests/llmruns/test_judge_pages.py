"""The pages of model judges, through HTTP: count first, then launch; who may do what; hostile text stays text."""

import json
import uuid
from decimal import Decimal

import pytest
from django.test import Client
from django.urls import reverse

from corpus.models import Instrument, Sitting
from llmruns.models import Call, Judging, ModelConfig, Prompt
from studies.models import Blinding
from tests.annotation.factories import YES, give, make_campaign, make_rater, post
from tests.chat_server import ChatServer, completion
from tests.conftest import Cast
from tests.llmruns.judges import ACTIONS, GOOD, OF_ALL, OF_ONE, model, person, verdict, work

SCRIPT = "<script>alert(1)</script> кошка сидит на столе"


@pytest.fixture
def judge(server: ChatServer, config: ModelConfig) -> ModelConfig:
    server.default = verdict()
    return config


@pytest.fixture
def answers(instrument: Instrument) -> Sitting:
    return person(instrument)


@pytest.fixture
def client(cast: Cast) -> Client:
    return cast.client(cast.alice)


def filled(instrument: Instrument, judge: ModelConfig, **changes: object) -> dict[str, object]:
    return {
        "config": judge.pk,
        "rubric": "paper",
        "prompt": "",
        "instrument": instrument.pk,
        "kind": "",
        "sample": "",
        "max_attempts": 10,
        "deadline": 15,
        "cap": "",
        "currency": "USD",
        "seed": 1,
        "launch_key": str(uuid.uuid4()),
        "step": "confirm",
        **changes,
    }


NEW = "/studies/ours/judgings/new/"


def launched(client: Client, instrument: Instrument, judge: ModelConfig, **changes: object) -> Judging:
    data = filled(instrument, judge, **changes)
    shown = client.post(NEW, data)
    response = client.post(NEW, data | {"step": "launch", "seen": shown.context["found"].digest()})
    assert response.status_code == 302, response.context["form"].errors
    return Judging.objects.get(pk=int(response.headers["Location"].rstrip("/").rpartition("/")[2]))


def test_the_count_is_shown_first_and_nothing_is_launched(
    client: Client, instrument: Instrument, judge: ModelConfig, answers: Sitting, server: ChatServer
) -> None:
    person(instrument, agreed=False)
    model(instrument, (GOOD[0], "да", GOOD[2]))
    assert client.get(NEW).status_code == 200
    response = client.post(NEW, filled(instrument, judge))
    page = response.content.decode()
    assert response.context["found"].of_people() == 3 and response.context["found"].models == 2
    assert response.context["texts"] == 3 and response.context["most"] == 30
    assert "5 answers will be judged." in page and "has not agreed to processing by third parties" in page
    assert "127.0.0.1" in page and "There is no cap." in page
    assert not Judging.objects.exists() and server.seen == [] and not Prompt.objects.filter(purpose="judge").exists()


def test_it_works(
    client: Client, instrument: Instrument, judge: ModelConfig, answers: Sitting, server: ChatServer
) -> None:
    judging = launched(client, instrument, judge)
    work(judging)
    page = client.get(reverse("judging_detail", args=["ours", judging.pk]))
    assert page.status_code == 200 and page.context["progress"].judged == 3
    assert "3 of 3 answers are settled." in page.content.decode()
    differ = reverse("campaign_new", args=["ours"]) + "?doubt=differ"
    assert f'href="{differ}"' in page.content.decode()
    assert client.get(differ).context["form"]["doubt"].value() == "differ"
    listed = client.get(reverse("judging_list", args=["ours"]))
    assert [(row.settled, row.answers) for row in listed.context["rows"]] == [(3, 3)]
    log = client.get(reverse("call_log", args=["ours"]) + f"?judging={judging.pk}")
    assert [row.call.purpose for row in log.context["rows"]] == ["judge"] * 3
    assert judging.title == "Test model · Small" and judging.title in log.content.decode()
    detail = client.get(reverse("call_detail", args=["ours", Call.objects.first().pk])).content.decode()
    assert "judge-paper-ru v1" in detail and "кошка сидит на столе" in detail
    lines = b"".join(client.get(reverse("call_file", args=["ours"])).streaming_content).decode().splitlines()
    line = json.loads(lines[0])
    assert (line["purpose"], line["judging_id"], line["position"]) == ("judge", judging.pk, 1)
    assert line["answer"] == str(answers.answers.get(stimulus__position=1).blind_id)


def test_the_same_form_sent_twice_launches_once(
    client: Client, instrument: Instrument, judge: ModelConfig, answers: Sitting
) -> None:
    data = filled(instrument, judge)
    seen = client.post(NEW, data).context["found"].digest()
    places = {client.post(NEW, data | {"step": "launch", "seen": seen}).headers["Location"] for _ in range(2)}
    assert len(places) == 1 and Judging.objects.count() == 1


def test_what_was_not_shown_is_not_launched(
    client: Client, instrument: Instrument, judge: ModelConfig, answers: Sitting
) -> None:
    data = filled(instrument, judge)
    seen = client.post(NEW, data).context["found"].digest()
    person(instrument)
    response = client.post(NEW, data | {"step": "launch", "seen": seen})
    assert response.status_code == 200 and response.context["changed"] and not Judging.objects.exists()
    assert client.post(NEW, data | {"step": "launch"}).context["changed"], "without having seen anything"
    assert not Judging.objects.exists()


def test_the_answers_of_a_campaign_can_be_chosen(
    cast: Cast, instrument: Instrument, judge: ModelConfig, answers: Sitting
) -> None:
    campaign = make_campaign(cast.study, cast.alice, title="First hundred", k=1)
    person(instrument, ("кот спит на диване", *GOOD[1:]))
    Blinding.objects.all().delete()
    judging = launched(cast.client(cast.alice), instrument, judge, campaign=campaign.pk)
    assert judging.items.count() == 3 and judging.selection["asked"]["named"] == "First hundred"
    assert set(judging.items.values_list("answer__sitting", flat=True)) == {answers.pk}


def test_the_answers_of_another_studys_campaign_cannot(
    client: Client, cast: Cast, instrument: Instrument, judge: ModelConfig, answers: Sitting
) -> None:
    make_campaign(cast.study, cast.alice, k=1)
    Blinding.objects.all().delete()
    response = client.post(NEW, filled(instrument, judge, campaign=999_999))
    assert "campaign" in response.context["form"].errors


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"config": 999_999}, "config"),
        ({"rubric": "nothing"}, "rubric"),
        ({"sample": 0}, "sample"),
        ({"max_attempts": 51}, "max_attempts"),
        ({"cap": "1"}, "cap"),  # no price is known
        ({"cap": "-1"}, "cap"),
        ({"launch_key": "x"}, "launch_key"),
        ({"kind": "dog"}, "kind"),
    ],
)
def test_bad_input_is_said_and_launches_nothing(
    client: Client,
    instrument: Instrument,
    judge: ModelConfig,
    answers: Sitting,
    changes: dict[str, object],
    field: str,
) -> None:
    for step in ("confirm", "launch"):
        response = client.post(NEW, filled(instrument, judge, **changes) | {"step": step, "seen": "x"})
        assert response.status_code == 200
        if step == "confirm" or field != "cap":
            assert field in response.context["form"].errors
    assert not Judging.objects.exists()


def test_a_missing_key_is_named(
    client: Client, instrument: Instrument, judge: ModelConfig, answers: Sitting, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = filled(instrument, judge)
    seen = client.post(NEW, data).context["found"].digest()
    monkeypatch.delenv("TEST_API_KEY")
    response = client.post(NEW, data | {"step": "launch", "seen": seen})
    assert "TEST_API_KEY" in str(response.context["form"].errors["config"]) and not Judging.objects.exists()


def test_hostile_text_is_shown_as_text(
    client: Client, instrument: Instrument, judge: ModelConfig, server: ChatServer
) -> None:
    person(instrument, (SCRIPT, *GOOD[1:]))
    server.default = completion(f'{{"grammatical": "{SCRIPT}"}}')
    page = client.post(NEW, filled(instrument, judge)).content.decode()
    assert "<script>alert" not in page and "alert(1)" in page
    judging = launched(client, instrument, judge, max_attempts=1)
    work(judging)
    for call in Call.objects.filter(judging=judging):
        page = client.get(reverse("call_detail", args=["ours", call.pk])).content.decode()
        assert "<script>alert" not in page and "alert(1)" in page


def test_pause_resume_cap_and_cancel(
    client: Client, cast: Cast, instrument: Instrument, judge: ModelConfig, answers: Sitting
) -> None:
    judging = launched(client, instrument, judge)
    states = []
    for action in ("judging_pause", "judging_pause", "judging_resume", "judging_resume", "judging_cancel"):
        assert client.post(reverse(action, args=["ours", judging.pk])).status_code == 302
        judging.refresh_from_db()
        states.append(judging.state)
    assert states == ["paused", "paused", "running", "running", "cancelled"]
    client.post(reverse("judging_cap", args=["ours", judging.pk]), {"cap": "5"})
    judging.refresh_from_db()
    assert judging.cap is None, "it was launched without one"
    for action in ACTIONS:
        assert client.get(reverse(action, args=["ours", judging.pk])).status_code == 405, "a GET starts nothing"


def test_strangers_raters_and_others_are_refused(
    client: Client, cast: Cast, instrument: Instrument, judge: ModelConfig, answers: Sitting, server: ChatServer
) -> None:
    judging = launched(client, instrument, judge)
    for user in (cast.bob, cast.rita):
        other = cast.client(user)
        data = filled(instrument, judge, launch_key=str(uuid.uuid4()), with_judged="on") | {"step": "launch"}
        assert other.post(NEW, data).status_code == 404
        for action in ACTIONS:
            assert other.post(reverse(action, args=["ours", judging.pk]), {"cap": "1"}).status_code == 404
        for name in OF_ONE:
            assert other.get(reverse(name, args=["ours", judging.pk])).status_code == 404
        for name in OF_ALL:
            assert other.get(reverse(name, args=["ours"])).status_code == 404
        prompt = {"slug": "mine", "text": "{words} {answer}", "note": "", "step": "save"}
        assert other.post(reverse("judge_prompt_new", args=["ours"]), prompt).status_code == 404
    judging.refresh_from_db()
    assert judging.state == "running" and Judging.objects.count() == 1 and server.seen == []
    assert not Prompt.objects.filter(slug="mine").exists()
    # Bob's own study knows no judging of another.
    for name in OF_ONE:
        assert cast.client(cast.bob).get(reverse(name, args=["theirs", judging.pk])).status_code == 404
    assert cast.client(cast.bob).post(reverse("judging_cancel", args=["theirs", judging.pk])).status_code == 404


def test_a_researcher_who_rates_sees_counts_only_and_may_stop_it(
    cast: Cast, instrument: Instrument, judge: ModelConfig, answers: Sitting
) -> None:
    model(instrument)
    judging = launched(cast.client(cast.alice), instrument, judge)
    work(judging)
    Judging.objects.filter(pk=judging.pk).update(state="paused", problem="bad_request", reason="кошка сидит на столе")
    rater = make_rater(cast.study, "nina")
    make_campaign(cast.study, cast.alice, k=1)
    Blinding.objects.create(user=cast.alice, study=cast.study, cause="campaign-1")
    client = cast.client(cast.alice)
    page = client.get(reverse("judging_detail", args=["ours", judging.pk]))
    assert page.status_code == 200 and page.context["whose"] is None and page.context["numbers"] is None
    assert "кошка сидит" not in page.content.decode() and "People&#x27;s answers" not in page.content.decode()
    for name in ("judging_agreement", "judging_csv"):
        assert client.get(reverse(name, args=["ours", judging.pk])).status_code == 403
    assert client.get(NEW).status_code == 403
    assert client.get(reverse("call_log", args=["ours"])).status_code == 403
    assert client.post(reverse("judging_cancel", args=["ours", judging.pk])).status_code == 302
    judging.refresh_from_db()
    assert judging.state == "cancelled" and rater


def test_a_prompt_is_seen_before_it_is_kept(client: Client, cast: Cast) -> None:
    address = reverse("judge_prompt_new", args=["ours"])
    assert "grammatical" in client.get(address).content.decode()
    data = {"slug": "mine", "text": '<s>{words}</s> {answer} "order"', "note": "shorter", "step": "preview"}
    page = client.post(address, data)
    assert '<s>"кошка сидеть на стол"</s>' in page.context["example"] and "\\u003c/sentence" in page.context["example"]
    assert not Prompt.objects.filter(slug="mine").exists()
    assert client.post(address, data | {"step": "save"}).status_code == 302
    assert Prompt.objects.get(slug="mine").purpose == "judge"
    assert "text" in client.post(address, data | {"step": "save"}).context["form"].errors, "it says just this already"
    assert "text" in client.post(address, data | {"text": "{words}"}).context["form"].errors
    assert "mine v1" in client.get(reverse("judge_prompt_list", args=["ours"])).content.decode()


def test_no_page_asks_the_model(
    client: Client, instrument: Instrument, judge: ModelConfig, answers: Sitting, server: ChatServer
) -> None:
    judging = launched(client, instrument, judge)
    for name in ("judging_detail", "judging_agreement", "judging_csv"):
        client.get(reverse(name, args=["ours", judging.pk]))
    client.get(reverse("judging_list", args=["ours"]))
    assert server.seen == [] and not Call.objects.exists()


def test_the_cost_of_a_capped_judging_is_shown(
    client: Client, cast: Cast, instrument: Instrument, judge: ModelConfig, answers: Sitting
) -> None:
    judging = launched(client, instrument, judge)
    Judging.objects.filter(pk=judging.pk).update(cap=Decimal(2), currency="USD", spent=Decimal("0.5"))
    page = client.get(reverse("judging_detail", args=["ours", judging.pk])).content.decode()
    assert "Cap: 2 USD; spent or possibly billed 0.5000" in page
    client.post(reverse("judging_cap", args=["ours", judging.pk]), {"cap": "5"})
    judging.refresh_from_db()
    assert judging.cap == 5
    client.post(reverse("judging_cap", args=["ours", judging.pk]), {"cap": "0.1"})
    judging.refresh_from_db()
    assert judging.cap == 5, "so much is spent already"


def test_raters_see_nothing_of_it_while_they_judge(
    cast: Cast, instrument: Instrument, judge: ModelConfig, answers: Sitting
) -> None:
    judging = launched(cast.client(cast.alice), instrument, judge)
    work(judging)
    rater = make_rater(cast.study, "nina")
    campaign = make_campaign(cast.study, cast.alice, k=1)
    item = campaign.items.order_by("position").first()
    post(give(item, rater), rater, YES)
    client = cast.client(rater.user)
    for name, arguments in (("judging_detail", ["ours", judging.pk]), ("judging_agreement", ["ours", judging.pk])):
        assert client.get(reverse(name, args=arguments)).status_code == 404
