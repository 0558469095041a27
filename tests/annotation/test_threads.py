"""What happens at the same moment, with real connections."""

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, connections, transaction
from django.db.models import Count
from django.test import Client
from django.urls import reverse

from annotation.errors import PlaceStaleError, TitleTakenError
from annotation.guideline_services import guideline_write
from annotation.models import Campaign, Guideline, Place, Rater, Reference
from annotation.places import Saved, place_judge
from annotation.queue import AHEAD, Hand, places_hold
from annotation.reference_services import Right, reference_add, reference_change, state_of
from annotation.services import campaign_close, rater_ensure
from annotation.votes import campaign_agreement
from corpus.models import Instrument
from scoring.models import Judgement
from scoring.services import PAPER_RUBRIC
from tests.annotation.factories import (
    NO,
    YES,
    form,
    give,
    judge,
    live,
    make_campaign,
    make_rater,
    make_sitting,
    many_answers,
    post,
    take,
)
from tests.conftest import Cast

pytestmark = pytest.mark.django_db(transaction=True)


def at_once(*calls: Callable[[], object]) -> list[object]:
    """Run the calls in threads that start together; each has its own connection. Returns results or errors."""
    barrier = threading.Barrier(len(calls))

    def run(call: Callable[[], object]) -> object:
        try:
            barrier.wait(timeout=30)
            return call()
        except Exception as error:
            return error
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def signed_in(rater: Rater) -> Client:
    client = Client(headers={"accept-language": "en"})
    client.force_login(rater.user)
    return client


def test_sg5_double_click(campaign: Campaign, raters: list[Rater]) -> None:
    """The same form twice at once; then a change in a second tab; then the stale first tab again."""
    place = take(campaign, raters[0])
    post(give(place.item, raters[1]), raters[1])
    address = reverse("rate_place", args=[place.uuid])
    tabs = [signed_in(raters[0]) for _ in range(2)]
    clicks = [lambda client=client: client.post(address, form(YES)) for client in tabs]
    assert [response.status_code for response in at_once(*clicks)] == [302, 302]
    mine = Judgement.objects.filter(judge=raters[0].judge)
    assert mine.count() == 3
    assert campaign.places.filter(rater=raters[0], state=Place.State.HELD).count() == AHEAD  # not twice as many
    pairable = campaign_agreement(campaign).attempts[0].agreement.n_pairable
    assert pairable == 2

    second_tab = signed_in(raters[0])
    assert 'name="version" value="1"' in second_tab.get(address).content.decode()
    assert second_tab.post(address, form(YES | {"order": 0.0}, version=1)).status_code == 302
    assert mine.filter(retracted_at__isnull=False).count() == 1  # the change is kept in the history

    stale = signed_in(raters[0]).post(address, form(YES, version=0))
    assert stale.status_code == 409
    assert "judged in another window" in stale.content.decode()
    assert mine.filter(retracted_at__isnull=True).count() == 3
    assert mine.get(retracted_at__isnull=True, criterion__code="order").value == 0.0
    assert campaign_agreement(campaign).attempts[0].agreement.n_pairable == pairable


def test_two_different_judgements_at_once_leave_one(campaign: Campaign, raters: list[Rater]) -> None:
    place = take(campaign, raters[0])

    def send(values: dict[str, float]) -> Callable[[], object]:
        return lambda: place_judge(place_uuid=place.uuid, user_id=raters[0].user_id, values=values, version=0)

    results = at_once(send(YES), send(NO))
    assert sum(isinstance(result, PlaceStaleError) for result in results) == 1
    assert len(set(Judgement.objects.values_list("value", flat=True))) == 1
    assert live(campaign) == 3


def test_two_tabs_of_one_rater_take_one_place(campaign: Campaign, raters: list[Rater]) -> None:
    def ask() -> object:
        return places_hold(campaign_id=campaign.pk, rater_id=raters[0].pk, ahead=1).cards[0].place

    results = at_once(*[ask] * 6)
    assert len(set(results)) == 1
    assert campaign.places.filter(state=Place.State.HELD).count() == 1


def test_places_locked_at_the_moment_are_not_taken_for_done(
    cast: Cast, instrument: Instrument, raters: list[Rater]
) -> None:
    """One place is left, and somebody who will not keep it has it locked: the other waits and gets it."""
    make_sitting(instrument)
    campaign = make_campaign(cast.study, cast.alice, k=1)
    for _ in range(2):
        judge(campaign, raters[0])
    locked = threading.Event()

    def hold() -> None:
        with transaction.atomic():
            Place.objects.select_for_update().get(campaign=campaign, state=Place.State.FREE)
            locked.set()
            until_somebody_waits_for_us()

    def ask() -> Hand:
        locked.wait(timeout=30)
        return places_hold(campaign_id=campaign.pk, rater_id=raters[1].pk, ahead=1)

    _, found = at_once(hold, ask)
    assert found.cards


def until_somebody_waits_for_us() -> None:
    """Until another connection waits for a lock of this one. The database is asked, not a clock.

    pg_locks and not pg_stat_activity, of which a transaction keeps its first look.
    """
    for _ in range(10_000):
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid))"
            )
            if cursor.fetchone()[0]:
                return
    pytest.fail("nobody waited for the lock")


