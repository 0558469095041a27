"""The review file of Toloka and Yandex Tasks: which assignments to accept and which to reject."""

import csv
import io
from datetime import timedelta

from django.db.models import OuterRef, Subquery
from django.db.models.functions import Greatest
from django.utils import timezone
from django.utils.translation import gettext as _

from corpus.models import Sitting
from surveys.models import Exposure, Participant, Survey

COLUMNS = ("ASSIGNMENT:assignment_id", "ACCEPT:verdict", "ACCEPT:comment")


def review_file(survey: Survey, *, reject_unfinished: bool) -> str:
    """Tab-separated, one row for each assignment: `+` for whoever finished, excluded from results or not.

    Who did the work is paid, so an exclusion is no reason to reject, and flags are none. Unfinished assignments are
    left out, or rejected with the reason where that is asked for; never of people who are still at it. One query.
    """
    since = timezone.now() - timedelta(minutes=survey.hold_minutes)
    latest = Exposure.objects.filter(sitting=OuterRef("respondent__sittings")).order_by("-onset_at").values("onset_at")
    participants = (
        Participant.objects.filter(survey=survey)
        .exclude(visit_id="")
        .order_by("pk")
        .annotate(seen=Greatest("created_at", Subquery(latest[:1])))
        .values_list("visit_id", "respondent__sittings__state", "screened_out_at", "seen")
    )
    file = io.StringIO()
    writer = csv.writer(file, delimiter="\t", lineterminator="\r\n")
    writer.writerow(COLUMNS)
    verdicts: dict[str, str] = {}
    for assignment, state, screened_out_at, seen in participants:
        is_at_it = state == Sitting.State.OPEN and seen >= since
        if state == Sitting.State.FINISHED or screened_out_at is not None:
            verdicts[assignment] = "+"
        elif reject_unfinished and not is_at_it:
            verdicts.setdefault(assignment, "-")
    for assignment, verdict in verdicts.items():
        writer.writerow([assignment, verdict, "" if verdict == "+" else _("The test was not finished.")])
    return file.getvalue()
