"""Whose answers a release holds. Counted sittings only, and of people only those who agreed to publication."""

from collections import Counter
from dataclasses import dataclass
from uuid import UUID, uuid5

from django.db.models import Exists, OuterRef, Q, QuerySet

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
    people = (
        Sitting.objects.filter(_agreed(study), instrument__study=study, respondent__kind=Respondent.Kind.HUMAN)
        .filter(standing=Sitting.Standing.COUNTED)
        .exclude(state=Sitting.State.OPEN)
    )
    models = Sitting.objects.filter(
        instrument__study=study,
        respondent__kind=Respondent.Kind.MODEL,
        standing=Sitting.Standing.COUNTED,
        run__isnull=False,
    )
    return Sitting.objects.filter(Q(pk__in=people.values("pk")) | Q(pk__in=models.values("pk")))


def _agreed(study: Study) -> Exists:
    return Exists(
        Consent.objects.filter(
            participant__respondent=OuterRef("respondent"),
            participant__withdrawn_at__isnull=True,
            document__study=study,
            document__purpose=Purpose.PUBLICATION,
        )
    )


def left_out(study: Study) -> dict[str, int]:
    """How many sittings of people are not in, by reason. One query."""
    counts: Counter[str] = Counter()
    people = Sitting.objects.filter(instrument__study=study, respondent__kind=Respondent.Kind.HUMAN)
    for standing, state, agreed in people.values_list("standing", "state", _agreed(study)):
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

    def of_person(self, external_id: str) -> UUID:
        return uuid5(self.salt, f"person {external_id}")
