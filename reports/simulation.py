"""Fills a study with simulated people, models and raters, through the same services that real ones use."""

import random
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from annotation.models import Campaign, Rater
from annotation.opening import campaign_open
from annotation.places import place_judge
from annotation.queue import places_hold
from annotation.services import rater_ensure
from corpus.builtin import builtin_instrument_create, study_text
from corpus.display import display_text
from corpus.models import Answer, Instrument, Stimulus
from corpus.simulation import Truth, simulated_kind, truth_of, variants
from llmruns.calls import stimulus_work
from llmruns.models import ModelConfig, RunStimulus
from llmruns.services import experiment_launch, model_config_create, prompt_ensure
from studies.models import Role, Study, User
from studies.services import membership_set, study_create
from surveys.models import Purpose, Survey
from surveys.services import (
    Newcomer,
    participant_leave,
    participant_start,
    survey_create,
    survey_set_state,
    task_submit,
)
from surveys.timing import Timing
from surveys.visits import visit_of

MODELS = {"Simulated small": 0.55, "Simulated medium": 0.8, "Simulated large": 0.97}
RATER_ACCURACY = {"simulated-rater-1": 0.96, "simulated-rater-2": 0.94, "simulated-rater-3": 0.9}
PEOPLE_SKILL = (0.55, 0.15)  # mean and deviation of the chance of a right answer
LEAVES_EARLY = 0.08

Say = Callable[[str], None]


@dataclass(frozen=True)
class Simulation:
    study: Study
    instrument: Instrument
    actor: User
    rng: random.Random


def simulation_begin(*, slug: str, actor: User, seed: int) -> Simulation:
    """A new study, marked as simulated from its first row on."""
    study = study_create(slug=slug, title="Демонстрация (смоделированные данные)", actor=actor, simulated=True)
    instrument = builtin_instrument_create(study=study, actor=actor)
    return Simulation(study, instrument, actor, random.Random(seed))  # noqa: S311  # not for secrets


def simulate_people(simulation: Simulation, *, people: int) -> Survey:
    survey = survey_create(
        instrument=simulation.instrument,
        title="Смоделированные участники",
        contact="никому: участники смоделированы",
        consent_text=study_text("consent.ru.md"),
        publication_text=study_text("consent.publication.ru.md"),
        third_party_text=study_text("consent.third_parties.ru.md"),
        actor=simulation.actor,
    )
    survey_set_state(survey=survey, state=Survey.State.OPEN, actor=simulation.actor)
    stimuli = {stimulus.pk: stimulus for stimulus in simulation.instrument.stimuli.all()}
    for _ in range(people):
        _simulate_person(simulation, survey, stimuli)
    return survey


def _simulate_person(simulation: Simulation, survey: Survey, stimuli: dict[int, Stimulus]) -> None:
    rng = simulation.rng
    agreed = (Purpose.PUBLICATION, Purpose.THIRD_PARTIES)
    newcomer = Newcomer(start_key=uuid.UUID(int=rng.getrandbits(128), version=4), agreed=agreed)
    visit = visit_of(participant_start(survey_id=survey.pk, newcomer=newcomer))
    assert visit is not None  # noqa: S101  # it was made in the line above
    skill = min(0.98, max(0.2, rng.gauss(*PEOPLE_SKILL)))
    leaves_at = rng.randrange(2, visit.total) if rng.random() < LEAVES_EARLY else None
    for number, stimulus_id in enumerate(visit.order):
        if number == leaves_at:
            participant_leave(sitting_id=visit.sitting_id)
            return
        stimulus = stimuli[stimulus_id]
        kind = simulated_kind(
            skill=skill, complexity=stimulus.complexity, shuffled=stimulus.shuffled, rng=simulation.rng
        )
        declines = kind == "refused" and rng.random() < 0.5
        task_submit(
            visit=visit,
            number=number + 1,
            outcome=Answer.Outcome.DECLINED if declines else Answer.Outcome.GIVEN,
            text=variants(stimulus.text, stimulus.original)[kind],
            seen_revision=0,
            timing=Timing(duration_ms=round(1000 * rng.lognormvariate(3.2, 0.5))),
        )


def simulate_models(simulation: Simulation, *, runs: int) -> None:
    """An experiment with simulated models, worked off here and now; a running worker may help."""
    configs = [
        model_config_create(
            study=simulation.study,
            label=label,
            provider=ModelConfig.Provider.SIMULATED,
            base_url="",
            model=f"simulated-{skill}",
            actor=simulation.actor,
        )
        for label, skill in MODELS.items()
    ]
    experiment = experiment_launch(
        study=simulation.study,
        instrument=simulation.instrument,
        prompt=prompt_ensure(study=simulation.study, actor=simulation.actor),
        configs=configs,
        title="Смоделированные модели",
        runs=runs,
        actor=simulation.actor,
    )
    todo = RunStimulus.objects.filter(run__experiment=experiment, state=RunStimulus.State.TODO)
    while pairs := list(todo.values_list("run_id", "stimulus_id")):
        for run_id, stimulus_id in pairs:
            stimulus_work(run_id=run_id, stimulus_id=stimulus_id)


def simulate_raters(simulation: Simulation, *, say: Say) -> Campaign:
    """Three raters judge everything, but the last of them stops a little early: some answers stay undecided."""
    raters = list(_raters(simulation))
    campaign = campaign_open(
        study=simulation.study,
        title="Смоделированная разметка",
        raters_per_answer=len(raters),
        seed=1,
        actor=simulation.actor,
    )
    truths = _truths(simulation.instrument)
    last = campaign.n_items - campaign.n_items // 50
    for user, rater, accuracy in raters:
        done = 0
        hand = places_hold(campaign_id=campaign.pk, rater_id=rater.pk, ahead=1)
        while hand.cards:
            if rater == raters[-1][1] and done == last:
                break
            (card,) = hand.cards
            truth = truths.get((card.stimulus_text, card.display_text), Truth(0, 0, 0))
            values = {
                code: value if simulation.rng.random() < accuracy else 1 - value for code, value in vars(truth).items()
            }
            saved = place_judge(place_uuid=card.place, user_id=user.pk, values=values, version=card.version, ahead=1)
            hand = saved.hand
            done += 1
        say(f"  {rater.pseudonym}: {done}")
    return campaign


def _raters(simulation: Simulation) -> Iterable[tuple[User, Rater, float]]:
    for username, accuracy in RATER_ACCURACY.items():
        user, created = User.objects.get_or_create(username=username)
        if created:
            user.set_unusable_password()
            user.save(update_fields=["password"])
        membership_set(user=user, study=simulation.study, role=Role.RATER, actor=simulation.actor)
        yield user, rater_ensure(user=user, study=simulation.study, actor=simulation.actor), accuracy


def _truths(instrument: Instrument) -> dict[tuple[str, str], Truth]:
    """What a perfect judge says of every answer that can occur, by the words given and the text displayed."""
    truths: dict[tuple[str, str], Truth] = {}
    for stimulus in instrument.stimuli.all():
        kinds = variants(stimulus.text, stimulus.original)
        for text in kinds.values():
            shown = display_text(text, lower_case=instrument.lower_case)
            truths.setdefault((stimulus.text, shown), truth_of(text, kinds))
    return truths
