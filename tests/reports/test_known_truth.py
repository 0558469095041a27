"""A simulated study with known truth: 108 people, 18 stimuli, raters of known accuracy, models of known skill.

Everything expected is computed here from what was simulated, with plain Python and numpy, and not with the product's
formulas: labels by counting votes, scores by adding labels, deviations, majorities, percentiles, worst stimuli.
"""

import random
import statistics
from collections import Counter
from dataclasses import dataclass, field

import krippendorff
import numpy as np
import pytest
from django.utils import timezone

from annotation.agreement import alpha
from corpus.builtin import builtin_instrument_create
from corpus.models import Answer, Instrument, Respondent, Sitting
from corpus.services import instrument_freeze
from corpus.simulation import simulated_kind, truth_of, variants
from corpus.tokens import word_tokens
from llmruns.models import Experiment, ModelConfig, Prompt, Run
from reports.choice import chosen_of, default_choice
from reports.contrast_tables import band_means, breakdown_with_bands, by_criterion, contrasts, worst_stimuli
from reports.figure_cuts import cut_data
from reports.figures import figure_data
from reports.result_file import table_rows
from reports.selectors import Results, results_of
from reports.tables import per_stimulus
from scoring.models import Judge, Judgement, Round
from scoring.services import paper_rubric, rules_apply

PEOPLE, RUNS = 108, 5
ACCURACY = (0.96, 0.93, 0.9)
JUDGE_ACCURACY = 0.88
SKILLS = {"Small": 0.5, "Medium": 0.8, "Large": 0.95}
CODES = ("grammatical", "logical", "order")


@dataclass
class World:
    """What was simulated, by (who, number of the sitting, position of the stimulus). `who` is a number or a model."""

    instrument: Instrument
    texts: dict[tuple, str] = field(default_factory=dict)
    votes: dict[tuple, list[list[int]]] = field(default_factory=dict)  # by criterion, then rater
    judged: dict[tuple, list[int]] = field(default_factory=dict)
    answers: dict[tuple, Answer] = field(default_factory=dict)
    judge: int = 0

    def __post_init__(self) -> None:
        self.stimuli = {one.position: one for one in self.instrument.stimuli.order_by("position")}

    def points(self, key: tuple, *, automatic: bool = False) -> int:
        """Σ of the four criteria: votes of three raters, or one judge, and as many words as the original."""
        if len(word_tokens(self.texts[key])) < 4:
            return 0
        words = len(word_tokens(self.texts[key])) == len(word_tokens(self.stimuli[key[2]].original))
        return sum(self.labels(key, automatic=automatic)) + words

    def labels(self, key: tuple, *, automatic: bool = False) -> list[int]:
        if len(word_tokens(self.texts[key])) < 4:
            return [0, 0, 0]
        return self.judged[key] if automatic else [int(sum(votes) >= 2) for votes in self.votes[key]]

    def mean(self, who: object, number: int = 1, positions: object = range(1, 19), **more: bool) -> float:
        return statistics.fmean(self.points((who, number, one), **more) for one in positions)


@pytest.fixture
def world(cast) -> World:
    rng = random.Random(108)
    instrument = builtin_instrument_create(study=cast.study, actor=cast.alice)
    world = World(instrument)
    instrument_freeze(instrument=instrument, actor=None)
    people = Respondent.objects.bulk_create(Respondent(study=cast.study, kind="human") for _ in range(PEOPLE))
    skills = {number: min(0.98, max(0.2, rng.gauss(0.55, 0.15))) for number in range(PEOPLE)}
    for number, person in enumerate(people):
        _sit(world, rng, number, person, 1, skills[number])
    prompt = Prompt.objects.create(study=cast.study, slug="paper", text="{words}")
    experiment = Experiment.objects.create(
        study=cast.study, instrument=instrument, prompt=prompt, title="All", runs_planned=RUNS
    )
    for label, skill in SKILLS.items():
        respondent = Respondent.objects.create(study=cast.study, kind="model")
        config = ModelConfig.objects.create(
            respondent=respondent, study=cast.study, label=label, base_url="http://127.0.0.1:9", model=label
        )
        for ordinal in range(1, RUNS + 1):
            sitting = _sit(world, rng, label, respondent, ordinal, skill)
            Run.objects.create(experiment=experiment, config=config, sitting=sitting, ordinal=ordinal, state="finished")
    _judge(world, rng)
    rules_apply(study=cast.study, rubric=paper_rubric())
    return world


def _sit(world: World, rng: random.Random, who: object, respondent: Respondent, ordinal: int, skill: float) -> Sitting:
    now = timezone.now()
    sitting = Sitting.objects.create(
        respondent=respondent,
        instrument=world.instrument,
        ordinal=ordinal,
        source_label=str(who),
        state="finished",
        order=[one.pk for one in world.stimuli.values()],
        started_at=now,
        finished_at=now,
    )
    for position, one in world.stimuli.items():
        kind = simulated_kind(skill=skill, complexity=one.complexity, shuffled=one.shuffled, rng=rng)
        world.texts[who, ordinal, position] = variants(one.text, one.original)[kind]
    made = Answer.objects.bulk_create(
        Answer(sitting=sitting, stimulus=one, outcome="given", text=world.texts[who, ordinal, position])
        for position, one in world.stimuli.items()
    )
    for position, answer in zip(world.stimuli, made, strict=True):
        world.answers[who, ordinal, position] = answer
    return sitting


