"""Who may see what: every route, walked, so that a new one cannot be forgotten."""

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from corpus.models import Instrument
from corpus.services import instrument_freeze
from llmruns.models import Experiment, ModelConfig, Prompt
from studies.models import Membership
from tests.api.conftest import ROOT, Ready, add_judging, add_survey, client_of, launch_body
from tests.api.routes import OF_A_STUDY, ROUTES, Route

# What a researcher who is rating may still see and do: nothing in it says who answered or what others judged.
OPEN_TO_BLINDED = {
    ("api-study-list", "list"),
    ("api-study-detail", "retrieve"),
    ("api-instruments-list", "list"),
    ("api-instruments-detail", "retrieve"),
    ("api-surveys-list", "list"),
    ("api-surveys-detail", "retrieve"),
    ("api-rounds-list", "list"),
    ("api-rounds-detail", "retrieve"),
    ("api-campaigns-list", "list"),
    ("api-campaigns-detail", "retrieve"),
    ("api-campaigns-progress", "progress"),
    ("api-models-list", "list"),
    ("api-models-detail", "retrieve"),
    ("api-prompts-list", "list"),
    ("api-prompts-detail", "retrieve"),
    ("api-experiments-list", "list"),
    ("api-experiments-list", "create"),
    ("api-experiments-detail", "retrieve"),
    ("api-experiments-progress", "progress"),
    ("api-experiments-cancel", "cancel"),
    ("api-judgings-list", "list"),
    ("api-judgings-detail", "retrieve"),
    ("api-schema", "get"),
}


def test_the_walk_finds_the_routes() -> None:
    assert len(ROUTES) > 30
    assert {("post", "create"), ("post", "cancel")} == {(r.method, r.action) for r in ROUTES if r.method != "get"}
    assert {(route.name, route.action) for route in ROUTES} >= OPEN_TO_BLINDED


def walk(client: Client, samples: dict[str, Any], routes: list[Route] = ROUTES) -> dict[Route, Any]:
    """Cancelling comes last: whatever is asked before it finds the experiment running."""
    ordered = sorted(routes, key=lambda route: route.action == "cancel")
    return {route: route.ask(client, samples, launch_body()) for route in ordered}


def test_they_work_for_a_researcher(ready: Ready) -> None:
    for route, response in walk(ready.client, ready.samples).items():
        assert response.status_code == (201 if route.action == "create" else 200), (route, response.content)


@pytest.mark.parametrize("headers", [{}, {"authorization": "Token nobody's"}, {"authorization": "Token a b"}])
def test_without_a_token_that_works(ready: Ready, headers: dict[str, str]) -> None:
    for route, response in walk(Client(headers=headers), ready.samples).items():
        assert response.status_code == 401, route
        assert response.headers["WWW-Authenticate"] == "Token"
        assert set(response.json()) == {"code", "detail"}
    assert Experiment.objects.get().state == "running"


@pytest.mark.parametrize("who", ["stranger", "rater", "former researcher"])
def test_to_others_there_is_no_such_study(ready: Ready, who: str) -> None:
    cast = ready.built.cast
    if who == "former researcher":
        Membership.objects.create(user=cast.bob, study=cast.study, role="researcher", is_active=False)
    client = client_of(cast.rita if who == "rater" else cast.bob)
    refused = walk(client, ready.samples, OF_A_STUDY)
    missing = walk(client, ready.samples | {"study": "never-was"}, OF_A_STUDY)
    for route, response in refused.items():
        assert (response.status_code, response.json()["code"]) == (404, "not_found"), route
        assert response.content == missing[route].content, "whether a study exists must not show"
    assert Experiment.objects.get().state == "running"


def test_to_one_who_is_rating(ready: Ready, blinded: Client) -> None:
    for route, response in walk(blinded, ready.samples).items():
        if (route.name, route.action) in OPEN_TO_BLINDED:
            assert response.status_code in (200, 201), (route, response.content)
            continue
        assert response.status_code == 403, route
        sentence = "You are rating answers of this study. Results, calls and exports open when the campaign closes."
        assert response.json() == {"code": "blinded", "detail": sentence}


