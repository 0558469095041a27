"""A release, imported into an empty database: the same results table, figure for figure."""

import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from annotation.models import Campaign, Item
from annotation.versions import chain_verify
from corpus.models import Answer, Sitting
from llmruns.liveness import worker_lock_release
from llmruns.models import Call, Experiment, ModelConfig, ModelJudge, Provider
from reports.models import ReleaseImport
from reports.releases.importing import release_import
from reports.simulation import simulate_models, simulate_people, simulate_raters, simulation_begin
from scoring.models import Judgement, Round
from studies.models import Study, User
from surveys.models import Consent, Participant, QuestionResponse, Survey
from tests.reports.releases.conftest import Released, archive_of, everything_is_gone, results_as_shown


@pytest.fixture
def no_worker_is_left() -> Iterator[None]:
    """Whoever asks a model, a simulated one too, holds a lock on a connection of its own."""
    yield
    worker_lock_release()


@pytest.mark.django_db
def test_the_demo_study_comes_back_with_the_same_results(tmp_path: Path, no_worker_is_left: None) -> None:
    keeper = User.objects.create_user("keeper")
    simulation = simulation_begin(slug="demo", actor=keeper, seed=3)
    simulate_people(simulation, people=6)
    simulate_models(simulation, runs=2)
    simulate_raters(simulation, say=lambda _text: None)
    before = results_as_shown(simulation.study)
    assert before[0]["rows"][0]["n_sittings"] > 3 and len(before[0]["rows"]) == 4
    assert before[0]["rows"][0]["cuts"][0]["interval"]["low"] is not None and len(before[0]["page"]) > 100
    call_command("release", study="demo", out=tmp_path / "demo.zip", stdout=io.StringIO())

    everything_is_gone()
    assert not Study.objects.exists()
    said = io.StringIO()
    call_command("release_import", tmp_path / "demo.zip", dry_run=True, stdout=said)
    assert "dry run" in said.getvalue() and not Study.objects.exists()
    call_command("release_import", tmp_path / "demo.zip", stdout=said)
    study = Study.objects.get()
    assert (study.slug, study.simulated) == ("demo", True)
    assert results_as_shown(study) == before


@pytest.mark.django_db
def test_what_was_judged_and_asked_comes_back(released: Released) -> None:
    """The results of those who are in it: of the two released people and the model's two runs."""
    release = released.release(questionnaire="all")
    data = archive_of(release)
    kept = list(
        Judgement.objects.filter(
            answer__sitting__respondent__participant__in=[released.people["ann"], released.people["ben"]],
        )
        .exclude(judge__kind="classifier")
        .values_list("value", flat=True)
    )
    everything_is_gone()
    done = release_import(stream=io.BytesIO(data), name="r.zip", actor=None)
    study = done.study
    assert study is not None and study.simulated is False
    assert done.counts["people"] == 2 and done.counts["models"] == 1

    config = ModelConfig.objects.get()
    assert (config.label, config.temperature, config.extra_body) == ("Model M", 0.3, {"seed": 4})
    assert (config.provider, config.base_url, config.key_variable) == (Provider.REPLAYED, "", "")
    experiment = Experiment.objects.get()
    assert experiment.imported and experiment.prompt.version == 3
    assert list(experiment.runs.order_by("pk").values_list("ordinal", "state")) == [(1, "finished"), (2, "incomplete")]
    assert not Call.objects.exists()

    survey = Survey.objects.get()
    assert (survey.platform, survey.state, survey.title) == ("imported", "closed", "survey 1")
    assert Participant.objects.filter(external_id="").count() == 2
    assert Consent.objects.filter(document__purpose="publication").count() == 2
    assert QuestionResponse.objects.count() == 2
    assert set(Sitting.objects.values_list("standing", flat=True)) == {"counted"}
    assert Answer.objects.filter(outcome="declined", text="").count() == 1

    campaign = Campaign.objects.get()
    assert campaign.state == "closed" and campaign.round.purpose == Round.Purpose.IMPORTED
    assert campaign.round.adjudication.judgements.count() == 3
    assert chain_verify(campaign) == []
    assert sorted(study.raters.values_list("pseudonym", flat=True)) == ["R1", "R2", "R3"]
    shared = Judgement.objects.exclude(shared_from=None)
    assert shared.count() > 0 and Item.objects.exclude(same_as=None).exists()
    model_judge = ModelJudge.objects.get()
    assert (model_judge.config, model_judge.prompt.slug, model_judge.prompt.purpose) == (config, "judge", "judge")
    judged = model_judge.judge.judgements.get()
    assert (judged.value, judged.confidence, judged.reason) == (0, 0.75, "")
    assert judged.round.purpose == Round.Purpose.AUTOMATIC and judged.round.judge == model_judge.judge
    assert done.left_aside == {"judgements_classifier": 1}
    raters = Judgement.objects.filter(judge__kind__in=["rater", "model"], answer__sitting__respondent__kind="human")
    automatic = Judgement.objects.filter(judge__kind="rule", answer__sitting__respondent__kind="human")
    assert sorted([*raters.values_list("value", flat=True), *automatic.values_list("value", flat=True)]) == sorted(kept)


@pytest.mark.django_db
def test_a_release_comes_in_once(released: Released, tmp_path: Path) -> None:
    data = archive_of(released.release())
    (tmp_path / "r.zip").write_bytes(data)
    first = release_import(stream=io.BytesIO(data), name="r.zip", slug="copy", actor=None)
    again = release_import(stream=io.BytesIO(data), name="r.zip", slug="another", actor=None)
    assert again.study is None and again.already is not None and again.already.study == first.study
    assert Study.objects.filter(slug__in=["copy", "another"]).count() == 1 == ReleaseImport.objects.count()
    with pytest.raises(CommandError, match="--slug"):
        ReleaseImport.objects.all().delete()
        call_command("release_import", tmp_path / "r.zip")


@pytest.mark.django_db
def test_beside_the_study_of_its_own_installation(released: Released) -> None:
    """The first copy keeps the release's numbers, which nobody has; another version's rows get new ones."""
    first = release_import(stream=io.BytesIO(archive_of(released.release())), name="r", slug="one", actor=None)
    second = release_import(
        stream=io.BytesIO(archive_of(released.release(note="again"))), name="r", slug="two", actor=None
    )
    assert first.study and second.study
    assert results_as_shown(first.study)[0]["rows"] == results_as_shown(second.study)[0]["rows"]
    ids = Answer.objects.filter(sitting__instrument__study__in=[first.study, second.study])
    assert ids.values("blind_id").distinct().count() == ids.count() == 2 * first.counts["answers"]
