"""Answers about which automatic judges are in doubt: what can be asked for, and which of the answers that is.

Such answers are no random sample of a study's, and say so wherever agreement on them is shown.
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _

from annotation.errors import JudgesSilentError
from scoring.doubt import Doubt, criteria_judged, doubts_of
from studies.models import Study

DIFFER, UNSURE, EITHER, LEAST = "differ", "unsure", "either", "least"
KINDS = {
    DIFFER: _("they differ"),
    UNSURE: _("one of them is unsure"),
    EITHER: _("they differ or one is unsure"),
    LEAST: _("the least sure ones"),
}
SURE_BELOW = 0.7


@dataclass(frozen=True, kw_only=True)
class Doubting:
    """Whose doubt is wanted, and of which kind."""

    kind: str  # one of KINDS
    judges: Sequence[int] = ()  # ids of scoring.Judge; none: all automatic judges of the study
    names: Sequence[str] = ()  # what these judges are called, for whoever reads it later
    below: float = SURE_BELOW  # a lower confidence than this is unsure
    least: int | None = None  # so many, where the least sure are wanted

    def as_json(self) -> dict[str, Any]:
        """What was asked for; without what says nothing for this kind."""
        return {
            "kind": self.kind,
            "judges": list(self.judges),
            "names": list(self.names),
            **({"below": self.below} if self.kind in (UNSURE, EITHER) else {}),
            **({"least": self.least} if self.kind == LEAST else {}),
        }


@dataclass(frozen=True)
class Doubted:
    """What of the answers looked through is in doubt, and what is left out of a campaign by that."""

    answers: frozenset[int]
    differ: int  # of these
    unsure: int | None  # of these; None where no bound says what unsure is
    certain: int  # left out: judged, and not in doubt
    unjudged: int  # left out: none of the judges has judged it
    references: frozenset[int]  # of the answers that train or check raters, those that would else have been in


def doubted(
    study: Study,
    wanted: Doubting,
    answers: Iterable[int],
    *,
    references: Iterable[int] = (),
    seed: int,
    rubric: str,
    codes: Iterable[str],
) -> Doubted:
    """Two queries. Raises JudgesSilentError where what the judges have said can answer no such question."""
    doubts = doubts_of(study_id=study.pk, criteria=criteria_judged(rubric, codes), judges=wanted.judges)
    if reason := _silent(doubts, wanted):
        raise JudgesSilentError(reason)
    looked_through = list(answers)
    judged = [answer for answer in looked_through if answer in doubts]
    kept = _kept(judged, doubts, wanted, seed)
    return Doubted(
        answers=frozenset(kept),
        differ=sum(doubts[answer].differ for answer in kept),
        unsure=sum(_is_unsure(doubts[answer], wanted) for answer in kept) if wanted.kind != LEAST else None,
        certain=len(judged) - len(kept),
        unjudged=len(looked_through) - len(judged),
        # Of the least sure ones so many are taken without them: they take no answer's place.
        references=frozenset(
            _kept([answer for answer in references if answer in doubts], doubts, wanted, seed)
            if wanted.kind != LEAST
            else ()
        ),
    )


def _silent(doubts: Mapping[int, Doubt], wanted: Doubting) -> str:
    """Why the question cannot be answered; empty where it can, though the answer be none."""
    if not doubts:
        return "nobody"
    two = any(doubt.judges > 1 for doubt in doubts.values())
    sure = any(doubt.sure is not None for doubt in doubts.values())
    if wanted.kind == DIFFER:
        return "" if two else "one_judge"
    if wanted.kind == EITHER:
        return "" if two or sure else "neither"
    return "" if sure else "no_confidence"


def _is_unsure(doubt: Doubt, wanted: Doubting) -> bool:
    return doubt.sure is not None and doubt.sure < wanted.below


def _kept(judged: list[int], doubts: Mapping[int, Doubt], wanted: Doubting, seed: int) -> list[int]:
    if wanted.kind == DIFFER:
        return [answer for answer in judged if doubts[answer].differ]
    if wanted.kind == UNSURE:
        return [answer for answer in judged if _is_unsure(doubts[answer], wanted)]
    if wanted.kind == EITHER:
        return [answer for answer in judged if doubts[answer].differ or _is_unsure(doubts[answer], wanted)]
    # Of equally sure ones the seed takes some: ids ascend with who answered when, people before models.
    order = sorted(answer for answer in judged if doubts[answer].sure is not None)
    random.Random(f"least sure {seed}").shuffle(order)  # noqa: S311 (a choice to repeat, not a secret)
    order.sort(key=lambda answer: doubts[answer].sure or 0.0)
    return order[: wanted.least]