def _judge(world: World, rng: random.Random) -> None:
    study, rubric = world.instrument.study, paper_rubric()
    criteria = {criterion.code: criterion for criterion in rubric.criteria.all()}
    rating = Round.objects.create(study=study, rubric=rubric, purpose="rating")
    machine, _ = Round.objects.get_or_create(study=study, rubric=rubric, purpose="automatic")
    raters = [Judge.objects.create(kind="rater") for _ in ACCURACY]
    judge = Judge.objects.create(kind="classifier")
    world.judge = judge.pk
    rows = []

    def said(truth: int, accuracy: float) -> int:
        return truth if rng.random() < accuracy else 1 - truth

    for key, text in world.texts.items():
        one = world.stimuli[key[2]]
        truth = vars(truth_of(text, variants(one.text, one.original)))
        world.votes[key] = [[said(truth[code], accuracy) for accuracy in ACCURACY] for code in CODES]
        world.judged[key] = [said(truth[code], JUDGE_ACCURACY) for code in CODES]
        for place, code in enumerate(CODES):
            common = {"answer": world.answers[key], "criterion": criteria[code]}
            for rater, vote in zip(raters, world.votes[key][place], strict=True):
                rows.append(Judgement(round=rating, judge=rater, value=vote, **common))
            rows.append(Judgement(round=machine, judge=judge, value=world.judged[key][place], **common))
    Judgement.objects.bulk_create(rows, batch_size=5_000)


def results(world: World, **given: str) -> Results:
    study, rubric = world.instrument.study, paper_rubric()
    chosen = chosen_of(given=given, study=study, instrument=world.instrument, rubric=rubric)
    return results_of(study=study, instrument=world.instrument, rubric=rubric, chosen=chosen)


def test_every_figure_of_the_study_is_what_was_simulated(world):
    found = results(world)
    _scores(world, found)
    _cuts(world, found)
    _criteria(world, found)
    _contrasts(world, found)
    _worst(world, found)
    _majority(world)
    _other_basis(world)
    _alpha(world)


def _scores(world: World, found: Results) -> None:
    own = [world.mean(number) for number in range(PEOPLE)]
    people = found.people.scores[0]
    assert (people.n_scored, people.n_undecided) == (PEOPLE, 0)
    assert people.mean.value == pytest.approx(statistics.fmean(own))
    assert people.sd.value == pytest.approx(statistics.stdev(own))
    # By the central limit theorem the bootstrap interval is about ± 1.96 standard errors.
    error = 1.96 * statistics.stdev(own) / PEOPLE**0.5
    assert people.interval.low == pytest.approx(statistics.fmean(own) - error, abs=0.03)
    assert people.interval.high == pytest.approx(statistics.fmean(own) + error, abs=0.03)
    bars = {bar.label: bar for bar in figure_data(found).bars}
    for label in SKILLS:
        runs = [world.mean(label, number) / 4 for number in range(1, RUNS + 1)]
        assert bars[label].value == pytest.approx(statistics.fmean(runs))
        assert bars[label].sd == pytest.approx(statistics.stdev(runs))  # ddof 1
    assert [bar.label for bar in figure_data(found).bars] == ["Large", "Medium", "Small"]
    assert figure_data(found).line.mean == pytest.approx(statistics.fmean(own) / 4)


def _cuts(world: World, found: Results) -> None:
    shuffled = [number for number, one in world.stimuli.items() if one.shuffled]
    assert len(shuffled) == 11
    bars = {(bar.bar.label, bar.level): bar for bar in cut_data(found, "shuffled").bars}
    own = [world.mean(number, 1, shuffled) / 4 for number in range(PEOPLE)]
    assert bars["People", "shuffled"].bar.value == pytest.approx(statistics.fmean(own))
    runs = [world.mean("Small", number, shuffled) / 4 for number in range(1, RUNS + 1)]
    assert bars["Small", "shuffled"].bar.value == pytest.approx(statistics.fmean(runs))
    assert bars["Small", "shuffled"].bar.sd == pytest.approx(statistics.stdev(runs))
    bands = cut_data(found, "complexity")
    assert bands.levels == ["easy", "medium", "hard"]
    means = []
    for level in bands.levels:
        positions = [number for number, one in world.stimuli.items() if one.complexity == level]
        means.append(statistics.fmean(world.mean(number, 1, positions) / 4 for number in range(PEOPLE)))
        (bar,) = [bar for bar in bands.bars if bar.is_people and bar.level == level]
        assert bar.bar.value == pytest.approx(means[-1])
    assert band_means(found, by_majority=False)["people"] == pytest.approx(statistics.fmean(means))


