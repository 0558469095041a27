"""The score: from labels to answers, sittings, people and models over runs.

One use, in one pass over the answers: `answer_score` each of them, collect them into `Sitting`s, then ask
`people_score`, `model_score` and `stimulus_means` for each of `stimulus_groups`. A score is in points per
stimulus (0–4 on the paper's rubric, S = 1/n ΣΣ E); its `norm` is that over the number of criteria (0–1 on a
binary rubric). What is undefined is None with a reason code; NaN never comes out.
"""

import math
import statistics
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

Reason = Literal[
    "",
    "no_stimuli",  # the group of stimuli is empty
    "unfinished",  # the sitting was not finished
    "missing_answers",  # finished, but a stimulus has no answer
    "undecided",  # a label is undecided; of a group: every finished sitting has one
    "no_sittings",  # there is no finished sitting, or no complete run
    "too_few",  # a deviation or an interval needs two
    "missing_runs",  # fewer runs than planned
    "too_many_runs",  # more runs than planned: which ones count is not for a formula to say
    "incomplete_run",  # a run was stopped for a technical reason
    "no_majority",  # on a graded criterion no value is in more than half of the runs
]

_CHUNK_CELLS = 1_000_000


@dataclass(frozen=True, slots=True)
class Criterion:
    """A criterion in the score. A graded one takes values between 0 and `maximum`, another 0 or `maximum`."""

    code: str
    maximum: float = 1.0
    is_graded: bool = False


@dataclass(frozen=True, slots=True)
class Score:
    """A figure in points per stimulus, the same per criterion (`norm`), or None with the reason."""

    value: float | None
    norm: float | None
    reason: Reason


@dataclass(frozen=True, slots=True)
class Bounds:
    """Where a figure lies whatever the undecided labels come to: 0 each, or the maximum each."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class AnswerScore:
    """Σ over the criteria of one answer. `values`: its labels in the order of the criteria.

    `value` is None when a label is undecided; `low` and `high` count those as 0 and as the maximum.
    """

    values: tuple[float | None, ...]
    value: float | None
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Sitting:
    """One pass of a respondent through the stimuli: a person's sitting, or one run of a model.

    `is_finished`: for a run, that it was not stopped for a technical reason. `answers`: by stimulus. An
    answer `no_valid_reply` is an answer like any other: its labels are 0.
    """

    respondent: Hashable
    is_finished: bool
    answers: Mapping[Hashable, AnswerScore]


@dataclass(frozen=True, slots=True)
class SittingScore:
    """The mean over all stimuli of a finished sitting; `bounds` is None where an answer is missing."""

    score: Score
    bounds: Bounds | None
    n_stimuli: int
    n_undecided: int


@dataclass(frozen=True, slots=True)
class MeanInterval:
    """Percentile bootstrap interval of a mean, in points, over `n` respondents."""

    low: float
    high: float
    level: float
    resamples: int
    n: int


@dataclass(frozen=True, slots=True)
class PeopleScore:
    """People on a group of stimuli.

    `mean` and `sd` (ddof 1) are over the `n_scored` finished sittings with a score. Finished sittings without
    one (`n_undecided`, `n_missing`) are left out of both. `bounds` is where the mean of all finished sittings
    lies, those with undecided labels included; it need not hold `mean`.
    """

    mean: Score
    sd: Score
    interval: MeanInterval | None
    bounds: Bounds | None
    n_scored: int
    n_respondents: int
    n_unfinished: int
    n_undecided: int
    n_missing: int


@dataclass(frozen=True, slots=True)
class ModelScore:
    """A model configuration on a group of stimuli.

    `majority` is the paper's figure over the planned runs, `bounds` its bounds where labels are undecided
    and `by_stimulus` its terms; all empty where a run is missing. `mean` and `sd` (ddof 1) are over the
    `n_scored` complete runs with a score: the fair comparison with single people. `runs`: in the order
    given.
    """

    majority: Score
    bounds: Bounds | None
    by_stimulus: dict[Hashable, AnswerScore]
    mean: Score
    sd: Score
    runs: tuple[SittingScore, ...]
    n_planned: int
    n_complete: int
    n_scored: int


@dataclass(frozen=True, slots=True)
class StimulusMean:
    """The mean of the `n` answers with a score to one stimulus; `n_undecided` more have none."""

    score: Score
    n: int
    n_undecided: int


@dataclass(frozen=True, slots=True)
class Stimulus:
    """What results are grouped by. Practice stimuli are not handed in: they are never scored."""

    key: Hashable
    complexity: str
    is_shuffled: bool


@dataclass(frozen=True, slots=True)
class Group:
    """Stimuli with one `value` of a `factor`: ('all', ''), ('shuffled', 'yes'), ('complexity', 'easy')."""

    factor: Literal["all", "shuffled", "complexity"]
    value: str
    stimuli: tuple[Hashable, ...]


def stimulus_groups(stimuli: Iterable[Stimulus]) -> list[Group]:
    """All stimuli, then the paper's two cuts; complexities in the order in which they first occur."""
    known = list(stimuli)
    groups = [Group("all", "", tuple(stimulus.key for stimulus in known))]
    for is_shuffled in (False, True):
        keys = tuple(stimulus.key for stimulus in known if stimulus.is_shuffled is is_shuffled)
        groups.append(Group("shuffled", "yes" if is_shuffled else "no", keys))
    for complexity in dict.fromkeys(stimulus.complexity for stimulus in known):
        keys = tuple(stimulus.key for stimulus in known if stimulus.complexity == complexity)
        groups.append(Group("complexity", complexity, keys))
    return [group for group in groups if group.stimuli or group.factor == "all"]


