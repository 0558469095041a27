"""The five stations of a study and what each waits for. Reads counts only, nothing that says who answered what."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Count, Q, QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotation.models import Campaign, Place, Purpose
from corpus.models import Instrument, Respondent, Sitting
from llmruns.models import Experiment, ModelConfig, Run
from llmruns.states import RUN_COUNTS
from studies.access import Visitor
from studies.models import Blinding, Membership, Role, Study
from surveys.models import Survey
from surveys.selectors import surveys_of

# A place whose judgement was withdrawn is asked of nobody any more.
ASKED = Q(state__in=[Place.State.FREE, Place.State.HELD, Place.State.DONE], purpose=Purpose.RATING)


@dataclass(slots=True)
class Counts:
    """What the stations count of one study."""

    instruments: list[tuple[str, int]] = field(default_factory=list)  # newest first: title and number of stimuli
    surveys: dict[str, int] = field(default_factory=dict)  # by state
    people: dict[str, int] = field(default_factory=dict)  # counted sittings of people, by state
    outside: dict[str, int] = field(default_factory=dict)  # sittings of people that do not count, by standing
    models: int = 0
    experiments: int = 0
    runs: dict[str, int] = field(default_factory=dict)  # by state
    raters: int = 0
    campaigns: dict[str, int] = field(default_factory=dict)  # by state
    places: dict[str, int] = field(default_factory=dict)  # in open campaigns, by state
    is_blinded: bool = False


@dataclass(frozen=True, slots=True)
class Station:
    code: str  # instrument, people, models, raters, results
    title: str
    state: str  # one line
    is_ready: bool
    links: list[tuple[str, str]]  # url name and text


@dataclass(frozen=True, slots=True)
class Step:
    """The one thing to do next. `url` is a url name that takes the study's slug."""

    text: str
    url: str
    why: str


@dataclass(frozen=True, slots=True)
class Card:
    study: Study
    counts: Counts
    stations: list[Station]
    step: Step


def cards_of(user: Visitor, studies: Iterable[Study]) -> list[Card]:
    """A card for each study. Eleven queries, whatever the number of studies and of answers."""
    known = list(studies)
    counts = _counts(user, [study.pk for study in known])
    cards = []
    for study in known:
        own = counts[study.pk]
        cards.append(Card(study, own, stations(own), next_step(own)))
    return cards


def _counts(user: Visitor, studies: Sequence[int]) -> dict[int, Counts]:
    counts: dict[int, Counts] = defaultdict(Counts)
    instruments = (
        Instrument.objects.filter(study__in=studies)
        .order_by("-pk")
        .annotate(n_stimuli=Count("stimuli", filter=Q(stimuli__is_practice=False)))
    )
    for study, title, number in instruments.values_list("study", "title", "n_stimuli"):
        counts[study].instruments.append((title, number))
    everybody = Sitting.objects.filter(respondent__study__in=studies, respondent__kind=Respondent.Kind.HUMAN)
    people = everybody.filter(standing=Sitting.Standing.COUNTED)
    outside = everybody.exclude(standing=Sitting.Standing.COUNTED)
    for place, rows in (
        ("surveys", _by_state(Survey.objects.filter(instrument__study__in=studies), "instrument__study", "state")),
        ("people", _by_state(people, "respondent__study", "state")),
        ("outside", _by_state(outside, "respondent__study", "standing")),
        ("runs", _by_state(_runs_that_matter(studies), "experiment__study", "state")),
        ("campaigns", _by_state(Campaign.objects.filter(study__in=studies), "study", "state")),
        (
            "places",
            _by_state(
                Place.objects.filter(ASKED, campaign__study__in=studies, campaign__state=Campaign.State.OPEN),
                "campaign__study",
                "state",
            ),
        ),
    ):
        for study, state, number in rows:
            getattr(counts[study], place)[state] = number
    raters = Membership.objects.filter(study__in=studies, role=Role.RATER, is_active=True)
    for place, rows in (
        ("models", _by_study(ModelConfig.objects.filter(study__in=studies))),
        ("experiments", _by_study(Experiment.objects.filter(study__in=studies))),
        ("raters", _by_study(raters)),
    ):
        for study, number in rows:
            setattr(counts[study], place, number)
    if user.is_authenticated:
        blindings = Blinding.objects.filter(user=user, study__in=studies, lifted_at__isnull=True)
        for study in blindings.values_list("study", flat=True):
            counts[study].is_blinded = True
    return counts


