"""How a campaign would look: its order, what is judged for what, its checks. Nothing is written here."""

import hashlib
import json
import math
import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from annotation.choosing import (
    MAX_PLACES,
    Candidate,
    Chosen,
    Selection,
    chosen,
    references_for,
    shuffled_within_stimuli,
)
from annotation.errors import (
    CriterionUnknownError,
    GuidelineUnknownError,
    RepeatsTooFarError,
    TooManyPlacesError,
)
from annotation.models import Campaign, Guideline, Reference
from scoring.models import Criterion
from scoring.services import CHILDREN_CRITERIA, CHILDREN_RUBRIC, PAPER_CRITERIA, PAPER_RUBRIC
from studies.models import Study


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How a campaign rates what it holds."""

    rubric: str = PAPER_RUBRIC  # one of scoring.services.RUBRICS
    codes: Collection[str] = ()  # of the rubric's judged criteria; empty: all
    identical: str = Campaign.Identical.ONCE
    repeat_percent: int = 0  # of what raters judge
    repeat_distance: int = 0
    training: bool = False
    gold_every: int = 0
    guideline: int | None = None  # a version of the study's rules for this rubric; None: the newest
    deadline: datetime | None = None

    def as_json(self) -> dict[str, Any]:
        """What was asked for beside the campaign's own columns."""
        return {
            "rubric": self.rubric,
            "criteria": list(self.codes),
            "repeat_percent": self.repeat_percent,
            "repeat_distance": self.repeat_distance,
            "training": self.training,
            "gold_every": self.gold_every,
            "guideline": self.guideline,
        }


PLAIN = Plan()


def repeats_of(n_items: int, percent: int, distance: int) -> tuple[int, int]:
    """How many items are judged twice, and among how many of the first ones they are drawn.

    A rater must have judged `distance` others after an answer before it comes again, so the last ones are no use.
    """
    eligible = max(0, n_items - distance)
    return min(math.ceil(n_items * percent / 100), eligible), eligible


@dataclass(frozen=True)
class Layout:
    """What a campaign would hold, in its order. `roots`: see `_roots`."""

    found: Chosen
    order: list[Candidate]
    roots: list[int]
    repeated: set[int]
    references: list[Reference]
    codes: list[str]  # the criteria that are asked, in the rubric's order
    guideline: int  # the version that raters read
    has_guideline: bool  # otherwise opening makes it, of the default rules

    @property
    def n_items(self) -> int:
        """Answers that raters judge: those with the same text once, where they share the judgement."""
        return sum(root == number for number, root in enumerate(self.roots))

    def n_references(self, purpose: str) -> int:
        return sum(one.purpose == purpose for one in self.references)

    def digest(self) -> str:
        """SHA-256 over all that raters would be given, and no text: two layouts with one digest are one campaign."""
        items = [
            [candidate.answer_id, self.order[root].answer_id, number in self.repeated]
            for number, (candidate, root) in enumerate(zip(self.order, self.roots, strict=True))
        ]
        references = [[one.answer_id, one.purpose, one.expected, one.not_attempt] for one in self.references]
        fixed = json.dumps([items, references, self.codes, self.guideline], sort_keys=True)
        return hashlib.sha256(fixed.encode()).hexdigest()


def laid_out(study: Study, selection: Selection, plan: Plan, *, seed: int, raters_per_answer: int) -> Layout:
    """What opening would fix now; the page that counts before and the opening itself ask the same question.

    Two queries more than `chosen`. Raises TooManyPlacesError, RepeatsTooFarError, CriterionUnknownError,
    GuidelineUnknownError, JudgesSilentError.
    """
    codes = _codes(plan)
    references = list(
        references_for(
            study, plan.rubric, training=plan.training, gold=plan.gold_every > 0, codes=codes
        ).select_related("answer__stimulus__instrument")
    )
    found = chosen(
        study,
        selection,
        seed=seed,
        references=[one.answer_id for one in references],
        rubric=plan.rubric,
        codes=codes,
    )
    order = shuffled_within_stimuli(found.answers, seed)
    roots = _roots(order, share=plan.identical == Campaign.Identical.ONCE)
    repeated = _repeated(roots, order, plan, seed) if order else set()
    layout = Layout(found, order, roots, repeated, references, codes, *_guideline(study, plan))
    if layout.n_items * raters_per_answer > MAX_PLACES:
        raise TooManyPlacesError(layout.n_items * raters_per_answer)
    return layout


def judged_codes(rubric: str) -> list[str]:
    """The criteria of a rubric that raters judge, in its order. No query: a rubric may not have been used yet."""
    rows = CHILDREN_CRITERIA if rubric == CHILDREN_RUBRIC else PAPER_CRITERIA
    return [code for code, _ru, _en, kind in rows if kind == Criterion.Kind.JUDGED]


def _codes(plan: Plan) -> list[str]:
    judged = judged_codes(plan.rubric)
    unknown = set(plan.codes) - set(judged)
    if unknown:
        raise CriterionUnknownError(sorted(unknown))
    return [code for code in judged if code in plan.codes] if plan.codes else judged


def _guideline(study: Study, plan: Plan) -> tuple[int, bool]:
    """The version that raters would read, and whether the study has it yet: see `services.guideline_ensure`."""
    versions = Guideline.objects.filter(study=study).order_by("-version")
    known = versions.filter(rubric_slug=plan.rubric)
    if plan.guideline is None:
        newest = known.values_list("version", flat=True).first()
        return (newest, True) if newest else ((versions.values_list("version", flat=True).first() or 0) + 1, False)
    if not known.filter(version=plan.guideline).exists():
        raise GuidelineUnknownError
    return plan.guideline, True


def _roots(order: Sequence[Candidate], *, share: bool) -> list[int]:
    """For each place in the order, the place at which the answer is judged: its own, or the first with its text."""
    first: dict[tuple[int, str], int] = {}
    return [
        first.setdefault((candidate.stimulus_id, candidate.display_text), number) if share else number
        for number, candidate in enumerate(order)
    ]


def _repeated(roots: Sequence[int], order: Sequence[Candidate], plan: Plan, seed: int) -> set[int]:
    """Places in the order of what raters judge twice. Refusals are not among them: they are 0 by rule."""
    if not plan.repeat_percent:
        return set()
    judged = [number for number, root in enumerate(roots) if root == number]
    wanted, eligible = repeats_of(len(judged), plan.repeat_percent, plan.repeat_distance)
    among = [number for number in judged[:eligible] if not order[number].is_refusal]
    if not among:
        raise RepeatsTooFarError(len(judged))
    draw = random.Random(f"repeats {seed}")  # noqa: S311 (a choice to repeat, not a secret)
    return set(draw.sample(among, min(wanted, len(among))))
