"""What is the same for every rater and every answer of a campaign, kept by each process."""

from dataclasses import dataclass
from threading import Lock

from annotation.models import Campaign, Purpose
from scoring.models import Criterion
from studies.models import Study

MAX_CAMPAIGNS_KEPT = 100


@dataclass(frozen=True)
class Facts:
    """Fixed at the opening of a campaign. Whether it is still open is not among them, nor is any text."""

    campaign_id: int
    study: Study
    rounds: dict[str, int]  # by purpose
    criteria: tuple[Criterion, ...]
    guideline_version: int
    seed: int
    repeat_distance: int
    gold_every: int

    @property
    def has_checks(self) -> bool:
        return len(self.rounds) > 1


_facts: dict[int, Facts] = {}
_facts_lock = Lock()


def facts_of(campaign_id: int, round_id: int) -> Facts:
    """Two queries the first time in a process, else none. `round_id` is the campaign's, as just read by the caller."""
    known = _facts.get(campaign_id)
    if known is not None and known.rounds[Purpose.RATING] == round_id:
        return known
    campaign = Campaign.objects.select_related("round", "study").get(pk=campaign_id)
    rounds = {
        Purpose.RATING: campaign.round_id,
        Purpose.TRAINING: campaign.training_round_id,
        Purpose.GOLD: campaign.gold_round_id,
        Purpose.REPEAT: campaign.repeat_round_id,
    }
    facts = Facts(
        campaign_id=campaign.pk,
        study=campaign.study,
        rounds={str(purpose): pk for purpose, pk in rounds.items() if pk is not None},
        criteria=tuple(campaign.criteria.order_by("position")),
        guideline_version=campaign.round.guideline_version or 0,
        seed=campaign.seed,
        repeat_distance=campaign.repeat_distance,
        gold_every=campaign.gold_every,
    )
    with _facts_lock:
        if len(_facts) >= MAX_CAMPAIGNS_KEPT:
            _facts.clear()
        _facts[campaign_id] = facts
    return facts
