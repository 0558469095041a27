from datetime import timedelta

from django.utils import timezone

from corpus.models import Answer, Sitting
from scoring.models import Judge, Judgement, Round
from scoring.selectors import labels_of
from scoring.services import Verdict, judgements_record, judgements_retract, rules_apply
from tests.reports.conftest import ALL, RIGHT, Built


def labels(built: Built, name: str, **more) -> dict:
    """Labels of one answer by criterion."""
    rules_apply(study=built.cast.study, rubric=built.rubric)
    found = labels_of(instrument=built.instrument, rubric=built.rubric, **more)
    (answer,) = [answer for answer in found.answers if answer.pk == built.answers[name].pk]
    return {criterion.code: label for criterion, label in zip(found.criteria, answer.labels, strict=True)}


def values(built: Built, name: str) -> list:
    return [label.value for label in labels(built, name).values()]


def test_labels_follow_the_votes(built):
    assert values(built, "P1/1") == [1, 1, 1, 1, 1]
    assert values(built, "P1/2") == [1, 1, 0, 1, 1]
    assert values(built, "M2/1") == [1, 1, 0, 1, 1]
    grammatical = labels(built, "P1/2")["grammatical"]
    assert (grammatical.votes, grammatical.votes_for, grammatical.basis) == (3, 2, "majority")


def test_a_declined_answer_is_zero_by_the_refusal_rule(built):
    found = labels(built, "P1/3")
    assert {label.value for label in found.values()} == {0}
    assert {label.basis for label in found.values()} == {"refusal"}


def test_too_few_words_are_a_refusal_whatever_the_votes(bare):
    bare.sitting("P1", {1: "не знаю"})  # two words, and the instrument asks for three
    bare.judge("P1/1", ALL)
    assert values(bare, "P1/1") == [0, 0, 0, 0, 0]


def test_a_missing_reply_is_zero_and_not_a_refusal(built):
    found = labels(built, "M1/3")
    assert {(label.value, label.basis) for label in found.values()} == {(0, "no_valid_reply")}


def test_a_tie_is_decided_by_the_adjudicator_only(built):
    found = labels(built, "P2/1")["order"]
    assert (found.value, found.basis, found.votes) == (1, "adjudication", 2)
    Judgement.objects.filter(round__purpose="adjudication").update(retracted_at=built.instrument.created_at)
    found = labels(built, "P2/1")["order"]
    assert (found.value, found.basis, found.reason) == (None, "undecided", "tie")


def test_a_single_vote_is_undecided(built):
    found = labels(built, "P2/3")["logical"]
    assert (found.value, found.reason, found.votes) == (None, "single_vote", 1)


def test_a_majority_of_not_an_attempt_overrides_the_rule(built):
    found = labels(built, "M3/1")
    # The text has four words like the original, so the rule alone would say 1.
    assert Judgement.objects.get(answer=built.answers["M3/1"], criterion__code="sequence").value == 1
    assert (found["sequence"].value, found["sequence"].basis) == (0, "not_attempt")
    assert [label.value for label in found.values()] == [0, 0, 0, 0, 0]


def test_only_raters_in_rating_rounds_vote(bare):
    bare.sitting("P1", {1: RIGHT[1]})
    bare.judge("P1/1", {"grammatical": "11-"})
    for purpose in ("repeat", "training", "gold"):
        other = Round.objects.create(study=bare.cast.study, rubric=bare.rubric, purpose=purpose)
        bare.judge("P1/1", {"grammatical": "000"}, round_=other)
    machine = Judge.objects.create(kind=Judge.Kind.MODEL)
    criterion = bare.rubric.criteria.get(code="grammatical")
    judgements_record(
        round_id=bare.rating.pk,
        answer_id=bare.answers["P1/1"].pk,
        judge_id=machine.pk,
        verdicts={criterion: Verdict(0)},
    )
    found = labels(bare, "P1/1")["grammatical"]
    assert (found.value, found.votes) == (1, 2)


def test_raters_of_an_imported_round_vote(bare):
    bare.sitting("P1", {1: RIGHT[1]})
    bare.judge("P1/1", {"grammatical": "1--"})
    imported = Round.objects.create(study=bare.cast.study, rubric=bare.rubric, purpose="imported")
    bare.judge("P1/1", {"grammatical": "-00"}, round_=imported)
    found = labels(bare, "P1/1")["grammatical"]
    assert (found.value, found.votes, found.votes_for) == (0, 3, 2)


def test_the_latest_judgement_of_a_rater_stands_over_rounds(bare):
    bare.sitting("P1", {1: RIGHT[1]})
    bare.judge("P1/1", {"grammatical": "10-"})
    later = Round.objects.create(study=bare.cast.study, rubric=bare.rubric, purpose="rating")
    bare.judge("P1/1", {"grammatical": "0--"}, round_=later)
    found = labels(bare, "P1/1")["grammatical"]
    # R1 said 1 and later 0; R2 said 0: two votes, both 0.
    assert (found.value, found.votes, found.votes_for) == (0, 2, 2)


def test_the_latest_is_so_by_its_own_time_and_not_by_when_a_file_brought_it(bare):
    bare.sitting("P1", {1: RIGHT[1]})
    bare.judge("P1/1", {"grammatical": "11-"})
    imported = Round.objects.create(study=bare.cast.study, rubric=bare.rubric, purpose="imported")
    criterion = bare.rubric.criteria.get(code="grammatical")
    Judgement.objects.create(
        round=imported,
        answer=bare.answers["P1/1"],
        criterion=criterion,
        judge=bare.raters[0].judge,
        value=0,
        made_at=timezone.now() - timedelta(days=700),
    )
    found = labels(bare, "P1/1")["grammatical"]
    assert (found.value, found.votes) == (1, 2)


def test_withdrawn_judgements_do_not_vote(bare):
    bare.sitting("P1", {1: RIGHT[1]})
    bare.judge("P1/1", {"grammatical": "110"})
    judgements_retract(round_id=bare.rating.pk, answer_id=bare.answers["P1/1"].pk, judge_id=bare.raters[0].judge_id)
    found = labels(bare, "P1/1")["grammatical"]
    assert (found.value, found.votes, found.reason) == (None, 2, "tie")


def test_only_counted_sittings_have_labels(bare):
    for standing in Sitting.Standing.values:
        bare.sitting(standing, {1: RIGHT[1]}, standing=standing)
    found = labels_of(instrument=bare.instrument, rubric=bare.rubric)
    assert [answer.pk for answer in found.answers] == [bare.answers["counted/1"].pk]


def test_another_study_is_not_heard(built):
    """Judgements of a round of another study on the same answer are nobody's votes here."""
    foreign = Round.objects.create(study=built.cast.other_study, rubric=built.rubric, purpose="rating")
    built.judge("P2/3", {"logical": "000"}, round_=foreign)
    assert labels(built, "P2/3")["logical"].votes == 1


def test_queries_do_not_grow(bare, django_assert_num_queries):
    for number in range(10):
        bare.sitting(f"P{number}", RIGHT)
        bare.judge(f"P{number}/1", ALL)
    rules_apply(study=bare.cast.study, rubric=bare.rubric)
    with django_assert_num_queries(4):
        found = labels_of(instrument=bare.instrument, rubric=bare.rubric)
    assert len(found.answers) == Answer.objects.count() == 30
    with django_assert_num_queries(4):
        few = labels_of(instrument=bare.instrument, rubric=bare.rubric, answer_ids=[bare.answers["P3/1"].pk])
    assert [answer.pk for answer in few.answers] == [bare.answers["P3/1"].pk]