def _runs_that_matter(studies: Any) -> QuerySet[Run]:
    """Without imports that were put aside, and without imported runs that lack answers: nothing can be done there."""
    runs = Run.objects.filter(experiment__study__in=studies)
    lacking = Q(state=Run.State.INCOMPLETE) | Q(sitting__standing=Sitting.Standing.EXCLUDED)
    return runs.exclude(lacking, experiment__imported=True)


def _by_state(rows: Any, study: str, state: str) -> Any:
    return rows.order_by().values_list(study, state).annotate(number=Count("pk"))


def _by_study(rows: Any) -> Any:
    return rows.order_by().values_list("study").annotate(number=Count("pk"))


def stations(counts: Counts) -> list[Station]:
    return [_instrument(counts), _people(counts), _models(counts), _raters(counts), _results(counts)]


def _instrument(counts: Counts) -> Station:
    links = [("instrument_list", _("Instruments")), ("composition_list", _("Tests from treebanks"))]
    if not counts.instruments:
        return Station("instrument", _("Instrument"), _("none yet"), False, links)
    title, number = counts.instruments[0]
    state = ngettext("%(title)s, %(number)s stimulus", "%(title)s, %(number)s stimuli", number) % {
        "title": title,
        "number": number,
    }
    return Station("instrument", _("Instrument"), state, True, links)


def _people(counts: Counts) -> Station:
    links = [("survey_list", _("Surveys"))]
    finished, begun = counts.people.get("finished", 0), sum(counts.people.values())
    if begun or counts.outside:
        state = _("%(finished)s of %(begun)s have finished") % {"finished": finished, "begun": begun}
        state = ", ".join([state, *outside_words(counts.outside)])
    elif counts.surveys.get("open"):
        state = _("a survey is open, nobody has begun")
    elif counts.surveys:
        state = _("the survey is not open")
    else:
        state = _("no survey yet")
    return Station("people", _("People"), state, finished > 0, links)


def outside_words(outside: Mapping[str, int]) -> list[str]:
    """How many do not count, by standing; those of nobody are left out."""
    texts = {
        Sitting.Standing.PILOT: _("%(n)s pilot"),
        Sitting.Standing.EXCLUDED: _("%(n)s excluded"),
        Sitting.Standing.WITHDRAWN: _("%(n)s withdrawn"),
    }
    return [text % {"n": outside[standing]} for standing, text in texts.items() if outside.get(standing)]


def _models(counts: Counts) -> Station:
    links = [("model_list", _("Models")), ("experiment_list", _("Experiments"))]
    finished, planned = counts.runs.get("finished", 0), sum(counts.runs.values())
    if planned:
        parts = [_("%(finished)s of %(planned)s runs") % {"finished": finished, "planned": planned}]
        paused, broken = counts.runs.get("paused", 0), counts.runs.get("incomplete", 0)
        if paused:
            parts.append(ngettext("%(number)s paused", "%(number)s paused", paused) % {"number": paused})
        if broken:
            parts.append(ngettext("%(number)s incomplete", "%(number)s incomplete", broken) % {"number": broken})
        state = ", ".join(parts)
    elif counts.models:
        state = ngettext("%(number)s model, no runs", "%(number)s models, no runs", counts.models) % {
            "number": counts.models
        }
    else:
        state = _("no model yet")
    return Station("models", _("Models"), state, finished > 0, links)


