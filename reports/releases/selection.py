"""Whose answers a release holds. Counted sittings only, and of people only those who agreed to publication."""

from collections import Counter
from dataclasses import dataclass
from uuid import UUID, uuid5

from django.db.models import Exists, OuterRef, QuerySet

from corpus.models import Respondent, Sitting
from studies.models import Study
from surveys.models import Consent, Participant, Purpose

LEFT_OUT = ("withdrawn", "pilot", "excluded", "open", "no_consent")
"""Why a person's sitting is not in; the first that holds is counted."""


def published(study: Study) -> QuerySet[Sitting]:
    """The sittings that a release may hold. One query.

    A person who is still working has not yet decided what their answers are; a model's unfinished run is in, for it
    says that something is missing.
    """
    models = Sitting.objects.filter(
        instrument__study=study, respondent__kind=Respondent.Kind.MODEL, standing=Sitting.Standing.COUNTED
    ).filter(run__isnull=False)
    people = _people(study).filter(standing=Sitting.Standing.COUNTED, agreed=True).exclude(state=Sitting.State.OPEN)
    return Sitting.objects.filter(pk__in=people.values("pk")) | Sitting.objects.filter(pk__in=models.values("pk"))


def _people(study: Study) -> QuerySet[Sitting]:
    agreed = Consent.objects.filter(
        participant__respondent=OuterRef("respondent"),
        participant__withdrawn_at__isnull=True,
        document__study=study,
        document__purpose=Purpose.PUBLICATION,
    )
    people = Sitting.objects.filter(instrument__study=study, respondent__kind=Respondent.Kind.HUMAN)
    return people.annotate(agreed=Exists(agreed))


def left_out(study: Study) -> dict[str, int]:
    """How many sittings of people are not in, by reason. One query."""
    counts: Counter[str] = Counter()
    for standing, state, agreed in _people(study).values_list("standing", "state", "agreed"):
        if standing != Sitting.Standing.COUNTED:
            counts[standing] += 1
        elif state == Sitting.State.OPEN:
            counts["open"] += 1
        elif not agreed:
            counts["no_consent"] += 1
    return {reason: counts[reason] for reason in LEFT_OUT}


def still_published(study: Study, respondents: set[int]) -> bool:
    """Whether everybody of these people still agrees. One query; the caller holds the study's lock."""
    agree = Participant.objects.filter(
        respondent__in=respondents,
        withdrawn_at__isnull=True,
        consents__document__study=study,
        consents__document__purpose=Purpose.PUBLICATION,
    )
    return agree.values("respondent").distinct().count() == len(respondents)


@dataclass(frozen=True)
class Alias:
    """Numbers for the outside: the same in all releases of a study, and found in nothing else that leaves it.

    Exports for researchers carry the numbers of the database, beside times and flags; who has one of those cannot join
    it to a public release without the salt.
    """

    salt: UUID

    def of(self, known: UUID) -> UUID:
        return uuid5(self.salt, str(known))
