"""A study that can be released: people who agreed to publication and people who did not, a model, three raters."""

import io
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from django.db import connection
from pytest_django import Settings

from annotation.adjudication import adjudication_record
from annotation.models import Campaign, Rater
from annotation.services import campaign_close
from corpus.models import Answer, Instrument, Respondent
from llmruns.judging import model_judge_ensure
from llmruns.models import Call, Experiment, ModelConfig, ModelJudge, Price, Prompt, Run
from reports.models import Release
from reports.releases.files import release_path
from reports.releases.policy import Policy
from reports.releases.services import release_begin, release_build
from reports.result_file import table_rows
from reports.results_json import results_document
from reports.selectors import results_of, rubric_of
from scoring.models import Judge, Judgement
from scoring.services import automatic_round_create, paper_rubric, rules_apply
from studies.models import Study
from surveys.models import Participant, Question, QuestionResponse, Survey
from surveys.services import survey_create, survey_set_state
from tests.annotation.factories import NO, YES, give, make_campaign, make_rater, make_sitting, post
from tests.conftest import Cast
from tests.surveys.people import make_person

PLATFORM_ID = "5f2c9d0000000000deadbeef"
REASON = "Особая-пометка-эксперта"
WRITTEN = "Я живу у синего моста"  # into the questionnaire


@pytest.fixture(autouse=True)
def data_folder(settings: Settings, tmp_path: Path) -> Path:
    settings.DATA_DIR = tmp_path / "files"
    return settings.DATA_DIR


@dataclass
class Released:
    """The study before it is released."""

    cast: Cast
    survey: Survey
    campaign: Campaign
    raters: list[Rater]
    people: dict[str, Participant] = field(default_factory=dict)

    @property
    def study(self) -> Study:
        return self.survey.instrument.study

    def release(self, *, note: str = "", **policy: object) -> Release:
        release = release_begin(
            study=self.study,
            policy=Policy(**policy),
            actor=self.cast.alice,
            note=note,  # type: ignore[arg-type]
        )
        release_build(release_id=release.pk)
        release.refresh_from_db()
        return release


@pytest.fixture
def survey(cast: Cast, instrument: Instrument) -> Survey:
    survey = survey_create(
        instrument=instrument,
        title="Группа Ивановой",
        contact="c@example.org",
        consent_text="Yes.",
        publication_text="Publish.",
        actor=cast.alice,
    )
    survey_set_state(survey=survey, state="open", actor=cast.alice)
    survey.refresh_from_db()
    return survey


def add_people(survey: Survey) -> dict[str, Participant]:
    """Two are released, one stopped early among them; everybody else is left out, each for another reason."""
    yes = [survey.publication_document]
    people = {
        "ann": make_person(
            survey,
            ["кошка сидит на столе", "мышь бежит от кошки", None],
            agreed=yes,
            external_id=PLATFORM_ID,
            visit_id="visit-" + PLATFORM_ID,
            completion_code="CODE7K9Q",
            flags=["browser_again"],
            timing={"duration_ms": 4_321, "pastes": 2, "device": "phone"},
        ),
        "ben": make_person(survey, ["кошка сидит на столе"], agreed=yes, state="stopped"),
        "no consent": make_person(survey, ["непубликуемый ответ раз два"] * 3),
        "pilot": make_person(survey, ["пробный ответ раз два"] * 3, agreed=yes, standing="pilot"),
        "excluded": make_person(survey, ["исключённый ответ раз два"] * 3, agreed=yes, standing="excluded"),
        "open": make_person(survey, ["незаконченный ответ раз два"], agreed=yes, state="open"),
    }
    for kind, code, value in (("long", "home", WRITTEN), ("single", "sex", "f")):
        question = Question.objects.create(
            survey=survey,
            position=1 if code == "home" else 2,
            place="after",
            code=code,
            kind=kind,
            text={"ru": f"Вопрос {code}?"},
            options=[{"value": "f", "text": {"ru": "ж"}}] if kind == "single" else [],
        )
        QuestionResponse.objects.create(participant=people["ann"], question=question, value=value)
    return people


