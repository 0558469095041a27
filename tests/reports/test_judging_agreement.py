"""A model judge beside the raters: figures worked out by hand, files, blindness, and what a withdrawal leaves."""

import csv
import io
import json
import uuid
from collections.abc import Mapping
from importlib import import_module

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.urls import reverse
from django.utils import timezone

from annotation.services import campaign_close
from corpus.models import Answer, Instrument, Respondent
from llmruns.judge_choosing import Selection
from llmruns.judge_selectors import judging_counts, judging_progress, judgings_of
from llmruns.judging import judging_launch
from llmruns.models import Call, Judging, ModelConfig
from llmruns.services import model_config_create
from reports.judging_agreement import agreement_of, said_by
from reports.withdrawal import participant_withdraw
from scoring.models import Judgement
from scoring.selectors import labels_of
from scoring.services import Verdict, judgements_record, paper_rubric
from surveys.models import Purpose, Survey
from surveys.services import Newcomer, participant_start, survey_create, survey_set_state
from tests.annotation.factories import GOOD, NO, YES, give, make_campaign, make_rater, make_sitting, post
from tests.api.conftest import client_of
from tests.conftest import Cast
from tests.reports.test_withdrawal import columns_with
from tests.surveys.people import make_person


@pytest.fixture(autouse=True)
def private_addresses(settings) -> None:
    settings.ALLOW_PRIVATE_ENDPOINTS = True


