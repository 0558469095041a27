"""A campaign's labels for its page and files."""

from collections.abc import Iterator, Sequence
from typing import Any

from annotation.models import Campaign, Item
from annotation.votes import CampaignVotes
from scoring.models import Criterion

LONG = ("answer", "stimulus", "criterion", "label", "basis", "votes", "votes_for", "reason", "version", "sha256")


def label_counts(campaign: Campaign) -> list[tuple[Criterion, dict[str, int]]]:
    """Labels by what they rest on. Five queries."""
    known = CampaignVotes(campaign)
    labels = known.labels()
    found = []
    for criterion in known.criteria:
        counts: dict[str, int] = {}
        for by_code in labels.values():
            one = by_code[criterion.code]
            name = "no_votes" if one.value is None and not one.votes else one.basis
            counts[name] = counts.get(name, 0) + 1
        found.append((criterion, counts))
    return found


def _answers(campaign: Campaign) -> dict[int, tuple[str, int]]:
    rows = Item.objects.filter(campaign=campaign).values_list("pk", "answer__blind_id", "answer__stimulus__position")
    return {pk: (str(blind), position) for pk, blind, position in rows}


def long_rows(campaign: Campaign) -> Iterator[Sequence[Any]]:
    """One row for each answer and criterion. Texts and who answered are in other files; they join on `answer`."""
    version, sha256 = _version(campaign)
    answers = _answers(campaign)
    for pk, by_code in CampaignVotes(campaign).labels().items():
        for code, one in by_code.items():
            values = [one.value, one.basis, one.votes, one.votes_for, one.reason or None]
            yield [*answers[pk], code, *values, version, sha256]


def wide_columns(campaign: Campaign) -> list[str]:
    codes = campaign.criteria.order_by("position").values_list("code", flat=True)
    return ["answer", "stimulus", *(name for code in codes for name in (code, f"{code}_votes")), "version", "sha256"]


def wide_rows(campaign: Campaign) -> Iterator[Sequence[Any]]:
    """One row for each answer, two columns for each criterion: the label, and how many raters judged it."""
    version, sha256 = _version(campaign)
    answers = _answers(campaign)
    for pk, by_code in CampaignVotes(campaign).labels().items():
        cells = [cell for one in by_code.values() for cell in (one.value, one.votes)]
        yield [*answers[pk], *cells, version, sha256]


def _version(campaign: Campaign) -> tuple[int | None, str | None]:
    last = campaign.label_versions.order_by("-version").first()
    return (last.version, last.sha256) if last else (None, None)