def test_last_place_goes_to_one_of_two(cast: Cast, instrument: Instrument, raters: list[Rater]) -> None:
    make_sitting(instrument)
    campaign = make_campaign(cast.study, cast.alice, k=1)
    for _ in range(2):
        judge(campaign, raters[0])
    results = at_once(
        *[
            lambda rater=rater: places_hold(campaign_id=campaign.pk, rater_id=rater.pk, ahead=1)
            for rater in (raters[1], raters[2])
        ]
    )
    assert Counter((result.cards == (), result.later) for result in results) == {(False, False): 1, (True, True): 1}


def test_two_clicks_open_one_campaign(cast: Cast, instrument: Instrument) -> None:
    make_sitting(instrument)
    results = at_once(*[lambda: make_campaign(cast.study, cast.alice)] * 2)
    assert sum(isinstance(result, TitleTakenError) for result in results) == 1
    assert Campaign.objects.count() == 1


def test_new_raters_at_once_get_different_pseudonyms(cast: Cast, campaign: Campaign) -> None:
    users = [make_rater(cast.other_study, f"new{number}").user for number in range(4)]
    for user in users:
        cast.study.memberships.create(user=user, role="rater")
    calls = [lambda user=user: rater_ensure(user=user, study=cast.study, actor=None).pseudonym for user in users * 2]
    assert sorted(set(at_once(*calls))) == ["R5", "R6", "R7", "R8"]


def test_closing_while_judging_loses_nothing_that_was_accepted(
    cast: Cast, campaign: Campaign, raters: list[Rater]
) -> None:
    places = [(take(campaign, rater), rater) for rater in raters]
    sends = [
        lambda place=place, rater=rater: place_judge(
            place_uuid=place.uuid, user_id=rater.user_id, values=YES, version=0
        )
        for place, rater in places
    ]
    results = at_once(*sends, lambda: campaign_close(campaign=campaign, actor=cast.alice))
    accepted = sum(isinstance(result, Saved) for result in results)
    assert live(campaign) == 3 * accepted
    assert campaign.places.filter(state=Place.State.DONE).count() == accepted
    assert {type(result).__name__ for result in results} <= {"Saved", "CampaignClosedError", "NoneType"}


def test_thirty_raters_at_once_on_three_hundred_answers(cast: Cast, instrument: Instrument) -> None:
    """Exactly 900 judgements per criterion, three different raters at each answer."""
    many_answers(instrument, sittings=100)
    raters = [make_rater(cast.study, f"rater{number}") for number in range(30)]
    campaign = make_campaign(cast.study, cast.alice)
    clients = [signed_in(rater) for rater in raters]

    def work(client: Client) -> list[int]:
        statuses = []
        response = client.post(reverse("rate_next", args=[campaign.pk]))
        while response.url != reverse("rate_home"):
            response = client.post(response.url, form(NO if len(statuses) % 3 else YES))
            statuses.append(response.status_code)
            if response.status_code != 302:
                break
        return statuses

    results = at_once(*[lambda client=client: work(client) for client in clients])
    statuses = [status for result in results for status in result]
    assert Counter(statuses) == {302: 900}
    judgements = Judgement.objects.filter(round=campaign.round_id)
    per_criterion = judgements.values_list("criterion__code").annotate(n=Count("pk")).order_by("criterion__code")
    assert list(per_criterion) == [("grammatical", 900), ("logical", 900), ("order", 900)]
    per_answer = judgements.filter(criterion__code="order").values("answer").annotate(n=Count("judge", distinct=True))
    assert {row["n"] for row in per_answer} == {3}
    assert not campaign.places.exclude(state=Place.State.DONE).exists()


def test_two_researchers_make_one_reference_of_an_answer(cast: Cast, instrument: Instrument) -> None:
    answer = make_sitting(instrument).answers.get(stimulus__position=1)

    def add(values: dict[str, float]) -> Callable[[], object]:
        right = Right(purpose="gold", values=values)
        return lambda: reference_add(
            study=cast.study, answer=answer, rubric=PAPER_RUBRIC, right=right, actor=cast.alice
        )

    results = at_once(add(YES), add(NO))
    assert sorted(type(result).__name__ for result in results) == ["Reference", "ReferenceExistsError"]
    assert Reference.objects.count() == 1


def test_two_changes_of_a_reference_are_one_change_and_one_refusal(cast: Cast, instrument: Instrument) -> None:
    answer = make_sitting(instrument).answers.get(stimulus__position=1)
    right = Right(purpose="gold", values=YES)
    made = reference_add(study=cast.study, answer=answer, rubric=PAPER_RUBRIC, right=right, actor=cast.alice)
    seen = state_of(made)

    def change(explanation: str) -> Callable[[], object]:
        said = Right(purpose="gold", values=NO, explanation=explanation)
        return lambda: reference_change(reference=made, right=said, seen=seen, actor=cast.alice)

    results = at_once(change("одно"), change("другое"))
    assert sorted(type(result).__name__ for result in results) == ["Reference", "ReferenceStaleError"]


def test_two_authors_write_one_new_version_of_the_rules(cast: Cast) -> None:
    def write(text: str) -> Callable[[], object]:
        return lambda: guideline_write(
            study=cast.study, rubric_slug=PAPER_RUBRIC, text=text, note="", seen="0", actor=cast.alice
        )

    results = at_once(write("одни"), write("другие"))
    assert sorted(type(result).__name__ for result in results) == ["Guideline", "GuidelineStaleError"]
    assert Guideline.objects.count() == 1
