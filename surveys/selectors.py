from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet

from corpus.models import Answer, Sitting
from studies.models import Study
from surveys.models import Exposure, ImportBatch, Platform, Survey


def stages(to_people: str = "") -> dict[str, Q]:
    """Who is counted at which stage: the one definition behind the survey's pages, the flow and the API.

    `to_people` leads to the participants ("participants__" from a survey). Started: was shown a task or has an answer
    (an import knows no showing). Whoever withdrew, was excluded or was a pilot stays in the stages that they passed;
    `pilot`, `excluded` and `withdrawn` name them beside. Consented − `screened_out` − `not_started` = started;
    − `under_way` − `left` = finished.
    """
    sittings = f"{to_people}respondent__sittings"
    own = OuterRef(sittings)
    begun = Q(Exists(Exposure.objects.filter(sitting=own, stimulus__is_practice=False))) | Q(
        Exists(Answer.objects.filter(sitting=own, stimulus__is_practice=False))
    )
    # The cheap half stands first: the database looks for showings of those only whom it leaves.
    open_, stopped, finished = (Q(**{f"{sittings}__state": one}) for one in ("open", "stopped", "finished"))
    screened = Q(**{f"{to_people}screened_out_at__isnull": False})
    return {
        "consented": Q(**{f"{to_people}pk__isnull": False}),
        "screened_out": screened & ~begun,
        "started": begun,
        "under_way": open_ & begun,
        "left": stopped & begun,
        "finished": finished,
        "pilot": Q(**{f"{sittings}__standing": Sitting.Standing.PILOT}),
        "excluded": Q(**{f"{sittings}__standing": Sitting.Standing.EXCLUDED}),
        "withdrawn": Q(**{f"{to_people}withdrawn_at__isnull": False}),
    }


def surveys_of(study: Study) -> QuerySet[Survey]:
    """Surveys with the number of people at each of `stages` (`n_started` and so on) and `n_not_started`. One query."""
    counts = {f"n_{name}": Count("participants", filter=whom) for name, whom in stages("participants__").items()}
    return (
        Survey.objects.filter(instrument__study=study)
        .select_related("instrument", "consent_document")
        .annotate(**counts)
        .annotate(n_not_started=F("n_consented") - F("n_screened_out") - F("n_started"))
        .order_by("pk")
    )


def imported_surveys_of(study: Study) -> QuerySet[Survey]:
    """Surveys of answers collected elsewhere, with the counts of `surveys_of`. One query."""
    return surveys_of(study).filter(platform=Platform.IMPORTED)


def batch_sittings(batch: ImportBatch) -> QuerySet[Sitting]:
    """Sittings that the batch brought answers to, or whose people it marked; `n_here` answers each. One query."""
    if batch.format.startswith("prolific"):
        found = Sitting.objects.filter(respondent__participant__in=batch.platform_records.values("participant"))
    else:
        found = Sitting.objects.filter(answers__imported__batch=batch)
    return (
        found.select_related("respondent__participant")
        .annotate(n_here=Count("answers", filter=Q(answers__imported__batch=batch)))
        .order_by("pk")
    )


def import_batches_of(study: Study) -> QuerySet[ImportBatch]:
    """The latest first. One query."""
    return (
        ImportBatch.objects.filter(survey__instrument__study=study)
        .select_related("survey__instrument", "survey__consent_document", "made_by")
        .order_by("-pk")
    )