def test_what_one_who_is_rating_sees_names_no_answer(ready: Ready, blinded: Client) -> None:
    ids = [str(answer.blind_id) for answer in ready.built.answers.values()]
    ids += [str(answer.sitting.respondent.public_id) for answer in ready.built.answers.values() if answer.outcome]
    humans = [i for i in ids if i != str(ready.built.config.respondent.public_id)]
    for route in ROUTES:
        if route.method == "get" and (route.name, route.action) in OPEN_TO_BLINDED:
            text = route.ask(blinded, ready.samples).content.decode()
            assert not [i for i in humans if i in text], route


def theirs(ready: Ready) -> dict[str, Any]:
    """One of everything in the other study; what their addresses would be made of."""
    study, rubric = ready.built.cast.other_study, ready.built.rubric
    instrument = Instrument.objects.create(study=study, slug="small", title="T", instruction="…", refusal_below=1)
    stimulus = instrument.stimuli.create(position=1, text="а б", original="а б", complexity="easy", shuffled=False)
    instrument_freeze(instrument=instrument, actor=None)
    survey = add_survey(study, instrument, "elsewhere")
    prompt = Prompt.objects.create(study=study, slug="paper", text="{words}")
    respondent = study.respondents.create(kind="model")
    config = ModelConfig.objects.create(study=study, respondent=respondent, label="T", base_url="http://x", model="m")
    experiment = Experiment.objects.create(study=study, instrument=instrument, prompt=prompt, title="T")
    sitting = respondent.sittings.create(
        instrument=instrument,
        order=[stimulus.pk],
        state="finished",
        started_at=timezone.now(),
        finished_at=timezone.now(),
    )
    run = experiment.runs.create(config=config, sitting=sitting, ordinal=1, state="finished")
    answer = sitting.answers.create(stimulus=stimulus, outcome="given", text="а")
    round_ = study.rounds.create(rubric=rubric, purpose="rating")
    campaign = study.campaigns.create(round=round_, title="T", raters_per_answer=1, seed=1)
    call = run.calls.create(config=config, stimulus=stimulus, state="failed", request={})
    judge, criterion = ready.built.raters[0].judge, rubric.criteria.first()
    round_.judgements.create(answer=answer, criterion=criterion, judge=judge, value=1)
    judging = add_judging(config, prompt, rubric)
    return {
        "study": "ours",
        "answer": answer.blind_id,
        "survey": survey.slug,
        "api-instruments": instrument.pk,
        "api-rounds": round_.pk,
        "api-campaigns": campaign.pk,
        "api-models": config.pk,
        "api-prompts": prompt.pk,
        "api-experiments": experiment.pk,
        "api-runs": run.pk,
        "api-calls": call.pk,
        "api-judgings": judging.pk,
    }


def test_what_belongs_to_another_study_is_not_reached_through_ours(ready: Ready) -> None:
    lists = [route for route in OF_A_STUDY if route.action in ("list", "results")]
    walk(ready.client, ready.samples, lists)  # the counting rules make their round
    before = {route: response.content for route, response in walk(ready.client, ready.samples, lists).items()}
    foreign = theirs(ready)
    assert {route: response.content for route, response in walk(ready.client, foreign, lists).items()} == before
    single = [route for route in OF_A_STUDY if len(route.parameters) > 1]
    for route, response in walk(ready.client, foreign, single).items():
        assert response.status_code == 404, route
    assert {experiment.state for experiment in Experiment.objects.all()} == {"running"}
    for body in (launch_body(models=["T"]), launch_body(models=["Model M", "T"])):
        response = ready.client.post(ROOT + "experiments/", body, content_type="application/json")
        assert response.status_code == 400
    assert Experiment.objects.count() == 2


def test_only_ones_own_studies_are_listed(ready: Ready) -> None:
    cast = ready.built.cast
    for user, expected in ((cast.alice, ["ours"]), (cast.bob, ["theirs"]), (cast.rita, [])):
        rows = client_of(user).get("/api/v1/studies/").json()["results"]
        assert [row["study"] for row in rows] == expected


def test_a_session_is_no_token(ready: Ready) -> None:
    client = ready.built.cast.client(ready.built.cast.alice)
    assert client.get(ROOT + "answers/").status_code == 401


def test_a_token_ends_with_the_next_one_and_with_the_account(ready: Ready) -> None:
    alice = ready.built.cast.alice
    second = client_of(alice)
    ready.get("surveys/", 401)
    assert second.get(ROOT + "surveys/").status_code == 200
    alice.is_active = False
    alice.save(update_fields=["is_active"])
    assert second.get(ROOT + "surveys/").status_code == 401