@pytest.fixture
def config(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> ModelConfig:
    monkeypatch.setenv("TEST_API_KEY", "sk-test-0123456789")
    return model_config_create(
        study=cast.study,
        label="Judge J",
        base_url="http://127.0.0.1:9",
        model="j",
        key_variable="TEST_API_KEY",
        actor=cast.alice,
    )


def launch(cast: Cast, instrument: Instrument, config: ModelConfig, **changes: object) -> Judging:
    arguments = {"config": config, "rubric": paper_rubric(), "actor": cast.alice, **changes}
    return judging_launch(study=cast.study, selection=Selection(instrument=instrument), **arguments)


def say(judging: Judging, answer: Answer, values: Mapping[str, float], *, sharing: tuple[int, ...] = ()) -> None:
    criteria = {one.code: one for one in judging.model_judge.rubric.criteria.all()}
    judgements_record(
        round_id=judging.round_id,
        answer_id=answer.pk,
        judge_id=judging.model_judge.judge_id,
        verdicts={criteria[code]: Verdict(value) for code, value in values.items()},
        sharing=sharing,
    )


def answers_of(sitting) -> list[Answer]:
    return list(sitting.answers.order_by("stimulus__position"))


@pytest.fixture
def judged(cast: Cast, instrument: Instrument, config: ModelConfig) -> Judging:
    """Six answers in a closed campaign with two raters: a person's P1–P3 and the judge's own M1–M3.

    Raters on `grammatical`: P1 11, P2 11, P3 00, M1 11, M2 00, M3 10 (undecided); the others are 1 everywhere.
    The judge:               P1 1,  P2 0,  P3 0,  M1 1,  M2 1,  M3 1;             logical: P1 0, else 1; order 1.
    """
    person = make_sitting(instrument, GOOD)
    Respondent.objects.filter(pk=person.respondent_id).update(third_parties=True)
    own = make_sitting(
        instrument,
        ("кот спит на диване", "мышь бежит к коту", "дети играли там"),
        kind="model",
        label="Judge J · run 1",
    )
    respondent = own.respondent
    own.respondent = config.respondent
    own.save(update_fields=["respondent"])
    respondent.delete()
    judging = launch(cast, instrument, config)
    raters = [make_rater(cast.study, name) for name in ("lena", "misha")]
    campaign = make_campaign(cast.study, cast.alice, k=2, title="Closed")
    p1, p2, p3, m1, m2, m3 = [*answers_of(person), *answers_of(own)]
    votes = {p1.pk: (1, 1), p2.pk: (1, 1), p3.pk: (0, 0), m1.pk: (1, 1), m2.pk: (0, 0), m3.pk: (1, 0)}
    for item in campaign.items.order_by("position"):
        for rater, value in zip(raters, votes[item.answer_id], strict=True):
            post(give(item, rater), rater, YES | {"grammatical": float(value)})
    campaign_close(campaign=campaign, actor=cast.alice)
    for answer, value in ((p1, 1), (p2, 0), (p3, 0), (m1, 1), (m2, 1), (m3, 1)):
        say(judging, answer, YES | {"grammatical": float(value), "logical": float(answer != p1)})
    return judging


def test_figures_by_hand(judged: Judging) -> None:
    found = agreement_of(judged, said_by(judged))
    assert (found.answers, found.compared, found.own, found.in_open_campaigns) == (6, 6, 3, 0)
    grammatical, logical, order = found.figures
    # Label and judge of P1, P2, P3, M1, M2: 1 1, 1 0, 0 0, 1 1, 0 1. M3 is undecided and out.
    whole = grammatical.whole
    assert whole.counts == ((2, 1), (1, 1)) and whole.n == 5 and whole.percent == 60
    # F1 of 1: 2·2 / (3 + 3), of 0: 2·1 / (2 + 2). MCC: (2·1 − 1·1) / sqrt(3·3·2·2) = 1/6.
    assert whole.f1_macro == pytest.approx((4 / 6 + 0.5) / 2) and whole.mcc == pytest.approx(1 / 6)
    people, models, own = (grammatical.groups[name] for name in ("people", "models", "own"))
    assert (people.n, people.agreed, models.n, models.agreed) == (3, 2, 2, 1)
    assert own == models and own.judge_mean == 1 and own.label_mean == 0.5, "it is kind to itself"
    assert logical.whole.n == 6 and logical.whole.mcc is None and logical.whole.reason == "no_variation"
    assert order.whole.percent == 100


def test_the_page_and_its_file(cast: Cast, judged: Judging) -> None:
    client = cast.client(cast.alice)
    page = client.get(reverse("judging_agreement", args=["ours", judged.pk]))
    text = page.content.decode()
    assert page.status_code == 200 and "60.0 %" in text and "not defined" in text
    assert "own answers among them: 3" in text
    response = client.get(reverse("judging_csv", args=["ours", judged.pk]))
    rows = list(csv.DictReader(io.StringIO(b"".join(response.streaming_content).decode("utf-8-sig"))))
    assert len(rows) == 18
    own = [row for row in rows if row["self_judged"] == "true"]
    assert len(own) == 9 and {row["source"] for row in own} == {"Judge J · run 1"}
    assert {row["judge"] for row in rows} == {"Judge J · judge-paper-ru v1"}
    undecided = [row for row in rows if row["label_basis"] == "undecided"]
    assert [(row["criterion"], row["label"], row["votes"]) for row in undecided] == [("grammatical", "", "2")]


def test_the_export_and_the_api_name_the_judge(cast: Cast, judged: Judging) -> None:
    response = cast.client(cast.alice).get("/studies/ours/exports/judgements.csv")
    rows = list(csv.DictReader(io.StringIO(b"".join(response.streaming_content).decode("utf-8-sig"))))
    mine = [row for row in rows if row["judge_kind"] == "model"]
    assert len(mine) == 18 and {row["judge"] for row in mine} == {"Judge J · judge-paper-ru v1"}
    assert {row["purpose"] for row in mine} == {"automatic"}
    document = client_of(cast.alice).get("/api/v1/studies/ours/judgements/?judge_kind=model").json()
    assert {row["judge"] for row in document["results"]} == {"Judge J · judge-paper-ru v1"}


def test_the_api_and_the_command_say_what_the_page_says(
    cast: Cast, judged: Judging, capsys: pytest.CaptureFixture[str]
) -> None:
    client = client_of(cast.alice)
    (row,) = client.get("/api/v1/studies/ours/judgings/").json()["results"]
    assert (row["id"], row["judge"], row["model"]) == (judged.pk, "Judge J · judge-paper-ru v1", "Judge J")
    assert (row["state"], row["n_answers"], row["n_settled"]) == ("running", 6, 0)
    found = client.get(f"/api/v1/studies/ours/judgings/{judged.pk}/agreement/").json()
    assert (found["n_judged"], found["n_compared"], found["n_own"]) == (6, 6, 3)
    grammatical = found["agreement"][0]
    assert grammatical["criterion"] == "grammatical"
    whole = grammatical["groups"][0]
    assert (whole["group"], whole["n"], whole["percent"], whole["counts"]) == ("all", 5, 60.0, [[2, 1], [1, 1]])
    logical = found["agreement"][1]["groups"][0]
    assert (logical["mcc"], logical["reason"]) == (None, "no_variation")

    call_command("judgings", "--study", "ours")
    assert f"{judged.pk}. {judged.title}" in capsys.readouterr().out
    call_command("judgings", "--study", "ours", "--agreement", str(judged.pk))
    told = capsys.readouterr().out
    assert "grammatical, all: 3 of 5 (60.0 %), F1 0.583, MCC 0.167" in told and "MCC no_variation" in told
    call_command("judgings", "--study", "ours", "--agreement", str(judged.pk), "--json")
    assert json.loads(capsys.readouterr().out)["agreement"] == found["agreement"]
    call_command("judgings", "--study", "ours", "--rows", str(judged.pk))
    assert len(capsys.readouterr().out.splitlines()) == 19
    cast.study.simulated = True
    cast.study.save(update_fields=["simulated"])
    call_command("judgings", "--study", "ours", "--json")
    told = capsys.readouterr()
    assert json.loads(told.out) and told.err == "ours: simulated data\n"
    for study, number in (("ours", judged.pk + 1), ("theirs", judged.pk)):
        with pytest.raises(CommandError, match="no round"):
            call_command("judgings", "--study", study, "--agreement", str(number))


def test_the_settled_are_counted_in_the_list_as_on_the_page(cast: Cast, judged: Judging) -> None:
    first, second, third, *_ = judged.items.order_by("pk")
    judged.items.filter(pk=first.pk).update(state="judged")
    judged.items.filter(pk=second.pk).update(same_as=first)
    judged.items.filter(pk=third.pk).update(state="removed")
    (one,) = judging_counts(judgings_of(cast.study))
    assert (one.n_answers, one.n_settled) == (6, 3)
    assert (one.n_answers, one.n_settled) == (judging_progress(judged).answers, judging_progress(judged).settled)


def test_the_dashboard_and_the_results_lead_there(cast: Cast, judged: Judging) -> None:
    client = cast.client(cast.alice)
    assert reverse("judging_list", args=["ours"]) in client.get("/studies/ours/").content.decode()
    assert reverse("judging_list", args=["ours"]) in client.get("/studies/ours/results/").content.decode()


def test_an_open_campaign_keeps_its_answers_out(cast: Cast, judged: Judging) -> None:
    campaign = make_campaign(cast.study, cast.alice, k=1, title="Open", sample=2)
    held = set(campaign.items.values_list("answer_id", flat=True))
    found = agreement_of(judged, said_by(judged))
    assert found.in_open_campaigns == len(held) == 2 and found.answers == 6
    assert max(figure.whole.n for figure in found.figures) <= 4
    blind = set(Answer.objects.filter(pk__in=held).values_list("blind_id", flat=True))
    assert {one.label for one in said_by(judged) if one.blind_id in blind} == {None}
    page = cast.client(cast.alice).get(reverse("judging_agreement", args=["ours", judged.pk])).content.decode()
    assert "2 answers are left out here" in page


def test_labels_are_the_raters_alone(cast: Cast, instrument: Instrument, judged: Judging) -> None:
    labels = labels_of(instrument=instrument, rubric=paper_rubric()).answers
    assert {label.votes for answer in labels for label in answer.labels if label.basis != "undecided"} == {2}
    Judgement.objects.filter(round=judged.round_id).update(retracted_at=timezone.now())
    assert labels == labels_of(instrument=instrument, rubric=paper_rubric()).answers, "with the judge or without it"


def test_without_labels_nothing_is_a_number(cast: Cast, instrument: Instrument, config: ModelConfig) -> None:
    make_sitting(instrument, GOOD, kind="model")
    judging = launch(cast, instrument, config)
    for answer in Answer.objects.all():
        say(judging, answer, NO)
    found = agreement_of(judging, said_by(judging))
    assert found.compared == 0 and {figure.whole.percent for figure in found.figures} == {None}
    page = cast.client(cast.alice).get(reverse("judging_agreement", args=["ours", judging.pk])).content.decode()
    assert "None of the judged answers has a label" in page


# --- consent and withdrawal, from the participant's page to the call --------------------------------------------------


@pytest.fixture
def survey(cast: Cast, instrument: Instrument) -> Survey:
    survey = survey_create(
        instrument=instrument,
        title="By link",
        contact="c@example.org",
        consent_text="Yes.",
        third_party_text="A model may judge my answers.",
        actor=cast.alice,
    )
    survey_set_state(survey=survey, state="open", actor=cast.alice)
    survey.refresh_from_db()
    return survey


@pytest.mark.parametrize("agreed", [(), (Purpose.PUBLICATION,), (Purpose.THIRD_PARTIES,)])
def test_a_consent_to_third_parties_is_written_down_with_the_respondent(survey: Survey, agreed) -> None:
    participant_start(survey_id=survey.pk, newcomer=Newcomer(start_key=uuid.uuid4(), agreed=agreed))
    respondent = Respondent.objects.get(participant__survey=survey)
    assert respondent.third_parties is (Purpose.THIRD_PARTIES in agreed)


def test_a_consent_that_was_not_asked_for_is_none(cast: Cast, survey: Survey) -> None:
    Survey.objects.filter(pk=survey.pk).update(third_party_document=None)
    participant_start(survey_id=survey.pk, newcomer=Newcomer(start_key=uuid.uuid4(), agreed=(Purpose.THIRD_PARTIES,)))
    assert not Respondent.objects.get(participant__survey=survey).third_parties


def test_consents_of_before_are_written_down_too(survey: Survey) -> None:
    """What the migration does with people who took part before the column was there."""
    agreed = make_person(survey, agreed=[survey.third_party_document])
    other = make_person(survey)
    with connection.cursor() as cursor:
        cursor.execute(import_module("surveys.migrations.0010_third_parties").WRITTEN)
    assert [Respondent.objects.get(participant=one).third_parties for one in (agreed, other)] == [True, False]


def test_a_withdrawal_reaches_the_calls(
    cast: Cast, instrument: Instrument, config: ModelConfig, survey: Survey
) -> None:
    person = make_person(survey, ["Заклинание сидит на столе тихо", *GOOD[1:]])
    Respondent.objects.filter(pk=person.respondent_id).update(third_parties=True)
    judging = launch(cast, instrument, config)
    answer = Answer.objects.get(sitting__respondent=person.respondent, stimulus__position=1)
    Call.objects.create(
        purpose="judge",
        judging=judging,
        answer=answer,
        config=config,
        state="bad_reply",
        attempt=1,
        request={"messages": [{"role": "user", "content": "заклинание сидит"}]},
        response={"choices": ["заклинание"]},
        raw_reply="заклинание",
        raw_body="заклинание",
        detail="order: заклинание",
        input_tokens=7,
    )
    Judging.objects.filter(pk=judging.pk).update(reason="bad: заклинание")
    held = {f"llmruns_call.{name}" for name in ("request", "response", "raw_reply", "raw_body", "detail")}
    assert columns_with("Заклинание") == {"corpus_answer.text", "llmruns_judging.reason", *held}
    participant_withdraw(participant_id=person.pk, way="receipt")
    assert columns_with("Заклинание") == set()
    call = Call.objects.get()
    assert (call.request, call.response, call.raw_reply, call.raw_body, call.detail) == ({}, None, "", "", "")
    assert (call.state, call.attempt, call.input_tokens) == ("bad_reply", 1, 7)
    judging.refresh_from_db()
    assert judging.reason == "" and judging.state == "finished", "nothing is left to ask"
    assert set(judging.items.values_list("state", "problem")) == {("removed", "withdrawn")}
    page = cast.client(cast.alice).get(reverse("call_detail", args=["ours", call.pk])).content.decode()
    assert "withdrawn by its author" in page and "аклинание" not in page