def answer_score(labels: Mapping[str, float | None], criteria: Sequence[Criterion]) -> AnswerScore:
    """Σ of the labels of one answer over the criteria; a label that is None or not there is undecided.

    Labels on other criteria are not read. Raises ValueError on a label off the scale: NaN,
    and on a criterion that is not graded whatever is neither 0 nor the maximum.
    """
    values = tuple(labels.get(criterion.code) for criterion in criteria)
    for value, criterion in zip(values, criteria, strict=True):
        if value is not None and not _is_on_scale(value, criterion):
            raise ValueError(f"label {value!r} is not on the scale of {criterion.code}")
    return _summed(values, criteria)


def sitting_score(sitting: Sitting, stimuli: Collection[Hashable], criteria: Sequence[Criterion]) -> SittingScore:
    """The mean over all `stimuli` of a finished sitting. Unfinished sittings have no score and no bounds."""
    size = len(stimuli)
    if not size or not sitting.is_finished:
        return SittingScore(_undefined("unfinished" if size else "no_stimuli"), None, size, 0)
    answers = [sitting.answers[key] for key in stimuli if key in sitting.answers]
    n_undecided = sum(answer.value is None for answer in answers)
    if len(answers) < size:
        return SittingScore(_undefined("missing_answers"), None, size, n_undecided)
    score, bounds = _mean_of_answers(answers, criteria)
    return SittingScore(score, bounds, size, n_undecided)


