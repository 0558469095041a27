"""The counting rules follow what comes in, so that a page finds next to nothing left to count."""

from datetime import datetime

import structlog
from django.db import Error
from django.db.models import Q
from django.utils import timezone

from corpus.models import Answer, Sitting
from scoring.models import AcceptedForm, Rubric
from scoring.services import PAPER_RUBRIC, UNSEEN, paper_rubric, rules_apply
from studies.models import Study

log = structlog.get_logger(__name__)


def rules_look(since: datetime | None) -> datetime:
    """Apply the rules to every study in which something came in since, or to all. Returns when to look from next.

    Two queries where nothing has come; else those of `rules_apply`. Whatever way answers came (a survey, a run, an
    import), the next look finds them; those of sittings that still go on wait for their end. A study that cannot be
    counted keeps no other one from it; its pages try again, and say what is wrong. Raises Error of the database.
    """
    begun = timezone.now()
    paper_rubric()
    for study in Study.objects.filter(pk__in=_studies(since)).order_by("pk"):
        try:
            _count(study)
        except Error:
            raise
        except Exception:
            log.exception("rules_not_applied", study=study.pk)
    return begun - UNSEEN


def _count(study: Study) -> None:
    for rubric in Rubric.objects.filter(Q(slug=PAPER_RUBRIC) | Q(rounds__study=study)).distinct().order_by("pk"):
        rules_apply(study=study, rubric=rubric)


def _studies(since: datetime | None) -> set[int]:
    answers = Answer.objects.filter(outcome=Answer.Outcome.GIVEN).exclude(sitting__state=Sitting.State.OPEN)
    forms = AcceptedForm.objects.all()
    if since is not None:
        answers = answers.filter(Q(changed_at__gte=since) | Q(sitting__finished_at__gte=since))
        forms = forms.filter(Q(made_at__gte=since) | Q(retired_at__gte=since))
    return {
        *answers.order_by().values_list("sitting__instrument__study", flat=True).distinct(),
        *forms.order_by().values_list("stimulus__instrument__study", flat=True).distinct(),
    }
