"""Results: the only place that joins labels to who answered."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.utils.translation import gettext as _

from annotation.models import Campaign, Item
from corpus.models import Answer, Instrument, Respondent, Sitting, Stimulus
from llmruns.models import Run
from reports.choice import Chosen, default_choice
from scoring import formula
from scoring.models import Round, Rubric
from scoring.selectors import LabelledAnswer, Labels, labels_of
from scoring.services import paper_rubric
from studies.models import Study

PEOPLE = "people"


@dataclass(slots=True)
class Tally:
    """What is counted of the answers of a sitting or of a row."""

    n_answers: int = 0
    n_undecided: int = 0
    n_refusals: int = 0
    n_no_reply: int = 0
    # Labels on criteria beside the score: how many answers have which, by code and value.
    beside: Counter[tuple[str, float | None]] = field(default_factory=Counter)

    def add(self, other: "Tally") -> None:
        self.n_answers += other.n_answers
        self.n_undecided += other.n_undecided
        self.n_refusals += other.n_refusals
        self.n_no_reply += other.n_no_reply
        self.beside.update(other.beside)


@dataclass(frozen=True, slots=True)
class SittingRow:
    sitting: Sitting
    key: str  # of the row that it belongs to
    label: str
    run: int | None  # the number of a model's run
    tally: Tally
    score: formula.SittingScore


@dataclass(frozen=True, slots=True)
class Row:
    """One respondent group: all people, or one model configuration in one experiment.

    `key` names it in addresses. `scores` follows the groups of stimuli (the first is all of them) and `stimuli` has
    the mean for each stimulus id. The tally is of the finished sittings.
    """

    key: str
    label: str
    experiment_id: int | None  # None for people
    experiment: str
    imported: bool | None  # whether the replies were recorded elsewhere; None for people
    n_sittings: int
    n_unfinished: int
    tally: Tally
    scores: tuple[formula.PeopleScore | formula.ModelScore, ...]
    stimuli: Mapping[Hashable, formula.StimulusMean]
    finished: tuple[formula.Sitting, ...]  # the sittings that the scores come from

    @property
    def is_people(self) -> bool:
        return self.key == PEOPLE

    @property
    def file_name(self) -> str:
        """What the row is called in files for programs: the same in every language."""
        return PEOPLE if self.is_people else self.label


@dataclass(frozen=True, slots=True)
class Results:
    study: Study
    instrument: Instrument
    criteria: tuple[formula.Criterion, ...]
    stimuli: list[Stimulus]
    groups: list[formula.Group]
    rows: list[Row]  # people first
    sittings: list[SittingRow]  # counted ones, finished or not
    chosen: Chosen
    beside: tuple[str, ...]  # codes of the criteria that are not in the score
    memo: dict[str, Any] = field(default_factory=dict)  # what costs time and is asked for more than once
    questions: Mapping[str, str] = field(default_factory=dict)  # of the criteria by code, in the page's language
    n_uncounted: int = 0  # labels that the counting rules have still to give

    @property
    def people(self) -> Row:
        return self.rows[0]

    @property
    def models(self) -> list[Row]:
        return self.rows[1:]

    @property
    def by_majority(self) -> bool:
        """Whether models are shown by the paper's majority over runs."""
        return self.chosen.choice.runs == "majority"

    @property
    def is_empty(self) -> bool:
        return not any(row.n_sittings for row in self.rows)


@dataclass(slots=True)
class _Group:
    """The counted sittings that make up a row, as they come."""

    label: str
    experiment_id: int | None = None
    experiment: str = ""
    imported: bool | None = None
    planned: int = 0
    finished: list[formula.Sitting] = field(default_factory=list)
    incomplete: list[formula.Sitting] = field(default_factory=list)  # runs that ended for a technical reason
    n_unfinished: int = 0
    tally: Tally = field(default_factory=Tally)

    def add(self, sitting: Sitting, run: Run | None, scored: formula.Sitting, tally: Tally) -> None:
        if sitting.state == Sitting.State.FINISHED:
            self.finished.append(scored)
            self.tally.add(tally)
        else:
            self.n_unfinished += 1
        if run is not None and run.state == Run.State.INCOMPLETE:
            self.incomplete.append(scored)

    @property
    def runs(self) -> list[formula.Sitting]:
        """An incomplete run matters until it has been repeated; one that still goes or was cancelled is missing."""
        return self.finished if len(self.finished) >= self.planned else self.finished + self.incomplete


