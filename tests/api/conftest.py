"""The study that tests/reports derives by hand, with a survey and a campaign around it, and tokens of the cast."""

import uuid
from dataclasses import dataclass
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client
from django.utils import timezone
from pytest_django import Settings
from rest_framework.throttling import UserRateThrottle

from annotation.models import Campaign, Item, Place
from corpus.models import Answer, Instrument, Respondent, Sitting
from corpus.services import instrument_freeze
from llmruns.models import Call, Experiment, Judging, ModelConfig, ModelJudge, Prompt, Run
from scoring.models import Judge, Round, Rubric
from scoring.services import automatic_round_create
from studies.models import Study, User
from studies.services import api_token_create, blinding_impose
from surveys.models import ConsentDocument, Exposure, Participant, Survey
from tests.reports import conftest as reports
from tests.reports.conftest import Built, bare  # noqa: F401 - a fixture

ROOT = "/api/v1/studies/ours/"
hand_derived = reports.built  # a fixture is called as the name that it is bound to


def client_of(user: User, **headers: str) -> Client:
    return Client(headers={"authorization": f"Token {api_token_create(user=user)}", **headers})


@dataclass
class Ready:
    built: Built
    survey: Survey
    campaign: Campaign
    client: Client  # alice's

    @property
    def samples(self) -> dict[str, Any]:
        """What the study's addresses are made of: by the name of the route's base, or of the parameter."""
        built = self.built
        return {
            "study": "ours",
            "answer": built.answers["P1/1"].blind_id,
            "survey": self.survey.slug,
            "api-instruments": built.instrument.pk,
            "api-rounds": built.rating.pk,
            "api-campaigns": self.campaign.pk,
            "api-models": built.config.pk,
            "api-prompts": built.experiment.prompt_id,
            "api-experiments": built.experiment.pk,
            "api-runs": built.experiment.runs.first().pk,
            "api-calls": Call.objects.earliest("pk").pk,
            "api-judgings": self.judging.pk,
        }

    @property
    def judging(self) -> Judging:
        """Made when it is asked for: most tests are of what people judge."""
        built = self.built
        known = Judging.objects.filter(round__study=built.cast.study).order_by("pk").first()
        return known or add_judging(built.config, built.experiment.prompt, built.rubric)

    def get(self, path: str, status: int = 200, **headers: str) -> Any:
        response = self.client.get(ROOT + path, headers=headers)
        assert response.headers["Content-Type"] == "application/json", response.content
        assert response.status_code == status, response.content
        return response.json()

    def everything(self, path: str) -> list[dict[str, Any]]:
        """All pages of a list, three rows each, so that a page's end lies inside the data."""
        rows: list[dict[str, Any]] = []
        address = f"{ROOT}{path}{'&' if '?' in path else '?'}page_size=3"
        while address:
            page = self.client.get(address).json()
            rows += page["results"]
            address = page["next"]
        return rows


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
    """No limit of requests but where a test sets one; model servers on this machine are allowed."""
    cache.clear()
    monkeypatch.setattr(UserRateThrottle, "THROTTLE_RATES", {"user": None})
    settings.ALLOW_PRIVATE_ENDPOINTS = True


def add_survey(study: Study, instrument: Instrument, slug: str = "autumn") -> Survey:
    document = ConsentDocument.objects.filter(study=study).first() or ConsentDocument.objects.create(
        study=study, text="Согласие", sha256="0" * 64
    )
    return Survey.objects.create(
        instrument=instrument,
        consent_document=document,
        slug=slug,
        title=slug.title(),
        state="open",
        contact="a@example.org",
        completion_code="SECRET-CODE",
    )


def add_judging(config: ModelConfig, prompt: Prompt, rubric: Rubric) -> Judging:
    """A round of the model as a judge, with one answer to judge."""
    judge = ModelJudge.objects.create(
        judge=Judge.objects.create(kind="model"), config=config, prompt=prompt, rubric=rubric
    )
    round_ = automatic_round_create(study=config.study, rubric=rubric, judge=judge.judge)
    judging = Judging.objects.create(model_judge=judge, round=round_, title="Judged by a model", selection={})
    answer = Answer.objects.filter(sitting__respondent__study=config.study).earliest("pk")
    judging.items.create(answer=answer, due_at=timezone.now())
    return judging


