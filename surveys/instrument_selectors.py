"""Reads for the pages of instruments."""

from dataclasses import dataclass

from django.db.models import Count, OuterRef, Q, QuerySet, Subquery

from corpus.checks import Finding, finding_text, problems_of, warnings_of
from corpus.models import Instrument, Sitting, Stimulus
from corpus.tokens import word_tokens
from studies.models import Study
from surveys.models import Survey


def instruments_with_counts(study: Study) -> QuerySet[Instrument]:
    """With `n_real`, `n_practice`, `n_sittings` and `n_surveys`. One query."""
    sittings = Sitting.objects.filter(instrument=OuterRef("pk")).order_by().values("instrument")
    surveys = Survey.objects.filter(instrument=OuterRef("pk")).order_by().values("instrument")
    return (
        Instrument.objects.filter(study=study)
        .annotate(
            n_real=Count("stimuli", filter=Q(stimuli__is_practice=False)),
            n_practice=Count("stimuli", filter=Q(stimuli__is_practice=True)),
            n_sittings=Subquery(sittings.annotate(n=Count("pk")).values("n")),
            n_surveys=Subquery(surveys.annotate(n=Count("pk")).values("n")),
        )
        .order_by("slug", "-version")
    )


@dataclass(frozen=True)
class Line:
    """A stimulus in the table of its instrument. `place` counts within its kind."""

    stimulus: Stimulus
    place: int
    is_last: bool
    given: int  # word tokens
    original: int
    warnings: list[str]


@dataclass(frozen=True)
class Contents:
    """What an instrument holds, and what is to be said about it."""

    real: list[Line]
    practice: list[Line]
    problems: list[str]
    warnings: list[str]


def contents_of(instrument: Instrument) -> Contents:
    """One query."""
    stimuli = list(instrument.stimuli.order_by("position"))
    found = warnings_of(stimuli)
    about: dict[int | None, list[Finding]] = {}
    for finding in found:
        about.setdefault(finding.position, []).append(finding)
    kinds: list[list[Line]] = []
    for is_practice in (False, True):
        kind = [one for one in stimuli if one.is_practice is is_practice]
        kinds.append(
            [
                Line(
                    stimulus=one,
                    place=place,
                    is_last=place == len(kind),
                    given=len(word_tokens(one.text)),
                    original=len(word_tokens(one.original)),
                    warnings=[finding_text(finding, with_place=False) for finding in about.get(one.position, ())],
                )
                for place, one in enumerate(kind, start=1)
            ]
        )
    problems = problems_of(instruction=instrument.instruction, refusal_below=instrument.refusal_below, stimuli=stimuli)
    return Contents(kinds[0], kinds[1], [finding_text(one) for one in problems], [finding_text(one) for one in found])


def versions_of(instrument: Instrument) -> QuerySet[Instrument]:
    """The other instruments of the study that this one can be compared with, its own versions first. No query."""
    return Instrument.objects.filter(study=instrument.study_id).exclude(pk=instrument.pk).order_by("slug", "-version")


def version_before(instrument: Instrument) -> Instrument | None:
    """The version before, else the one after. One query, or two."""
    own = Instrument.objects.filter(study=instrument.study_id, slug=instrument.slug)
    before = own.filter(version__lt=instrument.version).order_by("-version").first()
    return before or own.filter(version__gt=instrument.version).order_by("version").first()
