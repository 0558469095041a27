from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from studies.services import blinding_impose
from surveys.models import Arrival, Survey
from surveys.rights import receipt_issue
from surveys.watching import SittingFilter, flags_of, flow_of, sittings_listed, tasks_of
from tests.conftest import Cast
from tests.surveys.people import TEXTS, make_person, sitting_of

SENTENCE = "заклинание сидит на широком столе"


@pytest.fixture
def crowd(survey: Survey) -> Survey:
    """Eleven openings: two only looked; of nine who consented one each was screened out, did not begin, is under
    way at task 2, left at task 3, was a pilot, withdrew, was excluded for speed; two are analysed."""
    for _ in range(2):
        Arrival.objects.create(survey=survey, key=uuid4())
    make_person(survey, begun=False, state="stopped", screened_out_at=timezone.now())
    make_person(survey, begun=False, state="open")
    make_person(survey, TEXTS[:1], state="open")
    make_person(survey, [TEXTS[0], None], state="stopped")
    make_person(survey, standing="pilot")
    make_person(survey, standing="withdrawn", withdrawn_at=timezone.now())
    fast = sitting_of(make_person(survey, standing="excluded"))
    fast.standing_reason = "too fast"
    fast.save(update_fields=["standing_reason"])
    first = make_person(survey, [TEXTS[0], None, TEXTS[2]])
    make_person(survey, timing={"duration_ms": 8_000})
    Arrival.objects.create(survey=survey, key=first.start_key)  # opened and consented is one opening
    return survey


def test_the_flow_adds_up(crowd: Survey) -> None:
    flow = flow_of([crowd.pk])
    assert (flow.opened, flow.not_consented, flow.consented) == (11, 2, 9)
    assert (flow.screened_out, flow.not_started, flow.started) == (1, 1, 7)
    assert (flow.under_way, flow.left, flow.finished) == (1, 1, 5)
    assert (flow.pilot, flow.withdrawn, flow.excluded, flow.analysed) == (1, 1, (("too fast", 1),), 2)
    assert (flow.withdrawn_in_all, flow.excluded_in_all) == (1, 1)


def test_nobody_came(survey: Survey) -> None:
    flow = flow_of([survey.pk])
    assert flow.opened == flow.analysed == 0 and flow_of([]).opened == 0


def test_imported_answers_have_started_without_a_showing(survey: Survey) -> None:
    person = make_person(survey)
    sitting_of(person).exposures.all().delete()
    flow = flow_of([survey.pk])
    assert (flow.opened, flow.started, flow.analysed) == (1, 1, 1)


def test_tasks(crowd: Survey) -> None:
    """Counted people and the pilot: the one under way (task 1), the one who left (1, 2 declined), three finished."""
    first, second, third = tasks_of(crowd).rows
    assert [(task.answered, task.declined) for task in (first, second, third)] == [(5, 0), (4, 2), (3, 0)]
    assert [(task.stopped, task.waiting) for task in (first, second, third)] == [(0, 0), (0, 1), (1, 0)]
    assert (first.timed, first.median_seconds) == (5, 4.0)
    assert (third.timed, third.median_seconds) == (3, 4.0)
    assert tasks_of(crowd).stops == []


def test_where_people_stopped_with_an_order_of_their_own(survey: Survey) -> None:
    Survey.objects.filter(pk=survey.pk).update(order_scheme="within_bands")
    survey.refresh_from_db()
    for turned in (False, True):
        sitting = sitting_of(make_person(survey, TEXTS[:1], state="stopped"))
        if turned:
            sitting.order = sitting.order[:1] + sitting.order[:0:-1]
            sitting.save(update_fields=["order"])
    tasks = tasks_of(survey)
    assert [task.stopped for task in tasks.rows] == [0, 1, 1], "by task: the one that was next for each"
    assert [stop.stopped for stop in tasks.stops] == [0, 2, 0], "by number: the second for both"


def test_undefined_medians_are_no_number(survey: Survey, cast: Cast) -> None:
    assert tasks_of(survey).rows[0].median_seconds is None
    make_person(survey, timing={"duration_ms": None})
    assert (tasks_of(survey).rows[0].timed, tasks_of(survey).rows[0].median_seconds) == (0, None)
    assert "not measured" in cast.client(cast.alice).get(watch(survey)).content.decode()