def instruments_of(study: Study) -> QuerySet[Instrument]:
    """The study's instruments, the newest first, with `n_sittings` and `n_finished` of them. One query."""
    finished = Count("sittings", filter=Q(sittings__state=Sitting.State.FINISHED))
    known = Instrument.objects.filter(study=study)
    return known.annotate(n_sittings=Count("sittings"), n_finished=finished).order_by("-pk")


def instrument_default(known: Sequence[Instrument]) -> Instrument | None:
    """Of `instruments_of`: the newest that somebody has finished; else that somebody has begun; else the newest.

    A new version that one person has just opened does not empty the results.
    """
    for count in ("n_finished", "n_sittings"):
        if found := next((one for one in known if getattr(one, count)), None):
            return found
    return next(iter(known), None)


def rubric_of(instrument: Instrument) -> Rubric:
    """What the instrument's answers are judged by: the rubric of its newest campaign, the paper's without one.

    One query, two where the study has a round by another rubric than the paper's.
    """
    paper = paper_rubric()
    rated = (Round.Purpose.RATING, Round.Purpose.IMPORTED)  # of files and of published datasets: campaigns too
    others = Round.objects.filter(study=instrument.study_id, purpose__in=rated).exclude(rubric=paper)
    if not others.exists():
        return paper
    held = Item.objects.filter(campaign=OuterRef("pk"), answer__sitting__instrument=instrument)
    newest = Campaign.objects.filter(Exists(held), study=instrument.study_id).select_related("round__rubric")
    campaign = newest.order_by("-pk").first()
    return campaign.round.rubric if campaign else paper


def scored_criteria(rubric: Rubric) -> tuple[formula.Criterion, ...]:
    """The criteria of the rubric that are in the score. One query."""
    return tuple(
        formula.Criterion(code=code, maximum=float(max(scale)), is_graded=len(scale) > 2)
        for code, scale in rubric.criteria.filter(in_score=True).values_list("code", "scale")
    )


def results_of(*, study: Study, instrument: Instrument, rubric: Rubric, chosen: Chosen | None = None) -> Results:
    """People and models side by side. Eight queries, whatever the number of answers.

    Without a choice on the basis *rater labels*, of all people, models by their mean over runs.
    """
    chosen = chosen or default_choice(instrument)
    criteria = scored_criteria(rubric)
    stimuli = list(instrument.stimuli.filter(is_practice=False))
    cuts = formula.stimulus_groups(formula.Stimulus(s.pk, s.complexity, s.shuffled) for s in stimuli)
    labels = labels_of(instrument=instrument, rubric=rubric, basis=chosen.choice.basis)
    answers, tallies = _answers_by_sitting(labels, criteria)
    runs = {run.sitting_id: run for run in _runs_of(instrument)}
    groups = {PEOPLE: _Group(_("People"))}
    names = _model_labels(runs.values())
    for run in runs.values():
        experiment = run.experiment
        groups.setdefault(
            run_key(run),
            _Group(names[run_key(run)], experiment.pk, experiment.title, experiment.imported, experiment.runs_planned),
        )
    keys = [stimulus.pk for stimulus in stimuli]
    rows = []
    for sitting in _counted_sittings(instrument):
        own = runs.get(sitting.pk)
        if sitting.respondent.kind == Respondent.Kind.MODEL and own is None:
            continue  # a model's sitting outside an experiment has no planned number of runs to be judged by
        if own is None and not is_chosen(sitting, chosen):
            continue
        key = PEOPLE if own is None else run_key(own)
        is_finished = sitting.state == Sitting.State.FINISHED
        scored = formula.Sitting(sitting.respondent_id, is_finished, answers.get(sitting.pk, {}))
        tally = tallies.get(sitting.pk, Tally())
        groups[key].add(sitting, own, scored, tally)
        score = formula.sitting_score(scored, keys, criteria)
        rows.append(SittingRow(sitting, key, groups[key].label, own.ordinal if own else None, tally, score))
    table = [_row(key, group, cuts, criteria) for key, group in groups.items()]
    beside = tuple(criterion.code for criterion in labels.criteria if not criterion.in_score)
    questions = {criterion.code: criterion.question for criterion in labels.criteria}
    return Results(study, instrument, criteria, stimuli, cuts, table, rows, chosen, beside, questions=questions)


