"""Versions of the rules that raters read: what a study has, and what a new one begins with."""

import hashlib
from dataclasses import dataclass

from annotation.guideline import CHILDREN_GUIDELINE, DEFAULT_GUIDELINE
from annotation.models import Campaign, Guideline
from scoring.services import CHILDREN_RUBRIC
from studies.models import Study


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