def people_score(
    sittings: Iterable[Sitting],
    stimuli: Collection[Hashable],
    criteria: Sequence[Criterion],
    *,
    resamples: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> PeopleScore:
    """The mean over the finished sittings that have a score, with a bootstrap interval over respondents.

    The interval is B. Efron and R. Tibshirani's percentile interval (*An Introduction to the Bootstrap*,
    1993, ch. 13): scores are bounded and skewed towards the maximum, so that an interval by t would leave
    the scale. Respondents are resampled, not sittings: those of one person are not independent. It is None
    below two respondents; the same seed gives the same interval.
    """
    scored: dict[Hashable, list[float]] = {}
    bounds: list[Bounds] = []
    reasons: Counter[Reason] = Counter()
    for sitting in sittings:
        result = sitting_score(sitting, stimuli, criteria)
        reasons[result.score.reason] += 1
        if result.bounds is not None:
            bounds.append(result.bounds)
        if result.score.value is not None:
            scored.setdefault(sitting.respondent, []).append(result.score.value)
    values = [value for own in scored.values() for value in own]
    return PeopleScore(
        mean=_mean(values, criteria, _why_no_mean(stimuli, reasons)),
        sd=_deviation(values, criteria),
        interval=_bootstrap(list(scored.values()), resamples, confidence, seed),
        bounds=_mean_bounds(bounds),
        n_scored=len(values),
        n_respondents=len(scored),
        n_unfinished=reasons["unfinished"],
        n_undecided=reasons["undecided"],
        n_missing=reasons["missing_answers"],
    )


def model_score(
    runs: Sequence[Sitting], stimuli: Collection[Hashable], criteria: Sequence[Criterion], *, planned: int
) -> ModelScore:
    """A model over its runs: the paper's majority per criterion and stimulus, and the mean over runs beside
    it.

    A criterion holds for a stimulus if it holds in more than half of the `planned` runs (two of four is not
    enough: 0, not undecided). On a graded criterion the value is the one in more than half of them. An
    undecided label matters only where it could change that. A run that was stopped, or is not there, makes
    the majority undefined for every stimulus until it is repeated; `mean` and `sd` say over how many runs
    they are. Raises ValueError when no run is planned.
    """
    if planned < 1:
        raise ValueError("a model's majority needs a planned run")
    results = tuple(sitting_score(run, stimuli, criteria) for run in runs)
    values = [result.score.value for result in results if result.score.value is not None]
    n_complete = sum(result.bounds is not None for result in results)
    by_stimulus: dict[Hashable, AnswerScore] = {}
    majority, bounds = _undefined(_why_no_majority(stimuli, len(runs), n_complete, planned)), None
    if not majority.reason:
        for key in stimuli:
            by_stimulus[key] = _stimulus_majority([run.answers[key] for run in runs], criteria)
        majority, bounds = _mean_of_answers(list(by_stimulus.values()), criteria)
        if majority.reason and all(result.n_undecided == 0 for result in results):
            majority = _undefined("no_majority")
    reasons = Counter(result.score.reason for result in results)
    return ModelScore(
        majority=majority,
        bounds=bounds,
        by_stimulus=by_stimulus,
        mean=_mean(values, criteria, _why_no_mean(stimuli, reasons)),
        sd=_deviation(values, criteria),
        runs=results,
        n_planned=planned,
        n_complete=n_complete,
        n_scored=len(values),
    )


def stimulus_means(
    sittings: Iterable[Sitting], stimuli: Collection[Hashable], criteria: Sequence[Criterion]
) -> dict[Hashable, StimulusMean]:
    """For each stimulus the mean over finished sittings of the answers to it that have a score.

    An answer counts here even where another label of its sitting is undecided, so the mean of these means is
    the people's mean only where nothing is undecided.
    """
    values: dict[Hashable, list[float]] = {key: [] for key in stimuli}
    undecided: Counter[Hashable] = Counter()
    for sitting in sittings:
        if not sitting.is_finished:
            continue
        for key in values:
            answer = sitting.answers.get(key)
            if answer is None:
                continue
            if answer.value is None:
                undecided[key] += 1
            else:
                values[key].append(answer.value)
    return {
        key: StimulusMean(
            _mean(own, criteria, "undecided" if undecided[key] else "no_sittings"), len(own), undecided[key]
        )
        for key, own in values.items()
    }


def _is_on_scale(value: float, criterion: Criterion) -> bool:
    if criterion.is_graded:
        return 0 <= value <= criterion.maximum
    return value in (0, criterion.maximum)


def _undefined(reason: Reason) -> Score:
    return Score(None, None, reason)


def _defined(value: float, criteria: Sequence[Criterion]) -> Score:
    return Score(value, value / len(criteria) if criteria else None, "")


def _mean(values: Sequence[float], criteria: Sequence[Criterion], otherwise: Reason) -> Score:
    return _defined(math.fsum(values) / len(values), criteria) if values else _undefined(otherwise)


def _deviation(values: Sequence[float], criteria: Sequence[Criterion]) -> Score:
    """The sample standard deviation (ddof 1)."""
    return _defined(statistics.stdev(values), criteria) if len(values) > 1 else _undefined("too_few")


def _summed(values: tuple[float | None, ...], criteria: Sequence[Criterion]) -> AnswerScore:
    low = math.fsum(value for value in values if value is not None)
    open_points = [c.maximum for value, c in zip(values, criteria, strict=True) if value is None]
    return AnswerScore(values, None if open_points else low, low, low + math.fsum(open_points))


def _mean_of_answers(answers: Sequence[AnswerScore], criteria: Sequence[Criterion]) -> tuple[Score, Bounds | None]:
    """Mean and bounds of one or more answers; the mean is undecided where one of them is."""
    values = [answer.value for answer in answers if answer.value is not None]
    if values and len(values) == len(answers):  # as almost everywhere: the bounds are the mean
        score = _mean(values, criteria, "no_stimuli")
        return score, Bounds(score.value or 0.0, score.value or 0.0)
    bounds = _mean_bounds([Bounds(answer.low, answer.high) for answer in answers])
    if len(values) < len(answers):
        return _undefined("undecided"), bounds
    return _mean(values, criteria, "no_stimuli"), bounds


def _mean_bounds(bounds: Sequence[Bounds]) -> Bounds | None:
    if not bounds:
        return None
    size = len(bounds)
    return Bounds(math.fsum(b.low for b in bounds) / size, math.fsum(b.high for b in bounds) / size)


def _why_no_mean(stimuli: Collection[Hashable], reasons: Mapping[Reason, int]) -> Reason:
    """Why no sitting has a score: the nearest cause first."""
    if not stimuli:
        return "no_stimuli"
    found: tuple[Reason, ...] = ("undecided", "missing_answers")
    return next((reason for reason in found if reasons.get(reason)), "no_sittings")


def _why_no_majority(stimuli: Collection[Hashable], n_runs: int, n_complete: int, planned: int) -> Reason:
    if not stimuli:
        return "no_stimuli"
    if n_runs > planned:
        return "too_many_runs"
    if n_complete < n_runs:
        return "incomplete_run"
    return "missing_runs" if n_runs < planned else ""


def _stimulus_majority(answers: Sequence[AnswerScore], criteria: Sequence[Criterion]) -> AnswerScore:
    """The labels that a model comes to on one stimulus, one answer per planned run."""
    return _majority_of(tuple([answer.values for answer in answers]), tuple(criteria))


@lru_cache(maxsize=4096)  # a stimulus is in three groups, and few combinations of labels exist
def _majority_of(answers: tuple[tuple[float | None, ...], ...], criteria: tuple[Criterion, ...]) -> AnswerScore:
    values = tuple(
        _criterion_majority([own[place] for own in answers], criterion) for place, criterion in enumerate(criteria)
    )
    return _summed(values, criteria)


def _criterion_majority(values: Sequence[float | None], criterion: Criterion) -> float | None:
    half = len(values) / 2
    if not criterion.is_graded:
        holds, undecided = values.count(criterion.maximum), values.count(None)
        if holds > half:
            return criterion.maximum
        return 0.0 if holds + undecided <= half else None
    counts = Counter(value for value in values if value is not None)
    return next((value for value, count in counts.items() if count > half), None)


def _chunks(size: int, resamples: int, seed: int) -> Iterator[np.ndarray]:
    random = np.random.default_rng(seed)
    chunk = max(1, _CHUNK_CELLS // size)
    for start in range(0, resamples, chunk):
        yield random.integers(0, size, (min(chunk, resamples - start), size))


@lru_cache(maxsize=1)
def _kept(size: int, resamples: int, seed: int) -> np.ndarray:
    """In four bytes each: the same people are drawn for each group of stimuli, one after the other."""
    kept = next(_chunks(size, resamples, seed)).astype(np.int32)
    kept.flags.writeable = False
    return kept


def _draws(size: int, resamples: int, seed: int) -> Iterable[np.ndarray]:
    """Resamples × places of who is drawn, in pieces of bounded size; kept where one piece holds all."""
    return [_kept(size, resamples, seed)] if size * resamples <= _CHUNK_CELLS else _chunks(size, resamples, seed)


def _bootstrap(scored: Sequence[Sequence[float]], resamples: int, confidence: float, seed: int) -> MeanInterval | None:
    """The interval of the mean over all sittings, `scored` being those of each respondent.

    The same respondents in another order give the same interval: a dataset that has left out who came first, and is
    read back, shows the very figure.
    """
    size = len(scored)
    if size < 2 or resamples < 1:
        return None
    scored = sorted(sorted(own) for own in scored)
    sums = np.array([math.fsum(own) for own in scored])
    counts = np.array([len(own) for own in scored], dtype=np.float64)
    once = bool((counts == 1).all())
    means = []
    for drawn in _draws(size, resamples, seed):
        # The sum of ones is their number, exactly.
        means.append(sums[drawn].sum(axis=1) / (size if once else counts[drawn].sum(axis=1)))
    tail = (1 - confidence) / 2
    low, high = np.quantile(np.concatenate(means), [tail, 1 - tail])
    return MeanInterval(float(low), float(high), confidence, resamples, size)