def is_chosen(sitting: Sitting, chosen: Chosen) -> bool:
    """Whether a person's sitting is of the people chosen."""
    if chosen.respondents is not None:
        return sitting.respondent_id in chosen.respondents
    return chosen.choice.source in (None, sitting.source_label)


def _runs_of(instrument: Instrument) -> QuerySet[Run]:
    """The runs that count, in the order in which they were launched: an import that was put aside makes no row."""
    runs = Run.objects.filter(experiment__instrument=instrument).exclude(sitting__standing=Sitting.Standing.EXCLUDED)
    return runs.select_related("experiment", "config").order_by("pk")


def people_outside(instrument: Instrument) -> dict[str, int]:
    """How many sittings of people with an instrument do not count, by standing. One query."""
    outside = Sitting.objects.filter(instrument=instrument, respondent__kind=Respondent.Kind.HUMAN).exclude(
        standing=Sitting.Standing.COUNTED
    )
    return dict(outside.order_by().values_list("standing").annotate(n=Count("pk")))


def run_key(run: Run) -> str:
    return f"model-{run.config_id}-{run.experiment_id}"


def _counted_sittings(instrument: Instrument) -> QuerySet[Sitting]:
    return (
        Sitting.objects.filter(instrument=instrument, standing=Sitting.Standing.COUNTED)
        .select_related("respondent")
        .order_by("pk")
    )


def row_labels(instrument: Instrument) -> dict[str, str]:
    """What the rows of an instrument's results are called, by their keys. One query."""
    runs = _runs_of(instrument)
    return {PEOPLE: _("People")} | _model_labels(runs.order_by("config", "experiment").distinct("config", "experiment"))


def _model_labels(runs: Iterable[Run]) -> dict[str, str]:
    """A configuration's label, with the experiment's title where the configuration took part in several.

    Titles repeat (one that is left empty is the instrument's), and a figure would add up the bars of one name: a name
    that is taken gets a number, in the order of the experiments.
    """
    known = {run_key(run): run for run in runs}
    experiments = Counter(run.config_id for run in known.values())
    labels: dict[str, str] = {}
    times = Counter[str]()
    for key, run in sorted(known.items(), key=lambda item: (item[1].experiment_id, item[1].config_id)):
        label = run.config.label
        name = label if experiments[run.config_id] == 1 else f"{label} · {run.experiment.title}"
        times[name] += 1
        labels[key] = name if times[name] == 1 else f"{name} ({times[name]})"
    return labels


def _answers_by_sitting(
    labels: Labels, criteria: tuple[formula.Criterion, ...]
) -> tuple[dict[int, dict[Hashable, formula.AnswerScore]], dict[int, Tally]]:
    codes = [criterion.code for criterion in labels.criteria]
    beside = [place for place, criterion in enumerate(labels.criteria) if not criterion.in_score]

    @cache  # of the few combinations of labels that there are
    def scored(values: tuple[float | None, ...]) -> formula.AnswerScore:
        return formula.answer_score(dict(zip(codes, values, strict=True)), criteria)

    answers: dict[int, dict[Hashable, formula.AnswerScore]] = defaultdict(dict)
    tallies: dict[int, Tally] = defaultdict(Tally)
    for answer in labels.answers:
        values = tuple([label.value for label in answer.labels])
        score = answers[answer.sitting_id][answer.stimulus_id] = scored(values)
        tally = tallies[answer.sitting_id]
        tally.n_answers += 1
        tally.n_undecided += score.value is None
        tally.n_refusals += answer.is_refusal
        tally.n_no_reply += answer.outcome == Answer.Outcome.NO_VALID_REPLY
        for place in beside:
            tally.beside[codes[place], values[place]] += 1
    return answers, tallies


