import math

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from corpus.models import Sitting
from studies.models import AuditEntry
from surveys.exclusion import KINDS, Facts, kind_of, rule_words
from surveys.exclusion_services import (
    ListChangedError,
    NotExcludableError,
    list_digest,
    rule_apply,
    rule_apply_again,
    rule_lift,
    sitting_exclude,
)
from surveys.facts import facts_of, sittings_taken
from surveys.models import Exclusion, ExclusionRule, Question, QuestionResponse, Survey
from tests.conftest import Cast
from tests.surveys.people import make_person, sitting_of

GOOD = Facts(is_finished=True, is_gone=False, total_minutes=10, median_seconds=20, away_minutes=0)


@pytest.mark.parametrize(
    ("code", "limit", "taken", "spared"),
    [
        ("total_faster", 5, {"total_minutes": 4.9}, {"total_minutes": 5.0}),
        ("task_faster", 5, {"median_seconds": 4.9}, {"median_seconds": 5.0}),
        ("refusals", 2, {"refusals": 3}, {"refusals": 2}),
        ("checks_failed", 1, {"checks_failed": 1}, {"checks_failed": 0}),
        ("translated", 1, {"translated": 1}, {"translated": 0}),
        ("pasted", 3, {"pasted": 3}, {"pasted": 2}),
        ("away_longer", 15, {"away_minutes": 15.1}, {"away_minutes": 15.0}),
        ("unfinished", None, {"is_finished": False, "is_gone": True}, {"is_finished": False, "is_gone": False}),
        ("flag.browser_again", None, {"flags": frozenset({"browser_again"})}, {"flags": frozenset({"browser"})}),
    ],
)
def test_what_each_kind_takes(code: str, limit: float | None, taken: dict, spared: dict) -> None:
    kind = kind_of(code)
    assert kind
    for changed, expected in ((taken, True), (spared, False), ({}, False)):
        values = {name: getattr(GOOD, name) for name in Facts.__dataclass_fields__} | changed
        assert kind.takes(Facts(**values), limit or 0) is expected


@pytest.mark.parametrize("code", ["total_faster", "task_faster", "away_longer"])
def test_what_is_not_known_takes_nobody(code: str) -> None:
    kind = KINDS[code]
    unknown = Facts(is_finished=True, is_gone=False)
    assert kind.fact(unknown) is None
    assert not any(kind.takes(unknown, limit) for limit in (0, 1, math.inf))


@pytest.mark.parametrize("code", ["", "flag.", "by_hand", "nobody"])
def test_there_is_no_such_kind(code: str) -> None:
    assert kind_of(code) is None


def test_every_kind_has_words_with_its_limit() -> None:
    for code, kind in KINDS.items():
        words = rule_words(code, 2.5 if kind.unit else None)
        assert ("2.5" in words) is bool(kind.unit) and "%" not in words
    assert "100%" in rule_words("flag.100%", None)


# --- facts of real sittings ------------------------------------------------------------------------------------------


def test_facts_are_read_from_what_is_recorded(survey: Survey) -> None:
    person = make_person(survey, ["да", None, "дети играли во дворе"], timing={"away_ms": 60_000, "pastes": 1})
    question = Question.objects.create(
        survey=survey, position=1, place="after", code="check", kind="short", text={"ru": "?"}, expected="кошка"
    )
    QuestionResponse.objects.create(participant=person, question=question, value="собака")
    facts = facts_of(survey)[sitting_of(person).pk]
    assert facts.refusals == 2, "one declined, one of a single word where three are asked"
    assert (facts.checks_failed, facts.pasted, facts.translated) == (1, 3, 0)
    assert facts.median_seconds == 4.0 and facts.away_minutes == 3.0
    assert facts.total_minutes == pytest.approx(10, abs=0.5)


def test_without_times_nothing_is_known(survey: Survey) -> None:
    person = make_person(survey, timing={"duration_ms": None, "away_ms": None}, minutes=0)
    facts = facts_of(survey)[sitting_of(person).pk]
    assert facts.median_seconds is facts.away_minutes is None


def test_who_is_still_at_it_has_not_left(survey: Survey) -> None:
    here = make_person(survey, ["кошка сидит на столе"], state="open", minutes=5)
    left = make_person(survey, ["кошка сидит на столе"], state="stopped")
    gone = make_person(survey, [], state="open", minutes=survey.hold_minutes + 1, begun=False)
    assert set(sittings_taken(survey, "unfinished", None)) == {sitting_of(left).pk, sitting_of(gone).pk}
    assert not facts_of(survey)[sitting_of(here).pk].is_gone


# --- applying and lifting --------------------------------------------------------------------------------------------


def apply(survey: Survey, kind: str, limit: float | None, actor: object, reason: str = "too fast") -> ExclusionRule:
    seen = list_digest(sittings_taken(survey, kind, limit))
    return rule_apply(survey=survey, kind=kind, limit=limit, reason=reason, seen=seen, actor=actor).rule


