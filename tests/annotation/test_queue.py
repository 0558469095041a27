"""The queue, whatever raters do in whatever order: it ends, and nobody is asked more often than agreed."""

from collections import Counter

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from annotation.models import Campaign, Place, Rater
from annotation.places import place_withdraw
from corpus.models import Instrument
from scoring.models import Judgement
from tests.annotation.factories import CODES, NO, YES, hand_of, idle, make_campaign, make_rater, make_sitting, post
from tests.conftest import Cast

ACTIONS = st.sampled_from(["next", "judge", "leave", "change", "withdraw"])


class Queue:
    """One campaign and what its raters do, with the rules checked after every step."""

    def __init__(self, campaign: Campaign, raters: list[Rater]) -> None:
        self.campaign, self.raters = campaign, raters

    def step(self, who: int, action: str) -> None:
        rater = self.raters[who % len(self.raters)]
        getattr(self, action)(rater)
        self.check()

    def next(self, rater: Rater) -> Place | None:
        found = hand_of(self.campaign, rater)
        place = Place.objects.get(uuid=found.cards[0].place) if found.cards else None
        had = set(rater.places.exclude(pk=place.pk if place else None).values_list("item", flat=True))
        if place is not None:
            assert place.item_id not in had
            return place
        others = self.campaign.places.exclude(item__in=had)
        assert not others.filter(state=Place.State.FREE).exists()
        # Done is said only when not even a place held by somebody else could come back.
        assert found.later is others.filter(state=Place.State.HELD).exists()
        return None

    def judge(self, rater: Rater) -> None:
        place = self.next(rater)
        if place is not None:
            post(place, rater, YES, version=place.version)

    def leave(self, rater: Rater) -> None:
        """The rater goes away with an answer open, long enough."""
        for place in self.campaign.places.filter(rater=rater, state=Place.State.HELD):
            idle(place)

    def change(self, rater: Rater) -> None:
        place = self.campaign.places.filter(rater=rater, done_at__isnull=False).order_by("-done_at").first()
        if place is not None:
            post(place, rater, NO, version=place.version)

    def withdraw(self, rater: Rater) -> None:
        place = self.campaign.places.filter(rater=rater, state=Place.State.DONE).first()
        if place is not None:
            place_withdraw(place_uuid=place.uuid, user_id=rater.user_id)

    def check(self) -> None:
        live = Judgement.objects.filter(round=self.campaign.round_id, retracted_at__isnull=True)
        counts = Counter(live.values_list("answer", "criterion"))
        assert all(n <= self.campaign.raters_per_answer for n in counts.values())
        assert live.count() == len(CODES) * self.campaign.places.filter(state=Place.State.DONE).count()
        held = Counter(self.campaign.places.filter(state=Place.State.HELD).values_list("rater", flat=True))
        assert set(held.values()) <= {1}


@pytest.fixture
def crowd(cast: Cast) -> list[Rater]:
    return [make_rater(cast.study, f"rater{number}") for number in range(5)]


@given(
    k=st.integers(1, 4),
    n_raters=st.integers(1, 5),
    n_sittings=st.integers(1, 2),
    steps=st.lists(st.tuples(st.integers(0, 4), ACTIONS), max_size=20),
)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_queue_always_ends_and_never_exceeds_k(
    cast: Cast,
    instrument: Instrument,
    crowd: list[Rater],
    k: int,
    n_raters: int,
    n_sittings: int,
    steps: list[tuple[int, str]],
) -> None:
    with transaction.atomic():
        for _ in range(n_sittings):
            make_sitting(instrument)
        campaign = make_campaign(cast.study, cast.alice, k=k)
        queue = Queue(campaign, crowd[:n_raters])
        for who, action in steps:
            queue.step(who, action)
        # From any such state: if everybody goes on, it ends after at most one step for each place and rater.
        n_items = 3 * n_sittings
        for _ in range(n_items * k + 1):
            before = campaign.places.filter(state=Place.State.DONE).count()
            for rater in queue.raters:
                queue.judge(rater)
            queue.check()
            if campaign.places.filter(state=Place.State.DONE).count() == before:
                break
        else:
            pytest.fail("the queue did not end")
        for rater in queue.raters:
            found = hand_of(campaign, rater)
            assert (found.cards, found.later) == ((), False)
        taken = Counter(campaign.places.exclude(state=Place.State.FREE).values_list("item", flat=True))
        assert set(taken.values()) == {min(k, n_raters)}
        assert len(taken) == n_items
        transaction.set_rollback(True)