def test_flags(survey: Survey) -> None:
    make_person(survey, flags=["browser_again", "id_elsewhere"], timing={"pastes": 1, "translated": True})
    make_person(survey, flags=["browser_again"], timing={"away_ms": 150_000})
    make_person(survey, flags=["odd one"])
    found = {row.code: row.n for row in flags_of(survey)}
    assert found == {"browser_again": 2, "id_elsewhere": 1, "odd one": 1, "translated": 1, "pasted": 1, "away": 1}
    for flag, n in found.items():
        assert len(sittings_listed(survey, SittingFilter(flag=flag))) == n, flag


# --- pages -----------------------------------------------------------------------------------------------------------


def watch(survey: Survey, tail: str = "watch/") -> str:
    return f"/studies/ours/surveys/{survey.pk}/{tail}"


def test_the_page_and_its_live_part(cast: Cast, crowd: Survey) -> None:
    client = cast.client(cast.alice)
    page = client.get(watch(crowd)).content.decode()
    assert "Stopped here" in page and "9 sittings" in page
    live = client.get(watch(crowd, "watch/?live=1")).content.decode()
    assert 'id="live"' in live and 'id="sittings"' not in live
    assert "1 sitting ·" in client.get(watch(crowd, "watch/?standing=excluded")).content.decode()
    assert "No sitting fits" in client.get(watch(crowd, "watch/?flag=pasted")).content.decode()
    assert client.get(watch(crowd, "watch/?state=nonsense")).status_code == 404


@pytest.mark.parametrize("tail", ["watch/", "watch/?live=1", "watch/?flag=check_failed"])
def test_it_costs_the_same_however_many_people(cast: Cast, survey: Survey, tail: str) -> None:
    client = cast.client(cast.alice)
    counts = []
    for people in (1, 6):
        for _ in range(people):
            make_person(survey, flags=["browser_again"])
        with CaptureQueriesContext(connection) as queries:
            assert client.get(watch(survey, tail)).status_code == 200
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_a_sitting_with_its_texts(cast: Cast, survey: Survey) -> None:
    person = make_person(survey, [SENTENCE, None], state="stopped", flags=["browser_again"], external_id="P-77")
    address = watch(survey, f"sittings/{sitting_of(person).pk}/")
    client = cast.client(cast.alice)
    page = client.get(address).content.decode()
    assert SENTENCE in page and "declined" in page and "shown, not answered" in page and "P-77" in page
    assert survey.consent_document.sha256[:12] in page
    blinding_impose(user=cast.alice, study=cast.study, cause="campaign 1")
    page = client.get(address).content.decode()
    assert SENTENCE not in page and "declined" in page
    assert SENTENCE not in client.get(watch(survey)).content.decode()


def test_hostile_text_is_text(cast: Cast, survey: Survey) -> None:
    person = make_person(survey, ["<script>alert(1)</script> сидит на столе", *TEXTS[1:]])
    page = cast.client(cast.alice).get(watch(survey, f"sittings/{sitting_of(person).pk}/")).content.decode()
    assert "<script>alert" not in page and "&lt;script&gt;alert" in page


def test_somebody_is_found_by_what_they_name(cast: Cast, survey: Survey) -> None:
    person = make_person(survey, external_id="P-77", visit_id="V-1", completion_code="ABC23456")
    make_person(survey)
    client = cast.client(cast.alice)
    expected = watch(survey, f"sittings/{sitting_of(person).pk}/")
    code = receipt_issue(participant=person)
    for named in ("P-77", " V-1 ", "abc23456", code.lower(), str(person.respondent.public_id)):
        assert client.post(watch(survey, "find/"), {"code": named})["Location"] == expected, named
    for named in ("", "nobody", "\x00", "A" * 28):
        assert client.post(watch(survey, "find/"), {"code": named})["Location"] == watch(survey)


@pytest.mark.parametrize("tail", ["watch/", "exclusion/", "sittings/{sitting}/", "find/"])
def test_it_refuses_others(cast: Cast, survey: Survey, tail: str) -> None:
    person = make_person(survey, external_id="P-77")
    tail = tail.format(sitting=sitting_of(person).pk)
    method = "post" if tail == "find/" else "get"
    for user in (cast.bob, cast.rita):
        assert getattr(cast.client(user), method)(watch(survey, tail), {"code": "P-77"}).status_code == 404
    theirs = watch(survey, tail).replace("/ours/", "/theirs/")
    assert getattr(cast.client(cast.bob), method)(theirs, {"code": "P-77"}).status_code == 404
    assert getattr(Client(), method)(watch(survey, tail))["Location"].startswith("/login/")
