"""Beginning a study, with the instrument that it needs at once."""

from django.db import IntegrityError, transaction

from corpus.builtin import builtin_instrument_create
from corpus.models import Instrument
from studies.models import Study, User
from studies.services import study_create


class StudySlugTakenError(Exception):
    """Another study has this address."""


@transaction.atomic
def study_begin(*, slug: str, title: str, actor: User) -> Study:
    """A new study with the published test in it and the actor as its researcher.

    Raises StudySlugTakenError.
    """
    try:
        with transaction.atomic():  # the violation must not spoil the outer transaction
            study = study_create(slug=slug, title=title, actor=actor)
    except IntegrityError as error:
        raise StudySlugTakenError from error
    builtin_instrument_create(study=study, actor=actor)
    return study


@transaction.atomic
def study_builtin_load(*, study: Study, actor: User) -> Instrument | None:
    """Give a study that has no instrument the published test. None where it already has one."""
    Study.objects.select_for_update().get(pk=study.pk)
    if Instrument.objects.filter(study=study).exists():
        return None
    return builtin_instrument_create(study=study, actor=actor)
