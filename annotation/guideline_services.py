"""The writing of a new version of the rules that raters read."""

from django.db import transaction

from annotation.errors import GuidelineStaleError, GuidelineUnchangedError
from annotation.guideline_selectors import guideline_newest, state_of
from annotation.models import Guideline
from studies.models import Study, User
from studies.services import audit_record


@transaction.atomic
def guideline_write(*, study: Study, rubric_slug: str, text: str, note: str, seen: str, actor: User) -> Guideline:
    """A new version, which campaigns that open later take; those that are open keep theirs.

    `seen` is the `state_of` of the version that the author had before them. The study is locked as by whoever opens a
    campaign. The log has no text and no note: participants may be quoted there. Raises GuidelineUnchangedError,
    GuidelineStaleError.
    """
    study = Study.objects.select_for_update(no_key=True).get(pk=study.pk)
    newest = guideline_newest(study, rubric_slug)
    if newest is not None and newest.text.strip() == text.strip():  # also what a double click comes to
        raise GuidelineUnchangedError
    if state_of(newest) != seen:
        raise GuidelineStaleError
    last = Guideline.objects.filter(study=study).order_by("-version").values_list("version", flat=True).first() or 0
    guideline = Guideline.objects.create(
        study=study, rubric_slug=rubric_slug, version=last + 1, text=text, note=note, author=actor
    )
    audit_record(
        actor=actor,
        study=study,
        action="guideline_write",
        target=guideline,
        detail={"version": guideline.version, "rubric": rubric_slug},
    )
    return guideline
