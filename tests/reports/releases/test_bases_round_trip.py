"""A study on every basis, raters' and automatic judges', released and made again in an empty installation: each table
of the results page and each figure's data come out the same, as a browser gets them."""

import csv
import html
import io
import random
import re
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation.adjudication import adjudication_record
from annotation.models import Campaign, Rater
from annotation.services import adjudicator_set, campaign_close
from corpus.models import Answer
from llmruns.judging import model_judge_ensure
from llmruns.liveness import worker_lock_release
from llmruns.models import ModelConfig, Prompt
from reports.figure_set import FIGURES
from reports.simulation import Simulation, simulate_models, simulate_people, simulate_raters, simulation_begin
from scoring.classifiers import recipes
from scoring.classifiers.applying import application_create, application_work
from scoring.classifiers.problems import ClassifierError
from scoring.classifiers.services import classifier_create, split_ensure
from scoring.classifiers.training import classifier_work
from scoring.models import Classifier, Judge, Judgement, SplitSide
from scoring.selectors import labels_of
from scoring.services import automatic_round_create, paper_rubric
from studies.models import Study, User
from tests.reports.releases.conftest import everything_is_gone

SECTION = re.compile(r'<section aria-labelledby="(\w+)-title".*?</section>', re.S)
TABLE = re.compile(r"<table.*?</table>", re.S)
SKIPPED = ("models",)  # what calls cost and what was sent: there are no calls after an import
NUMBERS = re.compile(r"judges-[\d-]+")  # judges have numbers of their own in each installation


@pytest.fixture
def no_worker_is_left():
    """Whoever asks a model, a simulated one too, holds a lock on a connection of its own."""
    yield
    worker_lock_release()


@pytest.fixture
def simulation(settings, tmp_path: Path, no_worker_is_left: None) -> Simulation:
    """Eight people, seven of them before the split; three models; a classifier that learned, and a model judge."""
    settings.CLASSIFIERS_DIR, settings.ML_THREADS = tmp_path / "classifiers", 1
    made = simulation_begin(slug="demo", actor=User.objects.create_user("keeper"), seed=3)
    simulate_people(made, people=7)
    simulate_models(made, runs=2)
    _decide(simulate_raters(made, say=lambda _text: None), made)
    rubric = paper_rubric()
    split = split_ensure(study=made.study, rubric=rubric, same_person=[], seed=5, actor=None)
    held_out = made.instrument.stimuli.get(position=7).pk
    criteria = list(rubric.criteria.filter(kind="judged"))
    classifier = classifier_create(
        split=split, criteria=criteria, recipe=recipes.BASELINE, held_out=[held_out], actor=None, enqueue=False
    )
    assert classifier_work(classifier.pk)
    simulate_people(made, people=1)  # on neither side
    classifier.refresh_from_db()
    assert application_work(application_create(classifier=classifier, actor=None, enqueue=False).pk)
    _model_judges(made)
    return made


def _decide(campaign: Campaign, made: Simulation) -> None:
    """Five answers on which two raters differ, and the third has taken back: two are decided, the others stay so."""
    first, second, third = (one.judge_id for one in Rater.objects.filter(study=made.study).order_by("pk"))
    votes = Judgement.objects.filter(round=campaign.round, criterion__code="grammatical", shared_from=None)
    said = {judge: dict(votes.filter(judge=judge).values_list("answer", "value")) for judge in (first, second)}
    divided = [answer for answer, value in sorted(said[first].items()) if said[second].get(answer, value) != value][:5]
    given = Judgement.objects.filter(round=campaign.round, judge=third)
    back = list(given.filter(answer__in=divided).values_list("pk", flat=True))
    given.filter(shared_from__in=back).update(retracted_at=timezone.now())
    given.filter(pk__in=back).update(retracted_at=timezone.now())
    user = User.objects.get(username="simulated-rater-1")
    adjudicator_set(campaign=campaign, user=user, actor=made.actor)
    campaign_close(campaign=campaign, actor=made.actor)
    rater = Rater.objects.get(user=user)
    decision = {"grammatical": 1, "logical": 1, "order": 0}
    for item in campaign.items.filter(answer__in=divided, same_as=None).order_by("position")[:2]:
        assert adjudication_record(item_uuid=item.uuid, rater_id=rater.pk, values=decision, reason="decided")
    labels = labels_of(instrument=made.instrument, rubric=paper_rubric())
    left = {one.pk for one in labels.answers if one.labels[0].basis == "undecided"}
    assert len(left & set(divided)) == 3, "a study without undecided labels shows less"


def _model_judges(made: Simulation) -> None:
    """Model "large" judges all given answers but every 17th, which stay undecided on its basis."""
    rubric, study, rng = paper_rubric(), made.study, random.Random(9)
    prompt = Prompt.objects.create(study=study, slug="judge", purpose="judge", text="{words} {answer}")
    config = ModelConfig.objects.filter(study=study).order_by("pk").last()
    judge = model_judge_ensure(config=config, prompt=prompt, rubric=rubric).judge
    round_ = automatic_round_create(study=study, rubric=rubric, judge=judge)
    given = Answer.objects.filter(sitting__instrument=made.instrument, outcome="given", stimulus__is_practice=False)
    criteria = list(rubric.criteria.filter(kind="judged"))
    Judgement.objects.bulk_create(
        Judgement(
            round=round_,
            answer=answer,
            criterion=criterion,
            judge=judge,
            value=int(rng.random() < 0.7),
            confidence=round(rng.random(), 3),
        )
        for number, answer in enumerate(given.order_by("pk"))
        for criterion in criteria
        if number % 17
    )


def client_of(name: str) -> Client:
    client = Client()
    client.force_login(User.objects.get(username=name))
    return client


