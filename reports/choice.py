"""What a researcher chooses of the results: whose labels, which people, and how a model's runs come together."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal
from urllib.parse import urlencode

from django.http import Http404, QueryDict
from django.utils.translation import gettext as _

from corpus.models import Instrument, Respondent, Sitting
from reports.judging_agreement import model_judge_names
from reports.panel import Bench, Member, members_of, panel_of
from reports.test_side import classifier_titles, test_sides
from scoring.bases import RATERS, RATERS_KEY, Basis, automatic_judges, basis_from
from scoring.models import Judge, Rubric
from studies.models import Study

Runs = Literal["mean", "majority"]
ALL, TEST_SIDE, SOURCE = "all", "test", "from:"


@dataclass(frozen=True, slots=True)
class Choice:
    """`people`: all, test (the test side of the basis's classifiers) or from:<source label>."""

    basis: Basis = RATERS
    people: str = ALL
    runs: Runs = "mean"

    @property
    def query(self) -> dict[str, str]:
        """As parameters of an address, without what is so anyway."""
        given = {"basis": self.basis.key, "people": self.people, "runs": self.runs}
        return {key: value for key, value in given.items() if value != _DEFAULTS[key]}

    @property
    def source(self) -> str | None:
        return self.people.removeprefix(SOURCE) if self.people.startswith(SOURCE) else None


_DEFAULTS = {"basis": RATERS_KEY, "people": ALL, "runs": "mean"}


@dataclass(frozen=True, slots=True)
class Option:
    key: str
    name: str
    n: int | None = None


@dataclass(frozen=True, slots=True)
class Chosen:
    """A choice that the study has, with its words and with what else could be chosen.

    `respondents` narrows people to a test side; None narrows nothing.
    """

    choice: Choice
    basis_name: str
    people_name: str
    respondents: frozenset[int] | None
    people: tuple[Option, ...]
    judges: tuple[Member, ...] = ()  # all automatic judges that a basis can be made of
    panel: tuple[Bench, ...] = ()  # who of the basis judges what, where it is not the raters

    @property
    def needs_words(self) -> bool:
        """Several judges, or one who leaves a criterion out: the name of the basis does not say who judges what."""
        return len(self.choice.basis.judges) > 1 or any(bench.words for bench in self.panel)

    @property
    def query(self) -> str:
        return urlencode(self.choice.query)


def chosen_of(*, given: Mapping[str, str], study: Study, instrument: Instrument, rubric: Rubric) -> Chosen:
    """What the parameters choose. About eight queries. Raises Http404 for what the study does not have.

    On the basis of a classifier, people are the respondents of its test side: on the others it was trained.
    """
    names = judge_names(study, rubric)
    try:
        basis = basis_from(given.get("basis") or RATERS_KEY)
    except ValueError as error:
        raise Http404 from error
    runs = given.get("runs") or "mean"
    if not set(basis.judges) <= set(names) or runs not in ("mean", "majority"):
        raise Http404
    sides = test_sides(basis.judges)
    respondents = frozenset.intersection(*sides) if sides else None
    options = _people(instrument) if respondents is None else (Option(TEST_SIDE, _("test side of the split")),)
    wanted = given.get("people") or options[0].key
    found = next((option for option in options if option.key == wanted), None)
    if found is None:
        raise Http404
    judges = members_of(study, rubric, basis, names)
    return Chosen(
        choice=Choice(basis, wanted, "majority" if runs == "majority" else "mean"),
        basis_name=basis_name(basis, names),
        people_name=found.name,
        respondents=respondents,
        people=options,
        judges=judges,
        panel=panel_of(rubric, judges),
    )


@dataclass(frozen=True, slots=True)
class Sent:
    """What the form of the results comes to: a choice that the study has, and what of the form it is not, in words."""

    chosen: Chosen
    told: tuple[str, ...]


def sent_of(*, given: QueryDict, study: Study, instrument: Instrument, rubric: Rubric) -> Sent:
    """The form says which judges are ticked; an address names their basis. Twice the queries of `chosen_of` at most.

    Raises Http404 for what no form offers.
    """
    names = judge_names(study, rubric)
    ticked = {int(one) if one.isascii() and one.isdigit() and len(one) < 10 else 0 for one in given.getlist("judge")}
    told = []
    if ticked - set(names):
        told.append(_("A judge that you ticked has judged no answer of this study by this rubric, and is left out."))
    asked = {
        "basis": Basis.of(ticked & set(names)).key,
        "people": given.get("people", ""),
        "runs": given.get("runs", ""),
    }
    try:
        chosen = chosen_of(given=asked, study=study, instrument=instrument, rubric=rubric)
    except Http404:  # whom the other judges could not be asked about
        chosen = chosen_of(given=asked | {"people": ""}, study=study, instrument=instrument, rubric=rubric)
        if asked["people"] != TEST_SIDE:
            told.append(_("People are now: %(people)s.") % {"people": chosen.people_name})
    return Sent(chosen, tuple(told))


def default_choice(instrument: Instrument) -> Chosen:
    """Rater labels, all people, the mean over runs. No query."""
    everybody = Option(ALL, _("all counted participants"))
    raters = basis_name(RATERS, {})
    return Chosen(Choice(), raters, everybody.name, None, (everybody,))


def with_runs(chosen: Chosen, runs: Runs) -> Chosen:
    return replace(chosen, choice=replace(chosen.choice, runs=runs))


def judge_names(study: Study, rubric: Rubric | None = None) -> dict[int, str]:
    """Automatic judges that have judged (by this rubric), and what they are called. Three queries at most."""
    kinds = automatic_judges(study.pk, rubric.pk if rubric else None)
    if not kinds:
        return {}
    names = model_judge_names(study) | classifier_titles(kinds)
    words = dict(Judge.Kind.choices)
    return {pk: names.get(pk) or f"{words[kind]} {pk}" for pk, kind in kinds.items()}


def basis_name(basis: Basis, names: Mapping[int, str]) -> str:
    if basis.is_raters:
        return _("labels of the raters")
    return " + ".join(names[judge] for judge in basis.judges)


def _people(instrument: Instrument) -> tuple[Option, ...]:
    sittings = Sitting.objects.filter(
        instrument=instrument, respondent__kind=Respondent.Kind.HUMAN, standing=Sitting.Standing.COUNTED
    )
    labels = list(sittings.order_by("source_label").values_list("source_label", flat=True).distinct())
    everybody = Option(ALL, _("all counted participants"))
    return (everybody, *(Option(SOURCE + label, label) for label in labels if len(labels) > 1))
