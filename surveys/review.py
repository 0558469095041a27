"""The review file of Toloka and Yandex Tasks: which assignments to accept and which to reject."""

import csv
import io

from django.utils.translation import gettext as _

from corpus.models import Sitting
from surveys.models import Participant, Survey

COLUMNS = ("ASSIGNMENT:assignment_id", "ACCEPT:verdict", "ACCEPT:comment")


def review_file(survey: Survey, *, reject_unfinished: bool) -> str:
    """Tab-separated, one row per assignment: `+` for whoever finished, excluded from results or not.

    Who did the work is paid, so an exclusion is no reason to reject, and flags are none. Unfinished assignments are
    left out, or rejected with the reason where that is asked for. One query.
    """
    participants = (
        Participant.objects.filter(survey=survey)
        .exclude(visit_id="")
        .order_by("pk")
        .values_list("visit_id", "respondent__sittings__state", "screened_out_at")
    )
    file = io.StringIO()
    writer = csv.writer(file, delimiter="\t", lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for assignment, state, screened_out_at in participants:
        if state == Sitting.State.FINISHED or screened_out_at is not None:
            writer.writerow([assignment, "+", ""])
        elif reject_unfinished:
            writer.writerow([assignment, "-", _("The test was not finished.")])
    return file.getvalue()
