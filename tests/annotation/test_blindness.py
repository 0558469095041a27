"""The same text as a person's answer and as a model's: a judge's pages, and what they read, do not differ."""

import itertools
import math
import re
import statistics
from collections.abc import Callable

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from annotation.choosing import Candidate, shuffled_within_stimuli
from annotation.models import Campaign, Item, Place, Rater, Seat
from annotation.services import adjudicator_set, campaign_close
from corpus.models import Instrument, Respondent
from scoring.models import Judgement
from tests.annotation.factories import NO, YES, form, give, hand_of, judge, make_campaign, make_sitting, post
from tests.conftest import Cast

# The tables that know who answered. A judge's page may not even ask them something harmless.
SOURCES = re.compile(r'"?(corpus_sitting|corpus_respondent|surveys_|llmruns_)')
FIRST_ID = 700_000_001
JUDGED = form(YES | {"order": 0.0})


@pytest.fixture
def both(cast: Cast, instrument: Instrument, raters: list[Rater]) -> Campaign:
    """A person and a model answered all three stimuli with the same words."""
    with connection.cursor() as cursor:  # ids that would be noticed on a page
        for table in ("corpus_answer", "corpus_sitting", "corpus_respondent"):
            cursor.execute(f"ALTER SEQUENCE {table}_id_seq RESTART WITH {FIRST_ID}")
    make_sitting(instrument, kind=Respondent.Kind.HUMAN, label="Toloka")
    make_sitting(instrument, kind=Respondent.Kind.MODEL, label="gpt-oss-120b", texts=typeset())
    return make_campaign(cast.study, cast.alice)


def typeset() -> tuple[str, ...]:
    """The same sentences as a model would write them."""
    return ("**Кошка сидит на столе.**", "«Мышь бежит от кошки».", "Дети, которые играли во дворе, были счастливы.")


def pair(campaign: Campaign) -> list[Item]:
    """The person's and the model's answer to one stimulus."""
    items = campaign.items.filter(answer__stimulus__position=1)
    return sorted(items, key=lambda item: item.answer.sitting.respondent.kind)


def levelled(text: str) -> str:
    """Without what differs between any two requests: addresses of places, csrf tokens, numbers of rows in SQL."""
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32}", "UUID", text)
    text = re.sub(r'name="csrfmiddlewaretoken" value="\w+"', "CSRF", text)
    return re.sub(r"'\d{4}-\d\d-\d\d[^']*'::timestamptz|'[a-z0-9]{32}'", "X", text)


def seen(client: Client, ask: Callable[[], object]) -> tuple[str, list[str]]:
    """What a request answers and what it asked the database."""
    with CaptureQueriesContext(connection) as queries:
        response = ask()
    sql = [re.sub(r"\d+", "N", levelled(query["sql"])) for query in queries.captured_queries]
    found = [line for line in sql if SOURCES.search(line)]
    assert found == []
    text = response.content.decode()
    assert str(FIRST_ID)[:6] not in text + str(response.headers)
    assert not any(str(blind) in text for blind in Item.objects.values_list("answer__blind_id", flat=True))
    shown = levelled(text)  # without the form's token, which may hold any three letters
    for word in ("Toloka", "gpt", "human", "model"):
        assert word not in shown
    return shown, sql


def test_judging_pages_do_not_differ(both: Campaign, raters: list[Rater]) -> None:
    client = Client()
    client.force_login(raters[0].user)
    hand_of(both, raters[0])  # a process reads what is the same for all answers of a campaign once
    results = []
    for item in pair(both):
        Place.objects.filter(rater=raters[0]).update(
            state=Place.State.FREE, rater=None, held_at=None, done_at=None, version=0, ordinal=None
        )
        Seat.objects.all().delete()
        Judgement.objects.filter(retracted_at=None).update(retracted_at=timezone.now())
        address = reverse("rate_place", args=[give(item, raters[0]).uuid])
        results.append(
            [
                seen(client, lambda address=address: client.get(address)),
                seen(client, lambda address=address: client.post(address, {"version": "0"})),  # what is missing
                seen(client, lambda address=address: client.post(address, JUDGED)),
                seen(client, lambda address=address: client.get(address)),  # judged before
                seen(client, lambda address=address: client.post(address, form(NO))),  # stale
                seen(client, lambda address=address: client.post(f"{address}withdraw/")),
                seen(client, lambda: client.get(reverse("rate_home"))),
            ]
        )
    person, model = results
    assert [page for page, _ in person] == [page for page, _ in model]
    assert [sql for _, sql in person] == [sql for _, sql in model]
    assert "кошка сидит на столе" in person[0][0]


def test_the_order_says_nothing_of_the_source() -> None:
    """Where twenty models' answers stand among twenty people's, over four hundred seeds: ranks and changes of source
    have the mean of a random order (rank-sum and runs tests, four standard errors)."""
    people, models = (
        {number: Candidate(number, 1, "", "", "ru", is_refusal=False) for number in range(start, start + 20)}
        for start in (0, 20)
    )
    ranks, changes = [], []
    for seed in range(400):
        order = [one.answer_id for one in shuffled_within_stimuli([*people.values(), *models.values()], seed)]
        ranks.append(statistics.mean(order.index(number) for number in models))
        changes.append(sum((one in models) != (other in models) for one, other in itertools.pairwise(order)))
    rank_error = math.sqrt(20 * 20 * 41 / 12) / 20 / math.sqrt(400)
    assert abs(statistics.mean(ranks) - 19.5) < 4 * rank_error
    runs_error = math.sqrt(2 * 20 * 20 * (2 * 20 * 20 - 40) / (40**2 * 39)) / math.sqrt(400)
    assert abs(statistics.mean(changes) - 20) < 4 * runs_error


def test_taking_the_next_answer_reads_no_source(both: Campaign, raters: list[Rater]) -> None:
    client = Client()
    client.force_login(raters[0].user)
    for _ in range(6):
        seen(client, lambda: client.post(reverse("rate_next", args=[both.pk])))
        judge(both, raters[0])
    seen(client, lambda: client.post(reverse("rate_next", args=[both.pk])))


def test_adjudicators_pages_do_not_differ(cast: Cast, both: Campaign, raters: list[Rater]) -> None:
    rest = list(both.items.exclude(pk__in=[item.pk for item in pair(both)]))
    for item in [*pair(both), *rest]:
        post(give(item, raters[0]), raters[0], YES)
        post(give(item, raters[1]), raters[1], NO)
    adjudicator_set(campaign=both, user=raters[2].user, actor=cast.alice)
    campaign_close(campaign=both, actor=cast.alice)
    client = Client()
    client.force_login(raters[2].user)
    decision = form(YES) | {"reason": "usual order"}
    # Before both something is decided, and after both something waits.
    client.post(reverse("decide", args=[rest[0].uuid]), decision)
    pages = []
    for item in pair(both):
        address = reverse("decide", args=[item.uuid])
        pages.append(
            [
                seen(client, lambda address=address: client.get(address)),
                seen(client, lambda address=address: client.post(address, {})),
                seen(client, lambda address=address: client.post(address, decision)),
            ]
        )
        seen(client, lambda: client.get(reverse("decide_next", args=[both.pk])))
        seen(client, lambda: client.get(reverse("decided", args=[both.pk])))
        seen(client, lambda: client.get(reverse("rate_home")))
    left = [[(re.sub(r"\d answers? left", "N left", text), sql) for text, sql in shown] for shown in pages]
    assert left[0] == left[1]