def add_model(study: Study, instrument: Instrument) -> Experiment:
    """Two runs: one finished, one incomplete."""
    prompt = Prompt.objects.create(study=study, slug="paper", version=3, text="Составь: {words}")
    respondent = Respondent.objects.create(study=study, kind="model")
    config = ModelConfig.objects.create(
        respondent=respondent,
        study=study,
        label="Model M",
        base_url="http://10.1.2.3:9/secret-server",
        key_variable="OPENAI_API_KEY",
        model="m-1",
        temperature=0.3,
        extra_body={"seed": 4},
    )
    experiment = Experiment.objects.create(
        study=study, instrument=instrument, prompt=prompt, title="First", runs_planned=2, state="finished"
    )
    price = Price.objects.create(
        study=study,
        provider=config.provider,
        model="m-1",
        currency="USD",
        input_million="0.5",
        output_million="1.25",
        valid_from="2026-01-01",
    )
    stimulus = instrument.stimuli.get(position=1)
    for ordinal, texts in ((1, ["кошка сидит на столе", "мышь, бежит", "дети были"]), (2, ["кошка сидит на столе"])):
        sitting = make_sitting(instrument, texts, kind="model", label="Model M", finish=ordinal == 1)
        sitting.respondent, sitting.ordinal = respondent, ordinal
        sitting.save(update_fields=["respondent", "ordinal"])
        state = "finished" if ordinal == 1 else "incomplete"
        run = Run.objects.create(experiment=experiment, config=config, sitting=sitting, ordinal=ordinal, state=state)
        for attempt, outcome in ((1, "bad_reply"), (2, "ok")) if ordinal == 1 else ((1, "ok"),):
            Call.objects.create(
                run=run,
                config=config,
                stimulus=stimulus,
                attempt=attempt,
                state=outcome,
                request={"headers": {"Authorization": "Bearer sk-secret"}, "ip": "203.0.113.7"},
                raw_reply="полный ответ модели",
                input_tokens=10,
                output_tokens=5,
                price=price,
                cost="0.00001125",
                currency="USD",
            )
    return experiment


def add_model_judge(experiment: Experiment) -> ModelJudge:
    """Model M judges Ann's first answer, by a prompt of its own, and a classifier does too."""
    study, rubric = experiment.study, paper_rubric()
    prompt = Prompt.objects.create(
        study=study, slug="judge", purpose=Prompt.Purpose.JUDGE, text="{words} {answer}: как?"
    )
    judge = model_judge_ensure(config=experiment.runs.first().config, prompt=prompt, rubric=rubric)
    classifier = Judge.objects.create(kind=Judge.Kind.CLASSIFIER)
    criterion = rubric.criteria.get(code="logical")
    answer = Answer.objects.filter(sitting__respondent__kind="human", text="кошка сидит на столе").first()
    for one in (judge.judge, classifier):
        round_ = automatic_round_create(study=study, rubric=rubric, judge=one)
        Judgement.objects.create(
            round=round_, answer=answer, criterion=criterion, judge=one, value=0, confidence=0.75, reason=REASON
        )
    return judge


@pytest.fixture
def released(cast: Cast, instrument: Instrument, survey: Survey) -> Released:
    """Votes: Ann's first answer 1 1, her second 1 0 and decided, the same text of Ben's shared from Ann's first."""
    people = add_people(survey)
    add_model_judge(add_model(cast.study, instrument))
    raters = [make_rater(cast.study, name) for name in ("lena-ivanova", "misha-petrov", "nina-sidorova")]
    campaign = make_campaign(
        cast.study, cast.alice, k=2, title="Разметка Лены", adjudicator=raters[2].user, identical="once"
    )
    undecided = Answer.objects.get(sitting__respondent=people["ann"].respondent, stimulus__position=2)
    for item in campaign.items.filter(same_as=None).order_by("position"):
        for rater in raters[:2]:
            differs = item.answer_id == undecided.pk and rater == raters[1]
            post(give(item, rater), rater, NO if differs else YES)
    campaign_close(campaign=campaign, actor=cast.alice)
    item = campaign.items.get(answer=undecided)
    adjudication_record(item_uuid=item.uuid, rater_id=raters[2].pk, values=YES, reason=REASON)
    return Released(cast, survey, campaign, raters, people)


def results_as_shown(study: Study) -> list[dict]:
    """The results page's tables, but for the numbers that the database gives to experiments."""
    documents = []
    for instrument in study.instruments.order_by("slug", "version"):
        rubric = rubric_of(instrument)
        rules_apply(study=study, rubric=rubric)
        results = results_of(study=study, instrument=instrument, rubric=rubric)
        found = results_document(results)
        rows = [row | {"experiment_id": None, "imported": None} for row in found["rows"]]
        page = [row[2:] for row in table_rows(results)]  # every number of the page; whose study it is apart
        documents.append(found | {"rows": rows, "page": page})
    return documents


def everything_is_gone() -> None:
    """The database of a fresh installation: every table of ours is empty."""
    with connection.cursor() as cursor:
        names = [name for name in connection.introspection.table_names(cursor) if not name.startswith("django_")]
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")  # what a commit would check
        cursor.execute(f"TRUNCATE {', '.join(names)} CASCADE")
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")


def archive_of(release: Release) -> bytes:
    return release_path(release).read_bytes()


def files_of(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


Rewrite = Callable[[dict[str, bytes]], None]
