"""What opening a campaign would come to: exact counts, and what the study's raters' pace makes of them."""

from dataclasses import dataclass

from annotation.choosing import EVERYTHING, Outside, Selection, outside, pace_of, texts_of, without_label
from annotation.layout import PLAIN, Layout, Plan, laid_out
from annotation.models import Reference
from annotation.selectors import raters_expected
from corpus.display import display_text
from studies.models import Study


@dataclass(frozen=True)
class Preview:
    """Counts are exact; what one rater gets is an average, since raters take what is there."""

    layout: Layout
    outside: Outside
    texts: int
    raters: int
    raters_per_answer: int
    training: int
    gold: int
    pace: float | None  # seconds for an answer; None: too little is known
    repeat_distance: int
    is_narrowed_by_source: bool  # whoever opens it knows whose answers these are
    is_narrowed_by_doubt: bool  # and of these, that automatic judges were in doubt
    unlabelled: int  # counted references that are left out of rating and that nobody has rated
    primed: int  # answers to rate whose text raters are told the right values of, as they train

    @property
    def answers(self) -> int:
        return len(self.layout.order)

    @property
    def digest(self) -> str:
        return self.layout.digest()

    @property
    def left_out_references(self) -> int:
        return len(self.layout.found.references)

    @property
    def sampled_from(self) -> int | None:
        """How many a sample was drawn from; None where all are taken."""
        found = self.layout.found.found
        return found if found > self.answers else None

    @property
    def places(self) -> int:
        return self.layout.n_items * self.raters_per_answer

    @property
    def per_rater(self) -> int | None:
        """About how many answers each rater judges; None where nobody is there to judge."""
        return min(self.layout.n_items, -(-self.places // self.raters)) if self.raters else None

    @property
    def has_gold(self) -> bool:
        return self.layout.n_references(Reference.Purpose.GOLD) > 0

    @property
    def repeats_per_rater(self) -> int:
        """About how many: of what one rater judges, the last `repeat_distance` come too late to be repeated."""
        eligible = self.layout.n_items - self.repeat_distance
        if not self.per_rater or eligible <= 0:
            return 0
        return round(len(self.layout.repeated) * max(0, self.per_rater - self.repeat_distance) / eligible)

    @property
    def hours_each(self) -> float | None:
        return None if self.hours is None else self.hours / self.raters

    @property
    def minutes(self) -> int | None:
        """Of all raters together, where hours would be too coarse: under two of them, or a rater's share under one."""
        if self.hours is None or self.hours_each is None or (self.hours >= 2 and self.hours_each >= 0.1):
            return None
        return max(1, round(60 * self.hours))

    @property
    def hours(self) -> float | None:
        """Of all raters together. Gold and repeats are those that each of them would meet."""
        if self.pace is None or self.per_rater is None:
            return None
        checks = self.raters * (self.training + self.gold + self.repeats_per_rater)
        return (self.places + checks) * self.pace / 3600

    @property
    def repeats_never_come(self) -> bool:
        """A rater judges fewer answers than must lie between an answer and its repeat."""
        return bool(self.layout.repeated) and self.per_rater is not None and self.repeat_distance >= self.per_rater


def campaign_preview(
    study: Study,
    selection: Selection = EVERYTHING,
    plan: Plan = PLAIN,
    *,
    seed: int = 0,
    raters_per_answer: int = 1,
) -> Preview:
    """Some twelve queries, whatever the number of answers. Raises what `laid_out` does."""
    layout = laid_out(study, selection, plan, seed=seed, raters_per_answer=raters_per_answer)
    raters = raters_expected(study)
    gold = layout.n_references(Reference.Purpose.GOLD)
    per_rater = min(layout.n_items, -(-layout.n_items * raters_per_answer // raters)) if raters else 0
    return Preview(
        layout=layout,
        outside=outside(study, selection),
        texts=texts_of(layout.order),
        raters=raters,
        raters_per_answer=raters_per_answer,
        training=layout.n_references(Reference.Purpose.TRAINING),
        gold=min(gold, per_rater // plan.gold_every) if plan.gold_every else 0,
        pace=pace_of(study),
        repeat_distance=plan.repeat_distance,
        is_narrowed_by_source=bool(selection.kind or selection.sources),
        is_narrowed_by_doubt=selection.doubt is not None,
        unlabelled=without_label(layout.found.references),
        primed=_primed(layout),
    )


def _primed(layout: Layout) -> int:
    told = {
        (one.answer.stimulus_id, display_text(one.answer.text, lower_case=one.answer.stimulus.instrument.lower_case))
        for one in layout.references
        if one.purpose == Reference.Purpose.TRAINING
    }
    return sum((candidate.stimulus_id, candidate.display_text) in told for candidate in layout.order)