def standing(person: object) -> tuple[str, str]:
    sitting = sitting_of(person)
    return sitting.standing, sitting.standing_reason


def test_a_rule_takes_and_lifting_gives_back(cast: Cast, survey: Survey) -> None:
    quick, slow = make_person(survey, minutes=1), make_person(survey, minutes=30)
    left = make_person(survey, ["кошка сидит на столе"], state="stopped")
    Sitting.objects.filter(pk=sitting_of(left).pk).update(standing_reason="left by the participant")
    first = apply(survey, "total_faster", 5, cast.alice)
    second = apply(survey, "unfinished", None, cast.alice, "did not finish")
    assert standing(quick) == ("excluded", "too fast")
    assert standing(left) == ("excluded", "did not finish")
    assert standing(slow) == ("counted", "")
    assert rule_lift(rule=second, actor=cast.alice) == 1
    assert standing(left) == ("counted", "left by the participant"), "what stood before stands again"
    assert rule_lift(rule=first, actor=cast.alice) == 1 and rule_lift(rule=first, actor=cast.alice) == 0
    assert standing(quick) == ("counted", "")
    actions = AuditEntry.objects.filter(action__startswith="exclusion").values_list("action", flat=True)
    assert sorted(actions) == ["exclusion_apply", "exclusion_apply", "exclusion_lift", "exclusion_lift"]


@pytest.mark.parametrize("first_lifted", [0, 1])
def test_two_rules_hold_until_both_are_lifted(cast: Cast, survey: Survey, first_lifted: int) -> None:
    person = make_person(survey, minutes=1, timing={"pastes": 1})
    Sitting.objects.filter(pk=sitting_of(person).pk).update(standing_reason="as it was")
    rules = [
        apply(survey, "total_faster", 5, cast.alice, "too fast"),
        apply(survey, "pasted", 1, cast.alice, "pasted"),
    ]
    assert rule_lift(rule=rules[first_lifted], actor=cast.alice) == 0
    assert standing(person) == ("excluded", rules[1 - first_lifted].reason), "the reason of the rule that holds"
    assert rule_lift(rule=rules[1 - first_lifted], actor=cast.alice) == 1
    assert standing(person) == ("counted", "as it was")


@pytest.mark.parametrize("first_lifted", [0, 1])
def test_who_was_excluded_where_they_come_from_stays_so_when_all_is_lifted(
    cast: Cast, survey: Survey, first_lifted: int
) -> None:
    person = make_person(survey, minutes=1, standing="excluded")
    sitting = sitting_of(person)
    Sitting.objects.filter(pk=sitting.pk).update(standing_reason="as it came")
    by_hand = sitting_exclude(survey=survey, sitting_id=sitting.pk, reason="knows it", actor=cast.alice).rule
    rules = [by_hand, apply(survey, "total_faster", 5, cast.alice, "too fast")]
    assert rules[1].exclusions.filter(sitting=sitting).exists()
    assert rule_lift(rule=rules[first_lifted], actor=cast.alice) == 0
    assert rule_lift(rule=rules[1 - first_lifted], actor=cast.alice) == 0
    assert standing(person) == ("excluded", "as it came")


def test_newcomers_are_taken_only_when_asked(cast: Cast, survey: Survey) -> None:
    make_person(survey, minutes=1)
    rule = apply(survey, "total_faster", 5, cast.alice)
    late = make_person(survey, minutes=1)
    assert standing(late)[0] == "counted"
    page = cast.client(cast.alice).get(f"/studies/ours/surveys/{survey.pk}/exclusion/").content.decode()
    assert "Take 1 more" in page
    assert rule_apply_again(rule=rule, actor=cast.alice).newly == 1
    assert standing(late) == ("excluded", "too fast")
    entries = AuditEntry.objects.count()
    assert rule_apply_again(rule=rule, actor=cast.alice).taken == 0
    assert AuditEntry.objects.count() == entries
    assert Exclusion.objects.filter(rule=rule).count() == 2
    rule_lift(rule=rule, actor=cast.alice)
    assert rule_apply_again(rule=rule, actor=cast.alice).taken == 0, "a rule that is lifted takes nobody"


def test_pilots_and_withdrawn_sittings_stay_what_they_are(cast: Cast, survey: Survey) -> None:
    people = [make_person(survey, minutes=1, standing=one) for one in ("pilot", "withdrawn")]
    rule = apply(survey, "total_faster", 5, cast.alice)
    assert not rule.exclusions.exists()
    for person in people:
        with pytest.raises(NotExcludableError):
            sitting_exclude(survey=survey, sitting_id=sitting_of(person).pk, reason="no", actor=cast.alice)
    assert [standing(person)[0] for person in people] == ["pilot", "withdrawn"]