@pytest.fixture
def ready(hand_derived: Built) -> Ready:
    built = hand_derived
    study = built.cast.study
    survey = add_survey(study, built.instrument)
    first = built.answers["P1/1"]
    Participant.objects.create(respondent=first.sitting.respondent, survey=survey, digest="p1")
    Exposure.objects.create(sitting=first.sitting, stimulus=first.stimulus, onset_at=timezone.now(), duration_ms=4321)
    campaign = Campaign.objects.create(
        round=built.rating, study=study, title="First round", raters_per_answer=3, seed=1, adjudicator=built.raters[0]
    )
    campaign.criteria.set(built.rubric.criteria.filter(kind="judged"))
    for position, answer in enumerate(built.answers.values()):
        if answer.outcome == "given":
            item = Item.objects.create(
                campaign=campaign,
                answer=answer,
                position=position,
                stimulus_text=answer.stimulus.text,
                display_text=answer.text,
            )
            Place.objects.create(campaign=campaign, item=item, number=1, state="done", rater=built.raters[0])
    campaign.n_items = campaign.n_places = campaign.items.count()
    campaign.save(update_fields=["n_items", "n_places"])
    return Ready(built, survey, campaign, client_of(built.cast.alice))


@pytest.fixture
def blinded(ready: Ready) -> Client:
    """Alice, who also rates in an open campaign."""
    blinding_impose(user=ready.built.cast.alice, study=ready.built.cast.study, cause=f"campaign {ready.campaign.pk}")
    return ready.client


def grow(ready: Ready, number: int = 50) -> None:
    """As many more of everything that a list can show."""
    built, now = ready.built, timezone.now()
    study, instrument, criterion = built.cast.study, built.instrument, built.rubric.criteria.first()
    stimulus = instrument.stimuli.get(position=1)
    order = list(instrument.stimuli.values_list("pk", flat=True))
    numbers = range(number)
    instrument_freeze(instrument=instrument, actor=None)

    def sittings(kind: str) -> list[Sitting]:
        people = Respondent.objects.bulk_create(Respondent(study=study, kind=kind) for _ in numbers)
        return Sitting.objects.bulk_create(
            Sitting(
                respondent=one,
                instrument=instrument,
                source_label="more",
                state="finished",
                order=order,
                started_at=now,
                finished_at=now,
            )
            for one in people
        )

    of_people, of_models = sittings("human"), sittings("model")
    Participant.objects.bulk_create(
        Participant(respondent=sitting.respondent, survey=ready.survey, digest=str(sitting.pk)) for sitting in of_people
    )
    answers = Answer.objects.bulk_create(
        Answer(sitting=sitting, stimulus=stimulus, outcome="given", text=f"кошка сидит на столе {sitting.pk}")
        for sitting in of_people + of_models
    )
    for rater in built.raters:
        rater.judge.judgements.bulk_create(
            rater.judge.judgements.model(
                round=built.rating, answer=answer, criterion=criterion, judge=rater.judge, value=1
            )
            for answer in answers
        )
    configs = ModelConfig.objects.bulk_create(
        ModelConfig(
            respondent=sitting.respondent, study=study, label=f"M{sitting.pk}", base_url="http://127.0.0.1:9", model="m"
        )
        for sitting in of_models
    )
    prompts = Prompt.objects.bulk_create(Prompt(study=study, slug=f"p{i}", text="{words}") for i in numbers)
    experiments = Experiment.objects.bulk_create(
        Experiment(study=study, instrument=instrument, prompt=prompt, title="More", runs_planned=1)
        for prompt in prompts
    )
    runs = Run.objects.bulk_create(
        Run(experiment=experiment, config=config, sitting=sitting, ordinal=1, state="finished")
        for experiment, config, sitting in zip(experiments, configs, of_models, strict=True)
    )
    Call.objects.bulk_create(
        Call(run=run, config=run.config, stimulus=stimulus, attempt=1, state="ok", request={}) for run in runs
    )
    rounds = Round.objects.bulk_create(Round(study=study, rubric=built.rubric, purpose="rating") for _ in numbers)
    Campaign.objects.bulk_create(
        Campaign(
            round=round_, study=study, title=f"C{round_.pk}", raters_per_answer=1, seed=1, adjudicator=built.raters[1]
        )
        for round_ in rounds
    )
    for config, prompt in zip(configs, prompts, strict=True):
        add_judging(config, prompt, built.rubric)
    more = Instrument.objects.bulk_create(
        Instrument(study=study, slug=f"i{i}", title="I", instruction="…") for i in numbers
    )
    for one in more[:5]:
        one.stimuli.create(position=1, text="а", original="а", complexity="easy", shuffled=False)
    for i in numbers:
        add_survey(study, instrument, f"s{i}")
    studies = Study.objects.bulk_create(Study(slug=f"study-{i}", title="S") for i in numbers)
    for one in studies:
        one.memberships.create(user=built.cast.alice, role="researcher")


def launch_body(**changes: Any) -> dict[str, Any]:
    return {"launch_key": str(uuid.uuid4()), "instrument": "small", "models": ["Model M"], "runs": 2, **changes}