def _row(key: str, group: _Group, cuts: list[formula.Group], criteria: tuple[formula.Criterion, ...]) -> Row:
    scores: list[formula.PeopleScore | formula.ModelScore] = []
    for cut in cuts:
        if key == PEOPLE:
            scores.append(formula.people_score(group.finished, cut.stimuli, criteria))
        else:
            scores.append(formula.model_score(group.runs, cut.stimuli, criteria, planned=group.planned))
    return Row(
        key=key,
        label=group.label,
        experiment_id=group.experiment_id,
        experiment=group.experiment,
        imported=group.imported,
        n_sittings=len(group.finished),
        n_unfinished=group.n_unfinished,
        tally=group.tally,
        scores=tuple(scores),
        stimuli=formula.stimulus_means(group.finished, cuts[0].stimuli, criteria),
        finished=tuple(group.finished),
    )


@dataclass(frozen=True, slots=True)
class AnswerFilter:
    """Which answers a list shows: those behind a number. Empty fields narrow nothing."""

    group: str = ""  # the key of a row
    stimulus: int | None = None  # position
    shuffled: bool | None = None
    complexity: str = ""
    state: str = ""  # undecided, refusal or no_reply
    sitting: int | None = None


def answers_behind(
    *, instrument: Instrument, rubric: Rubric, chosen: AnswerFilter, results: Chosen | None = None
) -> tuple[QuerySet[Answer], Labels | None]:
    """The answers of finished counted sittings behind a number, and their labels where the choice needed them.

    No query, or the four of `labels_of` where `state` is chosen.
    """
    labels = None
    results = results or default_choice(instrument)
    answers = Answer.objects.filter(
        of_people_chosen(results),
        sitting__instrument=instrument,
        sitting__standing=Sitting.Standing.COUNTED,
        sitting__state=Sitting.State.FINISHED,
        stimulus__is_practice=False,
    )
    if chosen.group == PEOPLE:
        answers = answers.filter(sitting__respondent__kind=Respondent.Kind.HUMAN)
    elif chosen.group:
        _model, config, experiment = chosen.group.split("-")
        answers = answers.filter(sitting__run__config=int(config), sitting__run__experiment=int(experiment))
    if chosen.stimulus is not None:
        answers = answers.filter(stimulus__position=chosen.stimulus)
    if chosen.shuffled is not None:
        answers = answers.filter(stimulus__shuffled=chosen.shuffled)
    if chosen.complexity:
        answers = answers.filter(stimulus__complexity=chosen.complexity)
    if chosen.sitting is not None:
        answers = answers.filter(sitting=chosen.sitting)
    if chosen.state:
        labels = labels_of(instrument=instrument, rubric=rubric, basis=results.choice.basis)
        answers = answers.filter(pk__in=[a.pk for a in labels.answers if _is_in_state(a, chosen.state)])
    return answers.select_related("stimulus", "sitting__respondent").order_by("stimulus__position", "pk"), labels


def of_people_chosen(chosen: Chosen) -> Q:
    """As `is_chosen`; models are never narrowed."""
    people = Q(sitting__respondent__kind=Respondent.Kind.HUMAN)
    if chosen.respondents is not None:
        return ~people | Q(sitting__respondent__in=list(chosen.respondents))
    if chosen.choice.source is not None:
        return ~people | Q(sitting__source_label=chosen.choice.source)
    return Q()


def _is_in_state(answer: LabelledAnswer, state: str) -> bool:
    if state == "undecided":
        return answer.is_undecided
    return answer.is_refusal if state == "refusal" else answer.outcome == Answer.Outcome.NO_VALID_REPLY
