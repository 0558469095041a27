"""Versions of the rules that raters read: what a study has, and the writing of a new one."""

import hashlib
from dataclasses import dataclass

from django.db import transaction

from annotation.errors import GuidelineStaleError, GuidelineUnchangedError
from annotation.guideline import CHILDREN_GUIDELINE, DEFAULT_GUIDELINE
from annotation.models import Campaign, Guideline
from scoring.services import CHILDREN_RUBRIC
from studies.models import Study, User
from studies.services import audit_record


@dataclass(frozen=True)
class GuidelineRow:
    guideline: Guideline
    is_newest: bool  # of its rubric: campaigns that open now take it
    campaigns: list[Campaign]


def guidelines_of(study: Study) -> list[GuidelineRow]:
    """The study's versions, the newest first, each with the campaigns that opened with it. Two queries."""
    campaigns: dict[int, list[Campaign]] = {}
    opened = Campaign.objects.filter(study=study, round__guideline_version__isnull=False)
    for campaign in opened.select_related("round").order_by("-opened_at"):
        campaigns.setdefault(campaign.round.guideline_version or 0, []).append(campaign)
    rows = []
    met: set[str] = set()
    for guideline in Guideline.objects.filter(study=study).select_related("author").order_by("-version"):
        is_newest = guideline.rubric_slug not in met
        rows.append(GuidelineRow(guideline, is_newest, campaigns.get(guideline.version, [])))
        met.add(guideline.rubric_slug)
    return rows


def guideline_newest(study: Study, rubric_slug: str) -> Guideline | None:
    """One query."""
    return Guideline.objects.filter(study=study, rubric_slug=rubric_slug).order_by("-version").first()


def text_to_begin_with(rubric_slug: str, newest: Guideline | None) -> str:
    """What raters would read if nothing were written: the newest version, else the rules that come with Luria."""
    if newest is not None:
        return newest.text
    return CHILDREN_GUIDELINE.strip() if rubric_slug == CHILDREN_RUBRIC else DEFAULT_GUIDELINE.strip()


def state_of(newest: Guideline | None) -> str:
    """What a page has seen of a rubric's rules; differs once there is a newer version.

    The text is in it, since the words of a participant who withdraws leave a version without making a new one.
    """
    if newest is None:
        return "0"
    return f"{newest.version}-{hashlib.sha256(newest.text.encode()).hexdigest()[:16]}"


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
