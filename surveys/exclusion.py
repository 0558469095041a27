"""Rules by which sittings are left out: what each takes, decided by plain facts of one sitting. Pure.

A rule never takes a sitting whose fact is unknown: without scripts no time is measured, and nobody is out for that.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

BY_HAND = "by_hand"
FLAG = "flag."
"""`flag.browser_again`: the participants with this flag."""

FLAGS = {
    "browser_again": gettext_lazy("this browser had begun a survey of the study before"),
    "id_elsewhere": gettext_lazy("the same id took part in another survey of the study"),
    "visit_again": gettext_lazy("came back by another visit of the platform"),
}


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of one sitting. None: not known, which is not 0."""

    is_finished: bool
    is_gone: bool  # left, or not seen for as long as the survey keeps a place
    total_minutes: float | None = None  # from the start to the end; only of finished ones
    median_seconds: float | None = None  # over the tasks that were timed
    refusals: int = 0  # declined, or given with fewer words than the instrument's limit
    checks_failed: int = 0
    translated: int | None = None  # tasks on a page that the browser had translated
    pasted: int | None = None  # tasks with a paste
    away_minutes: float | None = None  # in all
    flags: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of rule. `takes` gets the facts and the limit; `fact` is what it looked at, to be shown."""

    code: str
    words: Any  # lazy; with %(limit)s where there is a limit
    unit: Any  # of the limit; empty: the kind has none
    takes: Callable[[Facts, float], bool]
    fact: Callable[[Facts], float | None] = lambda facts: None
    default: float | None = None
    whole: bool = False  # the limit counts things
    explained: Any = ""


def _below(value: float | None, limit: float) -> bool:
    return value is not None and value < limit


def _at_least(value: float | None, limit: float) -> bool:
    """At least none is everybody, which no rule means."""
    return value is not None and value >= max(limit, 1)


def _above(value: float | None, limit: float) -> bool:
    return value is not None and value > limit


KINDS: Mapping[str, Kind] = {
    kind.code: kind
    for kind in (
        Kind(
            "total_faster",
            gettext_lazy("finished in less than %(limit)s minutes"),
            gettext_lazy("minutes"),
            lambda facts, limit: _below(facts.total_minutes, limit),
            lambda facts: facts.total_minutes,
            default=5,
            explained=gettext_lazy("From the consent to the last answer, by the server's clock."),
        ),
        Kind(
            "task_faster",
            gettext_lazy("median time per task below %(limit)s seconds"),
            gettext_lazy("seconds"),
            lambda facts, limit: _below(facts.median_seconds, limit),
            lambda facts: facts.median_seconds,
            default=5,
            explained=gettext_lazy("Over the tasks that the browser timed. Without scripts there is no time."),
        ),
        Kind(
            "refusals",
            gettext_lazy("more than %(limit)s refusals"),
            gettext_lazy("tasks"),
            lambda facts, limit: facts.refusals > limit,
            lambda facts: facts.refusals,
            default=9,
            whole=True,
            explained=gettext_lazy("Declined, or answered with fewer words than the instrument's limit."),
        ),
        Kind(
            "checks_failed",
            gettext_lazy("failed at least %(limit)s attention checks"),
            gettext_lazy("attention checks"),
            lambda facts, limit: _at_least(facts.checks_failed, limit),
            lambda facts: facts.checks_failed,
            default=1,
            whole=True,
            explained=gettext_lazy("A check that was shown and left out is failed; one that was never reached is not."),
        ),
        Kind(
            "translated",
            gettext_lazy("the browser had translated at least %(limit)s tasks"),
            gettext_lazy("tasks"),
            lambda facts, limit: _at_least(facts.translated, limit),
            lambda facts: facts.translated,
            default=1,
            whole=True,
        ),
        Kind(
            "pasted",
            gettext_lazy("pasted in at least %(limit)s tasks"),
            gettext_lazy("tasks"),
            lambda facts, limit: _at_least(facts.pasted, limit),
            lambda facts: facts.pasted,
            default=3,
            whole=True,
        ),
        Kind(
            "away_longer",
            gettext_lazy("away from the page for more than %(limit)s minutes"),
            gettext_lazy("minutes"),
            lambda facts, limit: _above(facts.away_minutes, limit),
            lambda facts: facts.away_minutes,
            default=15,
            explained=gettext_lazy("All tasks together: the page was hidden or another window was in front."),
        ),
        Kind(
            "unfinished",
            gettext_lazy("did not finish"),
            "",
            lambda facts, limit: facts.is_gone and not facts.is_finished,
            explained=gettext_lazy("Left, or not seen for as long as the survey keeps a place for somebody."),
        ),
    )
}


def kind_of(code: str) -> Kind | None:
    """The kind with this code; of a flag, one made for it. None: there is no such kind."""
    flag = code.removeprefix(FLAG)
    if code.startswith(FLAG) and flag:
        words = _("flag: %(flag)s") % {"flag": FLAGS.get(flag, flag)}
        return Kind(code, words.replace("%", "%%"), "", lambda facts, limit: flag in facts.flags)
    return KINDS.get(code)


def rule_words(code: str, limit: float | None) -> str:
    """A rule in words: the kind with its limit."""
    if code == BY_HAND:
        return _("by hand")
    kind = kind_of(code)
    if kind is None:
        return code
    number = "" if limit is None else f"{limit:g}"
    return str(kind.words) % {"limit": number}