def get(client: Client, name: str, *args: object, **given: str) -> str:
    response = client.get(reverse(name, args=["demo", *args]), given)
    assert response.status_code == 200, (name, args, given)
    return b"".join(response).decode()


def seen(client: Client) -> dict[tuple, object]:
    """By basis (its place and its name), people and runs: tables of the page, and the data of the figures."""
    study = Study.objects.get(slug="demo")
    judges = client.get(reverse("results", args=["demo"])).context["chosen"].judges
    bases = [("labels of the raters", "raters"), *((judge.name, f"judges-{judge.pk}") for judge in judges)]
    choices = [(place, name, key) for place, (name, key) in enumerate(bases)]
    automatic = "-".join(str(judge.pk) for judge in Judge.objects.filter(rounds__study=study).order_by("pk"))
    choices.append((len(bases), "all together", f"judges-{automatic}"))
    found: dict[tuple, object] = {}
    for place, name, basis in choices:
        for runs in ("mean", "majority"):
            given = {"basis": basis, "runs": runs}
            page = get(client, "results", **given)
            for section in SECTION.finditer(page):
                if section[1] not in SKIPPED:
                    found[place, name, runs, section[1]] = [_text(one) for one in TABLE.findall(section[0])]
        for number in FIGURES:  # its data have both means and majorities
            data = get(client, "figure_csv", number, basis=basis)
            found[place, name, "", number] = NUMBERS.sub("judges", data).splitlines()
    return found


def compared(client: Client) -> list[tuple[str, ...]]:
    """The comparison of judges but for its intervals, which are drawn by the numbers of people in the database."""
    text = get(client, "judge_comparison_csv").removeprefix("\ufeff")
    names = ("judge", "judge_kind", "subset", "figure", "criterion", "unit", "variant", "n", "n_respondents", "reason")
    return [
        (*(row[name] for name in names), row["value"] and f"{float(row['value']):.12f}")
        for row in csv.DictReader(io.StringIO(text))
    ]


def _text(table: str) -> list[str]:
    bare = re.sub(r"<span[^>]*>imported</span>|<[^>]*>", "|", table)
    return [cell.strip() for cell in html.unescape(bare).split("|") if cell.strip()]


@pytest.mark.django_db
def test_every_basis_comes_back_figure_for_figure(simulation: Simulation) -> None:
    client = client_of("keeper")
    before, judges_before = seen(client), compared(client)
    assert {row[0] for row in judges_before} == {"baseline", "Simulated large · judge v1", "majority class"}
    classifier = Classifier.objects.get()
    sides = list(SplitSide.objects.filter(split=classifier.split).values_list("trains", flat=True))
    assert (sum(sides), len(sides)) == (4, 7)
    _shows_what_is_to_be_compared(before, n_test=3)
    values = sorted(Judgement.objects.filter(judge=classifier.judge).values_list("value", "confidence"))
    assert client.post(reverse("release_new", args=["demo"]), {"questionnaire": "none"}).status_code == 302
    data = b"".join(client.get(reverse("release_file", args=["demo", 1])).streaming_content)

    everything_is_gone()
    User.objects.create_user("reader", is_staff=True, is_superuser=True)
    client = client_of("reader")
    upload = SimpleUploadedFile("demo.zip", data)
    response = client.post(reverse("release_import"), {"file": upload, "slug": ""})
    assert response.status_code == 302, response.context["form"].errors
    after = seen(client)
    assert after.keys() == before.keys()
    for key, shown in before.items():
        assert after[key] == shown, key

    assert compared(client) == judges_before

    restored = Classifier.objects.get()
    assert (restored.title, restored.recipe, restored.weights_hash, restored.data_hash, restored.n_train) == (
        classifier.title,
        classifier.recipe,
        classifier.weights_hash,
        classifier.data_hash,
        classifier.n_train,
    )
    assert sorted(Judgement.objects.filter(judge=restored.judge).values_list("value", "confidence")) == values
    (held_out,) = restored.parameters["held_out"]
    assert restored.study.instruments.get().stimuli.get(pk=held_out).position == 7
    assert list(SplitSide.objects.values_list("trains", flat=True).order_by("trains")) == sorted(sides)
    _is_a_judge_without_weights(client, restored)


def _shows_what_is_to_be_compared(found: dict[tuple, object], *, n_test: int) -> None:
    names = {(key[0], key[1]) for key in found}
    assert [name for _place, name in sorted(names)] == [
        "labels of the raters",
        "baseline",
        "Simulated large · judge v1",
        "all together",
    ]
    assert {key[3] for key in found} >= {"overview", "criteria", "figure4", "worst", "stimuli", 1, 2, 3, 4}
    figure1 = {key[:3]: shown for key, shown in found.items() if key[3] == 1}
    people = {key: dict(zip(shown[0].split(","), shown[1].split(","), strict=True)) for key, shown in figure1.items()}
    assert {row["people"] for (place, *_), row in people.items() if place in (1, 3)} == {"test"}
    assert people[1, "baseline", ""]["n_sittings"] in map(str, range(1, n_test + 1))
    assert len({row["mean"] for row in people.values()}) > 2  # the bases differ


def _is_a_judge_without_weights(client: Client, classifier: Classifier) -> None:
    page = get(client, "classifier", classifier.pk)
    assert "its weights are not" in page and "Judge all answers" not in page and "F1 macro" in page
    response = client.post(reverse("classifier_judge", args=["demo", classifier.pk]), follow=True)
    assert "its weights are not" in response.content.decode()
    with pytest.raises(ClassifierError, match="its weights are not"):
        application_create(classifier=classifier, actor=None)
    assert not classifier.applications.exists()