def test_lifting_does_not_bring_back_who_has_withdrawn(cast: Cast, survey: Survey) -> None:
    person = make_person(survey, minutes=1)
    rule = apply(survey, "total_faster", 5, cast.alice)
    Sitting.objects.filter(pk=sitting_of(person).pk).update(standing="withdrawn", standing_reason="receipt")
    assert rule_lift(rule=rule, actor=cast.alice) == 0
    assert standing(person) == ("withdrawn", "receipt")


def test_by_hand_twice_is_once(cast: Cast, survey: Survey) -> None:
    person = make_person(survey)
    for _ in range(2):
        sitting_exclude(survey=survey, sitting_id=sitting_of(person).pk, reason="knows the test", actor=cast.alice)
    rule = ExclusionRule.objects.get()
    assert standing(person) == ("excluded", "knows the test")
    rule_lift(rule=rule, actor=cast.alice)
    assert standing(person) == ("counted", "")


def test_only_whom_the_preview_showed(cast: Cast, survey: Survey) -> None:
    make_person(survey, minutes=1)
    seen = list_digest(sittings_taken(survey, "total_faster", 5))
    make_person(survey, minutes=1)
    with pytest.raises(ListChangedError):
        rule_apply(survey=survey, kind="total_faster", limit=5, reason="fast", seen=seen, actor=cast.alice)
    assert not ExclusionRule.objects.exists()


# --- pages -----------------------------------------------------------------------------------------------------------


def test_a_researcher_previews_applies_and_lifts(cast: Cast, survey: Survey) -> None:
    person = make_person(survey, minutes=1)
    make_person(survey, minutes=30)
    client = cast.client(cast.alice)
    base = f"/studies/ours/surveys/{survey.pk}/exclusion/"
    page = client.get(f"{base}?kind=total_faster&limit=5").content.decode()
    assert "The rule takes 1 sitting of 2" in page and str(person.respondent.public_id)[:8] in page
    assert standing(person)[0] == "counted", "a preview changes nothing"
    seen = list_digest([sitting_of(person).pk])
    form = {"kind": "total_faster", "limit": "5", "seen": seen}
    assert client.post(base + "apply/", {**form, "reason": ""}).status_code == 400
    assert client.post(base + "apply/", {**form, "reason": "too fast", "seen": "other"}).status_code == 409
    assert client.post(base + "apply/", {**form, "reason": "too fast"}).status_code == 302
    assert standing(person)[0] == "excluded"
    rule = ExclusionRule.objects.get()
    client.post(f"{base}{rule.pk}/lift/")
    assert standing(person)[0] == "counted"


@pytest.mark.parametrize(
    "query", ["kind=total_faster", "kind=refusals&limit=1.5", "kind=total_faster&limit=-1", "kind=x&limit=1"]
)
def test_a_rule_that_makes_no_sense_is_not_previewed(cast: Cast, survey: Survey, query: str) -> None:
    response = cast.client(cast.alice).get(f"/studies/ours/surveys/{survey.pk}/exclusion/?{query}")
    assert response.status_code == 200 and 'id="preview"' not in response.content.decode()
    assert 'class="text-danger' in response.content.decode()


@pytest.mark.parametrize(
    "tail", ["exclusion/apply/", "exclusion/{rule}/again/", "exclusion/{rule}/lift/", "sittings/{sitting}/exclude/"]
)
def test_it_refuses_others(cast: Cast, survey: Survey, tail: str) -> None:
    quick, late = make_person(survey, minutes=1), make_person(survey, minutes=30)
    rule = apply(survey, "total_faster", 5, cast.alice)
    Sitting.objects.filter(pk=sitting_of(late).pk).update(started_at=sitting_of(late).finished_at)
    tail = tail.format(rule=rule.pk, sitting=sitting_of(late).pk)
    data = {"kind": "unfinished", "seen": list_digest([]), "reason": "x"}
    for user in (cast.bob, cast.rita):
        assert cast.client(user).post(f"/studies/ours/surveys/{survey.pk}/{tail}", data).status_code == 404
    assert cast.client(cast.bob).post(f"/studies/theirs/surveys/{survey.pk}/{tail}", data).status_code == 404
    assert Client().post(f"/studies/ours/surveys/{survey.pk}/{tail}", data)["Location"].startswith("/login/")
    assert (standing(quick)[0], standing(late)[0]) == ("excluded", "counted")
    assert ExclusionRule.objects.get().lifted_at is None


def test_the_page_costs_the_same_however_many_rules_and_people(cast: Cast, survey: Survey) -> None:
    client = cast.client(cast.alice)
    counts = []
    for people in (1, 5):
        for _ in range(people):
            make_person(survey, minutes=1)
            apply(survey, "total_faster", 5, cast.alice)
        with CaptureQueriesContext(connection) as queries:
            client.get(f"/studies/ours/surveys/{survey.pk}/exclusion/?kind=refusals&limit=1")
        counts.append(len(queries))
    assert counts[0] == counts[1]
