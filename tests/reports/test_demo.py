"""`manage.py demo`: what it leaves to look at, from the pages that show it, and what a second one does."""

import io
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from annotation.models import Campaign
from corpus.models import Answer
from llmruns.liveness import worker_lock_release
from llmruns.models import Judging, JudgingItem
from llmruns.providers.simulated import PROVIDER
from reports.management.commands.luria_setup import RESEARCHER
from scoring.models import Application, Classifier, Evaluation, JobState, Judge, Judgement
from studies.models import AuditEntry, Study, User
from tests.conftest import Cast

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def no_worker_is_left() -> Iterator[None]:
    """Whoever asks a model, a simulated one too, holds a lock on a connection of its own."""
    yield
    worker_lock_release()


def demo() -> str:
    said = io.StringIO()
    call_command("demo", people=12, runs=1, stdout=said)
    return said.getvalue()


def test_automatic_judges_have_learned_judged_and_been_measured(
    cast: Cast, settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings.CLASSIFIERS_DIR = tmp_path
    monkeypatch.setattr(PROVIDER, "_random", random.Random(1))
    researcher = User.objects.create_user(RESEARCHER)
    assert "Everything in it is simulated" in demo()
    study = Study.objects.get(slug="demo")
    assert study.simulated

    rated, waiting = Campaign.objects.filter(study=study).order_by("pk")
    assert (rated.state, waiting.state) == (Campaign.State.CLOSED, Campaign.State.OPEN)
    assert not Judgement.objects.filter(round=waiting.round_id).exists()

    classifier = Classifier.objects.get(study=study)
    assert (classifier.state, classifier.recipe) == (JobState.FINISHED, "baseline")
    application = Application.objects.get(classifier=classifier)
    assert application.state == JobState.FINISHED
    criteria = set(classifier.criteria.values_list("code", flat=True))
    judgings = list(Judging.objects.filter(round__study=study))
    assert [judging.state for judging in judgings] == [Judging.State.FINISHED] * 2
    asked = JudgingItem.objects.filter(same_as=None)  # the others share its judgement
    assert set(asked.values_list("state", flat=True)) == {JudgingItem.State.JUDGED}

    judges = [classifier.judge_id, *(judging.model_judge.judge_id for judging in judgings)]
    counted = Answer.objects.filter(sitting__instrument__study=study, outcome=Answer.Outcome.GIVEN)
    for judge in judges:
        judged = set(Judgement.objects.filter(judge=judge).values_list("answer", flat=True))
        # All that was written, but for refusals, which nobody is asked about.
        assert judged and judged <= set(counted.values_list("pk", flat=True))
        whole = Evaluation.objects.filter(judge=judge, split=classifier.split, subset=Evaluation.Subset.ALL)
        assert set(whole.values_list("criterion__code", flat=True)) == criteria

    client = cast.client(researcher)
    for page in ("classifiers/", f"results/?basis=judges-{judges[0]}", f"results/?basis=judges-{judges[1]}"):
        shown = client.get(f"/studies/demo/{page}")
        assert shown.status_code == 200 and "Simulated data" in shown.content.decode()
    results = client.get("/studies/demo/results/", {"basis": f"judges-{judges[0]}"}).context["results"]
    assert results.models and all(row.scores[0].mean.value is not None for row in results.models)

    # A second one finds it there and adds nothing.
    tables = (Study, Judge, Judgement, Evaluation, AuditEntry, Campaign)
    before = [table.objects.count() for table in tables]
    assert "there already" in demo()
    assert [table.objects.count() for table in tables] == before


def test_too_few_people_are_refused_before_anything_is_made(cast: Cast) -> None:
    User.objects.create_user(RESEARCHER)
    with pytest.raises(CommandError, match="At least 8 people"):
        call_command("demo", people=2)
    assert not Study.objects.filter(slug="demo").exists()