def _raters(counts: Counts) -> Station:
    links = [
        ("campaign_list", _("Campaigns")),
        ("judging_list", _("Model judges")),
        ("people", _("Researchers and raters")),
    ]
    done, places = counts.places.get("done", 0), sum(counts.places.values())
    if places:
        state = _("%(done)s of %(places)s ratings made") % {"done": done, "places": places}
    elif counts.campaigns.get("closed"):
        state = _("rating is closed")
    elif counts.raters:
        state = ngettext("%(number)s rater, no campaign", "%(number)s raters, no campaign", counts.raters) % {
            "number": counts.raters
        }
    else:
        state = _("no rater yet")
    return Station("raters", _("Raters"), state, bool(counts.campaigns), links)


def _results(counts: Counts) -> Station:
    links = [
        ("results", _("Results")),
        ("classifier_list", _("Classifiers")),
        ("judge_comparison", _("Comparison of judges")),
        ("exports", _("Exports")),
        ("release_list", _("Releases")),
    ]
    people, runs = counts.people.get("finished", 0), counts.runs.get("finished", 0)
    if counts.is_blinded:
        return Station("results", _("Results"), _("closed to you while you rate or decide"), False, [])
    if not people and not runs:
        return Station("results", _("Results"), _("nothing to compare yet"), False, links)
    people_text = ngettext("%(number)s person", "%(number)s people", people) % {"number": people}
    runs_text = ngettext("%(number)s run", "%(number)s runs", runs) % {"number": runs}
    state = f"{people_text}, {runs_text}"
    return Station("results", _("Results"), state, bool(counts.campaigns), links)


def next_step(counts: Counts) -> Step:
    """The first station that waits for the researcher, in their order."""
    finished = counts.people.get("finished", 0)
    places_left = sum(number for state, number in counts.places.items() if state != Place.State.DONE)
    if not counts.instruments:
        return Step(_("Load the published test"), "study_dashboard", _("A study begins with its instrument."))
    if not counts.surveys and not counts.people:
        return Step(_("Make a survey"), "survey_list", _("People take the test by a link."))
    if not counts.people and not counts.surveys.get("open"):
        return Step(_("Open the survey"), "survey_list", _("Nobody can begin before it is open."))
    if not finished and not counts.runs:
        return Step(_("Send the survey's link"), "survey_list", _("Nobody has finished yet."))
    if counts.runs.get("paused") or counts.runs.get("incomplete"):
        return Step(_("See why runs wait"), "experiment_list", _("A run that has stopped has no score."))
    if not counts.runs:
        return Step(_("Let a model take the test"), "experiment_list", _("People have answers, models have none."))
    if not counts.raters:
        return Step(_("Invite raters"), "people", _("Answers are waiting to be judged."))
    if not counts.campaigns:
        return Step(_("Open a campaign"), "campaign_list", _("Answers are waiting to be judged."))
    if places_left:
        return Step(_("Follow the rating"), "campaign_list", _("Judgements are being made."))
    if counts.is_blinded and not counts.campaigns.get("open"):
        return Step(
            _("Decide what waits for you"), "campaign_list", _("Results open to you when every answer is decided.")
        )
    if counts.is_blinded:
        return Step(_("Close the campaign"), "campaign_list", _("Results open to you when it is closed."))
    if counts.campaigns.get("open"):
        return Step(_("Close the campaign"), "campaign_list", _("Every place is judged; closing fixes the votes."))
    return Step(_("Read the results"), "results", _("All that was asked for is judged."))


@dataclass(frozen=True, slots=True)
class Work:
    """Everything of a study that may wait for somebody."""

    surveys: list[Survey]  # with n_started and n_finished
    experiments: list[Experiment]  # with RUN_COUNTS
    campaigns: list[Campaign]  # with n_done


def study_work(study: Study) -> Work:
    """Three queries."""
    experiments = Experiment.objects.filter(study=study).annotate(**RUN_COUNTS)
    campaigns = Campaign.objects.filter(study=study).annotate(
        n_done=Count("places", filter=Q(places__state=Place.State.DONE, places__purpose=Purpose.RATING)),
    )
    return Work(
        surveys=list(surveys_of(study)),
        experiments=list(experiments.order_by("-pk")),
        campaigns=list(campaigns.order_by("-pk")),
    )
