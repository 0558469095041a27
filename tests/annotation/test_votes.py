"""Agreement and labels of a campaign."""

import krippendorff
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from annotation.models import Campaign, Rater
from annotation.votes import campaign_agreement, items_undecided, labels_of_round
from corpus.models import Instrument, Sitting
from scoring.models import Criterion
from tests.annotation.factories import NO, YES, give, judge, make_campaign, make_sitting, post
from tests.conftest import Cast


def test_refusal_is_zero_however_raters_vote(cast: Cast, instrument: Instrument, raters: list[Rater]) -> None:
    make_sitting(instrument, ("нет", "мышь бежит от кошки", None))
    campaign = make_campaign(cast.study, cast.alice, with_refusals=True)
    refusal, attempt = campaign.items.get(is_refusal=True), campaign.items.get(is_refusal=False)
    for rater in raters[:2]:
        post(give(refusal, rater), rater, YES)
    post(give(attempt, raters[0]), raters[0], YES)
    post(give(attempt, raters[1]), raters[1], NO)
    labels = labels_of_round(campaign)
    assert (labels[refusal.pk]["order"].value, labels[refusal.pk]["order"].basis) == (0.0, "refusal")
    assert items_undecided(campaign) == [attempt.pk]
    found = campaign_agreement(campaign)
    # Without the refusal one unit 1, 0: alpha = 1 - 1/1 = 0. With it 1, 1 and 1, 0: D_o = 2/4, D_e = 2·3·1/(4·3) = 1/2.
    assert [table[0].agreement.n_units for table in (found.attempts, found.with_refusals)] == [1, 2]
    assert [table[0].agreement.value for table in (found.attempts, found.with_refusals)] == [0.0, 0.0]


def test_excluded_sittings_leave_labels_and_agreement(campaign: Campaign, raters: list[Rater]) -> None:
    for rater in raters[:2]:
        for _ in range(6):
            judge(campaign, rater)
    assert campaign_agreement(campaign).attempts[0].agreement.n_units == 6
    sitting = Sitting.objects.order_by("pk").first()
    sitting.standing = Sitting.Standing.EXCLUDED
    sitting.save(update_fields=["standing"])
    found = campaign_agreement(campaign)
    assert (found.n_items, found.attempts[0].agreement.n_units) == (3, 3)


def test_graded_scale_is_ordinal(campaign: Campaign, raters: list[Rater]) -> None:
    """Ordinal alpha sees that 1 and 0.5 are nearer than 1 and 0; nominal does not."""
    Criterion.objects.filter(code="order").update(scale=[1, 0.5, 0.25, 0])
    items = list(campaign.items.order_by("position"))
    for item, (one, two) in zip(items[:4], [(1, 0.5), (0.5, 0.5), (0.25, 0), (0, 0)], strict=True):
        post(give(item, raters[0]), raters[0], YES | {"order": one})
        post(give(item, raters[1]), raters[1], YES | {"order": two})
    order = campaign_agreement(campaign).attempts[2]
    matrix = [[1, 0.5, 0.25, 0], [0.5, 0.5, 0, 0]]
    assert order.agreement.value == pytest.approx(krippendorff.alpha(matrix, level_of_measurement="ordinal"))
    assert order.agreement.value > krippendorff.alpha(matrix, level_of_measurement="nominal") + 0.3


@pytest.mark.parametrize("read", [campaign_agreement, labels_of_round, items_undecided])
def test_four_queries_whatever_the_number_of_answers(campaign: Campaign, raters: list[Rater], read: object) -> None:
    for rater in raters:
        for _ in range(6):
            judge(campaign, rater)
    with CaptureQueriesContext(connection) as queries:
        read(Campaign.objects.select_related("round").get(pk=campaign.pk))
    assert len(queries) == 5  # the campaign's own among them
