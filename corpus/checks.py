"""What keeps an instrument from being used, and what its researcher should know before it is."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from corpus.importing import StimulusRow
from corpus.models import Stimulus
from corpus.tokens import word_tokens

Task = StimulusRow | Stimulus


@dataclass(frozen=True)
class Finding:
    """A code and what it is about: a stimulus by its position and its place among its kind, or the whole instrument."""

    code: str
    position: int | None = None
    place: int | None = None
    is_practice: bool = False
    detail: dict[str, Any] = field(default_factory=dict)


def _placed(stimuli: Sequence[Task]) -> list[tuple[Task, dict[str, Any]]]:
    """Each stimulus with what a finding says of it: as people count, practice apart."""
    placed = []
    for is_practice in (False, True):
        kind = sorted((one for one in stimuli if one.is_practice is is_practice), key=lambda one: one.position)
        for place, one in enumerate(kind, start=1):
            placed.append((one, {"position": one.position, "place": place, "is_practice": is_practice}))
    return placed


def problems_of(*, instruction: str, refusal_below: int, stimuli: Sequence[Task]) -> list[Finding]:
    """What must be mended before the instrument can be frozen, and so before anybody takes it."""
    found = []
    if not instruction.strip():
        found.append(Finding("no_instruction"))
    real = [one for one in stimuli if not one.is_practice]
    if not real:
        found.append(Finding("no_real_stimulus"))
    for one, about in _placed(stimuli):
        if not word_tokens(one.text):
            found.append(Finding("no_given_words", **about))
        if not word_tokens(one.original):
            found.append(Finding("no_original", **about))
    shortest = shortest_original(stimuli)
    if shortest is not None and refusal_below > shortest - 1:
        found.append(Finding("refusal_limit", detail={"limit": refusal_below, "words": shortest}))
    return found


def warnings_of(stimuli: Sequence[Task]) -> list[Finding]:
    """What may be meant so: word counts that differ, a sentence that comes twice."""
    found = []
    seen: dict[tuple[str, ...], dict[str, Any]] = {}
    for one, about in _placed(stimuli):
        given, original = len(word_tokens(one.text)), word_tokens(one.original)
        if given != len(original):
            found.append(Finding("word_counts", **about, detail={"given": given, "original": len(original)}))
        first = seen.setdefault(tuple(word.lower() for word in original), about)
        if first is not about:
            code = "same_original" if first["is_practice"] == about["is_practice"] else "original_practised"
            found.append(Finding(code, **about, detail={"other": first["place"]}))
    return found


def shortest_original(stimuli: Sequence[Task]) -> int | None:
    """In word tokens, practice left out; None where there is no real stimulus."""
    return min((len(word_tokens(one.original)) for one in stimuli if not one.is_practice), default=None)


def finding_text(finding: Finding, *, with_place: bool = True) -> str:
    """One line for a person; without the place where it stands beside its stimulus."""
    texts = {
        "no_instruction": _("there is no instruction"),
        "no_real_stimulus": _("there is no task yet, practice aside"),
        "no_given_words": _("there are no given words"),
        "no_original": _("there is no original sentence"),
        "refusal_limit": _(
            "answers of fewer than %(limit)s words count as refusals, and the shortest original has %(words)s: the "
            "limit must be lower than that, so that an answer one word short is still an answer"
        ),
        "word_counts": _("words given: %(given)s, in the original: %(original)s"),
        "same_original": _("the original is that of number %(other)s too"),
        "original_practised": _("the original is that of the real task %(other)s, so practice gives its answer away"),
    }
    text = texts[finding.code] % finding.detail
    if not with_place or finding.place is None:
        return text
    if finding.is_practice:
        return _("Practice task %(number)s: %(text)s") % {"number": finding.place, "text": text}
    return _("Task %(number)s: %(text)s") % {"number": finding.place, "text": text}
