from django.db.models import Count, Q, QuerySet

from corpus.models import Sitting
from studies.models import Study
from surveys.models import ImportBatch, Platform, Survey


def surveys_of(study: Study) -> QuerySet[Survey]:
    """Surveys with `n_started`, `n_finished`, `n_left`, counted people only, and who does not count. One query."""
    sittings = "participants__respondent__sittings"
    counted, pilot, excluded, withdrawn = (Q(**{f"{sittings}__standing": one}) for one in Sitting.Standing.values)
    return (
        Survey.objects.filter(instrument__study=study)
        .select_related("instrument", "consent_document")
        .annotate(
            n_started=Count(sittings, filter=counted),
            n_finished=Count(sittings, filter=counted & Q(**{f"{sittings}__state": Sitting.State.FINISHED})),
            n_left=Count(sittings, filter=counted & Q(**{f"{sittings}__state": Sitting.State.STOPPED})),
            n_pilot=Count(sittings, filter=pilot),
            n_excluded=Count(sittings, filter=excluded),
            n_withdrawn=Count(sittings, filter=withdrawn),
        )
        .order_by("pk")
    )


def imported_surveys_of(study: Study) -> QuerySet[Survey]:
    """Surveys of answers collected elsewhere, with the counts of `surveys_of`. One query."""
    return surveys_of(study).filter(platform=Platform.IMPORTED)


def import_batches_of(study: Study) -> QuerySet[ImportBatch]:
    """The latest first. One query."""
    return (
        ImportBatch.objects.filter(survey__instrument__study=study)
        .select_related("survey__instrument", "survey__consent_document", "made_by")
        .order_by("-pk")
    )
