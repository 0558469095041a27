import json
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import transaction
from django.urls import reverse
from django.utils import timezone

from corpus.builtin import builtin_instrument_create, study_text
from llmruns.catalogue import catalogue_load
from scoring.services import paper_rubric
from studies.models import Role, Study, User
from studies.services import invitation_create, membership_set, study_create
from surveys.models import Survey
from surveys.services import survey_create, survey_set_state

STUDY = "luria"
RESEARCHER = "researcher"


class Command(BaseCommand):
    help = (
        "Make sure of the built-in study with an open survey and of a researcher; print their addresses as one "
        "JSON line. Safe to repeat: what exists stays, only the one-time login link is new."
    )

    @transaction.atomic
    def handle(self, *args: Any, **options: Any) -> None:
        study = Study.objects.filter(slug=STUDY).first() or study_create(
            slug=STUDY, title="Составление предложений: люди и языковые модели", actor=None
        )
        paper_rubric()
        catalogue_load()
        researcher, created = User.objects.get_or_create(username=RESEARCHER)
        if created:
            researcher.set_unusable_password()
            researcher.save(update_fields=["password"])
            membership_set(user=researcher, study=study, role=Role.RESEARCHER, actor=None)
        survey = Survey.objects.filter(instrument__study=study).order_by("pk").first() or self.first_survey(study)
        # An earlier link that nobody used would stay a second key to the same door.
        study.invitations.filter(user=researcher, used_at__isnull=True, revoked_at__isnull=True).update(
            revoked_at=timezone.now()
        )
        _, secret = invitation_create(study=study, role=Role.RESEARCHER, actor=None, user=researcher)
        addresses = {
            "survey_url": settings.PUBLIC_URL + reverse("survey_enter", args=[survey.slug]),
            "login_url": settings.PUBLIC_URL + reverse("join", args=[secret]),
        }
        self.stdout.write(json.dumps(addresses))

    def first_survey(self, study: Study) -> Survey:
        survey = survey_create(
            instrument=builtin_instrument_create(study=study, actor=None),
            title="По ссылке",
            contact="исследователь, который прислал вам ссылку",
            consent_text=study_text("consent.ru.md"),
            publication_text=study_text("consent.publication.ru.md"),
            third_party_text=study_text("consent.third_parties.ru.md"),
            actor=None,
        )
        survey_set_state(survey=survey, state=Survey.State.OPEN, actor=None)
        return survey