def _criteria(world: World, found: Results) -> None:
    (people, *_models) = by_criterion(found).rows
    keys = [(number, 1, position) for number in range(PEOPLE) for position in world.stimuli]
    for place in range(3):
        assert people.cells[place].value == pytest.approx(np.mean([world.labels(key)[place] for key in keys]))


def _contrasts(world: World, found: Results) -> None:
    own = [world.mean(number) for number in range(PEOPLE)]
    for one in contrasts(found):
        model = statistics.fmean(world.mean(one.row.label, number) for number in range(1, RUNS + 1))
        assert one.difference.value == pytest.approx(model - statistics.fmean(own))
        assert one.difference.low < one.difference.value < one.difference.high
        assert (one.difference.n_people, one.difference.n_runs, one.difference.n_stimuli) == (PEOPLE, RUNS, 18)
        equal = sum(abs(value - model) < 1e-9 for value in own)
        below = sum(value < model - 1e-9 for value in own)
        assert one.place.percentile == pytest.approx(100 * (below + equal / 2) / PEOPLE)
    places = {one.row.label: one.place.percentile for one in contrasts(found)}
    assert places["Small"] < places["Medium"] < places["Large"]


def _worst(world: World, found: Results) -> None:
    lowest: Counter[int] = Counter()
    for label in SKILLS:
        means = {
            position: statistics.fmean(world.points((label, number, position)) for number in range(1, RUNS + 1))
            for position in world.stimuli
        }
        least = min(means.values())
        lowest.update(position for position, value in means.items() if value == pytest.approx(least) and least < 4)
    rows, n_models = worst_stimuli(found)
    assert n_models == 3
    assert {row.stimulus.position: len(row.lowest) for row in rows if row.lowest} == lowest


def _majority(world: World) -> None:
    found = results(world, runs="majority")
    bars = {bar.label: bar for bar in figure_data(found).bars}
    for label in SKILLS:
        own = {position: _held(world, label, position) for position in world.stimuli}
        assert bars[label].value == pytest.approx(statistics.fmean(own.values()))
        assert bars[label].mean < bars[label].value or label == "Large"
        _majority_tables(world, found, label, own)


def _held(world: World, label: str, position: int) -> float:
    """Of the four criteria, the share that holds in most of the runs."""
    keys = [(label, number, position) for number in range(1, RUNS + 1)]
    original = len(word_tokens(world.stimuli[position].original))
    holds = [sum(world.labels(key)[place] for key in keys) for place in range(3)]
    words = [len(word_tokens(world.texts[key])) == original >= 4 for key in keys]
    return sum(count > RUNS / 2 for count in [*holds, sum(words)]) / 4


def _majority_tables(world: World, found: Results, label: str, own: dict[int, float]) -> None:
    """A model's row is of majorities from end to end, on the page and in the file."""
    bands = [
        statistics.fmean(own[position] for position, one in world.stimuli.items() if one.complexity == level)
        for level in ("easy", "medium", "hard")
    ]
    (line,) = [line for line in breakdown_with_bands(found).rows if line.head.label == label]
    assert [cell.value for cell in line.cells[-4:]] == pytest.approx([*bands, statistics.fmean(bands)])
    assert all(cell.spread is None for cell in line.cells)
    place = per_stimulus(found).columns.index(label)
    assert [row.cells[place].value for row in per_stimulus(found).rows] == pytest.approx(list(own.values()))
    written = {(row[8], row[10]): row[11] for row in table_rows(found) if row[6] == label}
    assert written["band_majority", None] == pytest.approx(statistics.fmean(bands))
    levels = [written["mean", level] for level in ("easy", "medium", "hard")]
    assert written["band_mean", None] == pytest.approx(statistics.fmean(levels))
    assert written["stimulus_majority", "7"] == pytest.approx(own[7])
    least = min(own.values())
    rows, _n = worst_stimuli(found)
    lowest = {row.stimulus.position for row in rows if label in row.lowest}
    assert lowest == ({position for position, value in own.items() if value == least} if least < 1 else set())


def _other_basis(world: World) -> None:
    found = results(world, basis=f"judges-{world.judge}")
    own = [world.mean(number, automatic=True) for number in range(PEOPLE)]
    assert found.people.scores[0].mean.value == pytest.approx(statistics.fmean(own))
    by_raters = [world.mean(number) for number in range(PEOPLE)]
    scores = [row.score.score.value for row in found.sittings if row.key == "people"]
    assert np.corrcoef(scores, by_raters)[0, 1] == pytest.approx(np.corrcoef(own, by_raters)[0, 1])
    assert default_choice(world.instrument).choice.basis.is_raters


def _alpha(world: World) -> None:
    for place, code in enumerate(CODES):
        stored: dict[int, list[float]] = {}
        rows = Judgement.objects.filter(round__purpose="rating", criterion__code=code).order_by("answer", "judge")
        for answer, value in rows.values_list("answer", "value"):
            stored.setdefault(answer, []).append(value)
        ratings = np.array(list(stored.values())).T
        expected = krippendorff.alpha(
            np.array([votes[place] for votes in world.votes.values()]).T, level_of_measurement="nominal"
        )
        assert alpha(ratings, "nominal", resamples=0).value == pytest.approx(expected)
